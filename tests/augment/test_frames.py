import pytest

from dialeval.augment.english import framed


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Where do you live?", "Tell me, where do you live?"),
        ("I like tea. What do you like ?", "I like tea. Tell me, what do you like ?"),
        ("I like tea.", "Well, I like tea."),
        ("I'm fine. You?!", "I'm fine. Tell me, you?!"),
        ("It rains. Why? Nobody knows.", "Well, it rains. Why? Nobody knows."),
        ("NASA is far away", "Well, NASA is far away"),
        ('"Who is it?"', '"Tell me, who is it?"'),
        ("A dog barks", "Well, a dog barks"),
        ("It is 3.5 miles. Is 3.5 far?", "It is 3.5 miles. Tell me, is 3.5 far?"),
    ],
)
def test_the_opening_stands_before_the_question_or_the_statement(text, first):
    assert framed(text)[0] == first


def test_names_keep_their_capital():
    assert framed("Tom is here.", proper=[0])[0] == "Well, Tom is here."


def test_an_opening_that_is_there_is_not_repeated():
    assert framed("Well, it is late.") == ["So, well, it is late.", "Okay, well, it is late."]
    assert len(framed("Tell me, who are you?")) == 2


@pytest.mark.parametrize(
    "text", ["你好，世界！", "你是谁?", "我喜欢Python吗?", "Как дела?", "3个苹果"]
)
def test_what_is_not_in_latin_letters_gets_no_english_opening(text):
    assert framed(text) == []


@pytest.mark.parametrize("text", ["3 apples are here", "What does 你好 mean?", "Émile is here."])
def test_a_text_that_begins_with_latin_letters_gets_an_opening(text):
    assert len(framed(text)) == 3


@pytest.mark.parametrize("text", ["", "  ", "?!", ":-)"])
def test_where_there_is_no_word_there_is_nothing_to_open(text):
    assert framed(text) == []


def test_all_openings_differ():
    assert len(set(framed("Who are you?"))) == 3


def test_a_long_text_takes_no_time():
    assert framed("word. " * 20_000 + "Why?")[0].endswith("Tell me, why?")
    assert framed("? " * 50_000 + "word")[0].endswith("Well, word")
