"""Two Ray workers against one, and both against the local engine: how fast, and what limits it?

    python benchmarks/ray_workers.py [-m METRIC]... [--samples N] [--workers 0,1,2] [--json]
    python benchmarks/ray_workers.py --reading [--samples N]

Scores made-up chats (seeded; three turns of 10 words, a response and a reference of 12) on a
cluster that is already there; 0 workers stands for the local engine. The first quarter of the
samples is not counted, so that starting workers and loading models is left out. Seconds of CPU are
those of this process, which reads, hands out and writes, and of the workers, for 1,000 samples:
unlike the rate they hardly depend on what else the machine does. Their ratio says how many workers
one such process can feed.

`--reading` measures this process alone: workers that do next to nothing (`length`), chunks of the
size that metrics with models have, and of that of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dialeval
from dialeval.engine.job import CHUNK, CHUNK_WITH_MODELS, Job
from dialeval.engine.ray import RayWorkers, cluster
from dialeval.examples import four_bots
from dialeval.registry import make_metric

TICKS = os.sysconf("SC_CLK_TCK")
MARK = f"DIALEVAL_BENCHMARK={os.getpid()}"
"""In the environment of the workers of this benchmark, and of no other."""
os.environ.update([MARK.split("=")])


@dataclass(frozen=True)
class Measured:
    metrics: str
    workers: int
    samples: int
    seconds: float
    per_second: float
    own_cpu: float
    """Seconds of CPU of this process, and below of all workers, for 1,000 samples."""
    workers_cpu: float


def write_chats(path: Path, count: int) -> None:
    words = [
        word
        for sample in dialeval.load(four_bots())
        for turn in sample.turns
        for word in turn.text.split()
    ]
    generator = random.Random(0)

    def text(length: int) -> str:
        return " ".join(generator.choices(words, k=length))

    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            record = {
                "id": f"s{i}",
                "system": f"bot{i % 3}",
                "context": [{"speaker": s, "text": text(10)} for s in ("user", "system", "user")],
                "response": text(12),
                "references": [text(12)],
            }
            file.write(json.dumps(record) + "\n")


class WorkerClock:
    """The seconds of CPU that Ray's workers have used, gathered while they live."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> WorkerClock:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return sum(self._used.values())

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    worker = (process / "cmdline").read_bytes().startswith(b"ray::Worker")
                    if worker and MARK.encode() in (process / "environ").read_bytes():
                        fields = (process / "stat").read_text().rpartition(")")[2].split()
                        self._used[process.name] = (int(fields[11]) + int(fields[12])) / TICKS
                except OSError:
                    continue


@dataclass(frozen=True)
class Moment:
    done: int
    time: float
    own_cpu: float
    workers_cpu: float


def measure(metrics: Sequence[str], chats: Path, workers: int, count: int) -> Measured:
    moments: list[Moment] = []
    with tempfile.TemporaryDirectory() as folder, WorkerClock() as clock:

        def now(done: int, read: int = 0) -> None:
            moments.append(Moment(done, time.perf_counter(), time.process_time(), clock.seconds))

        now(0)
        dialeval.score(
            dialeval.load(chats, limit=count),
            metrics,
            out=Path(folder) / "run",
            progress=now,
            **(
                {"on": "ray", "workers": workers}
                if workers
                else {"cache": Path(folder) / "answers"}
            ),
        )
        now(count)
    begun = next(moment for moment in moments if moment.done >= count / 4)
    scored = next(moment for moment in moments if moment.done == count)
    thousands = (count - begun.done) / 1000
    return Measured(
        " ".join(metrics),
        workers,
        count,
        moments[-1].time - moments[0].time,
        1000 * thousands / (scored.time - begun.time),
        (moments[-1].own_cpu - begun.own_cpu) / thousands,
        (moments[-1].workers_cpu - begun.workers_cpu) / thousands,
    )


def measure_reading(chats: Path, count: int, chunk: int) -> tuple[float, float]:
    """Seconds of CPU of this process for 1,000 samples: while workers score, and at the end."""
    metrics, moments = [make_metric("length")], list[tuple[int, float]]()
    with tempfile.TemporaryDirectory() as folder:
        Job(
            Path(folder) / "run",
            metrics,
            workers=RayWorkers(metrics, None, count=2),
            chunk=chunk,
            progress=lambda done, read: moments.append((done, time.process_time())),
        ).run(dialeval.load(chats))
        ended = time.process_time()
    begun = next(moment for moment in moments if moment[0] >= count / 4)
    scoring = (moments[-1][1] - begun[1]) / (count - begun[0])
    return 1000 * scoring, 1000 * (ended - moments[-1][1]) / count


def show_reading(count: int) -> None:
    print("| samples per chunk | CPU s per 1,000, while workers score | at the end |")
    print("|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, cluster(workers=2):
        chats = Path(folder) / "chats.jsonl"
        write_chats(chats, count)
        for chunk in (CHUNK_WITH_MODELS, CHUNK):
            scoring, end = measure_reading(chats, count, chunk)
            print(f"| {chunk} | {scoring:.3f} | {end:.3f} |")
    print(f"{count:,} samples, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--metric", action="append")
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--workers", default="0,1,2")
    parser.add_argument("--reading", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.reading:
        show_reading(arguments.samples)
        return
    metrics = arguments.metric or ["bleu", "rouge", "chrf", "meteor"]
    counts = [int(text) for text in arguments.workers.split(",")]
    with tempfile.TemporaryDirectory() as folder, cluster(workers=max(1, *counts)):
        chats = Path(folder) / "chats.jsonl"
        write_chats(chats, arguments.samples)
        results = [measure(metrics, chats, workers, arguments.samples) for workers in counts]
    load = os.getloadavg()[0]
    if arguments.json:
        print(json.dumps({"load": load, "results": [asdict(one) for one in results]}, indent=2))
        return
    cores = f"{os.cpu_count()} cores, load {load:.1f}"
    print(f"{' '.join(metrics)}: {arguments.samples:,} samples, {cores}")
    print("| workers | seconds | samples/s | CPU s per 1,000, own | workers |")
    print("|---|---:|---:|---:|---:|")
    for one in results:
        name = str(one.workers or "local engine")
        print(
            f"| {name} | {one.seconds:.1f} | {one.per_second:,.0f} | {one.own_cpu:.3f}"
            f" | {one.workers_cpu:.3f} |"
        )


if __name__ == "__main__":
    main()
