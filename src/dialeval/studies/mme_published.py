"""What MME-CRS printed (Zhang et al., 2022): Tables 1 to 6, cell by cell, and what follows from it.

Table 3 has six rows of eleven correlations and Table 6 one more (MME-Avg): 77 cells, Spearman x 100
on the test sets, whose files are not public. The last column of the tables is the flat mean of a
row (`agreement/dstc10.py`). By the two-level mean, which ranked the development phase, the third
team would have won.

`TABLE`, the study `dstc10-table`, computes the means and what the text says about the tables, and
shows our metrics on the development sets in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.dstc10 import (
    DEVELOPMENT_SETS,
    Dstc10Table,
    RhoByQuality,
    ScoredSet,
    dstc10_table,
    flat_mean,
    protocol_samples,
    test_set,
    track_files,
    two_level_mean,
)
from dialeval.metrics.mme import MME_CITATION
from dialeval.registry import make_metrics
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

Rows = list[tuple[str | float | None, ...]]

COLUMNS = (
    ("JSALT", "A"), ("ESL", "A"), ("NCM", "A"),
    ("DSTC10-Topical", "A"), ("DSTC10-Topical", "C"), ("DSTC10-Topical", "G"),
    ("DSTC10-Topical", "R"), ("DSTC10-Persona", "A"), ("DSTC10-Persona", "C"),
    ("DSTC10-Persona", "G"), ("DSTC10-Persona", "R"),
)  # fmt: skip
"""Appropriateness, content, grammar, relevance."""

SHORT = ("J-A", "E-A", "N-A", "DT-A", "DT-C", "DT-G", "DT-R", "DP-A", "DP-C", "DP-G", "DP-R")
"""The columns as the tables head them."""

OURS = "Top 1 (MME-CRS)"
PRINTED = {
    "Deep AM-FM": (5.09, 32.29, 16.49, 18.23, 8.63, 16.84, 26.21, 21.04, 14.22, 19.08, 24.11),
    OURS: (11.66, 41.44, 29.88, 32.64, 17.23, 8.96, 44.76, 45.60, 32.53, 21.98, 54.76),
    "Top 2": (8.52, 38.11, 26.61, 31.78, 17.89, 8.52, 43.81, 45.36, 32.78, 21.47, 54.35),
    "Top 3": (26.15, 47.56, 19.89, 27.66, 15.52, 2.81, 38.31, 41.81, 30.49, 18.08, 49.92),
    "Top 4": (12.73, 32.11, 26.47, 29.97, 15.56, 6.16, 42.47, 43.43, 31.46, 18.85, 53.10),
    "Top 5": (16.42, 43.60, 27.05, 30.75, 12.62, 7.54, 41.86, 39.86, 22.95, 17.42, 47.14),
    "MME-Avg": (8.23, 37.19, 28.88, 30.64, 13.42, 6.67, 41.60, 42.83, 26.59, 19.83, 47.21),
}
"""The rows of Table 3, and MME-Avg of Table 6."""

MEANS = {
    "Deep AM-FM": ("18.38", "Table 3"),
    OURS: ("31.04", "Table 3"),
    "Top 2": ("29.93", "Table 3"),
    "Top 3": ("28.93", "Table 3"),
    "Top 4": ("28.39", "Table 3"),
    "Top 5": ("27.93", "Table 3"),
    "MME-Avg": ("27.55", "Table 6"),
}
"""The last column."""


@dataclass(frozen=True)
class Submission:
    """A row of Table 4; `rank` is that among all submissions of all teams."""

    number: int
    how: str
    rank: int
    mean: str


SUBMISSIONS = (
    Submission(1, "d = 1", 2, "29.96"),
    Submission(2, "d = 2", 1, "31.04"),
    Submission(3, "d = 3", 4, "29.77"),
    Submission(4, "d adaptive", 5, "29.64"),
    Submission(5, "d adaptive, BERT in place of SimCSE", 6, "29.61"),
)

ABLATION = {
    "w/o FM": "30.34",
    "w/o RM": "29.48",
    "w/o TCM": "27.78",
    "w/o EM": "30.05",
    "w/o SM": "30.96",
    "w/o RM+TCM": "11.07",
}
"""Table 5, whose first row is submission 2."""


@dataclass(frozen=True)
class Counts:
    """A row of Table 1 or 2: dialogues or turns, qualities, single ratings."""

    turns: int
    qualities: int
    annotations: int


DEVELOPMENT_COUNTS: Mapping[str, Counts] = {
    "dstc6": Counts(40000, 1, 400000),
    "dstc7": Counts(9900, 1, 29700),
    "persona-see": Counts(3316, 9, 29844),
    "persona-usr": Counts(300, 6, 5400),
    "topical-usr": Counts(360, 6, 6480),
    "fed-turn": Counts(375, 9, 3348),
    "fed-dial": Counts(125, 11, 1364),
    "dailydialog-gupta": Counts(500, 1, 1500),
    "dailydialog-zhao": Counts(900, 4, 14400),
    "persona-zhao": Counts(900, 1, 3600),
    "dailydialog-grade": Counts(300, 1, 3000),
    "empathetic-grade": Counts(300, 1, 3000),
    "convai2-grade": Counts(300, 1, 3000),
    "humod": Counts(9500, 2, 57000),
}
"""Table 1, by the names of the track's files."""

