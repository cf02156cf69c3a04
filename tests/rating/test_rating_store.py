"""What was acknowledged stays, counts once, and only the last word counts."""

from __future__ import annotations

import json
import sqlite3
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rating_jobs import comparison_job, rating_job
from sqlalchemy import text

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.rating.database import parse_address, reading, writing
from dialeval.rating.opening import add_raters, create_store, open_store

GOOD = {"overall": 4, "natural": 2}
BAD = {"overall": 1, "natural": 1}


def rows(store) -> list[tuple[int, int, str, int]]:
    with reading(store.engine, store.address) as connection:
        query = "SELECT rater, position, submission, revision FROM ratings ORDER BY number"
        return [tuple(row) for row in connection.execute(text(query))]


def counted(store) -> dict[tuple[str, int], dict[str, float]]:
    return {(one.rater, one.position): dict(one.answers) for one in store.counted()}


def test_what_is_saved_is_shown_again_by_any_process(place):
    store = create_store(place, rating_job(), 2)
    rater = store.raters()[1]
    assert store.show(rater, 3).answers is None
    store.save(rater, 3, GOOD, "a")
    other = open_store(place)
    assert other.show(other.find_rater(rater.token), 3).answers == GOOD
    assert other.done(rater) == 1
    assert other.first_open(rater) == 1
    assert counted(other) == {("rater-2", 3): GOOD}
    assert store.find_rater("nobody") is None


def test_a_changed_mind_is_a_new_row_and_the_last_one_counts(place):
    store = create_store(place, rating_job(), 1)
    (rater,) = store.raters()
    store.save(rater, 1, GOOD, "a")
    store.save(rater, 1, BAD, "b")
    assert [row[2] for row in rows(store)] == ["a", "b"]
    assert counted(store) == {("rater-1", 1): BAD}


def test_a_comment_is_kept_with_its_rating_and_the_last_one_counts(place):
    store = create_store(place, rating_job(), 1)
    (rater,) = store.raters()
    hostile = "</textarea>\x00\ud800 'quoted'; DROP TABLE ratings\n" + "\u202e"
    store.save(rater, 1, GOOD, "a", hostile)
    assert store.save(rater, 1, GOOD, "a", hostile).is_repeat
    assert store.show(rater, 1).comment == hostile
    assert not store.save(rater, 1, GOOD, "a", "Better so.").is_repeat
    store.save(rater, 2, GOOD, "b")
    assert [one.comment for one in open_store(place).counted()] == ["Better so.", ""]
    with pytest.raises(UsageError, match="at most 2000 characters"):
        store.save(rater, 1, GOOD, "c", "x" * 2001)


def test_a_submission_that_comes_twice_counts_once(place):
    store = create_store(place, rating_job(), 1)
    (rater,) = store.raters()
    assert not store.save(rater, 1, GOOD, "a").is_repeat
    assert store.save(rater, 1, GOOD, "a").is_repeat
    assert open_store(place).save(rater, 1, GOOD, "a").is_repeat
    assert len(rows(store)) == 1


def test_a_form_sent_again_with_other_answers_is_a_changed_mind(place):
    """A browser without scripts goes back: the form still has its old name."""
    store = create_store(place, rating_job(), 1)
    (rater,) = store.raters()
    for answers in (GOOD, BAD, BAD, GOOD):
        store.save(rater, 1, answers, "form")
    assert [row[3] for row in rows(store)] == [0, 1, 2]
    assert counted(store) == {("rater-1", 1): GOOD}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"overall": 4},
        {"overall": 6, "natural": 2},
        {"overall": 0, "natural": 2},
        {"overall": 4.5, "natural": 2},
        {"overall": float("nan"), "natural": 2},
        {"overall": 4, "natural": 2, "more": 1},
    ],
)
def test_answers_that_are_not_asked_for_are_refused(tmp_path, answers):
    store = create_store(str(tmp_path / "r.db"), rating_job(), 1)
    with pytest.raises(UsageError, match="no complete answers"):
        store.save(store.raters()[0], 1, answers, "a")
    assert rows(store) == []


def test_of_a_comparison_only_first_second_and_tie_are_answers(tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(), 1)
    (rater,) = store.raters()
    for position, value in enumerate((1.0, 0.5, 0.0), 1):
        store.save(rater, position, {"preference": value}, "a")
    with pytest.raises(UsageError):
        store.save(rater, 1, {"preference": 0.7}, "b")
    assert len(rows(store)) == 3


def test_a_position_that_is_not_there_fails_alone(place):
    """Savers share a transaction; the mistake of one must not undo the others."""
    store = create_store(place, rating_job(), 1)
    (rater,) = store.raters()
    start, errors = threading.Barrier(8), []

    def save(position):
        start.wait()
        try:
            store.save(rater, position, GOOD, f"s{position}")
        except UsageError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=save, args=(p,)) for p in (1, 2, 3, 4, 5, 6, 99, 98)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(position for _, position in counted(store)) == [1, 2, 3, 4, 5, 6]
    assert len(errors) == 2
    assert "nothing to rate at this position" in errors[0]


@pytest.mark.parametrize("change", ["UPDATE ratings SET answers='{}'", "DELETE FROM ratings"])
def test_the_database_itself_refuses_to_change_ratings(place, change):
    store = create_store(place, rating_job(), 1)
    store.save(store.raters()[0], 1, GOOD, "a")
    # PostgreSQL's trigger raises a plain error, SQLite's a violated constraint.
    with (
        pytest.raises(Exception, match="ratings are only added"),
        writing(store.engine, store.address) as connection,
    ):
        connection.execute(text(change))
    assert counted(store) == {("rater-1", 1): GOOD}


