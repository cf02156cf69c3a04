"""The four metrics of HolisticEval for one or several chatbots: a row a system, and relations.

`Mean` is the mean of a metric over the queries, with Student's 95 % interval. `relations` are
those of section 5.5, of metrics and not of ratings: over queries (each metric counts with its mean
for a query and a system), and over systems where there are three or more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import student_quantile
from dialeval.agreement.correlation import FEWEST
from dialeval.agreement.relations import Relations, relate_columns
from dialeval.agreement.text_tables import number_text, p_text
from dialeval.pictures import Bar, Drawing, bar_chart, matrix_plot, small_multiples
from dialeval.probe.plan import BASELINE, PLAIN
from dialeval.runs.table import count
from dialeval.tables import TextTable

if TYPE_CHECKING:
    from dialeval.probe.probing import ProbeSummary

ASPECTS = ("coherence", "fluency", "diversity", "consistency")
LEVEL = 0.95


@dataclass(frozen=True)
class Judged:
    """One value: what is judged, of which query of which system, by which column of the table.

    value  None where there is none, and `note` says why
    """

    system: str
    query: str
    aspect: str
    by: str
    value: float | None
    note: str = ""

    @property
    def column(self) -> str:
        return f"{self.aspect} {self.by}".strip()


@dataclass(frozen=True)
class Mean:
    """The mean of `n` values of `total`; `low` and `high` bound its interval."""

    value: float | None
    n: int
    total: int
    low: float | None = None
    high: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        half = "" if self.high is None else f" ±{self.high - self.value:.2f}"
        return f"{self.value:.2f}{half}"


def mean_of(values: Sequence[Judged]) -> Mean:
    """Student's interval: mean -+ t s / sqrt(n). One value has none."""
    there = [one.value for one in values if one.value is not None]
    notes = Counter(one.note for one in values if one.value is None)
    reason = "; ".join(f"{n} {note or 'without a value'}" for note, n in notes.most_common())
    if not there:
        return Mean(None, 0, len(values), reason=reason or "nothing to judge")
    mean = math.fsum(there) / len(there)
    if len(there) == 1:
        return Mean(mean, 1, len(values), reason=reason)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in there) / (len(there) - 1))
    half = student_quantile((1 + LEVEL) / 2, len(there) - 1) * spread / math.sqrt(len(there))
    return Mean(mean, len(there), len(values), mean - half, mean + half, reason)


@dataclass(frozen=True)
class HolisticResult:
    """What `dialeval holistic` found.

    rows       system -> column (`coherence`, `diversity ws`, `consistency plain`, ...) -> mean
    relations  over queries; over systems, too, where there are at least three
    probes     what became of the questions to each system
    """

    directory: Path
    rows: Mapping[str, Mapping[str, Mean]]
    relations: tuple[Relations, ...]
    probes: tuple[ProbeSummary, ...]
    signatures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        found = dict.fromkeys(column for row in self.rows.values() for column in row)
        return tuple(sorted(found, key=lambda column: ASPECTS.index(column.split()[0])))

    @property
    def failed(self) -> bool:
        """Whether a system has no value at all."""
        return any(all(mean.value is None for mean in row.values()) for row in self.rows.values())

    def tables(self) -> list[TextTable]:
        """A row for each system; then r and p of each pair of metrics."""
        header = ("system", *self.columns)
        nothing = Mean(None, 0, 0)
        rows = tuple(
            (system, *(str(row.get(column, nothing)) for column in self.columns))
            for system, row in self.rows.items()
        )
        means = TextTable(header, rows, 1, (*self._gaps(), *self.notes), "", self.signatures)
        return [means, *map(pair_table, self.relations)]

    def _gaps(self) -> list[str]:
        """Says where a mean does not rest on every query."""
        several = len(self.rows) > 1
        found: dict[str, list[str]] = {}
        for system, row in self.rows.items():
            for column in self.columns:
                if (mean := row.get(column)) and mean.reason:
                    who = f"{system}, " if several else ""
                    told = f"{mean.n} of {mean.total} scored ({mean.reason})"
                    found.setdefault(told, []).append(f"{who}{column}")
        return [f"{', '.join(columns)}: {told}" for told, columns in found.items()]

    def plot(self) -> Drawing:
        """The means with their intervals; entropies on an axis of their own; the relations."""
        shares = [column for column in self.columns if not column.startswith("diversity")]
        entropies = [column for column in self.columns if column.startswith("diversity")]
        panels = [
            self._bars(shares, "Coherence, fluency, self-consistency", "0 to 1, higher is better"),
            self._bars(entropies, "Diversity of the answers to paraphrases", "entropy, nats"),
            *(
                matrix_plot(
                    one.names,
                    one.names,
                    one.values,
                    title=f"The metrics among themselves, over {points(one)}",
                    note=f"Pearson's r, n = {max(map(max, one.n)):,}",
                )
                for one in self.relations
            ),
        ]
        return small_multiples(panels, columns=2, title="HolisticEval: " + ", ".join(self.systems))

    def _bars(self, columns: Sequence[str], title: str, label: str) -> Drawing:
        several = len(self.rows) > 1
        bars = [
            Bar(column, mean.value, mean.low, mean.high, system if several else "")
            for column in columns
            for system, row in self.rows.items()
            if (mean := row.get(column)) is not None
        ]
        note = f"Means over queries with {LEVEL:.0%} intervals"
        return bar_chart(bars, title=title, x_label=label, note=note)

    def to_record(self) -> dict[str, Any]:
        """JSON-ready; a mean without a value is None, with a reason."""
        return {
            "directory": str(self.directory),
            "systems": {
                system: {column: asdict(mean) for column, mean in row.items()}
                for system, row in self.rows.items()
            },
            "relations": [pairs_record(one) for one in self.relations],
            "probes": [
                {**asdict(probe), "directory": str(probe.directory)} for probe in self.probes
            ],
            "signatures": list(self.signatures),
            "notes": list(self.notes),
        }


