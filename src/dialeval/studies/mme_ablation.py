"""MME-CRS without some of its parts, by other powers, and against the plain average (Tables 4-6).

Every data set is left out once: weights and scales come from the others, and are tried on it. The
paper's numbers are means over eleven pairs of set and quality of the hidden test data, for one
score per dialogue; ours stand beside them by two ways to weigh, both flat means:

    one score     the weights of overall for whatever was rated, as the test phase asked for
    by quality    each quality by its own weights, as the development phase allows

What a part adds has an interval over families of data sets (`compose/leave_one_out`). The learning
curve shows what the weights are worth if fewer data sets were rated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dialeval.agreement.dstc10 import RhoByQuality, flat_mean, two_level_mean
from dialeval.compose.evidence import Gathered
from dialeval.compose.fitting import COMMON, OURS, PAPER, SCALES, FitOptions
from dialeval.compose.leave_one_out import (
    AVERAGE,
    CRS,
    SINGLE,
    CurvePoint,
    LeaveOneOut,
    difference,
    family_names,
    learning_curve,
    leave_each_out,
)
from dialeval.metrics.composition import Power
from dialeval.metrics.mme import MME_CITATION
from dialeval.studies import mme_published as published
from dialeval.studies.mme_published import percent
from dialeval.studies.rated_runs import (
    ASKED,
    CITED,
    SUB_METRICS,
    LoadedSet,
    dstc10_files,
    score_sets,
)
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing

WHOLE, PLAIN = "MME-CRS (d = 2)", "MME-Avg"

WITHOUT: dict[str, tuple[str, ...]] = {
    "w/o FM": ("mme-fluency",),
    "w/o RM": ("mme-relevance",),
    "w/o TCM": ("mme-topic",),
    "w/o EM": ("mme-engagement",),
    "w/o SM": ("mme-specificity",),
    "w/o RM+TCM": ("mme-relevance", "mme-topic"),
}
"""Row of Table 5 -> the metrics, by name, that are not there."""

POWERS: dict[str, Power] = {"d = 1": 1.0, "d = 3": 3.0, "d adaptive": "adaptive"}

SHIPPED_RULE = "prior and even spread"
"""Not in the paper: what `compose fit` does unless it is told `--paper`."""

SHIPPED_NAMES = f"{SHIPPED_RULE}, names joined"
"""The rule of the weights that come with dialeval."""

CHOSEN = "scale: chosen on the other sets"
"""The scale of specificity is quartile in the paper. It is not chosen on what is reported here."""

PRINTED = {
    **{what: (printed, "Table 5") for what, printed in published.ABLATION.items()},
    **{
        WHOLE if one.how == "d = 2" else one.how: (
            one.mean,
            f"Table 4, submission {one.number}, rank {one.rank}",
        )
        for one in published.SUBMISSIONS[:4]
    },
    PLAIN: (published.MEANS["MME-Avg"][0], "Table 6"),
}
"""Submission 5 has other backbones: it takes judges that were trained on BERT (see `differs`)."""

WAYS = {SINGLE: "one score", CRS: "by quality"}
CURVES: Mapping[str, FitOptions] = {
    "the paper's rule": PAPER,
    "the shipped rule": replace(OURS, names=COMMON),
}


def measure(setting: Setting) -> Findings:
    scored = score_sets(setting, most=setting.limit or None, sets=_sets(setting))
    found = variants(scored.gathered)
    measured = [
        Measured(
            what,
            percent(flat_mean(result.of(rival)).value),
            by,
            len(result.trials),
            comparable=False,
        )
        for what, result in found.items()
        for rival, by in WAYS.items()
    ]
    whole = found[WHOLE]
    average = flat_mean(whole.of(AVERAGE))
    measured.append(
        Measured(PLAIN, percent(average.value), "one score", len(whole.trials), comparable=False)
    )
    curves = {
        f"{WAYS[rival]}, {rule}": points
        for rule, options in CURVES.items()
        for rival, points in learning_curve(scored.gathered, options, tuple(WAYS)).items()
    }
    families = family_names(scored.gathered)
    tables = [
        submissions_table(found),
        changes_table(found, families),
        _by_set(found),
        _curve_table(curves),
    ]
    drawing = draw_curves(curves) if setting.draw else None
    return Findings(measured, scored.notes, tables, drawing)


def published_variants(gathered: Gathered) -> dict[str, LeaveOneOut]:
    """Row of Tables 4 and 5 -> what comes out where each data set is left out once."""
    found = {WHOLE: leave_each_out(gathered)}
    for what, names in ablations([term.spec for term in gathered.ingredients]).items():
        kept = tuple(
            term
            for term in gathered.ingredients
            if term.spec not in names and term.spec.partition(":")[0] not in names
        )
        found[what] = leave_each_out(replace(gathered, ingredients=kept))
    for what, power in POWERS.items():
        found[what] = leave_each_out(gathered, FitOptions(power=power))
    return found


def variants(gathered: Gathered) -> dict[str, LeaveOneOut]:
    """Returns those of the tables, and others that the paper does not have."""
    found = published_variants(gathered)
    for scale in SCALES:
        found[f"scale: {scale}"] = leave_each_out(gathered, FitOptions(scale=scale))
    found[CHOSEN] = leave_each_out(gathered, scales=SCALES)
    found[SHIPPED_RULE] = leave_each_out(gathered, OURS)
    found[SHIPPED_NAMES] = leave_each_out(gathered, replace(OURS, names=COMMON))
    return found


def ablations(specs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns what to leave out: the rows of Table 5, or of other metrics each in turn."""
    if not any(spec in SUB_METRICS for spec in specs):
        return {f"w/o {spec}": (spec,) for spec in specs} if len(specs) > 1 else {}
    names = {spec.partition(":")[0] for spec in specs}
    return {what: out for what, out in WITHOUT.items() if names & set(out) and names - set(out)}


