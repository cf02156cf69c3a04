"""All built-in metrics pass the checks, and each check can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from metrics.broken import BROKEN, DividesByLength, Sound

from dialeval import check_metric
from dialeval.check import MetricCheckError, example_samples, made_up_answer, metric_checks
from dialeval.question import (
    Answer,
    BestMatches,
    DocumentFrequency,
    Embed,
    Likelihood,
    Question,
    TokenLogProbs,
    TokenMatch,
    WordVectors,
)
from dialeval.registry import METRICS, make_metric
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

MODES = ["bleu:mode=released", "rouge:mode=released", "chrf:word_order=2", "length:unit=characters"]


def builtin_checks() -> list:
    return [
        pytest.param(check, id=f"{spec}-{check}")
        for spec in [*BUILTIN, *MODES]
        for check in metric_checks(make_metric(spec))
    ]


BUILTIN = [
    "llm-judge:model=m" if name == "llm-judge" else name
    for name in METRICS.names()
    if not METRICS.is_plugin(name)
]


@pytest.mark.parametrize("check", builtin_checks())
def test_builtin_metrics_pass(check):
    check()


def test_a_sound_metric_passes_and_is_told_what_was_checked():
    result = check_metric(Sound())
    assert result.metric == "sound"
    assert result.passed == tuple(str(check) for check in metric_checks(Sound()))
    assert all(check.claim for check in metric_checks(Sound()))


@pytest.mark.parametrize(
    ("broken", "name", "message"), BROKEN, ids=[f"{b.__name__}-{name}" for b, name, _ in BROKEN]
)
def test_a_broken_metric_is_told_what_is_wrong(broken, name, message):
    [check] = [check for check in metric_checks(broken()) if check.name == name]
    with pytest.raises(MetricCheckError, match=f"^{name}: ") as caught:
        check()
    assert message in str(caught.value)


def test_every_check_is_shown_to_fail():
    assert {name for _, name, _ in BROKEN} == {check.name for check in metric_checks(Sound())}


def test_check_metric_lists_all_failures_at_once():
    with pytest.raises(MetricCheckError, match="metric 'sound' fails") as caught:
        check_metric(DividesByLength())
    assert "- survives-empty: " in str(caught.value)
    assert "- survives-blank: " in str(caught.value)


def test_own_samples_and_answers_are_used():
    asked = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        return np.zeros(3)

    own = Sample("mine", context=example_samples(Sound())[0].context, response="ok then")
    check_metric(Sound(), samples=[own], answer=answer)
    assert Embed("vectors", "ok then") in asked


def test_a_question_of_an_unknown_kind_wants_an_answer():
    with pytest.raises(MetricCheckError, match="Pass answer="):
        made_up_answer(Question("lm"))


def test_made_up_answers_have_the_documented_shapes():
    found = TokenLogProbs.read(made_up_answer(Likelihood("lm", "two words")))
    assert found.spans == ((0, 3), (4, 9))
    assert max(found.log_probs) < 0
    assert made_up_answer(Likelihood("lm", "")).shape == (1, 3)
    alone = Likelihood("lm", "two words", start=False)
    assert np.isnan(made_up_answer(alone)[:, 0]).tolist() == [False, True, False]
    whole = Likelihood("lm", "one", turns=(Turn("a b"),), whole=True, end=True)
    assert TokenLogProbs.read(made_up_answer(whole)).spans == ((-1, -1), (-1, -1), (0, 3), (-1, -1))

    assert made_up_answer(Embed("e", "x")).ndim == 1
    vectors = made_up_answer(WordVectors("e", ("cat", "?", "cat")))
    assert np.isnan(vectors).all(axis=1).tolist() == [False, True, False]
    assert (vectors[0] == vectors[2]).all()
    matches = BestMatches.read(made_up_answer(TokenMatch("e", "a b", "a")))
    assert len(matches.candidate_tokens) == 2
    assert matches.candidate_tokens[0] == matches.reference_tokens[0]
    assert made_up_answer(DocumentFrequency("e", ("a a", "a b"))).sum() == 3


def test_made_up_answers_depend_on_the_question_alone():
    assert (made_up_answer(Embed("e", "x")) == made_up_answer(Embed("e", "x"))).all()
    assert (made_up_answer(Embed("e", "x")) != made_up_answer(Embed("e", "y"))).any()
    assert (made_up_answer(Embed("e", "x")) != made_up_answer(Embed("f", "x"))).any()


def test_a_metric_of_whole_dialogues_can_be_checked():
    @dataclass(frozen=True)
    class Turns(Sound):
        """Number of turns."""

        name = "turns"
        levels = frozenset({"dialogue"})

        def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
            return Score(float(len(sample.turns)), {"half": 0.5, "both": (1.0,)})

    failed = []
    for check in metric_checks(Turns()):
        try:
            check()
        except MetricCheckError:
            failed.append(check.name)
    assert failed == ["picklable"]  # a local class is
