"""FULL on FED: against other metrics (Table 2), and each follow-up alone (Table 3, Figure 2).

full-fed    the authors' .51 and .69 beside ours, with the embedded model and with any other.
            Spearman with the mean `Overall` rating, 375 turns and 125 dialogues. The published
            numbers are those of facebook/blenderbot-400M-distill with the released package,
            `full:mode=released` here; only with both must ours match. The follow-ups were chosen on
            FED itself, by the authors. Other metrics have no published number beside them.
full-table  all of Table 2. The authors copied the twelve other rows from Yeh et al. (2021). Each of
            them is run here if dialeval has the metric and its models are here; otherwise it is
            quoted, with the reason.

full-follow-ups  Table 3 and Figure 2: how much does each of the 63 follow-ups tell, with which
            model?

Table 3 has how well each follow-up of FED, alone, agrees with the `Overall` rating there, on turns
and on dialogues (De Bruyn et al., COLING 2022). Section 5.2 draws on it: complaints tell more than
praise (.39 and .24 on average), and five together more than each alone (.51 and .45). Figure 2 has
the mean size of the 63 correlations for each language model.

`full` is asked as the paper has it (mode=paper, total log-likelihoods) and as the authors computed
their tables (mode=released, perplexities with the end token). Only mode=released with BlenderBot-
400M has to give the printed numbers. The means over the printed table have to come out anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import dialeval
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.engine.answers import LoadedOnce
from dialeval.metric import Metric
from dialeval.model_store.catalogue import find_entry
from dialeval.model_store.locate import list_models
from dialeval.models.source import Models
from dialeval.options import split_spec
from dialeval.registry import METRICS, make_metric, make_metrics
from dialeval.runs.run import Run
from dialeval.sample import Level, Sample
from dialeval.studies.comparison import PUBLISHED, SOURCE
from dialeval.studies.follow_up_selection import (
    CITED,
    FIVE,
    LEVELS,
    MODEL_OF_THE_PAPER,
    PAPER,
    PRAISE,
    QUALITY,
    TABLE_3,
    Variant,
    agreement_of,
    agreement_of_each,
    score_follow_ups,
    the_five,
    variants_of,
)
from dialeval.studies.rated_runs import (
    LoadedSet,
    by_lot_at_each_level,
    groups_by_model,
    load_rated_sets,
    main_quality,
    run_place,
    sampling_notes,
    unusable,
)
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing


def measure_fed(setting: Setting) -> Findings:
    samples = list(dialeval.load(setting.data["fed"] / "fed_data.json"))
    groups = metrics_by_model(setting.metrics, setting.models)
    measured: list[Measured] = []
    notes: list[str] = []
    for part, (model, metrics) in enumerate(groups.items()):
        rest = setting.after(part * len(samples), len(groups) * len(samples))
        run = rest.score(samples, metrics)
        measured += [ours for metric in metrics for ours in _fed_rows(run, samples, metric, model)]
        notes += [*run.table().notes, *run.table().signatures]
    return Findings(measured, list(dict.fromkeys(notes)))


def metrics_by_model(specs: Sequence[str], models: Sequence[str]) -> dict[str, list[Metric]]:
    """Model -> the metrics that ask it; under "" those that ask none, or name their own.

    One run per model, so that only one is in memory.
    """
    groups: dict[str, list[Metric]] = {}
    for spec in specs:
        name, options = split_spec(spec)
        takes_model = "model" in METRICS.get(name).uses() and "model" not in options
        for model in models if takes_model else [""]:
            metric = make_metric(spec, model=model) if model else make_metric(spec)
            groups.setdefault(model, []).append(metric)
    return {model: make_metrics(groups[model]) for model in sorted(groups)}


def _fed_rows(run: Run, samples: Sequence[Sample], metric: Metric, model: str) -> list[Measured]:
    mode = getattr(metric, "mode", "")
    as_published = (metric.name, mode, model) == ("full", "released", MODEL_OF_THE_PAPER)
    named = not model or f"model={model}" in metric.label
    by = metric.label if named else f"{metric.label}, {model}"
    scores = run.scores(metric.label)
    rows = []
    for level in LEVELS:
        if level in metric.levels:
            r = _correlated(scores, samples, level, QUALITY)
            what = _what(metric.name, level)
            rows.append(Measured(what, r.value, by, r.n, r.reason, as_published))
    return rows


def _correlated(
    scores: Iterable[float | None], samples: Sequence[Sample], level: Level, quality: str
) -> Coefficient:
    """Returns Spearman's rho of scores and mean ratings, over the rated samples of a level."""
    pairs = [
        (score, sample.ratings[quality].mean)
        for score, sample in zip(scores, samples, strict=True)
        if sample.level == level and quality in sample.ratings
    ]
    return spearman([score for score, _ in pairs], [rating for _, rating in pairs])


