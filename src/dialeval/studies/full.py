"""FULL on FED: the authors' .51 and .69 beside ours, with the embedded model and with any other.

Spearman with the mean `Overall` rating, 375 turns and 125 dialogues. The published numbers are
those of facebook/blenderbot-400M-distill with the released package, `full:mode=released` here; only
with both must ours match. The follow-ups were chosen on FED itself, by the authors. Other metrics
are measured on the same samples and have no published number beside them.

FULL's choice of follow-ups on FED, reported where nothing was chosen (COLING 2022, section 5.2).

The 63 follow-ups of FED are ranked by how well each alone agrees with `Overall` there, near-
duplicates are dropped, five are kept. Then these and the authors' five are reported on FED, as the
authors did, and on data sets that had no part in the choice; in `mode=paper`, and in
`mode=released`, which is how the authors made their Table 3.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.metrics.follow_ups import load_follow_ups
from dialeval.options import split_spec
from dialeval.registry import METRICS, make_metric, make_metrics
from dialeval.runs.run import Run
from dialeval.sample import Level, Sample
from dialeval.studies.follow_up_selection import (
    ENCODER,
    LEVELS,
    Closeness,
    RankedFollowUp,
    agreement_of,
    closeness,
    rank_by_agreement,
    rank_follow_ups,
    select_follow_ups,
)
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

PAPER = (
    "De Bruyn, Lotfi, Buhmann, Daelemans: Open-Domain Dialog Evaluation using Follow-Ups"
    " Likelihood. COLING 2022"
)
CITED = "De Bruyn et al., COLING 2022"
MODEL_OF_THE_PAPER = "facebook/blenderbot-400M-distill"
QUALITY = "Overall"


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
            pairs = [
                (score, sample.ratings[QUALITY].mean)
                for score, sample in zip(scores, samples, strict=True)
                if sample.level == level and QUALITY in sample.ratings
            ]
            found = spearman([score for score, _ in pairs], [rating for _, rating in pairs])
            what = _what(metric.name, level)
            rows.append(Measured(what, found.value, by, found.n, found.reason, as_published))
    return rows


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


CHOSEN = 5
SHOWN = 10
HELD_OUT = {"usr-topical": "Overall", "grade-dailydialog": "coherence"}
"""Data set -> the quality to report on."""

TABLE_3: dict[str, tuple[str, str]] = {
    "Not really relevant here.": ("0.48", "0.65"),
    "You're really confusing.": ("0.46", "0.67"),
    "I don't understand what you're saying.": ("0.46", "0.58"),
    "That's not really relevant here.": ("0.45", "0.70"),
    "You are so confusing.": ("0.45", "0.64"),
    "You're really boring.": ("0.44", "0.65"),
    "That's not very interesting.": ("0.44", "0.60"),
    "That was a really boring response.": ("0.43", "0.63"),
    "You don't seem interested.": ("0.43", "0.61"),
    "I am so confused right now.": ("0.43", "0.60"),
    "I'm so confused!": ("0.43", "0.59"),
    "I don't really care. That's pretty boring.": ("0.43", "0.61"),
    "I want to talk about something else.": ("0.43", "0.65"),
    "That's not even related to what I said.": ("0.42", "0.58"),
    "What are you trying to say?": ("0.42", "0.68"),
    "I am so confused right now!": ("0.42", "0.57"),
    "That makes no sense!": ("0.42", "0.56"),
    "I don't understand at all!": ("0.41", "0.54"),
    "That's really boring.": ("0.41", "0.54"),
    "I don't like you.": ("0.40", "0.58"),
    "I'm so confused right now!": ("0.40", "0.56"),
    "Don't change the topic!": ("0.40", "0.58"),
    "You're not understanding me!": ("0.40", "0.62"),
    "That's a very generic response.": ("0.39", "0.50"),
    "You don't really know much.": ("0.39", "0.52"),
    "You're not very nice.": ("0.38", "0.56"),
    "You're not very fun to talk to.": ("0.37", "0.55"),
    "Is that real English?": ("0.37", "0.49"),
    "That's a lot of questions!": ("0.36", "0.52"),
    "Why are you repeating yourself?": ("0.35", "0.50"),
    "You're making no sense at all.": ("0.35", "0.43"),
    "You ask a lot of questions!": ("0.35", "0.54"),
    "Let's change the topic.": ("0.35", "0.45"),
    "You don't ask many questions.": ("0.35", "0.54"),
    "Why are you changing the topic?": ("0.34", "0.51"),
    "Stop saying the same thing repeatedly.": ("0.34", "0.50"),
    "Do you know how to talk about something else?": ("0.33", "0.49"),
    "You're changing the topic so much!": ("0.33", "0.47"),
    "You know a lot of facts!": ("0.32", "0.48"),
    "Tell me more!": ("0.32", "0.34"),
    "I like you!": ("0.31", "0.43"),
    "Wow that's a lot of information.": ("0.31", "0.38"),
    "Stop changing the topic so much.": ("0.31", "0.44"),
    "What does that even mean?": ("0.30", "0.35"),
    "I don't want to talk about that!": ("0.29", "0.50"),
    "That's not what you said earlier!": ("0.29", "0.37"),
    "You have a good point.": ("0.29", "0.43"),
    "I see, that's interesting.": ("0.28", "0.31"),
    "Stop contradicting yourself!": ("0.28", "0.36"),
    "You're very easy to talk to!": ("0.28", "0.40"),
    "Stop repeating yourself!": ("0.27", "0.40"),
    "That's good to know. Cool!": ("0.25", "0.30"),
    "That's a good point.": ("0.25", "0.34"),
    "Wow you can talk about a lot of things!": ("0.23", "0.27"),
    "I'm really interested in learning more about this.": ("0.22", "0.26"),
    "That makes sense!": ("0.21", "0.21"),
    "Thanks for all the information!": ("0.21", "0.15"),
    "You're super polite and fun to talk to": ("0.17", "0.23"),
    "Wow that is really interesting.": ("0.17", "0.14"),
    "That's really interesting!": ("0.16", "0.11"),
    "Great talking to you.": ("0.15", "0.10"),
    "Cool! That sounds super interesting.": ("0.08", "-0.01"),
    "Wow! That's really cool!": ("0.04", "-0.08"),
}
"""Follow-up -> Spearman with Overall on the turns and on the dialogues of FED, as printed."""

FROM_TABLE_3 = "FULL's five among those that the rule chooses from Table 3"


def measure_follow_ups(setting: Setting) -> Findings:
    variants = [
        _variant(spec, model) for spec in setting.metrics for model in _asked(spec, setting)
    ]
    near = closeness(TABLE_3, setting.source)
    fed = list(dialeval.load(setting.data["fed"] / "fed_data.json"))
    held_out = {
        name: list(dialeval.load(_place(setting.data[name])))
        for name in HELD_OUT
        if name in setting.data
    }
    measured = [_on_table_3(near)]
    notes: list[str] = []
    tables: list[Table] = []
    of_one = len(fed) + sum(map(len, held_out.values()))
    for place, variant in enumerate(variants):
        done, total = place * of_one, of_one * len(variants)
        asked = list(dict.fromkeys([*TABLE_3, *chain(*variant.of_the_paper.values())]))
        run = _score(fed, asked, variant, setting.after(done, total))
        ranked = rank_follow_ups(run, "Overall", list(TABLE_3))
        chosen = select_follow_ups(ranked, CHOSEN, near)
        sets = {"chosen here": chosen, **variant.of_the_paper}
        measured += [*_of_each(run, variant), *_of_sets(run, sets, "fed", "Overall", variant)]
        done += len(fed)
        for name, samples in held_out.items():
            both = list(dict.fromkeys(chain(*sets.values())))
            run = _score(samples, both, variant, setting.after(done, total))
            measured += _of_sets(run, sets, name, HELD_OUT[name], variant)
            done += len(samples)
        tables.append(_best(ranked, variant))
        shared = len({*chosen} & {*_five()})
        told = " ".join(text if sign > 0 else f"(-) {text}" for text, sign in chosen.items())
        notes.append(f"{variant.by}, chosen on FED, with {shared} of FULL's five: {told}")
    return Findings(measured, notes, tables)


@dataclass(frozen=True)
class MeasuredSet:
    """`full` in one mode with one model, and the sets of follow-ups of the paper in that mode."""

    by: str
    mode: str
    model: str
    options: Mapping[str, str]

    @property
    def of_the_paper(self) -> dict[str, dict[str, int]]:
        """In released mode also the four of the package, two of which a missing comma joined."""
        sets = {"FULL's five": dict.fromkeys(_five(), 1)}
        if self.mode == "released":
            four = load_follow_ups("full-released").negative
            sets["FULL's package"] = dict.fromkeys(four, 1)
        return sets


def _asked(spec: str, setting: Setting) -> Sequence[str]:
    """Returns the models that this metric is scored with: its own, or all."""
    name, options = split_spec(spec)
    if name != "full" or "follow_ups" in options:
        raise UsageError(
            f"the study 'follow-up-selection' chooses the follow-ups of the metric 'full': {spec!r}"
            " cannot take its place. Give full or full:mode=released"
        )
    return [str(options["model"])] if "model" in options else setting.models


def _variant(spec: str, model: str) -> MeasuredSet:
    options = {name: value for name, value in split_spec(spec)[1].items() if name != "model"}
    metric = make_metric("full", model=model, **options)
    told = ",".join(f"{name}={value}" for name, value in options.items())
    by = f"full:{told}, {model}" if told else f"full, {model}"
    return MeasuredSet(by, metric.mode, model, options)  # type: ignore[attr-defined]


def _place(folder: Path) -> Path:
    """USR is a file in its folder, GRADE the folder itself."""
    file = folder / "tc_usr_data.json"
    return file if file.exists() else folder


def _score(
    samples: list[Sample], texts: Sequence[str], variant: MeasuredSet, setting: Setting
) -> Run:
    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        path = Path(folder) / "follow-ups.txt"
        path.write_text("\n".join(texts), encoding="utf-8")
        options = {**variant.options, "model": variant.model, "follow_ups": str(path)}
        return setting.score(samples, [make_metric("full", **options)])


def _on_table_3(near: Closeness) -> Measured:
    """Returns what the rule makes of the numbers that the authors printed."""
    printed = {
        text: {level: float(number) for level, number in zip(LEVELS, numbers, strict=True)}
        for text, numbers in TABLE_3.items()
    }
    chosen = select_follow_ups(rank_by_agreement(printed), CHOSEN, near)
    return Measured(FROM_TABLE_3, len({*chosen} & {*_five()}))


def _of_each(run: Run, variant: MeasuredSet) -> list[Measured]:
    """Returns how well each follow-up of the paper's five agrees with people, alone."""
    return [
        _measured(_alone(text, level), found, variant)
        for text in _five()
        for level, found in agreement_of(run, {text: 1}, "Overall").items()
    ]


