"""Is the new version worse? One decision for each metric that a team has named beforehand.

Let d be the mean paired difference, turned so that a positive one is better, [low, high] its 95 %
interval, and p that of the paired permutation test (`comparison.py`):

    worse        d < -margin, and p <= alpha
    better       d > 0, and p <= alpha
    not worse    low >= -margin: a drop of more than the margin is unlikely
    cannot tell  anything else: the data do not show which

So a build fails only if the drop is real (significant) and matters (larger than the margin). With a
margin of 0, "not worse" needs an interval that holds no drop at all; a team that wants to hear "not
worse" has to say which drop it would accept.

p has Holm's correction over the decisions alone, not over every metric of the runs: these were
chosen beforehand, and the other metrics are there to be looked at. So p can be smaller here than in
the table. The first side is what all other sides are held against.

Build servers show decisions in two forms, JUnit XML and a GitHub step summary. A decision becomes
one test case: a failed one is a `failure`, and one that cannot be told is `skipped`, which build
servers show without failing.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from dialeval.agreement.findings import Change, Compared, format_p, verdict
from dialeval.agreement.significance import holm
from dialeval.errors import UsageError, did_you_mean
from dialeval.text import clean

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.sample import Level


DEFAULT_METRIC = "judge"
"""The metric to decide on if none is named."""

Verdict = Literal["worse", "better", "not worse", "cannot tell"]


@dataclass(frozen=True)
class Decision:
    """The decision about the second side on one metric; `difference` is second - first."""

    level: Level
    metric: str
    first: str
    second: str
    verdict: Verdict
    failed: bool
    """Whether a build should fail: it is worse, or cannot be told and that was forbidden."""
    margin: float
    alpha: float
    mean_first: float | None
    mean_second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    """After Holm's correction over the decisions."""
    n: int
    tests: int

    @property
    def word(self) -> str:
        if self.failed:
            return "FAILED"
        return "UNDECIDED" if self.verdict == "cannot tell" else "PASSED"

    def sentence(self) -> str:
        """Returns one line for a build log."""
        return f"{self.word}: {self._claim()}{self._numbers()}.{self._remark()}"

    def _claim(self) -> str:
        where = f"{self.metric} ({self.level}s)" if self.level == "dialogue" else self.metric
        if self.verdict == "cannot tell":
            return f"cannot tell whether {self.second} is worse than {self.first} on {where}"
        return f"{self.second} is {self.verdict} than {self.first} on {where}"

    def _numbers(self) -> str:
        rows = f"{self.n:,} {'dialogue' if self.level == 'dialogue' else 'answer'}"
        rows += "" if self.n == 1 else "s"
        if self.difference is None or self.mean_first is None or self.mean_second is None:
            return f": {rows} with a score on both sides"
        interval = "" if self.low is None else f" [{self.low:+.3g}, {self.high:+.3g}]"
        p = "" if self.p is None else f", {format_p(self.p)}"
        means = f"{self.mean_second:.4g} against {self.mean_first:.4g}"
        return f": {means}, {self.difference:+.3g}{interval}{p}, {rows}"

    def _remark(self) -> str:
        allowed = f" The margin is {self.margin:g}." if self.margin else ""
        if self.verdict == "not worse" and self.low == self.high == 0.0:
            return " Every score is the same."
        if self.verdict != "cannot tell":
            return allowed
        needed = 1 + math.ceil(math.log2(self.tests / self.alpha))
        if self.n < needed:
            return (
                f" With fewer than {needed} answers no difference can be significant at"
                f" {self.alpha:g}.{allowed}"
            )
        return f"{allowed or ' No margin was given.'} More answers, or a larger margin, decide it."

    def to_record(self) -> dict[str, Any]:
        return asdict(self) | {"sentence": self.sentence()}


