"""Samples that an earlier run holds are not scored again: `dialeval.score(..., known=RUN)`.

`Known` stands between a job and what scores its chunks. That gets the samples of a chunk that are
new; the rows of the others are those of the earlier run, with raw values. The run that comes out is
the one that scoring everything would give, byte for byte.

An earlier run serves only if its metrics, models, options and releases are those of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.engine.answers import AnswerCounts
from dialeval.engine.chunk import Chunk, ScoredChunk, ThisProcess, count_again
from dialeval.metric import Metric
from dialeval.runs.columns import raw_table, run_schema
from dialeval.runs.directory import shard_bytes
from dialeval.runs.run import Run
from dialeval.runs.system_scores import Pools

if TYPE_CHECKING:
    import pyarrow as pa


class Known:
    """Scores what `run` does not hold, and takes the rest from it."""

    def __init__(self, workers: ThisProcess, run: Run, metrics: Sequence[Metric]) -> None:
        import pyarrow as pa

        self._workers = workers
        self._metrics = metrics
        schema = run_schema(metrics)
        batches = [batch.select(schema.names) for batch in run.batches()]
        self._table: pa.Table = raw_table(pa.Table.from_batches(batches).cast(schema), metrics)
        self._rows = {sample.digest(): row for row, sample in enumerate(run.samples())}

    def score(
        self, chunks: Iterator[Chunk], under_way: Callable[[int], None]
    ) -> Generator[ScoredChunk, None, None]:
        waiting: dict[int, Chunk] = {}
        whole: list[Chunk] = []

        def new() -> Iterator[Chunk]:
            for chunk in chunks:
                rest = [one for one in chunk.samples if one.digest() not in self._rows]
                if rest:
                    waiting[chunk.number] = chunk
                    yield Chunk(chunk.number, rest, chunk.digest)
                else:
                    whole.append(chunk)

        for scored in self._workers.score(new(), under_way):
            yield self._joined(waiting.pop(scored.number), scored)
        for chunk in whole:
            yield self._joined(chunk, None)

    def _joined(self, chunk: Chunk, scored: ScoredChunk | None) -> ScoredChunk:
        """Returns the shard of a chunk: rows of the earlier run, and those that were scored."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        known = [one for one in chunk.samples if one.digest() in self._rows]
        places = pa.array([self._rows[one.digest()] for one in known], pa.int64())
        tables = [self._table.take(places)]
        if scored is not None:
            fresh = pq.read_table(pa.BufferReader(scored.shard))
            tables.append(fresh.replace_schema_metadata(None))
        old, new = iter(range(len(known))), iter(range(len(known), len(chunk.samples)))
        order = [next(old if one.digest() in self._rows else new) for one in chunk.samples]
        table = pa.concat_tables(tables).take(order).combine_chunks()
        pools = scored.pools if scored else Pools(self._metrics)
        pools.merge(count_again(known, self._metrics))
        return ScoredChunk(
            chunk.number,
            len(chunk.samples),
            shard_bytes(table, chunk.digest),
            pools,
            scored.counts if scored else AnswerCounts(),
        )

    def report(self) -> Mapping[str, Any]:
        return self._workers.report()