def _of_sets(
    run: Run, sets: Mapping[str, Mapping[str, int]], name: str, quality: str, variant: MeasuredSet
) -> list[Measured]:
    """Returns how well FULL with each set of follow-ups agrees with people on one data set."""
    return [
        _measured(f"{name}, {level}s: {title}", found, variant)
        for title, chosen in sets.items()
        for level, found in agreement_of(run, chosen, quality).items()
    ]


def _best(ranked: Sequence[RankedFollowUp], variant: MeasuredSet) -> Table:
    levels = tuple(level for level in LEVELS if level in ranked[0].agreement)
    rows = tuple((one.text, *(one.agreement[level] for level in levels)) for one in ranked[:SHOWN])
    return Table(f"Best follow-ups on FED, {variant.by}", ("follow-up", *levels), rows)


def _five() -> tuple[str, ...]:
    return load_follow_ups("full").negative


def _alone(text: str, level: Level) -> str:
    return f"fed, {level}s: {text}"


def _measured(what: str, found: Coefficient, variant: MeasuredSet) -> Measured:
    comparable = (variant.mode, variant.model) == ("released", MODEL_OF_THE_PAPER)
    return Measured(what, found.value, variant.by, found.n, found.reason, comparable)


FOLLOW_UPS = Study(
    name="follow-up-selection",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, section 5.2: which follow-ups tell most, and do they on other data?",
    needs=(Data("fed", ("fed_data.json",)),),
    may_use=tuple(Data(name) for name in HELD_OUT),
    models=("smollm2-135m",),
    metrics=("full", "full:mode=released"),
    asks=(ENCODER,),
    published=(
        Published(FROM_TABLE_3, "5", "section 5.2", tolerance=1),
        *(
            Published(_alone(text, level), printed, "Table 3, BlenderBot", must_match=False)
            for text in _five()
            for level, printed in zip(LEVELS, TABLE_3[text], strict=True)
        ),
    ),
    differs=(
        'From Table 3 the rule of the paper gives four of its five: "I want to talk about something'
        ' else." ranks before "You don\'t seem interested." and is nobody\'s duplicate. The authors'
        ' kept follow-ups "making intuitive sense", a choice that no rule repeats.',
        "The authors ask BlenderBot-400M and take perplexities with the end token: mode=released."
        " By default the total log-likelihood without one stands beside it.",
        "The authors report on FED what they chose on FED.",
    ),
    cost="half an hour",
    measure=measure_follow_ups,
)
