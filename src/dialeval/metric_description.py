"""A metric in words, from its own declaration: for `dialeval metrics`, the docs and the tests.

`describe_metric` tells what a metric is, `bibtex` which papers it comes from.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import typing
from dataclasses import dataclass
from typing import Any

from dialeval.errors import UsageError, explain
from dialeval.metric import Metric, option_fields, render_option
from dialeval.options import type_name
from dialeval.registry import METRICS, find_metric
from dialeval.version import __version__


@dataclass(frozen=True)
class OptionDescription:
    """An option of a metric, as texts."""

    name: str
    type: str
    default: str
    summary: str


@dataclass(frozen=True)
class MetricDescription:
    """All that is to be said about a metric, as texts."""

    name: str
    version: int
    summary: str
    details: str
    levels: str
    needs: str
    direction: str
    range: str
    citation: str
    plugin: bool
    options: tuple[OptionDescription, ...]
    parts: tuple[tuple[str, str], ...]
    signature: str

    def to_record(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        lines = [f"{self.name} (v{self.version}): {self.summary}", ""]
        lines += [*self.details.split("\n"), ""] if self.details else []
        lines += [
            f"judges     {self.levels}",
            f"needs      {self.needs or 'nothing but the response'}",
            f"better     {self.direction}",
            f"range      {self.range}",
        ]
        if self.options:
            lines += ["", "options"]
            lines += [f"  {o.name}={o.default}  ({o.type})  {o.summary}" for o in self.options]
        if self.parts:
            lines += ["", "parts"]
            lines += [f"  {name}  {summary}" for name, summary in self.parts]
        lines += ["", f"signature  {self.signature}", f"source     {self.citation}"]
        return "\n".join(lines)


def describe_metric(name: str) -> MetricDescription:
    """Returns what a metric says of itself; a `UsageError` where a plugin cannot say it."""
    cls = find_metric(name)
    try:
        return _describe(name, cls)
    except (Exception, SystemExit) as error:
        if not _is_foreign(name):
            raise
        raise UsageError(
            f"the plugin metric {name!r} cannot be described: {explain(error)}"
        ) from error


def _is_foreign(name: str) -> bool:
    return name not in METRICS.names() or METRICS.is_plugin(name)


def _describe(name: str, cls: type[Metric]) -> MetricDescription:
    metric = cls()
    summary, _, details = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
    # The chapter that the metric stands in: its formula, its source, its modes.
    chapter = inspect.getdoc(inspect.getmodule(cls)) or ""
    return MetricDescription(
        name=name,
        version=cls.version,
        summary=" ".join(summary.split()),
        details="\n\n".join(text for text in (chapter, details) if text),
        levels=", ".join(sorted(metric.levels, reverse=True)),
        needs=", ".join(sorted(metric.needs)),
        direction=metric.direction,
        range=f"{_bound(metric.range[0])} to {_bound(metric.range[1])}",
        citation=metric.citation,
        plugin=_is_foreign(name),
        options=_options(cls),
        parts=tuple((part.name, part.summary) for part in metric.parts()),
        signature=str(metric.signature()),
    )


def _options(cls: type[Metric]) -> tuple[OptionDescription, ...]:
    hints = typing.get_type_hints(cls)
    return tuple(
        OptionDescription(
            field.name,
            type_name(hints[field.name]),
            render_option(field.default),
            field.metadata.get("summary", ""),
        )
        for field in option_fields(cls)
    )


def _bound(value: float) -> str:
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value:g}"


_PAPER = re.compile(
    r"(?P<authors>[^:]+): (?P<title>.+)\. (?P<venue>.*?) ?\b(?P<year>(?:19|20)\d\d)\b"
    r"(?P<rest>[^(]*)(?:\((?P<note>.*)\))?"
)
"""The form of a citation: `Papineni, Roukos, Ward, Zhu: BLEU: a Method. ACL 2002`."""
_JOURNALS = ("TOIS",)


def bibtex(citation: str) -> str:
    """Returns the papers that a citation names as BibTeX (authors by surname), then dialeval
    itself."""
    papers = re.split(r"; (?=[^;:]+: )", citation)
    found = [match for paper in papers if (match := _PAPER.fullmatch(paper.strip()))]
    return "\n\n".join([*map(_entry, found), _OWN_ENTRY])


def _entry(paper: re.Match[str]) -> str:
    authors = [name.strip() for name in paper["authors"].split(",")]
    venue = f"{paper['venue'].strip(', ')}{paper['rest'].rstrip()}".strip()
    kind = "misc" if not venue else "article" if venue in _JOURNALS else "inproceedings"
    word = re.sub(r"\W", "", paper["title"].split()[0]).lower()
    surname = re.sub(r"\W", "", authors[0]).lower()
    fields = {
        "author": " and ".join(authors),
        "title": "{" + paper["title"] + "}",
        {"article": "journal", "misc": ""}.get(kind, "booktitle"): venue,
        "year": paper["year"],
        "note": paper["note"] or "",
    }
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items() if name and text]
    return "\n".join([f"@{kind}{{{surname}{paper['year']}{word},", *lines, "}"])


_OWN_ENTRY = f"""@software{{dialeval,
  author = {{{{The dialeval maintainers}}}},
  title = {{{{dialeval: judging open-domain dialogue}}}},
  version = {{{__version__}}},
}}"""
