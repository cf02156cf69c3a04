"""The tables of the comparison: one number per cell for programs, `.342/.348` for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dialeval.studies.comparison_published import OURS, PUBLISHED, SOURCE, value
from dialeval.studies.study import Table

if TYPE_CHECKING:
    from dialeval.agreement.coefficient import Coefficient
    from dialeval.studies.comparison import Cell

Key = tuple[str, str, str]
"""Set, level, quality."""

ACROSS = 5
"""Columns of a table that people read; more go into a table of their own."""

MAIN = ("Overall", "overall", "appropriateness")
"""The quality that speaks for a set, if it has one of them; else its first."""

LEVEL = 0.05
NOTHING = "-"
LEVELS = {"turn": "turns", "dialogue": "dialogues"}


def overview_tables(cells: Sequence[Cell]) -> list[Table]:
    """Metrics down, sets across, by their main quality; beneath each what was published of it, and
    at the end what was published of others."""
    keys = list(dict.fromkeys(map(key_of, cells)))
    qualities: dict[tuple[str, str], list[str]] = {}
    for dataset, level, quality in keys:
        qualities.setdefault((dataset, level), []).append(quality)
    main = [
        (*of, next((q for q in MAIN if q in names), names[0])) for of, names in qualities.items()
    ]
    published = {
        OURS.get(name, name): (f"{name}, {SOURCE}", {key: str(p) for key, p in pairs.items()})
        for name, pairs in PUBLISHED.items()
    }
    rows: list[tuple[str, Mapping[Key, str]]] = []
    for label, shown in by_metric(cells).items():
        rows += [(label, shown), *([published.pop(label)] if label in published else [])]
    rows += published.values()
    titles = {key: f"{key[0]}, {LEVELS[key[1]]}: {key[2]}" for key in main}
    return wide_tables("One quality of each set: Pearson/Spearman", titles, rows)


def quality_tables(cells: Sequence[Cell]) -> list[Table]:
    """One for each set with several qualities: metrics down, qualities across. A metric that has
    nothing to say about a set (no references) stands in the overview, with a dash."""
    tables = []
    keys = dict.fromkeys(map(key_of, cells))
    for dataset, level in dict.fromkeys(key[:2] for key in keys):
        titles = {key: key[2] for key in keys if key[:2] == (dataset, level)}
        if len(titles) > 1:
            rows = [
                (label, shown)
                for label, shown in by_metric(cells).items()
                if any(shown.get(key, NOTHING) != NOTHING for key in titles)
            ]
            tables += wide_tables(f"{dataset}, {LEVELS[level]}: Pearson/Spearman", titles, rows)
    return tables


def wide_tables(
    title: str, columns: Mapping[Key, str], rows: Sequence[tuple[str, Mapping[Key, str]]]
) -> list[Table]:
    """At most so many columns in a table, and no row that would be empty."""
    keys = list(columns)
    tables = []
    for start in range(0, len(keys), ACROSS):
        some = keys[start : start + ACROSS]
        part = f" ({start // ACROSS + 1} of {-(-len(keys) // ACROSS)})"
        body = tuple(
            (label, *(shown.get(key, "") for key in some))
            for label, shown in rows
            if any(key in shown for key in some)
        )
        header = ("metric", *(columns[key] for key in some))
        tables.append(Table(title + (part if len(keys) > ACROSS else ""), header, body))
    return tables


def complete_table(cells: Iterable[Cell]) -> Table:
    """Everything, for programs."""
    names = {ours: printed for printed, ours in OURS.items()}
    rows: list[tuple[str | float | None, ...]] = []
    for cell in cells:
        pearson, spearman = cell.found["pearson"], cell.found["spearman"]
        pair = PUBLISHED.get(names.get(cell.metric, ""), {}).get(key_of(cell))
        rows.append(
            (
                *key_of(cell),
                cell.metric,
                pearson.n,
                pearson.n_missing,
                pearson.value,
                pearson.p,
                spearman.value,
                spearman.p,
                value(pair.pearson) if pair else None,
                value(pair.spearman) if pair else None,
                SOURCE if pair else "",
                pearson.reason or spearman.reason,
            )
        )
    header = (
        "set", "level", "quality", "metric", "n", "missing",
        "pearson", "pearson p", "spearman", "spearman p",
        "published pearson", "published spearman", "published by", "reason",
    )  # fmt: skip
    return Table("Every correlation", header, tuple(rows), for_programs=True)


def by_metric(cells: Iterable[Cell]) -> dict[str, dict[Key, str]]:
    found: dict[str, dict[Key, str]] = {}
    for cell in cells:
        pearson, spearman = (short(cell.found[name]) for name in ("pearson", "spearman"))
        both = NOTHING if pearson == spearman == NOTHING else f"{pearson}/{spearman}"
        found.setdefault(cell.metric, {})[key_of(cell)] = both
    return found


def key_of(cell: Cell) -> Key:
    return (cell.dataset, cell.level, cell.quality)


def short(found: Coefficient) -> str:
    """`.342`, `-.084*`: as such tables are printed."""
    if found.value is None:
        return NOTHING
    mark = "*" if found.p is not None and found.p >= LEVEL else ""
    return f"{found.value:.3f}".replace("0.", ".", 1) + mark
