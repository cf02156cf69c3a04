"""What is to be judged: samples from anything that `dialeval.load` reads, and from runs; and their
pairs.

A run also has scores. They are stored with the samples, out of the raters' sight, so that `dialeval
agree ratings.db` can compare metrics with people without further files.

In a comparison, answers of different sides to the same item are paired. With several sources each
is a side, as in `dialeval compare`; with a single source, each of its systems. Samples are joined
as in `agreement/joining.py`. With three sides and more, every two are paired.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path

from dialeval.agreement.joining import TRIED, SampleKeys, have_same_systems, shared_rows
from dialeval.errors import UsageError
from dialeval.readers.load import Samples, choose
from dialeval.readers.reader import Problems
from dialeval.runs.run import Run, open_run
from dialeval.sample import Sample


@dataclass(frozen=True)
class Material:
    """One source: a run, or what one or more files hold."""

    name: str
    samples: tuple[Sample, ...]
    scores: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Id of the sample -> metric -> score."""
    directions: Mapping[str, str] = field(default_factory=dict)
    problems: Problems | None = None
    """The problems of the file."""


def read_material(
    paths: Sequence[str],
    load: Callable[[str], Samples],
    *,
    limit: int | None = None,
    seed: int | None = None,
) -> list[Material]:
    """Loads the samples of each path. Ratings that the samples had are dropped: raters start
    afresh."""
    if not paths:
        raise UsageError("no file given")
    return [
        _run(name, open_run(path), limit, seed) if is_run(path) else _files(name, load(path))
        for name, path in zip(_names(paths), paths, strict=True)
    ]


def is_run(path: str) -> bool:
    return path != "-" and (Path(path) / "manifest.json").is_file()


def _files(name: str, samples: Samples) -> Material:
    return Material(name, tuple(_bare(samples)), problems=samples.counts)


def _run(name: str, run: Run, limit: int | None, seed: int | None) -> Material:
    rows: Iterator[Sample] | list[Sample] = _bare(run.samples())
    if limit is not None:
        generator = random.Random(seed)
        rows = islice(rows, limit) if seed is None else choose(rows, limit, generator)
    samples = tuple(rows)
    wanted = {sample.id for sample in samples}
    scores: dict[str, dict[str, float | None]] = {ident: {} for ident in wanted}
    for batch in run.batches(["id", *run.metrics]):
        for row in batch.to_pylist():
            if row["id"] in wanted:
                scores[row["id"]] = {metric: row[metric] for metric in run.metrics}
    directions = {metric["label"]: metric["direction"] for metric in run.manifest["metrics"]}
    return Material(name, samples, scores, directions)


def _bare(samples: Samples | Iterator[Sample]) -> Iterator[Sample]:
    return (replace(sample, ratings={}) for sample in samples)


def _names(paths: Sequence[str]) -> list[str]:
    """Returns the last part of each path without its endings if that is unique, else the whole
    path."""
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise UsageError(f"{twice[0]} is given twice")
    short = [Path(path).name.partition(".")[0] or path for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


@dataclass(frozen=True)
class Pairs:
    """`left_out` samples met no other answer; `same` pairs of equal answers need no question."""

    pairs: tuple[tuple[Sample, Sample], ...]
    left_out: int
    same: int


def pair_up(material: Sequence[Material]) -> Pairs:
    """Pairs every answer with each answer of another side. The name of the side is in `system`."""
    sides = _sides(material)
    if len(sides) < 2:
        raise UsageError(
            "there is nothing to compare: name two files or runs, or one that holds the answers of"
            " several systems"
        )
    keys = [SampleKeys.of(samples) for samples in sides.values()]
    own_system = len(material) > 1 and have_same_systems(keys)
    for by in TRIED:
        if rows := shared_rows(keys, by, own_system):
            groups = [
                {
                    side: _with_item(samples[places[0]], key)
                    for (side, samples), places in zip(sides.items(), row, strict=True)
                    if places
                }
                for key, row in rows.items()
            ]
            total = sum(len(samples) for samples in sides.values())
            return _pairs(groups, total - sum(map(len, groups)))
    raise UsageError(
        f"there is nothing to compare: no sample of {', '.join(sides)} has the same id, item or"
        " context as one of another. Give answers to one question the same 'item'."
    )


def _sides(material: Sequence[Material]) -> dict[str, list[Sample]]:
    if len(material) > 1:
        return {source.name: list(source.samples) for source in material}
    sides: dict[str, list[Sample]] = {}
    for sample in material[0].samples:
        sides.setdefault(sample.system, []).append(sample)
    return sides


def _pairs(groups: Sequence[dict[str, Sample]], left_out: int) -> Pairs:
    pairs: list[tuple[Sample, Sample]] = []
    same = 0
    for group in groups:
        ids = [sample.id for sample in group.values()]
        answers = [
            replace(
                sample,
                system=side,
                id=sample.id if ids.count(sample.id) == 1 else f"{side}/{sample.id}",
            )
            for side, sample in group.items()
        ]
        for first, second in combinations(answers, 2):
            if [turn.text for turn in first.turns] == [turn.text for turn in second.turns]:
                same += 1
            else:
                pairs.append((first, second))
    if not pairs:
        raise UsageError("there is nothing to compare: all answers are the same on all sides")
    return Pairs(tuple(pairs), left_out, same)


def _with_item(sample: Sample, key: Hashable) -> Sample:
    """Pairs of the same group are not independent: if the data do not say what belongs together,
    the item is the key that joined them."""
    if sample.item or sample.dialogue or not isinstance(key, tuple):
        return sample
    value = key[-1]
    return replace(sample, item=value.hex() if isinstance(value, bytes) else str(value))
