"""Scoring on a Ray cluster gives the run of the local engine, whatever happens to its workers.

One cluster of two workers is started for all tests; nothing of it may be left afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from made_up import Asking, Floored, LengthModels, samples, two_terms
from ray_metrics import Deadly, MissingElsewhere, OtherWeightsElsewhere

import dialeval
from dialeval.cli import main
from dialeval.engine.job import Job
from dialeval.errors import JobError
from dialeval.examples import four_bots
from dialeval.metrics.composition_file import save_composition
from dialeval.registry import make_metric

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")

from dialeval.engine.ray import TRIES, RayWorkers, _start_here, cluster, connect  # noqa: E402  # noqa: E402

TESTS = Path(__file__).parent.parent
FILES = ("scores.parquet", "manifest.json", "job.json")


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


def wait_until(condition, seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def score_here(directory, metrics, data, models=None):
    Job(directory, metrics, models=models, chunk=20).run(data)


def score_on_ray(directory, metrics, data, models=None, **options):
    workers = RayWorkers(metrics, models, count=2)
    Job(directory, metrics, models=models, workers=workers, chunk=20, **options).run(data)
    return dialeval.open_run(directory)


def bytes_of(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in FILES]


def test_the_run_is_that_of_the_local_engine_to_the_byte(tmp_path):
    metrics = [Floored(), Asking(), *map(make_metric, ("bleu", "distinct", "rouge", "chrf"))]
    data, told = samples(205), []
    score_here(tmp_path / "here", metrics, data, LengthModels())
    run = score_on_ray(
        tmp_path / "ray", metrics, data, LengthModels(), progress=lambda *now: told.append(now)
    )
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "here")
    assert run.history[-1]["workers"] == {"ray": 2, "lost": 0}
    assert run.history[-1]["answers"]["asked"] == 2 * 205
    assert told[-1] == (205, 205)
    assert all(done <= read for done, read in told)


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
    score_here(tmp_path / "here", metrics, data)
    save_composition(two_terms(0.75), weights)
    score_on_ray(tmp_path / "ray", metrics, data)
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "here")


def test_a_worker_that_is_killed_costs_a_retry_and_not_the_job(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    data, metrics = samples(100), [Deadly(marks=str(marks))]
    score_here(tmp_path / "here", metrics, data)
    (marks / "one").touch()
    run = score_on_ray(tmp_path / "ray", metrics, data)
    assert not list(marks.iterdir())
    assert run.history[-1]["workers"] == {"ray": 2, "lost": 1}
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "here")


def test_a_chunk_that_kills_every_worker_ends_the_job_and_can_be_resumed(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    for number in range(2 * TRIES):
        (marks / str(number)).touch()
    data, metrics = samples(200), [Deadly(marks=str(marks), at="s190")]
    with pytest.raises(JobError, match=r"3 workers died over the samples 's180' to 's199'"):
        score_on_ray(tmp_path / "run", metrics, data)
    for mark in marks.iterdir():
        mark.unlink()
    assert len(list((tmp_path / "run" / "shards").glob("[0-9]*.parquet"))) >= 7
    run = score_on_ray(tmp_path / "run", metrics, data)
    assert [entry["event"] for entry in run.history] == ["started", "resumed", "finished"]
    score_here(tmp_path / "here", metrics, data)
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "here")


def test_what_was_begun_here_is_finished_on_ray_and_not_scored_again(tmp_path):
    def broken():
        yield from samples(60)
        raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError):
        score_here(tmp_path / "run", [Floored()], broken())
    workers = RayWorkers([Floored()], None, count=2)
    job = Job(tmp_path / "run", [Floored()], workers=workers, chunk=20)
    job.run(samples(100))
    assert job.resumed == 60
    score_here(tmp_path / "here", [Floored()], samples(100))
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "here")


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


def test_bad_input_is_shown_once_with_its_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    lines = [json.dumps(sample.to_record()) for sample in samples(50)]
    path.write_text("\n".join([*lines, '{"response": 1}', "{nonsense"]) + "\n")
    with pytest.raises(dialeval.InputError) as caught:
        score_on_ray(tmp_path / "run", [Floored()], dialeval.load(path, format="jsonl"))
    assert [problem.line for problem in caught.value.problems] == [51, 52]
    kept = score_on_ray(tmp_path / "run", [Floored()], dialeval.load(path, bad="skip"))
    assert len(kept) == 50


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
from made_up import samples
from ray_metrics import Slow
directory, pids, address = sys.argv[1:]
dialeval.score(samples(20_000), [Slow(pids=pids)], out=directory, on="ray", ray_address=address)
"""


def test_control_c_ends_the_workers_and_frees_the_directory(tmp_path):
    pids, address = tmp_path / "pids", ray.get_runtime_context().gcs_address
    pids.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(pids), address],
        stderr=subprocess.PIPE,
    )
    assert wait_until(lambda: len(list(pids.iterdir())) == 2)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors
    working = [Path("/proc") / path.name for path in pids.iterdir()]
    assert wait_until(lambda: not any(process.exists() for process in working))
    with pytest.raises(dialeval.UsageError, match="unfinished run with other metrics"):
        dialeval.score(samples(9), [Floored()], out=tmp_path / "run")
