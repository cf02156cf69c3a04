"""`dialeval watch` and `dialeval trend`: files come in and days grow. No test waits for a clock."""

import json
import os
from datetime import datetime

import numpy as np
import pytest

import dialeval as library
from dialeval.watching import DayScored, Failed, Watcher

NOON = datetime(2026, 11, 16, 12)


def write(path, words, day=0, count=8):
    """A file of answers whose last change is noon of a day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": str(i),
            "context": ["hi"],
            "response": "a b c d"[: 2 * words - 1],
            "references": "abcd",
        }
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    moment = NOON.timestamp() + day * 86400
    os.utime(path, (moment, moment))


@pytest.fixture
def chats(tmp_path):
    return tmp_path / "chats"


def watcher(tmp_path, metrics=("length",)):
    return Watcher(tmp_path / "chats", tmp_path / "live", metrics)


def days(found):
    return {one.day: (len(one.run), one.files) for one in found if isinstance(one, DayScored)}


def test_files_come_into_the_run_of_their_day_and_only_new_ones_are_taken(tmp_path, chats):
    write(chats / "a.jsonl", 2)
    write(chats / "deep" / "b.jsonl", 3)
    watch = watcher(tmp_path)
    assert days(watch.look()) == {"2026-11-16": (16, ("a.jsonl", "deep/b.jsonl"))}
    assert watch.look() == []
    write(chats / "c.jsonl", 4, day=1)
    write(chats / "d.jsonl", 1, day=0)
    assert days(watcher(tmp_path).look()) == {
        "2026-11-16": (24, ("d.jsonl",)),
        "2026-11-17": (8, ("c.jsonl",)),
    }
    run = library.open_run(tmp_path / "live" / "2026-11-16")
    ids = [sample.id for sample in run.samples()]
    assert ids[0] == "a.jsonl#0"
    assert len(set(ids)) == 24  # the files use the same ids


class Counting:
    """Rates every answer by its length, and counts what it is asked."""

    def __init__(self):
        self.asked = []

    def fingerprint(self, name):
        return "counting"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            self.asked.append(question.response)
            yield position, np.array([len(question.response) / 10])


def test_only_new_samples_of_a_day_are_scored_and_the_run_is_that_of_all(tmp_path, chats):
    """Without the answer cache, which would hide it: every look has a cache of its own."""
    metrics = ("pone:mode=released", "length")
    for name, words in (("a", 1), ("b", 2), ("c", 3)):
        write(chats / f"{name}.jsonl", words, count=100)
        models = Counting()
        scoring = {"models": models, "cache": tmp_path / f"{name}.sqlite"}
        (day,) = Watcher(chats, tmp_path / "live", metrics, scoring=scoring).look()
        assert len(day.run) == 100 * "_abc".index(name)
        assert set(models.asked) == {"a b c d"[: 2 * words - 1]}
    again = library.score(
        day.run.samples(), metrics, out=tmp_path / "again", models=Counting(),
        cache=tmp_path / "again.sqlite", calibrations=day.run.calibrations,
    )  # fmt: skip
    assert again.scores("pone:mode=released") == day.run.scores("pone:mode=released")
    for name in ("scores.parquet", "manifest.json"):
        assert (again.directory / name).read_bytes() == (day.run.directory / name).read_bytes()


def test_what_another_model_scored_is_scored_again(tmp_path, chats):
    write(chats / "a.jsonl", 1)
    first = Counting()
    Watcher(chats, tmp_path / "live", ("pone",), scoring={"models": first}).look()
    write(chats / "b.jsonl", 2)
    second = Counting()
    second.fingerprint = lambda name: "other"
    Watcher(chats, tmp_path / "live", ("pone",), scoring={"models": second}).look()
    assert set(second.asked) == {"a", "a b"}


def test_a_changed_file_replaces_what_was_there_and_stays_in_its_day(tmp_path, chats):
    write(chats / "a.jsonl", 2)
    write(chats / "b.jsonl", 2)
    watcher(tmp_path).look()
    write(chats / "a.jsonl", 4, day=1, count=3)
    (chats / "b.jsonl").unlink()  # what is gone stays in the run
    assert days(watcher(tmp_path).look()) == {"2026-11-16": (11, ("a.jsonl",))}
    scores = library.open_run(tmp_path / "live" / "2026-11-16").scores("length")
    assert sorted(scores) == [2.0] * 8 + [4.0] * 3


def test_a_file_that_is_being_written_is_left_until_it_rests(tmp_path, chats):
    write(chats / "a.jsonl", 2)
    watch = watcher(tmp_path)
    assert watch.look(skip_changing=True) == []
    write(chats / "a.jsonl", 2, count=9)
    assert watch.look(skip_changing=True) == []
    assert days(watch.look(skip_changing=True)) == {"2026-11-16": (9, ("a.jsonl",))}


def test_a_bad_file_is_told_once_and_does_not_stop_the_others(tmp_path, chats):
    write(chats / "good.jsonl", 2)
    (chats / "bad.jsonl").write_text('{"id": "1", "context": ["hi"]\n')
    watch = watcher(tmp_path)
    found = watch.look()
    (failed,) = [one for one in found if isinstance(one, Failed)]
    assert failed.file == "bad.jsonl"
    assert "bad.jsonl:1" in failed.problem
    assert len(days(found)) == 1
    assert watch.look() == []


def test_a_kill_between_the_renames_loses_nothing(tmp_path, chats):
    write(chats / "a.jsonl", 2)
    watcher(tmp_path).look()
    live = tmp_path / "live"
    (live / "2026-11-16").rename(live / ".2026-11-16.old")
    (live / ".2026-11-16.new").mkdir()
    write(chats / "b.jsonl", 2)
    assert days(watcher(tmp_path).look()) == {"2026-11-16": (16, ("b.jsonl",))}
    assert sorted(path.name for path in live.iterdir() if path.is_dir()) == ["2026-11-16"]


def test_the_runs_may_lie_in_the_folder_and_other_metrics_are_refused(tmp_path, chats):
    write(chats / "a.jsonl", 2)
    inside = Watcher(chats, chats / "runs", ("length",))
    assert len(inside.look()) == 1
    assert inside.look() == []
    with pytest.raises(library.UsageError, match="watched with other metrics: length"):
        Watcher(chats, chats / "runs", ("distinct",)).look()
    with pytest.raises(library.UsageError, match="is not a folder"):
        Watcher(chats / "a.jsonl", tmp_path, ("length",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"2026-11-16"', '"../../elsewhere"', "files.a.jsonl.day: is no day such as"),
        ('"2026-11-16"', "7", "files.a.jsonl.day"),
        ('"size": ', '"size": -', "files.a.jsonl.size"),
        ('"files": {', '"files": [{', "watched.json"),
    ],
)
def test_a_damaged_list_of_files_is_told_with_its_field(tmp_path, chats, old, new, message):
    write(chats / "a.jsonl", 2)
    watcher(tmp_path).look()
    ledger = tmp_path / "live" / "watched.json"
    ledger.write_text(ledger.read_text().replace(old, new))
    with pytest.raises(library.DialevalError, match=message):
        watcher(tmp_path).look()


def test_from_watch_to_an_alarm_in_two_commands(dialeval, tmp_path, chats):
    for day in range(4):
        write(chats / f"{day}.jsonl", 4, day=day)
    live = str(tmp_path / "live")
    words = ("watch", str(chats), "-o", live, "-m", "chrf", "--once")
    done = dialeval(*words)
    assert done.code == 0, done.err
    assert "2026-11-16: 1 file, 8 samples now" in done.out
    assert dialeval("trend", live, "--alarm").code == 0
    write(chats / "4.jsonl", 1, day=4)
    assert dialeval(*words).code == 0
    picture = tmp_path / "trend.svg"
    done = dialeval("trend", live, "--alarm", "--plot", str(picture))
    assert done.code == 1, done.err
    assert done.out.splitlines()[-1].startswith("ALARM: 2026-11-20 is worse on chrf: ")
    assert "ALARM" in picture.read_text("utf-8")
    assert json.loads(dialeval("trend", live, "--json").out)["alarm"] is True
    (chats / "bad.jsonl").write_text("{\n")
    assert dialeval(*words).code == 1
