"""The local page over a run of a million samples: how long does a page take, and how much memory?

    python benchmarks/page.py [--samples 1000000] [--folder DIR] [--json]

Scores made-up chats (seeded) with `length` and with a made-up metric whose values have nothing to
do with the order of the file, which is the worst case for a page of a sorted list: its rows lie all
over the file. Then starts `dialeval serve` in a process of its own and asks for each page once.
`cpu` is what the server computed for it, whatever else the machine was doing. With --folder the run
is kept there, and used again if it is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialeval import score
from dialeval.metric import Metric
from dialeval.question import Answer
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

WORDS = [f"word{i}" for i in range(20_000)]


@dataclass(frozen=True)
class Shuffled(Metric):
    """A number that depends on everything and means nothing."""

    name = "shuffled"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(int.from_bytes(sample.digest()[:6], "big") / 2**48)


def chats(count: int) -> Iterator[Sample]:
    generator = random.Random(0)
    for i in range(count):
        yield Sample(
            id=f"s{i}",
            context=(Turn(" ".join(generator.choices(WORDS, k=8)), "user"),),
            response=" ".join(generator.choices(WORDS, k=generator.randint(3, 20))),
            system=f"bot{i % 3}",
        )


def pages(run: str) -> list[tuple[str, str]]:
    """What is asked for, and how the table calls it."""
    return [
        ("list of runs", "/"),
        ("first page", run),
        ("page 5000", f"{run}?page=5000"),
        ("sort by a metric", f"{run}?sort=shuffled"),
        ("sorted, page 5000", f"{run}?sort=shuffled&page=5000"),
        ("text search", f"{run}?text=Word1234"),
        ("text search, sorted", f"{run}?text=Word1234&sort=shuffled"),
        ("range", f"{run}?metric=shuffled&low=0.5&high=0.51"),
        ("one system, sorted", f"{run}?system=1&sort=length&order=down"),
        ("a dialogue", f"{run}/777777?sort=shuffled"),
    ]


def memory(process: int) -> dict[str, float]:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.findall(r"Vm(RSS|HWM):\s+(\d+) kB", status)
    return {name: int(size) / 1024 for name, size in found}


def computed(process: int) -> float:
    """Seconds of computing so far, of all threads."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(address: str) -> tuple[float, str]:
    started = time.perf_counter()
    with urllib.request.urlopen(address) as answer:
        text = answer.read().decode()
    return time.perf_counter() - started, text


def measure(folder: Path) -> tuple[list[dict[str, float | str]], dict[str, float]]:
    command = [sys.executable, "-m", "dialeval", "serve", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            base = json.loads(server.stdout.readline())["address"].rstrip("/")
            _, listing = ask(base + "/")
            run = re.search(r'"(/run/\w+)"', listing)
            assert run is not None
            rows: list[dict[str, float | str]] = []
            for name, path in pages(run[1]):
                before = computed(server.pid)
                seconds, _ = ask(base + path)
                cpu = computed(server.pid) - before
                rows.append({"page": name, "seconds": seconds, "cpu": cpu, **memory(server.pid)})
            return rows, memory(server.pid)
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = (arguments.folder or Path(temporary)) / "run"
        score(chats(arguments.samples), ["length", Shuffled()], out=run)
        size = (run / "scores.parquet").stat().st_size
        rows, end = measure(run.parent)
    if arguments.json:
        print(json.dumps({"pages": rows, "file_mb": size / 1e6}, indent=2))
        return
    print(f"{arguments.samples:,} samples, scores.parquet {size / 1e6:.0f} MB")
    print(f"{'page':<22} {'seconds':>8} {'cpu':>6} {'MB':>6}")
    for row in rows:
        print(f"{row['page']:<22} {row['seconds']:>8.2f} {row['cpu']:>6.2f} {row['RSS']:>6.0f}")
    print(f"the highest memory of the server: {end['HWM']:.0f} MB")


if __name__ == "__main__":
    main()
