"""Damage to a run is noticed, explained, and costs no more than it must."""

from __future__ import annotations

import json
import random
import resource
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from made_up import Asking, LengthModels, samples

from dialeval.doctor.run import examine_run
from dialeval.engine.answers import AnswerCache
from dialeval.engine.job import Job
from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.registry import make_metric
from dialeval.runs import manifest as manifest_module
from dialeval.runs.manifest import sealed
from dialeval.runs.run import Run, open_run

METRICS = ("length", "distinct", "chrf")


class StoppedError(Exception):
    pass


def score(directory: Path, count: int = 30, stop: int | None = None) -> Run:
    """Thirty samples in chunks of five; `stop` ends the process after so many samples."""

    def watch(done: int, read: int) -> None:
        if stop is not None and done >= stop:
            raise StoppedError

    job = Job(directory, [make_metric(name) for name in METRICS], chunk=5, progress=watch)
    try:
        job.run(samples(count))
    except StoppedError:
        assert stop is not None
    return open_run(directory) if stop is None else Run(directory, {})


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return score(tmp_path_factory.mktemp("whole") / "run").directory


@pytest.fixture
def run(whole, tmp_path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def flip(path: Path, place: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))


def everything(directory: Path) -> list[list[float | None]]:
    opened = open_run(directory)
    list(opened.samples())
    return [opened.scores(label) for label in opened.metrics]


@pytest.mark.parametrize("seed", range(3))
def test_no_flipped_bit_of_the_scores_is_silent(run, seed):
    draw = random.Random(seed)
    path = run / "scores.parquet"
    good = path.read_bytes()
    for _ in range(20):
        flip(path, draw.randrange(len(good)), draw.randrange(8))
        with pytest.raises(UsageError, match=r"scores\.parquet .*changed"):
            open_run(run)
        path.write_bytes(good)
    open_run(run)


def test_in_a_large_file_the_footer_is_compared_and_each_page_when_it_is_read(run, monkeypatch):
    monkeypatch.setattr(manifest_module, "READ_WHOLE", 0)
    draw, path = random.Random(5), run / "scores.parquet"
    right, good, noticed = everything(run), path.read_bytes(), 0
    for _ in range(60):
        flip(path, draw.randrange(4, len(good)), draw.randrange(8))
        try:
            assert everything(run) == right  # a bit that nobody reads, such as one of a statistic
        except UsageError as error:
            assert "scores.parquet" in str(error)  # noqa: PT017
            noticed += 1
        path.write_bytes(good)
    assert noticed > 40  # the rest lies in pages that were not asked for


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_file_that_was_cut_off_is_named(run, kept):
    path = run / "scores.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UsageError, match=r"scores\.parquet has .* bytes and should have"):
        open_run(run)


def test_a_part_that_does_not_belong_to_the_run_is_not_read(tmp_path):
    parts = tmp_path / "run"
    Job(parts, [make_metric("length")], chunk=5, part=40).run(samples(100))
    right = open_run(parts).scores("length")
    shutil.copyfile(
        parts / "scores.parquet" / "part-00000.parquet",
        parts / "scores.parquet" / "part-00009.parquet",
    )
    assert open_run(parts).scores("length") == right
    (parts / "scores.parquet" / "part-00001.parquet").unlink()
    with pytest.raises(UsageError, match=r"part-00001\.parquet is missing"):
        open_run(parts)


def test_a_digit_of_the_manifest_that_changed_is_noticed(run):
    path = run / "manifest.json"
    record = json.loads(path.read_text())
    record["systems"][0]["scores"]["length"]["mean"] += 1
    path.write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"manifest\.json has changed since it was written"):
        open_run(run)


def test_how_a_manifest_is_laid_out_does_not_matter(run):
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    open_run(run)


def places(value, path=()):
    """Every place in a JSON value, as the keys that lead to it."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(value, path, new):
    """A copy with another value in one place, or without it (`new` is Ellipsis)."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and new is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


WRONG = (None, 3, -1, "x", [], {}, [None], {"a": [1]}, True, 1e300, ...)


