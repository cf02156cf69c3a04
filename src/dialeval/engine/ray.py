"""Workers on a Ray cluster, for more than one core or one machine.

This process reads the input, hands chunks to the workers, one actor each, and writes the shards
that they return. The run directory is that of the local engine, to the byte where no model
computes, and a local run can be resumed on Ray, and vice versa. Plain actors
rather than Ray Data, because chunks have a place and a digest by which a run is resumed: Ray Data
would cut the input into blocks of its own.

A worker that dies costs the chunk it had in hand, which another one scores again. A chunk that
costs `TRIES` workers ends the job.

`cluster` joins a Ray cluster, or starts one on this machine for the time of a run.

What runs on a worker of a Ray cluster: one process that holds the models of a run and scores the
chunks that it is given. It knows nothing of Ray, files or other workers.

Answers are kept in the memory of the worker, in a database of its own: what one metric asked, the
next one finds. The answer cache of the user is neither read nor written, as a SQLite file on a disk
that several machines share could be damaged.
"""

from __future__ import annotations

import importlib
import os
import platform
import socket
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from dialeval.engine.answers import AnswerCache, Answerer, LoadedOnce, NoModels
from dialeval.engine.chunk import Chunk, ScoredChunk, fingerprints, score_chunk
from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.metric import Metric
from dialeval.question import ModelSource
from dialeval.version import __version__

IN_MEMORY = Path(":memory:")
"""What SQLite calls a database without a file."""

ANSWERS_KEPT = 50_000
"""Then the database starts again, empty: at 2 kB for the log-probabilities of a response, 100 MB.
What repeats (turns of one dialogue, stock answers) mostly lies closer together."""


