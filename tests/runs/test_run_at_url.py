"""A run may lie behind any URL that fsspec opens; every verb reads it there as in a directory."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from made_up import Floored, samples
from typer.testing import CliRunner

import dialeval
from dialeval.cli.app import app
from dialeval.errors import UsageError
from dialeval.examples import four_bots
from dialeval.registry import make_metric
from dialeval.remote import UrlPath, located
from dialeval.runs.run import is_run

fsspec = pytest.importorskip("fsspec", reason="needs the extra 'models' or 'ray'")


@pytest.fixture
def place():
    """A URL of its own for each test: what is in memory is shared by all of a process."""
    url = f"memory://dialeval-{uuid.uuid4().hex}"
    yield url
    UrlPath(url).remove_tree()


def score(place, metrics=("length", "distinct"), count=60):
    chosen = [make_metric(one) if isinstance(one, str) else one for one in metrics]
    return dialeval.score(samples(count), chosen, out=place)


def test_the_run_has_the_files_of_one_in_a_directory(tmp_path, place):
    here, there = score(tmp_path / "run", [Floored(), "bleu"]), score(place, [Floored(), "bleu"])
    assert str(there.directory) == place
    assert there.manifest == here.manifest
    names = sorted(path.name for path in there.directory.iterdir())
    assert names == ["history.jsonl", "job.json", "manifest.json", "scores.parquet"]
    for name in ("manifest.json", "scores.parquet", "job.json"):
        assert (there.directory / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert [event["event"] for event in there.history] == ["started", "finished"]


def test_a_url_that_was_a_path_on_its_way_is_a_url_again(tmp_path, monkeypatch):
    assert str(located(Path("s3://bucket/runs") / "first")) == "s3://bucket/runs/first"
    assert located(located("s3://bucket/runs").parent) == UrlPath("s3://bucket")
    assert not isinstance(located("runs/first"), UrlPath)
    assert located("file:///data/run") == Path("/data/run")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    assert located(Path("s3:/bucket")).is_dir()  # a folder of that name is that folder


def test_a_killed_run_at_a_url_continues_after_its_finished_chunks(tmp_path, place):
    from dialeval.engine.job import Job

    def broken():
        yield from samples(60)
        raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError):
        Job(located(place), [Floored()], chunk=20).run(broken())
    with pytest.raises(UsageError, match="is an unfinished run"):
        dialeval.open_run(place)
    job = Job(located(place), [Floored()], chunk=20)
    job.run(samples(100))
    assert job.resumed == 60
    Job(tmp_path / "run", [Floored()], chunk=20).run(samples(100))
    expected = (tmp_path / "run" / "scores.parquet").read_bytes()
    assert (located(place) / "scores.parquet").read_bytes() == expected


def test_a_finished_run_is_reused_refused_or_replaced_as_in_a_directory(place):
    score(place)
    assert len(score(place)) == 60
    with pytest.raises(UsageError, match="a finished run with other data"):
        score(place, count=50)
    run = dialeval.score(samples(50), ["length"], out=place, overwrite=True)
    assert (len(run), run.metrics) == (50, ["length"])


def test_a_metric_joins_and_a_copy_is_the_same_run(tmp_path, place):
    dialeval.score(dialeval.load(four_bots()), ["length"], out=place)
    run = dialeval.add_metrics(place, ["distinct"])
    assert run.metrics == ["length", "distinct"]
    local = run.save(tmp_path / "copy")
    assert local.manifest == run.manifest
    assert local.save(f"{place}-copy").manifest == run.manifest
    UrlPath(f"{place}-copy").remove_tree()


def test_damage_is_found_and_named_by_its_url(place):
    run = score(place)
    path = run.directory / "scores.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UsageError, match=f"{place}/scores.parquet has changed"):
        dialeval.open_run(place)


RATED = [
    {
        "id": str(number),
        "system": ("old", "new")[number % 2],
        "context": ["Hi! How are you?"],
        "response": "I am fine " * (number % 5 + 1) + str(number),
        "references": ["I am fine."],
        "ratings": {"overall": [number % 5 + 1, (number + 1) % 5 + 1]},
    }
    for number in range(24)
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two runs at URLs, and the same two in directories."""
    url, folder = f"memory://dialeval-{uuid.uuid4().hex}", tmp_path_factory.mktemp("runs")
    for name, limit in (("a", 24), ("b", 22)):
        run = dialeval.score(dialeval.load(RATED, limit=limit), ["bleu"], out=f"{url}/{name}")
        run.save(folder / name)
    yield url, str(folder)
    UrlPath(url).remove_tree()


@pytest.mark.parametrize(
    "words",
    [
        "compare RUNS/a RUNS/b --rounds 100",
        "worst RUNS/a --metric bleu",
        "trend RUNS/a RUNS/b --metric bleu",
        "trend RUNS --metric bleu",
        "export RUNS/a",
        "doctor RUNS/a",
        "agree RUNS/a --rounds 100",
        "raters RUNS/a",
        "report RUNS/a -o PAGE --rounds 100",
        "score FOUR -m length --calibration RUNS/a",
        "score --add distinct RUNS/b",
    ],
)
def test_every_verb_opens_a_run_there(words, both, tmp_path):
    """What it prints is what it prints for the same run in a directory."""
    told = []
    for runs in both:
        filled = words.replace("RUNS", runs).replace("FOUR", str(four_bots()))
        page = str(tmp_path / f"{uuid.uuid4().hex}.html")
        found = CliRunner().invoke(app, filled.replace("PAGE", page).split())
        shown = found.output.replace(runs, "RUNS").replace(page, "PAGE").replace("─", "")
        told.append((found.exit_code, str(found.exception or ""), shown.split()))
    assert told[0] == told[1]
    assert told[0][0] == 0 or "a calibration was given" in told[0][1]


def test_the_pages_find_the_runs_below_a_url(both):
    from dialeval.web.pages import Catalogue

    there, here = (Catalogue([located(runs)]).find().entries for runs in both)
    assert [entry.name for entry in there] == [entry.name for entry in here] == ["a", "b"]
    assert [entry.samples for entry in there] == [24, 22]


def test_a_missing_package_or_protocol_is_a_message(place):
    with pytest.raises(UsageError, match="nonsense"):
        dialeval.open_run("nonsense://bucket/run")
    assert not is_run("postgresql://user@host/ratings")
    with pytest.raises(UsageError, match="there is no run"):
        dialeval.open_run(place)


def test_a_run_lies_on_a_server_that_speaks_s3(tmp_path, monkeypatch):
    pytest.importorskip("s3fs", reason="s3:// needs s3fs")
    server = pytest.importorskip("moto.server", reason="moto plays the server")
    playing = server.ThreadedMotoServer(port=0)
    playing.start()
    try:
        host, port = playing.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "made-up")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir("dialogues")
        there = score("s3://dialogues/runs/first", [Floored(), "bleu"])
        here = score(tmp_path / "run", [Floored(), "bleu"])
        assert there.manifest == here.manifest
        assert dialeval.open_run("s3://dialogues/runs/first").scores("bleu") == here.scores("bleu")
        assert len(score("s3://dialogues/runs/first", [Floored(), "bleu"])) == 60
        assert there.save(tmp_path / "copy").manifest == here.manifest
    finally:
        playing.stop()