def test_no_wrong_type_in_a_manifest_gets_past_the_schema(run):
    """As of a run without digests: each field in turn is missing or of another type, and what is
    opened all the same can be shown."""
    path = run / "manifest.json"
    good = json.loads(path.read_text())
    old = {k: v for k, v in good.items() if k not in ("sha256", "files")} | {"run_format": 1}
    refused = 0
    for place in list(places(old))[1:]:
        for wrong in WRONG:
            path.write_text(json.dumps(changed(old, place, wrong)))
            try:
                opened = open_run(run)
            except DialevalError as error:
                assert "manifest.json" in str(error)  # noqa: PT017
                refused += 1
                continue
            str(opened.table(parts=True))
            assert opened.signatures is not opened.calibrations
    assert refused > 500


def test_a_path_out_of_the_run_is_refused(run):
    path = run / "manifest.json"
    record = json.loads(path.read_text())
    record["files"]["../elsewhere.parquet"] = record["files"]["scores.parquet"]
    path.write_text(json.dumps(sealed(record)))
    with pytest.raises(UsageError, match="is no file of this run"):
        open_run(run)


def test_a_run_of_an_older_version_is_read_as_it_is(run):
    path = run / "manifest.json"
    record = json.loads(path.read_text())
    old = {k: v for k, v in record.items() if k not in ("sha256", "files")} | {"run_format": 1}
    path.write_text(json.dumps(old))
    assert len(open_run(run)) == 30
    assert examine_run(run)[0].status == "absent"


def test_lines_of_the_history_that_cannot_be_read_are_left_out(run):
    path = run / "history.jsonl"
    good = len(open_run(run).history)
    with path.open("ab") as file:
        file.write(b'\xff\n{"event": "finished", "time": "2020", "answers": 3}\n[1]\n{"event"')
    assert len(open_run(run).history) == good
    path.unlink()
    assert open_run(run).history == []


def shards(directory: Path) -> list[Path]:
    return sorted((directory / "shards").glob("*.parquet"))


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_shard_is_scored_again_and_the_end_is_the_same(tmp_path, whole, seed):
    score(tmp_path / "run", stop=15)
    draw, path = random.Random(seed), random.Random(seed).choice(shards(tmp_path / "run"))
    flip(path, draw.randrange(path.stat().st_size), draw.randrange(8))
    again = score(tmp_path / "run")
    for name in ("scores.parquet", "manifest.json", "job.json"):
        assert (again.directory / name).read_bytes() == (whole / name).read_bytes()
    assert again.history[-1]["damaged"] == [f"{path}: is damaged"]


@pytest.mark.parametrize("content", [b"", b"PAR1", None])
def test_a_truncated_shard_is_scored_again(tmp_path, whole, content):
    score(tmp_path / "run", stop=15)
    path = shards(tmp_path / "run")[0]
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    again = score(tmp_path / "run")
    assert (again.directory / "scores.parquet").read_bytes() == (
        whole / "scores.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff\xfe", b"{", b'{"metrics": 3, "sha256": "x"}', b"[" * 100_000]
)
def test_a_damaged_job_file_loses_nothing(tmp_path, whole, content):
    score(tmp_path / "run", stop=15)
    there = {path: path.stat().st_mtime_ns for path in shards(tmp_path / "run")}
    (tmp_path / "run" / "job.json").write_bytes(content)
    score(tmp_path / "run", stop=20)
    assert {path: path.stat().st_mtime_ns for path in there} == there
    again = score(tmp_path / "run")
    assert (again.directory / "job.json").read_bytes() == (whole / "job.json").read_bytes()


def test_without_its_job_file_the_chunks_still_know_their_metrics(tmp_path):
    score(tmp_path / "run", stop=15)
    (tmp_path / "run" / "job.json").write_bytes(b"")
    with pytest.raises(UsageError, match="other data or metrics"):
        Job(tmp_path / "run", [make_metric("length")], chunk=5).run(samples(30))


def test_a_shard_that_is_damaged_while_the_run_is_under_way_is_named(tmp_path):
    directory = tmp_path / "run"

    def spoil(done: int, read: int) -> None:
        if done == 30:
            flip(shards(directory)[2], 50)

    with pytest.raises(JobError, match=r"000002-\w+\.parquet was damaged .*Repeat the command"):
        Job(directory, [make_metric("length")], chunk=5, progress=spoil).run(samples(30))
    Job(directory, [make_metric("length")], chunk=5).run(samples(30))
    assert len(open_run(directory)) == 30


