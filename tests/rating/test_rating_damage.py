"""A damaged rating database: the rows that are bad are named, all others come out."""

from __future__ import annotations

import sqlite3

import pytest
from rating_jobs import comparison_job, rating_job

import dialeval
from dialeval.errors import JobError, UsageError
from dialeval.rating.opening import create_store, open_store
from dialeval.rating.overview import overview
from dialeval.rating.results import answer_records, rated_samples

WRONG = ["", "{", "[]", "3", "null", "{}", '{"samples": 3}', '{"samples": []}', "[" * 100_000]


def rated(path, job):
    """Two raters have said the same of everything."""
    store = create_store(str(path), job, 2)
    for rater in store.raters():
        for position in range(1, store.total(rater) + 1):
            compare = job.kind == "compare"
            answers = {q.name: 1.0 if compare else float(q.high) for q in job.qualities}
            store.save(rater, position, answers, f"s{position}")
    store.close()
    return path


def spoil(path, change, *values):
    with sqlite3.connect(path) as database:
        for verb in ("update", "delete"):
            database.execute(f"DROP TRIGGER IF EXISTS ratings_refuse_{verb}")
        database.execute(change, values)
    database.close()


@pytest.mark.parametrize("job", [rating_job, comparison_job])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_damaged_rating_is_named_and_the_others_come_out(tmp_path, job, wrong):
    path = rated(tmp_path / "ratings.db", job())
    store = open_store(str(path), read_only=True)
    total = len(store.counted())
    store.close()
    spoil(path, "UPDATE ratings SET answers = ? WHERE number = 3", wrong)
    store = open_store(str(path), read_only=True)
    assert len(store.counted()) == total - 1
    assert list(rated_samples(store))
    assert len(list(answer_records(store))) == total - 1
    overview(store)
    assert list(store.damaged) == [f"{path}: rating 3 of rater-1 is damaged and was left out"]
    store.close()


@pytest.mark.parametrize("wrong", ["", "{", "3", "null", b"\xff", "[" * 100_000])
def test_a_damaged_comment_is_named_and_its_rating_comes_out(tmp_path, wrong):
    path = rated(tmp_path / "ratings.db", rating_job())
    spoil(path, "UPDATE ratings SET comment = ? WHERE number = 3", wrong)
    store = open_store(str(path), read_only=True)
    assert [one.comment for one in store.counted()] == [""] * 12
    assert list(store.damaged) == [
        f"{path}: the comment of rating 3 of rater-1 is damaged and was left out"
    ]
    store.close()


@pytest.mark.parametrize("wrong", [b"", b"\xff", ""])
def test_a_rater_whose_name_is_damaged_has_the_usual_one(tmp_path, wrong):
    path = rated(tmp_path / "ratings.db", rating_job())
    spoil(path, "UPDATE raters SET name = ? WHERE number = 1", wrong)
    store = open_store(str(path), read_only=True)
    assert "rater-1" in {one.rater for one in store.counted()}
    assert "rater-1" in store.totals()
    assert store.raters()[0].name == "rater-1"
    assert list(store.damaged) == [f"{path}: the name of rater 1 is damaged, who is called rater-1"]
    store.close()


@pytest.mark.parametrize("job", [rating_job, comparison_job])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_damaged_task_does_not_take_its_ratings_along(tmp_path, job, wrong):
    path = rated(tmp_path / "ratings.db", job())
    spoil(path, "UPDATE tasks SET record = ? WHERE number = (SELECT min(number) FROM tasks)", wrong)
    store = open_store(str(path), read_only=True)
    list(rated_samples(store))
    overview(store)
    answers = list(answer_records(store))
    assert len(answers) == len(store.counted())
    assert sum("damaged task" in record["kind"] for record in answers) == 2
    assert len(store.damaged) == 1
    rater = store.raters()[0]
    shown = 0
    for position in range(1, store.total(rater) + 1):
        try:
            shown += store.show(rater, position) is not None
        except JobError as error:
            assert "is damaged and cannot be shown" in str(error)  # noqa: PT017
    assert shown == store.total(rater) - 1
    store.close()


def test_readers_warn_of_what_was_left_out(tmp_path):
    path = rated(tmp_path / "ratings.db", rating_job())
    spoil(path, "UPDATE ratings SET answers = '{' WHERE number = 3")
    loaded = dialeval.load(path)
    assert list(loaded)
    assert loaded.counts.warnings == 1


@pytest.mark.parametrize("wrong", [*WRONG, '{"kind": "rate", "qualities": [{"name": 3}]}'])
def test_a_damaged_job_says_that_the_ratings_are_kept(tmp_path, wrong):
    path = rated(tmp_path / "ratings.db", rating_job())
    spoil(path, "UPDATE dialeval_rating SET value = ? WHERE name = 'job'", wrong)
    with pytest.raises(UsageError, match="The ratings are kept"):
        open_store(str(path), read_only=True)
