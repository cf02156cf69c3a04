"""All metrics on all rated sets: which of them agree with people? (PONE, Tables 2, 3 and 7)

Each metric is correlated with the mean rating of each quality, by turn or by dialogue as the set is
rated; people are correlated with each other: Human(Avg) and Human(Max) are the mean and the largest
correlation of two raters. Beside them stands what DialEvalMetrics printed for the same sets.

The runs are kept in the cache, one for each set and each model, so that a study that was killed
goes on where it stopped, and one that was run before is shown at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from dialeval.agreement.arithmetic import Floats
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import Name, correlations
from dialeval.agreement.rated import Target, rated_run, ratings_table
from dialeval.agreement.table import scored_qualities
from dialeval.engine.answers import LoadedOnce
from dialeval.metric import Metric
from dialeval.models.source import Models
from dialeval.runs.run import Run
from dialeval.sample import Level
from dialeval.studies.rated_runs import (
    MAIN,
    LoadedSet,
    groups_by_model,
    load_rated_sets,
    run_place,
    sampling_notes,
    usable_metrics,
    what_was_learned,
)
from dialeval.studies.study import Data, Findings, Setting, Study, Table

# The tables of the comparison: one number per cell for programs, `.342/.348` for people.
#
# Beside them stands what DialEvalMetrics printed for sets that are rated here too (Yeh et al.,
# 2021, README): Pearson/Spearman with the overall quality of a set; `*` marks p >= .05, as in the
# README.

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
    "HolisticEval": "holistic",
    "GRADE": "grade",
    "DEB": "deb",
    "MAUDE": "maude",
    "DynaEval": "dyna-eval",
    "FlowScore": "flow-score",
    "USR": "usr",
    "PredictiveEngage": "predictive-engage",
    "DialogRPT": "dialogrpt",
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
    """Cuts a wide table into tables of a few columns, without empty rows."""
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


def complete_table(cells: Sequence[Cell], left_out: Mapping[str, str]) -> Table:
    """Everything, for programs: what ran; then what is only quoted, with the reason.

    left_out  label of a metric that could not be asked -> why
    """
    names = {ours: printed for printed, ours in OURS.items()}
    rows: list[tuple[str | float | None, ...]] = []
    for cell in cells:
        pearson, spearman = cell.found["pearson"], cell.found["spearman"]
        rows.append(
            (
                *key_of(cell),
                cell.metric,
                "ran",
                pearson.n,
                pearson.n_missing,
                pearson.value,
                pearson.p,
                spearman.value,
                spearman.p,
                *_published(names.get(cell.metric, ""), key_of(cell)),
                pearson.reason or spearman.reason,
            )
        )
    ran = {(key_of(cell), cell.metric) for cell in cells}
    for key in dict.fromkeys(map(key_of, cells)):
        for printed, pairs in PUBLISHED.items():
            label = OURS.get(printed, "")
            if key in pairs and (key, label) not in ran:
                why = left_out.get(label, "not asked" if label else f"dialeval has no {printed}")
                nothing = (None,) * 6
                rows.append(
                    (*key, label or printed, "quoted", *nothing, *_published(printed, key), why)
                )
    header = (
        "set", "level", "quality", "metric", "state", "n", "missing",
        "pearson", "pearson p", "spearman", "spearman p",
        "published pearson", "published spearman", "published by", "must match", "reason",
    )  # fmt: skip
    return Table("Every correlation", header, tuple(rows), for_programs=True)


def _published(printed: str, key: Key) -> tuple[str | float | None, ...]:
    """The two published correlations, who published them, and whether ours must match."""
    pair = PUBLISHED.get(printed, {}).get(key)
    if pair is None:
        return None, None, "", ""
    return value(pair.pearson), value(pair.spearman), SOURCE, "no"


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


METRICS = (
    "length", "bleu", "rouge", "meteor", "chrf",
    "embedding-average", "vector-extrema", "greedy-matching", "bertscore",
    "ruber", "ruber:blend=unreferenced", "bert-ruber", "pone",
    "coherence", "fluency", "pmi", "full", "fed", "follow-up-contrast",
    "usl-h", "deep-am-fm", "holistic", "dialogrpt",
    "grade", "deb", "maude", "dyna-eval", "flow-score", "usr", "predictive-engage",
)  # fmt: skip
"""Word overlap, embeddings, learned scorers, likelihoods, compositions."""

HUMAN_AVG, HUMAN_MAX = "Human(Avg)", "Human(Max)"
SHOWN: tuple[Name, ...] = ("pearson", "spearman")
Correlations = Mapping[Name, Coefficient]


@dataclass(frozen=True)
class Cell:
    """One metric on one quality of one set."""

    dataset: str
    level: Level
    quality: str
    metric: str
    found: Correlations


def measure(setting: Setting) -> Findings:
    source = LoadedOnce(setting.source or Models())
    usable, left_out = usable_metrics(setting)
    sets = load_rated_sets(setting.sets, setting.limit)
    groups = groups_by_model(usable)
    setting, before = replace(setting, source=source), 0
    total = sum(len(rated.samples) for rated in sets) * len(groups)
    cells: list[Cell] = []
    for rated in sets:
        cells += _people(rated)
        for group in groups:
            place = run_place(rated, group, source)
            run = setting.after(before, total).score(rated.samples, group, place)
            cells += _agreement(rated, run)
            before += len(rated.samples)
    labels = [HUMAN_AVG, HUMAN_MAX, *(metric.label for metric in usable)]
    cells.sort(key=lambda cell: labels.index(cell.metric))  # stable: sets stay in their order
    return Findings(
        (),
        [*sampling_notes(sets), *_notes(usable, left_out, source)],
        [*overview_tables(cells), *quality_tables(cells), complete_table(cells, left_out)],
    )


def _people(rated: LoadedSet) -> Iterator[Cell]:
    """Human(Avg) and Human(Max) for each quality of each level."""
    for level in dict.fromkeys(sample.level for sample in rated.samples):
        samples = [sample for sample in rated.samples if sample.level == level]
        for quality in dict.fromkeys(name for sample in samples for name in sample.ratings):
            table, _ = ratings_table(samples, quality)
            average, largest = people_among_each_other(table)
            yield Cell(rated.name, level, quality, HUMAN_AVG, average)
            yield Cell(rated.name, level, quality, HUMAN_MAX, largest)


def people_among_each_other(ratings: Floats) -> tuple[Correlations, Correlations]:
    """Returns the mean and the largest correlation of two raters, from items x raters. PONE prints
    the smallest p beside the largest; a mean has none."""
    pairs = [correlations(x, y, names=SHOWN) for x, y in combinations(ratings.T, 2)]
    average: dict[Name, Coefficient] = {}
    largest: dict[Name, Coefficient] = {}
    for name in SHOWN:
        known = [(c.value, c.p) for c in (pair[name] for pair in pairs) if c.value is not None]
        values, ps = [value for value, _ in known], [p for _, p in known if p is not None]
        n, reason = len(ratings), "" if known else "no two raters to compare"
        average[name] = Coefficient(fmean(values) if known else None, n, reason=reason)
        largest[name] = Coefficient(
            max(values, default=None), n, p=min(ps, default=None), reason=reason
        )
    return average, largest


def _agreement(rated: LoadedSet, run: Run) -> Iterator[Cell]:
    for level in rated_run(run, Target()):
        for case in scored_qualities(level, (), "turn"):
            found = correlations(case.scores, case.ratings[:, 0], names=SHOWN)
            yield Cell(rated.name, level.level, case.quality, case.metric, found)


def _notes(metrics: Sequence[Metric], left_out: Mapping[str, str], source: LoadedOnce) -> list[str]:
    names = sorted({model for metric in metrics for model in metric.models().values()})
    fingerprints = {name: source.fingerprint(name) for name in names}
    return [
        "* marks p >= .05; - is an undefined number, whose reason is in the JSON and CSV",
        f"Rows of {SOURCE} are quoted, all others ran. No number has to match: see what is known to"
        " differ",
        *left_out.values(),
        *what_was_learned(names),
        *(str(metric.signature(fingerprints)) for metric in metrics),
    ]


STUDY = Study(
    name="comparison",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="all metrics on all rated sets here, as in PONE, Tables 2, 3 and 7",
    may_use=tuple(
        Data(name)
        for name in ("usr-topical", "grade-dailydialog", "fed", "engage", "holistic", "dstc10")
    ),
    metrics=METRICS,
    takes_sets=True,
    takes_limit=True,
    differs=(
        "The ratings that PONE collected are not public: its tables are repeated on other sets.",
        "PONE takes the largest correlation over the annotators for a metric; here it is that with"
        " the mean rating, as in DialEvalMetrics. See: dialeval agree --target max-over-raters.",
        "DialEvalMetrics used other models (BERT-base, GPT-2, DialoGPT), other BLEU and ROUGE"
        " implementations, and for FED the mean of 18 qualities; it does not say whether its rows"
        " for RUBER, BERT-RUBER and PONE are the unreferenced score or the blend.",
        "Its USL-H asks BERT-base, and its Deep AM-FM has numbers for sets with references only, so"
        " it compares with these; here both ask embedded models, and deep-am-fm holds the response"
        " against the turn before it unless it is told referenced=true.",
        "The metrics that learned from DailyDialog are at home on grade-dailydialog, engage and"
        " dailydialog-zhao, whose contexts come from it; dialogues of these sets were left out.",
    ),
    cost="an hour (language models); minutes without",
    measure=measure,
)
