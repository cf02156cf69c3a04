"""HolisticEval's Tables 2 to 8, Figures 1 to 3 and section 5.5 (Pang et al., ACL 2020).

Tables 3 and 4 hold three kinds of rows against the ratings of ten people: a language model as it
is, the same tuned to dialogues, and (Table 3) RUBER with BERT; below them the raters themselves.
Ours are the embedded models. `--model UNTUNED --model TUNED --model INFERENCE` takes others, such
as gpt2, a directory of `dialeval train lm --pairs --full --model gpt2`, and roberta-large-mnli.
Each language model is asked in both modes: `paper` divides by the length of the response, as
Eq. 1; `released` does not, as the authors' code.

Tables 2 and 7 are case studies. Both samples were released: row 126 of the coherence file, and
sample 9 of the self-consistency set of CTG. What the human scores of 0.20 are is not said. In Table
2 it is near the mean of the ten ratings, scaled from the lowest to the highest mean of the file
(.206; from 1 to 5 it would be .275). In Table 7 it is the 1 of the first rater over 5; the mean of
the ten is 2.5.

Tables 5 and 6 need ratings of diversity, which were not released: `--set FILE` takes those of your
own raters (`dialeval rate --qualities diversity`). Table 5 correlates the n-gram entropy of a group
of answers with the mean rating; Table 6 holds each rater against the mean of the others, and has
the variance over the raters of a group, averaged over the groups.

Section 5.5 correlates the four aspects of 50 dialogues that five people rated; these ratings were
not released either. `--set FILE` takes dialogues that your raters rated under two aspects or more
(`dialeval rate runs/bot`): Pearson of the mean ratings, with its p. That the published p of .003
belongs to n = 50 dialogues, and not to 250 ratings, follows from r = .42.

Table 8 is read off the released predictions, where they can be used, and by the inference model.

The human axis of the figures goes from 0 to 1, with noise of N(0, 0.05^2) on it, as the caption of
Figure 1 says.
Figures 1 and 2 show coherence and fluency by the language models of the tables, as Eq. 1 has
them. Figure 3 shows the n-gram entropy of groups that your own raters rated (`--set FILE`), one
panel for each kind of groups and each n; its numbers are those of Table 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import largest_of, mean_of
from dialeval.agreement.correlation import Name, correlations
from dialeval.agreement.rated import ratings_table
from dialeval.agreement.raters import human_variance, leave_one_out
from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.metrics.diversity import HOLISTIC_EVAL, ngram_entropy
from dialeval.pictures import Drawing, scatter_plot, small_multiples
from dialeval.probe.holistic_result import ASPECTS
from dialeval.probe.plan import kind_of
from dialeval.registry import make_metric
from dialeval.sample import Sample
from dialeval.studies.holistic_released import (
    CITED,
    COLUMNS,
    FILES,
    FOLDER,
    RULE_OF_THE_PAPER,
    SETS,
    SLIPPED,
    TABLE_8,
    contradictions_of,
)
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

NAMES: tuple[Name, ...] = ("pearson", "spearman")
MODES = ("paper", "released")
UNTUNED, TUNED, INFERENCE = "smollm2-135m", "smollm2-135m-dialogue", "minilm-l6-nli"
RUBER = "RUBER+BERT"
WITHOUT, WITH = "GPT-2 w/o fine-tuning", "GPT-2 w/ fine-tuning"
TABLES = {
    "coherence": (
        "Table 3",
        {RUBER: "0.47 0.51", WITHOUT: "0.59 0.65", WITH: "0.67 0.76"},
        {"raters, mean": "0.61 0.57", "raters, max": "0.91 0.87"},
    ),
    "fluency": (
        "Table 4",
        {WITHOUT: "0.43 0.32", WITH: "0.82 0.81"},
        {"raters, mean": "0.70 0.70", "raters, max": "0.88 0.85"},
    ),
}
CASE_ROW = 126
"""Of the coherence file, from 1: the pair of Table 2."""
CASE_SAMPLE = 9
"""Of the self-consistency set of CTG, from 1: the dialogue of Table 7."""


@dataclass(frozen=True)
class Scored:
    """A rated file with what was scored: who (`GPT-2 w/ fine-tuning`), by what, the values."""

    quality: str
    samples: tuple[Sample, ...]
    columns: tuple[tuple[str, str, list[float | None]], ...]

    @property
    def human(self) -> list[float | None]:
        return [sample.ratings[self.quality].mean for sample in self.samples]


def chosen_models(setting: Setting) -> tuple[str, str, str]:
    if len(setting.models) != 3:
        raise UsageError(
            "name three models in this order: --model a language model, --model the same tuned to"
            f" dialogues, --model an inference model; {len(setting.models)} are given"
        )
    untuned, tuned, inference = setting.models
    return untuned, tuned, inference


def score_file(setting: Setting, quality: str, before: int, total: int) -> Scored:
    """Scores the released file of coherence or fluency, one language model in memory at a time."""
    samples = tuple(dialeval.load(setting.data["holistic"] / FILES[quality]))
    untuned, tuned, _ = chosen_models(setting)
    asked: list[tuple[str, str, list[Metric]]] = [
        (who, model, [make_metric(f"{quality}:mode={mode}", model=model) for mode in MODES])
        for who, model in ((WITHOUT, untuned), (WITH, tuned))
    ]
    if quality == "coherence":
        asked.append((RUBER, "", [make_metric("bert-ruber")]))
    columns = []
    for part, (who, model, metrics) in enumerate(asked):
        rest = setting.after(before + part * len(samples), total)
        run = rest.score(samples, metrics)
        for metric in metrics:
            mode = getattr(metric, "mode", "")
            by = f"{model}, mode={mode}" if model else metric.label
            columns.append((who, by, run.scores(metric.label)))
    return Scored(quality, samples, tuple(columns))


RATED, JUDGED = 200, 300
"""Samples of each file, and of the three self-consistency sets: for the progress."""


def score_files(setting: Setting, total: int = 5 * RATED) -> dict[str, Scored]:
    return {
        "coherence": score_file(setting, "coherence", 0, total),
        "fluency": score_file(setting, "fluency", 3 * RATED, total),
    }


def measure(setting: Setting) -> Findings:
    chosen_models(setting)
    own = rated_by_own(setting.sets)  # first, as a wrong file is to be told at once
    measured: list[Measured] = []
    files = score_files(setting, 5 * RATED + JUDGED)
    measured += table_2(files["coherence"])
    for scored in files.values():
        measured += rating_table_rows(scored)
    measured += diversity_rows(own.groups)
    measured += quoted_entropies("Table 5", own.groups)
    measured += [
        _quoted(f"Table 6, {group}: {column}")
        for group, column in TABLE_6_CELLS
        if group not in own.groups
    ]
    measured += consistency_rows(setting)
    measured += aspect_rows(own.dialogues)
    notes = [
        "ran: every row that is not quoted; what is quoted needs ratings of your own: --set"
        " ratings.db. Published numbers of GPT-2 and RUBER+BERT belong to weights that are not"
        " to be had, so ours need not match; those of the raters and of the WordNet row of Table 8"
        " must.",
    ]
    return Findings(measured, notes)


def rating_table_rows(scored: Scored) -> list[Measured]:
    """Tables 3 and 4."""
    table, _, _ = TABLES[scored.quality]
    rows = []
    for who, by, values in scored.columns:
        found = correlations(values, scored.human, names=NAMES)
        rows += [
            Measured(f"{table}, {who}: {name.capitalize()}", one.value, by, one.n, one.reason)
            for name, one in found.items()
        ]
    raters = leave_one_out(*ratings_table(list(scored.samples), scored.quality))
    for title, summary in (("mean", mean_of), ("max", largest_of)):
        for name in NAMES:
            one = summary([getattr(rater, name) for rater in raters])
            what = f"{table}, raters, {title}: {name.capitalize()}"
            rows.append(Measured(what, one.value, "", len(scored.samples), one.reason))
    return rows


def table_2(scored: Scored) -> list[Measured]:
    place = CASE_ROW - 1
    means = [mean for mean in scored.human if mean is not None]
    own = scored.human[place]
    assert own is not None, "every pair has ten ratings"
    span = max(means) - min(means)
    rows = [
        Measured(
            "Table 2: human score", (own - min(means)) / span, "mean, from lowest to highest mean"
        ),
        Measured("Table 2: human score", (own - 1) / 4, "mean, from 1 to 5"),
    ]
    for who, by, values in scored.columns:
        if who != WITHOUT:
            what = "Table 2: RUBER" if who == RUBER else "Table 2: coherence"
            rows.append(Measured(what, values[place], by))
    return rows


def consistency_rows(setting: Setting) -> list[Measured]:
    """Tables 7 and 8: the released predictions, and the inference model by both rules."""
    root = setting.data["holistic"]
    _, _, inference = chosen_models(setting)
    sets = {
        name: list(dialeval.load(root / "self_consistency" / folder))
        for name, folder in SETS.items()
    }
    everything = [sample for samples in sets.values() for sample in samples]
    metrics = [make_metric(spec, model=inference) for spec in ("consistency", RULE_OF_THE_PAPER)]
    run = setting.after(5 * RATED, 5 * RATED + JUDGED).score(everything, metrics)
    rows = table_7(sets["CTG"], run.scores(metrics[1].label)[-len(sets["CTG"]) :], inference)
    for name, samples in sets.items():
        human = [sample.ratings["consistency"].mean for sample in samples]
        folder = FOLDER if name == "WS" else SLIPPED[name]
        released = contradictions_of(samples, root / folder / "mnli.pred", slipped=name != "WS")
        by = "released predictions, last pair"
        if name != "WS":
            by += ', against "YOUR SCORE:"'
        rows += _table_8(name, [1 - pairs[-1] for pairs in released], human, by, True)
        for metric, rule in zip(metrics, ("mean of the pairs", "last pair"), strict=True):
            values = dict(zip((s.id for s in everything), run.scores(metric.label), strict=True))
            own = [values[sample.id] for sample in samples]
            rows += _table_8(name, own, human, f"{inference}, {rule}", False)
    return rows


def _table_8(
    name: str,
    values: Sequence[float | None],
    human: Sequence[float | None],
    by: str,
    comparable: bool,
) -> list[Measured]:
    found = correlations(values, human, names=NAMES)
    return [
        Measured(
            f"Table 8, {name}: {kind.capitalize()}", one.value, by, one.n, one.reason, comparable
        )
        for kind, one in found.items()
    ]


def table_7(samples: Sequence[Sample], values: Sequence[float | None], by: str) -> list[Measured]:
    case = samples[CASE_SAMPLE - 1]
    said = case.ratings["consistency"]
    first, mean = said.values[0], said.mean
    assert first is not None, "every rater saw every sample"
    assert mean is not None, "every rater saw every sample"
    return [
        Measured("Table 7: human score", first / 5, "the first rater, over 5"),
        Measured("Table 7: human score", (mean - 1) / 4, "mean of ten, from 1 to 5"),
        Measured("Table 7: self-consistency", values[CASE_SAMPLE - 1], f"{by}, last pair"),
    ]


ORDERS = (1, 2, 3)
GROUPS = {"random": "Baseline", "ws": "WS", "ctg": "CTG"}
TABLE_5 = {
    "Baseline": "0.46 0.32 0.45 0.33 0.43 0.33",
    "WS": "0.77 0.69 0.76 0.67 0.71 0.61",
    "CTG": "0.72 0.72 0.72 0.72 0.66 0.66",
}
"""Pearson and Spearman for n = 1, 2, 3."""
TABLE_6 = {
    "Baseline": "0.21 0.51 0.23 0.65 0.93",
    "WS": "0.78 0.89 0.78 0.92 0.68",
    "CTG": "0.78 0.86 0.79 0.81 0.69",
}
"""Raters: Pearson, mean and max, Spearman, mean and max; their variance."""
VARIANCE = "human variance"
TABLE_6_CELLS = tuple((group, column) for group in TABLE_6 for column in (*COLUMNS, VARIANCE))


def diversity_rows(groups: Mapping[str, list[Sample]]) -> list[Measured]:
    """Tables 5 and 6, of rated groups."""
    rows = []
    for group, samples in groups.items():
        human = [sample.ratings["diversity"].mean for sample in samples]
        for n in ORDERS:
            rows += entropy_rows("Table 5", group, n, samples, human)
        ratings, names = ratings_table(samples, "diversity")
        raters = leave_one_out(ratings, names)
        found = [
            summary([getattr(rater, name) for rater in raters])
            for name in NAMES
            for summary in (mean_of, largest_of)
        ]
        rows += [
            Measured(f"Table 6, {group}: {column}", one.value, OWN, len(samples), one.reason, False)
            for column, one in zip(
                (*COLUMNS, VARIANCE), (*found, human_variance(ratings)), strict=True
            )
        ]
    return rows


@dataclass(frozen=True)
class RatedByOwn:
    """What your own raters rated.

    groups     answers to one query in several wordings, by how these were made
    dialogues  whole dialogues, with ratings of at least two of the four aspects
    """

    groups: Mapping[str, list[Sample]] = field(default_factory=dict)
    dialogues: Sequence[Sample] = ()


def rated_by_own(sets: Sequence[str]) -> RatedByOwn:
    """Reads the groups of answers and the dialogues in these files that people rated."""
    groups: dict[str, list[Sample]] = {}
    dialogues: list[Sample] = []
    for path in sets:
        for sample in dialeval.load(path):
            if sample.response is not None:
                # A dialogue under four aspects shows its group of answers as well.
                if sum(aspect in sample.ratings for aspect in ASPECTS) > 1:
                    dialogues.append(sample)
            elif sample.variants and "diversity" in sample.ratings:
                groups.setdefault(group_name(sample, path), []).append(sample)
    if sets and not groups and not dialogues:
        raise UsageError(
            f"{', '.join(sets)}: no group of answers has a rating of 'diversity', and no dialogue"
            " has ratings of two aspects. Collect some: dialeval rate runs/bot/variants --qualities"
            f" diversity, or dialeval rate runs/bot --qualities {','.join(ASPECTS)}"
        )
    return RatedByOwn(groups, dialogues)


def group_name(sample: Sample, path: str) -> str:
    """`WS`, `CTG` or `Baseline` as the paper calls them; another augmenter, or the file's name."""
    kind = kind_of(sample)
    by = kind.by if kind else sample.id.partition("-")[0].lower()
    return GROUPS.get(by, by or Path(path).stem)


