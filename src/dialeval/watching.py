"""`dialeval watch`: files that come into a folder are scored, into one run per day.

    runs/live/2026-11-18/     a run: everything that came on that day
    runs/live/watched.json    the files that were seen: size, time of change, day, problem

The day of a file is that of its last change when it is first seen. A file that changes later is
read again, and stays in its day. A file that is still being written is left until its size and time
are the same at two looks (`once` looks a single time, and takes files as they are).

A day grows by its new files: what the run of the day holds is taken from there, and only new
samples are scored. (After an update of dialeval or of a model the whole day is scored again, so
that its scores have one signature.) Files that are gone since stay in the run. The new run is made
beside the old one and takes its place when it is whole; a kill at any moment costs at most the day
that was being scored.

All days use the scales that the first run fitted, and the metrics that it was scored with; so they
can be compared, and `dialeval trend runs/live` shows them.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dialeval.errors import DialevalError, UsageError
from dialeval.readers import load
from dialeval.registry import DEFAULT_METRICS, make_metrics
from dialeval.runs.run import Run, open_run
from dialeval.sample import Sample
from dialeval.scoring import score
from dialeval.storage import locked, write_json
from dialeval.strict_json import Fields, read_object

LEDGER = "watched.json"
BETWEEN = "#"
"""Between the file and the id that a sample has in it: files may use the same ids."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Stamp = tuple[int, int]


@dataclass(frozen=True)
class DayScored:
    """A day whose run has grown."""

    day: str
    run: Run
    files: tuple[str, ...]


@dataclass(frozen=True)
class Failed:
    """A file that cannot be read. It is tried again when it changes."""

    file: str
    problem: str


@dataclass
class Watcher:
    """Looks into a folder; `look` scores what is new.

    metrics   those of `dialeval.score`
    reading   what `dialeval.load` is to be told
    scoring   what else `dialeval.score` is to be told
    """

    folder: Path
    out: Path
    metrics: Sequence[str] = DEFAULT_METRICS
    reading: Mapping[str, Any] = field(default_factory=dict)
    scoring: Mapping[str, Any] = field(default_factory=dict)
    _before: dict[str, Stamp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder, self.out = Path(self.folder), Path(self.out)
        if not self.folder.is_dir():
            raise UsageError(
                f"{self.folder} is not a folder: name one into which chats are written"
            )
        make_metrics(self.metrics)  # complains now, not when the first file comes

    def look(self, *, skip_changing: bool = False) -> list[DayScored | Failed]:
        """Scores new and changed files, with `skip_changing` only those that stayed the same since
        the last look."""
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out):
            self._recover()
            ledger = _read_ledger(self.out / LEDGER, self.metrics)
            fresh = self._fresh(ledger, skip_changing)
            found: list[DayScored | Failed] = []
            by_day: dict[str, list[str]] = {}
            for name, (size, changed) in fresh.items():
                known = ledger["files"].get(name, {})
                day = known.get("day") or _day(changed)
                entry = {"size": size, "changed": changed, "day": day, "problem": ""}
                try:
                    for _ in self._samples(name):
                        pass
                    by_day.setdefault(day, []).append(name)
                except DialevalError as error:
                    entry["problem"] = str(error)
                    found.append(Failed(name, str(error)))
                ledger["files"][name] = entry
            for day, names in sorted(by_day.items()):
                found.append(DayScored(day, self._score(day, names), tuple(names)))
            if fresh:
                write_json(self.out / LEDGER, ledger)
        return found

    def _fresh(self, ledger: Mapping[str, Any], skip_changing: bool) -> dict[str, Stamp]:
        """Files that were not seen as they are now."""
        stamps = dict(self._stamps())
        quiet = {name for name, stamp in stamps.items() if self._before.get(name) == stamp}
        self._before = stamps
        return {
            name: stamp
            for name, stamp in stamps.items()
            if (not skip_changing or name in quiet) and stamp != _stamp(ledger["files"].get(name))
        }

    def _stamps(self) -> Iterator[tuple[str, Stamp]]:
        own = self.out.resolve()
        for path in sorted(self.folder.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self.folder).parts)
            if path.is_file() and not hidden and own not in path.resolve().parents:
                status = path.stat()
                name = path.relative_to(self.folder).as_posix()
                yield name, (status.st_size, status.st_mtime_ns)

    def _samples(self, name: str) -> Iterator[Sample]:
        """Yields the samples of a file, with its name before their ids and dialogues."""
        for sample in load(self.folder / name, **self.reading):
            dialogue = f"{name}{BETWEEN}{sample.dialogue}" if sample.dialogue else ""
            yield replace(sample, id=f"{name}{BETWEEN}{sample.id}", dialogue=dialogue)

    def _score(self, day: str, names: Sequence[str]) -> Run:
        """The run of a day with these files; what it had of them before is replaced."""
        place, new = self.out / day, self._new(day)
        starts = tuple(f"{name}{BETWEEN}" for name in names)

        before = open_run(place) if place.exists() else None

        def samples() -> Iterator[Sample]:
            if before:
                yield from (one for one in before.samples() if not one.id.startswith(starts))
            for name in names:
                yield from self._samples(name)

        first = next(iter(sorted(self.out.glob("[!.]*/manifest.json"))), None)
        scales = open_run(first.parent).calibrations if first else None
        score(
            samples(),
            self.metrics,
            out=new,
            overwrite=True,
            calibrations=scales or None,
            known=before,
            **self.scoring,
        )
        if place.exists():
            place.rename(self._old(day))
        new.rename(place)
        shutil.rmtree(self._old(day), ignore_errors=True)
        return open_run(place)

    def _new(self, day: str) -> Path:
        return self.out / f".{day}.new"

    def _old(self, day: str) -> Path:
        return self.out / f".{day}.old"

    def _recover(self) -> None:
        """Ends what a kill between the two renames left."""
        for old in self.out.glob(".*.old"):
            place = self.out / old.name[1 : -len(".old")]
            if not place.exists():
                old.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        for new in self.out.glob(".*.new"):
            shutil.rmtree(new, ignore_errors=True)


