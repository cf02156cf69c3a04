"""`dialeval.compare`: which of two runs, or of the systems of one, is better, and significantly so?

For each level, metric and pair of sides, over the rows that both sides have (`joining.py`):

    difference   mean of second - first, in the metric's own unit
    interval     95 %, from the paired bootstrap                           (`significance.py`)
    p            from the paired permutation test, two-sided, with Holm's correction over all tests
                 of the comparison: all metrics, levels and pairs
    effect       the difference in standard deviations of the scores of both sides; the only number
                 here that can be compared between metrics

Rows count as independent of each other. Turns of one dialogue are not quite: if a few long
dialogues make up the data, intervals are too short and p is too small. Joined by dialogue, they are
one row.

A metric whose signature differs between the runs measured something else in each of them. Its row
has a reason and no numbers. If the runs differ only in their scales, raw values are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats
from dialeval.agreement.bootstrap import Resampling
from dialeval.agreement.decision import DEFAULT_METRIC, Decision, decide, github_summary, junit_xml
from dialeval.agreement.findings import (
    Change,
    Compared,
    PreferredSide,
    SideRanking,
    largest_changes,
    outcome_of,
    preferences,
    rank_sides,
    verdict,
)
from dialeval.agreement.joining import (
    Comparability,
    Join,
    JoinBy,
    Joined,
    Side,
    comparability,
    join,
    raw_name,
    sides_of,
)
from dialeval.agreement.significance import PairedTest, holm, paired_test
from dialeval.errors import UsageError, did_you_mean
from dialeval.progress import Progress, usual_progress
from dialeval.tables import TextTable, html_of

if TYPE_CHECKING:
    from dialeval.metric import Direction
    from dialeval.pictures import Drawing
    from dialeval.runs.run import Run
    from dialeval.sample import Level


@dataclass(frozen=True)
class SideCount:
    """The number of samples of a side; `left_out` of them have no counterpart on another side."""

    name: str
    run: str
    samples: int
    left_out: int


@dataclass(frozen=True)
class Comparison:
    """Everything that `dialeval compare` reports."""

    sides: tuple[SideCount, ...]
    joined_by: JoinBy
    joined: int
    rows: tuple[Compared, ...]
    standings: tuple[SideRanking, ...]
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    alpha: float
    rounds: int
    preferences: tuple[PreferredSide, ...] = ()
    """The preferences of `judge` between each side and the next."""
    decisions: tuple[Decision, ...] = ()
    """The decisions that `fail_if_worse` asked for."""

    @property
    def failed(self) -> bool:
        """Whether a build should fail."""
        return any(one.failed for one in self.decisions)

    @property
    def tested(self) -> int:
        """The number of tested differences."""
        return sum(row.p_holm is not None for row in self.rows)

    @property
    def significant(self) -> int:
        """The number of differences that are significant after the correction."""
        return sum(row.p_holm is not None and row.p_holm <= self.alpha for row in self.rows)

    def tables(self) -> list[TextTable]:
        """Returns the tables for the screen: the ranking of more than two sides, and all pairs."""
        from dialeval.agreement.text_tables import comparison_table, standings_table

        standings = standings_table(self) if len(self.sides) > 2 else None
        return [*([standings] if standings else []), comparison_table(self)]

    def plot(self) -> Drawing:
        """Returns the picture of `dialeval compare --plot`: effects with intervals."""
        from dialeval.agreement.drawings import draw_comparison

        return draw_comparison(self)

    def _repr_html_(self) -> str:
        sentences = [*(one.sentence() for one in self.preferences), *verdict(self)]
        return html_of(self.tables(), [*self.warnings, *sentences])

    def to_record(self) -> dict[str, Any]:
        sentences = [one.sentence() for one in self.preferences]
        return asdict(self) | {
            "verdict": [*sentences, *verdict(self)],
            "decisions": [one.to_record() for one in self.decisions],
            "failed": self.failed,
        }

    def to_junit(self) -> str:
        """Returns the decisions as JUnit XML."""
        return junit_xml(self)

    def to_markdown(self) -> str:
        """Returns the summary of a step for GitHub."""
        return github_summary(self)


def compare(
    *runs: Run | str | Path,
    systems: Sequence[str] = (),
    metrics: Sequence[str] = (),
    join_by: JoinBy | None = None,
    rounds: int = 9999,
    seed: int = 0,
    alpha: float = 0.05,
    worst: int = 0,
    fail_if_worse: bool | str | Sequence[str] = (),
    margin: float | Mapping[str, float] = 0.0,
    fail_if_unsure: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Compares runs with each other, or the systems of one run.

    worst           number of samples to list whose score changed most
    fail_if_worse   metrics to decide on (True: `judge`): is a later side worse than the first? The
                    result has `decisions`, and `failed` says whether a build should fail
    margin          drop that is accepted, in the unit of the metric; {metric: drop} for several
    fail_if_unsure  let a decision fail that cannot be made
    """
    from dialeval.runs.run import open_run

    gates = _gates(fail_if_worse)
    if not gates and (margin or fail_if_unsure):
        raise UsageError("a margin and --fail-if-unsure are for --fail-if-worse: add it")

    if not runs:
        raise UsageError("name two runs, or one run with several systems")
    opened = [open_run(run) if isinstance(run, str | Path) else run for run in runs]
    sides = sides_of(opened, systems)
    if worst and len(sides) != 2:
        raise UsageError(f"--worst needs two sides, not {len(sides)}: choose two with --system")
    common_metrics(sides, gates)  # complains before anything is computed
    labels = common_metrics(sides, [*metrics, *gates] if metrics else ())
    rows = join(sides, join_by)
    told = progress or usual_progress("comparing")
    found = compare_joined(rows, labels, rounds, seed, alpha, worst, workers, told)
    return replace(found, decisions=decide(found, gates, margin, fail_if_unsure))


