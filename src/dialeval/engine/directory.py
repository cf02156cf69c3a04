"""The directory of a run while it is being written.

    runs/first/
      job.json         what was asked for; a resumed job must ask for the same
      shards/          finished chunks, while the job is running
      history.jsonl    when it was started, resumed and finished (the only file with clock times)
      scores.parquet   samples and scores; of a very large run a directory of parts, which pandas,
                       polars, DuckDB and Spark read as one table, too
      manifest.json    signatures, options, data digest, versions, counts, calibration, summary

A run without a manifest is unfinished. One process at a time may write.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.storage import atomic_path, held, write_json

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST_KEY = b"dialeval.samples.sha256"
CONTENTS = ("job.json", "shards", "history.jsonl", "scores.parquet", "manifest.json", ".lock")


class RunDirectory:
    """Claims, writes and finishes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def scores(self) -> Path:
        return self.path / "scores.parquet"

    def fresh_parts(self, count: int) -> list[Path]:
        """Where the scores are to be written; what an interrupted end left there is removed."""
        if self.scores.is_dir():
            shutil.rmtree(self.scores)
        if count == 1:
            return [self.scores]
        self.scores.unlink(missing_ok=True)
        self.scores.mkdir()
        return [self.scores / f"part-{number:05d}.parquet" for number in range(count)]

    @contextmanager
    def exclusive(self, overwrite: bool = False) -> Iterator[None]:
        """Holds the directory, for a new run or the same one."""
        self._check_is_run_or_empty()
        with held(self.path):
            if overwrite:
                self._clear()
            yield

    def start(self, job: Mapping[str, Any]) -> None:
        """Begins a run, or continues one that asked for the same."""
        path = self.path / "job.json"
        if path.exists():
            earlier = json.loads(path.read_text(encoding="utf-8"))
            for key, value in job.items():
                if earlier.get(key) != value:
                    raise UsageError(
                        f"{self.path} holds an unfinished run with other {key}:\n"
                        f"{_difference(earlier.get(key), value)}\nRepeat the earlier command to"
                        " resume it, add --overwrite to start again, or choose another -o."
                    )
            self.record("resumed")
        else:
            write_json(path, job)
            self.record("started")
        (self.path / "shards").mkdir(exist_ok=True)

    def shard(self, number: int) -> Path:
        return self.path / "shards" / f"{number:06d}.parquet"

    def holds_shard(self, number: int, digest: bytes) -> bool:
        """Is this chunk there already? Raises if another chunk lies in its place."""
        import pyarrow.parquet as pq

        path = self.shard(number)
        if not path.exists():
            return False
        if (pq.read_schema(path).metadata or {}).get(DIGEST_KEY) != digest:
            raise UsageError(
                f"{self.path} holds an unfinished run of other data (they differ in chunk"
                f" {number + 1}). Give the same input to resume it, add --overwrite to start"
                " again, or choose another -o."
            )
        return True

    def write_shard(self, number: int, shard: bytes) -> None:
        with atomic_path(self.shard(number)) as temporary:
            temporary.write_bytes(shard)

    def finish(self, manifest: Mapping[str, Any], **history: Any) -> None:
        """The manifest makes the run complete; the shards are not needed any more."""
        write_json(self.manifest, manifest)
        shutil.rmtree(self.path / "shards", ignore_errors=True)
        self.record("finished", **history)

    def record(self, event: str, **more: Any) -> None:
        entry = {"event": event, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **more}
        with (self.path / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _check_is_run_or_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; a run is a directory. Choose another -o.")
        if not self.path.is_dir():
            return
        foreign = [entry.name for entry in self.path.iterdir() if not self._is_ours(entry.name)]
        if foreign:
            raise UsageError(
                f"{self.path} is not a run: it holds {sorted(foreign)[0]!r}. Choose another -o."
            )

    @staticmethod
    def _is_ours(name: str) -> bool:
        temporary = name.startswith((".scores.parquet.", ".manifest.json.", ".job.json."))
        return name in CONTENTS or temporary

    def _clear(self) -> None:
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != ".lock":
                entry.unlink()


def _difference(there: Any, here: Any) -> str:
    """What only one of them has, a line each: of two long lists most is the same."""
    old, new = _entries(there), _entries(here)
    lines = [f"  there: {entry}" for entry in old if entry not in new]
    lines += [f"  here:  {entry}" for entry in new if entry not in old]
    return "\n".join(lines or ["  the same ones in another order"])


def _entries(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name} {json.dumps(one)}" for name, one in value.items()]
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def shard_bytes(table: pa.Table, digest: bytes) -> bytes:
    """A finished chunk as the file that is to lie in `shards/`, labelled with its digest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labelled = table.replace_schema_metadata({DIGEST_KEY: digest})
    with pa.BufferOutputStream() as file:
        pq.write_table(labelled, file, compression="zstd")
        shard: bytes = file.getvalue().to_pybytes()
    return shard
