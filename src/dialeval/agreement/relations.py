"""How metrics relate to each other, and the rated qualities to each other (HolisticEval, 5.5).

Two metrics that correlate strongly measure the same thing, and one of them is enough; two qualities
that do were one question to the raters. Each cell rests on the samples that have both numbers (by
system: on the means of systems over these), and says how many; a quality is the mean rating, or
whatever target was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.cases import By, correlate
from dialeval.agreement.ranks import Floats
from dialeval.agreement.resampling import Progress
from dialeval.agreement.williams import CoefficientName
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.agreement.correlation import Correlation
    from dialeval.agreement.grouping import WithinGroups
    from dialeval.agreement.rated import RatedLevel
    from dialeval.sample import Level


@dataclass(frozen=True)
class Relations:
    """A symmetric matrix; a value is None where it is not defined."""

    dataset: str
    level: Level
    by: By
    of: Literal["metrics", "qualities"]
    coefficient: CoefficientName
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    p: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def relations(
    levels: Iterable[RatedLevel],
    coefficient: CoefficientName = "spearman",
    *,
    metrics: Sequence[str] = (),
    by: By = "turn",
    progress: Progress | None = None,
) -> list[Relations]:
    """For each level the metrics among themselves, then the qualities (two at least)."""
    if by.startswith("within"):
        raise UsageError(f"--relations knows no --by {by}: use --by turn or --by system")
    wanted: list[tuple[RatedLevel, Literal["metrics", "qualities"], dict[str, Floats]]] = []
    for level in levels:
        if level.target.kind == "max-over-raters":
            raise UsageError("qualities have no maximum over raters: use --target mean")
        scores = {
            name: column
            for name, column in level.scores.items()
            if (not metrics or name in metrics) and not np.isnan(column).all()
        }
        wanted += [(level, "metrics", scores), (level, "qualities", _qualities(level))]
    wanted = [one for one in wanted if len(one[2]) > 1]
    cells = [len(columns) * (len(columns) - 1) // 2 for _, _, columns in wanted]
    found: list[Relations] = []

    def relate(x: Floats, y: Floats, systems: Sequence[str]) -> Correlation | WithinGroups:
        return correlate(x, y, systems, by, names=[coefficient])[coefficient]

    def report(done: int) -> None:
        if progress:
            progress(sum(cells[: len(found)]) + done, sum(cells))

    for level, of, columns in wanted:
        names = tuple(columns)
        values, p = (_square(len(names), None) for _ in range(2))
        counts = _square(len(names), 0)
        for i, name in enumerate(names):
            alone = relate(columns[name], columns[name], level.systems)
            values[i][i], p[i][i], counts[i][i] = alone.value, alone.p, alone.n
        for done, (i, j) in enumerate(combinations(range(len(names)), 2)):
            one = relate(columns[names[i]], columns[names[j]], level.systems)
            for a, b in ((i, j), (j, i)):
                values[a][b], p[a][b], counts[a][b] = one.value, one.p, one.n
            report(done + 1)
        rows = (tuple(tuple(row) for row in matrix) for matrix in (values, p, counts))
        found.append(Relations(level.dataset, level.level, by, of, coefficient, names, *rows))
    return found


def _qualities(level: RatedLevel) -> dict[str, Floats]:
    """Quality -> a number for each sample of the level, NaN where it was not rated."""
    columns: dict[str, Floats] = {}
    for quality, rated in level.qualities.items():
        column = np.full(len(level.systems), np.nan)
        column[rated.places] = rated.ratings[:, 0]
        if not np.isnan(column).all():
            columns[quality] = column
    return columns


def _square(size: int, value: Any) -> list[list[Any]]:
    return [[value] * size for _ in range(size)]
