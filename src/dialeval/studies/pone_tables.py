"""PONE's tables, from scores and ratings; what the paper printed stands beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.rated import ratings_table
from dialeval.agreement.raters import fleiss_kappa, mean_cohen_kappa
from dialeval.studies import pone_scorers
from dialeval.studies.comparison import SHOWN, Correlations
from dialeval.studies.pone_published import (
    CASES,
    HUMAN_AVG,
    HUMAN_MAX,
    KAPPA,
    NEGATIVES,
    Cell,
    Column,
    PrintedCell,
    PrintedTable,
    cell_of,
    people_of,
    printed_column,
    printed_kappa,
)
from dialeval.studies.pone_scorers import BASELINE, FULL
from dialeval.studies.study import Setting, Table

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