def watch(
    folder: str | Path,
    out: str | Path,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    once: bool = False,
    every: float = 10.0,
    tell: Callable[[DayScored | Failed], None] = lambda found: None,
    reading: Mapping[str, Any] | None = None,
    scoring: Mapping[str, Any] | None = None,
) -> list[DayScored | Failed]:
    """Scores files as they come into a folder, into one run per day under `out`.

    With `once` it looks a single time, and returns what it found: for a scheduler. Otherwise it
    looks at an interval of `every` seconds, tells what it found, and does not return. `reading`
    goes to `dialeval.load` and `scoring` to `dialeval.score`.
    """
    watcher = Watcher(Path(folder), Path(out), metrics, reading or {}, scoring or {})
    while True:
        found = watcher.look(skip_changing=not once)
        for one in found:
            tell(one)
        if once:
            return found
        time.sleep(every)


def _day(changed: int) -> str:
    return datetime.fromtimestamp(changed / 1e9).date().isoformat()


def _stamp(entry: Mapping[str, Any] | None) -> Stamp | None:
    return (entry["size"], entry["changed"]) if entry else None


def _read_ledger(path: Path, metrics: Sequence[str]) -> dict[str, Any]:
    if not path.exists():
        return {"metrics": list(metrics), "files": {}}
    ledger = read_object(path, "the list of watched files")
    fields = Fields(path)
    known = fields.texts(ledger.get("metrics"), "metrics")
    for name, entry in fields.mapping(ledger.get("files"), "files").items():
        given = fields.mapping(entry, f"files.{name}")
        fields.count(given.get("size"), f"files.{name}.size")
        fields.count(given.get("changed"), f"files.{name}.changed")
        day = fields.text(given.get("day"), f"files.{name}.day")
        if not _DAY.fullmatch(day):  # it becomes the name of a directory
            fields.wrong(f"files.{name}.day", "is no day such as 2026-11-18")
    fields.complain()
    if list(known) != list(metrics):
        raise UsageError(
            f"{path.parent} is watched with other metrics: {', '.join(known)}. Name the same ones,"
            " or choose another -o."
        )
    return ledger
