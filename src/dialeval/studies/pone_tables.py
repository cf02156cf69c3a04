"""PONE's Tables 1, 2, 3, 7, 8 and 9 as they are printed, and the columns of ours beside them.

A cell is `Pearson (p) Spearman (p)`. Known slips of the paper, kept as printed: Spearman of
Human(Max) for Seq2Seq-attn in Table 2 is that of fluency (the release has .591), and the first two
rows of Table 9 are those of Table 8.

A column of ours is a rated set, or the answers of one system; it has a main quality (overall) and
may have others. A cell holds two correlations in two ways: with the mean rating, and by the paper's
rule, the largest over the raters with the smallest p. Human(Avg) and Human(Max) are the mean and
the largest correlation of two raters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from dialeval.agreement.coefficient import Coefficient, maximum_over_raters
from dialeval.agreement.correlation import correlations
from dialeval.agreement.rated import mean_rating, ratings_table
from dialeval.agreement.raters import fleiss_kappa, mean_cohen_kappa
from dialeval.errors import UsageError
from dialeval.sample import Sample
from dialeval.studies import pone_scorers
from dialeval.studies.comparison import SHOWN, Correlations, people_among_each_other
from dialeval.studies.pone_scorers import BASELINE, FULL
from dialeval.studies.rated_runs import MAIN, LoadedSet
from dialeval.studies.study import Setting, Table

HUMAN_AVG, HUMAN_MAX = "Human(Avg)", "Human(Max)"


@dataclass(frozen=True)
class PrintedCell:
    """Two correlations and their p."""

    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float


PrintedTable = Mapping[str, Mapping[str, PrintedCell]]
"""Column -> row -> cell."""

KAPPA: Mapping[str, Mapping[str, float]] = {
    "Tencent": {"fluency": 0.331, "coherence": 0.623, "engagement": 0.566, "overall": 0.610},
    "Xiaohuangji": {"fluency": 0.292, "coherence": 0.632, "engagement": 0.625, "overall": 0.627},
    "Dailydialog": {"fluency": 0.330, "coherence": 0.612, "engagement": 0.326, "overall": 0.523},
    "Cornell": {"fluency": 0.249, "coherence": 0.468, "engagement": 0.388, "overall": 0.343},
}
"""Table 1: Cohen's or Fleiss' kappa, the paper does not say which."""

_CELL = re.compile(r"(-?[\d.]+(?:e-\d+)?) \((-?[\d.]+(?:e-\d+)?)\)")


def _read(columns: str, text: str) -> PrintedTable:
    names = [name.strip() for name in columns.split("|")]
    found: dict[str, dict[str, PrintedCell]] = {name: {} for name in names}
    for line in text.strip().splitlines():
        row, *cells = (cell.strip() for cell in line.split("|"))
        for name, cell in zip(names, cells, strict=True):
            (r, r_p), (rho, rho_p) = _CELL.findall(cell)
            found[name][row] = PrintedCell(float(r), float(r_p), float(rho), float(rho_p))
    return found


TABLE_2 = _read(
    "Seq2Seq-attn Dailydialog | Seq2Seq-attn Cornell | Transformer Dailydialog"
    " | Transformer Cornell",
    """
