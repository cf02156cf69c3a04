import sys

import pytest

from dialeval.augment import Query, make_augmenter
from dialeval.augment.substitution import Edit, apply, released_words
from dialeval.augment.synonyms import near_synonym, released_synonym
from dialeval.augment.tagging import load_tagger
from dialeval.errors import UsageError


def variants(text, spec="ws"):
    (made,) = make_augmenter(spec).augment([Query("q", text)])
    return {paraphrase.how: paraphrase.query for paraphrase in made}


def test_the_released_rule_gives_the_pairs_seen_in_the_released_file(golden):
    for word, pos, replacement in golden["ws_examples"]["pairs"]:
        assert released_synonym(word, pos) == replacement


def test_released_mode_repeats_the_worked_query(golden, tagger):
    worked = golden["ws_examples"]["worked_query"]
    made = variants(worked["original"], "ws:mode=released")
    assert made["verbs"] == worked["verbs"]
    assert made["nouns"] == worked["nouns"]
    assert made["modifiers"] == worked["adj_adv"]
    assert made["all"] == "a full remainder be all you necessitate , and toast more body_of_water ."


def test_released_mode_keeps_all_four_even_where_nothing_changes(tagger):
    assert set(variants("Oh!", "ws:mode=released").values()) == {"oh !"}
    assert make_augmenter("ws:mode=released").keeps_repeats
    assert not make_augmenter("ws").keeps_repeats


def test_released_words_are_lower_case_with_punctuation_apart():
    assert released_words("I'll go, Bob?!") == ["i'll", "go", ",", "bob", "?!"]
    already = "a good rest is all you need , and i ’ m afraid ."
    assert " ".join(released_words(already)) == already


def test_paper_mode_keeps_tense_number_case_and_spacing(tagger):
    made = variants("She bought  two CARS and started small shops.")
    assert made["verbs"] == "She purchased  two CARS and began small shops."
    assert made["nouns"] == "She bought  two AUTOS and started small stores."
    assert made["modifiers"] == "She bought  two CARS and started little shops."
    assert made["all"] == "She purchased  two AUTOS and began little stores."


@pytest.mark.parametrize(
    "text",
    [
        "Don't you? I'll! He's... I ’ m , don ’ t",
        "Have you been? Do they? She is, was, had been.",
        "Mary Smith, London!",
        "",
        "   ",
        "42 :-) 🙂",
    ],
)
def test_paper_mode_leaves_contractions_auxiliaries_and_names(tagger, text):
    assert set(variants(text).values()) == {text}


def test_a_verb_with_a_particle_stays(tagger):
    assert "gave up" in variants("He gave up buying it.")["all"]
    assert "gave up purchasing" in variants("He gave up buying it.")["verbs"]


def test_the_article_follows_the_new_word():
    text = "It is a big house."
    edit = Edit(8, 11, "enormous", "modifiers")
    assert apply(text, [edit]) == "It is an enormous house."
    assert apply("An old user", [Edit(3, 6, "unique", "modifiers")]) == "A unique user"


def test_near_synonyms_share_the_usual_sense_and_are_common_words():
    assert near_synonym("buy", "v") == "purchase"
    assert near_synonym("start", "v") == "begin"
    assert near_synonym("drink", "v") is None  # imbibe is rare, toast another sense
    assert near_synonym("water", "n") is None  # H2O is no common word
    assert near_synonym("party", "n") is None  # a political party is a kind of party
    assert near_synonym("asdfgh", "n") is None


def test_without_spacy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UsageError, match=r"pip install 'dialeval\[augment\]'"):
        load_tagger.__wrapped__("spacy-en-sm")
