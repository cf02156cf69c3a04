"""Scoring on a Ray cluster gives the run of the local engine, whatever happens to its workers.

One cluster of two workers is started for all tests; nothing of it may be left afterwards.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_up import Asking, Floored, LengthModels, samples, two_terms
from ray_metrics import Deadly, MissingElsewhere, OtherWeightsElsewhere, Shelved, Slow

import dialeval
from dialeval.chat_http import Asking as ChatAsking
from dialeval.cli import main
from dialeval.engine.job import Job
from dialeval.errors import JobError
from dialeval.examples import four_bots
from dialeval.metrics.composition import save_composition
from dialeval.models.chat_judge import Servers
from dialeval.readers import pieces
from dialeval.registry import make_metric
from dialeval.storage import samples_to_table

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")

from dialeval.engine.ray import _start_here, cluster, connect  # noqa: E402
from dialeval.engine.ray_job import TRIES, RayJob  # noqa: E402

TESTS = Path(__file__).parent.parent
KEY, KEY_ENV = "sk-of-the-workers-0123456789", "DIALEVAL_TEST_KEY"
OF_THE_ENGINE = {"engine", "files", "sha256"}
"""What a manifest says of how it was made; the rest is the same."""


@pytest.fixture(scope="module", autouse=True)
def started():
    """Processes inherit the mark: by it those are found that outlive the cluster."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("two workers take a core each, and this machine has one")
    mark = f"DIALEVAL_TEST_{uuid.uuid4().hex}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(mark, "1")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv(KEY_ENV, KEY)
        patch.delenv("RAY_ADDRESS", raising=False)
        with cluster(workers=2):
            yield
            assert processes_with(mark) != []
    assert wait_until(lambda: processes_with(mark) == [])


