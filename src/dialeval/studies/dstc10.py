"""DSTC10 track 5 task 1 with MME-CRS: both protocols, the 37 qualities, published rows beside ours.

    development   each quality by its own weights; mean over the qualities of a set, then over sets
    test          one score for whatever is rated, by the weights of overall; mean over all pairs

Development sets are left out in turn. Files of the folder that are not among the 14 development
sets, such as the test sets for those who have them, are judged with weights from all development
sets that share no conversation with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dialeval.agreement.dstc10 import DEVELOPMENT_SETS, flat_mean, two_level_mean
from dialeval.compose.evidence import Evidence
from dialeval.compose.fitting import DSTC10_QUALITIES, PAPER, compose
from dialeval.compose.gathering import Gathered, are_relatives, find_families
from dialeval.compose.leave_one_out import (
    AVERAGE,
    CRS,
    SINGLE,
    LeaveOneOut,
    leave_each_out,
    try_on,
)
from dialeval.metrics.composition import Composition
from dialeval.metrics.mme import MME_CITATION
from dialeval.studies.composition_runs import ASKED, CITED, SUB_METRICS, score_sets
from dialeval.studies.dstc10_table import MEANS
from dialeval.studies.mme_ablation import percent
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

USR = ("Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall")
FILES: Mapping[str, tuple[str, ...]] = {
    "dstc6": ("overall",),
    "dstc7": ("relevance", "informativeness", "overall"),
    "dailydialog-gupta": ("overall",),
    "dailydialog-zhao": ("content", "grammar", "overall", "relevance"),
    "humod": ("language_usage", "relevance"),
    "persona-usr": USR,
    "topical-usr": USR,
    "persona-zhao": ("overall",),
    "fed-turn": (
        "Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate",
        "Understandable", "Fluent", "Overall",
    ),
    "fed-dial": (
        "Coherent", "Error recovery", "Consistent", "Diverse", "Depth", "Likeable",
        "Understanding", "Flexible", "Informative", "Inquisitive", "Overall",
    ),
    "convai2-grade": ("relevance",),
    "empathetic-grade": ("relevance",),
    "dailydialog-grade": ("relevance",),
    "persona-see": (
        "enjoy", "interest", "listen", "turing", "avoid_rep", "make_sense", "fluency",
        "inquisitive", "persona_guess",
    ),
}  # fmt: skip
"""Development set -> its qualities, as the organisers' scripts name them."""

ROWS = {"MME-CRS": SINGLE, "MME-Avg": AVERAGE, "Deep AM-FM": "deep-am-fm"}
TEST_MEANS = {
    "MME-CRS": MEANS["Top 1 (MME-CRS)"],
    "MME-Avg": MEANS["MME-Avg"],
    "Deep AM-FM": MEANS["Deep AM-FM"],
}


def measure(setting: Setting) -> Findings:
    scored = score_sets(setting)
    development, test = split(scored.gathered)
    found = leave_each_out(development)
    composition = compose(development, range(len(development.sets)), PAPER)
    measured = protocol_means(found, "development sets here, each left out")
    tables = [_correlations(found, "Development sets, each left out: Spearman x 100")]
    if test:
        tried = on_test(development, test)
        measured += protocol_means(tried, "test sets")
        tables.append(_correlations(tried, "Other sets of the folder: Spearman x 100"))
    tables.append(_qualities(composition))
    return Findings(measured, scored.notes, tables)


def split(gathered: Gathered) -> tuple[Gathered, list[Evidence]]:
    """Returns the development sets, and the others. Where nothing is a development set, as with
    sets of the user's, all are treated as such."""
    inside = [one for one in gathered.sets if one.name.partition(",")[0] in DEVELOPMENT_SETS]
    if not inside:
        return gathered, []
    others = [one for one in gathered.sets if one not in inside]
    return replace(gathered, sets=tuple(inside), families=find_families(inside)), others


