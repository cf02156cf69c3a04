"""HolisticEval's Figures 1 to 3 (Pang et al., ACL 2020): metrics against people.

The human axis goes from 0 to 1, with noise of N(0, 0.05^2) on it, as the caption of Figure 1 says.
Figures 1 and 2 show coherence and fluency by the language models of `holistic_tables.py`, as Eq. 1
has them. Figure 3 shows the n-gram entropy of groups that your own raters rated (`--set FILE`), one
panel for each kind of groups and each n; its numbers are those of Table 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.agreement.correlation import correlations
from dialeval.metrics.diversity import HOLISTIC_EVAL
from dialeval.pictures import Drawing, scatter_plot, small_multiples
from dialeval.sample import Sample
from dialeval.studies.holistic_released import CITED
from dialeval.studies.holistic_tables import (
    DIFFERS,
    INFERENCE,
    NEEDS,
    ORDERS,
    RUBER,
    TABLES,
    TUNED,
    UNTUNED,
    WITH,
    WITHOUT,
    chosen_models,
    entropies,
    entropy_rows,
    published_entropies,
    quoted_entropies,
    rated_groups,
    score_files,
)
from dialeval.studies.study import Findings, Measured, Published, Setting, Study

NOISE = 0.05
"""The standard deviation of the jitter on human ratings, in the caption of Figure 1."""


UNIT = (0.0, 1.0)


def unit(values: Sequence[float | None], scale: tuple[float, float]) -> list[float]:
    """Ratings from 0 to 1, as section 4.5 has them; NaN where there is none."""
    low, high = scale
    return [float("nan") if value is None else (value - low) / (high - low) for value in values]


def measure(setting: Setting) -> Findings:
    chosen_models(setting)
    groups = rated_groups(setting.sets)
    measured: list[Measured] = []
    panels: dict[str, list[Drawing]] = {}
    files = score_files(setting) if "holistic" in setting.data else {}
    for number, scored in enumerate(files.values(), 1):
        human = unit(scored.human, (1.0, 5.0))
        for who, by, values in scored.columns:
            if who == RUBER or not by.endswith("mode=paper"):
                continue
            (r,) = correlations(values, human, names=("pearson",)).values()
            what = f"Figure {number}, {who}: Pearson"
            measured.append(Measured(what, r.value, by, r.n, r.reason))
            if setting.draw:
                title = f"{who.removeprefix('GPT-2 ')} ({by.partition(',')[0]})"
                printed = TABLES[scored.quality][1][who].split()[0]
                panels.setdefault(f"figure-{number}", []).append(
                    _panel(values, human, title, scored.quality, r.value, printed, UNIT)
                )
    known = {number.what: number.printed for number in published_entropies("Figure 3")}
    for group, samples in groups.items():
        human = unit([s.ratings["diversity"].mean for s in samples], _scale(samples))
        for n in ORDERS:
            rows = entropy_rows("Figure 3", group, n, samples, human)
            measured += rows
            if setting.draw:
                values = entropies(samples, n)
                printed = known.get(rows[0].what, "")
                panels.setdefault("figure-3", []).append(
                    _panel(values, human, f"{group}, {n}-grams", "entropy", rows[0].value, printed)
                )
    drawings = {
        name: small_multiples(some, columns=3 if name == "figure-3" else 2, title=_TITLES[name])
        for name, some in panels.items()
    }
    notes = []
    if not groups:
        measured += quoted_entropies("Figure 3")
        notes.append("Figure 3 is quoted, not run: --set FILE takes rated groups.")
    if not files:
        notes.append("Figures 1 and 2 are quoted, not run: dialeval data get holistic")
    whole = small_multiples(list(drawings.values()), columns=1) if drawings else None
    pictures = {f"{name}.svg": drawing for name, drawing in drawings.items()}
    return Findings(measured, notes, drawing=whole, pictures=pictures)


_TITLES = {
    "figure-1": "Figure 1: context coherence and human ratings",
    "figure-2": "Figure 2: response fluency and human ratings",
    "figure-3": "Figure 3: n-gram entropy and human ratings",
}


def _panel(
    values: Sequence[float | None],
    human: Sequence[float],
    title: str,
    label: str,
    r: float | None,
    printed: str,
    x_range: tuple[float, float] | None = None,
) -> Drawing:
    """`printed` is the paper's r. Panels of one figure have the same `x_range`."""
    x = [float("nan") if value is None else value for value in values]
    shown = "r is undefined" if r is None else f"r = {r:.2f}"
    if printed:
        shown += f"; in the paper {printed}"
    return scatter_plot(
        x,
        human,
        title=title,
        x_label=label,
        y_label="human rating",
        note=shown,
        x_range=x_range,
        y_range=UNIT,
        y_noise=NOISE,
    )


def _scale(samples: Sequence[Sample]) -> tuple[float, float]:
    scale = samples[0].ratings["diversity"].scale
    if scale is not None:
        return scale
    values = [v for s in samples for v in s.ratings["diversity"].values if v is not None]
    return min(values), max(values)


STUDY = Study(
    name="holistic-figures",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="HolisticEval, Figures 1 to 3: metrics against people, drawn as in the paper",
    needs=NEEDS,
    models=(UNTUNED, TUNED, INFERENCE),
    takes_sets=True,
    draws=True,
    published=(
        *(
            Published(
                f"Figure {number}, {who}: Pearson",
                TABLES[quality][1][who].split()[0],
                TABLES[quality][0],
                must_match=False,
            )
            for number, quality in ((1, "coherence"), (2, "fluency"))
            for who in (WITHOUT, WITH)
        ),
        *published_entropies("Figure 3"),
    ),
    differs=(
        DIFFERS[0],
        "Figure 3 and Table 5 rest on ratings of diversity that were not released: --set FILE takes"
        " groups that your own raters rated.",
        "Which axis is which is not said in the paper: here the metric is across, people are up.",
    ),
    cost="five minutes",
    measure=measure,
)
