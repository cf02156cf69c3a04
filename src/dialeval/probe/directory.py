"""The directory of a probe, while it is written and when it is read.

runs/probe/
  probe.json        the system, the queries' digest, how they were augmented, the protocol, and how
                    many variants were left out because they are the query again; the sha256 of
                    the samples when they are there
  queries.jsonl     the queries with the variants that are asked
  exchanges.jsonl   every question and reply, a line each
  samples.jsonl     what `dialeval score` reads: there when the probe is done

The directory of `dialeval holistic` is read, too: as dialogues that people rate under four aspects.
HolisticEval, section 5.5: raters judge coherence, fluency, diversity and self-consistency of the
same dialogue. A sample holds all that they need: its context is the history, the query, the answer
and a paraphrase of the query; its response is the second answer; its variants are the query and its
paraphrases with the answer to each.

    dialeval rate runs/bot --qualities coherence,fluency,diversity,consistency

A query has one sample for each system. Paraphrases are those of the first augmenter that has some
(`ws` before `ctg`); random queries are none. A query without a second answer ends with the first,
and one without a group has no variants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dialeval.augment.augmenter import Tally
from dialeval.augment.queries import Query, read_queries
from dialeval.errors import InputError, Problem, UsageError
from dialeval.limits import OWN
from dialeval.probe.exchange import DAMAGED, Exchange, Key, read_exchanges
from dialeval.probe.plan import BASELINE, kind_of
from dialeval.readers import plain_jsonl
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample
from dialeval.storage import atomic_path, locked, sha256_of, write_json
from dialeval.strict_json import parse, read_object
from dialeval.version import __version__

SETTINGS, QUERIES, EXCHANGES, SAMPLES = (
    "probe.json",
    "queries.jsonl",
    "exchanges.jsonl",
    "samples.jsonl",
)
CONTENTS = (SETTINGS, QUERIES, EXCHANGES, SAMPLES, DAMAGED, ".lock")

UNCHANGED = "variants_left_out"
"""Counted when the queries are written, kept for a probe that goes on: no setting."""

DIGEST = "samples_sha256"
"""The digest of `samples.jsonl`, when the probe is finished."""

PROBE_FORMAT = 1
"""Raised when an older dialeval could misread the directory."""


@dataclass(frozen=True)
class Probe:
    """A probe that was opened to be read; `samples` is empty while it is not done."""

    directory: Path
    settings: Mapping[str, Any]
    queries: tuple[Query, ...]
    exchanges: Mapping[Key, Exchange]
    samples: tuple[Sample, ...]


def open_probe(directory: str | Path) -> Probe:
    """Reads what `dialeval probe -o` wrote, finished or not."""
    path = Path(directory)
    settings = read_settings(path)
    if settings is None:
        raise UsageError(f"{path} is not a probe: it has no {SETTINGS}")
    return Probe(
        path,
        settings,
        tuple(read_queries(path / QUERIES, format="queries", largest_record=OWN)),
        read_exchanges(path / EXCHANGES),
        _read_samples(path / SAMPLES, settings),
    )


def check_samples(path: Path, settings: Mapping[str, Any]) -> None:
    """Raises `InputError` where the samples are not those that the probe wrote."""
    known = settings.get(DIGEST)
    if path.is_file() and known is not None and sha256_of(path) != known:
        what = "is damaged: it has another sha256. Repeat the `dialeval probe` command: it is made"
        raise InputError([Problem(str(path), 0, "", f"{what} again")])


def _read_samples(path: Path, settings: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Reads what the exchanges gave; it can be made of them again."""
    problems, samples = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n") if path.exists() else (), 1):
        if not line:
            continue
        try:
            samples.append(Sample.from_doubtful_record(parse(line, path)))
        except (InputError, ValueError):
            what = "is damaged. Repeat the `dialeval probe` command: it is made again"
            problems.append(Problem(str(path), number, "", what))
    if problems:
        raise InputError(problems)
    check_samples(path, settings)
    return tuple(samples)


def read_settings(directory: Path) -> dict[str, Any] | None:
    """Reads what `probe.json` holds; None where there is none."""
    path = directory / SETTINGS
    try:
        if not path.is_file():
            return None
        record = read_object(path, "the settings of a probe")
        probe_format = record["probe_format"]
    except (InputError, KeyError) as error:
        raise UsageError(
            f"{path} is damaged ({error}). Put a copy back, or probe again with --overwrite: the"
            f" replies so far are in {directory / EXCHANGES}."
        ) from error
    if probe_format != PROBE_FORMAT:
        raise UsageError(
            f"{directory} has probe format {probe_format}; this dialeval reads format"
            f" {PROBE_FORMAT}. Probe again with --overwrite."
        )
    return dict(record)


