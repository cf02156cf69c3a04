"""Models that ask other models: through the same engine, the same cache, without end only if the
models ask in a circle."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import LengthModel

from dialeval.engine import answers
from dialeval.engine.answers import AnswerCache, Answerer
from dialeval.errors import JobError
from dialeval.question import Embed, Judge


class RatioScorer:
    """Length of the response over that of all turns, as another model measures lengths."""

    def __init__(self, encoder: str = "encoder") -> None:
        self.encoder = encoder
        self.batches: list[int] = []

    def asks(self, questions):
        return [[Embed(self.encoder, text) for text in (*q.turns, q.response)] for q in questions]

    def answer(self, questions, answers=()):
        self.batches.append(len(questions))
        for position, lengths in reversed(list(enumerate(answers))):
            *turns, response = (float(length[0]) for length in lengths)
            yield position, np.array([response / sum(turns)])


class Source:
    def __init__(self, **models):
        self.models = models
        self.loaded: list[str] = []

    def fingerprint(self, name):
        return f"weights of {name}"

    def load(self, name):
        self.loaded.append(name)
        return self.models[name]


def judged(source, questions, cache=None):
    found = Answerer(source, cache).answer(questions)
    return [float(found[question][0]) for question in questions]


def test_a_scorer_gets_the_answers_to_what_it_asked():
    source = Source(scorer=RatioScorer(), encoder=LengthModel())
    questions = [Judge("scorer", ("four", "to"), "abc"), Judge("scorer", ("four",), "x")]
    assert judged(source, questions) == [3 / 6, 1 / 4]
    assert source.models["encoder"].batches == [4]


def test_an_embedding_is_computed_once_however_many_want_it(tmp_path):
    source = Source(one=RatioScorer(), other=RatioScorer(), encoder=LengthModel())
    questions = [Judge("one", ("hello",), "abc"), Judge("other", ("hello",), "abc")]
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        assert judged(source, [*questions, Embed("encoder", "abc")], cache) == [0.6, 0.6, 3.0]
    assert source.models["encoder"].batches == [2]


def test_what_is_cached_loads_neither_the_scorer_nor_what_it_asks(tmp_path):
    questions = [Judge("scorer", ("hello",), "abc")]
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        judged(Source(scorer=RatioScorer(), encoder=LengthModel()), questions, cache)
        again = Source(scorer=RatioScorer(), encoder=LengthModel())
        assert judged(again, questions, cache) == [0.6]
    assert again.loaded == []


def test_a_new_scorer_takes_its_vectors_from_the_cache(tmp_path):
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        judged(
            Source(one=RatioScorer(), encoder=LengthModel()),
            [Judge("one", ("hello",), "abc")],
            cache,
        )
        source = Source(other=RatioScorer(), encoder=LengthModel())
        judged(source, [Judge("other", ("hello",), "abc")], cache)
    assert source.loaded == ["other"]


def test_scorers_may_ask_scorers():
    source = Source(top=RatioScorer("bottom"), bottom=_Doubling("encoder"), encoder=LengthModel())
    assert judged(source, [Judge("top", ("ab",), "abcd")]) == [2.0]


class _Doubling(RatioScorer):
    def asks(self, questions):
        return [[Embed(self.encoder, question.text * 2)] for question in questions]

    def answer(self, questions, answers=()):
        for position, (length,) in enumerate(answers):
            yield position, length


def test_models_that_ask_in_a_circle_are_named():
    source = Source(one=RatioScorer("other"), other=_Doubling("one"))
    with pytest.raises(JobError, match="'one' asks 'other' asks 'one'"):
        judged(source, [Judge("one", ("ab",), "abcd")])


def test_only_so_many_answers_of_other_models_are_held_at_once(monkeypatch):
    monkeypatch.setattr(answers, "ASKED_AT_ONCE", 8)
    source = Source(scorer=RatioScorer(), encoder=LengthModel())
    questions = [Judge("scorer", ("hello",), "x" * n) for n in range(1, 21)]
    assert judged(source, questions) == pytest.approx([n / 5 for n in range(1, 21)])
    assert source.models["scorer"].batches == [8, 8, 4]
    assert max(source.models["encoder"].batches) == 9


def test_a_scorer_that_forgets_a_question_is_caught():
    class Forgetful(RatioScorer):
        def answer(self, questions, answers=()):
            yield from list(super().answer(questions, answers))[1:]

    source = Source(scorer=Forgetful(), encoder=LengthModel())
    with pytest.raises(JobError, match="'scorer' answered 1 of 2"):
        judged(source, [Judge("scorer", ("a",), "b"), Judge("scorer", ("a",), "c")])