class Worker:
    """Scores chunks with models that are loaded once.

    weights  name of each model -> the fingerprint that the signatures of the run name
    version  of dialeval, where the run was started
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        models: ModelSource,
        weights: Mapping[str, str],
        version: str,
    ) -> None:
        self._metrics = metrics
        self._models = LoadedOnce(models)
        self._weights = weights
        self._version = version
        self._cache: AnswerCache | None = None
        self._answers = 0
        self._under_way = 0

    def score(self, chunk: Chunk) -> ScoredChunk:
        if self._cache is None:
            self._check_is_alike()
            self._cache = AnswerCache(IN_MEMORY)
        try:
            answerer = Answerer(self._models, self._cache)
            scored = score_chunk(chunk, self._metrics, answerer, self._note_under_way)
        finally:
            self._under_way = 0
        self._answers += scored.counts.distinct - scored.counts.cached
        if self._answers > ANSWERS_KEPT:
            self._cache.close()
            self._cache, self._answers = AnswerCache(IN_MEMORY), 0
        return scored

    def under_way(self) -> int:
        """Returns how many samples of the current chunk are done; it is asked while `score`
        runs."""
        return self._under_way

    def _note_under_way(self, samples: int) -> None:
        self._under_way = samples

    def _check_is_alike(self) -> None:
        """Checks that the signatures of the run are true of what this machine computes."""
        where = f"the worker on {platform.node()}"
        if self._version != __version__:
            raise JobError(f"{where} has dialeval {__version__}, this machine {self._version}")
        for name, expected in self._weights.items():
            try:
                found = self._models.fingerprint(name)
            except DialevalError as error:
                raise JobError(f"{where}: {error}") from error
            if found != expected:
                raise JobError(
                    f"{where} has other weights of {name!r} ({found[:8]}) than this machine"
                    f" ({expected[:8]}). On both: dialeval models get {name}"
                )


TRIES = 3
"""Workers that a chunk may cost."""

LOOK_SECONDS = 1.0
"""How often workers are asked how far they are."""


@dataclass
class Seat:
    """A worker, the chunks that it was given (the first of them is in hand), and how far it is."""

    actor: Any
    queue: deque[tuple[Chunk, Any]] = field(default_factory=deque)
    look: Any = None
    under_way: int = 0

    def give(self, chunk: Chunk) -> None:
        self.queue.append((chunk, self.actor.score.remote(chunk)))


class RayWorkers:
    """Workers on the cluster at `address` (by default $RAY_ADDRESS), or on this machine.

    count  how many; by default one for each GPU if models are asked and there are any, else one
           for each core
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        models: ModelSource | None,
        *,
        address: str = "",
        count: int | None = None,
    ) -> None:
        self._ray = import_ray()
        self._metrics = list(metrics)
        self._models = models or NoModels()
        self._asks = any(metric.models() for metric in self._metrics)
        self._address = address or os.environ.get("RAY_ADDRESS", "")
        self._count = count
        self._queue_length = 1 if self._asks else 2
        """Chunks per worker. Where models compute for seconds, waiting for the next one is nothing;
        a second one would only make other workers wait at the end."""
        self._seats: list[Seat] = []
        self._again: deque[Chunk] = deque()
        self._deaths: Counter[int] = Counter()

    def score(
        self, chunks: Iterator[Chunk], under_way: Callable[[int], None]
    ) -> Generator[ScoredChunk, None, None]:
        """Scores on the cluster, which exists from the first chunk to the last; a finished run
        starts none."""
        first = next(chunks, None)
        if first is None:
            return
        with cluster(self._address, self._count):
            start = self._actor_maker()
            self._seats = [Seat(start()) for _ in range(self._count or 0)]
            try:
                yield from self._score(chain([first], chunks), under_way, start)
            finally:
                for seat in self._seats:
                    self._ray.kill(seat.actor)

    def report(self) -> Mapping[str, Any]:
        if not self._seats:
            return {}
        return {"workers": {"ray": len(self._seats), "lost": self._deaths.total()}}

    def _actor_maker(self) -> Callable[[], Any]:
        """Settles how many workers there will be, and what starts one."""
        there = self._ray.cluster_resources()
        cores, gpus = int(there.get("CPU", 0)), int(there.get("GPU", 0))
        unit, room = ("GPU", gpus) if self._asks and gpus else ("core", cores)
        self._count = self._count or max(1, room)
        if self._count > room:
            raise UsageError(
                f"{self._count} workers take a {unit} each, but the cluster has {room}"
            )
        actor = self._ray.remote(
            num_cpus=1, num_gpus=int(unit == "GPU"), concurrency_groups={"look": 1}
        )(Worker)
        weights = fingerprints(self._metrics, self._models)
        arguments = [self._ray.put(one) for one in (self._metrics, self._models, weights)]
        return lambda: actor.remote(*arguments, __version__)

    def _score(
        self,
        chunks: Iterator[Chunk],
        under_way: Callable[[int], None],
        start: Callable[[], Any],
    ) -> Iterator[ScoredChunk]:
        while True:
            self._fill(chunks)
            in_hand = {seat.queue[0][1]: seat for seat in self._seats if seat.queue}
            if not in_hand:
                return
            finished, _ = self._ray.wait(list(in_hand), timeout=LOOK_SECONDS)
            for answer in finished:
                seat = in_hand[answer]
                if scored := self._collect(seat, answer):
                    yield scored
                else:
                    seat.actor, seat.look = start(), None
            if not finished and self._asks:
                under_way(self._look())

    def _fill(self, chunks: Iterator[Chunk]) -> None:
        """Gives every worker chunks, those first that have none."""
        while True:
            seat = min(self._seats, key=lambda seat: len(seat.queue))
            if len(seat.queue) >= self._queue_length:
                return
            chunk = self._again.popleft() if self._again else next(chunks, None)
            if chunk is None:
                return
            seat.give(chunk)

    def _collect(self, seat: Seat, answer: Any) -> ScoredChunk | None:
        """Returns the result of the worker; None if it is dead, and its chunks have to be
        repeated."""
        lost = self._ray.exceptions
        try:
            scored: ScoredChunk = self._ray.get(answer)
        except (lost.RayActorError, lost.ObjectLostError, lost.OutOfMemoryError) as error:
            self._bury(seat, error)
            return None
        except lost.RayTaskError as error:
            if isinstance(error.cause, DialevalError):
                raise error.cause from None
            raise
        seat.queue.popleft()
        seat.under_way = 0
        return scored

    def _bury(self, seat: Seat, error: Exception) -> None:
        """Only the chunk in hand can be to blame; those behind it are merely done elsewhere."""
        with suppress(Exception):  # it may be half dead: unreachable, or without its object store
            self._ray.kill(seat.actor)
        number = seat.queue[0][0].number
        self._deaths[number] += 1
        if self._deaths[number] >= TRIES:
            samples = seat.queue[0][0].samples
            raise JobError(
                f"{TRIES} workers died over the samples {samples[0].id!r} to {samples[-1].id!r}."
                f" Is there too little memory? The last one: {first_line(error)}"
            ) from error
        self._again.extend(chunk for chunk, _ in seat.queue)
        seat.queue.clear()
        seat.under_way = 0

    def _look(self) -> int:
        """Returns how many samples of the current chunks are done. A worker that does not answer at
        once is asked again the next time."""
        for seat in self._seats:
            if seat.queue and seat.look is None:
                seat.look = seat.actor.under_way.options(concurrency_group="look").remote()
        asked = {seat.look: seat for seat in self._seats if seat.look is not None}
        if asked:
            answered, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0.2)
            for answer in answered:
                asked[answer].look = None
                with suppress(self._ray.exceptions.RayError):  # `_collect` will hear of it
                    asked[answer].under_way = self._ray.get(answer)
        return sum(seat.under_way for seat in self._seats if seat.queue)


OBJECT_STORE = 256 << 20
"""Bytes of shared memory of a cluster on this machine: the chunks on their way to its workers."""


def import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise UsageError("Ray is not here. Install: pip install 'dialeval[ray]'") from error


@contextmanager
def cluster(address: str = "", workers: int | None = None) -> Iterator[None]:
    """Yields the cluster at an address; without one, a cluster on this machine that ends with the
    block.

    A program that called `ray.init` itself keeps its cluster, and is left connected to it.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    if address:
        connect(ray, address)
    else:
        _start_here(ray, workers)
    try:
        yield
    finally:
        ray.shutdown()


def connect(ray: Any, address: str) -> None:
    if "://" in address:
        raise UsageError(
            f"--ray-address {address}: expected HOST:PORT or auto. Run dialeval on a machine of the"
            " cluster: Ray Client (ray://) is not supported."
        )
    if address != "auto":
        _check_is_there(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise UsageError(
            f"no Ray cluster can be joined at {address}: {first_line(error)}. It needs a node of"
            " the cluster on this machine (ray start --address=...)."
        ) from error


def _check_is_there(address: str) -> None:
    """Ray itself would go on trying for many minutes."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise UsageError(f"--ray-address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"no Ray cluster answers at {address}: {first_line(error)}") from error


def _start_here(ray: Any, workers: int | None) -> None:
    cores = os.cpu_count() or 1
    if workers and workers > cores:
        raise UsageError(f"{workers} workers take a core each, but this machine has {cores}")
    # Ray sends usage reports unless told otherwise; nothing leaves the machine unless asked.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        log_to_driver=False,
        logging_level="error",
    )


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