Human(Avg)|0.3088 (0.0) 0.3078 (0.0)|0.4086 (0.0) 0.3903 (0.0)|0.42932 (0.0004) 0.4116 (0.00117)|0.13636 (0.29495) 0.12885 (0.37743)
Human(Max)|0.5979 (0.0) 0.2856 (0.0)|0.4285 (0.0) 0.4073 (0.0)|0.51501 (0.00119) 0.51607 (0.0035)|0.2349 (0.67459) 0.2354 (0.9706)
ROUGE|0.2511 (0.0117) 0.1901 (0.0581)|0.0636 (0.5298) 0.0423 (0.6759)|0.34463 (0.00045) 0.36092 (0.00023)|0.22317 (0.02562) 0.246 (0.01362)
BLEU-1|0.0508 (0.2360) 0.0407 (0.3269)|0.2348 (0.0187) 0.1854 (0.0648)|0.12453 (0.21703) 0.14693 (0.14463)|0.0338 (0.73852) 0.13777 (0.17164)
BLEU-2|-0.0536 (0.1829) 0.0259 (0.1674)|0.2099 (0.0361) 0.1873 (0.0620)|0.126 (0.2116) 0.13663 (0.17526)|0.12331 (0.2216) 0.12939 (0.19949)
BLEU-3|-0.0958 (0.1264) -0.0020 (0.1413)|0.1943 (0.0528) 0.1807 (0.0720)|0.12113 (0.22996) 0.11568 (0.25174)|0.13633 (0.17622) 0.1386 (0.16905)
BLEU-4|-0.0971 (0.1071) -0.0227 (0.1900)|0.1868 (0.0627) 0.1704 (0.0902)|0.11824 (0.24133) 0.09571 (0.34353)|0.13947 (0.16639) 0.15311 (0.1283)
METEOR|0.2350 (0.0186) 0.1732 (0.0848)|0.1558 (0.1217) 0.2260 (0.0238)|0.21651 (0.0305) 0.08771 (0.38553)|0.15578 (0.12171) 0.21586 (0.03101)
EA|0.3487 (0.0004) 0.3187 (0.0012)|0.1222 (0.2259) 0.1213 (0.2293)|0.1983 (0.04796) 0.2573 (0.00976)|0.0409 (0.68616) 0.02308 (0.8197)
VX|0.3463 (0.0004) 0.3744 (0.0001)|0.0340 (0.7372) 0.0310 (0.7594)|0.15127 (0.133) 0.26948 (0.0067)|-0.05111 (0.61353) -0.07187 (0.47733)
GM|0.2548 (0.0105) 0.2382 (0.0170)|0.0507 (0.6167) -0.0135 (0.8941)|0.36146 (0.00022) 0.28486 (0.00407)|-0.0349 (0.73034) 0.00193 (0.98481)
BERTScore|0.2049 (0.0408) 0.2212 (0.0270)|0.2648 (0.0078) 0.3145 (0.0011)|0.17809 (0.07628) 0.19813 (0.04815)|0.22948 (0.02164) 0.26861 (0.00689)
BERT-RUBER|0.4000 (0.0002) 0.4247 (0.0)|0.3193 (0.0034) 0.3021 (0.0060)|0.47541 (0.0) 0.51761 (0.0)|0.35327 (0.00099) 0.343 (0.00129)
""",  # noqa: E501
)
"""Overall quality, by system and corpus."""

TABLE_3 = _read(
    "fluency | coherence | engagement",
    """
