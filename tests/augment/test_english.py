"""English: forms as grammars list them, frames around a sentence, and tags."""

from __future__ import annotations

import pytest

from dialeval.augment.substitution import framed, inflect
from dialeval.lexicon import load_wordnet
from dialeval.models.tagger import UNUSED

VERBS = """
go goes went gone going
take takes took taken taking
begin begins began begun beginning
drink drinks drank drunk drinking
come comes came come coming
run runs ran run running
win wins won won winning
hang hangs hung hung hanging
show shows showed shown showing
beat beats beat beaten beating
put puts put put putting
bear bears bore borne bearing
learn learns learned learned learning
stop stops stopped stopped stopping
visit visits visited visited visiting
try tries tried tried trying
enjoy enjoys enjoyed enjoyed enjoying
watch watches watched watched watching
purchase purchases purchased purchased purchasing
agree agrees agreed agreed agreeing
lie lies lay lain lying
do does did done doing
have has had had having
be is was been being
sing sings sang sung singing
take_place takes_place took_place taken_place taking_place
"""


@pytest.mark.parametrize("row", VERBS.strip().splitlines())
def test_verbs_are_conjugated(row):
    base, *forms = row.split()
    assert [inflect(base, tag) for tag in ("VBZ", "VBD", "VBN", "VBG")] == forms
    assert inflect(base, "VB") == inflect(base, "VBP") == base


NOUNS = """
cat cats
child children
policeman policemen
bus buses
box boxes
city cities
day days
hero heroes
photo photos
life lives
means means
church churches
foot feet
body_of_water bodies_of_water
prescription_drug prescription_drugs
"""


@pytest.mark.parametrize("row", NOUNS.strip().splitlines())
def test_nouns_have_plurals(row):
    base, plural = row.split()
    assert inflect(base, "NNS") == plural


ADJECTIVES = """
big bigger biggest
good better best
bad worse worst
nice nicer nicest
happy happier happiest
large larger largest
fast faster fastest
decent more_decent most_decent
"""


@pytest.mark.parametrize("row", ADJECTIVES.strip().splitlines())
def test_adjectives_are_compared(row):
    base, *forms = row.split()
    assert [inflect(base, tag) for tag in ("JJ", "JJR", "JJS")] == [base, *forms]


@pytest.mark.parametrize("tag", ["VBZ", "VBG"])
def test_wordnet_finds_the_verbs_behind_their_forms(tag):
    """All but a few in a thousand, such as "birdie", whose forms morphy takes for others."""
    wordnet = load_wordnet()
    verbs = [verb for verb in wordnet.words("v") if verb.isalpha()]
    found = [verb for verb in verbs if verb in wordnet.lemma_forms(inflect(verb, tag), "v")]
    assert len(found) / len(verbs) > 0.995


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


def test_only_what_tags_need_is_loaded(tagger):
    assert not set(UNUSED) & set(tagger._pipeline.pipe_names)


def test_auxiliaries_and_verbs_with_particles_are_known_without_a_parser(tagger):
    (words,) = tagger.tag_texts(["I have been trying to pick him up; you can sleep."])
    assert [word.text for word in words if word.auxiliary] == ["have", "been", "can"]
    assert [word.text for word in words if word.particle] == ["pick"]
