"""diversity and consistency, with made-up vectors and probabilities in place of models."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.question import Inference
from dialeval.readers import load
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn, Variant


def group(*answers: str) -> Sample:
    return Sample("g", variants=tuple(Variant(f"query {i}", a) for i, a in enumerate(answers)))


def dialogue(*texts: str, speakers: str = "") -> Sample:
    names = {"u": "user", "s": "system"}
    *before, response = texts
    who = [names[letter] for letter in speakers] or [""] * len(before)
    return Sample("d", context=tuple(map(Turn, before, who)), response=response)


def verdicts(*contradictions: float) -> list[np.ndarray]:
    return [np.array([p, (1 - p) / 2, (1 - p) / 2]) for p in contradictions]


plain = make_metric("diversity:dispersion=false")
released = make_metric("diversity:mode=released,dispersion=false")


@pytest.mark.parametrize("order", [1, 2, 3])
def test_released_diversity_equals_the_golden_numbers(golden, order):
    for case in golden["ngram_entropy"]["cases"]:
        found = released.score(group(*case["group"]), [])
        assert found.parts[f"entropy-{order}"] == pytest.approx(case["expected"][str(order)])


def test_paper_mode_counts_real_ngrams_only():
    """Of "a b" and "a b c", the bigrams are ab, ab, bc: H = -(2/3 ln 2/3 + 1/3 ln 1/3)."""
    found = plain.score(group("a b", "  a  b c", "yes", " "), [])
    expected = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert found.value == found.parts["entropy-2"] == pytest.approx(expected)
    assert found.parts["normalised-2"] == pytest.approx(expected / math.log(3))
    assert found.parts["distinct-2"] == pytest.approx(2 / 3)
    assert found.parts["entropy-3"] == 0.0


def test_a_group_that_says_nothing_has_no_diversity():
    assert plain.score(group("", " "), []).note == "empty answers"
    assert plain.score(group("yes", "no"), []).note == "answers too short"
    assert plain.score(group("yes it is"), []).note == "one answer"
    assert plain.obstacle(dialogue("hi", "hello")) == "no variants"


def test_dispersion_is_one_minus_the_mean_cosine_of_pairs():
    """Cosines of (1,0), (0,1), (1,0): 0, 1, 0; the answer said twice is asked about once."""
    metric = make_metric("diversity")
    same = group("one way", "another way", "one way")
    assert [q.text for q in metric.ask(same)] == ["one way", "another way"]
    found = metric.score(same, [np.array([2.0, 0.0]), np.array([0.0, 5.0])])
    assert found.parts["dispersion"] == pytest.approx(2 / 3)
    assert metric.models() == {"model": "minilm-l6"}


words = st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join)


@given(st.lists(words, min_size=1, max_size=5))
def test_no_group_is_more_diverse_than_one_in_which_every_ngram_is_new(answers):
    found = plain.score(group(*answers), [])
    for n in (1, 2, 3):
        if f"normalised-{n}" in found.parts:
            assert 0 <= found.parts[f"normalised-{n}"] <= 1 + 1e-12
            assert 0 < found.parts[f"distinct-{n}"] <= 1


def test_marginal_diversity_is_that_of_all_answers_together():
    """Two bots: one has an answer for each query, however worded, the other one for everything."""
    metric = make_metric("marginal-diversity:n=1")
    for answers, entropy in (("a", "b"), math.log(2)), (("a", "a"), 0.0):
        pool = metric.pool()
        for answer in answers:
            found = metric.score(group(answer, answer), [])
            assert found.value == 0.0
            pool.add(found)
        assert pool.result().value == pytest.approx(entropy)
    assert metric.pool().result().note == "answers too short"


def test_consistency_follows_the_golden_numbers(golden):
    fixture = golden["holistic_selfconsistency"]
    sample = dialogue("q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4")
    answers = verdicts(*fixture["contradiction_probs_oldest_to_newest"])
    for pairs, key in (
        ("mean", "paper_mean"),
        ("last", "code_last_only_0_1"),
        ("max", "max_variant"),
    ):
        metric = make_metric(f"consistency:pairs={pairs}")
        assert metric.score(sample, answers).value == pytest.approx(fixture[key])


def test_consistency_says_which_turn_is_contradicted_most():
    sample = dialogue("q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4")
    parts = make_metric("consistency").score(sample, verdicts(0.1, 0.8, 0.25)).parts
    assert parts["contradictions"] == pytest.approx((0.1, 0.8, 0.25))
    assert parts["turns"] == (2.0, 4.0, 6.0)
    assert (parts["worst"], parts["worst-turn"]) == (pytest.approx(0.8), 4.0)


def test_the_earlier_turns_of_the_speaker_are_the_premises(golden):
    metric = make_metric("consistency")
    rule = golden["holistic_selfconsistency"]["same_agent_rule"]
    for count in (5, 6):
        kept = [i for i in rule[f"kept_indices_of_{count}"] if i < count - 1]
        sample = dialogue(*(f"turn {i}" for i in range(count)))
        asked = [(q.premise, q.hypothesis) for q in metric.ask(sample)]
        assert asked == [(f"turn {i}", f"turn {count - 1}") for i in kept]
    named = dialogue("I am ten", "ok", "go on", "I am nine", speakers="suu")
    assert metric.ask(named) == [Inference("minilm-l6-nli", "I am ten", "I am nine")]


def test_speakers_by_any_name_are_told_apart_by_who_spoke_last():
    turns = (Turn("I am ten", "Bob"), Turn("ok", "Ann"), Turn("go on", "Ann"))
    asked = make_metric("consistency").ask(Sample("d", turns, "I am nine"))
    assert [(q.premise, q.hypothesis) for q in asked] == [("I am ten", "I am nine")]


def test_consistency_says_that_a_text_was_cut():
    sample = dialogue("q1", "a1", "q2", "a2")
    (whole,) = verdicts(0.1)
    assert make_metric("consistency").score(sample, [whole]).note == ""
    assert make_metric("consistency").score(sample, [np.append(whole, 1.0)]).note == "truncated"


def test_consistency_of_a_group_compares_each_answer_with_the_first():
    sample = group("I have a dog", "I have no dog", "", "Yes")
    metric = make_metric("consistency:lowercase=true,groups=true")
    assert (
        make_metric("consistency").obstacle(sample)
        == "a group of answers, judged only with groups=true"
    )
    assert metric.obstacle(sample) == ""
    asked = [(q.premise, q.hypothesis) for q in metric.ask(sample)]
    assert asked == [("i have a dog", "i have no dog"), ("i have a dog", "yes")]
    assert metric.score(sample, verdicts(0.9, 0.1)).parts["worst-turn"] == 2.0


def test_consistency_without_anything_to_contradict_has_no_score():
    metric = make_metric("consistency")
    assert metric.score(dialogue("hi", "hello"), []).note == "nothing said before"
    assert metric.ask(dialogue("a", "b", "c", " ")) == []
    assert metric.score(dialogue("a", "b", "c", " "), []).note == "empty response"
    assert metric.obstacle(Sample("x", context=(Turn("hi"),))) == "no response"


def test_the_released_groups_have_the_published_mean_entropies(datasets):
    """Means over the 100 groups of each file, for n = 1, 2, 3."""
    folder = datasets / "rated/holistic/augmented_dataset/Response_Diversity"
    expected = {
        "CTG": (3.028347, 3.274864, 3.153783),
        "WS": (2.889344, 3.145673, 3.067541),
    }
    for name, means in expected.items():
        scores = [released.score(sample, []) for sample in load(folder / f"{name}.csv")]
        found = [
            math.fsum(s.parts[f"entropy-{n}"] for s in scores) / len(scores) for n in (1, 2, 3)
        ]
        assert len(scores) == 100
        assert found == pytest.approx(means, abs=1e-6)
