"""Relations of metrics with each other, and of rated qualities with each other (HolisticEval, 5.5).

Two metrics that correlate strongly measure the same thing, and one of them is enough; two such
qualities were one question to the raters. Each cell uses the samples that have both numbers (by
system: the means of systems over these) and reports their number. A quality is the mean rating, or
another target.

A turn and a whole dialogue are different samples, so no sample has both `coherence` and the
`diversity` of a probe. They are related through the dialogue: each metric counts with its mean over
the samples of a dialogue of a system (by system: of the system). If no dialogue has samples of both
levels, the matrix says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.agreement.significance import CoefficientName
from dialeval.agreement.table import By, correlate, points_label
from dialeval.errors import UsageError
from dialeval.progress import Progress

if TYPE_CHECKING:
    from dialeval.agreement.coefficient import Coefficient
    from dialeval.agreement.rated import RatedLevel
    from dialeval.sample import Level

Of = Literal["metrics", "qualities"]


@dataclass(frozen=True)
class Relations:
    """A symmetric matrix; a value is None if it is undefined.

    level  "both": turns and dialogues, related through the dialogue
    note   the reason if nothing relates the levels
    """

    dataset: str
    level: Level | Literal["both"]
    by: By
    of: Of
    coefficient: CoefficientName
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    p: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]
    note: str = ""

    @property
    def points(self) -> str:
        """The name of what is correlated, for headings."""
        if self.level != "both":
            return points_label(self.level, self.by)
        return f"means of {'systems' if self.by == 'system' else 'dialogues'} over both levels"

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Block:
    """Columns of the same length to relate; `by` says how their rows are grouped."""

    level: Level | Literal["both"]
    of: Of
    columns: Mapping[str, Floats]
    dataset: str
    systems: Sequence[str]
    by: By
    note: str = ""


def relations(
    levels: Iterable[RatedLevel],
    coefficient: CoefficientName = "spearman",
    *,
    metrics: Sequence[str] = (),
    by: By = "turn",
    progress: Progress | None = None,
) -> list[Relations]:
    """For each level the metrics, then the qualities (at least two); then those of several
    levels."""
    if by.startswith("within"):
        raise UsageError(f"--relations does not support --by {by}: use --by turn or --by system")
    wanted = [block for block in _blocks(levels, metrics, by) if len(block.columns) > 1]
    cells = [len(block.columns) * (len(block.columns) - 1) // 2 for block in wanted]
    found: list[Relations] = []

    def report(done: int) -> None:
        if progress:
            progress(sum(cells[: len(found)]) + done, sum(cells))

    for block in wanted:
        found.append(_related(block, coefficient, report))
    return found


def relate_columns(
    columns: Mapping[str, Floats],
    *,
    dataset: str,
    by: By = "turn",
    coefficient: CoefficientName = "pearson",
) -> Relations:
    """Relates columns whose rows are the same dialogues (by system: the same systems)."""
    block = _Block("both", "metrics", columns, dataset, (), by)
    return _related(block, coefficient, lambda done: None)


def _related(
    block: _Block, coefficient: CoefficientName, report: Callable[[int], None]
) -> Relations:
    # The rows of a block across levels are means already.
    grouping: By = "turn" if block.level == "both" else block.by

    def relate(x: Floats, y: Floats) -> Coefficient:
        return correlate(x, y, block.systems, grouping, names=[coefficient])[coefficient]

    columns = list(block.columns.values())
    values, p = (_square(len(columns), None) for _ in range(2))
    counts = _square(len(columns), 0)
    for i, column in enumerate(columns):
        alone = relate(column, column)
        values[i][i], p[i][i], counts[i][i] = alone.value, alone.p, alone.n
    for done, (i, j) in enumerate(combinations(range(len(columns)), 2)):
        one = relate(columns[i], columns[j])
        for a, b in ((i, j), (j, i)):
            values[a][b], p[a][b], counts[a][b] = one.value, one.p, one.n
        report(done + 1)
    return Relations(
        block.dataset,
        block.level,
        block.by,
        block.of,
        coefficient,
        tuple(block.columns),
        tuple(map(tuple, values)),
        tuple(map(tuple, p)),
        tuple(map(tuple, counts)),
        block.note,
    )


def _blocks(levels: Iterable[RatedLevel], metrics: Sequence[str], by: By) -> list[_Block]:
    blocks: list[_Block] = []
    for dataset, of_dataset in _by_dataset(levels).items():
        columns: dict[Of, list[dict[str, Floats]]] = {"metrics": [], "qualities": []}
        for level in of_dataset:
            if level.target.kind == "max-over-raters":
                raise UsageError("qualities have no maximum over raters: use --target mean")
            columns["metrics"].append(_metrics(level, metrics))
            columns["qualities"].append(_qualities(level))
            blocks += [
                _Block(level.level, of, some[-1], dataset, level.systems, by)
                for of, some in columns.items()
            ]
        for of, some in columns.items():
            blocks += _across(of_dataset, of, some, by)
    return blocks


def _by_dataset(levels: Iterable[RatedLevel]) -> dict[str, list[RatedLevel]]:
    found: dict[str, list[RatedLevel]] = {}
    for level in levels:
        found.setdefault(level.dataset, []).append(level)
    return found


def _across(
    levels: Sequence[RatedLevel], of: Of, columns: Sequence[Mapping[str, Floats]], by: By
) -> list[_Block]:
    """Relates columns of several levels, as means over dialogues or systems. There is nothing to do
    if the levels have the same columns, or no quality is alone on its level."""
    alone = any(len(some) == 1 for some in columns)
    everything = [name for some in columns for name in some]
    differ = any(set(some) != set(everything) for some in columns)
    if sum(map(bool, columns)) < 2 or not differ or not (alone or of == "metrics"):
        return []
    keys = [_keys(level, by) for level in levels]
    rows = {key: row for row, key in enumerate(dict.fromkeys(key for some in keys for key in some))}
    seen = [{key for key in some if key[1]} for some in keys]
    shared = len(set.intersection(*seen))
    if not shared and not alone:
        return []
    means: dict[str, Floats] = {}
    for level, own_keys, some in zip(levels, keys, columns, strict=True):
        places = np.array([rows[key] if key[1] else -1 for key in own_keys], dtype=np.int64)
        for name, column in some.items():
            title = name if everything.count(name) == 1 else f"{name} ({level.level}s)"
            means[title] = _means(column, places, len(rows))
    unit = "system" if by == "system" else "dialogue"
    note = "" if shared else f"Turns and dialogues are not related: no {unit} has samples of both."
    systems = [key[0] for key in rows]
    return [_Block("both", of, means, levels[0].dataset, systems, by, note)]


def _keys(level: RatedLevel, by: By) -> list[tuple[str, str]]:
    """Returns the system and the dialogue of each sample; the dialogue is empty if unknown."""
    if by == "system":
        return [(system, system) for system in level.systems]
    return list(zip(level.systems, level.dialogues, strict=True))


def _means(column: Floats, places: Integers, rows: int) -> Floats:
    """Returns the mean of the numbers of each row, NaN if it has none."""
    use = (places >= 0) & ~np.isnan(column)
    sums = np.bincount(places[use], weights=column[use], minlength=rows)
    counts = np.bincount(places[use], minlength=rows)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _metrics(level: RatedLevel, wanted: Sequence[str]) -> dict[str, Floats]:
    return {
        name: column
        for name, column in level.scores.items()
        if (not wanted or name in wanted) and not np.isnan(column).all()
    }


def _qualities(level: RatedLevel) -> dict[str, Floats]:
    """Quality -> a number for each sample of the level, NaN if it was not rated."""
    columns: dict[str, Floats] = {}
    for quality, rated in level.qualities.items():
        column = np.full(len(level.systems), np.nan)
        column[rated.places] = rated.ratings[:, 0]
        if not np.isnan(column).all():
            columns[quality] = column
    return columns


def _square(size: int, value: Any) -> list[list[Any]]:
    return [[value] * size for _ in range(size)]