OWN = "your raters"


def entropies(samples: Sequence[Sample], n: int) -> list[float | None]:
    return [ngram_entropy([v.response for v in sample.variants], n) for sample in samples]


def entropy_rows(
    table: str, group: str, n: int, samples: Sequence[Sample], human: Sequence[float | None]
) -> list[Measured]:
    return [
        Measured(_entropy(table, group, n, name), one.value, OWN, one.n, one.reason, False)
        for name, one in correlations(entropies(samples, n), human, names=NAMES).items()
    ]


def _entropy(table: str, group: str, n: int, name: str) -> str:
    return f"{table}, {group}, {n}-grams: {name.capitalize()}"


def _quoted(what: str, needs: str = "rated groups") -> Measured:
    return Measured(what, None, reason=f"needs {needs}", ran=False, comparable=False)


def quoted_entropies(table: str, groups: Mapping[str, list[Sample]]) -> list[Measured]:
    """The numbers of Table 5 for the kinds of groups that nobody rated."""
    return [
        _quoted(_entropy(table, group, n, name))
        for group in TABLE_5
        if group not in groups
        for n in ORDERS
        for name in NAMES
    ]


FLUENCY_AND_COHERENCE = "Section 5.5, coherence and fluency"
SECTION_5_5 = {"Pearson": "0.42", "p": "0.003"}
"""Of fluency and coherence, on 50 dialogues. Of the other five pairs no number is printed."""


