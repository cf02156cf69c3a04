"""The tables of the comparison: one number per cell for programs, `.342/.348` for people.

Beside them stands what DialEvalMetrics printed for sets that are rated here too (Yeh et al., 2021,
README): Pearson/Spearman with the overall quality of a set; `*` marks p >= .05, as in the README.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.studies.study import Table

if TYPE_CHECKING:
    from dialeval.agreement.coefficient import Coefficient
    from dialeval.studies.comparison import Cell


SOURCE = "DialEvalMetrics"

SETS = (
    ("usr-topical", "turn", "Overall"),
    ("grade-dailydialog", "turn", "coherence"),
    ("engage", "turn", "engagement"),
    ("holistic/coherence", "turn", "coherence"),
    ("fed", "turn", "Overall"),
    ("fed", "dialogue", "Overall"),
)
"""Set, level, quality: the columns below."""

OURS = {
    "BLEU-4": "bleu",
    "METEOR": "meteor",
    "ROUGE-L": "rouge",
    "BERTScore": "bertscore",
    "RUBER": "ruber",
    "BERT-RUBER": "bert-ruber",
    "PONE": "pone",
    "FED": "fed",
    "USL-H": "usl-h",
    "Deep AM-FM": "deep-am-fm",
}
"""Metric as printed -> the label of the metric here that has its name. Not one of them is made with
the same model and options: see what is known to differ."""

_PRINTED = """
BLEU-4           | .216/.296   | .075*/.184   |           |           |             |
METEOR           | .336/.391   | .096*/.010*  |           |           |             |
ROUGE-L          | .275/.287   | .154/.147    |           |           |             |
ADEM             | -.060*/-.061* | .064*/.071* |          |           |             |
BERTScore        | .298/.325   | .129/.100*   |           |           |             |
BLEURT           | .216/.261   | .176/.133    |           |           |             |
QuestEval        | .300/.338   | .020*/.006*  | .296/.341 | .285/.260 | .037*/.093* | -.032*/.080*
RUBER            | .247/.259   | -.084*/-.094* |          |           |             |
BERT-RUBER       | .342/.348   | .134/.128    |           |           |             |
PONE             | .271/.274   | .163/.163    |           |           |             |
MAUDE          | .044*/.083* | -.036*/-.073* | .104/.060* | .275/.364 | .018*/-.094* | -.047*/-.280
DEB              | .180/.116   | .337/.363    | .516/.580 | .584/.663 | .230/.187   | -.130*/.006*
GRADE            | .200/.217   | .278/.253    | .600/.622 | .678/.697 | .134/.118   | -.034*/-.065*
DynaEval         | -.032*/-.022* | .108*/.120 | .167/.160 | -.023*/-.009* | .319/.323 | .503/.547
USR              | .412/.423   | .057*/.057*  | .582/.640 | .589/.645 | .114/.117   | .093*/.062*
USL-H            | .322/.340   | .108*/.093*  | .688/.699 | .486/.537 | .201/.189   | .073*/.152*
DialogRPT        | .120/.105*  | -.000*/.037* | .489/.533 | .283/.332 | -.118/-.086* | -.221/-.214
Deep AM-FM       | .285/.268   | .026*/.022*  |           |           |             |
HolisticEval     | -.147/-.123 | .025*/.020*  | .368/.365 | .670/.764 | .122/.125   | -.276/-.304
PredictiveEngage | .222/.310   | -.133/-.135  | .429/.414 | -.033*/.060* | .024*/.094* | .026*/.155*
FED              | -.124/-.135 | .080*/.064*  | .164/.159 | .485/.507 | .120/.095   | .222/.320
FlowScore      | .095*/.082* |              |           |           | -.065*/-.055* | -.073*/-.003*
"""


@dataclass(frozen=True)
class PrintedPair:
    """Pearson and Spearman as they are printed: `.075*`."""

    pearson: str
    spearman: str

    def __str__(self) -> str:
        return f"{self.pearson}/{self.spearman}"


def _read(text: str) -> dict[str, dict[tuple[str, str, str], PrintedPair]]:
    found: dict[str, dict[tuple[str, str, str], PrintedPair]] = {}
    for line in text.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        found[name] = {
            key: PrintedPair(*cell.split("/"))
            for key, cell in zip(SETS, cells, strict=True)
            if cell
        }
    return found


PUBLISHED = _read(_PRINTED)
"""Metric as printed -> (set, level, quality) -> its two correlations."""


def value(printed: str) -> float:
    """`-.060*` -> -0.06."""
    return float(printed.rstrip("*"))


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
    """Returns one table for each set with several qualities: metrics down, qualities across. A
    metric that has nothing to say about a set (no references) stands in the overview, with a
    dash."""
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
