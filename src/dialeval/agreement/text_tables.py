"""Agreement, rankings, relations, raters and comparisons as tables of texts.

The screen, a notebook and `dialeval agree -o table.tex` show these cells. `paper_tables` is the
table that a paper about a metric prints: metrics down, qualities across.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dialeval.agreement.findings import Compared, format_p
from dialeval.agreement.raters import QualityRaters, RaterReport
from dialeval.agreement.table import AgreementRow, points_label
from dialeval.tables import TextTable

if TYPE_CHECKING:
    from dialeval.agreement.coefficient import Coefficient
    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.correlation import Name
    from dialeval.agreement.metric_ranking import MetricRanking
    from dialeval.agreement.relations import Relations

ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
_TESTS = {"williams": "Williams' test", "perm-both": "PERM-BOTH"}
_PAPER: Mapping[Name, str] = {"pearson": "r", "spearman": "ρ"}
"""The coefficients in the table of a paper, and how their columns are called."""


def agreement_table(rows: Sequence[AgreementRow]) -> TextTable:
    """Everything that was found, a row for each metric and quality."""
    columns: dict[str, Callable[[AgreementRow], str]] = {
        "dataset": lambda row: row.dataset,
        "level": lambda row: row.level,
        "quality": lambda row: row.quality,
        "metric": lambda row: row.metric + ARROWS[row.direction],
        "n": lambda row: f"{row.n:,}",
        "missing": lambda row: f"{row.n_missing:,}",
        "Pearson": lambda row: _estimate(row.correlations["pearson"]),
        "Spearman": lambda row: _estimate(row.correlations["spearman"]),
        "Kendall": lambda row: _estimate(row.correlations["kendall"]),
        "pairs": lambda row: number_text(row.pairwise.value),
        "tied": lambda row: _share(row.pairwise.human_ties, row.pairwise.n_pairs),
    }
    for name in ("dataset", "level"):
        if len({columns[name](row) for row in rows}) == 1:
            del columns[name]
    if rows and rows[0].target == "max-over-raters":
        del columns["pairs"], columns["tied"]
    return TextTable(
        tuple(columns),
        tuple(tuple(column(row) for column in columns.values()) for row in rows),
        list(columns).index("n"),
        tuple(_agreement_notes(rows)) if rows else ("no metric scored a rated sample",),
    )


def _agreement_notes(rows: Sequence[AgreementRow]) -> list[str]:
    first = rows[0]
    maximum = first.target == "max-over-raters"
    estimates = [found for row in rows for found in row.correlations.values()]
    without = sorted({found.no_interval for found in estimates if found.no_interval})
    intervals = "[low, high]: 95 % interval; " if any(e.low is not None for e in estimates) else ""
    notes = [f"{intervals}* p < .05, ** p < .01"]
    if without:
        notes.append(f"no interval: {', '.join(without)}")
    if not maximum:
        notes.append(
            "pairs: share of the pairs of items that the metric orders (or ties) as people do, near"
            " ties calibrated; tied: pairs that people tie"
        )
    if first.by == "system":
        notes.append("by system: n counts systems, each with its mean score and mean rating")
    elif first.by != "turn":
        undefined = max(row.correlations["spearman"].groups_undefined or 0 for row in rows)
        groups = max(row.correlations["spearman"].groups or 0 for row in rows)
        what = first.by.removeprefix("within-")
        notes.append(
            f"by {first.by}: mean of the correlations within up to {groups:,} {what}s; in up to"
            f" {undefined:,} there is none (fewer than 3 samples, or constant)"
        )
    if maximum:
        notes.append(
            "target: maximum over raters (PONE's rule): the largest correlation with a rater, the"
            " smallest p, no interval"
        )
    elif first.target != "mean":
        notes.append(f"target: {first.target}")
    return notes


def paper_tables(
    rows: Sequence[AgreementRow], signatures: Mapping[str, str] | None = None
) -> list[TextTable]:
    """Returns a table for each data set and level: metrics down, qualities across, the best in
    bold.

    The signatures of the metrics that are known stand below it.
    """
    tables = []
    for dataset, level in dict.fromkeys((row.dataset, row.level) for row in rows):
        here = [row for row in rows if (row.dataset, row.level) == (dataset, level)]
        tables.append(_paper_table(here, signatures or {}))
    return tables


def _paper_table(rows: Sequence[AgreementRow], signatures: Mapping[str, str]) -> TextTable:
    qualities = list(dict.fromkeys(row.quality for row in rows))
    metrics = list(dict.fromkeys(row.metric for row in rows))
    found = {(row.metric, row.quality): row for row in rows}
    columns = [(quality, name) for quality in qualities for name in _PAPER]
    cells, bold = [], set()
    for metric in metrics:
        one = next(row for row in rows if row.metric == metric)
        line = [metric + ARROWS[one.direction]]
        for quality, name in columns:
            row = found.get((metric, quality))
            line.append(_starred(row.correlations[name]) if row else "-")
        cells.append(tuple(line))
    for column, (quality, name) in enumerate(columns, 1):
        of_column = {
            place: row
            for place, metric in enumerate(metrics)
            if (row := found.get((metric, quality))) and row.correlations[name].value is not None
        }
        if len(of_column) > 1:
            best = max(of_column, key=lambda place: _oriented(of_column[place], name))
            bold.add((best, column))
    counts = [row.n for row in rows]
    n = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
    first = rows[0]
    notes = [
        f"r: Pearson, ρ: Spearman with the {_target(first.target)}; n = {n}"
        f" ({points_label(first.level, first.by)}); * p < .05, ** p < .01; the best of each column"
        " is bold"
    ]
    if missing := sum(row.n_missing for row in rows):
        notes.append(f"{missing:,} of {missing + sum(counts):,} rated scores are missing")
    return TextTable(
        ("metric", *(f"{quality} {_PAPER[name]}" for quality, name in columns)),
        tuple(cells),
        1,
        tuple(notes),
        f"Agreement with people: {first.dataset or 'ratings'}",
        tuple(signatures[metric] for metric in metrics if metric in signatures),
        frozenset(bold),
    )


def _oriented(row: AgreementRow, name: Name) -> float:
    value = row.correlations[name].value or 0.0
    return -value if row.direction == "lower" else value


def _target(target: str) -> str:
    return {"mean": "mean rating", "max-over-raters": "closest rater"}.get(target, target)


CSV_COLUMNS = ("dataset", "level", "by", "target", "quality", "metric", "direction", "n")


def agreement_csv(rows: Sequence[AgreementRow]) -> TextTable:
    """Returns all numbers in full, a row for each metric and quality, for programs."""
    names: tuple[Name, ...] = ("pearson", "spearman", "kendall")
    numbers = [f"{name}{end}" for name in names for end in ("", "_p", "_low", "_high")]
    header = (*CSV_COLUMNS, "n_missing", *numbers, "pairwise")
    lines = []
    for row in rows:
        found = [row.correlations[name] for name in names]
        values = [v for one in found for v in (one.value, one.p, one.low, one.high)]
        numbers = ["" if v is None else repr(float(v)) for v in (*values, row.pairwise.value)]
        texts = [str(getattr(row, name)) for name in (*CSV_COLUMNS, "n_missing")]
        lines.append((*texts, *numbers))
    return TextTable(header, tuple(lines), len(CSV_COLUMNS) - 1)


def _starred(found: Coefficient) -> str:
    if found.value is None:
        return f"- ({found.reason})"
    stars = "" if found.p is None or found.p >= 0.05 else "**" if found.p < 0.01 else "*"
    return f"{found.value:.3f}{stars}"


def _estimate(found: Coefficient) -> str:
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return _starred(found) + interval * (found.value is not None)


def number_text(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def ranking_tables(ranking: MetricRanking) -> tuple[TextTable, TextTable]:
    """Returns the metrics in order with their clusters, and the tests of all pairs."""
    name = ranking.coefficient.capitalize()
    compared = points_label(ranking.level, ranking.by)
    order = [
        (
            str(one.cluster),
            one.metric + (" (inverted: lower is better)" if one.turned else ""),
            number_text(one.correlation) if not one.reason else f"- ({one.reason})",
            f"{one.n:,}",
        )
        for one in ranking.metrics
    ]
    pairs = [
        (
            pair.first,
            pair.second,
            number_text(pair.test.difference, "+.3f"),
            p_text(pair.test.p) if pair.test.p is not None else f"- ({pair.test.reason})",
            p_text(pair.p_holm) + star(pair.p_holm, ranking.alpha),
            f"{pair.test.n:,}",
        )
        for pair in ranking.pairs
    ]
    return (
        TextTable(
            ("cluster", "metric", name, "n"),
            tuple(order),
            2,
            title=f"{ranking.quality} ({ranking.dataset}, {compared}): {name}",
        ),
        TextTable(("metric", "against", "difference", "p", "p after Holm", "n"), tuple(pairs), 2),
    )


def ranking_notes(ranking: MetricRanking) -> tuple[str, str]:
    """Returns the meaning of clusters and stars, to stand below all rankings."""
    return (
        "cluster: going down the table, a new one begins with the first metric that is"
        " significantly worse than a metric of the cluster above it",
        f"*: significant, p of {_TESTS[ranking.test]} <= {ranking.alpha:g} after Holm's"
        " correction for all pairs of the quality; all on the samples that every metric scored",
    )


def p_text(p: float | None) -> str:
    return "-" if p is None else format_p(p).removeprefix("p ").removeprefix("= ")


def star(p: float | None, alpha: float) -> str:
    return "*" if p is not None and p <= alpha else ""


def relations_table(one: Relations) -> TextTable:
    """Returns the lower half of a matrix."""
    rows = [
        (
            name,
            *(number_text(value, ".2f") for value in values[: place + 1]),
            *[""] * (len(one.names) - place - 1),
        )
        for place, (name, values) in enumerate(zip(one.names, one.values, strict=True))
    ]
    counts = [n for row in one.n for n in row]
    most, least = max(counts), min(counts)
    n = f"n = {most:,}" if most == least else f"n = {least:,} to {most:,}"
    title = f"{one.of} among themselves, {one.coefficient} ({one.dataset}, {one.points})"
    notes = (n, one.note) if one.note else (n,)
    return TextTable(("", *one.names), tuple(rows), 1, notes, title)


def rater_table(reports: Sequence[QualityRaters], title: str = "") -> TextTable:
    """Returns a row for each statistic, a column for each quality of one level."""
    rows = [(name, *(line(one.report) for one in reports)) for name, line in STATISTICS.items()]
    return TextTable(("", *(one.quality for one in reports)), tuple(rows), 1, (), title)


def rater_remarks(reports: Sequence[QualityRaters]) -> Iterable[tuple[str, bool]]:
    """Sentences about single raters, and whether they are a warning."""
    several = len({one.level for one in reports}) > 1
    for one in reports:
        name = f"{one.quality} ({one.level}s)" if several else one.quality
        for rater in one.report.raters:
            if rater.looks_random:
                yield f"{name}: {rater.name} looks random: {rater.reason}", True
        unknown = {r.reason: r.name for r in one.report.raters if r.reason and not r.looks_random}
        for reason, rater_name in unknown.items():
            alike = sum(r.reason == reason for r in one.report.raters)
            who = "" if alike == len(one.report.raters) else f"{rater_name}: "
            if who and alike > 1:
                who = f"{alike} raters: "
            yield f"{name}: {who}{reason}", False


def _value(found: Coefficient) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


STATISTICS: dict[str, Callable[[RaterReport], str]] = {
    "items": lambda r: f"{r.n_items:,}",
    "raters": lambda r: f"{r.n_raters:,}",
    "missing ratings": lambda r: f"{r.n_missing:,}",
    "leave one out: Pearson, mean": lambda r: _value(r.leave_one_out.pearson_mean),
    "leave one out: Pearson, max": lambda r: _value(r.leave_one_out.pearson_max),
    "leave one out: Spearman, mean": lambda r: _value(r.leave_one_out.spearman_mean),
    "leave one out: Spearman, max": lambda r: _value(r.leave_one_out.spearman_max),
    "pairs: Pearson, mean": lambda r: _value(r.pairwise.pearson_mean),
    "pairs: Pearson, max": lambda r: _value(r.pairwise.pearson_max),
    "pairs: Spearman, mean": lambda r: _value(r.pairwise.spearman_mean),
    "pairs: Spearman, max": lambda r: _value(r.pairwise.spearman_max),
    "Cohen's kappa": lambda r: _value(r.cohen_kappa),
    "Cohen's kappa, linear": lambda r: _value(r.cohen_kappa_linear),
    "Cohen's kappa, quadratic": lambda r: _value(r.cohen_kappa_quadratic),
    "Fleiss' kappa": lambda r: _value(r.fleiss_kappa),
    "Krippendorff's alpha, nominal": lambda r: _value(r.alpha_nominal),
    "Krippendorff's alpha, ordinal": lambda r: _value(r.alpha_ordinal),
    "Krippendorff's alpha, interval": lambda r: _value(r.alpha_interval),
    "ICC(2,1)": lambda r: _value(r.icc_single),
    "ICC(2,k)": lambda r: _value(r.icc_mean),
    "variance": lambda r: _value(r.human_variance),
}


def comparison_table(comparison: Comparison) -> TextTable:
    """Returns a row for each metric and pair of sides."""
    columns: dict[str, Callable[[Compared], str]] = {
        "level": lambda row: row.level,
        "metric": lambda row: row.name + ARROWS[row.direction],
        "first": lambda row: row.first,
        "second": lambda row: row.second,
        "mean": lambda row: number_text(row.mean_first, ".4g"),
        "mean ": lambda row: number_text(row.mean_second, ".4g"),
        "difference": lambda row: _difference(row),
        "effect": lambda row: number_text(row.effect, "+.2f"),
        "p": lambda row: p_text(row.p),
        "after Holm": lambda row: p_text(row.p_holm) + star(row.p_holm, comparison.alpha),
        "n": lambda row: f"{row.n:,}",
    }
    titles = {name: name for name in columns}
    if len(comparison.sides) == 2:
        titles |= {"mean": comparison.sides[0].name, "mean ": comparison.sides[1].name}
        del columns["first"], columns["second"]
    if len({row.level for row in comparison.rows}) == 1:
        del columns["level"]
    return TextTable(
        tuple(titles[name] for name in columns),
        tuple(tuple(column(row) for column in columns.values()) for row in comparison.rows),
        list(columns).index("mean"),
        (
            "difference: second - first, [95 % interval]; effect: in standard deviations; ↑ higher,"
            " ↓ lower is better",
        ),
    )


def _difference(row: Compared) -> str:
    if row.difference is None:
        return f"- ({row.reason or row.outcome})"
    interval = "" if row.low is None else f" [{row.low:.3g}, {row.high:.3g}]"
    return f"{row.difference:+.3g}{interval}"


def standings_table(comparison: Comparison) -> TextTable | None:
    """Returns a row per side, best first by the first metric; each mean with its cluster."""
    if not comparison.standings:
        return None
    cells = [
        {
            side.name: "-" if side.mean is None else f"{side.mean:.4g} ({side.cluster})"
            for side in one.sides
        }
        for one in comparison.standings
    ]
    return TextTable(
        ("", *(f"{one.name}{ARROWS[one.direction]}" for one in comparison.standings)),
        tuple((name, *(of_metric.get(name, "-") for of_metric in cells)) for name in cells[0]),
        1,
        (
            "(n): cluster; whoever has a smaller number is better than everybody with a larger one"
            " or, where a metric has no arrow, has more",
        ),
    )