def test_two_processes_that_save_the_same_submissions_store_them_once(place):
    stores = [create_store(place, rating_job(20), 3), open_store(place), open_store(place)]
    raters = stores[0].raters()

    def save_all(store):
        for rater in raters:
            for position in range(1, 11):
                store.save(rater, position, GOOD, f"s{position}")

    threads = [threading.Thread(target=save_all, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(stores[0])) == 30
    assert len(counted(stores[0])) == 30


def test_two_processes_that_create_the_same_job_share_one(place):
    made, start = [], threading.Barrier(2)

    def create():
        start.wait()
        made.append(create_store(place, rating_job(), 2))

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0].organiser == made[1].organiser
    assert made[0].raters() == made[1].raters()


def test_raters_can_be_added_and_keep_what_they_have(place):
    store = create_store(place, rating_job(), 1)
    (first,) = store.raters()
    store.save(first, 2, GOOD, "a")
    add_raters(store, 3)
    assert [rater.name for rater in store.raters()] == ["rater-1", "rater-2", "rater-3"]
    assert store.raters()[0] == first
    assert store.total(store.find_rater(store.raters()[2].token)) == 6
    assert counted(store) == {("rater-1", 2): GOOD}


def test_where_shares_are_given_out_nobody_can_be_added(tmp_path):
    store = create_store(str(tmp_path / "r.db"), rating_job(per_item=1), 2)
    with pytest.raises(UsageError, match="the shares are given out"):
        add_raters(store, 3)


SUBMITS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(1, 5),
        st.booleans(),
        st.sampled_from(["go on", "open anew", "other process"]),
    ),
    max_size=25,
)


@given(SUBMITS)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_order_of_submits_the_last_one_of_each_page_counts(tmp_path_factory, submits):
    place = str(tmp_path_factory.mktemp("law") / "r.db")
    store = create_store(place, rating_job(3), 2)
    others = [store]
    last: dict[tuple[str, int], float] = {}
    sent = 0
    for number, (who, position, value, twice, then) in enumerate(submits):
        rater = store.raters()[who]
        answers = {"overall": value, "natural": 1}
        for _ in range(2 if twice else 1):
            store.save(rater, position, answers, f"s{number}")
        sent += 1
        last[rater.name, position] = value
        if then != "go on":
            if then == "open anew":
                store.close()
            store = open_store(place)
            others.append(store)
    assert {key: said["overall"] for key, said in counted(store).items()} == last
    assert len(rows(store)) == sent
    for one in others:
        one.close()


def test_a_foreign_database_is_told_apart_and_left_alone(tmp_path):
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(UsageError, match="not one of dialeval rate"):
            open_store(str(path), read_only=read_only)
    assert path.read_bytes()[100:] == before[100:]


def test_a_format_of_the_future_is_refused(place):
    store = create_store(place, rating_job(), 1)
    with writing(store.engine, store.address) as connection:
        connection.execute(text("UPDATE dialeval_rating SET value='3' WHERE name='schema_version'"))
    with pytest.raises(UsageError, match="format 3; this dialeval reads format 2"):
        open_store(place)


def test_a_database_without_comments_is_refused_with_a_way_out(tmp_path):
    path = str(tmp_path / "ratings.db")
    store = create_store(path, rating_job(), 1)
    with writing(store.engine, store.address) as connection:
        connection.execute(text("UPDATE dialeval_rating SET value='1' WHERE name='schema_version'"))
        connection.execute(text("ALTER TABLE ratings DROP COLUMN comment"))
    with pytest.raises(UsageError, match=r"format 1; .* Use the version of dialeval that made it"):
        open_store(path)


def test_where_there_is_nothing_there_is_no_store(tmp_path, place):
    assert open_store(str(tmp_path / "absent.db")) is None
    assert open_store(place) is None


def test_no_message_shows_a_user_or_a_password():
    url = "postgresql://boss:hunter2@127.0.0.1:1/ratings?connect_timeout=2"
    address = parse_address(url)
    assert address.shown == "postgresql://127.0.0.1:1/ratings"
    assert "hunter2" not in repr(address)
    with pytest.raises(JobError) as failure:
        open_store(url)
    assert "hunter2" not in str(failure.value)
    assert "boss" not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("url", ["mysql://u:hunter2@h/x", "postgresql://[::1", "sqlite:///x"])
def test_other_addresses_are_refused_without_repeating_them(url):
    with pytest.raises(DialevalError) as failure:
        parse_address(url)
    assert "hunter2" not in str(failure.value)


def test_a_new_file_is_for_its_owner_only_and_waits_for_the_disk(tmp_path):
    path = tmp_path / "ratings.db"
    store = create_store(str(path), rating_job(), 1)
    assert path.stat().st_mode & 0o777 == 0o600
    with reading(store.engine, store.address) as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2


def test_the_database_knows_no_person(place):
    """Names of columns and of raters: a pseudonym, a random code, and answers."""
    store = create_store(place, rating_job(), 2)
    assert {rater.name for rater in store.raters()} == {"rater-1", "rater-2"}
    with reading(store.engine, store.address) as connection:
        row = connection.execute(text("SELECT * FROM ratings")).keys()
    assert set(row) == {
        "number", "rater", "position", "submission", "revision", "answers", "comment",
        "saved_at",
    }  # fmt: skip


def test_text_that_no_database_likes_is_kept(place):
    job = rating_job(1)
    odd = "a\0b \ud800 \U0001f600 '; DROP TABLE ratings; --"
    record = json.loads(json.dumps(job.tasks[0].to_record()))
    record["samples"][0]["response"] = odd
    from dataclasses import replace

    from dialeval.rating.job import Task

    store = create_store(place, replace(job, tasks=(Task.from_record(1, "sample", record),)), 1)
    (task,) = store.tasks()
    assert task.samples[0].response == odd
