"""A run that is killed again and again ends with the bytes of one that never was."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = """
import sys
from pathlib import Path
from made_up import Asking, Floored, LengthModels, samples
from dialeval.engine.answers import AnswerCache
from dialeval.engine.job import Job
from dialeval.registry import make_metric

directory, cache = map(Path, sys.argv[1:])
with AnswerCache(cache) as answers:
    metrics = [Asking(), Floored(), make_metric("distinct"), make_metric("bleu")]
    job = Job(directory, metrics, models=LengthModels(), cache=answers, chunk=20,
              progress=lambda done, read: print(done, flush=True))
    job.run(samples(400))
print("finished", flush=True)
"""


def start(directory: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory), str(cache)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": "/usr/bin:/bin"},
    )


def finish(child: subprocess.Popen[str]) -> str:
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 0
    return output


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, seed):
    generator = random.Random(seed)
    finish(start(tmp_path / "whole", tmp_path / "whole.sqlite"))
    kills = 0
    for _ in range(4):
        child = start(tmp_path / "killed", tmp_path / "killed.sqlite")
        for _ in range(generator.randint(5, 60)):
            child.stdout.readline()
        time.sleep(generator.random() / 50)
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
        child.stdout.close()
    assert kills > 0
    assert "finished" in finish(start(tmp_path / "killed", tmp_path / "killed.sqlite"))
    for name in ("scores.parquet", "manifest.json", "job.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_was_scored_before_the_kill_is_not_scored_again(tmp_path):
    child = start(tmp_path / "run", tmp_path / "cache.sqlite")
    while child.stdout.readline() != "200\n":
        pass
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    shards = sorted((tmp_path / "run" / "shards").glob("[0-9]*.parquet"))
    before = {path: path.stat().st_mtime_ns for path in shards}
    assert len(before) >= 9
    second = start(tmp_path / "run", tmp_path / "cache.sqlite")
    while second.stdout.readline() != "200\n":
        pass
    second.send_signal(signal.SIGKILL)
    second.wait()
    second.stdout.close()
    assert {path: path.stat().st_mtime_ns for path in shards} == before
