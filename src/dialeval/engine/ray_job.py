"""A scoring job on a Ray cluster: workers read, score and write; this process only keeps the order.

1. Tasks read the pieces of the input: what is wrong with it, the digests of its samples, their ids.
   Ids that occur twice are found by a group-by in shares: each share of the hashes is one task.
2. The pieces are cut into blocks. A block that has a shard of the same digest is finished: a killed
   run continues after the blocks that are there, whichever they are.
3. Workers, one actor each with the models, take a piece whenever they are free, read it, score its
   blocks and write a shard for each into the run directory, which may be a URL.
4. Tasks make files of scores of the shards, each of some blocks. Values of scales, sums and pools
   are reduced in a tree, eight at a time. The manifest comes last.

This process handles names, digests of blocks, and sums: what it holds grows with the number of
blocks and pieces. Samples do not pass through it, unless it is the only one that has them (standard
input, `--limit`, lists), and their digests and ids do not either (`Heaps`).

A worker that dies costs the block it had in hand, which another one scores again. A piece that
costs `TRIES` workers ends the job.

Plain actors and tasks rather than Ray Data: for each block, its executor takes twenty times the
processor time here, and samples pass through shared memory (`benchmarks/ray_workers.py
--executors`, docs/scaling.md).
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from dialeval.engine.answers import NoModels
from dialeval.engine.job import Job
from dialeval.engine.ray import cluster, first_line, import_ray
from dialeval.engine.ray_reading import (
    JOINS,
    Digester,
    Piece,
    Scanned,
    Settings,
    Spooled,
    divided,
    joined,
    repeated,
    scan,
)
from dialeval.engine.ray_worker import (
    Block,
    Done,
    Part,
    Work,
    Worker,
    closed,
    finish,
    fit,
    join_values,
    merge,
    raw_values,
)
from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.metric import Metric
from dialeval.question import ModelSource
from dialeval.sample import Sample
from dialeval.scores import Calibration

TRIES = 3
"""Workers that a piece may cost."""

LOOK_SECONDS = 1.0
"""How often workers are asked how far they are."""

BLOCK = 1 << 14
BLOCK_WITH_MODELS = 1 << 10
"""Samples of a shard, at most: what a killed run has to score again, for each worker."""

SMALLEST_PIECE, LARGEST_PIECE = 1 << 15, 1 << 22
"""Bytes of a file that one worker takes at a time."""

TURNS_OF_A_WORKER = 16
"""Pieces for each worker, where the input is large enough: the last ones end at about one time."""

PART = 1 << 17
"""Samples of a file of scores, or a few more: smaller than those of the local engine, as each is
made by one task."""

WAYS = 8
"""Parts that a task of the tree merges."""

SHARES = 16
"""Tasks that look for ids that occur twice, at most."""

HEAP = 1 << 19
"""Samples whose digests lie in one object of the cluster, at most: 16 MB."""


@dataclass
class Seat:
    """A worker, the piece that it has in hand, and how far it is."""

    actor: Any
    work: Work | None = None
    answer: Any = None
    look: Any = None
    under_way: int = 0


@dataclass(frozen=True)
class Heap:
    """What was found in consecutive pieces (`Found`), in the memory of the cluster."""

    level: int
    pieces: int
    rows: int
    found: Any


@dataclass(frozen=True)
class Parts:
    """A heap that was taken apart: digests, those without names, tables of ids."""

    pieces: int
    refs: Sequence[Any]


class Heaps:
    """What scans found, in order, in the memory of the cluster.

    Each result costs this process some bytes, and Ray as many again for the task that it would
    repeat if the result was lost. Eight results are therefore joined by a task, again and again,
    and what is known here is a heap for half a million samples, and the last few.
    """

    def __init__(self, task: Any) -> None:
        self._task = task
        self.all: list[Heap] = []

    def add(self, rows: int, found: Any) -> None:
        self.all.append(Heap(0, 1, rows, found))
        while len(last := self.all[-JOINS:]) == JOINS:
            level, together = last[0].level, sum(heap.rows for heap in last)
            if together > HEAP or any(heap.level != level for heap in last):
                return
            pieces = sum(heap.pieces for heap in last)
            joined = self._task.remote(*(heap.found for heap in last))
            self.all[-JOINS:] = [Heap(level + 1, pieces, together, joined)]

    def parts(self, task: Any) -> list[Parts]:
        """Takes all heaps apart, and lets go of them."""
        parts = [Parts(heap.pieces, task.remote(heap.found)) for heap in self.all]
        self.all.clear()
        return parts


@dataclass
class Plan:
    """What was found in the input."""

    work: list[Work] = field(default_factory=list)
    """Unfinished blocks only."""
    rows: list[int] = field(default_factory=list)
    """Samples of each block."""
    sha256: str = ""


class RayJob(Job):
    """Scores on the cluster at `address` (by default $RAY_ADDRESS), or on this machine.

    count     how many workers; by default one for each GPU if models are asked and there are any,
              else one for each core
    division  `readers.pieces`, for samples of `dialeval.load`; others are read by this process
    """

    engine: ClassVar[str] = "ray"

    def __init__(
        self,
        directory: Path,
        metrics: Sequence[Metric],
        *,
        models: ModelSource | None = None,
        address: str = "",
        count: int | None = None,
        division: Any = None,
        block: int | None = None,
        piece: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(directory, metrics, models=models, **options)
        self._ray = import_ray()
        self._asks = any(metric.models() for metric in self.metrics)
        self._address = address or os.environ.get("RAY_ADDRESS", "")
        self._count = count
        self._division = division
        self._block = block or (BLOCK_WITH_MODELS if self._asks else BLOCK)
        self._piece = piece
        self._seats: list[Seat] = []
        self._again: deque[Work] = deque()
        self._deaths: Counter[int] = Counter()
        self._workers = 0

    def _run(self, samples: Iterable[Sample]) -> None:
        with self._cluster():
            unit = self._settle_count()
            self._start({"block": self._block, "piece": self._size_of_pieces(samples)})
            settings = self._settings()
            told = self._ray.put(settings)
            plan = self._plan(samples, told, self._label)
            self._score(plan, told, unit)
            self._finish_on_cluster(plan, settings, told)

    def _data_digest(self, samples: Iterable[Sample]) -> str:
        if self._division is None:
            return super()._data_digest(samples)
        with self._cluster():
            self._settle_count()
            self._piece = self._piece or LARGEST_PIECE
            # nothing is put into a run that is finished
            told = self._ray.put(replace(self._settings(), spool=0))
            plan = self._plan(samples, told, b"", reading_only=True)
        self.resumed = sum(plan.rows)
        return plan.sha256

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        with cluster(self._address, self._count):
            yield

    def _settings(self) -> Settings:
        return Settings(
            self.directory.path.absolute(),
            self.metrics,
            self._weights,
            self._chunk,
            self._block,
            bool(self._scaled),
            self._scales_ratings,
        )

    def _settle_count(self) -> str:
        """Settles how many workers there will be; returns what each of them takes."""
        there = self._ray.cluster_resources()
        cores, gpus = int(there.get("CPU", 0)), int(there.get("GPU", 0))
        unit, room = ("GPU", gpus) if self._asks and gpus else ("core", cores)
        self._workers = self._count or max(1, room)
        if self._workers > room:
            raise UsageError(
                f"{self._workers} workers take a {unit} each, but the cluster has {room}"
            )
        return unit

    def _size_of_pieces(self, samples: Iterable[Sample]) -> int:
        """Returns bytes for files, samples for what this process reads; a run that was begun keeps
        the size that it has."""
        earlier = self.directory.earlier_job()
        if self._piece is None and earlier.get("engine") == self.engine:
            self._piece = int(earlier["piece"])
        if self._piece is not None:
            return self._piece
        turns = TURNS_OF_A_WORKER * self._workers
        if self._division is not None:
            size = self._division.size(samples)
            self._piece = min(LARGEST_PIECE, max(SMALLEST_PIECE, size // turns))
        else:
            length = len(samples) if isinstance(samples, Sequence) else 0
            self._piece = min(self._block, max(self._chunk, length // turns))
        return self._piece

    # Reading

    def _plan(
        self, samples: Iterable[Sample], told: Any, label: bytes, reading_only: bool = False
    ) -> Plan:
        if self._division is None:
            pieces: list[Any] = self._spool(samples)
        else:
            pieces = self._division.divide(samples, self._piece)
            open_ends = [piece for piece in pieces if piece.to_measure]
            measured = self._in_turn(self._task(_measure), ((piece,) for piece in open_ends))
            spans = [next(measured) if piece.to_measure else None for piece in pieces]
            pieces = self._division.place(pieces, spans)
        shares = 0 if self._division is None else min(SHARES, 2 * self._workers, len(pieces))
        heaps = Heaps(self._task(joined))
        scans: list[Scanned] = []
        for scanned, found in self._in_turn(
            self._task(scan, num_returns=2),
            ((told, number, piece, shares) for number, piece in enumerate(pieces)),
            first=True,
        ):
            scans.append(scanned)
            heaps.add(scanned.rows, found)
            self._read += scanned.rows
            self._progress(0, self._read)
        parts = heaps.parts(self._task(divided, num_returns=2 + shares))
        left_out = self._left_out(samples, pieces, scans, parts) if self._division else {}
        return self._blocks(pieces, scans, parts, left_out, label, reading_only)

    def _spool(self, samples: Iterable[Sample]) -> list[Piece]:
        """Puts samples that only this process has where workers can read them."""
        pieces: list[Piece] = []
        remaining, place = iter(samples), self._settings().place
        while some := list(islice(remaining, self._piece)):
            first = len(pieces) * (self._piece or 0)
            name = f"samples {first + 1:,} to {first + len(some):,}"
            pieces.append(Spooled.write(place, name, f"given-{len(pieces):06d}", some))
        return pieces

    def _left_out(
        self,
        samples: Iterable[Sample],
        pieces: Sequence[Piece],
        scans: Sequence[Scanned],
        parts: Sequence[Parts],
    ) -> dict[int, set[int]]:
        """Returns the rows of each piece whose id occurred before; tells what is wrong with the
        input as one pass over it would have."""
        group = self._task(repeated)
        tables = (own.refs[2:] for own in parts)
        shares = [group.remote(*share) for share in zip(*tables, strict=True)]
        twice = [
            self._division.Twice(row["piece"], row["row"], row["line"], row["id"])
            for share in shares
            for row in self._get(share).to_pylist()
        ]
        self._division.gather(samples, pieces, [one.report for one in scans], twice)
        rows: dict[int, set[int]] = {}
        for one in twice:
            rows.setdefault(one.piece, set()).add(one.row)
        return rows

    def _blocks(
        self,
        pieces: Sequence[Any],
        scans: Sequence[Scanned],
        parts: Sequence[Parts],
        left_out: Mapping[int, set[int]],
        label: bytes,
        reading_only: bool,
    ) -> Plan:
        """Cuts the pieces into blocks, and compares them with the shards that are there."""
        there = {} if reading_only else self.directory.blocks()
        plan = Plan()
        self._read = 0
        with closing(self._digests(scans, parts, left_out, label)) as digests:
            for number, scanned in enumerate(scans):
                self._any_order += scanned.order
                left, before = left_out.get(number, set()), 0
                for source, rows in scanned.sources:
                    own = frozenset(row - before for row in left if before <= row < before + rows)
                    before += rows
                    blocks = self._cut(plan, rows - len(own), next(digests), there)
                    if blocks:
                        about = (blocks[0].first + 1, blocks[-1].last)
                        work = Work(
                            len(plan.work), source or pieces[number], own, blocks, about, label
                        )
                        plan.work.append(work)
            plan.sha256 = next(digests)
        return plan

    def _digests(
        self,
        scans: Sequence[Scanned],
        parts: Sequence[Parts],
        left_out: Mapping[int, set[int]],
        label: bytes,
    ) -> Generator[Any, None, None]:
        """Yields the digests of the blocks of each source, and in the end that of all samples."""
        digester = self._ray.remote(num_cpus=1)(Digester).remote(label, self._block)

        def calls() -> Iterator[Sequence[Any]]:
            piece = 0
            for own in parts:
                sources: list[int] = []
                rows: list[int] = []
                before = 0
                for number in range(piece, piece + own.pieces):
                    sources += [count for _, count in scans[number].sources]
                    rows += [before + row for row in sorted(left_out.get(number, ()))]
                    before += scans[number].rows
                piece += own.pieces
                yield sources, rows, own.refs[0], own.refs[1] if rows else b""

        try:
            for own, less in self._in_turn(digester.blocks, calls()):
                self._any_order -= less
                yield from own
            yield self._get(digester.whole.remote())
        except self._ray.exceptions.RayActorError as error:
            raise JobError(
                "the process that compares the input with the run died. Repeat the command."
                f" Ray says: {first_line(error)}"
            ) from error
        finally:
            self._ray.kill(digester)

    def _cut(
        self,
        plan: Plan,
        rows: int,
        digests: Sequence[str],
        there: Mapping[int, tuple[str, Path]],
    ) -> tuple[Block, ...]:
        """Returns the unfinished blocks of a source."""
        open_blocks = []
        for first, digest in zip(range(0, rows, self._block), digests, strict=True):
            last = min(first + self._block, rows)
            number = len(plan.rows)
            plan.rows.append(last - first)
            self._read += last - first
            if number not in there:
                open_blocks.append(Block(number, first, last, digest))
            elif there[number][0] == digest:
                self.resumed += last - first
                self._done += last - first
            else:
                raise UsageError(
                    f"{self.directory.path} holds an unfinished run of other data or metrics (they"
                    f" differ in block {number + 1}). Give the same input to resume it, add"
                    " --overwrite to start again, or choose another -o."
                )
        return tuple(open_blocks)

    # Scoring

    def _score(self, plan: Plan, told: Any, unit: str) -> None:
        self._progress(self._done, self._read)
        if not plan.work:
            return
        actor = self._ray.remote(
            num_cpus=1, num_gpus=int(unit == "GPU"), concurrency_groups={"look": 1}
        )(Worker)
        models = self._ray.put(self._models if self._asks else NoModels())

        def start() -> Any:
            return actor.remote(told, models)

        waiting = deque(plan.work)
        self._seats = [Seat(start()) for _ in range(min(self._workers, len(waiting)))]
        try:
            while self._fill(waiting):
                self._wait(start)
        finally:
            for seat in self._seats:
                self._ray.kill(seat.actor)

    def _fill(self, waiting: deque[Work]) -> bool:
        """Gives every free worker a piece; returns whether any worker has one."""
        for seat in self._seats:
            if seat.work is None and (self._again or waiting):
                seat.work = self._again.popleft() if self._again else waiting.popleft()
                seat.answer = seat.actor.score.remote(seat.work)
        return any(seat.work is not None for seat in self._seats)

    def _wait(self, start: Callable[[], Any]) -> None:
        in_hand = {seat.answer: seat for seat in self._seats if seat.work is not None}
        finished, _ = self._ray.wait(list(in_hand), timeout=LOOK_SECONDS)
        for answer in finished:
            self._collect(in_hand[answer], start)
        if not finished and self._asks:
            self._progress(self._done + self._look(), self._read)

    def _collect(self, seat: Seat, start: Callable[[], Any]) -> None:
        lost = self._ray.exceptions
        try:
            done: Done = self._get(seat.answer)
        except (lost.RayActorError, lost.ObjectLostError, lost.OutOfMemoryError) as error:
            self._bury(seat, error)
            seat.actor, seat.look = start(), None
        else:
            self._counts.add(done.counts)
            self._tell_done(done.samples)
        seat.work, seat.under_way = None, 0

    def _bury(self, seat: Seat, error: Exception) -> None:
        with suppress(Exception):  # it may be half dead: unreachable, or without its object store
            self._ray.kill(seat.actor)
        work = seat.work
        assert work is not None
        self._deaths[work.number] += 1
        if self._deaths[work.number] >= TRIES:
            first, last = work.rows
            raise JobError(
                f"{TRIES} workers died over {work.source.name}, rows {first:,} to {last:,}."
                f" Is there too little memory? The last one: {first_line(error)}"
            ) from error
        self._again.append(replace(work, again=True))

    def _look(self) -> int:
        """Returns how many samples of the current pieces are done. A worker that does not answer at
        once is asked again the next time."""
        for seat in self._seats:
            if seat.work is not None and seat.look is None:
                seat.look = seat.actor.under_way.options(concurrency_group="look").remote()
        asked = {seat.look: seat for seat in self._seats if seat.look is not None}
        if asked:
            answered, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0.2)
            for answer in answered:
                asked[answer].look = None
                with suppress(self._ray.exceptions.RayError):  # `_collect` will hear of it
                    asked[answer].under_way = self._ray.get(answer)
        return sum(seat.under_way for seat in self._seats if seat.work is not None)

    # The end

    def _finish_on_cluster(self, plan: Plan, settings: Settings, told: Any) -> None:
        there = self.directory.blocks()
        shards = [there[number][1] for number in range(len(plan.rows))]
        groups = _parts(shards, plan.rows)
        calibrations = self._fitted(groups, told)
        paths = self.directory.fresh_parts(len(groups))
        end = self._task(finish)
        scales = self._ray.put(calibrations)
        targets = [settings.place / path.relative_to(self.directory.path) for path in paths]
        refs = [
            end.remote(told, scales, group, target)
            for group, target in zip(groups, targets, strict=True)
        ]
        whole = self._reduced(refs, self._task(merge), told)
        part: Part = self._get(self._task(closed).remote(whole))
        data = {"sha256": plan.sha256, **self._about_data()}
        self._write_manifest(data, part.counts, part.summaries, calibrations, part, part.files)

    def _fitted(self, groups: Sequence[Sequence[Path]], told: Any) -> dict[str, Calibration]:
        columns = {name: kind for name, (kind, _) in self._to_fit().items()}
        if not columns:
            return self._scales({})
        values = self._task(raw_values)
        refs = [values.remote(told, list(columns), group) for group in groups]
        joined = self._reduced(refs, self._task(join_values))
        return self._scales(self._get(self._task(fit).remote(columns, joined)))

    def _reduced(self, refs: list[Any], task: Any, *told: Any) -> Any:
        """Returns what a tree of tasks makes of these."""
        while len(refs) > 1:
            refs = [
                task.remote(*told, *refs[first : first + WAYS])
                for first in range(0, len(refs), WAYS)
            ]
        return refs[0]

    def _report(self) -> Mapping[str, Any]:
        return {"workers": {"ray": self._workers, "lost": self._deaths.total()}}

    # Ray

    def _task(self, function: Callable[..., Any], num_returns: int = 1) -> Any:
        return self._ray.remote(num_cpus=1, num_returns=num_returns)(function)

    def _in_turn(
        self, task: Any, calls: Iterable[Sequence[Any]], first: bool = False
    ) -> Iterator[Any]:
        """Yields the results of many calls in their order; a few for each core are under way. With
        `first`, only the first result of each is fetched, and the others stay where they are."""
        most = 4 * max(2, int(self._ray.cluster_resources().get("CPU", 1)))
        under_way: deque[Any] = deque()

        def result(refs: Any) -> Any:
            return (self._get(refs[0]), *refs[1:]) if first else self._get(refs)

        for call in calls:
            under_way.append(task.remote(*call))
            if len(under_way) >= most:
                yield result(under_way.popleft())
        while under_way:
            yield result(under_way.popleft())

    def _get(self, ref: Any) -> Any:
        """Returns a result; an error of ours is raised as what it was on the worker."""
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, DialevalError):
                raise error.cause from None
            raise
        except self._ray.exceptions.WorkerCrashedError as error:
            raise JobError(f"a task died several times: {first_line(error)}") from error


def _measure(piece: Any) -> Any:
    return piece.measure()


def _parts(shards: Sequence[Path], rows: Sequence[int]) -> list[list[Path]]:
    """Returns the shards of each file of scores: at least one file, if need be an empty one."""
    parts: list[list[Path]] = [[]]
    held = 0
    for path, count in zip(shards, rows, strict=True):
        if held >= PART:
            parts.append([])
            held = 0
        parts[-1].append(path)
        held += count
    return parts
