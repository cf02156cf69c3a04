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
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

from dialeval.errors import InputError, Problem, UsageError, did_you_mean
from dialeval.limits import USUAL, Limits
from dialeval.readers.arrow import InMemory
from dialeval.readers.containers import columns as columns_of
from dialeval.readers.detect import LOGS, detect, open_sources
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
from dialeval.readers.source import PathLike, Source
from dialeval.sample import Sample

logger = logging.getLogger("dialeval.plugins")

Bad = Literal["raise", "skip"]


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
    """Returns samples from files, folders, `-` (standard input) or data sets by name (`fed`), and
    from lists of dicts, data frames (pandas, polars), Arrow tables and `datasets.Dataset`.

    format   name of a reader; None: found from the content of each file
    columns  field -> its name in the files: {"response": "bot_answer"}
    ratings  names of columns that hold ratings
    scales   quality -> lowest and highest rating that could be given
    system_prompt  `facts` keeps the instructions of a chat log as facts
    largest_record  refuse records of more than this many million characters
    bad      what to do with records that have errors: raise, or skip them
    limit    take at most this many samples: the first ones, or with a seed a random selection
    seed     seed of the random selection; the samples stay in the order of the files
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
    """Raises `UsageError` if system prompts are wanted, and no file is of a format with any."""
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


class Named(Protocol):
    """The interface of what is read from a file: it has an id that is unique over all files."""

    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Named)


class FromFiles(Generic[Item]):
    """A lazy collection: each iteration reads the files again, from the start.

    counts  errors, warnings and skipped records of the last pass, or so far of this one
    """

    def __init__(self, files: Sequence[Source], bad: Bad, keep: int = KEPT_PROBLEMS) -> None:
        self._files = list(files)
        self._bad = bad
        self._keep = keep
        self._done = 0
        self.counts = Problems()

    def _items_of(self, number: int, place: Place) -> Iterator[Item]:
        """Yields what one of the files holds."""
        raise NotImplementedError

    def _check_file(self, number: int, place: Place, is_empty: bool) -> None:
        """Reports what is wrong with a file as a whole, after it was read."""

    def _read(self) -> Iterator[Item]:
        self.counts = problems = Problems(self._keep)
        self._done = 0
        seen = IdSet()
        for number, source in enumerate(self._files):
            place = Place(problems, source.name)
            before, is_empty = problems.errors, True
            try:
                for item in self._items_of(number, place):
                    is_empty = False
                    if seen.holds_or_adds(item.id):
                        place.error("id", f"{item.id[:80]!r} occurs twice")
                        problems.skipped += 1
                    elif not problems.errors or self._bad == "skip":
                        yield item
            except UnreadableError as error:
                place.path, place.line = error.path or place.path, error.line
                place.error(error.field, error.problem)
            self._done += 1
            self._check_file(number, place, is_empty and problems.errors == before)
        if self._bad == "raise":
            problems.check()

    def _read_fraction(self) -> float | None:
        """Returns the share of the input that was read in this pass, by bytes; None where that is
        unknown."""
        if self._done >= len(self._files):
            return 1.0
        inside = self._files[self._done].fraction()
        if inside is None and len(self._files) == 1:
            return None
        return (self._done + (inside or 0.0)) / len(self._files)


class Samples(FromFiles[Sample]):
    """The samples of some files; see `load`."""

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
        super().__init__([source for source, _ in sources], bad, keep)
        self._readers = [reader for _, reader in sources]
        self._format = format
        self._options = options
        self._limit = limit
        self._seed = seed
        self._given = 0
        self._selected = 0
        self._rated: set[str] = set()

    @property
    def is_whole(self) -> bool:
        """Whether every record of every source is taken, and each source can be read again."""
        return self._limit is None and not any(
            source.reads_once or isinstance(source, InMemory) for source in self._files
        )

    @property
    def formats(self) -> dict[str, str]:
        """File -> name of its format."""
        readers = zip(self._files, self._readers, strict=True)
        return {source.name: reader.name for source, reader in readers}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the last pass, or so far of this one: the first 1000 of each kind."""
        return tuple(self.counts.kept)

    @property
    def skipped(self) -> int:
        """The number of records that were left out because of errors."""
        return self.counts.skipped

    def fraction(self) -> float | None:
        """Returns the share of its samples that this pass has given, guessed from the bytes; None
        where that is unknown."""
        if self._seed is not None:
            return self._given / self._selected if self._selected else None
        if self._limit:
            return max(self._given / self._limit, self._read_fraction() or 0.0)
        return self._read_fraction()

    def about(self) -> dict[str, Any]:
        """Returns where the samples of the last pass came from, for the manifest of a run."""
        return {
            "sources": [{"path": path, "format": name} for path, name in self.formats.items()],
            "skipped": self.counts.skipped,
            "warnings": self.counts.warnings,
            "read": self._options.to_record() | self._selection(),
        }

    def _selection(self) -> dict[str, Any]:
        """Returns what was said of the samples to take, where something was said."""
        said = {"format": self._format, "limit": self._limit, "seed": self._seed}
        largest = {source.limits.largest_record for source in self._files} - {USUAL}
        said["largest_record"] = max(largest, default=None)
        kept: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        return kept | ({"bad": self._bad} if self._bad != "raise" else {})

    def __iter__(self) -> Iterator[Sample]:
        self._given = 0
        self._rated = set()
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

    def _check_file(self, number: int, place: Place, is_empty: bool) -> None:
        """Reports an empty file and, after the last one, scales and rating columns that do not
        occur in any of them."""
        place.line = 0
        if is_empty:
            read_as = self._readers[number].name
            place.error("", f"there is no sample in it (read as {read_as})")
        if self._done < len(self._files):
            return
        for name in _never_rated(self._options.scales, self._rated):
            place.warning("scale", f"there is no rating of {name!r}")
        for name in _never_rated(self._options.ratings, self._rated):
            place.warning("rating", f"there is no rating {name!r}")

    def _items_of(self, number: int, place: Place) -> Iterator[Sample]:
        if (remark := self._files[number].remark) is not None:
            folder, told = remark
            Place(place.problems, folder).warning("", told)
        for sample in self._samples_of(number, place):
            self._rated.update(sample.ratings)
            yield sample

    def _samples_of(self, number: int, place: Place) -> Iterator[Sample]:
        """Yields the samples of one source. Where a plugin was chosen by content and fails before
        it gives any, the reader that would have been chosen without it reads the source instead."""
        source, reader = self._files[number], self._readers[number]
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
        self._readers[number] = instead
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