def aspect_rows(dialogues: Sequence[Sample]) -> list[Measured]:
    """Section 5.5: the aspects among themselves, by the mean ratings of each dialogue."""
    if not dialogues:
        return [
            _quoted(f"{FLUENCY_AND_COHERENCE}: {what}", "rated dialogues") for what in SECTION_5_5
        ]
    rows = []
    means = {
        aspect: [s.ratings[aspect].mean if aspect in s.ratings else None for s in dialogues]
        for aspect in ASPECTS
    }
    for one, other in combinations(ASPECTS, 2):
        r = correlations(means[one], means[other], names=("pearson",))["pearson"]
        what = f"Section 5.5, {one} and {other}"
        rows += [
            Measured(f"{what}: {column}", value, OWN, r.n, r.reason, False)
            for column, value in zip(SECTION_5_5, (r.value, r.p), strict=True)
        ]
    return rows


def published_entropies(table: str) -> list[Published]:
    return [
        Published(
            _entropy(table, group, n, name),
            numbers.split()[2 * (n - 1) + i],
            "Table 5",
            must_match=False,
        )
        for group, numbers in TABLE_5.items()
        for n in ORDERS
        for i, name in enumerate(NAMES)
    ]


def _published() -> tuple[Published, ...]:
    def pair(what: str, numbers: str, source: str, must_match: bool) -> list[Published]:
        return [
            Published(f"{what}: {name.capitalize()}", number, source, must_match)
            for name, number in zip(NAMES, numbers.split(), strict=True)
        ]

    case = [
        Published("Table 2: human score", "0.20", "Table 2", must_match=False),
        Published("Table 2: RUBER", "0.97", "Table 2", must_match=False),
        Published("Table 2: coherence", "0.19", "Table 2", must_match=False),
    ]
    for table, rows, raters in TABLES.values():
        for who, numbers in rows.items():
            case += pair(f"{table}, {who}", numbers, table, False)
        for who, numbers in raters.items():
            case += pair(f"{table}, {who}", numbers, table, True)
    case += published_entropies("Table 5")
    numbers_of_table_6 = " ".join(TABLE_6.values()).split()
    case += [
        Published(f"Table 6, {group}: {column}", number, "Table 6", must_match=False)
        for (group, column), number in zip(TABLE_6_CELLS, numbers_of_table_6, strict=True)
    ]
    case += [
        Published("Table 7: human score", "0.20", "Table 7", must_match=False),
        Published("Table 7: self-consistency", "0.09", "Table 7", must_match=False),
    ]
    for name, printed in TABLE_8.items():
        case += pair(f"Table 8, {name}", " ".join(printed), "Table 8", name == "WS")
    case += [
        Published(f"{FLUENCY_AND_COHERENCE}: {what}", number, "section 5.5", must_match=False)
        for what, number in SECTION_5_5.items()
    ]
    return tuple(case)