class ProbeDirectory:
    """A directory that a probe writes: claimed by one process, begun or gone on with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queries = path / QUERIES
        self.exchanges = path / EXCHANGES

    @contextmanager
    def exclusive(self, overwrite: bool = False) -> Iterator[None]:
        """Holds the directory, for a new probe or the same one."""
        self._check_is_probe_or_empty()
        with locked(self.path):
            if overwrite:
                for name in (SETTINGS, SAMPLES, EXCHANGES, QUERIES):
                    (self.path / name).unlink(missing_ok=True)
            yield

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Is this probe begun already? Raises where another one is."""
        earlier = read_settings(self.path)
        if earlier is None:
            return False
        if different := differences(earlier, settings):
            raise UsageError(
                f"{self.path} holds a probe with other settings:\n  "
                + "\n  ".join(different)
                + "\nRepeat the earlier command to go on with it, add --overwrite to start again,"
                " or choose another -o."
            )
        return True

    def begin(self, settings: Mapping[str, Any], tally: Tally) -> None:
        """Writes the settings, which make the directory a probe; the queries are there before."""
        self.exchanges.unlink(missing_ok=True)
        (self.path / SAMPLES).unlink(missing_ok=True)
        about = {"probe_format": PROBE_FORMAT, "dialeval": __version__}
        counted = {UNCHANGED: tally.unchanged.total()}
        write_json(self.path / SETTINGS, {**about, **settings, **counted})

    def unchanged(self) -> int:
        """Variants that were left out because they are the query again."""
        found = (read_settings(self.path) or {}).get(UNCHANGED, 0)
        return found if isinstance(found, int) else 0

    def write_samples(self, samples: Sequence[Sample]) -> None:
        with atomic_path(self.path / SAMPLES) as temporary:
            lines = [json.dumps(sample.to_record(), ensure_ascii=False) for sample in samples]
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        settings = read_settings(self.path)
        assert settings is not None, "the probe was begun"
        digest = sha256_of(self.path / SAMPLES)
        write_json(self.path / SETTINGS, {**settings, DIGEST: digest})

    def _check_is_probe_or_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; a probe is a directory. Choose another -o.")
        if foreign := foreign_entries(self.path, CONTENTS):
            raise UsageError(
                f"{self.path} is not a probe: it holds {foreign[0]!r}. Choose another -o."
            )


def foreign_entries(directory: Path, contents: Sequence[str]) -> list[str]:
    """Returns what a directory holds besides `contents` and the temporary files for them."""
    if not directory.is_dir():
        return []
    temporary = tuple(f".{name}." for name in contents)
    names = (entry.name for entry in directory.iterdir())
    return sorted(name for name in names if name not in contents and not name.startswith(temporary))


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`system.temperature: 0.7 there, 1.0 here`, for each setting that is not the same."""
    old, new = dict(_flat(earlier)), dict(_flat(now))
    ignored = {"probe_format", "dialeval", UNCHANGED, DIGEST}
    names = [name for name in (*new, *(n for n in old if n not in new)) if name not in ignored]
    return [
        f"{name}: {_shown(old.get(name))} there, {_shown(new.get(name))} here"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: object) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


# The reader of such a directory: what was asked of a live system, as samples (see `plan.py`).


def recognises(source: Source) -> bool:
    return source.is_directory and (source.path / "probe.json").is_file()


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    path = source.path / "samples.jsonl"
    if not path.is_file():
        raise UnreadableError(
            "the probe is unfinished. Repeat the `dialeval probe` command that started it to resume"
            " it"
        )
    place.path = str(path)
    _check(source.path, path)
    yield from plain_jsonl.read(source.beside(path, source.label), place, options)


def _check(directory: Path, samples: Path) -> None:
    """Are these the samples that the probe wrote?"""

    try:
        check_samples(samples, read_settings(directory) or {})
    except InputError as error:
        raise UnreadableError(error.problems[0].problem) from error


READER = Reader(
    "probe", "the directory of `dialeval probe`: answers of a live system", recognises, read
)


HOLISTIC_SETTINGS, PROBES = "holistic.json", "probes"
"""The file that marks such a directory, and the folder of its probes. They are not in `holistic`,
which takes long to import, because every file that is read is shown to this reader."""


def recognises_holistic(source: Source) -> bool:
    return source.is_directory and (source.path / HOLISTIC_SETTINGS).is_file()


def read_holistic(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    folders = sorted(path for path in (source.path / PROBES).glob("*") if path.is_dir())
    try:
        probes = [open_probe(folder) for folder in folders]
    except (InputError, UsageError) as error:
        raise UnreadableError(str(error)) from error
    if not probes or not all(probe.samples for probe in probes):
        raise UnreadableError(
            "it is unfinished. Repeat the `dialeval holistic` command that started it to resume it"
        )
    several = len(probes) > 1
    for probe in probes:
        for sample in whole_dialogues(probe.samples):
            name = f"{sample.system}/{sample.id}" if several else sample.id
            yield replace(sample, id=name, item=sample.dialogue)


def whole_dialogues(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yields one sample for each query that was answered, in the order of the queries."""
    by_query: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        kind = kind_of(sample)
        if kind is not None and kind.by != BASELINE:
            by_query.setdefault(sample.dialogue, {}).setdefault(kind.kind, sample)
    for query, kinds in by_query.items():
        told = kinds.get("consistency") or kinds.get("first")
        if told is not None:
            group = kinds.get("diversity")
            yield replace(told, id=query, variants=group.variants if group else ())


HOLISTIC_READER = Reader(
    "holistic-run",
    "the directory of `dialeval holistic`: dialogues to rate under four aspects",
    recognises_holistic,
    read_holistic,
)
