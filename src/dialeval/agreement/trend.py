"""`dialeval.trend`: the mean of a metric over runs in the order of time, and an alarm.

Each run has a mean m with a 95 % interval (Student's t). Turns of one dialogue are not independent
evidence, so a dialogue counts once, with the mean of its turns.

A run is compared with the k runs before it, three or more. Days differ by chance (other users,
other topics), so the means of runs vary more than their samples explain; what counts is how much
the means before it vary. With M and S^2 the mean and the variance of these means, and V the average
of their squared standard errors, below which S^2 can only be by luck,

    t = (m - M) / sqrt(max(S^2, V) (1 + 1/k) + e)    k - 1 degrees of freedom, one-sided

This is the test of a further observation of a normal distribution. e is what the squared standard
error of m exceeds V, or 0: a day with few dialogues varies more. If runs are alike, p is not too
small, however much days differ. (Estimating the variance between days apart, as DerSimonian and
Laird do, is sharper, but on few days that differ it gave several times as many false alarms as
alpha allows.)

Whoever looks every day sees a small p sooner or later. The number of looks is not known beforehand,
and the looks depend on each other (they share the runs before), so alpha is spent: look number j
may use

    alpha_j = alpha / (j (j + 1)),       and the sum over all j is alpha

By the union bound, whatever the dependence, the chance of a false alarm in the whole series is at
most alpha, however long it is. The price is that a later look needs a clearer drop: after a month
alpha_j is 1/1000 of alpha. To start anew, name only the runs since then.

A run with an alarm is not among those that later runs are compared with; so the alarm goes on for
as long as the drop does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, student_quantile, student_two_sided_p
from dialeval.agreement.findings import format_p
from dialeval.agreement.joining import (
    check_systems,
    comparability,
    differing_fields,
    raw_name,
    read_side,
    run_names,
)
from dialeval.errors import UsageError, did_you_mean
from dialeval.pictures.drawing import Circle, Drawing, Line, Polyline, Shape
from dialeval.pictures.frame import WIDTH, Key, data_range, nothing, plane, tip_text
from dialeval.remote import located
from dialeval.runs.run import Run, open_run
from dialeval.scores import Signature

if TYPE_CHECKING:
    from dialeval.agreement.joining import Side
    from dialeval.metric import Direction

DEFAULT_METRIC = "judge"

FEWEST = 3
"""Runs before the first one that is tested: of fewer, nobody knows how much runs vary."""

ROUNDING = 1e-24
"""A relative variance that is rounding: all means are the same."""


@dataclass(frozen=True)
class TrendPoint:
    """One run of `n` dialogues; `p` against the runs before, and the `level` for an alarm."""

    name: str
    run: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    before: float | None
    """The mean of the runs before it."""
    p: float | None
    level: float | None
    alarm: bool
    reason: str = ""
    """Why there is no mean, or no test."""


@dataclass(frozen=True)
class Trend:
    """A metric over runs, in the order in which they were named."""

    metric: str
    direction: Direction
    alpha: float
    points: tuple[TrendPoint, ...]
    warnings: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether the last run is worse than those before."""
        return self.points[-1].alarm

    def sentence(self) -> str:
        """Returns the sentence about the last run."""
        last = self.points[-1]
        if last.p is None or last.level is None or last.mean is None:
            return f"NO TEST of {last.name}: {last.reason}."
        against = f"{last.mean:.4g} against {last.before:.4g} before, {format_p(last.p)}"
        limit = f"alpha of this look {last.level:.2g}"
        if last.alarm:
            return f"ALARM: {last.name} is worse on {self.metric}: {against}, {limit}."
        return (
            f"NO ALARM: {last.name} is not shown to be worse on {self.metric}: {against}, {limit}."
        )

    def to_record(self) -> dict[str, Any]:
        return asdict(self) | {"alarm": self.alarm, "sentence": self.sentence()}

    def plot(self) -> Drawing:
        """Returns the picture of `dialeval trend --plot`: means with intervals, and alarms."""
        return _draw(self)


