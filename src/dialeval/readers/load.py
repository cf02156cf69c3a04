"""Files -> samples: `load` finds the formats, `Samples` reads them anew whenever it is iterated.

    samples = dialeval.load("chats.jsonl", "more.csv.gz")
    for sample in samples: ...
    samples.problems, samples.skipped

With `bad="raise"` (the default) the first error ends the stream of samples, but the rest of the
input is still read, so that the `InputError` that follows shows all errors. With `bad="skip"`
records with errors are left out and counted. Warnings never stop anything. A file that is missing
or fits no format raises at once, in either case.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, get_args

from dialeval.datasets.locate import name_hint, resolve
from dialeval.errors import InputError, Problem, UsageError, did_you_mean
from dialeval.limits import USUAL, USUAL_LIMITS, Limits
from dialeval.readers.arrow import InMemory, is_in_memory
from dialeval.readers.containers import columns as columns_of
from dialeval.readers.detect import LOGS, detect, log_files
from dialeval.readers.fields import IdSet
from dialeval.readers.plain_record import ALIASES, NAMES, PROMPTS
from dialeval.readers.ratings import quality_of
from dialeval.readers.reader import (
    KEPT_PROBLEMS,
    Place,
    PluginFailedError,
    Problems,
    Reader,
    ReadOptions,
    SystemPrompt,
    UnreadableError,
)
from dialeval.readers.source import Source, stem
from dialeval.registry import READERS
from dialeval.sample import Sample

logger = logging.getLogger("dialeval.plugins")

Bad = Literal["raise", "skip"]
PathLike = str | os.PathLike[str]


def load(
    *paths: PathLike | Any,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    bad: Bad = "raise",
    limit: int | None = None,
    seed: int | None = None,
) -> Samples:
    """Samples from files, folders, `-` (standard input) or data sets by name (`fed`), and from
    lists of dicts, data frames (pandas, polars), Arrow tables and `datasets.Dataset`.

    format   name of a reader; None: found from the content of each file
    columns  field -> its name in the files: {"response": "bot_answer"}
    ratings  names of columns that hold ratings
    scales   quality -> lowest and highest rating that could be given
    system_prompt  `facts` keeps the instructions of a chat log as facts
    largest_record  refuse records of more than so many million characters
    bad      what to do with records that hold errors
    limit    take only so many samples: the first, or with a seed a random selection
    seed     of the selection; the samples stay in the order of the files
    """
    if not paths:
        raise UsageError("no file given")
    if bad not in ("raise", "skip"):
        raise UsageError(f"bad must be 'raise' or 'skip', not {bad!r}")
    if limit is not None and limit < 0:
        raise UsageError(f"limit must be at least 0, not {limit}")
    if seed is not None and limit is None:
        raise UsageError("a seed chooses a random selection: say with limit how large it is to be")
    options = read_options(columns or {}, ratings, scales or {}, system_prompt)
    opened, problems = open_sources(paths, format, Limits(largest_record), options.columns)
    if problems:
        raise InputError(problems)
    if not any(_may_hold_instructions(source) for source, _ in opened):
        check_system_prompt(system_prompt, {reader.name for _, reader in opened})
    return Samples(opened, options, bad, limit, seed, format=format)


def check_system_prompt(system_prompt: SystemPrompt, formats: Set[str]) -> None:
    """Raises `UsageError` where something is asked for that no file of these formats has."""
    if system_prompt != "leave-out" and formats.isdisjoint((*LOGS, "transcript")):
        raise UsageError(
            f"system_prompt={system_prompt!r} is for chat logs ({', '.join(LOGS)}, transcript),"
            " and none is given"
        )


def _may_hold_instructions(source: Source) -> bool:
    return not columns_of(source).isdisjoint(("system_prompt", *PROMPTS))


def read_options(
    columns: Mapping[str, str],
    ratings: Sequence[str],
    scales: Mapping[str, tuple[float, float]],
    system_prompt: SystemPrompt = "leave-out",
) -> ReadOptions:
    """Returns the options of the user, checked."""
    if system_prompt not in get_args(SystemPrompt):
        raise UsageError(
            f"system_prompt must be one of {', '.join(get_args(SystemPrompt))}, not"
            f" {system_prompt!r}"
        )
    fields = NAMES | {"messages"}
    for field in columns:
        if field not in fields:
            raise UsageError(
                f"columns: there is no field {field!r}.{did_you_mean(field, fields)}"
                f" Fields: {', '.join(sorted(fields))}"
            )
    for quality, scale in scales.items():
        if len(scale) != 2 or not scale[0] < scale[1]:
            raise UsageError(f"scales: {quality!r} needs (lowest, highest), not {scale!r}")
    if isinstance(ratings, str):
        ratings = (ratings,)
    return ReadOptions(
        MappingProxyType({ALIASES.get(field, field): name for field, name in columns.items()}),
        tuple(ratings),
        MappingProxyType(
            {quality: (float(low), float(high)) for quality, (low, high) in scales.items()}
        ),
        system_prompt=system_prompt,
    )


def open_sources(
    paths: Sequence[PathLike | Any],
    format: str | None,
    limits: Limits = USUAL_LIMITS,
    columns: Collection[str] = (),
) -> tuple[list[tuple[Source, Reader]], list[Problem]]:
    """Opens the sources that can be read, with their readers, and what is wrong with the others.

    `columns` are the fields that the user has mapped.
    """
    chosen = None if format is None else READERS.get(format)
    opened: list[tuple[Source, Reader]] = []
    problems: list[Problem] = []
    labels: set[str] = set()
    for source, known in _sources(paths, limits):
        reader = chosen or (READERS.get(known) if known else None)
        try:
            source.check()
            if (source.is_directory and reader is None) or (reader and not _reads(reader, source)):
                found = _of_folder(source, reader, columns)
            else:
                found = [(source, reader or detect(source, columns=columns))]
        except UnreadableError as error:
            hint = name_hint(source.name) if source.is_missing else ""
            problems.append(Problem(source.name, error.line, error.field, error.problem + hint))
            continue
        for one, _ in found:
            one.label = _unique(one.label, labels)
        opened += found
    return opened, problems


def _sources(paths: Sequence[PathLike | Any], limits: Limits) -> Iterator[tuple[Source, str]]:
    """Yields what is to be read, and the format that it is known to have."""
    for path in paths:
        if is_in_memory(path):
            yield InMemory(path, limits=limits), ""
        elif isinstance(path, str | os.PathLike):
            for target in resolve(path):
                yield Source(target.path, limits=limits), target.format
        else:
            raise UsageError(
                f"expected names of files, lists of dicts or data frames, not a"
                f" {type(path).__name__}"
            )


def _reads(reader: Reader, source: Source) -> bool:
    """Returns whether the reader that was named takes this source whole; of a folder, it may take
    each file instead."""
    return not source.is_directory or reader.recognises(source)


def _of_folder(
    folder: Source, reader: Reader | None, columns: Collection[str]
) -> list[tuple[Source, Reader]]:
    """Returns a folder that a reader knows, or else the logs in it."""
    try:
        return [(folder, reader if reader else detect(folder, columns=columns))]
    except UnreadableError:
        files, others = log_files(folder.path)
        if not files:
            raise
    found, strange = [], []
    for path in files:
        inside = path.relative_to(folder.path)
        label = (inside.parent / stem(path)).as_posix()
        source = folder.beside(path, label)
        try:
            found.append((source, reader or detect(source, columns=columns)))
        except UnreadableError as error:
            strange.append((path, error))
    if not found:
        path, first = strange[0]
        raise UnreadableError(f"{path.name}: {first.problem}", first.line, first.field)
    left_out = [str(path.relative_to(folder.path)) for path in (*others, *dict(strange))]
    if left_out:
        listed = ", ".join(left_out[:10]) + (", ..." if len(left_out) > 10 else "")
        found[0][0].remark = folder.name, f"left out, as no reader knows it: {listed}"
    return found


def _unique(label: str, taken: set[str]) -> str:
    """Two files of the same name must not give their samples the same ids."""
    candidate, count = label, 1
    while candidate in taken:
        count += 1
        candidate = f"{label}-{count}"
    taken.add(candidate)
    return candidate


class Samples:
    """A lazy collection: each iteration reads the files again, from the start."""

    def __init__(
        self,
        sources: Sequence[tuple[Source, Reader]],
        options: ReadOptions,
        bad: Bad = "raise",
        limit: int | None = None,
        seed: int | None = None,
        keep: int = KEPT_PROBLEMS,
        format: str | None = None,
    ) -> None:
        self._sources = list(sources)
        self._format = format
        self._options = options
        self._bad = bad
        self._limit = limit
        self._seed = seed
        self._keep = keep
        self._found = Problems()
        self._done = 0
        self._given = 0
        self._selected = 0

    @property
    def formats(self) -> dict[str, str]:
        """File -> name of its format."""
        return {source.name: reader.name for source, reader in self._sources}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was found wrong in the last pass, or so far in this one: the first 1000 each."""
        return tuple(self._found.kept)

    @property
    def counts(self) -> Problems:
        """How many errors, warnings and skipped records the last pass met, kept or not."""
        return self._found

    @property
    def skipped(self) -> int:
        """How many records were left out because of errors in them."""
        return self._found.skipped

    def fraction(self) -> float | None:
        """Returns the share of its samples that this pass has given, guessed from the bytes; None
        where that is unknown."""
        if self._seed is not None:
            return self._given / self._selected if self._selected else None
        if self._limit:
            return max(self._given / self._limit, self._read_fraction() or 0.0)
        return self._read_fraction()

    def _read_fraction(self) -> float | None:
        if self._done >= len(self._sources):
            return 1.0
        inside = self._sources[self._done][0].fraction()
        if inside is None and len(self._sources) == 1:
            return None
        return (self._done + (inside or 0.0)) / len(self._sources)

    def about(self) -> dict[str, Any]:
        """Returns where the samples of the last pass came from, for the manifest of a run."""
        return {
            "sources": [{"path": path, "format": name} for path, name in self.formats.items()],
            "skipped": self._found.skipped,
            "warnings": self._found.warnings,
            "read": self._options.to_record() | self._selection(),
        }

    def _selection(self) -> dict[str, Any]:
        """Returns what was said of the samples to take, where something was said."""
        said = {"format": self._format, "limit": self._limit, "seed": self._seed}
        largest = {source.limits.largest_record for source, _ in self._sources} - {USUAL}
        said["largest_record"] = max(largest, default=None)
        kept: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        return kept | ({"bad": self._bad} if self._bad != "raise" else {})

    def __iter__(self) -> Iterator[Sample]:
        self._given = 0
        if self._limit is None:
            return self._read()
        if self._seed is None:
            return self._counted(islice(self._read(), self._limit))
        chosen = choose(self._read(), self._limit, random.Random(self._seed))
        self._selected = len(chosen)
        return self._counted(chosen)

    def _counted(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for self._given, sample in enumerate(samples, start=1):
            yield sample

    def _check_named_qualities(self, rated: Set[str], place: Place) -> None:
        """Refuses a scale or a rating column that does not occur in the files."""
        if self._done < len(self._sources):
            return
        place.line = 0
        for name in _never_rated(self._options.scales, rated):
            place.warning("scale", f"there is no rating of {name!r}")
        for name in _never_rated(self._options.ratings, rated):
            place.warning("rating", f"there is no rating {name!r}")

    def _read(self) -> Iterator[Sample]:
        self._found = problems = Problems(self._keep)
        self._done = 0
        seen = IdSet()
        rated: set[str] = set()
        for number, (source, _) in enumerate(self._sources):
            place = Place(problems, source.name)
            if source.remark is not None:
                folder, told = source.remark
                Place(problems, folder).warning("", told)
            before, is_empty = problems.errors, True
            try:
                for sample in self._samples_of(number, place):
                    is_empty = False
                    if seen.holds_or_adds(sample.id):
                        place.error("id", f"{sample.id[:80]!r} occurs twice")
                        problems.skipped += 1
                    elif not problems.errors or self._bad == "skip":
                        rated.update(sample.ratings)
                        yield sample
            except UnreadableError as error:
                place.path, place.line = error.path or place.path, error.line
                place.error(error.field, error.problem)
            if is_empty and problems.errors == before:
                place.line = 0
                read_as = self._sources[number][1].name
                place.error("", f"there is no sample in it (read as {read_as})")
            self._done += 1
            self._check_named_qualities(rated, place)
        if problems.errors and self._bad == "raise":
            errors = [problem for problem in problems.kept if problem.severity == "error"]
            raise InputError(errors, problems.errors - len(errors))

    def _samples_of(self, number: int, place: Place) -> Iterator[Sample]:
        """Yields the samples of one source. Where a plugin was chosen by content and fails before
        it gives any, the reader that would have been chosen without it reads the source instead."""
        source, reader = self._sources[number]
        failed: PluginFailedError | None = None
        given, before = False, place.problems.errors
        try:
            for sample in reader.read(source, place, self._options):
                given = True
                yield sample
        except PluginFailedError as error:
            if given or self._format or source.is_stdin or place.problems.errors > before:
                raise
            failed = error
        if failed is None:
            return
        try:
            instead = detect(source, without=reader.name)
        except UnreadableError:
            raise failed from None
        place.line = failed.line
        told = f"{failed.problem}. Read as {instead.name} instead"
        place.warning("", told)
        logger.warning("%s: %s", source.name, told)
        self._sources[number] = (source, instead)
        yield from instead.read(source, place, self._options)


def _never_rated(names: Iterable[str], rated: Set[str]) -> list[str]:
    return [name for name in names if not {name, quality_of(name)} & rated]


def choose(samples: Iterable[Sample], count: int, generator: random.Random) -> list[Sample]:
    """`count` of the samples, each set of that size equally likely, in one pass (algorithm R)."""
    kept: list[tuple[int, Sample]] = []
    for position, sample in enumerate(samples):
        if len(kept) < count:
            kept.append((position, sample))
        elif (place := generator.randint(0, position)) < count:
            kept[place] = (position, sample)
    return [sample for _, sample in sorted(kept, key=lambda pair: pair[0])]
