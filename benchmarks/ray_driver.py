"""What does the process keep that starts a run on Ray? There is no input, and by default no Ray.

    python benchmarks/ray_driver.py 100000 1000000 10000000
    python benchmarks/ray_driver.py --ray 10000 100000 1000000 10000000

Plans runs of so many made-up samples (`RayJob._plan`: the tasks of `engine/ray_reading.py` read,
join, look for ids that occur twice, make the digests of blocks). A stand-in for Ray runs every
task at once in this process. Like Ray, it leaves a result of less than 100 kB with the process that
asked for it, and puts a larger one elsewhere (here: into a file). So the numbers are what this part
of the engine keeps, without what Ray itself needs for each task and result:

    results    the largest number of bytes of results that lay with the process at one time
    held       results of any size that it knew at one time, at most
    plan       the finished plan, in bytes of a pickle; for each block, there is a line in it

With `--ray`, the same plans are made on a cluster of this machine, of two workers, and the columns
are the resident memory of this process after each plan, and seconds of CPU of this process alone.

A sample is a stand-in, too (an id and a digest), 6,000 of them are a piece: 4 MB of short chats.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dialeval.engine.ray import cluster
from dialeval.engine.ray_job import Plan, RayJob
from dialeval.registry import make_metrics

SMALL = 100 * 1024
"""`max_direct_call_object_size` of Ray."""
ROWS = 6000


class Kept:
    """Counts what lies with the process, and what it knows of."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.bytes = self.most_bytes = self.refs = self.most_refs = 0

    def add(self, size: int) -> None:
        self.bytes += size
        self.refs += 1
        self.most_bytes = max(self.most_bytes, self.bytes)
        self.most_refs = max(self.most_refs, self.refs)

    def drop(self, size: int, path: Path | None) -> None:
        self.bytes -= size
        self.refs -= 1
        if path is not None:
            path.unlink()


class Ref:
    def __init__(self, value: Any, kept: Kept) -> None:
        content = pickle.dumps(value, 5)
        kept.number += 1
        self.content: bytes = content if len(content) < SMALL else b""
        self.path = None if self.content else kept.folder / str(kept.number)
        if self.path is not None:
            self.path.write_bytes(content)
        kept.add(len(self.content))
        weakref.finalize(self, kept.drop, len(self.content), self.path)

    def value(self) -> Any:
        return pickle.loads(self.content if self.path is None else self.path.read_bytes())


class StandIn:
    """As much of Ray as a plan needs."""

    exceptions = SimpleNamespace(
        RayTaskError=KeyError, WorkerCrashedError=KeyError, RayActorError=KeyError
    )

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def remote(self, num_returns: int = 1, **_: Any) -> Callable[[Any], Any]:
        def call(function: Any, given: Sequence[Any]) -> Any:
            found = function(*(self.get(one) for one in given))
            if num_returns == 1:
                return Ref(found, self.kept)
            return [Ref(one, self.kept) for one in found]

        def wrap(function: Any) -> Any:
            if not isinstance(function, type):
                return SimpleNamespace(remote=lambda *given: call(function, given))

            def start(*given: Any) -> Any:
                actor = function(*given)
                methods = [name for name in dir(actor) if not name.startswith("_")]
                return SimpleNamespace(
                    **{
                        name: SimpleNamespace(
                            remote=lambda *given, name=name: call(getattr(actor, name), given)
                        )
                        for name in methods
                    }
                )

            return SimpleNamespace(remote=start)

        return wrap

    def put(self, value: Any) -> Ref:
        return Ref(value, self.kept)

    def get(self, ref: Any) -> Any:
        return ref.value() if isinstance(ref, Ref) else ref

    def kill(self, actor: Any) -> None:
        pass

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2}


@dataclass(frozen=True)
class MadeUp:
    """A sample without content."""

    id: str
    own: bytes

    def digest(self) -> bytes:
        return self.own


@dataclass(frozen=True)
class Piece:
    number: int
    rows: int
    name: str = "chats.jsonl"
    to_measure: bool = False
    reads_again: bool = True

    def reading(self) -> Reading:
        return Reading(self)


@dataclass
class Reading:
    piece: Piece
    report: None = None

    def __iter__(self) -> Iterator[tuple[int, MadeUp]]:
        first = self.piece.number * ROWS
        digests = random.Random(first).randbytes(32 * self.piece.rows)
        for row in range(self.piece.rows):
            yield row + 1, MadeUp(f"s{first + row}", digests[32 * row : 32 * row + 32])


class Division:
    """Stands for `readers.pieces`."""

    def divide(self, samples: int, size: int) -> list[Piece]:
        return [
            Piece(number, min(ROWS, samples - number * ROWS))
            for number in range(-(-samples // ROWS))
        ]

    def place(self, pieces: list[Piece], spans: Any) -> list[Piece]:
        return pieces

    def gather(self, samples: int, pieces: Any, reports: Any, twice: list[Any]) -> None:
        assert not twice


def planned(samples: int, folder: Path, stand_in: StandIn | None = None) -> Plan:
    job = RayJob(folder / "run", make_metrics(["length"]), division=Division(), piece=1 << 22)
    if stand_in is not None:
        job._ray = stand_in
    job._workers = 2
    plan = job._plan(samples, job._ray.put(job._settings()), b"job", reading_only=True)
    assert sum(plan.rows) == samples
    return plan


def measure(samples: int, folder: Path) -> str:
    kept = Kept(folder)
    started = time.process_time()
    plan = planned(samples, folder, StandIn(kept))
    seconds = time.process_time() - started
    size = len(pickle.dumps(plan))
    return (
        f"| {samples:,} | {kept.most_bytes / 1e6:.2f} | {kept.most_refs:,} | {size / 1e6:.2f}"
        f" | {len(plan.rows):,} | {seconds:.0f} |"
    )


def resident() -> float:
    """Megabytes of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_on_ray(samples: int, folder: Path) -> str:
    started = time.process_time()
    planned(samples, folder)
    seconds = time.process_time() - started
    return f"| {samples:,} | {resident():.0f} | {seconds:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("samples", type=int, nargs="+")
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.ray:
            print("| samples | resident, MB | CPU s |")
            print("|---:|---:|---:|")
            with cluster(workers=2):
                planned(ROWS, folder)  # imports, and the first processes
                for samples in arguments.samples:
                    print(measure_on_ray(samples, folder), flush=True)
            return
        print("| samples | results, MB | held | plan, MB | blocks | CPU s with all tasks |")
        print("|---:|---:|---:|---:|---:|---:|")
        for samples in arguments.samples:
            print(measure(samples, folder), flush=True)


if __name__ == "__main__":
    main()
