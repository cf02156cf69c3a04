"""Two Ray workers against one, and both against the local engine: how fast, and what limits it?

    python benchmarks/ray_workers.py [-m METRIC]... [--samples N] [--workers 0,1,2] [--json]
    python benchmarks/ray_workers.py --driver 20000,200000
    python benchmarks/ray_workers.py --executors 240

Scores made-up chats (seeded; three turns of 10 words, a response and a reference of 12) on a
cluster that is already there; 0 workers stands for the local engine. A warm-up of a quarter of the
samples is not counted, so that starting workers and loading models is left out. Seconds of CPU are
those of this process, which keeps the order, and of the workers, for 1,000 samples: unlike the rate
they hardly depend on what else the machine does.

`--driver` measures this process alone, with workers that do next to nothing (`length`), for several
numbers of samples: seconds of CPU for a million more samples, and its largest memory.

`--executors` sends so many blocks of 200 kB to two actors that do nothing with them, once as
`engine/ray_job.py` does (an actor reads its block itself) and once through Ray Data (tasks of
`read_datasource`, `map_batches` with a pool of actors): seconds, and seconds of CPU of this
process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dialeval
from dialeval.engine.ray import cluster
from dialeval.examples import four_bots

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
        self.watching = 0.0
        """Seconds of CPU that the watching itself took, in a thread of this process."""
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
                    worker = (process / "cmdline").read_bytes().startswith(b"ray::")
                    if worker and MARK.encode() in (process / "environ").read_bytes():
                        fields = (process / "stat").read_text().rpartition(")")[2].split()
                        self._used[process.name] = (int(fields[11]) + int(fields[12])) / TICKS
                except OSError:
                    continue
            self.watching = time.thread_time()


def score(metrics: Sequence[str], chats: Path, workers: int) -> None:
    """One run of a file, into a directory that is removed."""
    with tempfile.TemporaryDirectory() as folder:
        dialeval.score(
            dialeval.load(chats),
            metrics,
            out=Path(folder) / "run",
            **(
                {"on": "ray", "workers": workers}
                if workers
                else {"cache": Path(folder) / "answers"}
            ),
        )


def measure(metrics: Sequence[str], folder: Path, workers: int, count: int) -> Measured:
    """What a run costs beyond one of a quarter of its size."""
    small, large = folder / "small.jsonl", folder / "large.jsonl"
    write_chats(small, count // 4)
    write_chats(large, count)
    with WorkerClock() as clock:

        def now() -> tuple[float, float, float]:
            return time.perf_counter(), time.process_time() - clock.watching, clock.seconds

        moments = [now()]
        for chats in (small, large):
            score(metrics, chats, workers)
            time.sleep(0.3)  # the clock of the workers ticks
            moments.append(now())
    first, second = (
        [after - before for before, after in zip(moments[i], moments[i + 1], strict=True)]
        for i in (0, 1)
    )
    thousands = (count - count // 4) / 1000
    seconds, own, theirs = ((b - a) / thousands for a, b in zip(first, second, strict=True))
    return Measured(" ".join(metrics), workers, count, second[0], 1 / seconds * 1000, own, theirs)


def show_driver(sizes: Sequence[int]) -> None:
    print("| samples | seconds | CPU s of this process | for a million more | its peak, MB |")
    print("|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name, cluster(workers=2):
        before = (0, 0.0)
        chats = Path(name) / "chats.jsonl"
        write_chats(chats, 256)
        score(["length"], chats, 2)  # imports, and the first processes
        for size in sizes:
            write_chats(chats, size)
            begun, cpu = time.perf_counter(), time.process_time()
            score(["length"], chats, 2)
            own = time.process_time() - cpu
            more = 1e6 * (own - before[1]) / (size - before[0])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            seconds = time.perf_counter() - begun
            print(f"| {size:,} | {seconds:.0f} | {own:.2f} | {more:.2f} | {peak:.0f} |", flush=True)
            before = (size, own)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


BLOCK = b"x" * 200_000


def made(number: int) -> bytes:
    return BLOCK


class Taker:
    def take(self, number: int) -> int:
        return len(made(number))

    def __call__(self, batch: Any) -> Any:
        return batch.drop_columns(["block"])


def through_actors(count: int) -> int:
    """Two actors, each of which makes the block that it takes, one after the other."""
    import ray

    actor = ray.remote(num_cpus=1)(Taker)
    free = [actor.remote() for _ in range(2)]
    in_hand: dict[Any, Any] = {}
    done, numbers = 0, iter(range(count))
    while True:
        for seat, number in zip(free, numbers, strict=False):
            in_hand[seat.take.remote(number)] = seat
        if not in_hand:
            break
        (ready,), _ = ray.wait(list(in_hand))
        done += ray.get(ready) > 0
        free = [in_hand.pop(ready)]
    for seat in free:
        ray.kill(seat)
    return done


def through_ray_data(count: int) -> int:
    import pyarrow as pa
    import ray.data
    from ray.data.block import BlockMetadata

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # a block stays one

    class Source(ray.data.Datasource):
        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            known = BlockMetadata(num_rows=1, size_bytes=None, exec_stats=None, input_files=None)
            return [
                ray.data.ReadTask(
                    lambda n=n: [pa.table({"number": [n], "block": [made(n)]})], known
                )
                for n in range(count)
            ]

    found = ray.data.read_datasource(
        Source(), num_cpus=0, concurrency=2, override_num_blocks=count
    ).map_batches(
        Taker,
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=1,
    )
    return sum(1 for _ in found.iter_rows())


def show_executors(count: int) -> None:
    print("| blocks | through | seconds | CPU s of this process | ms for a block |")
    print("|---:|---|---:|---:|---:|")
    with cluster(workers=2):
        for name, send in (("plain actors", through_actors), ("Ray Data", through_ray_data)):
            send(8)  # imports, and the first processes
            begun, cpu = time.perf_counter(), time.process_time()
            assert send(count) == count
            seconds, own = time.perf_counter() - begun, time.process_time() - cpu
            print(f"| {count} | {name} | {seconds:.1f} | {own:.2f} | {1000 * own / count:.1f} |")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--metric", action="append")
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--workers", default="0,1,2")
    parser.add_argument("--driver", default="")
    parser.add_argument("--executors", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.driver:
        show_driver([int(text) for text in arguments.driver.split(",")])
        return
    if arguments.executors:
        show_executors(arguments.executors)
        return
    metrics = arguments.metric or ["bleu", "rouge", "chrf", "meteor"]
    counts = [int(text) for text in arguments.workers.split(",")]
    with tempfile.TemporaryDirectory() as folder, cluster(workers=max(1, *counts)):
        place = Path(folder)
        results = [measure(metrics, place, workers, arguments.samples) for workers in counts]
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