Human(Avg)|0.25671 (0.04433) 0.23077 (0.04018)|0.58819 (0.0) 0.56235 (0.0)|0.17629 (0.47127) 0.17013 (0.48079)
Human(Max)|0.35980 (0.12222) 0.28559 (0.10125)|0.71379 (0.0) 0.68923 (0.0)|0.44772 (0.96780) 0.43289 (0.99546)
ROUGE|0.22758 (0.02277) 0.16664 (0.09751)|0.29557 (0.00283) 0.20947 (0.03647)|0.22673 (0.0233) 0.11552 (0.25242)
BLEU-1|0.16335 (0.10397) 0.10365 (0.30478)|0.00471 (0.51825) 0.02984 (0.65568)|-0.0345 (0.07609) -0.02819 (0.0582)
BLEU-2|0.14949 (0.15892) 0.04786 (0.6363)|-0.03278 (0.16866) 0.03422 (0.63277)|0.09611 (0.34147) 0.02878 (0.16029)
BLEU-3|0.12854 (0.20249) 0.00941 (0.8566)|-0.0502 (0.9956) 0.01907 (0.52688)|0.13893 (0.16805) 0.07762 (0.31379)
BLEU-4|0.12195 (0.22677) -0.0206 (0.6924)|-0.05859 (0.07712) 0.01682 (0.45016)|0.1567 (0.11948) 0.13136 (0.19268)
METEOR|0.21733 (0.02986) 0.15244 (0.13001)|0.29886 (0.00252) 0.18758 (0.06164)|0.26144 (0.0086) 0.17211 (0.08684)
EA|0.27328 (0.00594) 0.25212 (0.01139)|0.37456 (0.00012) 0.34373 (0.00046)|0.28161 (0.00453) 0.25026 (0.01203)
VX|0.16257 (0.01954) 0.17511 (0.0814)|0.41057 (2e-05) 0.39348 (5e-5)|0.20061 (0.04536) 0.19938 (0.04673)
GM|0.11472 (0.20558) 0.06597 (0.27803)|0.18876 (0.06) 0.12979 (0.19808)|0.19689 (0.04959) 0.14733 (0.14354)
BERTScore|0.49783 (0.0) 0.19963 (0.04645)|0.23521 (0.01849) 0.33128 (0.00076)|0.28702 (0.00379) 0.16085 (0.10988)
BERT-RUBER|0.35603 (0.00075) 0.38392 (0.00019)|0.37732 (0.00086) 0.41318 (0.00011)|0.35303 (0.00133) 0.38185 (0.00029)
""",  # noqa: E501
)
"""Three qualities of Seq2Seq-attn on DailyDialog."""

TABLE_7 = _read(
    "CopyNet Dailydialog | CopyNet Xiaohuangji | Seq2Seq-attn Tencent | Seq2Seq-attn Dailydialog",
    """
Human(Max)|0.65121 (0.01416) 0.63276 (0.02283)|0.65553 (0.0) 0.63705 (0.0)|0.74559 (0.0) 0.76104 (0.0)|0.59791 (0.0) 0.59002 (0.0)
BERTScore|-0.1086 (0.28216) 0.10627 (0.29267)|0.11698 (0.24642) 0.30987 (0.0017)|0.40112 (4e-5) 0.32937 (0.00082)|0.20491 (0.04083) 0.22119 (0.027)
BERT-RUBER|0.36499 (0.00049) 0.36142 (0.00065)|0.28621 (0.0096) 0.27972 (0.0144)|0.42047 (1e-5) 0.41614 (2e-5)|0.40004 (0.00021) 0.42647 (0.6e-5)
PONE-Po-LF|0.41288 (5e-05) 0.4122 (4e-05)|0.38903 (0.00044) 0.40812 (0.0002)|0.47756 (0.0) 0.4523 (0.0)|0.41684 (4e-5) 0.42858 (3e-5)
PONE-Ne-LF|0.43653 (1e-5) 0.41926 (1e-5)|0.45529 (0.0) 0.49689 (0.0)|0.51411 (0.0) 0.49312 (0.0)|0.50408 (0.0) 0.51315 (0.0)
PONE-Ne|0.44077 (1e-05) 0.41944 (2e-05)|0.34813 (0.00039) 0.34084 (0.00052)|0.58183 (0.0) 0.52846 (0.0)|0.51087 (0.0) 0.50825 (0.0)
PONE|0.47069 (0.0) 0.46299 (0.0)|0.45649 (0.0) 0.4997 (0.0)|0.57168 (0.0) 0.53006 (0.0)|0.51261 (0.0) 0.50521 (0.0)
""",  # noqa: E501
)
"""Overall quality, single-turn."""

TABLE_8 = _read(
    "HRED Dailydialog | ReCoSa Dailydialog",
    """
Human(Max)|0.6139 (0.0) 0.6924 (0.0)|0.6835 (0.0) 0.6830 (0.0)
BERTScore|0.3399 (0.0) 0.2880 (0.0)|0.2072 (0.0) 0.2178 (0.0)
BERT-RUBER|0.3228 (0.0) 0.3026 (0.0)|0.24237 (5e-5) 0.25873 (1e-5)
PONE-Po-LF|0.3432 (0.0) 0.3174 (0.0)|0.2850 (0.0) 0.2994 (0.0)
PONE-Ne-LF|0.3542 (0.0) 0.3233 (0.0)|0.29216 (0.0) 0.30537 (0.01754)
PONE-Ne|0.3741 (0.0) 0.3411 (0.0)|0.2867 (0.0) 0.30755 (0.0)
PONE|0.3743 (0.0) 0.3433 (0.0)|0.3018 (0.0) 0.32066 (0.0)
""",
)
"""Overall quality, multi-turn."""

TABLE_9 = _read(
    "CopyNet Dailydialog | Seq2Seq-attn Dailydialog",
    """
