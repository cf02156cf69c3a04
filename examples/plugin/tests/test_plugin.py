from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dialeval.check import check_metric
from dialeval.readers.reader import Place, Problems, ReadOptions
from dialeval.readers.source import Source
from dialeval.registry import READERS, make_metric
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

from dialeval_question_rate.metric import QuestionRate
from dialeval_question_rate.reader import READER

LOG = """\
<ana> my bike clicks
<helper> once per turn?
<ana> yes

<bo> anyone here?
*** bo is away
<helper> I am
"""


@pytest.fixture
def log(tmp_path: Path) -> Source:
    return written(tmp_path, LOG)


def written(directory: Path, text: str) -> Source:
    path = directory / "log.txt"
    path.write_text(text, encoding="utf-8")
    return Source(path)


def score(response: str, **options: Any) -> Score:
    return QuestionRate(**options).score(Sample("1", response=response), ())


@pytest.mark.parametrize("metric", [QuestionRate(), QuestionRate(min_words=3)])
def test_it_keeps_the_promises_of_every_metric(metric: QuestionRate) -> None:
    check_metric(metric)


def test_dialeval_finds_both_by_name() -> None:
    assert make_metric("question-rate:min_words=2") == QuestionRate(min_words=2)
    assert READERS.get("irc-log").summary == READER.summary


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("How old is it?", 1),
        ("I see. How old is it?", 1 / 2),
        ("No. It is 3.5 years old.", 0),
        ("Really?! Wow! He asked “why?”", 2 / 3),
        ("Are you there? 🙂", 1),
    ],
)
def test_the_rate_is_questions_over_sentences(response: str, expected: float) -> None:
    assert score(response).value == expected


def test_the_part_counts_the_questions() -> None:
    assert score("Why? When? I see.").parts == {"questions": 2}


def test_short_sentences_can_be_left_out() -> None:
    assert score("Huh? I do not get it.", min_words=2).value == 0


def test_a_response_without_words_has_no_score_but_a_reason() -> None:
    assert score("...") == Score.missing("no sentence")


def test_each_line_after_the_first_of_a_conversation_is_a_sample(log: Source) -> None:
    samples = list(READER.read(log, Place(Problems(), log.name), ReadOptions()))
    assert [(s.id, s.system, s.response, s.dialogue) for s in samples] == [
        ("log:2", "helper", "once per turn?", "log:1"),
        ("log:3", "ana", "yes", "log:1"),
        ("log:7", "helper", "I am", "log:5"),
    ]
    assert samples[1].context == (Turn("my bike clicks", "ana"), Turn("once per turn?", "helper"))


def test_a_bad_line_is_reported_with_its_place_and_counted(log: Source) -> None:
    problems = Problems()
    list(READER.read(log, Place(problems, "log.txt"), ReadOptions()))
    assert [str(problem) for problem in problems.kept] == ["log.txt:6: expected '<nick> text'"]
    assert problems.skipped == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOG, True),
        ("\n<ana> hi\n", True),
        ('{"id": "1"}\n', False),
        ("<html>\n", False),
        ("", False),
    ],
)
def test_the_format_is_recognised_by_content(tmp_path: Path, text: str, expected: bool) -> None:
    assert READER.recognises(written(tmp_path, text)) is expected


def test_a_directory_is_not_a_log(tmp_path: Path) -> None:
    assert not READER.recognises(Source(tmp_path))