def _what(metric: str, level: Level) -> str:
    return f"{metric}, {level}s: Spearman"


FED = Study(
    name="full-fed",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, Table 2: agreement with people on FED",
    needs=(Data("fed", ("fed_data.json",)),),
    models=("smollm2-135m",),
    metrics=("length", "full", "full:mode=released"),
    published=(
        Published(_what("full", "turn"), "0.51", "Table 2, BlenderBot"),
        Published(_what("full", "dialogue"), "0.69", "Table 2, BlenderBot"),
    ),
    differs=(
        f"The numbers must match with --model {MODEL_OF_THE_PAPER} and mode released only.",
        "They were made with the package 0.0.2.9 (four follow-ups, mean perplexity), not with"
        " Eq. 1, and on follow-ups that were chosen on FED.",
        "The paper speaks of 372 turns and 124 dialogues; the file has 375 and 125.",
    ),
    cost="minutes",
    measure=measure_fed,
)


# Table 2.


@dataclass(frozen=True)
class Rival:
    """A row of Table 2: the metric as printed, its Spearman on turns and on dialogues, the metric
    of dialeval that has its name, and what it takes to run it."""

    name: str
    turns: str
    dialogues: str
    spec: str
    takes: str


TABLE_2 = (
    Rival(
        "QuestEval",
        "0.09",
        "0.08",
        "quest-eval",
        "T5 models that ask questions about a text and answer them: only the hub has these, and"
        " there are no questions with answers here to train others",
    ),
    Rival("MAUDE", "-0.09", "-0.28", "maude", "an LSTM over turns, trained on corrupted replies"),
    Rival("DEB", "0.19", "-0.01", "deb", "BERT trained on Reddit, then on DailyDialog++"),
    Rival("GRADE", "0.12", "-0.06", "grade", "a graph of topics and BERT, trained on DailyDialog"),
    Rival("DynaEval", "0.32", "0.55", "dyna-eval", "a graph of turns, trained on whole dialogues"),
    Rival("USR", "0.12", "0.06", "usr", "RoBERTa trained on Topical-Chat, with its facts"),
    Rival("USL-H", "0.19", "0.15", "usl-h", "three judges trained on DailyDialog"),
    Rival("DialoRPT", "-0.09", "-0.21", "dialogrpt", "GPT-2 trained on votes of Reddit"),
    Rival("HolisticEval", "0.12", "-0.30", "holistic", "GPT-2 tuned on DailyDialog"),
    Rival("PredictiveEngage", "0.09", "0.15", "predictive-engage", "an MLP trained on ConvAI"),
    Rival("FED", "0.09", "0.32", "fed", "DialoGPT-large"),
    Rival("FlowScore", "-0.05", "-0.00", "flow-score", "DialoFlow, GPT-2 trained on Reddit"),
)
"""In the order of the paper."""

FULL = Rival("FULL", "0.51", "0.69", "full", "BlenderBot-400M")
NAMES_OF_YEH = {"DialoRPT": "DialogRPT"}
"""Rows that Yeh et al. spell otherwise."""