Human(Max)|0.6139 (0.0) 0.6924 (0.0)|0.6835 (0.0) 0.6830 (0.0)
BERTScore|0.3399 (0.0) 0.2880 (0.0)|0.2072 (0.0) 0.2178 (0.0)
BERT-RUBER|0.36499 (0.00049) 0.36142 (0.00065)|0.40004 (0.00021) 0.42647 (0.6e-5)
PONE EDA|0.47452 (5e-05) 0.45376 (4e-05)|0.46771 (0.3e-5) 0.47485 (1e-5)
PONE Seq2Seq|0.47069 (1e-5) 0.46299 (1e-5)|0.51261 (0.0) 0.50521 (0.0)
""",
)
"""Overall quality, by what makes the positives."""

CASES = (
    ("Tell me a little bit about yourself please.",
     "I'm Dunlin and I live in Beijing. I was born in 1980.",
     "Ok, thank you very much", 0.1988, 0.8168, 0.9908, 0.2903, 0.20),
    ("I can type 100 Chinese words a minute and take dictation in English at 150 words a minute.",
     "Can you operate computers skillfully?",
     "So you don't have a printer?", 0.2325, 0.8793, 0.5325, 0.0554, 0.0667),
    ("I usually have my lunch here. The food is tasty and they offer a big variety.",
     "Let's line up. The steak is very inviting.",
     "That sounds pretty good. Can you come here for a few minutes?",
     0.2555, 0.8566, 0.7415, 0.5631, 0.5333),
    ("That sounds nice.", "Yeah, you should go and get it for yourself.",
     "Yes, it is. Let's go and have a drink .", 0.1926, 0.8861, 0.8188, 0.6814, 0.60),
)  # fmt: skip
"""Table 6: query, true reply, response, BLEU, BERTScore, BERT-RUBER, PONE, human; all scores are
from 0 to 1."""

SWEEPS: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] = {
    "t": {
        "released: Xiaohuangji, P": (
            (0.001, 0.403), (0.01, 0.413), (0.05, 0.421), (0.1, 0.419), (0.5, 0.413), (1.0, 0.412),
        ),
        "released: Xiaohuangji, S": (
            (0.001, 0.400), (0.01, 0.407), (0.05, 0.416), (0.1, 0.418), (0.5, 0.410), (1.0, 0.415),
        ),
    },
    "k": {
        "released: Xiaohuangji, P": (
            (1, 0.393), (2, 0.422), (3, 0.429), (4, 0.461), (5, 0.467), (6, 0.451), (7, 0.466),
            (8, 0.450), (9, 0.474), (10, 0.463), (11, 0.458),
        ),
        "released: DailyDialog, P": (
            (1, 0.400), (5, 0.468), (10, 0.424), (15, 0.436), (20, 0.424),
        ),
    },
}  # fmt: skip
"""Values of t and k -> correlation with people, from the notebook and the README of the release.
Positives are those of EDA for Xiaohuangji, of Seq2Seq for DailyDialog; P is Pearson, S Spearman.
The paper prints only that t is best between .05 and .1, and k at 5."""

NEGATIVES = (
    ("My wife is coming to get me.", "Yes. She is meeting a client.", "Are you serious?"),
    ("Weather reports say it is going to rain for a week.", "It may rain again later today.",
     "It has been conquered by many people in history."),
    ("I'm an engineer at IBM.", "I used to work as a teacher.",
     "Wow. You are really a heavy smoker ."),
)  # fmt: skip
"""Table 4: the true reply, a weighted negative, a random one."""


def average_gain(pairs: list[tuple[float, float]]) -> float:
    """Returns the mean difference of correlations, of (before, after): what the paper calls an
    improvement of 13.18 %, over Pearson and Spearman of the four columns of Table 7."""
    return fmean(after - before for before, after in pairs)


ASPECTS = ("fluency", "coherence", "engagement")
"""The qualities that the paper's raters judged beside the overall one."""


