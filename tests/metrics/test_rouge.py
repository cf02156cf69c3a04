"""ROUGE against Google's rouge_score; PONE's ROUGE against arithmetic on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import pairs, score, sentences
from rouge_score.rouge_scorer import RougeScorer

from dialeval.errors import UsageError
from dialeval.metrics.rouge import Rouge, longest_common_subsequence
from dialeval.registry import make_metric

THEIR_NAMES = {"rouge-1": "rouge1", "rouge-2": "rouge2", "rouge-L": "rougeL"}


@given(pairs, st.booleans(), st.sampled_from([1, 2, "L"]))
def test_each_part_is_the_f_measure_of_score_multi(pair, stemming, variant):
    response, references = pair
    scorer = RougeScorer(list(THEIR_NAMES.values()), use_stemmer=stemming)
    expected = scorer.score_multi(references, response)

    found = score(Rouge(variant=variant, stemming=stemming), response, *references)
    assert dict(found.parts) == {
        ours: expected[theirs].fmeasure for ours, theirs in THEIR_NAMES.items()
    }
    assert found.value == found.parts[f"rouge-{variant}"]


def test_golden_rouge_l(golden):
    case = golden["rouge"]["rougeL_f1(beta=1)"]
    assert score(Rouge(), case["hyp"], case["ref"]).value == pytest.approx(case["expected"])


def test_stemming_joins_forms_of_a_word():
    assert score(Rouge(), "running dogs", "runs dog").value == 0
    assert score(Rouge(stemming=True), "running dogs", "runs dogs").value == 1


@given(sentences, st.lists(sentences, min_size=1, max_size=3))
def test_the_order_of_references_does_not_matter(response, references):
    assert score(Rouge(), response, *references) == score(Rouge(), response, *references[::-1])


def test_a_copy_of_the_reference_scores_1():
    assert set(score(Rouge(), "the cat sat", "no", "the cat sat").parts.values()) == {1.0}


def test_the_longest_common_subsequence_of_two_long_texts_is_found_at_once():
    """With the table of rouge_score: 400 million cells."""
    even = [str(number) for number in range(0, 40_000, 2)]
    by_three = [str(number) for number in range(0, 60_000, 3)]
    multiples_of_six_below_40_000 = 6667
    assert longest_common_subsequence(even, by_three) == multiples_of_six_below_40_000


# PONE's ROUGE. F = 2PR / (P + R + 1e-8) over sets of bigrams.


def test_golden_rouge_2_of_the_rouge_package(golden):
    case = golden["rouge"]["pltrdy_rouge2_f_set_semantics"]
    found = score(Rouge(mode="released"), case["hyp"], case["ref"])
    assert found.value == pytest.approx(case["expected"], abs=1e-10)
    assert dict(found.parts) == {"rouge-2": found.value}


def test_released_counts_a_repeated_bigram_once():
    # {no no} against {no no, no way}: P = 1, R = 1/2.
    found = score(Rouge(mode="released"), "no no no no", "no no way")
    assert found.value == pytest.approx(2 * 0.5 / (1.5 + 1e-8), abs=1e-12)


def test_released_lets_bigrams_run_across_full_stops():
    # {I am, am here} on both sides: P = R = 1.
    found = score(Rouge(mode="released"), "I am . here", "I . am here")
    assert found.value == pytest.approx(2 / (2 + 1e-8), abs=1e-12)


def test_released_reads_an_empty_response_as_u_n_k():
    # {u n, n k} against {n k}: P = 1/2, R = 1.
    found = score(Rouge(mode="released"), "", "n k")
    assert found.value == pytest.approx(2 * 0.5 / (1.5 + 1e-8), abs=1e-12)


def test_released_finds_no_bigram_in_an_empty_reference():
    assert score(Rouge(mode="released"), "a b", "").value == 0


def test_released_puts_an_empty_word_between_two_full_stops():
    # {a "", "" b} against {a b}.
    assert score(Rouge(mode="released"), "a . . b", "a b").value == 0


def test_released_has_no_score_where_the_package_raises():
    assert score(Rouge(mode="released"), ".", "yes").note == "no words"


@pytest.mark.parametrize("option", ["variant=1", "variant=2", "stemming=true"])
def test_released_refuses_options_that_it_would_ignore(option):
    with pytest.raises(UsageError, match="mode=released is PONE's ROUGE-2"):
        make_metric(f"rouge:mode=released,{option}")
    assert "|variant:2|" in str(Rouge(mode="released").signature())


class Characters:
    """For `RougeScorer`: each character is a word."""

    def tokenize(self, text):
        return [character for character in text if character.isalnum()]


class Spaced:
    """For `RougeScorer`: lower case, without marks at the ends."""

    def tokenize(self, text):
        return [word.strip(".,?!").lower() for word in text.split()]


@pytest.mark.parametrize(
    ("tokenizer", "response", "reference"),
    [
        (Characters(), "我今天很高兴见到你。", "今天见到你我很高兴！"),
        (Characters(), "今日はとても楽しかったです", "今日は本当に楽しかったですね"),
        (
            Spaced(),
            "Ich möchte heute nicht schwimmen.",
            "Heute möchte ich nicht mit dir schwimmen.",
        ),
        (Spaced(), "Сегодня очень хорошая погода.", "Сегодня у нас хорошая погода."),
        (Spaced(), "आज मौसम बहुत अच्छा है", "आज का मौसम अच्छा है"),
    ],
)
def test_the_words_fit_the_language_of_the_references(tokenizer, response, reference):
    scorer = RougeScorer(list(THEIR_NAMES.values()), tokenizer=tokenizer)
    expected = scorer.score(reference, response)
    found = score(Rouge(), response, reference)
    for ours, theirs in THEIR_NAMES.items():
        assert found.parts[ours] == pytest.approx(expected[theirs].fmeasure)
    assert found.value > 0
    assert score(Rouge(tokenize="unicode"), response, reference) == found
    assert "tokenize:auto" in str(Rouge().signature())


def test_the_rule_of_rouge_score_can_be_asked_for():
    assert score(Rouge(tokenize="ascii"), "你好", "你好").value == 0
    # "für" is "f" and "r" to it, and both are in "f. r."
    assert score(Rouge(tokenize="ascii"), "für dich ist das nicht", "f r").parts["rouge-1"] > 0