NEEDS = (
    Data(
        "holistic",
        (*FILES.values(), *(f"self_consistency/{folder}" for folder in SETS.values())),
    ),
)
DIFFERS = (
    "The authors fine-tuned GPT-2 (12 layers); their weights cannot be fetched any more. Ours is"
    f" {UNTUNED}, tuned to DailyDialog as {TUNED}.",
    "RUBER+BERT is our scorer on MiniLM, trained on DailyDialog, without references.",
    "Table 3's own numbers are most likely those of mode=released, which does not divide by the"
    " length; minus the number of words alone gives .448 / .494 on coherence and .628 / .648 on"
    " fluency (dialeval study holistic-length).",
    "How Tables 2 and 7 scaled the human score is not said; neither is it the same in both.",
    "The rows baseline and CTG of Table 8 cannot be repeated from the release: its predictions"
    ' hold every turn against the literal text "YOUR SCORE:".',
    "Tables 5 and 6 need ratings of diversity, which were not released: --set takes those of your"
    " own raters. Table 9 is dialeval study holistic-raters.",
    "Section 5.5 needs dialogues that people rated under four aspects, which were not released:"
    " --set takes those of your own raters. Of its other five pairs it only says that |r| < 0.1 and"
    " p > 0.25.",
)

STUDY = Study(
    name="holistic-tables",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="HolisticEval, Tables 2 to 8: published, and ours with three models; Tables 5 and 6 and"
    " section 5.5 of what your raters rated",
    needs=NEEDS,
    models=(UNTUNED, TUNED, INFERENCE),
    takes_sets=True,
    asks=("bert-ruber-minilm-l6",),
    published=_published(),
    differs=DIFFERS,
    cost="five minutes",
    measure=measure,
)


NOISE = 0.05
"""The standard deviation of the jitter on human ratings, in the caption of Figure 1."""


UNIT = (0.0, 1.0)


def unit(values: Sequence[float | None], scale: tuple[float, float]) -> list[float]:
    """Ratings from 0 to 1, as section 4.5 has them; NaN where there is none."""
    low, high = scale
    return [float("nan") if value is None else (value - low) / (high - low) for value in values]


def measure_figures(setting: Setting) -> Findings:
    chosen_models(setting)
    groups = rated_by_own(setting.sets).groups
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
    measured += quoted_entropies("Figure 3", groups)
    if not groups:
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


FIGURES = Study(
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
    measure=measure_figures,
)