def decide(
    comparison: Comparison,
    metrics: Sequence[str] = (DEFAULT_METRIC,),
    margin: float | Mapping[str, float] = 0.0,
    fail_if_unsure: bool = False,
) -> tuple[Decision, ...]:
    """Decides, for each of these metrics, whether a later side is worse than the first.

    margin          drop that is accepted, in the unit of the metric; {metric: drop} for several
    fail_if_unsure  whether "cannot tell" fails, too
    """
    margins = _margins(metrics, margin)
    rows = [
        row
        for metric in metrics
        for row in _rows(comparison, metric)
        if row.first == comparison.sides[0].name
    ]
    corrected = holm([row.p for row in rows])
    tests = max(1, sum(p is not None for p in corrected))
    return tuple(
        _decision(row, p, margins[row.metric], comparison.alpha, tests, fail_if_unsure)
        for row, p in zip(rows, corrected, strict=True)
    )


def _margins(metrics: Sequence[str], margin: float | Mapping[str, float]) -> Mapping[str, float]:
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(metrics, margin)
    for metric, value in given.items():
        if metric not in metrics:
            raise UsageError(
                f"margin of {metric!r}: nothing is decided on it.{did_you_mean(metric, metrics)}"
                f" Decided on: {', '.join(metrics)}"
            )
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"margin {value:g}: a margin is a number of at least 0")
    return {metric: given.get(metric, 0.0) for metric in metrics}


def _rows(comparison: Comparison, metric: str) -> list[Compared]:
    """Returns the rows of a metric that can be decided on; a build must not pass because there are
    none."""
    rows = [row for row in comparison.rows if row.metric == metric]
    known = list(dict.fromkeys(row.metric for row in comparison.rows))
    if not rows:
        raise UsageError(
            f"cannot decide on {metric!r}: the joined samples have no score of it."
            f"{did_you_mean(metric, known)} Name one of theirs:"
            f" --fail-if-worse {known[0]} (there are: {', '.join(known)})"
        )
    if rows[0].direction == "neither":
        raise UsageError(f"cannot decide on {metric!r}: neither more nor less of it is better")
    if any(row.outcome == "not comparable" for row in rows):
        why = next((note for note in comparison.warnings if note.startswith(f"{metric}:")), "")
        raise UsageError(f"cannot decide on {metric!r}. {why}".rstrip())
    return rows


def _decision(
    row: Compared, p: float | None, margin: float, alpha: float, tests: int, fail_if_unsure: bool
) -> Decision:
    verdict = _verdict(row, p, margin, alpha)
    failed = verdict == "worse" or (verdict == "cannot tell" and fail_if_unsure)
    return Decision(
        row.level,
        row.name,
        row.first,
        row.second,
        verdict,
        failed,
        margin,
        alpha,
        row.mean_first,
        row.mean_second,
        row.difference,
        row.low,
        row.high,
        p,
        row.n,
        tests,
    )


def _verdict(row: Compared, p: float | None, margin: float, alpha: float) -> Verdict:
    if row.difference is None or row.low is None or row.high is None or p is None:
        return "cannot tell"
    higher = row.direction == "higher"
    gain, lowest = (row.difference, row.low) if higher else (-row.difference, -row.high)
    if p <= alpha and gain < -margin:
        return "worse"
    if p <= alpha and gain > 0:
        return "better"
    return "not worse" if lowest >= -margin else "cannot tell"


MOST_TEXT = 300
"""Characters of an answer in a summary."""

SIGNS = {"FAILED": "\N{CROSS MARK}", "PASSED": "\N{WHITE HEAVY CHECK MARK}"}
UNDECIDED = "\N{WARNING SIGN}\ufe0f"