def measure_table(setting: Setting) -> Findings:
    source = LoadedOnce(setting.source or Models())
    sets = [
        by_lot_at_each_level(rated, setting.limit)
        for rated in load_rated_sets(setting.sets or ["fed"])
    ]
    there = [rival.spec for rival in TABLE_2 if rival.spec in METRICS.names()]
    metrics = make_metrics(list(dict.fromkeys([*there, *setting.metrics])))
    left_out = {} if setting.source else unusable(metrics)
    groups = [
        group
        for rule in (False, True)
        for group in groups_by_model(
            [m for m in metrics if m.label not in left_out and ("dialogue" in m.levels) == rule]
        )
    ]
    setting, done = replace(setting, source=source), 0
    total = sum(len(rated.samples) for rated in sets) * len(groups)
    measured: list[Measured] = []
    for rated in sets:
        found: dict[str, list[Measured]] = {}
        for group in groups:
            asked = rated if "dialogue" in group[0].levels else _by_last_answer(rated)
            run = setting.after(done, total).score(
                asked.samples, group, run_place(asked, group, source)
            )
            found |= {metric.label: _agreement(run, rated, metric) for metric in group}
            done += len(rated.samples)
        for rival in TABLE_2:
            # Besides the metric itself, those that the user gave a model: -m grade:model=DIR
            own = [label for label in found if split_spec(label)[0] == rival.spec]
            lacking = f"dialeval has no {rival.spec}, which takes {rival.takes}"
            why = left_out.get(rival.spec, lacking)
            measured += [one for label in own for one in found.pop(label)]
            measured += [] if own else _quoted(rated, rival, why)
        measured += [one for rows in found.values() for one in rows]
    notes = [
        *sampling_notes(sets),
        *(f"{label}: {why}" for label, why in left_out.items() if label not in there),
        *dict.fromkeys(
            str(metric.signature({n: source.fingerprint(n) for n in metric.models().values()}))
            for group in groups
            for metric in group
        ),
    ]
    published = [number for rated in sets for number in _published(rated)]
    return Findings(measured, notes, published=published)


def _by_last_answer(rated: LoadedSet) -> LoadedSet:
    """For metrics that judge a turn: of a dialogue they see the last answer of the system."""
    samples = tuple(
        _last_answer(sample) if sample.level == "dialogue" else sample for sample in rated.samples
    )
    return replace(rated, samples=samples)


def _last_answer(sample: Sample) -> Sample:
    turns = sample.turns
    places = [n for n, turn in enumerate(turns) if turn.speaker == "system"]
    last = places[-1] if places else len(turns) - 1
    return replace(sample, context=turns[:last], response=turns[last].text)


def _agreement(run: Run, rated: LoadedSet, metric: Metric) -> list[Measured]:
    quality = main_quality(rated.samples)
    name = next((rival.name for rival in (*TABLE_2, FULL) if rival.spec == metric.name), "")
    made_alike = (metric.name, getattr(metric, "mode", ""), getattr(metric, "model", "")) == (
        "full",
        "released",
        MODEL_OF_THE_PAPER,
    )
    scores = run.scores(metric.label)
    rows = []
    for level in _levels(rated):
        r = _correlated(scores, rated.samples, level, quality)
        what = _cell(rated, level, name or metric.label)
        comparable = made_alike and not rated.whole
        rows.append(Measured(what, r.value, metric.label, r.n, r.reason, comparable))
    return rows


def _quoted(rated: LoadedSet, rival: Rival, why: str) -> list[Measured]:
    return [
        Measured(_cell(rated, level, rival.name), None, reason=why, ran=False, comparable=False)
        for level in _levels(rated)
    ]