def _by_set(found: dict[str, LeaveOneOut]) -> Table:
    """Returns rows of the tables down, left-out data sets across, by quality."""
    sets = list(dict.fromkeys(trial.dataset for trial in found[WHOLE].trials))
    rows: list[tuple[str | float | None, ...]] = []
    shown = [(what, result, CRS) for what, result in found.items()]
    shown.append((PLAIN, found[WHOLE], AVERAGE))
    shown += [(rival, found[WHOLE], rival) for rival in found[WHOLE].methods[3:]]
    for what, result, rival in shown:
        rho = result.of(rival)
        means = [flat_mean({name: rho[name]}).value if name in rho else None for name in sets]
        rows.append((what, *map(percent, means), percent(two_level_mean(rho).value)))
    return Table(
        "Left-out data sets, mean over their qualities, weights by quality: Spearman x 100",
        ("", *sets, "mean"),
        tuple(rows),
        decimals=2,
    )


def _sets(setting: Setting) -> list[LoadedSet]:
    """Returns whole sets where `--limit` draws from them, as the fit of the shipped weights does;
    otherwise nothing, and large ones are thinned."""
    return dstc10_files(setting) if setting.limit and not setting.sets else []


def changes_table(found: dict[str, LeaveOneOut], families: Sequence[Sequence[str]]) -> Table:
    """Returns what each part adds: the whole without it, published and ours."""
    rows: list[tuple[str | float | None, ...]] = []
    for what, result in found.items():
        if what == WHOLE:
            continue
        printed = PRINTED.get(what)
        change = float(printed[0]) - float(PRINTED[WHOLE][0]) if printed else None
        ours = [
            cell
            for rival in WAYS
            for cell in _difference(result.of(rival), found[WHOLE].of(rival), families)
        ]
        rows.append((what, float(printed[0]) if printed else None, change, *ours))
    plain = [
        cell
        for rival in WAYS
        for cell in _difference(found[WHOLE].of(AVERAGE), found[WHOLE].of(rival), families)
    ]
    change = float(PRINTED[PLAIN][0]) - float(PRINTED[WHOLE][0])
    rows.append((PLAIN, float(PRINTED[PLAIN][0]), change, *plain))
    header = ["", "published mean", "published difference"]
    for way in WAYS.values():
        header += [f"ours, {way}", "low", "high", "p"]
    title = (
        f"Tables 4 to 6: difference to {WHOLE}, flat mean x 100 (95 % interval over families of"
        " data sets; p by signs)"
    )
    return Table(title, tuple(header), tuple(rows), decimals=2)