def processes_with(mark: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_until(condition, seconds: float = 300.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def score_here(directory, metrics, data, models=None):
    Job(directory, metrics, models=models, chunk=20).run(data)
    return dialeval.open_run(directory)


def score_on_ray(directory, metrics, data, models=None, **options):
    """Scores in blocks of 20 samples, each of them a piece."""
    sizes = {"count": 2, "chunk": 20, "block": 20, "piece": 20}
    RayJob(directory, metrics, models=models, **sizes, **options).run(data)
    return dialeval.open_run(directory)


def assert_same(there, here):
    """The scores to the last bit, and all numbers of the manifest."""
    tables = [list(run.batches()) for run in (there, here)]
    rows = [[row for batch in one for row in batch.to_pylist()] for one in tables]
    assert rows[0] == rows[1]
    manifests = [
        {name: value for name, value in run.manifest.items() if name not in OF_THE_ENGINE}
        for run in (there, here)
    ]
    assert manifests[0] == manifests[1]
    assert (there.manifest["engine"], here.manifest["engine"]) == ("ray", "local")


def test_the_run_is_that_of_the_local_engine(tmp_path):
    metrics = [Floored(), Asking(), *map(make_metric, ("bleu", "distinct"))]
    data, told = samples(205), []
    here = score_here(tmp_path / "here", metrics, data, LengthModels())
    run = score_on_ray(
        tmp_path / "ray", metrics, data, LengthModels(), progress=lambda *now: told.append(now)
    )
    assert_same(run, here)
    assert run.history[-1]["workers"] == {"ray": 2, "lost": 0}
    assert run.history[-1]["answers"]["asked"] == 2 * 205
    assert told[-1] == (205, 205)
    assert all(done <= read for done, read in told)
    names = sorted(path.name for path in (tmp_path / "ray").iterdir())
    assert names == [".lock", "history.jsonl", "job.json", "manifest.json", "scores.parquet"]


def three_files(folder: Path, count: int = 90) -> list[Path]:
    """Lines that are cut into pieces, row groups, and a file that nobody can read from the
    middle."""
    paths = [folder / name for name in ("a.jsonl", "b.parquet", "c.jsonl.gz")]
    data = [
        dialeval.Sample(
            id=f"s{number}",
            context=(dialeval.Turn("How are you?", "user"),),
            response="fine thanks " * (number % 9 + 1),
            references=("fine thank you",),
            system=("old", "new")[number % 2],
        )
        for number in range(3 * count)
    ]
    lines = ["\n".join(json.dumps(one.to_record()) for one in data[:count])]
    lines.append("\n".join(json.dumps(one.to_record()) for one in data[2 * count :]))
    paths[0].write_text(lines[0])
    pq.write_table(samples_to_table(data[count : 2 * count]), paths[1], row_group_size=25)
    paths[2].write_bytes(gzip.compress(lines[1].encode()))
    return paths


def test_three_files_are_read_by_the_workers_and_the_run_is_written_to_a_url(tmp_path):
    """A store that this process and the workers see: `ray_metrics` makes it known to fsspec."""
    paths, url = three_files(tmp_path), f"shelf:/{tmp_path}/there/run"
    metrics = [Shelved(), *map(make_metric, ("bleu", "distinct"))]
    here = dialeval.score(dialeval.load(*paths), metrics, out=tmp_path / "here")
    there = dialeval.score(dialeval.load(*paths), metrics, out=url, on="ray", workers=2)
    assert_same(there, here)
    assert str(there.directory) == url
    assert sorted(path.name for path in (tmp_path / "there/run").iterdir()) == [
        "history.jsonl",
        "job.json",
        "manifest.json",
        "scores.parquet",
    ]
    more = Slow(pids=str(tmp_path), seconds=0.0)
    joined = dialeval.add_metrics(url, [more], on="ray", workers=2)
    there, here = joined.scores(more.label), dialeval.add_metrics(here, [more]).scores(more.label)
    assert there == here
    again = dialeval.score(dialeval.load(*paths), metrics, out=url, on="ray", workers=2)
    assert again.history[-1]["event"] == "added"  # a finished run is recognised, and left alone


def test_ids_that_occur_in_two_files_and_bad_lines_are_told_as_by_the_local_engine(tmp_path):
    paths = three_files(tmp_path)
    twice = tmp_path / "d.jsonl"
    twice.write_text('{"id": "s7", "response": "again"}\n{"response": 1}\n{nonsense\n')
    with pytest.raises(dialeval.InputError) as here:
        list(dialeval.load(*paths, twice))
    run = tmp_path / "run"
    with pytest.raises(dialeval.InputError) as there:
        dialeval.score(dialeval.load(*paths, twice), [Floored()], out=run, on="ray", workers=2)
    assert str(there.value) == str(here.value)
    assert "d.jsonl:1: id: 's7' occurs twice" in str(there.value)
    kept = dialeval.load(*paths, twice, bad="skip")
    assert len(dialeval.score(kept, [Floored()], out=run, on="ray", workers=2)) == 270
    assert kept.skipped == 3


def test_a_neural_metric_gives_the_scores_of_the_local_engine(tmp_path):
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from models.tiny_encoders import save_bert

    model = save_bert(tmp_path / "bert")
    metrics = [make_metric(f"bertscore:model={model}")]
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "you", "like", "it", "so"]
    data = [
        dialeval.Sample(
            id=f"s{i}", response=" ".join(words[i % 7 : i % 7 + 4]), references=("the dog sat",)
        )
        for i in range(40)
    ]
    here = dialeval.score(data, metrics, out=tmp_path / "here")
    there = dialeval.score(data, metrics, out=tmp_path / "ray", on="ray", workers=2)
    (label,) = here.metrics
    assert there.scores(label) == pytest.approx(here.scores(label), abs=1e-4)
    assert len(set(here.scores(label))) > 3
    assert there.signatures == here.signatures


def test_workers_score_with_the_files_that_the_metrics_were_made_with(tmp_path):
    weights = tmp_path / "crs.json"
    save_composition(two_terms(0.25), weights)
    metrics, data = [make_metric(f"mme-crs:weights={weights}")], samples(100)
    here = score_here(tmp_path / "here", metrics, data)
    save_composition(two_terms(0.75), weights)
    assert_same(score_on_ray(tmp_path / "ray", metrics, data), here)


def test_a_worker_that_is_killed_costs_a_retry_and_not_the_job(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    data, metrics = samples(100), [Deadly(marks=str(marks))]
    here = score_here(tmp_path / "here", metrics, data)
    (marks / "one").touch()
    run = score_on_ray(tmp_path / "ray", metrics, data)
    assert not list(marks.iterdir())
    assert run.history[-1]["workers"] == {"ray": 2, "lost": 1}
    assert_same(run, here)


def test_a_piece_that_kills_every_worker_ends_the_job_and_can_be_resumed(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    for number in range(2 * TRIES):
        (marks / str(number)).touch()
    data, metrics = samples(200), [Deadly(marks=str(marks), at="s190")]
    with pytest.raises(JobError, match=r"3 workers died over samples 181 to 200, rows 1 to 20"):
        score_on_ray(tmp_path / "run", metrics, data)
    for mark in marks.iterdir():
        mark.unlink()
    assert len(list((tmp_path / "run" / "shards").glob("[0-9]*.parquet"))) >= 7
    with pytest.raises(dialeval.UsageError, match="unfinished run with other engine"):
        score_here(tmp_path / "run", metrics, data)
    with pytest.raises(dialeval.UsageError, match=r"unfinished run of other data .*in block 1\)"):
        score_on_ray(tmp_path / "run", metrics, samples(201)[1:])
    run = score_on_ray(tmp_path / "run", metrics, data)
    events = [entry["event"] for entry in run.history]
    assert events == ["started", "resumed", "resumed", "finished"]  # one of them was refused
    assert_same(run, score_here(tmp_path / "here", metrics, data))


def test_an_unfinished_run_of_the_local_engine_is_refused(tmp_path):
    def broken():
        yield from samples(60)
        raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError):
        score_here(tmp_path / "here", [Floored()], broken())
    with pytest.raises(dialeval.UsageError, match="unfinished run with other engine"):
        score_on_ray(tmp_path / "here", [Floored()], samples(60))


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (OtherWeightsElsewhere, "has other weights of 'counter' .awayaway. than this machine"),
        (MissingElsewhere, "the worker on .*: 'counter' is not here"),
    ],
)
def test_a_worker_with_other_weights_would_belie_the_signature(tmp_path, models, message):
    with pytest.raises(JobError, match=message):
        score_on_ray(tmp_path / "run", [Asking()], samples(40), models())


