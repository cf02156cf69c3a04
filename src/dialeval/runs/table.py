"""The table that answers "which system is better?": systems down, metrics across.

A cell is the mean over the system's samples, or the metric's own system score (corpus BLEU,
distinct over all responses) where it has one. Under the table stands everything that is needed to
trust it: how many samples were scored, why the others were not, and the signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.tables import TextTable
from dialeval.text import clean

FEW_TO_CALIBRATE = 20
"""With fewer values the 5th percentile is the smallest value."""

GAP = 3
"""Blanks between two columns."""


@dataclass(frozen=True)
class Column:
    """One column; `pooled` says that it is the metric's system score and not a mean."""

    label: str
    part: str = ""
    pooled: bool = False
    direction: str = "higher"

    @property
    def title(self) -> str:
        name = f"{self.label}.{self.part}" if self.part else self.label
        arrow = {"higher": " ↑", "lower": " ↓"}.get(self.direction, "")
        return f"{name} (system){arrow}" if self.pooled else name + arrow


@dataclass(frozen=True)
class ScoreTable:
    """`cells[row][column]` is None where there is no score."""

    columns: tuple[Column, ...]
    systems: tuple[str, ...]
    samples: tuple[int, ...]
    cells: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...]
    signatures: tuple[str, ...]

    def text(self, width: int = 100) -> list[list[str]]:
        """Rows of cells as people read them, the first one the header.

        Systems go down and metrics across, unless that is wider than `width`: then the other way.
        """
        columns = [format_column(column) for column in zip(*self.cells, strict=True)]
        rows = [["system", "n", *(column.title for column in self.columns)]] + [
            [system or "(unnamed)", f"{n:,}", *(column[row] for column in columns)]
            for row, (system, n) in enumerate(zip(self.systems, self.samples, strict=True))
        ]
        if sum(column_widths(rows)) + GAP * (len(rows[0]) - 1) <= width:
            return rows
        return [list(column) for column in zip(*rows, strict=True)]

    def __str__(self) -> str:
        header, *rows = [[clean(cell) for cell in row] for row in self.text()]
        widths = column_widths([header, *rows])
        lines = [
            (" " * GAP).join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in [header, ["-" * width for width in widths], *rows]
        ]
        return "\n".join([*lines, "", *map(clean, (*self.notes, *self.signatures))])

    def as_text_table(self, width: int = 100) -> TextTable:
        """Returns the cells of `text`, with notes and signatures below, for Markdown, LaTeX and
        HTML."""
        header, *rows = (tuple(row) for row in self.text(width))
        return TextTable(header, tuple(rows), 1, self.notes, code=self.signatures)

    def _repr_html_(self) -> str:
        return self.as_text_table().html()

    def to_records(self) -> list[dict[str, Any]]:
        """Returns one JSON-ready dictionary per system."""
        return [
            {
                "system": system,
                "n": n,
                "scores": {
                    column.title.rstrip(" ↑↓"): value
                    for column, value in zip(self.columns, cells, strict=True)
                },
            }
            for system, n, cells in zip(self.systems, self.samples, self.cells, strict=True)
        ]


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]


def score_table(manifest: Mapping[str, Any], parts: bool) -> ScoreTable:
    """Returns the table of a run, from its manifest alone; with `parts`, a column for each part
    too."""
    columns = [
        column for metric in manifest["metrics"] for column in _columns(metric, parts, manifest)
    ]
    systems = manifest["systems"]
    return ScoreTable(
        columns=tuple(columns),
        systems=tuple(system["name"] for system in systems),
        samples=tuple(system["samples"] for system in systems),
        cells=tuple(
            tuple(_cell(system["scores"][column.label], column) for column in columns)
            for system in systems
        ),
        notes=tuple(_notes(manifest)),
        signatures=tuple(metric["signature"] for metric in manifest["metrics"]),
    )


def _columns(metric: Mapping[str, Any], parts: bool, manifest: Mapping[str, Any]) -> list[Column]:
    label, direction = metric["label"], metric["direction"]
    pooled = any("pooled" in system["scores"][label] for system in manifest["systems"])
    columns = [Column(label, direction=direction)]
    if pooled:
        columns.append(Column(label, pooled=True, direction=direction))
    if parts:
        names = [
            part["name"]
            for part in metric["parts"]
            if not part["many"] and part.get("in_table", True)
        ]
        columns += [Column(label, name, direction=direction) for name in names]
        if pooled:
            columns += [Column(label, name, True, direction) for name in names]
    return columns


def _cell(summary: Mapping[str, Any], column: Column) -> float | None:
    if column.pooled:
        pooled = summary.get("pooled") or {"value": None, "parts": {}}
        value = pooled["parts"].get(column.part) if column.part else pooled["value"]
    else:
        value = summary["parts"].get(column.part) if column.part else summary["mean"]
    return value if value is None else float(value)


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    """Returns what a careful reader asks about a table: n of n, what was left out, what was
    dropped."""
    data = manifest["data"]
    judged = {"response": data["turns"], "whole dialogue": data["dialogues"]}
    notes = [", ".join(count(n, noun) for noun, n in judged.items() if n) or "no samples"]
    if data.get("skipped"):
        notes.append(f"{count(data['skipped'], 'bad record')} skipped")
    if data.get("warnings"):
        notes.append(f"{count(data['warnings'], 'warning')} in the input: see dialeval data check")
    scaled = [m for m in manifest["metrics"] if m["calibration"] and not m["calibration_given"]]
    if scaled:
        few = min(metric["calibration"]["n"] for metric in scaled)
        names = ", ".join(metric["label"] for metric in scaled)
        warning = ", too few for a stable scale" if few < FEW_TO_CALIBRATE else ""
        notes.append(f"{names}: scaled on this file (n = {few}{warning}); --calibration RUN reuses")
        notes[-1] += " the scale of another run"
    for metric in manifest["metrics"]:
        if metric["notes"]:
            reasons = "; ".join(f"{count} {note}" for note, count in metric["notes"].items())
            total = metric["scored"] + metric["missing"]
            notes.append(f"{metric['label']}: {metric['scored']} of {total} scored ({reasons})")
    return notes


def count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def format_column(values: Sequence[float | None]) -> list[str]:
    """Numbers of one column: three decimals below 10, fewer above, a dash for what is missing."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    decimals = 3 if largest < 10 else 2 if largest < 1000 else 0
    return ["-" if value is None else f"{value:,.{decimals}f}" for value in values]
