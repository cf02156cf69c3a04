"""MME-CRS without some of its parts, by other powers, and against the plain average (Tables 4-6).

Every data set is left out once: weights and scales come from the others, and are tried on it. The
paper's numbers are means over eleven pairs of set and quality of the hidden test data, for one
score per dialogue; ours stand beside them by two ways to weigh, both flat means:

    one score     the weights of overall for whatever was rated, as the test phase asked for
    by quality    each quality by its own weights, as the development phase allows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialeval.agreement.dstc10 import flat_mean, two_level_mean
from dialeval.compose.fitting import OURS, SCALES, FitOptions
from dialeval.compose.gathering import Gathered
from dialeval.compose.leave_one_out import AVERAGE, CRS, SINGLE, LeaveOneOut, leave_each_out
from dialeval.metrics.composition import Power
from dialeval.metrics.mme import MME_CITATION
from dialeval.studies.rated_runs import ASKED, CITED, SUB_METRICS, score_sets
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

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

CHOSEN = "scale: chosen on the other sets"
"""The scale of specificity is quartile in the paper. It is not chosen on what is reported here."""

PRINTED = {
    WHOLE: ("31.04", "Table 5"),
    "w/o FM": ("30.34", "Table 5"),
    "w/o RM": ("29.48", "Table 5"),
    "w/o TCM": ("27.78", "Table 5"),
    "w/o EM": ("30.05", "Table 5"),
    "w/o SM": ("30.96", "Table 5"),
    "w/o RM+TCM": ("11.07", "Table 5"),
    "d = 1": ("29.96", "Table 4, submission 1"),
    "d = 3": ("29.77", "Table 4, submission 3"),
    "d adaptive": ("29.64", "Table 4, submission 4"),
    PLAIN: ("27.55", "Table 6"),
}
WAYS = {SINGLE: "one score", CRS: "by quality"}


def measure(setting: Setting) -> Findings:
    scored = score_sets(setting)
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
    return Findings(measured, scored.notes, [_by_set(found), _changes(found)])


def variants(gathered: Gathered) -> dict[str, LeaveOneOut]:
    """Row of the tables -> what comes out where each data set is left out once."""
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
    for scale in SCALES:
        found[f"scale: {scale}"] = leave_each_out(gathered, FitOptions(scale=scale))
    found[CHOSEN] = leave_each_out(gathered, scales=SCALES)
    found[SHIPPED_RULE] = leave_each_out(gathered, OURS)
    return found


def ablations(specs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns what to leave out: the rows of Table 5, or of other metrics each in turn."""
    if not any(spec in SUB_METRICS for spec in specs):
        return {f"w/o {spec}": (spec,) for spec in specs} if len(specs) > 1 else {}
    names = {spec.partition(":")[0] for spec in specs}
    return {what: out for what, out in WITHOUT.items() if names & set(out) and names - set(out)}


def _by_set(found: dict[str, LeaveOneOut]) -> Table:
    """Rows of the tables down, left-out data sets across, by quality."""
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


def _changes(found: dict[str, LeaveOneOut]) -> Table:
    """Returns what each part adds: the whole without it, published and ours."""
    rows: list[tuple[str | float | None, ...]] = []
    for what, result in found.items():
        if what == WHOLE:
            continue
        printed = PRINTED.get(what)
        published = float(printed[0]) - float(PRINTED[WHOLE][0]) if printed else None
        ours = [_difference(result, found[WHOLE], rival) for rival in WAYS]
        rows.append((what, published, *ours))
    header = ("", "published", *(f"ours, {way}" for way in WAYS.values()))
    return Table(f"Difference to {WHOLE}, flat mean x 100", header, tuple(rows), decimals=2)


def _difference(result: LeaveOneOut, whole: LeaveOneOut, rival: str) -> float | None:
    here, there = flat_mean(result.of(rival)).value, flat_mean(whole.of(rival)).value
    return None if here is None or there is None else 100 * (here - there)


def percent(rho: float | None) -> float | None:
    return None if rho is None else 100 * rho


STUDY = Study(
    name="mme-ablation",
    paper=MME_CITATION,
    cited=CITED,
    repeats="MME-CRS, Tables 4 to 6: without sub-metrics, other powers, and the plain average",
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
        "The sub-metrics are the embedded ones, and not fine-tuned copies of SimCSE.",
    ),
    cost="minutes",
    measure=measure,
)
