"""DSTC10 track 5 task 1 with MME-CRS: both protocols, the 37 qualities, published rows beside ours.

    development   each quality by its own weights; mean over the qualities of a set, then over sets
    test          one score for whatever is rated, by the weights of overall; mean over all pairs

Development sets are left out in turn, by the paper's rule and by that of the shipped weights, and
each rule is held against the plain mean and each sub-metric (`compose/leave_one_out`). Test files,
in the folder of the development sets or named with `--set`, are judged with weights of all
development sets that share no conversation with them, and with the shipped weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dialeval.agreement.dstc10 import (
    DEVELOPMENT_SETS,
    flat_mean,
    protocol_samples,
    test_set,
    two_level_mean,
)
from dialeval.compose.evidence import Evidence, Gathered, are_relatives, find_families
from dialeval.compose.fitting import COMMON, DSTC10_QUALITIES, OURS, PAPER, FitOptions, compose
from dialeval.compose.leave_one_out import (
    AVERAGE,
    CRS,
    SINGLE,
    Difference,
    LeaveOneOut,
    against_all,
    explain,
    family_names,
    leave_each_out,
    try_on,
)
from dialeval.metrics.composition import Composition, find_composition
from dialeval.metrics.mme import MME_CITATION
from dialeval.model_store.presets import COMPOSITION, PRESETS
from dialeval.studies import mme_published as published
from dialeval.studies.mme_ablation import changes_table, published_variants, submissions_table
from dialeval.studies.mme_published import Rows, percent
from dialeval.studies.rated_runs import (
    ASKED,
    CITED,
    SUB_METRICS,
    LoadedSet,
    dstc10_files,
    load_rated_sets,
    score_sets,
    thinned,
)
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
    "MME-CRS": published.MEANS[published.OURS],
    "MME-Avg": published.MEANS["MME-Avg"],
    "Deep AM-FM": published.MEANS["Deep AM-FM"],
}
RULES: Mapping[str, FitOptions] = {
    "the paper's rule": PAPER,
    "the shipped rule": replace(OURS, names=COMMON),
}
"""Shipped: prior, even spread, minmax, names of qualities joined."""

SHIPPED = "shipped weights, one score"


def measure(setting: Setting) -> Findings:
    sets = chosen_sets(setting)
    read = sets if setting.limit else [thinned(one) for one in sets]
    scored = score_sets(setting, most=setting.limit or None, sets=read)
    development, test = split(scored.gathered)
    found = {rule: leave_each_out(development, options) for rule, options in RULES.items()}
    paper = found["the paper's rule"]
    composition = compose(development, range(len(development.sets)), PAPER)
    measured = [
        one
        for rule, left_out in found.items()
        for one in protocol_means(left_out, f"development sets here, each left out, {rule}")
    ]
    tables = [_counts(sets), _correlations(paper, LEFT_OUT)]
    tried = {}
    if test:
        tried = {rule: on_test(development, test, options) for rule, options in RULES.items()}
        measured += [
            one for rule, new in tried.items() for one in protocol_means(new, f"test sets, {rule}")
        ]
        title = "Test sets, weights of the development sets by the paper's rule: Spearman x 100"
        tables.append(_correlations(tried["the paper's rule"], title))
    tables.append(published.cells_table(_rows_of_ours(tried, development, test)))
    families = family_names(development)
    parts = published_variants(development)
    tables += [submissions_table(parts), changes_table(parts, families)]
    for rule, one in found.items():
        tables += [_tests(one, families, rule), _reasons(development, one, rule)]
    tables.append(_qualities(composition))
    notes = [_verdict(one, families, rule) for rule, one in found.items()]
    return Findings(measured, [*notes, *scored.notes], tables)


LEFT_OUT = "Development sets, each left out, the paper's rule: Spearman x 100"


def chosen_sets(setting: Setting) -> list[LoadedSet]:
    """Returns the files of the track; or the sets that the user named, and with a test set among
    them all development sets that are here."""
    if not setting.sets:
        return dstc10_files(setting)
    named = [
        LoadedSet(_plain(one.name), tuple(protocol_samples(_plain(one.name), one.samples)))
        for one in load_rated_sets(setting.sets)
    ]
    tests = [one for one in named if test_set(one.name)]
    if len(tests) < len(named) or "dstc10" not in setting.data:
        return named
    return [*dstc10_files(setting), *tests]


def _plain(name: str) -> str:
    """`dstc10/fed-turn`, `data/jsalt_eval.json` -> fed-turn, jsalt; other names stay."""
    plain = Path(name).name.removesuffix(".json").removesuffix("_eval")
    return plain if plain in DEVELOPMENT_SETS or test_set(plain) else name


def split(gathered: Gathered) -> tuple[Gathered, list[Evidence]]:
    """Returns the development sets, and the others. Where nothing is a development set, as with
    sets of the user's, all are treated as such."""
    inside = [one for one in gathered.sets if one.name.partition(",")[0] in DEVELOPMENT_SETS]
    if not inside:
        return gathered, []
    others = [one for one in gathered.sets if one not in inside]
    return replace(gathered, sets=tuple(inside), families=find_families(inside)), others


