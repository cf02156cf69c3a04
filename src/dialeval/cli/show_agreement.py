"""Prints agreement, rankings of metrics, relations and raters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.findings import format_p
from dialeval.agreement.table import points_label
from dialeval.cli.terminal import print_table, say, screen_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dialeval.agreement.coefficient import Coefficient
    from dialeval.agreement.metric_ranking import MetricRanking
    from dialeval.agreement.raters import QualityRaters, RaterReport
    from dialeval.agreement.relations import Relations
    from dialeval.agreement.table import AgreementRow

_TESTS = {"williams": "Williams' test", "perm-both": "PERM-BOTH"}
ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}


def show_agreement(rows: Sequence[AgreementRow]) -> None:
    if not rows:
        say("no metric scored a rated sample")
        return
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
    maximum = rows[0].target == "max-over-raters"
    if maximum:
        del columns["pairs"], columns["tied"]
    print_table(
        list(columns),
        [[column(row) for column in columns.values()] for row in rows],
        right=range(list(columns).index("n"), len(columns)),
    )
    first = rows[0]
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
    say()
    for note in notes:
        say(note, style="dim")


def _estimate(found: Coefficient) -> str:
    if found.value is None:
        return f"- ({found.reason})"
    stars = "" if found.p is None or found.p >= 0.05 else "**" if found.p < 0.01 else "*"
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.3f}{stars}{interval}"


def number_text(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def show_rankings(rankings: Sequence[MetricRanking]) -> None:
    """Prints the metrics in order with their clusters, and all pairs."""
    for ranking in rankings:
        say()
        name = ranking.coefficient.capitalize()
        compared = points_label(ranking.level, ranking.by)
        say(f"{ranking.quality} ({ranking.dataset}, {compared}): {name}", style="bold")
        print_table(
            ["cluster", "metric", name, "n"],
            [
                [
                    str(one.cluster),
                    one.metric + (" (inverted: lower is better)" if one.turned else ""),
                    number_text(one.correlation) if not one.reason else f"- ({one.reason})",
                    f"{one.n:,}",
                ]
                for one in ranking.metrics
            ],
            right=[2, 3],
        )
        say()
        print_table(
            ["metric", "against", "difference", "p", "p after Holm", "n"],
            [
                [
                    pair.first,
                    pair.second,
                    number_text(pair.test.difference, "+.3f"),
                    p_text(pair.test.p) if pair.test.p is not None else f"- ({pair.test.reason})",
                    p_text(pair.p_holm) + star(pair.p_holm, ranking.alpha),
                    f"{pair.test.n:,}",
                ]
                for pair in ranking.pairs
            ],
            right=[2, 3, 4, 5],
        )
        for remark in (ranking.remark, ranking.warning):
            if remark:
                say(remark, stderr=True, style="yellow")
    if rankings:
        say()
        say(
            "cluster: going down the table, a new one begins with the first metric that is"
            " significantly worse than a metric of the cluster above it\n"
            f"*: significant, p of {_TESTS[rankings[0].test]} <= {rankings[0].alpha:g} after Holm's"
            " correction for all pairs of the quality; all on the samples that every metric"
            " scored",
            style="dim",
        )


def p_text(p: float | None) -> str:
    return "-" if p is None else format_p(p).removeprefix("p ").removeprefix("= ")


def star(p: float | None, alpha: float) -> str:
    return "*" if p is not None and p <= alpha else ""


def show_relations(found: Sequence[Relations]) -> None:
    if not found:
        say("no two metrics or qualities to relate")
    for one in found:
        say(f"{one.of} among themselves, {one.coefficient} ({one.dataset}, {one.points})")
        print_table(
            ["", *one.names],
            [
                [name, *(number_text(value, ".2f") for value in values[: place + 1])]
                + [""] * (len(one.names) - place - 1)
                for place, (name, values) in enumerate(zip(one.names, one.values, strict=True))
            ],
            right=range(1, len(one.names) + 1),
        )
        counts = [n for row in one.n for n in row]
        most, least = max(counts), min(counts)
        say(f"n = {most:,}" if most == least else f"n = {least:,} to {most:,}", style="dim")
        if one.note:
            say(one.note, style="yellow")
        say()


def show_raters(reports: Sequence[QualityRaters]) -> None:
    """Prints a table for each level, with a row for each statistic; qualities that do not fit on
    the screen go into another table."""
    levels = list(dict.fromkeys(one.level for one in reports))
    for level in levels:
        if len(levels) > 1:
            say(f"{level}s", style="bold")
        for some in _that_fit([one for one in reports if one.level == level], screen_width()):
            rows = [[title, *(line(one.report) for one in some)] for title, line in _LINES.items()]
            print_table(["", *(one.quality for one in some)], rows, right=range(1, len(some) + 1))
            say()
    for one in reports:
        name = f"{one.quality} ({one.level}s)" if len(levels) > 1 else one.quality
        for rater in one.report.raters:
            if rater.looks_random:
                say(f"{name}: {rater.name} looks random: {rater.reason}", style="yellow")
        unknown = {r.reason: r.name for r in one.report.raters if r.reason and not r.looks_random}
        for reason, rater_name in unknown.items():
            alike = sum(r.reason == reason for r in one.report.raters)
            who = "" if alike == len(one.report.raters) else f"{rater_name}: "
            if who and alike > 1:
                who = f"{alike} raters: "
            say(f"{name}: {who}{reason}", style="dim")


def _that_fit(reports: Sequence[QualityRaters], width: int) -> Iterator[list[QualityRaters]]:
    first = max(map(len, _LINES))
    some: list[QualityRaters] = []
    used = first
    for one in reports:
        needed = max(len(one.quality), 7) + 2
        if some and used + needed > width:
            yield some
            some, used = [], first
        some.append(one)
        used += needed
    if some:
        yield some


def _value(found: Coefficient) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


_LINES: dict[str, Callable[[RaterReport], str]] = {
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
