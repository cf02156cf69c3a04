"""Pictures of agreement: scatter plots, bars with intervals, matrices, differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dialeval.agreement.correlation import system_means
from dialeval.agreement.table import By, ScoredQuality, check_rated, points_label, scored_qualities
from dialeval.pictures import Bar, Drawing, bar_chart, matrix_plot, scatter_plot, small_multiples

if TYPE_CHECKING:
    from dialeval.agreement.coefficient import Coefficient
    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.rated import RatedLevel
    from dialeval.agreement.relations import Relations
    from dialeval.agreement.table import AgreementRow

MOST_PANELS = 30
"""The largest number of scatter plots in one picture."""


def draw_agreement(
    levels: Sequence[RatedLevel],
    rows: Sequence[AgreementRow],
    metrics: Sequence[str] = (),
    scatter: bool = False,
) -> Drawing:
    """Scatter plots if there is one row or `scatter` is true, else bars of Spearman's rho."""
    if not rows:
        return bar_chart([], title="no correlations")
    if len(rows) > 1 and not (scatter and len(rows) <= MOST_PANELS):
        return _bars(rows)
    by = rows[0].by
    check_rated(levels)
    everything = [one for level in levels for one in scored_qualities(level, metrics, by)]
    panels = [draw_scatter(one, row, by) for one, row in zip(everything, rows, strict=True)]
    return panels[0] if len(panels) == 1 else small_multiples(panels)


def draw_relations(found: Sequence[Relations]) -> Drawing:
    """Draws a matrix for the metrics and one for the qualities."""
    panels = [
        matrix_plot(
            one.names,
            one.names,
            one.values,
            title=f"{one.of.capitalize()} among themselves ({one.points})",
            note=f"{one.coefficient.capitalize()}, {one.dataset}" + (one.note and f". {one.note}"),
        )
        for one in found
    ]
    if not panels:
        return matrix_plot([], [], [], title="no two metrics or qualities to relate")
    return panels[0] if len(panels) == 1 else small_multiples(panels, columns=2)


def draw_comparison(comparison: Comparison) -> Drawing:
    """Effects with intervals; to the right of 0 the second side is better (or has more)."""
    panels = []
    for first, second in dict.fromkeys((row.first, row.second) for row in comparison.rows):
        bars = []
        for row in comparison.rows:
            if (row.first, row.second) != (first, second) or row.outcome == "not comparable":
                continue
            ends = [_standardised(end, row.difference, row.effect) for end in (row.low, row.high)]
            sign = -1.0 if row.direction == "lower" else 1.0
            value, low, high = (
                None if number is None else sign * number for number in (row.effect, *ends)
            )
            if sign < 0:
                low, high = high, low
            bars.append(Bar(f"{row.name}{_DIRECTIONS[row.direction]}", value, low, high, row.level))
        if len({bar.group for bar in bars}) == 1:
            bars = [Bar(bar.label, bar.value, bar.low, bar.high) for bar in bars]
        panels.append(
            bar_chart(
                bars,
                title=f"{second} against {first}",
                x_label="difference in standard deviations of the scores",
                note=f"to the right: {second} is better (neither: it has more). 95 % intervals;"
                f" {comparison.joined:,} joined by {comparison.joined_by}",
            )
        )
    return panels[0] if len(panels) == 1 else small_multiples(panels, columns=2)


_DIRECTIONS = {"higher": "", "lower": " (lower is better)", "neither": " (neither)"}


def _standardised(
    end: float | None, difference: float | None, effect: float | None
) -> float | None:
    """Converts an end of the interval to the scale of the effect."""
    if end is None or not difference or effect is None:
        return None
    return end * effect / difference


def _bars(rows: Sequence[AgreementRow]) -> Drawing:
    """Returns a chart for each data set and level, with the qualities of a metric side by side."""
    panels = []
    for dataset, level in dict.fromkeys((row.dataset, row.level) for row in rows):
        here = [row for row in rows if (row.dataset, row.level) == (dataset, level)]
        several = len({row.quality for row in here}) > 1
        order = {metric: i for i, metric in enumerate(dict.fromkeys(row.metric for row in here))}
        bars = [
            Bar(
                row.metric,
                (found := row.correlations["spearman"]).value,
                found.low,
                found.high,
                row.quality if several else "",
            )
            for row in sorted(here, key=lambda row: order[row.metric])
        ]
        about = "" if several else f" with {here[0].quality}"
        intervals = "; 95 % intervals" if any(bar.low is not None for bar in bars) else ""
        note = f"{dataset}, by {here[0].by}, target: {here[0].target}{intervals}"
        panels.append(
            bar_chart(
                bars,
                title=f"Agreement{about} ({points_label(level, here[0].by)})",
                x_label="Spearman's rank correlation",
                note=note,
            )
        )
    return panels[0] if len(panels) == 1 else small_multiples(panels, columns=2)


def draw_scatter(scored: ScoredQuality, row: AgreementRow, by: By) -> Drawing:
    """Draws the scatter plot of one metric against one quality."""
    human, names = scored.ratings[:, 0], list(scored.groups)
    what = "mean rating"
    if row.target != "mean":
        best = row.correlations["spearman"].rater
        raters = scored.level.qualities[scored.quality].raters
        chosen = raters.index(best) if best else 0
        human, what = scored.ratings[:, chosen], f"rating by {raters[chosen]}"
    x, y = scored.scores, human
    if by == "system":
        means = system_means(scored.scores, human, names)
        x, y, names = means.x, means.y, list(dict.fromkeys(names))
    there = ~(np.isnan(x) | np.isnan(y))
    shown = [name or "(unnamed)" for name, kept in zip(names, there.tolist(), strict=True) if kept]
    groups = shown if by in ("system", "within-system") and len(set(shown)) > 1 else []
    return scatter_plot(
        y[there].tolist(),
        x[there].tolist(),
        title=f"{scored.metric} and {scored.quality}",
        x_label=f"{scored.quality}, {what}",
        y_label=scored.metric,
        groups=groups,
        note=f"{scored.level.dataset}: Spearman {_text(row.correlations['spearman'])}, Pearson"
        f" {_text(row.correlations['pearson'])} (by {by}); n = {row.n:,},"
        f" {row.n_missing:,} missing",
    )


def _text(found: Coefficient) -> str:
    if found.value is None:
        return f"undefined ({found.reason})"
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{interval}"