def _published(rated: LoadedSet) -> Iterator[Published]:
    """Table 2 for FED; for another set what Yeh et al. have of it."""
    for rival in (*TABLE_2, FULL):
        known = PUBLISHED.get(NAMES_OF_YEH.get(rival.name, rival.name), {})
        for level in _levels(rated):
            what = _cell(rated, level, rival.name)
            if rated.name == "fed":
                printed = rival.turns if level == "turn" else rival.dialogues
                source = "Table 2" if rival is FULL else f"Table 2, from {SOURCE}"
                yield Published(what, printed, source, must_match=rival is FULL)
            elif pair := known.get((rated.name, level, main_quality(rated.samples))):
                yield Published(what, pair.spearman.rstrip("*"), SOURCE, must_match=False)


def _levels(rated: LoadedSet) -> list[Level]:
    return [level for level in LEVELS if any(s.level == level for s in rated.samples)]


def _cell(rated: LoadedSet, level: Level, name: str) -> str:
    return f"{rated.name}, {level}s: {name}"


TABLE = Study(
    name="full-table",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, Table 2: twelve metrics, FULL and ours on FED, each ran or quoted",
    needs=(Data("fed", ("fed_data.json",)),),
    metrics=("full", "full:mode=released", "follow-up-contrast", "mme-crs", "judge"),
    takes_sets=True,
    takes_limit=True,
    differs=(
        f"Only FULL must match, and only as -m full:model={MODEL_OF_THE_PAPER},mode=released"
        " without --limit. The other rows ask other models than Yeh et al. did (the embedded ones),"
        " and the authors of FULL copied theirs.",
        "Of a whole dialogue, metrics that judge a turn see the last answer of the system. Yeh et"
        " al. show them the last turn but one, and leave it in the context as well.",
        "Table 2 has -0.01 for DEB on dialogues where Yeh et al. have .006.",
        "FED is no unseen set for ours: the follow-ups of full and follow-up-contrast were chosen"
        " on it; judge and the weights of mme-crs learned from its ratings. Without these: dialeval"
        " study judge, dialeval study mme-ablation.",
    ),
    cost="an hour (language models); --limit 60: a quarter of an hour",
    measure=measure_table,
)


AS_PRINTED = "Table 3, as printed"
"""Who "measures" a mean over the authors' own numbers."""

FIGURE_2 = {
    "facebook/blenderbot-400M-distill": "BLD S",
    "facebook/blenderbot-3B": "BLD L",
    "microsoft/DialoGPT-small": "DGPT S",
    "microsoft/DialoGPT-medium": "DGPT M",
    "microsoft/DialoGPT-large": "DGPT L",
    "gpt2": "GPT2 S",
    "gpt2-medium": "GPT2 M",
    "gpt2-large": "GPT2 L",
    "gpt2-xl": "GPT2 XL",
}
"""Model -> its name under the bars."""

Agreement = Mapping[str, Mapping[Level, Coefficient]]
"""Follow-up -> level -> how well it agrees with people, alone."""


def measure_table_3(setting: Setting) -> Findings:
    variants = variants_of(setting, "full-follow-ups", takes_candidates=False)
    fed = by_lot_at_each_level(load_rated_sets(["fed"])[0], setting.limit)
    whole = not fed.whole
    printed = {
        text: {level: Coefficient(float(r), 0) for level, r in zip(LEVELS, both, strict=True)}
        for text, both in TABLE_3.items()
    }
    measured = [*_means(printed, AS_PRINTED, comparable=True)]
    sizes = {(FIGURE_2[MODEL_OF_THE_PAPER] + ", " + AS_PRINTED): _mean_sizes(printed)}
    notes = sampling_notes([fed])
    tables = []
    for place, variant in enumerate(variants):
        asked = list(dict.fromkeys([*TABLE_3, *variant.score]))
        done, total = place * len(fed.samples), len(variants) * len(fed.samples)
        run = score_follow_ups(fed.samples, asked, variant, setting.after(done, total))
        found = agreement_of_each(run, QUALITY, list(TABLE_3))
        comparable = variant.is_as_published and whole
        measured += _of_each(found, variant, comparable)
        measured += _means(found, variant.by, comparable)
        measured += _together(run, variant, comparable)
        tables.append(_table_3(found, variant, comparable))
        sizes[variant.by] = _mean_sizes(found)
        notes += run.table().signatures
    counts = {level: sum(s.level == level for s in fed.samples) for level in LEVELS}
    notes.append(_chance(counts))
    entries = [find_entry(variant.model) for variant in variants]  # by name or by hub id
    tables.append(_figure_2_table(sizes, {entry.name for entry in entries if entry}))
    drawing = _figure_2(sizes, counts) if setting.draw else None
    return Findings(measured, list(dict.fromkeys(notes)), tables, drawing)


