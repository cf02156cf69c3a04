"""A comparison in the two forms that build servers show: JUnit XML, and a GitHub step summary.

A decision becomes one test case. A failed one is a `failure`, one that cannot be told is `skipped`:
build servers show it without failing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from dialeval.agreement.findings import Change, Compared, format_p, verdict
from dialeval.text import clean

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.decision import Decision

MOST_TEXT = 300
"""Characters of an answer in a summary."""

SIGNS = {"FAILED": "\N{CROSS MARK}", "PASSED": "\N{WHITE HEAVY CHECK MARK}"}
UNDECIDED = "\N{WARNING SIGN}\ufe0f"


def junit_xml(comparison: Comparison) -> str:
    """The decisions as a JUnit test suite."""
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
    """The comparison as GitHub's Markdown: the decisions, the verdict of people, a table, and the
    answers that changed most, if they were asked for."""
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
    """The answers that fell most, under a failure, if they were asked for."""
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
    """What XML can hold, on one line."""
    return re.sub("[\ud800-\udfff\ufffe\uffff]", "\ufffd", clean(text)).replace("\n", " ")


def _markdown(text: str) -> str:
    """A stranger's text stays text: no markup, no link, no mention of a user, no new line."""
    one_line = " ".join(_text(text).split())
    escaped = re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(one_line, quote=False))
    return re.sub("(@|:(?=//))", "\\1\N{ZERO WIDTH SPACE}", escaped)
