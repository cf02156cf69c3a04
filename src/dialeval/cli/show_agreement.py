"""How agreement, rankings of metrics, relations and raters look on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.verdict import format_p
from dialeval.terminal import print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dialeval.agreement.coefficient import Agreement
    from dialeval.agreement.raters import RaterReport
    from dialeval.agreement.relations import Relations
    from dialeval.agreement.rivals import MetricRanking
    from dialeval.agreement.table import AgreementRow, Estimate

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
    print_table(
        list(columns),
        [[column(row) for column in columns.values()] for row in rows],
        right=range(list(columns).index("n"), len(columns)),
    )
    first = rows[0]
    notes = [
        "[low, high]: 95 % interval; * p < .05, ** p < .01",
        "pairs: share of the pairs of items that the metric orders (or ties) as people do, near"
        " ties calibrated; tied: pairs that people tie",
    ]
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
    if first.target == "max-over-raters":
        notes.append(
            "target: maximum over raters (PONE's rule): the largest correlation with a rater, the"
            " smallest p, no interval"
        )
    elif first.target != "mean":
        notes.append(f"target: {first.target}")
    say()
    for note in notes:
        say(note, style="dim")


def _estimate(found: Estimate) -> str:
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
    """Metrics in order with lines between clusters, and the pairs behind them."""
    for ranking in rankings:
        say()
        name = ranking.coefficient.capitalize()
        say(f"{ranking.quality} ({ranking.dataset}, {ranking.level}s): {name}", style="bold")
        print_table(
            ["cluster", "metric", name, "n"],
            [
                [
                    str(one.cluster),
                    one.metric + (" (turned over: lower is better)" if one.turned else ""),
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
        if ranking.warning:
            say(ranking.warning, stderr=True, style="yellow")
    if rankings:
        say()
        say(
            f"{rankings[0].test}; a cluster ends before the first metric than which one of it is"
            f" better (* p after Holm <= {rankings[0].alpha:g}, over the pairs of a quality)",
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
        say(f"{one.of} among themselves, {one.coefficient} ({one.dataset}, {one.level}s)")
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
        say()


def show_raters(reports: Mapping[str, RaterReport]) -> None:
    def number(found: Agreement) -> str:
        return "-" if found.value is None else f"{found.value:.3f}"

    lines: dict[str, Callable[[RaterReport], str]] = {
        "items": lambda r: f"{r.n_items:,}",
        "raters": lambda r: f"{r.n_raters:,}",
        "missing ratings": lambda r: f"{r.n_missing:,}",
        "leave one out: Pearson, mean": lambda r: number(r.leave_one_out.pearson_mean),
        "leave one out: Pearson, max": lambda r: number(r.leave_one_out.pearson_max),
        "leave one out: Spearman, mean": lambda r: number(r.leave_one_out.spearman_mean),
        "leave one out: Spearman, max": lambda r: number(r.leave_one_out.spearman_max),
        "pairs: Pearson, mean": lambda r: number(r.pairwise.pearson_mean),
        "pairs: Spearman, mean": lambda r: number(r.pairwise.spearman_mean),
        "Cohen's kappa": lambda r: number(r.cohen_kappa),
        "Cohen's kappa, quadratic": lambda r: number(r.cohen_kappa_quadratic),
        "Fleiss' kappa": lambda r: number(r.fleiss_kappa),
        "Krippendorff's alpha, ordinal": lambda r: number(r.alpha_ordinal),
        "Krippendorff's alpha, interval": lambda r: number(r.alpha_interval),
        "ICC(2,k)": lambda r: number(r.icc_mean),
        "variance": lambda r: number(r.human_variance),
    }
    rows = [
        [title, *(line(report) for report in reports.values())] for title, line in lines.items()
    ]
    print_table(["", *reports], rows, right=range(1, len(reports) + 1))
    for quality, report in reports.items():
        for rater in report.raters:
            if rater.looks_random:
                say(f"{quality}: {rater.name} looks random: {rater.reason}", style="yellow")
