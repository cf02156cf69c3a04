"""Prints a probe: while it runs, when it ends, and query by query."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dialeval.cli.terminal import PLAIN_PROGRESS_SECONDS, console, say
from dialeval.probe.report import CONTRADICTION
from dialeval.runs.table import count

if TYPE_CHECKING:
    from dialeval.probe.probing import ProbeProgress, ProbeSummary
    from dialeval.probe.report import ProbedQuery

Watch = Callable[["ProbeProgress"], None]

LONGEST_TEXT = 300
"""Characters of an answer that are shown."""

MORE_VARIANTS = (
    "Another augmenter may find one: --with eda, or --with ws --with eda (with --overwrite)"
)


@contextmanager
def asking_bar(*, quiet: bool = False) -> Iterator[Watch]:
    """Shows how many questions are finished and how many failed, the speed, and the time left."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        with _moving_bar() as watch:
            yield watch
    else:
        yield _plain_lines()


class _Speed:
    """The speed of a stage since it began."""

    def __init__(self) -> None:
        self._stage = ""
        self._start = (0.0, 0)

    def per_second(self, progress: ProbeProgress) -> float:
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._start = progress.stage, (now, progress.done)
        began, before = self._start
        return (progress.done - before) / (now - began) if now > began else 0.0


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


@contextmanager
def _moving_bar() -> Iterator[Watch]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    speed = _Speed()
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("probing", total=None, note="")

        def watch(progress: ProbeProgress) -> None:
            failures = f", {progress.failed:,} failed" if progress.failed else ""
            bar.update(
                task,
                description=progress.stage,
                completed=progress.done,
                total=progress.total,
                note=_rate(speed.per_second(progress)) + failures,
            )

        yield watch


def _plain_lines() -> Watch:
    """Prints a line every few seconds if the output cannot show a moving bar."""
    last, speed = time.monotonic(), _Speed()

    def watch(progress: ProbeProgress) -> None:
        nonlocal last
        per_second = speed.per_second(progress)
        if time.monotonic() - last < PLAIN_PROGRESS_SECONDS:
            return
        last = time.monotonic()
        left = (progress.total - progress.done) / per_second if per_second else None
        say(
            f"{progress.stage}: {progress.done:,} of {progress.total:,}, {_rate(per_second)},"
            f" {progress.failed:,} failed" + ("" if left is None else f", about {left:.0f} s left"),
            stderr=True,
        )

    return watch


def show_summary(summary: ProbeSummary, quiet: bool) -> None:
    """Prints what was asked and what failed, with examples, and what to do next."""
    if not quiet:
        replies = "reply" if summary.answered == 1 else "replies"
        say(
            f"{summary.system}: {count(summary.asked, 'question')} asked now,"
            f" {summary.answered:,} {replies} to {_queries(summary.queries)}"
        )
        made = ", ".join(f"{n:,} {how or 'given'}" for how, n in summary.variants.items())
        say(f"variants: {made}", style="dim")
        if summary.unchanged:
            told = count(summary.unchanged, "variant")
            say(f"left out: {told} with the same words as the query", style="dim")
        if summary.bare:
            say(f"not asked: {_queries(summary.bare)} without a variant. {MORE_VARIANTS}")
    show_failures(summary)
    if not summary.answered:
        say("No question was answered.", stderr=True, style="red")
    elif not summary.scorable:
        say(
            "Nothing can be scored: no query has two answers to compare.",
            stderr=True,
            style="red",
        )
    if quiet or not summary.scorable:
        return
    gaps = summary.gaps
    if gaps.diversity or gaps.consistency or gaps.variants:
        samples = count(gaps.diversity + gaps.consistency, "sample")
        say(
            f"Missing because of the failures: {samples},"
            f" and {count(gaps.variants, 'answer')} in other samples."
            " Repeat the command to ask them again.",
            style="yellow",
        )
    made = ", ".join(f"{n:,} of {name}" for name, n in summary.samples.items() if n)
    say(f"samples: {made}. Score them:")
    metrics = " ".join(f"-m {name}" for name, n in summary.samples.items() if n)
    say(f"    dialeval score {summary.directory} {metrics} -o {summary.directory}-scores")
    say(f"    dialeval show {summary.directory}-scores")