def points(one: Relations) -> str:
    """What n counts: queries (each query of each system), or systems."""
    return "systems" if one.by == "system" else "queries"


def pair_table(one: Relations) -> TextTable:
    """A row for each pair of metrics, as section 5.5 reports them."""
    rows = tuple(
        (
            f"{one.names[i]}, {one.names[j]}",
            number_text(one.values[i][j], ".2f"),
            p_text(one.p[i][j]),
            f"{one.n[i][j]:,}",
        )
        for i, j in combinations(range(len(one.names)), 2)
    )
    title = f"The metrics among themselves, over {points(one)}"
    return TextTable(("pair", "r", "p", "n"), rows, 1, (one.note,) if one.note else (), title)


def pairs_record(one: Relations) -> dict[str, Any]:
    pairs = [
        {
            "pair": [one.names[i], one.names[j]],
            "r": one.values[i][j],
            "p": one.p[i][j],
            "n": one.n[i][j],
        }
        for i, j in combinations(range(len(one.names)), 2)
    ]
    return {"over": points(one), "pairs": pairs}


def means_by_system(judged: Iterable[Judged]) -> dict[str, dict[str, Mean]]:
    cells: dict[str, dict[str, list[Judged]]] = {}
    for one in judged:
        cells.setdefault(one.system, {}).setdefault(one.column, []).append(one)
    return {
        system: {column: mean_of(values) for column, values in row.items()}
        for system, row in cells.items()
    }


def relations_among(judged: Sequence[Judged], dataset: str) -> tuple[Relations, ...]:
    """The four metrics over queries, and over three or more systems.

    Diversity and self-consistency count with their mean over WS and CTG; the baseline of random
    queries holds no query still, and does not count. Self-consistency without a paraphrase counts
    where no query was put again.
    """
    again = any(one.aspect == "consistency" and one.by != PLAIN for one in judged)
    values: dict[str, dict[tuple[str, str], list[float]]] = {aspect: {} for aspect in ASPECTS}
    keys: dict[tuple[str, str], int] = {}
    for one in judged:
        row = (one.system, one.query)
        keys.setdefault(row, len(keys))
        counts = one.by != BASELINE and not (again and one.by == PLAIN)
        if one.value is not None and counts:
            values[one.aspect].setdefault(row, []).append(one.value)
    columns = {
        aspect: np.array(
            [math.fsum(own) / len(own) if (own := found.get(row)) else math.nan for row in keys]
        )
        for aspect, found in values.items()
        if found
    }
    systems = list(dict.fromkeys(system for system, _ in keys))
    if len(columns) < 2:
        return ()
    relations = [relate_columns(columns, dataset=dataset)]
    if len(systems) >= FEWEST:
        places = np.array([systems.index(system) for system, _ in keys])
        means = {
            aspect: np.array([_nanmean(column[places == i]) for i in range(len(systems))])
            for aspect, column in columns.items()
        }
        relations.append(relate_columns(means, dataset=dataset, by="system"))
    return tuple(relations)


def _nanmean(column: np.ndarray) -> float:
    there = column[~np.isnan(column)]
    return float(there.mean()) if len(there) else math.nan


def few_note(labels: Sequence[str], n: int, fewest: int) -> str:
    """A scale that rests on few answers is said."""
    few = ", too few for a stable scale" if n < fewest else ""
    return (
        f"{', '.join(labels)}: scaled on {count(n, 'first answer')}{few}; --calibration DIR reuses"
        " the scale of another directory"
    )