def on_test(
    development: Gathered, test: Sequence[Evidence], options: FitOptions = PAPER
) -> LeaveOneOut:
    """Scores each of these sets with weights of all development sets that are not its relatives."""
    trials = []
    for left_out in test:
        kept = [
            place for place, one in enumerate(development.sets) if not are_relatives(one, left_out)
        ]
        composition = compose(development, kept, options)
        trials += try_on(composition, left_out, development.others, options)
    return LeaveOneOut(tuple(trials))


def with_shipped(development: Gathered, test: Sequence[Evidence]) -> LeaveOneOut | None:
    """Scores with the weights that come with dialeval; None where the sub-metrics are others."""
    shipped = find_composition(PRESETS["default"][COMPOSITION])
    here = {term.spec: term.signature for term in development.ingredients}
    if any(here.get(term.spec) != term.signature for term in shipped.terms):
        return None
    trials = [trial for one in test for trial in try_on(shipped, one, (), PAPER)]
    return LeaveOneOut(tuple(trials)) if trials else None


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
    rows: Rows = [
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


def _counts(sets: Sequence[LoadedSet]) -> Table:
    """Tables 1 and 2 beside what the files here hold."""
    here = {test_set(one.name) or one.name: one for one in sets}
    rows: Rows = []
    for name, printed in {**published.DEVELOPMENT_COUNTS, **published.TEST_COUNTS}.items():
        counted: tuple[str, ...] = ("-",) * 3
        if name in here:
            one = count_annotations(here[name])
            counted = tuple(f"{n:,}" for n in (one.turns, one.qualities, one.annotations))
        as_printed = (printed.turns, printed.qualities, printed.annotations)
        rows.append((name, *(f"{n:,}" for n in as_printed), *counted))
    three = ("turns", "qualities", "annotations")
    header = ("data set", *three, *(f"{word} here" for word in three))
    return Table("Tables 1 and 2: the sets, published and here", header, tuple(rows))


def count_annotations(rated: LoadedSet) -> published.Counts:
    """Counts single ratings; an answer that is no number is none."""
    ratings = [rating for sample in rated.samples for rating in sample.ratings.values()]
    qualities = {quality for sample in rated.samples for quality in sample.ratings}
    given = sum(value is not None for rating in ratings for value in rating.values)
    return published.Counts(len(rated.samples), len(qualities), given)


def _rows_of_ours(
    tried: Mapping[str, LeaveOneOut], development: Gathered, test: Sequence[Evidence]
) -> dict[str, Mapping[int, float | None]]:
    """Row of ours -> column of Table 3 -> Spearman x 100."""
    found: dict[str, Mapping[int, float | None]] = {}
    for rule, one in tried.items():
        for name, rival in ROWS.items():
            if rival in one.methods:
                found[f"{name}, ours by {rule}"] = _row(one, rival)
    shipped = with_shipped(development, test)
    if shipped is not None:
        found[f"MME-CRS, ours, {SHIPPED}"] = _row(shipped, SINGLE)
    return {name: row for name, row in found.items() if row}


def _row(found: LeaveOneOut, method: str) -> dict[int, float | None]:
    places = ((published.column_of(one.dataset, one.quality), one) for one in found.trials)
    return {place: percent(one.found[method].value) for place, one in places if place is not None}


def _tests(found: LeaveOneOut, families: Sequence[Sequence[str]], rule: str) -> Table:
    """The composition against the plain mean, each sub-metric and the other metrics."""
    rows: Rows = []
    for mean in ("by set", "by quality"):
        for method in (CRS, SINGLE):
            compared = against_all(found, families, method, mean)
            for rival, one in compared.items():
                rows.append((mean, method, rival, *_shown(one)))
    header = (
        "mean", "composition", "against", "better on", "difference x 100", "low", "high", "p",
    )  # fmt: skip
    return Table(
        f"By {rule}: the composition against the others, left-out sets (95 % interval over families"
        " of sets; p by signs)",
        header,
        tuple(rows),
    )


def _shown(one: Difference) -> tuple[str | float, ...]:
    ends = (100 * one.value, 100 * one.low, 100 * one.high)
    return (f"{one.better} of {one.families}", *ends, one.p)


def _verdict(found: LeaveOneOut, families: Sequence[Sequence[str]], rule: str) -> str:
    """Says whether the composition, by quality, is better than all others on average."""
    compared = against_all(found, families, CRS)
    lost = [name for name, one in compared.items() if one.value <= 0]
    unsure = [name for name, one in compared.items() if one.value > 0 and one.p >= 0.05]
    sure = len(compared) - len(lost) - len(unsure)
    text = f"By {rule}, means by set: crs is better than {sure + len(unsure)} of {len(compared)}"
    text += f" others, significantly (p < .05) than {sure}"
    if unsure:
        text += f"; not significantly than {', '.join(unsure)}"
    if lost:
        text += f"; not better than {', '.join(lost)}"
    return text + ". The table of reasons says where weight went astray."


def _reasons(development: Gathered, found: LeaveOneOut, rule: str) -> Table:
    """Why a composition loses: weights that were learned elsewhere, and what the set itself would
    have given."""
    rows: Rows = [
        (
            one.dataset,
            percent(one.crs),
            percent(one.average),
            percent(one.own),
            one.best,
            percent(one.best_value),
            100 * one.astray,
        )
        for one in explain(development, found, RULES[rule])
    ]
    header = (
        "left out", "crs", "average", "crs, own weights", "best sub-metric", "it alone",
        "% of weight astray",
    )  # fmt: skip
    return Table(
        f"By {rule}: where it loses and why, means over qualities x 100 (astray: on sub-metrics"
        " that disagree with people there)",
        header,
        tuple(rows),
        decimals=2,
    )


def _qualities(composition: Composition) -> Table:
    """Returns the 37 names and those that only the files here have: where they are rated, and the
    weights from all development sets here."""
    here = {
        (one["name"].partition(",")[0], fitted["quality"])
        for one in composition.provenance["sets"]
        for fitted in one["fitted"]
    }
    names = [*DSTC10_QUALITIES, *(q for q in composition.weights if q not in DSTC10_QUALITIES)]
    rows: Rows = []
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
    repeats="DSTC10 track 5 task 1, MME-CRS, Tables 1 to 6: development and test sets, both"
    " protocols, tests against the plain mean and each sub-metric",
    may_use=(Data("dstc10"),),
    metrics=(*SUB_METRICS, "deep-am-fm"),
    asks=ASKED,
    takes_sets=True,
    takes_limit=True,
    published=tuple(
        Published(f"{row}: test protocol", printed, f"{source}, test sets", must_match=False)
        for row, (printed, source) in TEST_MEANS.items()
    ),
    differs=(
        "The test data are not public: ours are the development sets that are here, each left out"
        " once together with those that share its conversations. Whoever has test files names them:"
        " --set jsalt_eval.json.",
        "What the organisers' scripts call overall in dailydialog-zhao is called appropriateness in"
        " the file, and so it is in persona-zhao: by literal names it is another quality.",
        "The sub-metrics are the embedded ones, and not fine-tuned copies of SimCSE; dialeval train"
        " mme --as-published makes those.",
        "Table 1 counts one quality of DSTC7 and 300 turns of ConvAI2; the files here have three"
        " and 600. Its annotations of FED are fewer than the released ratings. The file of"
        " dailydialog-gupta holds one mean for each answer instead of three ratings, and the files"
        " of GRADE lack some.",
        "Scores to hand in: dialeval export RUN --to dstc10. What format the track asked for is not"
        " public any more; see the help.",
    ),
    cost="minutes; an hour with deep-am-fm, or --limit 150",
    measure=measure,
)