def junit_xml(comparison: Comparison) -> str:
    """Returns the decisions as a JUnit test suite."""
    decisions = comparison.decisions
    undecided = [one for one in decisions if one.word == "UNDECIDED"]
    suite = ElementTree.Element(
        "testsuite",
        name="dialeval compare",
        tests=str(len(decisions)),
        failures=str(sum(one.failed for one in decisions)),
        errors="0",
        skipped=str(len(undecided)),
    )
    for one in decisions:
        title = f"{one.second} is not worse than {one.first} on {one.metric} ({one.level}s)"
        case = ElementTree.SubElement(
            suite, "testcase", classname="dialeval.compare", name=_text(title)
        )
        if one.failed:
            failure = ElementTree.SubElement(
                case, "failure", message=_text(one.sentence()), type="worse"
            )
            failure.text = "\n".join([_text(one.sentence()), *_answers(comparison, one)])
        elif one in undecided:
            ElementTree.SubElement(case, "skipped", message=_text(one.sentence()))
    output = ElementTree.SubElement(suite, "system-out")
    output.text = "\n".join(map(_text, [*comparison.warnings, *verdict(comparison)]))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def github_summary(comparison: Comparison) -> str:
    """Returns the comparison as GitHub's Markdown: the decisions, the verdict of people, a table,
    and the answers that changed most, if they were asked for."""
    names = " and ".join(side.name for side in comparison.sides)
    lines = [f"### dialeval compare: {_markdown(names)}", ""]
    for decision in comparison.decisions:
        lines += [f"{SIGNS.get(decision.word, UNDECIDED)} {_markdown(decision.sentence())}", ""]
    for preference in comparison.preferences:
        lines += [_markdown(preference.sentence()), ""]
    head = ["metric", "first", "second", "mean", "mean", "difference", "p after Holm", "n", ""]
    lines += [_cells(head), _cells(["---"] * len(head))]
    lines += [_cells(_row(row)) for row in comparison.rows]
    lines += ["", "Difference: second minus first, with its 95 % interval."]
    lines += [f"- {_markdown(warning)}" for warning in comparison.warnings]
    if comparison.changes:
        lines += ["", "<details><summary>Answers that changed most</summary>", ""]
        lines += [line for change in comparison.changes for line in _change(change, comparison)]
        lines += ["</details>"]
    return "\n".join(lines) + "\n"


def _answers(comparison: Comparison, decision: Decision) -> list[str]:
    """Returns the answers that fell most, under a failure, if they were asked for."""
    return [
        _text(f"{change.difference:+.3g}  {change.ids[1]}: {change.responses[1][:MOST_TEXT]}")
        for change in comparison.changes
        if (change.metric, change.level, change.kind) == (decision.metric, decision.level, "worse")
    ]


def _row(row: Compared) -> list[str]:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    interval = "" if row.low is None else f" [{row.low:+.3g}, {row.high:+.3g}]"
    difference = "-" if row.difference is None else f"{row.difference:+.3g}{interval}"
    p = "-" if row.p_holm is None else format_p(row.p_holm)
    means = [number(row.mean_first), number(row.mean_second)]
    name = f"{row.name} ({row.level}s)"
    return [name, row.first, row.second, *means, difference, p, f"{row.n:,}", row.outcome]


def _change(change: Change, comparison: Comparison) -> list[str]:
    ids = change.ids[0] if change.ids[0] == change.ids[1] else " / ".join(change.ids)
    lines = [f"- **{change.difference:+.3g}** on {_markdown(change.metric)}: {_markdown(ids)}"]
    if change.context:
        lines.append(f"  - before: {_markdown(change.context[-1][:MOST_TEXT])}")
    names = [side.name for side in comparison.sides]
    for name, score, response in zip(names, change.scores, change.responses, strict=True):
        lines.append(f"  - {_markdown(name)} ({score:.3g}): {_markdown(response[:MOST_TEXT])}")
    return lines


def _cells(cells: Sequence[str]) -> str:
    plain = [cell if set(cell) == {"-"} else _markdown(cell) for cell in cells]
    return f"| {' | '.join(plain)} |"


def _text(text: str) -> str:
    """Returns the text on one line, without characters that XML cannot hold."""
    return re.sub("[\ud800-\udfff\ufffe\uffff]", "\ufffd", clean(text)).replace("\n", " ")


def _markdown(text: str) -> str:
    """A stranger's text stays text: no markup, no link, no mention of a user, no new line."""
    one_line = " ".join(_text(text).split())
    escaped = re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(one_line, quote=False))
    return re.sub("(@|:(?=//))", "\\1\N{ZERO WIDTH SPACE}", escaped)