def _of_each(found: Agreement, variant: Variant, comparable: bool) -> Iterator[Measured]:
    few = Coefficient(None, 0, reason="fewer than three rated samples")
    for text, own in found.items():
        for level in LEVELS:
            r = own.get(level, few)
            what = f"{level}s: {text}"
            yield Measured(what, r.value, variant.by, r.n, r.reason, comparable, in_table=True)


def _means(found: Agreement, by: str, comparable: bool) -> Iterator[Measured]:
    """What section 5.2 and 5.3 say about the follow-ups as a whole."""
    complaints = [text for text in found if text not in PRAISE]
    groups = {
        _mean_of("negative"): complaints,
        _mean_of("positive"): [text for text in found if text in PRAISE],
        _mean_of(FIVE): list(the_five()),
    }
    for level in LEVELS:
        for what, texts in groups.items():
            values = _values(found, texts, level)
            mean = fmean(values) if values else None
            yield Measured(f"{level}s: {what}", mean, by, comparable=comparable)
        values = _values(found, list(found), level)
        best = max(values, key=abs, default=None)
        yield Measured(f"{level}s: {BEST}", best, by, comparable=comparable)


BEST = "the best single follow-up"


def _mean_of(which: str) -> str:
    return f"mean of {which}" if which == FIVE else f"mean of the {which} follow-ups"


def _together(run: Run, variant: Variant, comparable: bool) -> Iterator[Measured]:
    """FULL itself: what its follow-ups tell together."""
    for level, r in agreement_of(run, variant.score, QUALITY).items():
        yield Measured(f"{level}s: {TOGETHER}", r.value, variant.by, r.n, r.reason, comparable)


TOGETHER = "FULL's follow-ups together"


def _values(found: Agreement, texts: Sequence[str], level: Level) -> list[float]:
    numbers = (found[text][level].value for text in texts if level in found[text])
    return [number for number in numbers if number is not None]


def _mean_sizes(found: Agreement) -> dict[Level, float | None]:
    sizes = {level: [abs(r) for r in _values(found, list(found), level)] for level in LEVELS}
    return {level: fmean(values) if values else None for level, values in sizes.items()}


def _table_3(found: Agreement, variant: Variant, comparable: bool) -> Table:
    """All rows, as printed beside ours; in the order of the paper."""
    rows = []
    for text, printed in TABLE_3.items():
        cells: list[str | float | None] = [text, "pos" if text in PRAISE else "neg"]
        cells[1] = f"{cells[1]}, X" if text in the_five() else cells[1]
        for level, number in zip(LEVELS, printed, strict=True):
            r = found[text].get(level)
            cells += [float(number), r.value if r else None]
        rows.append(tuple(cells))
    binding = "must match" if comparable else "need not match"
    return Table(
        f"Table 3 (X: one of FULL's five), {variant.by}: ran; the numbers {binding}",
        ("follow-up", "type", "turn, published", "ours", "dialogue, published", "ours"),
        tuple(rows),
    )


def _chance(counts: Mapping[Level, int]) -> str:
    told = ", ".join(f"{_chance_size(n):.3f} on {n} {level}s" for level, n in counts.items() if n)
    return f"Unrelated numbers would have a mean size of about {told}: sqrt(2 / (pi (n - 1)))"