def on_test(development: Gathered, test: Sequence[Evidence]) -> LeaveOneOut:
    """Scores each of these sets with weights of all development sets that are not its relatives."""
    trials = []
    for left_out in test:
        kept = [
            place for place, one in enumerate(development.sets) if not are_relatives(one, left_out)
        ]
        composition = compose(development, kept, PAPER)
        trials += try_on(composition, left_out, development.others, PAPER)
    return LeaveOneOut(tuple(trials))


def protocol_means(found: LeaveOneOut, where: str) -> list[Measured]:
    """Flat means of one score beside the published ones, then two-level means by quality."""
    measured = [
        Measured(
            f"{row}: test protocol",
            percent(flat_mean(found.of(rival)).value),
            where,
            flat_mean(found.of(rival)).n,
            comparable=False,
        )
        for row, rival in ROWS.items()
        if rival in found.methods
    ]
    by_quality = {**ROWS, "MME-CRS": CRS}
    return measured + [
        Measured(
            f"{row}: development protocol",
            percent(two_level_mean(found.of(rival)).value),
            where,
            flat_mean(found.of(rival)).n,
        )
        for row, rival in by_quality.items()
        if rival in found.methods
    ]


def _correlations(found: LeaveOneOut, title: str) -> Table:
    rows: list[tuple[str | float | None, ...]] = [
        (
            trial.dataset,
            trial.quality,
            trial.weights,
            *(percent(trial.found[rival].value) for rival in found.methods),
        )
        for trial in found.trials
    ]
    for name, mean in (("two-level mean", two_level_mean), ("flat mean", flat_mean)):
        values = [percent(mean(found.of(rival)).value) for rival in found.methods]
        rows.append((name, "", "", *values))
    defined = [flat_mean(found.of(rival)) for rival in found.methods]
    counts = [f"{one.n} of {one.n + one.n_missing}" for one in defined]
    rows.append(("defined", "", "", *counts))
    return Table(title, ("data set", "quality", "weights of", *found.methods), tuple(rows), 2)


def _qualities(composition: Composition) -> Table:
    """Returns the 37 names and those that only the files here have: where they are rated, and the
    weights from all development sets here."""
    here = {
        (one["name"].partition(",")[0], fitted["quality"])
        for one in composition.provenance["sets"]
        for fitted in one["fitted"]
    }
    names = [*DSTC10_QUALITIES, *(q for q in composition.weights if q not in DSTC10_QUALITIES)]
    rows: list[tuple[str | float | None, ...]] = []
    for quality in names:
        track = [name for name, qualities in FILES.items() if quality in qualities]
        found = [name for name, own in here if own == quality]
        weights: Sequence[float | None] = composition.weights.get(quality, ())
        rows.append(
            (
                quality,
                ", ".join(track) or "not a name of the track",
                ", ".join(sorted(found)) or "-",
                *(weights or [None] * len(composition.terms)),
            )
        )
    header = ("quality", "development sets", "fitted on", *composition.specs)
    return Table("The qualities, and the weights of the sub-metrics", header, tuple(rows))


STUDY = Study(
    name="dstc10",
    paper=MME_CITATION,
    cited=CITED,
    repeats="DSTC10 track 5 task 1: MME-CRS by both protocols, Deep AM-FM and the average beside",
    may_use=(Data("dstc10"),),
    metrics=(*SUB_METRICS, "deep-am-fm", "pone"),
    asks=ASKED,
    takes_sets=True,
    published=tuple(
        Published(f"{row}: test protocol", printed, f"{source}, test sets", must_match=False)
        for row, (printed, source) in TEST_MEANS.items()
    ),
    differs=(
        "The test data are not public: ours are the development sets that are here, each left out"
        " once together with those that share its conversations.",
        "What the organisers' scripts call overall in dailydialog-zhao is called appropriateness in"
        " the file: by literal names it is another quality, and no other development set has it.",
        "The sub-metrics are the embedded ones, and not fine-tuned copies of SimCSE.",
        "Scores to hand in: dialeval export RUN --to dstc10. What format the track asked for is not"
        " public any more; see the help.",
    ),
    cost="minutes",
    measure=measure,
)