def trend(
    *runs: Run | str | Path,
    metric: str | None = None,
    system: str | None = None,
    alpha: float = 0.05,
) -> Trend:
    """Returns the mean of a metric over runs in the order of time, the oldest first.

    A directory that holds runs, such as one of `dialeval watch`, stands for them in the order of
    their names. Without a metric, `judge`; if the runs do not have it, their only metric. `alpha`
    is the chance of a false alarm in the whole series.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha must be between 0 and 1, not {alpha:g}")
    opened = [one for given in runs for one in _opened(given)]
    if not opened:
        raise UsageError("name runs, the oldest first")
    label = _label(opened, metric)
    sides = [read_side(name, run) for name, run in zip(run_names(opened), opened, strict=True)]
    if system is not None:
        check_systems([system], opened)
        sides = [side.of_systems(side.name, [system]) for side in sides]
    record = next(m for m in opened[-1].manifest["metrics"] if m["label"] == label)
    direction: Direction = record["direction"]
    if direction == "neither":
        raise UsageError(f"neither more nor less of {label} is better. Name another metric.")
    reasons = {side.name: why for side in sides if (why := _other_measure(side, sides[-1], label))}
    alike = [side for side in sides if side.name not in reasons]
    shared = comparability(alike, [label]) if len(alike) > 1 else None
    warnings = []
    if shared and label in shared.none:
        raise UsageError(shared.none[label])
    if shared and label in shared.raw:
        alike = [side.on_raw([label]) for side in alike]
        warnings.append(f"{label}: the runs have scales of their own, so raw values are shown")
    values = {side.name: _by_dialogue(side, label) for side in alike}
    sign = 1.0 if direction == "higher" else -1.0
    points = _points(sides, values, reasons, sign, alpha)
    shown = raw_name(label) if shared and label in shared.raw else label
    return Trend(shown, direction, alpha, tuple(points), tuple(warnings))


def _opened(given: Run | str | Path) -> list[Run]:
    if isinstance(given, Run):
        return [given]
    path = located(given)
    if path.is_dir() and not any((path / name).exists() for name in ("manifest.json", "job.json")):
        inside = sorted(run.parent for run in path.glob("*/manifest.json"))
        if inside:
            return [open_run(one) for one in inside if not one.name.startswith(".")]
    return [open_run(path)]


def _label(runs: Sequence[Run], metric: str | None) -> str:
    known = [label for label in runs[-1].metrics if all(label in run.metrics for run in runs)]
    if metric is None:
        if DEFAULT_METRIC not in known and len(known) != 1:
            raise UsageError(
                f"the runs have no metric {DEFAULT_METRIC!r} in common. Name one with --metric:"
                f" {', '.join(known) or 'they have none in common'}"
            )
        return DEFAULT_METRIC if DEFAULT_METRIC in known else known[0]
    for run in runs:
        if metric not in run.metrics:
            raise UsageError(
                f"no metric {metric!r} in {run.directory}.{did_you_mean(metric, run.metrics)} There"
                f" are: {', '.join(run.metrics)}. dialeval score --add {metric} {run.directory}"
                " lets it join"
            )
    return metric


def _other_measure(side: Side, last: Side, label: str) -> str:
    """Why a run cannot stand in one line with the last one; empty if it can."""
    signatures = [Signature.parse(one.run.signatures[label].short()) for one in (side, last)]
    different = [one for one in differing_fields(signatures) if one != "calibration"]
    return f"measured with another {', '.join(different)} than the last run" if different else ""


def _by_dialogue(side: Side, label: str) -> Floats:
    """Returns one value for each dialogue; a sample without a dialogue stands for itself."""
    groups: dict[object, list[float]] = {}
    for place, value in enumerate(side.scores[label].tolist()):
        if not math.isnan(value):
            dialogue = side.dialogues[place]
            key = (side.levels[place], side.systems[place], dialogue) if dialogue else place
            groups.setdefault(key, []).append(value)
    return np.array([math.fsum(own) / len(own) for own in groups.values()], dtype=np.float64)


@dataclass(frozen=True)
class _Mean:
    """The mean of a run, turned so that more is better; `v` is its squared standard error."""

    m: float
    v: float
    n: int


def _points(
    sides: Sequence[Side],
    values: dict[str, Floats],
    reasons: dict[str, str],
    sign: float,
    alpha: float,
) -> list[TrendPoint]:
    points: list[TrendPoint] = []
    earlier: list[_Mean] = []
    looks = 0
    for side in sides:
        own = values.get(side.name, np.empty(0))
        place, n = str(side.run.directory), len(own)
        mean = float(own.mean()) if n else None
        low = high = before = p = level = None
        alarm, reason = False, reasons.get(side.name, "")
        if mean is None:
            reason = reason or "it has no score"
        elif n < 2:
            reason = "it has fewer than two dialogues"
        else:
            here = _Mean(sign * mean, float(own.var(ddof=1)) / n, n)
            half = student_quantile(0.975, n - 1) * math.sqrt(here.v)
            low, high = mean - half, mean + half
            if len(earlier) >= FEWEST:
                looks += 1
                level = alpha / (looks * (looks + 1))
                middle, p = compare_with_earlier(here, earlier)
                before, alarm = sign * middle, p <= level
            else:
                reason = f"fewer than {FEWEST} runs before it"
            if not alarm:
                earlier.append(here)
        points.append(
            TrendPoint(side.name, place, n, mean, low, high, before, p, level, alarm, reason)
        )
    return points


def compare_with_earlier(last: _Mean, earlier: Sequence[_Mean]) -> tuple[float, float]:
    """Returns the mean of the earlier runs, and p of the one-sided test whether the last is
    lower."""
    k = len(earlier)
    means = np.array([one.m for one in earlier])
    middle = float(means.mean())
    usual = math.fsum(one.v for one in earlier) / k
    excess = max(0.0, last.v - usual)
    variance = max(float(means.var(ddof=1)), usual) * (1 + 1 / k) + excess
    difference = last.m - middle
    if variance <= ROUNDING * max(abs(last.m), abs(middle)) ** 2:
        return middle, 0.0 if difference < -math.sqrt(ROUNDING) * abs(middle) else 1.0
    t = difference / math.sqrt(variance)
    both = student_two_sided_p(t, k - 1)
    return middle, both / 2 if t < 0 else 1 - both / 2


def _draw(found: Trend) -> Drawing:
    shown = [(place, one) for place, one in enumerate(found.points, 1) if one.mean is not None]
    title = f"{tip_text(found.metric)} over {len(found.points)} runs"
    note = f"{found.sentence()} Bars: 95 % intervals of the mean."
    if not shown:
        return nothing(title, note)
    numbers = [value for _, one in shown for value in (one.mean, one.low, one.high)]
    frame = plane(
        (0.5, len(found.points) + 0.5),
        data_range(value for value in numbers if value is not None),
        title=title,
        x_label=f"run, from {tip_text(found.points[0].name)} to {tip_text(found.points[-1].name)}",
        y_label=found.metric,
        note=note,
        keys=[
            Key("mean", "series1"),
            *([Key("alarm", "low")] * any(p.alarm for p in found.points)),
        ],
    )
    shapes: list[Shape] = list(frame.shapes)
    line = tuple(
        (frame.x(place), frame.y(one.mean)) for place, one in shown if one.mean is not None
    )
    if len(line) > 1:
        shapes.append(Polyline(line, "series1", 1))
    for (place, one), (x, y) in zip(shown, line, strict=True):
        role = "low" if one.alarm else "series1"
        if one.low is not None and one.high is not None:
            shapes.append(Line(frame.x(place), frame.y(one.low), x, frame.y(one.high), role, 1.5))
        tip = f"{tip_text(one.name)}: {one.mean:.4g} ({one.n:,} dialogues)"
        shapes.append(Circle(x, y, 4, role, tip=tip))
    return Drawing(WIDTH, frame.height, tuple(shapes), title, note)