TEST_COUNTS: Mapping[str, Counts] = {
    "JSALT": Counts(741, 1, 2822),
    "ESL": Counts(1242, 1, 1242),
    "NCM": Counts(2461, 1, 2461),
    "DSTC10-Topical": Counts(4500, 4, 72000),
    "DSTC10-Persona": Counts(5000, 4, 91360),
}
"""Table 2."""

LETTERS = {"appropriateness": "A", "content": "C", "grammar": "G", "relevance": "R"}


def column_of(dataset: str, quality: str) -> int | None:
    """Returns the place of a data set and quality in the rows of Table 3."""
    own = test_set(dataset), LETTERS.get(quality.lower())
    return next((place for place, column in enumerate(COLUMNS) if column == own), None)


def as_correlations(row: Sequence[float]) -> RhoByQuality:
    rho: dict[str, dict[str, Coefficient]] = {}
    for (dataset, quality), value in zip(COLUMNS, row, strict=True):
        rho.setdefault(dataset, {})[quality] = Coefficient(value, 1)
    return rho


def columns_won(team: str, rivals: Sequence[str]) -> int:
    """Returns in how many columns a team is before all rivals."""
    return sum(
        all(own > PRINTED[rival][place] for rival in rivals if rival != team)
        for place, own in enumerate(PRINTED[team])
    )


def cells_table(ours: Mapping[str, Mapping[int, float | None]]) -> Table:
    """Tables 3 and 6, every cell, and rows of ours for the columns whose test sets are here, with a
    mean over these of everybody."""
    here = sorted({place for cells in ours.values() for place in cells})
    some = here if len(here) < len(COLUMNS) else []
    printed: dict[str, Mapping[int, float | None]] = {
        team: dict(enumerate(row)) for team, row in PRINTED.items()
    }
    rows: Rows = []
    for name, cells in {**printed, **ours}.items():
        whole = float(MEANS[name][0]) if name in MEANS else _mean(cells, range(len(COLUMNS)))
        means = [whole, *([_mean(cells, some)] if some else [])]
        rows.append((name, *(cells.get(place) for place in range(len(COLUMNS))), *means))
    header = ("", *SHORT, "Avg", *([f"Avg of {len(some)} here"] if some else []))
    return Table("Tables 3 and 6, test sets: Spearman x 100", header, tuple(rows), decimals=2)


def _mean(cells: Mapping[int, float | None], places: Sequence[int]) -> float | None:
    """Returns the mean over these columns; None if one of them is undefined."""
    values = [value for place in places if (value := cells.get(place)) is not None]
    return sum(values) / len(values) if len(values) == len(places) else None


def measure_table(setting: Setting) -> Findings:
    measured = claims()
    for team, row in PRINTED.items():
        rho = as_correlations(row)
        measured += [
            Measured(_flat(team), flat_mean(rho).value, n=len(row)),
            Measured(f"{team}: two-level mean", two_level_mean(rho).value, n=len(row)),
        ]
    cells = cells_table({})
    if "dstc10" not in setting.data:
        note = "no development files here: dialeval data get dstc10"
        return Findings(measured, [note], [cells])
    files = track_files(setting.data["dstc10"])
    results, notes = _our_metrics(files, setting)
    return Findings(measured, notes, [cells, _as_table(results)])