def _difference(
    one: RhoByQuality, whole: RhoByQuality, families: Sequence[Sequence[str]]
) -> tuple[str | float | None, ...]:
    compared = difference(one, whole, families, "by quality")
    if compared is None:
        return (None,) * 4
    ends = (100 * compared.value, 100 * compared.low, 100 * compared.high)
    return (*ends, f"{compared.p:.3f}")


def submissions_table(found: dict[str, LeaveOneOut]) -> Table:
    """Table 4: the submissions with their ranks, and ours by the same powers."""
    rows: list[tuple[str | float | None, ...]] = []
    for one in published.SUBMISSIONS:
        result = found.get(WHOLE if one.how == "d = 2" else one.how)
        ours: list[float | None] = [None, None]
        if result is not None:
            ours = [percent(flat_mean(result.of(rival)).value) for rival in WAYS]
        rows.append((str(one.number), one.how, str(one.rank), float(one.mean), *ours))
    header = ("submission", "how", "rank", "published", *(f"ours, {way}" for way in WAYS.values()))
    return Table("Table 4: flat mean x 100", header, tuple(rows), decimals=2)


def _curve_table(curves: Mapping[str, Sequence[CurvePoint]]) -> Table:
    """Left-out sets by the number of families of sets that weights were fitted on."""
    first = next(iter(curves.values()))
    rows: list[tuple[str | float | None, ...]] = []
    for place, point in enumerate(first):
        cells: list[float | None] = []
        for curve in curves.values():
            one = curve[place]
            cells += [percent(one.value), percent(one.low), percent(one.high)]
        rows.append((str(point.families), str(point.draws), *cells))
    header = ["families of sets", "draws"]
    for name in curves:
        header += [name, "worst draw", "best draw"]
    title = "Learning curve: left-out sets, mean by set x 100"
    return Table(title, tuple(header), tuple(rows), decimals=2)


def draw_curves(curves: Mapping[str, Sequence[CurvePoint]]) -> Drawing:
    from dialeval.pictures import line_chart

    series = {
        name: [(float(one.families), one.value) for one in curve if one.value is not None]
        for name, curve in curves.items()
    }
    return line_chart(
        series,
        title="Weights from few data sets",
        x_label="families of data sets that weights were fitted on",
        y_label="Spearman, left-out sets, mean by set",
    )


STUDY = Study(
    name="mme-ablation",
    paper=MME_CITATION,
    cited=CITED,
    repeats="MME-CRS, Tables 4 to 6: without sub-metrics, other powers, the plain average, with"
    " intervals; scales; a learning curve over data sets",
    may_use=(Data("dstc10"),),
    metrics=SUB_METRICS,
    asks=ASKED,
    takes_sets=True,
    published=tuple(
        Published(what, printed, source, must_match=False)
        for what, (printed, source) in PRINTED.items()
    ),
    differs=(
        "The test data are not public: ours are the development sets that are here, each left out"
        " once together with those that share its conversations, so weights come from fewer sets.",
        "The sub-metrics are the embedded ones, and not fine-tuned copies of SimCSE. Submission 5"
        " has BERT in its place: train judges on it (dialeval train mme --as-published --backbone"
        " bert-base-uncased ...) and name their metrics with -m.",
    ),
    cost="minutes",
    takes_limit=True,
    draws=True,
    measure=measure,
)