def _gates(fail_if_worse: bool | str | Sequence[str]) -> list[str]:
    if isinstance(fail_if_worse, bool):
        return [DEFAULT_METRIC] if fail_if_worse else []
    given = [fail_if_worse] if isinstance(fail_if_worse, str) else fail_if_worse
    return list(dict.fromkeys(given))


def compare_joined(
    rows: Join,
    labels: Sequence[str],
    rounds: int,
    seed: int,
    alpha: float = 0.05,
    worst: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Compares joined samples. Every side must have these metrics."""
    sides = rows.levels[0].sides
    shared = comparability(sides, labels)
    rows = replace(rows, levels=tuple(level.on_raw(shared.raw) for level in rows.levels))
    found = _compare(rows, labels, shared, alpha, rounds, seed, workers, progress)
    if not found:
        raise UsageError(
            f"nothing to compare: the joined samples have no score of {', '.join(labels)}"
        )
    tested = sum(row.outcome != "not comparable" for row in found)
    standings = rank_sides(rows.levels, found, alpha)
    left_out = [
        SideCount(side.name, str(side.run.directory), len(side.ids), rows.left_out[side.name])
        for side in sides
    ]
    changes = [
        change
        for level in rows.levels
        for label in labels
        if label not in shared.none
        for change in largest_changes(level, label, _direction(sides, label), worst)
    ]
    return Comparison(
        tuple(left_out),
        rows.by,
        rows.joined,
        tuple(found),
        tuple(standings),
        tuple(
            replace(one, metric=raw_name(one.metric)) if one.metric in shared.raw else one
            for one in changes
        ),
        (
            *shared.notes,
            *_warnings(sides, rows, tested, rounds, alpha),
            *(_ranked_on(found, standings) if len(sides) > 2 else ()),
        ),
        alpha,
        rounds,
        tuple(preferences(rows.levels)),
    )


def _compare(
    rows: Join,
    labels: Sequence[str],
    shared: Comparability,
    alpha: float,
    rounds: int,
    seed: int,
    workers: int,
    progress: Progress | None,
) -> list[Compared]:
    planned = [
        (level, label, table, pair)
        for level in rows.levels
        for label in labels
        if not np.isnan(table := level.scores(label)).all()
        for pair in combinations(range(len(level.sides)), 2)
    ]
    tested = [one for one in planned if one[1] not in shared.none]
    tests: list[tuple[PairedTest, PairedTest]] = []
    for done, (_, _, table, (a, b)) in enumerate(tested):
        # Every test begins with the same seed, so it does not depend on the metrics before it.
        first, second = (
            Resampling(
                np.random.default_rng([seed, half]),
                rounds,
                workers=workers,
                progress=_part(progress, 2 * done + half, 2 * len(tested)),
            )
            for half in range(2)
        )
        columns = table[:, b], table[:, a]
        permuted = paired_test("permutation", *columns, first)
        tests.append((permuted, paired_test("bootstrap", *columns, second)))
    results = iter(zip(tests, holm([one.p for one, _ in tests]), strict=True))
    return [
        _not_compared(level, label, table, pair)
        if label in shared.none
        else _compared(level, label, table, pair, *next(results), alpha, label in shared.raw)
        for level, label, table, pair in planned
    ]


def _not_compared(level: Joined, label: str, table: Floats, pair: tuple[int, int]) -> Compared:
    """Returns a row without numbers: the sides measured different things."""
    there = ~np.isnan(table[:, list(pair)])
    n = int(there.all(axis=1).sum())
    return Compared(
        level.level,
        label,
        _direction(level.sides, label),
        level.sides[pair[0]].name,
        level.sides[pair[1]].name,
        n=n,
        n_missing=int(there.any(axis=1).sum()) - n,
        outcome="not comparable",
    )


def _compared(
    level: Joined,
    label: str,
    table: Floats,
    pair: tuple[int, int],
    tests: tuple[PairedTest, PairedTest],
    p_holm: float | None,
    alpha: float,
    raw: bool,
) -> Compared:
    test, bootstrap = tests
    both = table[:, list(pair)]
    there = ~np.isnan(both).any(axis=1)
    means = both[there].mean(axis=0).tolist() if there.any() else [None, None]
    # Rows that neither side scored do not count as missing.
    n_missing = int((~np.isnan(both)).any(axis=1).sum()) - test.n
    deviation = float(np.sqrt(both[there].var(axis=0).mean())) if test.n > 1 else 0.0
    effect = test.difference / deviation if test.difference is not None and deviation else None
    direction = _direction(level.sides, label)
    return Compared(
        level.level,
        label,
        direction,
        level.sides[pair[0]].name,
        level.sides[pair[1]].name,
        means[0],
        means[1],
        test.difference,
        bootstrap.low,
        bootstrap.high,
        effect,
        test.p,
        p_holm,
        test.n,
        n_missing,
        outcome_of(test.difference, p_holm, direction, alpha),
        test.reason,
        raw,
    )


def _direction(sides: Sequence[Side], label: str) -> Direction:
    records = sides[0].run.manifest["metrics"]
    direction: Direction = next(m["direction"] for m in records if m["label"] == label)
    return direction


def common_metrics(sides: Sequence[Side], wanted: Sequence[str]) -> list[str]:
    common = [label for label in sides[0].scores if all(label in side.scores for side in sides)]
    for label in wanted:
        if label not in common:
            lacking = [side.name for side in sides if label not in side.scores]
            raise UsageError(
                f"no metric {label!r} in {', '.join(lacking)}.{did_you_mean(label, common)}"
                f" Common to all: {', '.join(common) or 'none'}"
            )
    if not common:
        lists = "; ".join(f"{side.name}: {', '.join(side.scores)}" for side in sides)
        raise UsageError(f"nothing to compare: no metric is in every run ({lists})")
    return [label for label in common if not wanted or label in wanted]


def _warnings(
    sides: Sequence[Side], rows: Join, tests: int, rounds: int, alpha: float
) -> list[str]:
    found = []
    if rows.by in ("id", "item") and rows.other_contexts:
        found.append(
            f"{rows.other_contexts:,} rows joined by {rows.by} do not have the same context on all"
            " sides. Where they should, join with --join context."
        )
    if rows.repeated and rows.by != "dialogue":
        found.append(
            f"{rows.repeated:,} samples share their {rows.by} with another of the same side: their"
            " scores were averaged"
        )
    pooled = [side.name for side in sides if len(set(side.systems)) > 1]
    if pooled:
        found.append(
            f"{', '.join(pooled)}: all systems are taken together, and may have changed in opposite"
            " ways; --system NAME compares one of them"
        )
    alone = sorted(
        {label for side in sides for label in side.scores}
        - {label for label in sides[0].scores if all(label in side.scores for side in sides)}
    )
    if alone:
        found.append(f"not in every run, and left out: {', '.join(alone)}")
    if tests / (rounds + 1) > alpha:
        found.append(
            f"{rounds} rounds are too few for {tests} tests: nothing can be significant after the"
            f" correction. Use --rounds {int(np.ceil(tests / alpha))} or more."
        )
    return found


def _ranked_on(rows: Sequence[Compared], standings: Sequence[SideRanking]) -> list[str]:
    """Says where the ranking of several sides rests on fewer rows than some of them scored."""
    ranked = {(one.level, one.metric): one.sides[0].n for one in standings}
    scored: dict[tuple[Level, str], int] = {}
    for row in rows:
        if row.outcome != "not comparable":
            key = row.level, row.metric
            scored[key] = max(scored.get(key, 0), row.n + row.n_missing)
    fewer = [
        f"{key[1]} ({ranked.get(key, 0)} of {most} rows)"
        for key, most in scored.items()
        if ranked.get(key, 0) < most
    ]
    if not fewer:
        return []
    return [
        "the sides are ranked on the rows that all of them scored, and not at all if there are"
        f" none: {', '.join(fewer)}. --pairs compares two at a time"
    ]


def _part(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """Returns the progress of one of several equal parts."""
    if progress is None:
        return None
    return lambda done, total: progress(part * total + done, parts * total)