@dataclass(frozen=True)
class Column:
    """Rated answers. `samples` are those with a response and a rating of some quality."""

    name: str
    samples: tuple[Sample, ...]
    qualities: tuple[str, ...]
    main: str

    @property
    def is_multi_turn(self) -> bool:
        return any(len(sample.context) > 1 for sample in self.samples)

    def rated(self, quality: str) -> list[int]:
        """Returns the places of the samples with a rating of this quality."""
        return [
            place
            for place, sample in enumerate(self.samples)
            if quality in sample.ratings and sample.ratings[quality].mean is not None
        ]


@dataclass(frozen=True)
class Cell:
    """What a metric has to do with what people said: by the paper's rule, and with the mean."""

    largest: Correlations
    mean: Correlations


def columns_of(sets: Sequence[LoadedSet]) -> list[Column]:
    """Returns a column for each set."""
    return [_column(rated.name, rated.samples) for rated in sets]


def columns_by_system(samples: Sequence[Sample], where: str) -> list[Column]:
    """Returns a column for each system that gave answers."""
    by_system: dict[str, list[Sample]] = {}
    for sample in samples:
        by_system.setdefault(sample.system, []).append(sample)
    return [_column(name or where, found) for name, found in by_system.items()]


def _column(name: str, samples: Sequence[Sample]) -> Column:
    usable = [
        sample
        for sample in samples
        if sample.response is not None and any(r.mean is not None for r in sample.ratings.values())
    ]
    if not usable:
        raise UsageError(f"{name}: no answer has a rating, and PONE's tables are of rated answers")
    qualities = tuple(dict.fromkeys(quality for sample in usable for quality in sample.ratings))
    main = next((quality for quality in MAIN if quality in qualities), qualities[0])
    return Column(name, tuple(usable), qualities, main)


def aspects_of(column: Column) -> Iterator[str]:
    """Yields the qualities of Table 3: fluency, coherence, engagement, or all but the main one."""
    known = [quality for quality in column.qualities if quality.lower() in ASPECTS]
    rest = [quality for quality in column.qualities if quality != column.main]
    yield from (sorted(known, key=lambda one: ASPECTS.index(one.lower())) or rest)


def cell_of(scores: Sequence[float | None], column: Column, quality: str) -> Cell:
    """Returns the correlations of one score for each sample of the column."""
    places = column.rated(quality)
    ratings, raters = ratings_table([column.samples[place] for place in places], quality)
    own = [scores[place] for place in places]
    by_rater = {
        rater: correlations(own, ratings[:, number], names=SHOWN)
        for number, rater in enumerate(raters)
    }
    return Cell(
        {
            name: maximum_over_raters({rater: one[name] for rater, one in by_rater.items()})
            for name in SHOWN
        },
        correlations(own, mean_rating(ratings), names=SHOWN),
    )


def people_of(column: Column, quality: str) -> tuple[Correlations, Correlations]:
    """Returns Human(Avg) and Human(Max)."""
    places = column.rated(quality)
    ratings, _ = ratings_table([column.samples[place] for place in places], quality)
    return people_among_each_other(ratings)


def printed_column(name: str, printed: Mapping[str, object]) -> str:
    """Returns the paper's column of such a system or set, by the words of its name: `my-hred` is
    that of HRED. Without such a word, Seq2Seq-attn on DailyDialog stands beside it, or the first
    column on DailyDialog."""
    words = name.lower()

    def fit(column: str) -> tuple[bool, ...]:
        system, corpus = column.lower().split()
        system = system.removesuffix("-attn")
        return (system in words, corpus in words, corpus == "dailydialog", system == "seq2seq")

    return max(printed, key=fit)