def test_the_doctor_reads_every_byte(run, monkeypatch):
    assert {finding.status for finding in examine_run(run)} == {"ok"}
    stamps: dict[Path, list[int]] = {}
    monkeypatch.setattr(
        manifest_module,
        "file_stamp",
        lambda path: stamps.setdefault(path, [path.stat().st_size, 0, 0, 0]),
    )
    open_run(run)
    flip(run / "scores.parquet", 200)  # as a disk does it: no time changes
    assert examine_run(run)[-1].status == "failed"


def test_the_doctor_adds_up_the_means_again(run):
    path = run / "manifest.json"
    record = json.loads(path.read_text())
    record["systems"][0]["scores"]["length"]["mean"] += 1
    path.write_text(json.dumps(sealed(record)))
    assert any("another mean: length" in finding.finding for finding in examine_run(run))


def test_the_doctor_looks_at_unfinished_runs_too(tmp_path):
    score(tmp_path / "run", stop=15)
    flip(shards(tmp_path / "run")[1], 40)
    assert examine_run(tmp_path / "run")[-1].finding.startswith("2 whole, 1 damaged")


def test_the_doctor_misses_the_manifest_of_a_run_whose_scores_are_there(run):
    (run / "manifest.json").unlink()
    last = examine_run(run)[-1]
    assert (last.what, last.status) == (str(run / "manifest.json"), "failed")
    assert last.finding.startswith("is missing, though the scores are here")


def test_a_full_disk_names_the_file(tmp_path):
    """A limit on the size of files stands in for it: the system refuses the write in the same
    place."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    job = Job(tmp_path / "run", [make_metric("length")], chunk=500)
    data = samples(2000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            job.run(data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(tmp_path / "run") in str(caught.value.filename)


def rows(path: Path, change: str, *values: object) -> None:
    with sqlite3.connect(path) as database:
        database.execute(change, values)
    database.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checked_answers SET value = zeroblob(length(value))",
        "UPDATE checked_answers SET value = x'00'",
        "UPDATE checked_answers SET value = 'text'",
        "UPDATE checked_answers SET value = 3",
        "UPDATE checked_answers SET form = 'f9:1'",
        "UPDATE checked_answers SET form = 'f4:a,b'",
        "UPDATE checked_answers SET form = 'text'",
        "UPDATE checked_answers SET form = x'ff'",
        "UPDATE checked_answers SET checksum = x''",
    ],
)
def test_a_damaged_row_of_the_cache_is_asked_again_and_counted(tmp_path, change):
    path, asked = tmp_path / "answers.sqlite", LengthModels()
    data = samples(6)
    with AnswerCache(path) as cache:
        Job(tmp_path / "one", [Asking()], models=LengthModels(), cache=cache).run(data)
        stored = len(cache)
    rows(path, change)
    with AnswerCache(path) as cache:
        Job(tmp_path / "two", [Asking()], models=asked, cache=cache).run(data)
    one, two = open_run(tmp_path / "one"), open_run(tmp_path / "two")
    assert one.scores("asking") == two.scores("asking")
    counts = two.history[-1]["answers"]
    assert (counts["cached"], counts["damaged"]) == (0, stored)
    with AnswerCache(path) as cache:  # and what was asked again is good
        Job(tmp_path / "three", [Asking()], models=asked, cache=cache).run(data)
    assert "damaged" not in open_run(tmp_path / "three").history[-1]["answers"]


def test_answers_without_a_checksum_are_not_used(tmp_path):
    path = tmp_path / "answers.sqlite"
    rows(path, "CREATE TABLE answers (key BLOB PRIMARY KEY, form TEXT, value BLOB) WITHOUT ROWID")
    zeros = np.zeros(1, np.float32).tobytes()
    rows(path, "INSERT INTO answers VALUES (?, ?, ?)", b"k" * 32, "f4:1", zeros)
    with AnswerCache(path) as cache:
        assert (cache.get([b"k" * 32]), len(cache), cache.damaged) == ({}, 0, 0)
