from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from made_up import LengthModel, LengthModels

from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
from dialeval.errors import JobError
from dialeval.question import Embed, Judge, Likelihood
from dialeval.sample import Turn


def ask(source, cache=None, texts=("a", "bb", "a")):
    answerer = Answerer(source, cache)
    answers = answerer.answer(Embed("counter", text) for text in texts)
    return answerer, {question.text: float(answer[0]) for question, answer in answers.items()}


def test_equal_questions_are_asked_once():
    source = LengthModels()
    answerer, answers = ask(source)
    assert answers == {"a": 1.0, "bb": 2.0}
    assert source.model.batches == [2]
    assert (answerer.counts.asked, answerer.counts.distinct) == (3, 2)


def test_a_run_that_is_all_cached_loads_no_model(tmp_path):
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        ask(LengthModels(), cache)
        second = LengthModels()
        answerer, answers = ask(second, cache)
    assert answers == {"a": 1.0, "bb": 2.0}
    assert second.loaded == 0
    assert answerer.counts.cached == 2


def test_answers_of_other_weights_are_not_used(tmp_path):
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        ask(LengthModels("weights-1"), cache)
        other = LengthModels("weights-2")
        ask(other, cache)
    assert other.loaded == 1


def test_only_what_is_missing_is_asked(tmp_path):
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        ask(LengthModels(), cache, ["a", "bb"])
        source = LengthModels()
        ask(source, cache, ["a", "ccc"])
    assert source.model.batches == [1]


def test_a_model_that_forgets_a_question_is_caught():
    class Forgetful(LengthModel):
        def answer(self, questions):
            yield from list(super().answer(questions))[1:]

    source = LengthModels()
    source.model = Forgetful()
    with pytest.raises(JobError, match="answered 1 of 2"):
        ask(source)


floats = hnp.arrays(
    st.sampled_from([np.dtype("float32"), np.dtype("float64")]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@given(answer=floats | st.text())
@settings(max_examples=60, deadline=None)
def test_an_answer_comes_back_as_it_was_stored(tmp_path_factory, answer):
    with AnswerCache(tmp_path_factory.mktemp("cache") / "answers.sqlite") as cache:
        cache.put([(b"key", answer)])
        found = cache.get([b"key", b"other"])
    assert list(found) == [b"key"]
    if isinstance(answer, str):
        assert found[b"key"] == answer
    else:
        assert found[b"key"].dtype == answer.dtype
        np.testing.assert_array_equal(found[b"key"], answer)


def test_many_keys_are_found_at_once(tmp_path):
    keys = [i.to_bytes(4, "big") for i in range(2_500)]
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        cache.put((key, np.array([float(i)])) for i, key in enumerate(keys))
        found = cache.get(keys)
        assert len(cache) == 2_500
    assert [float(found[key][0]) for key in keys] == list(range(2_500))


def test_a_damaged_cache_gives_a_clear_message(tmp_path):
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(JobError, match="Delete the file"):
        AnswerCache(path)


def _write_some(path: Path, start: int) -> None:
    with AnswerCache(path) as cache:
        for i in range(start, start + 50):
            cache.put([(i.to_bytes(4, "big"), np.array([float(i)]))])


def test_two_processes_can_write_to_one_cache(tmp_path):
    path = tmp_path / "answers.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_some, args=(path, start)) for start in (0, 50)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    with AnswerCache(path) as cache:
        assert len(cache) == 100


def test_the_place_of_the_cache_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))
    assert default_cache_path() == tmp_path / "answers.sqlite"
    monkeypatch.delenv("DIALEVAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_path() == tmp_path / "dialeval" / "answers.sqlite"


def test_answers_of_earlier_releases_are_found_under_the_same_keys():
    """Digests that were computed by json and hashlib over `dataclasses.asdict`."""
    dialogue = (Turn("Hé", "user"), Turn("\ud800 x", "system"))
    expected = {
        Likelihood("m", dialogue, "ok"): "13603c60f50f5237bb955bff44b4cff6",
        Embed("m", "a"): "724228bb4149350549ee4bdf0389ed58",
        Judge("m", ("a", "b"), "c"): "e11413d9c95503fa52d35b3d671c7e5d",
    }
    assert {question: question.key("f").hex()[:32] for question in expected} == expected
