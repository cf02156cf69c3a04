import pytest
from made_up import LengthModel, LengthModels

from dialeval.engine.answers import AnswerCache, Answerer
from dialeval.errors import JobError
from dialeval.question import Embed


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