def test_more_workers_than_cores_are_refused(tmp_path):
    with pytest.raises(dialeval.UsageError, match=r"3 workers take a core each.* has 2"):
        dialeval.score(samples(9), [Floored()], on="ray", workers=3)


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dialeval", "score", str(four_bots()), *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, "".join(capsys.readouterr())

    return run


def test_the_command_shows_the_table_of_the_local_engine_and_who_scored(command):
    (here, local), (there, spread) = command("-m", "bleu"), command("-m", "bleu", "--on", "ray")
    assert (here, there) == (0, 0)
    told = [line for line in spread.splitlines() if not line.startswith("scoring: ")]
    told.remove("scored by 2 workers on Ray")
    assert told == local.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "2"], "add --on ray"),
        (["--ray-address", "auto"], "add --on ray"),
        (["--on", "moon"], "'local' or 'ray', not on 'moon'"),
    ],
)
def test_options_that_make_no_sense_are_refused(command, arguments, message):
    code, output = command("-m", "length", *arguments)
    assert code == 2
    assert message in output


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "expected HOST:PORT or auto"),
        ("ray://head:10001", r"ray://\) is not supported"),
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1: .*refused"),
    ],
)
def test_an_address_where_no_cluster_is_gives_a_message_at_once(address, message):
    """Ray itself would try for minutes; here it is not even asked."""
    with pytest.raises(dialeval.UsageError, match=message):
        connect(ray, address)


def test_more_workers_than_this_machine_has_cores_are_refused(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(dialeval.UsageError, match=r"3 workers take a core each, .* has 2"):
        _start_here(ray, 3)


CHILD = """
import sys
import dialeval
from ray_metrics import Slow
directory, pids, address, *files = sys.argv[1:]
dialeval.score(
    dialeval.load(*files), [Slow(pids=pids)], out=directory, on="ray", ray_address=address
)
"""


@pytest.fixture
def driver(tmp_path):
    """Starts another process that scores three files on this cluster, and waits until a worker
    scores."""
    pids, address = tmp_path / "pids", ray.get_runtime_context().gcs_address
    pids.mkdir()
    files = [str(path) for path in three_files(tmp_path)]

    def start() -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(pids), address, *files],
            stderr=subprocess.PIPE,
        )
        assert wait_until(lambda: list(pids.iterdir()))
        return child

    start.files, start.pids = files, pids
    return start


def test_a_driver_that_is_killed_is_started_again_and_finished_blocks_are_kept(tmp_path, driver):
    child = driver()
    shards = tmp_path / "run" / "shards"
    assert wait_until(lambda: len(list(shards.glob("[0-9]*.parquet"))) >= 2)
    child.kill()
    child.communicate(timeout=120)
    working = [Path("/proc") / path.name for path in driver.pids.iterdir()]
    assert wait_until(lambda: not any(process.exists() for process in working))
    kept = {path.name: path.stat().st_mtime_ns for path in shards.glob("[0-9]*.parquet")}
    metrics = [Slow(pids=str(driver.pids))]
    data = dialeval.load(*driver.files)
    job = RayJob(tmp_path / "run", metrics, division=pieces, about_data=data.about)
    job.run(data)
    assert 0 < job.resumed < 270
    assert len(kept) >= 2
    run = dialeval.open_run(tmp_path / "run")
    assert [event["event"] for event in run.history] == ["started", "resumed", "finished"]
    here = dialeval.score(dialeval.load(*driver.files), metrics, out=tmp_path / "here")
    assert_same(run, here)


def test_control_c_ends_the_workers_and_frees_the_directory(tmp_path, driver):
    child = driver()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors
    working = [Path("/proc") / path.name for path in driver.pids.iterdir()]
    assert wait_until(lambda: not any(process.exists() for process in working))
    with pytest.raises(dialeval.UsageError, match="unfinished run with other"):
        dialeval.score(samples(9), [Floored()], out=tmp_path / "run")


def test_a_server_is_asked_by_workers_with_the_key_of_their_environment(tmp_path, monkeypatch):
    """The cluster was started with the key in its environment; nothing that is sent holds it."""
    from systems.loopback import serving

    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    asking = ChatAsking(key_env=KEY_ENV)
    servers = Servers(asking, record=tmp_path / "requests.sqlite")
    with serving() as server:
        server.log_probs = {"4": math.log(0.5), "2": math.log(0.5)}
        metric = f"llm-judge:model={server.address}"
        data = [dialeval.Sample(f"s{n}", (dialeval.Turn(f"Hi {n}."),), "Hello.") for n in range(6)]
        run = dialeval.score(
            data, [metric], out=tmp_path / "ray", on="ray", workers=2, servers=servers
        )
        assert run.scores(metric) == pytest.approx([3.0] * 6, abs=1e-6)
        assert sum(server.asked.values()) == 6
        assert set(server.keys) == {f"Bearer {KEY}"}
    assert KEY.encode() not in pickle.dumps(Servers(asking))
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in written)