def _chance_size(n: int) -> float:
    """Returns the mean of |r| where nothing is related: r is about normal with variance 1 / (n -
    1)."""
    return math.sqrt(2 / (math.pi * (n - 1))) if n > 1 else 1.0


def _figure_2_table(sizes: Mapping[str, Mapping[Level, float | None]], asked: set[str]) -> Table:
    """Every bar; then the models of Figure 2 and other language models that were not asked."""
    rows: list[tuple[str | float | None, ...]] = [
        (
            by,
            "quoted: recomputed from Table 3" if by.endswith(AS_PRINTED) else "ran",
            *(own[level] for level in LEVELS),
        )
        for by, own in sizes.items()
    ]
    kinds = ("causal-lm", "seq2seq-lm")
    listed = {model.name: model for model in list_models() if model.role in kinds}
    others = [name for name, model in listed.items() if model.is_here and name not in FIGURE_2]
    for name in (*FIGURE_2, *others):
        if name not in asked:
            told = f"{FIGURE_2[name]}: {name}" if name in FIGURE_2 else name
            way = (
                f"here, not asked: --model {name}"
                if listed[name].is_here
                else f"not here: dialeval models get {name}; the paper has a bar and no number"
            )
            rows.append((told, way, None, None))
    header = ("language model", "state", "turns", "dialogues")
    return Table("Figure 2: mean size of the 63 correlations", header, tuple(rows))


def _figure_2(
    sizes: Mapping[str, Mapping[Level, float | None]], counts: Mapping[Level, int]
) -> Drawing:
    from dialeval.pictures.charts import Bar, bar_chart

    words = {"turn": "per turn", "dialogue": "entire dialogue"}
    bars = [
        Bar(by, own[level], group=words[level]) for by, own in sizes.items() for level in LEVELS
    ]
    return bar_chart(
        bars,
        title="Mean size of the correlations of 63 follow-ups with people (FULL, Figure 2)",
        x_label="mean |Spearman| with Overall, FED",
        note=_chance(counts),
    )


FOLLOW_UPS = Study(
    name="full-follow-ups",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, Table 3 and Figure 2: each of the 63 follow-ups alone, with any language models",
    needs=(Data("fed", ("fed_data.json",)),),
    models=("smollm2-135m",),
    metrics=("full:mode=released", "full"),
    takes_limit=True,
    draws=True,
    published=(
        Published(f"turns: {_mean_of('negative')}", "0.39", "section 5.2"),
        Published(f"turns: {_mean_of('positive')}", "0.24", "section 5.2"),
        Published(f"turns: {_mean_of(FIVE)}", "0.45", "section 5.3"),
        Published(f"turns: {BEST}", "0.48", "section 5.2"),
        Published(f"dialogues: {BEST}", "0.70", "section 5.2"),
        Published(f"turns: {TOGETHER}", "0.51", "Table 2"),
        Published(f"dialogues: {TOGETHER}", "0.69", "Table 2"),
        *(
            Published(f"{level}s: {text}", number, "Table 3")
            for text, both in TABLE_3.items()
            for level, number in zip(LEVELS, both, strict=True)
        ),
    ),
    differs=(
        f"Numbers of ours must match with --model {MODEL_OF_THE_PAPER}, mode released and without"
        " --limit only. The means over Table 3, as printed, must match in any case.",
        "FULL's follow-ups together are five in mode paper and, because a comma is missing in the"
        " package that made Table 2, four in mode released.",
        "The paper has the bars of Figure 2 and no numbers. Those of BlenderBot 400M (BLD S) follow"
        " from Table 3; the others can only be measured.",
        'Table 1 has .57 for the dialogues of "I am so confused right now."; Table 3, used here,'
        " has .60.",
    ),
    cost="half an hour a model; --limit 60: five minutes",
    measure=measure_table_3,
)