def show_failures(summary: ProbeSummary) -> None:
    """Prints what went wrong in a probe, with examples and advice."""
    if summary.damaged:
        told = count(summary.damaged, "recorded exchange")
        say(f"damaged and asked again: {told}", stderr=True, style="yellow")
    for failure in summary.failures:
        say(f"{failure.count:,} failed: {failure.reason}", stderr=True, style="yellow")
        for example in failure.examples:
            say(f"    {example}", stderr=True, style="yellow")
        if failure.advice:
            say(f"    {failure.advice}", stderr=True, style="yellow")
    if summary.cut:
        replies = "1 reply is" if summary.cut == 1 else f"{summary.cut:,} replies are"
        say(
            f"{replies} not whole: the server reached its token limit. To raise the limit:"
            " --set max_tokens=N --overwrite",
            stderr=True,
            style="yellow",
        )


def show_queries(queries: Sequence[ProbedQuery], top: int, full: bool = False) -> None:
    """Prints queries with their answers; long texts are cut, unless `full`."""
    for number, query in enumerate(queries[:top], 1):
        _show_query(number, query, _whole if full else shortened)
    if len(queries) > top:
        say(f"... and {_queries(len(queries) - top)} more (see: --top)", style="dim")


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1].rstrip() + "…"


def _whole(text: str) -> str:
    return text


def _show_query(number: int, query: ProbedQuery, cut: Callable[[str], str]) -> None:
    system = f" ({query.system})" if query.system else ""
    say(f"{number}. {query.id}{system}: {_verdict(query)}", style="bold")
    for text in query.context:
        say(f"     {cut(text)}", style="dim")
    for place, said in enumerate(query.answers):
        contradicts = (said.contradiction or 0.0) > CONTRADICTION
        mark = f"   contradicts the first, {said.contradiction:.2f}" if contradicts else ""
        words, style = cut(said.query), "cyan" if place == 0 else None
        say(f"   {'?' if place == 0 else '~'} {words}", style=style)
        say(f"       {cut(said.response)}{mark}", style="red" if contradicts else None)
    for pair in query.again:
        contradicts = (pair.probability or 0.0) > CONTRADICTION
        likely = "" if pair.probability is None else f", contradiction {pair.probability:.2f}"
        say(f"   asked again{likely}", style="red" if contradicts else None)
        say(f"       said     {cut(pair.earlier)}")
        say(f"     ~ {cut(pair.paraphrase)}")
        say(f"       and then {cut(pair.later)}", style="red" if contradicts else None)
    for note in query.notes:
        say(f"   {note}", style="dim")
    say()


def _verdict(query: ProbedQuery) -> str:
    found = []
    if query.answers:
        found.append(f"{count(query.different, 'different answer')} of {len(query.answers)}")
    if (dispersion := query.entropy.get("dispersion")) is not None:
        found.append(f"dispersion {abs(dispersion):.2f}")
    if orders := _orders(query, "entropy"):
        found.append(f"entropy {orders} (normalised {_orders(query, 'normalised')})")
    if query.consistency is not None:
        found.append(f"consistency {query.consistency:.2f}")
    return ", ".join(found) or "not scored"


def _orders(query: ProbedQuery, part: str) -> str:
    """Returns the values of the n-grams of order 1, 2 and 3, as far as there are any."""
    values = [query.entropy.get(f"{part}-{n}") for n in (1, 2, 3)]
    return " / ".join(f"{value:.2f}" for value in values if value is not None)


def _queries(n: int) -> str:
    return f"{n:,} query" if n == 1 else f"{n:,} queries"