def printed_kappa(name: str) -> str:
    """Returns the corpus of Table 1 that the name of a column has in it, or DailyDialog."""
    return next((corpus for corpus in KAPPA if corpus.lower() in name.lower()), "Dailydialog")


def undefined(found: Sequence[Correlations]) -> int:
    """Returns how many correlations are undefined although there is something to compare."""
    every = [one[name] for one in found for name in SHOWN]
    return sum(one.value is None and not _is_absent(one) for one in every)


def mean_over(found: Sequence[Correlations]) -> Mapping[str, float | None]:
    """Returns the mean over columns; an undefined correlation counts as 0, none at all as None."""
    means: dict[str, float | None] = {}
    for name in SHOWN:
        values = [one[name].value or 0.0 for one in found if not _is_absent(one[name])]
        means[name] = sum(values) / len(values) if values else None
    return means


def _is_absent(found: Coefficient) -> bool:
    """Nobody gave two numbers to compare: a metric that needs references where there are none."""
    return found.value is None and found.n == 0


BY_GENERATOR = "PONE Seq2Seq"
"""The row of Table 9 whose positives a generator writes."""

RULES = (", sum", ", weighted")
"""Rules of Table 8, by which turns become one query, at the end of the name of a row."""

Scores = Mapping[str, Sequence[float | None]]
"""Row -> a score for each sample of a column."""

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""Name of a line -> its points."""

HEADER = (
    "metric", "n",
    "largest P", "p", "largest S", "p", "mean P", "p", "mean S", "p",
    "printed P", "p", "printed S", "p",
)  # fmt: skip


def correlation_table(
    title: str,
    column: Column,
    quality: str,
    names: Sequence[str],
    scores: Scores,
    printed: PrintedTable,
) -> Table:
    """Returns metrics down, after people; what the paper printed of such a system stands beside."""
    which = printed_column(column.name, printed)
    beside = printed[which]
    average, largest = people_of(column, quality)
    n = str(len(column.rated(quality)))
    rows = [
        (HUMAN_AVG, n, *_numbers(average), *NOTHING, *_printed(beside.get(HUMAN_AVG))),
        (HUMAN_MAX, n, *_numbers(largest), *NOTHING, *_printed(beside.get(HUMAN_MAX))),
    ]
    for name in names:
        if name in scores:
            cell = cell_of(scores[name], column, quality)
            rows.append((name, *_cells(cell, beside.get(printed_row(name, beside)))))
    said = f"{title}: {column.name}, {quality} (P: Pearson, S: Spearman; printed: {which})"
    return Table(said, HEADER, tuple(rows))


NOTHING: tuple[float | None, ...] = (None,) * 4


def _cells(cell: Cell, printed: PrintedCell | None) -> tuple[str | float | None, ...]:
    n = str(cell.mean["spearman"].n)
    return (n, *_numbers(cell.largest), *_numbers(cell.mean), *_printed(printed))


def _numbers(found: Correlations) -> tuple[float | None, ...]:
    return tuple(value for name in SHOWN for value in (found[name].value, found[name].p))


def _printed(cell: PrintedCell | None) -> tuple[float | None, ...]:
    return (
        NOTHING if cell is None else (cell.pearson, cell.pearson_p, cell.spearman, cell.spearman_p)
    )


def printed_row(name: str, printed: Mapping[str, PrintedCell]) -> str:
    """Returns the paper's name of one of our rows: its tables have one rule for turns and one
    generator, and only Table 9 names what made the positives."""
    for rule in RULES:
        name = name.removesuffix(rule)
    scorer, generator = (name.partition(", ")[place] for place in (0, 2))
    return BY_GENERATOR if generator and BY_GENERATOR in printed else scorer


def kappa_table(columns: Sequence[Column]) -> Table:
    """Table 1. The paper does not say which kappa it is."""
    rows: list[tuple[str | float | None, ...]] = []
    for column in columns:
        for quality in column.qualities:
            ratings, _ = ratings_table(
                [column.samples[place] for place in column.rated(quality)], quality
            )
            found: list[Coefficient] = [
                mean_cohen_kappa(ratings),
                mean_cohen_kappa(ratings, "quadratic"),
                fleiss_kappa(ratings),
            ]
            corpus = printed_kappa(column.name)
            printed = KAPPA[corpus].get(quality.lower())
            of = corpus if printed is not None else ""
            rows.append((column.name, quality, *(one.value for one in found), printed, of))
    header = (
        "answers", "quality", "Cohen", "Cohen, quadratic", "Fleiss", "printed", "of"
    )  # fmt: skip
    return Table("Table 1: kappa of the raters", header, tuple(rows))


def negatives_table(setting: Setting) -> Table:
    """Table 4: three replies of the corpus, and the paper's."""
    from dialeval.training.examples.pair_corpus import load_pairs
    from dialeval.training.examples.pair_vectors import embed
    from dialeval.training.examples.sampling import NegativeSampler, SamplerOptions

    pairs = setting.pairs or pone_scorers.PAIRS
    corpus = load_pairs([pone_scorers.corpus_of(setting)], "last", most=pairs)
    texts = [corpus.texts[pair.response] for pair in corpus.train]
    rows = [pair.response for pair in corpus.train]
    vectors = embed(corpus.texts, setting.models[0], source=setting.source)
    drawn = {
        name: NegativeSampler(
            SamplerOptions(name), texts, lambda numbers: vectors[np.array(rows)[numbers]]
        ).sample(np.random.default_rng(0))
        for name in ("weighted", "random")
    }
    shown = np.random.default_rng(1).permutation(len(texts))[:3].tolist()
    ours = [
        ("ours", texts[i], texts[drawn["weighted"][i]], texts[drawn["random"][i]]) for i in shown
    ]
    printed = [("printed", *negative) for negative in NEGATIVES]
    header = ("", "true reply", "weighted negative", "random negative")
    return Table("Table 4: negatives", header, (*ours, *printed))


