import sys

import pytest

from dialeval.augment import Query, Tally, augment_queries, make_augmenter
from dialeval.augment.substitution import (
    Edit,
    apply,
    near_synonyms,
    released_synonym,
    released_words,
)
from dialeval.errors import UsageError
from dialeval.models.tagger import load_tagger


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


def test_released_mode_leaves_the_article_as_the_released_file_does(tagger):
    """WS.csv has "a expression" six times."""
    assert variants("I took a look.", "ws:mode=released")["nouns"] == "i took a expression ."


def test_readable_is_the_default_and_the_mode_of_the_paper_another():
    assert make_augmenter("ws") == make_augmenter("ws:mode=readable")
    assert make_augmenter("ws") != make_augmenter("ws:mode=paper")


def test_paper_mode_replaces_every_word_of_a_kind_by_a_synonym_and_keeps_the_rest(golden, tagger):
    """Section 4.4: verbs, nouns, adjectives and adverbs, or all, and golden synonyms."""
    assert ["water", "n", "body_of_water"] in golden["ws_examples"]["pairs"]
    made = variants("Think: do you  DRINK good water, Ann?", "ws:mode=paper")
    assert made["nouns"].startswith("Think: do you  DRINK good body of water, ")
    assert made["verbs"] == "Remember: make you  TOAST good water, Ann?"
    assert made["modifiers"] == "Think: do you  DRINK full water, Ann?"


@pytest.mark.parametrize("mode", ["paper", "released-consistency"])
def test_a_variant_equal_to_its_query_is_left_out_and_counted(tagger, mode):
    tally = Tally()
    augmenter = make_augmenter(f"ws:mode={mode}")
    (augmented,) = augment_queries([Query("q", "Oh, Really ?  What for?")], [augmenter], tally)
    assert {variant.query.lower() for variant in augmented.variants} == {
        "oh, truly ?  what for?" if mode == "paper" else "oh , truly ? what for ?"
    }
    (augmented,) = augment_queries([Query("q", "What for?")], [augmenter], tally)
    assert augmented.variants == ()
    assert tally.bare == 1
    assert tally.unchanged.total() == (6 if mode == "paper" else 1)


@pytest.mark.parametrize(
    ("query", "paraphrase"),
    [
        ("No , I am ok , really .", "no , i am ok , truly ."),
        ("How have you managed that ?", "how have you pull off that ?"),
        ("I am cooking now !", "iodine am cooking now !"),
        ("My mother-in-law just went there .", "my mother-in-law just travel there ."),
        (
            "Toilets are in the rear , all the toilets .",
            "toilet are in the rear , all the toilets .",
        ),
        ("Do you want the truth ?", "do you want the truth ?"),
    ],
)
def test_one_word_is_replaced_as_in_the_self_consistency_set(tagger, query, paraphrase):
    assert variants(query, "ws:mode=released-consistency") == {"one word": paraphrase}


def test_only_the_readable_mode_has_openings():
    with pytest.raises(UsageError, match="leave out least"):
        make_augmenter("ws:mode=paper,least=1")


def test_released_words_are_lower_case_with_punctuation_apart():
    assert released_words("I'll go, Bob?!") == ["i'll", "go", ",", "bob", "?!"]
    already = "a good rest is all you need , and i ’ m afraid ."
    assert " ".join(released_words(already)) == already


def test_readable_mode_keeps_tense_number_case_and_spacing(tagger):
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
def test_readable_mode_leaves_contractions_auxiliaries_and_names(tagger, text):
    assert set(variants(text, "ws:least=0").values()) == {text}


def test_a_verb_with_a_particle_stays(tagger):
    assert "gave up purchasing" in variants("He gave up buying it.")["verbs"]
    assert variants("He bought up the old shops.")["verbs"] == "He bought up the old shops."
    assert variants("Please start the car up.")["verbs"] == "Please start the car up."


def test_an_abbreviation_stays(tagger):
    assert "TV" in variants("I bought a TV.")["all"]


def test_where_one_part_of_speech_alone_has_synonyms_all_takes_the_next_nearest(tagger):
    made = variants("How may I help you?")
    assert made["verbs"] == "How may I assist you?"
    assert made["all"] == "How may I aid you?"


@pytest.mark.parametrize("text", ["Where do you live?", "What do you eat?", "Hello!", "42!"])
def test_a_query_whose_words_have_no_synonym_gets_openings(tagger, text):
    (augmented,) = augment_queries([Query("q", text)], [make_augmenter("ws")])
    assert [variant.how for variant in augmented.variants] == ["frame"] * 3
    assert all(variant.query.lower().endswith(text.lower()) for variant in augmented.variants)


def test_a_query_in_chinese_has_no_variant_and_is_counted_as_bare(tagger):
    tally = Tally()
    (augmented,) = augment_queries([Query("q", "你好，你是谁？")], [make_augmenter("ws")], tally)
    assert augmented.variants == ()
    assert tally.bare == 1


def test_openings_only_fill_up(tagger):
    made = make_augmenter("ws:least=2").augment([Query("q", "Do you want to share it?")])[0]
    changed = {variant.query: variant.how for variant in made if variant.query != made[1].query}
    assert list(changed.values()) == ["verbs", "frame"]
    enough = make_augmenter("ws").augment([Query("q", "She bought small shops.")])[0]
    assert [variant.how for variant in enough] == ["verbs", "nouns", "modifiers", "all"]


def test_no_synonym_of_another_part_of_speech_is_forced_on_a_word(tagger):
    assert "mouth" not in variants("Do you speak French?")["verbs"]
    assert "cherry" not in variants("I bought a red bicycle.")["all"]


def test_the_article_follows_the_new_word():
    text = "It is a big house."
    edit = Edit(8, 11, "enormous", "modifiers")
    assert apply(text, [edit]) == "It is an enormous house."
    assert apply("An old user", [Edit(3, 6, "unique", "modifiers")]) == "A unique user"


def test_near_synonyms_share_usual_senses_and_are_common_words():
    assert near_synonyms("buy", "v") == ("purchase",)
    assert near_synonyms("start", "v")[0] == "begin"
    assert near_synonyms("drink", "v") == ()  # imbibe is rare, toast another sense
    assert near_synonyms("water", "n") == ()  # H2O is no common word
    assert near_synonyms("party", "n") == ()  # a political party is a kind of party
    assert near_synonyms("restaurant", "n") == ()  # an eating house is a definition
    assert near_synonyms("asdfgh", "n") == ()


def test_a_word_that_shares_more_senses_is_nearer():
    """WordNet 3.0: speak and talk share three verb senses, speak and mouth one."""
    assert near_synonyms("speak", "v")[0] == "talk"
    # job: {occupation, business, job, line of work, line} is its first sense and that of the first.
    assert near_synonyms("job", "n")[:2] == ("occupation", "business")


def test_without_spacy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UsageError, match=r"pip install 'dialeval\[augment\]'"):
        load_tagger.__wrapped__("spacy-en-sm")
