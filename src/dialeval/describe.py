"""A metric in words, from its own declaration: for `dialeval metrics`, the docs and the tests."""

from __future__ import annotations

import dataclasses
import inspect
import math
import typing
from dataclasses import dataclass
from typing import Any

from dialeval.errors import UsageError, explain
from dialeval.metric import Metric, option_fields, render_option
from dialeval.options import type_name
from dialeval.registry import METRICS


@dataclass(frozen=True)
class OptionDescription:
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
    cls = METRICS.get(name)
    try:
        return _describe(name, cls)
    except (Exception, SystemExit) as error:
        if not METRICS.is_plugin(name):
            raise
        raise UsageError(
            f"the plugin metric {name!r} cannot be described: {explain(error)}"
        ) from error


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
        plugin=METRICS.is_plugin(name),
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
