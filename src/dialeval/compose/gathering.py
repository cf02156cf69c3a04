"""Opens rated runs together: the data sets, the metrics to compose, and those to compare with.

Some data sets hold the same conversations: FED is a data set of its own and two of DSTC10's; USR
and GRADE occur twice as well. Weights fitted on one would be tried on itself. Whatever the files
are called, sets that share a conversation are *relatives* and are left out together. Sets of one
level that share more than half of their samples are *the same* and count once in a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dialeval.agreement.joining import run_names
from dialeval.compose.evidence import Evidence, check_metrics, read_evidence
from dialeval.errors import UsageError
from dialeval.metrics.composition import COMPOSED, term_signature
from dialeval.registry import make_metric

if TYPE_CHECKING:
    from dialeval.runs.run import Run


@dataclass(frozen=True)
class Families:
    """Positions of data sets in groups: each set is in one of `same` and in one of `relatives`."""

    same: tuple[tuple[int, ...], ...]
    relatives: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def find_families(sets: Sequence[Evidence]) -> Families:
    notes = []
    for a, b in combinations(sets, 2):
        shared = len(a.texts & b.texts)
        if is_same(a, b):
            notes.append(
                f"{a.name} and {b.name} hold the same {a.level}s ({shared}): they count once, and"
                " are left out together"
            )
        elif are_relatives(a, b):
            notes.append(
                f"{a.name} and {b.name} share {shared} texts: they are left out together"
                if shared
                else f"{a.name} and {b.name} come from one run: they are left out together"
            )
    return Families(_groups(sets, is_same), _groups(sets, are_relatives), tuple(notes))


def is_same(a: Evidence, b: Evidence) -> bool:
    shared = len(a.texts & b.texts)
    return a.level == b.level and shared > min(len(a.texts), len(b.texts)) / 2


def are_relatives(a: Evidence, b: Evidence) -> bool:
    return a.digest == b.digest or bool(a.texts & b.texts)


def _groups(
    sets: Sequence[Evidence], joined: Callable[[Evidence, Evidence], bool]
) -> tuple[tuple[int, ...], ...]:
    """Groups of connected sets, in the order of their first member."""
    group = list(range(len(sets)))
    for (i, a), (j, b) in combinations(enumerate(sets), 2):
        if joined(a, b):
            low, high = sorted((group[i], group[j]))
            group = [low if g == high else g for g in group]
    return tuple(
        tuple(place for place, g in enumerate(group) if g == first)
        for first in dict.fromkeys(group)
    )


@dataclass(frozen=True)
class Ingredient:
    """A sub-metric before it has a scale."""

    spec: str
    signature: str


@dataclass(frozen=True)
class Gathered:
    """Rated runs: data sets, the sub-metrics to compose, and the other metrics."""

    sets: tuple[Evidence, ...]
    ingredients: tuple[Ingredient, ...]
    others: tuple[str, ...]
    families: Families
    left_out: tuple[str, ...] = ()
    """Sentences about data sets and metrics that could not be used: data sets without a score, such
    as dialogues if all metrics judge turns, and metrics that not all runs have."""


def gather(runs: Mapping[str, Run] | Sequence[Run], metrics: Sequence[str] = ()) -> Gathered:
    """Reads runs, by the name of their data or of their directory. `metrics` are those to compose;
    default: all that every run has and that have a better direction. A metric without a direction,
    such as length, is only composed if it is named."""
    named = (
        dict(runs) if isinstance(runs, Mapping) else dict(zip(run_names(runs), runs, strict=True))
    )
    if not named:
        raise UsageError(
            "no run to fit on. dialeval score RATED-FILE -m METRIC... -o RUN makes one"
        )
    opened = list(named.values())
    common = [label for label in opened[0].metrics if all(label in run.metrics for run in opened)]
    chosen = [make_metric(spec).label for spec in metrics]
    own = [label for label in common if label.partition(":")[0] not in COMPOSED]
    undirected = [] if metrics else [label for label in own if _direction(opened, label) is None]
    chosen = chosen or [label for label in own if label not in undirected]
    if undirected and not chosen:
        raise UsageError(
            f"the runs have no metric in common of which more or less is better, only"
            f" {', '.join(undirected)}. Score others, or name it to compose it all the same: -m"
            f" {undirected[0]}"
        )
    if not chosen:
        raise UsageError(
            "the runs have no metric in common. They have: "
            + "; ".join(f"{run.directory}: {', '.join(run.metrics)}" for run in opened)
        )
    if again := [label for label in chosen if label.partition(":")[0] in COMPOSED]:
        raise UsageError(f"{again[0]} is a composition itself, and no term of another")
    if twice := sorted({label for label in chosen if chosen.count(label) > 1}):
        raise UsageError(f"metric given twice: {', '.join(twice)}")
    check_metrics(opened, chosen)
    everything = [one for name, run in named.items() for one in read_evidence(run, name)]
    sets = tuple(one for one in everything if _has_values(one, chosen))
    if not sets:
        raise UsageError("the metrics have no value for any rated sample of the runs")
    signatures = opened[0].signatures
    return Gathered(
        sets,
        tuple(Ingredient(label, term_signature(signatures[label])) for label in chosen),
        tuple(label for label in common if label not in chosen and _is_same_in_all(label, opened)),
        find_families(sets),
        (
            *(() if metrics else _not_in_all(named)),
            *(
                f"{label}: neither more nor less of it is better, so that it does not measure"
                f" quality: left out. -m {label} composes it all the same"
                for label in undirected
            ),
            *(
                f"{one.name}: none of the metrics has a value there: left out"
                for one in everything
                if one not in sets
            ),
        ),
    )


def _direction(runs: Sequence[Run], label: str) -> str | None:
    """Returns the direction of a metric in the first run; None if it has none."""
    [record] = [one for one in runs[0].manifest["metrics"] if one["label"] == label]
    return None if record["direction"] == "neither" else str(record["direction"])


def _not_in_all(named: Mapping[str, Run]) -> list[str]:
    """Sentences about the metrics that only some of the runs have."""
    labels = dict.fromkeys(label for run in named.values() for label in run.metrics)
    lacking = {
        label: [name for name, run in named.items() if label not in run.metrics]
        for label in labels
        if label.partition(":")[0] not in COMPOSED
    }
    return [
        f"{label}: not in {', '.join(names)}, so that it cannot be composed: left out"
        for label, names in lacking.items()
        if names
    ]


def _is_same_in_all(label: str, runs: Sequence[Run]) -> bool:
    """Returns whether a metric can be compared with the composition on left-out data: it is the
    same in all runs, and is no composition, which may have been fitted on these data."""
    signatures = {term_signature(run.signatures[label]) for run in runs}
    return len(signatures) == 1 and label.partition(":")[0] not in COMPOSED


def _has_values(evidence: Evidence, labels: Sequence[str]) -> bool:
    return any(not np.isnan(evidence.metrics[label].value).all() for label in labels)