CLAIMS = {
    "MME-CRS: qualities where it ranks first": ("6", "section Comparison Results"),
    "MME-CRS: lead over the second": ("1.11", "section Comparison Results"),
    "MME-CRS: lead over MME-Avg": ("3.49", "section The Effectiveness of CRS Method"),
    "MME-CRS: qualities where it is before MME-Avg": ("11", "section The Effectiveness of CRS"),
    "drop without TCM": ("3.26", "section Ablation Study"),
    "drop without RM": ("1.56", "section Ablation Study"),
    "drop without EM": ("1.01", "section Ablation Study"),
}
"""What the text says about the tables. 31.04 - 30.05 is .99."""


def claims() -> list[Measured]:
    """Computes from the printed tables what the text says about them."""
    means = {team: float(printed) for team, (printed, _) in MEANS.items()}
    ours = means[OURS]
    teams = [team for team, (_, table) in MEANS.items() if table == "Table 3"]
    values = {
        "MME-CRS: qualities where it ranks first": columns_won(OURS, teams),
        "MME-CRS: lead over the second": ours - means["Top 2"],
        "MME-CRS: lead over MME-Avg": ours - means["MME-Avg"],
        "MME-CRS: qualities where it is before MME-Avg": columns_won(OURS, ["MME-Avg"]),
    }
    values |= {
        f"drop without {part}": ours - float(ABLATION[f"w/o {part}"])
        for part in ("TCM", "RM", "EM")
    }
    return [Measured(what, value) for what, value in values.items()]


def _our_metrics(files: Sequence[Path], setting: Setting) -> tuple[Dstc10Table, list[str]]:
    """Scores all data sets in one run, so that a model is loaded once, then each on its own."""
    metrics = make_metrics(setting.metrics)
    by_set = {
        name: protocol_samples(name, dialeval.load(path))
        for path in files
        for name in [path.name.removesuffix("_eval.json")]
    }
    run = setting.score([sample for samples in by_set.values() for sample in samples], metrics)
    scores = {metric.label: run.scores(metric.label) for metric in metrics}
    ends = list(accumulate(len(samples) for samples in by_set.values()))
    results = dstc10_table(
        ScoredSet(name, samples, {k: v[end - len(samples) : end] for k, v in scores.items()})
        for (name, samples), end in zip(by_set.items(), ends, strict=True)
    )
    absent = [name for name in DEVELOPMENT_SETS if name not in by_set]
    there = len(DEVELOPMENT_SETS) - len(absent)
    note = f"{there} of the {len(DEVELOPMENT_SETS)} development data sets are here; not here: "
    return results, [
        note + (", ".join(absent) or "none"),
        "a mean is over the correlations that are defined: compare metrics with the same ones only",
        *run.table().notes,
        *run.table().signatures,
    ]


def _as_table(results: Dstc10Table) -> Table:
    """Data sets and qualities down, metrics across; the two means last."""
    by_metric = results.metrics.values()
    rows: Rows = [
        (dataset, quality, *(percent(rho[dataset][quality].value) for rho in by_metric))
        for dataset, quality in results.columns
    ]
    for title, mean in (("two-level mean", two_level_mean), ("flat mean", flat_mean)):
        rows.append((title, "", *(percent(mean(rho).value) for rho in by_metric)))
    defined = [flat_mean(rho) for rho in by_metric]
    rows.append(("defined", "", *(f"{mean.n} of {mean.n + mean.n_missing}" for mean in defined)))
    header = ("data set", "quality", *results.metrics)
    return Table("Development data: Spearman x 100", header, tuple(rows), decimals=2)


def percent(rho: float | None) -> float | None:
    return None if rho is None else 100 * rho


def _flat(team: str) -> str:
    return f"{team}: flat mean"


TABLE = Study(
    name="dstc10-table",
    paper=MME_CITATION,
    cited="Zhang et al., 2022",
    repeats="MME-CRS, Tables 3 and 6: means of the DSTC10 rows, what the text says about them; our"
    " metrics in the same form",
    may_use=(Data("dstc10"),),
    metrics=("length", "distinct", "bleu", "chrf"),
    published=(
        *(Published(_flat(team), printed, source) for team, (printed, source) in MEANS.items()),
        *(
            Published(what, printed, source, must_match=what != "drop without EM")
            for what, (printed, source) in CLAIMS.items()
        ),
    ),
    differs=(
        "The means are computed from the printed rows: the test data and the scores of the teams"
        " are not public.",
        "By the two-level mean of the development phase Top 3 would rank before Top 1.",
        "The text gives 1.01 as the loss without EM; its Tables 3 and 5 give .99.",
    ),
    measure=measure_table,
)
