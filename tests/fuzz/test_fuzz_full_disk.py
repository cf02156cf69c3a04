"""A disk that is full: what is said, what is kept, and that the same command goes on afterwards.

A process is allowed to write files of so many bytes only (RLIMIT_FSIZE); what goes beyond fails as
on a full disk, but with EFBIG. `/dev/full` gives ENOSPC itself. SQLite gets a limit of pages.
"""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from . import material
from .killing import copy_of_this_process
from .trying import Tried, run

resource = pytest.importorskip("resource", reason="needs limits of the operating system")


def limited(size: int, work: Callable[[], Tried]) -> Tried:
    """The work of another process that can write no more than `size` bytes into a file."""

    def tried() -> bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        done = work()
        return json.dumps([done.code, done.err, done.crash]).encode()

    code, err, crash = json.loads(copy_of_this_process(tried))
    return Tried((), code, b"", err, crash)


@pytest.mark.parametrize("size", [0, 100, 1000, 4000])
def test_a_run_that_finds_no_room_says_where_and_goes_on_later(tmp_path, size):
    material.sample_file(tmp_path)
    words = ("score", str(tmp_path / "samples.jsonl"), "-m", "length", "-m", "bleu", "-q", "-o")
    assert run(*words, tmp_path / "whole").code == 0
    done = limited(size, lambda: run(*words, tmp_path / "run"))
    assert done.complaint == ""
    assert done.code == 1, done.err
    assert str(tmp_path / "run") in done.err
    assert run(*words, tmp_path / "run").code == 0
    for name in ("scores.parquet", "manifest.json"):
        whole, found = (tmp_path / out / name for out in ("whole", "run"))
        assert found.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("size", [0, 200, 700])
def test_a_probe_that_finds_no_room_says_where_and_goes_on_later(tmp_path, size):
    (tmp_path / "whole").mkdir()
    material.probe(tmp_path / "whole")
    for name in ("queries.jsonl", "replies.jsonl"):
        (tmp_path / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    done = limited(size, lambda: run(*material.probe_words(tmp_path), "-q"))
    assert done.complaint == ""
    assert done.code == 1, done.err
    assert str(tmp_path / "probe") in done.err
    assert run(*material.probe_words(tmp_path), "-q").code == 0
    whole = tmp_path / "whole" / "probe" / "samples.jsonl"
    assert (tmp_path / "probe" / "samples.jsonl").read_bytes() == whole.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        ("export", "@/run", "--to", "csv"),
        ("export", "@/run", "--to", "jsonl"),
        ("export", "@/run", "--to", "parquet"),
        ("report", "@/run", "--rounds", "99", "--overwrite"),
        ("compose", "fit", "@/run", "-m", "length"),
        ("compose", "apply", "@/weights.json", "@/run"),
        ("augment", "@/samples.jsonl", "--with", "eda"),
    ],
    ids=lambda words: "-".join(words[:1] + words[3:4]),
)
def test_a_file_that_cannot_be_written_is_named(tmp_path, words):
    material.weights(tmp_path)
    done = run(*(word.replace("@", str(tmp_path)) for word in words), "-o", "/dev/full")
    assert done.complaint == ""
    assert done.code == 1, done.err
    assert "/dev/full" in done.err


def test_a_rating_that_finds_no_room_is_not_called_saved_and_can_be_saved_later(tmp_path):
    """The rater's page tries again on a 503, under the same name, until there is room."""
    pytest.importorskip("starlette", reason="needs the extra 'web'")
    pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")
    from browser import serving
    from rating_jobs import rating_job
    from sqlalchemy import event
    from web.asking import ask

    from dialeval.rating.opening import create_store, open_store
    from dialeval.web.serving import rating_app

    create_store(str(tmp_path / "ratings.db"), rating_job(200), 1).close()
    with closing(sqlite3.connect(tmp_path / "ratings.db")) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    most = pages + 3
    store = open_store(str(tmp_path / "ratings.db"))
    assert store is not None

    @event.listens_for(store.engine, "checkout")
    def keep_small(connection, record, proxy):
        connection.execute(f"PRAGMA max_page_count={most}")

    home = f"/rate/{store.raters()[0].token}"
    statuses, saved = [], 0
    try:
        with serving(rating_app(store, "127.0.0.1", 8000)) as address:
            shown = ask(address, f"{home}/1")
            headers = {
                "Cookie": shown.cookie,
                "X-CSRF-Token": shown.csrf,
                "Accept": "application/json",
            }

            def save(position: int) -> int:
                form = {"q0": "3", "q1": "2", "submission": f"{position:040d}"}
                return ask(address, f"{home}/{position}", "POST", headers, form).status

            for position in range(1, 201):
                statuses.append(save(position))
                if statuses[-1] != 200:
                    break
                saved += 1
            assert statuses[-1] == 503
            assert saved > 1
            assert save(saved + 1) == 503
            most = 100_000
            assert save(saved + 1) == 200
            assert save(saved + 1) == 200  # the same submission once more
    finally:
        store.close()
    with closing(sqlite3.connect(tmp_path / "ratings.db")) as database:
        (rows,) = database.execute("SELECT COUNT(*) FROM ratings").fetchone()
    assert rows == saved + 1


def test_a_rating_that_could_not_be_written_leaves_the_others_as_they_were(tmp_path):
    """With real writes that fail, at several sizes of the log."""
    pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")
    material.ratings(tmp_path)
    expected = run("export", tmp_path / "ratings.db", "--to", "answers").out
    size = (tmp_path / "ratings.db").stat().st_size

    def rate() -> Tried:
        from dialeval.rating.opening import open_store

        from .trying import run_function

        def save() -> None:
            store = open_store(str(tmp_path / "ratings.db"))
            assert store is not None
            rater = store.raters()[0]
            for number in range(50):
                store.save(rater, 4, {"overall": 1.0, "natural": 1.0 + number % 2}, f"n{number}")
            store.close()

        return run_function(save)

    done = limited(4096, rate)
    assert done.complaint == ""
    assert done.code == 1, done.err
    assert str(tmp_path / "ratings.db") in done.err
    assert (tmp_path / "ratings.db").stat().st_size == size
    assert run("export", tmp_path / "ratings.db", "--to", "answers").out == expected