def cases_table(column: Column, scores: Scores) -> Table:
    """Table 6: four answers from the worst rated to the best, and the paper's four."""
    places = column.rated(column.main)
    rated = {place: column.samples[place].ratings[column.main] for place in places}
    order = sorted(places, key=lambda place: (rated[place].mean or 0.0, place))
    chosen = [order[round(share * (len(order) - 1))] for share in (0, 1 / 3, 2 / 3, 1)]
    names = ("BLEU-4", "BERTScore", BASELINE, FULL)

    def row(place: int) -> tuple[str | float | None, ...]:
        sample, rating = column.samples[place], rated[place]
        low, high = rating.scale or (None, None)
        human = None
        if rating.mean is not None and low is not None and high is not None:
            human = (rating.mean - low) / (high - low)
        return (
            "ours",
            sample.context[-1].text if sample.context else "",
            sample.references[0] if sample.references else "",
            sample.response or "",
            *(scores[name][place] if name in scores else None for name in names),
            human,
        )

    header = ("", "query", "true reply", "response", "BLEU", "BERTScore", BASELINE, FULL, "human")
    printed = [("printed", *case) for case in CASES]
    title = f"Table 6: cases of {column.name}, human scores from 0 to 1"
    return Table(title, header, (*(row(place) for place in dict.fromkeys(chosen)), *printed))


def sweep_table(name: str, ours: Lines, released: Lines) -> Table:
    """Returns the points of a picture, and those of the authors' release at the same places."""
    values = sorted({value for points in ours.values() for value, _ in points})
    lines = [dict(points) for points in (*ours.values(), *released.values())]
    rows: list[tuple[str | float | None, ...]] = [
        (f"{value:g}", *(line.get(value) for line in lines)) for value in values
    ]
    return Table(f"Sweep of {name}", (name, *ours, *released), tuple(rows))


def complete_table(tables: Sequence[Table]) -> Table:
    """All correlations in one table, for programs."""
    rows = [(table.title, *row) for table in tables if table.header == HEADER for row in table.rows]
    return Table("Every correlation", ("table", *HEADER), tuple(rows), for_programs=True)
