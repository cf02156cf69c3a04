"""Scores that another tool computed: a CSV with a column `id` and one column for each metric."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from dialeval.errors import InputError, Problem, UsageError

Scores = Mapping[str, Mapping[str, float | None]]
"""Metric -> id of the sample -> score."""


def read_scores(path: Path) -> Scores:
    """All of its columns. An empty cell is a missing score; everything else must be a number."""
    problems: list[Problem] = []
    scores: dict[str, dict[str, float | None]] = {}
    seen: set[str] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "id" not in (rows.fieldnames or ()):
                raise UsageError(f"{path}: a column named 'id' is needed to join the scores")
            for row in rows:
                if row["id"] in seen:
                    text = f"{row['id']!r} occurs twice"
                    problems.append(Problem(str(path), rows.line_num, "id", text))
                seen.add(row["id"])
                for name, text in row.items():
                    if name is None or name == "id":
                        continue
                    try:
                        value = float(text) if text else None
                    except (TypeError, ValueError):
                        problems.append(
                            Problem(str(path), rows.line_num, name, f"{text!r} is not a number")
                        )
                        continue
                    scores.setdefault(name, {})[row["id"]] = value
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if problems:
        raise InputError(problems[:1000], max(0, len(problems) - 1000))
    if not scores:
        raise UsageError(f"{path}: no column of scores beside 'id'")
    return scores
