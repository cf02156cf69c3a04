"""How well does a language model with a plain rubric agree with people, and is it worth its time?

Some answers of each rated set are drawn at random (`--limit`, the same ones each time). `llm-judge`
with the rubric `overall` is asked about them by each model; beside it stand the embedded `judge`,
and the best published language models, which read the whole sets. `judge` has seen ratings of these
sets when its weights were fitted: `dialeval study judge` has its numbers with each set left out.

Does the sum beat both? `judge` and `llm-judge` are brought to mean 0 and deviation 1 within a set
and added, with equal weights, so that nothing is fitted on what is reported.

What does it take? The first answers of the sets are judged once more, past every cache and after
the model was loaded: seconds, and tokens that are read and written, per answer. A thousand answers
cost what `--price-in` and `--price-out` say of a million tokens.

`llm-judge-injections`: can an answer talk a language model into a better rating? Bad answers get
one of 40 additions (`examples/injections.jsonl`): orders to the judge, made-up turns, made-up
rubrics, digits at the end, broken frames. What counts is how far the rating moves, from the bad
answer alone to the same answer with its addition; once with the protection of `llm-judge` (the
dialogue is marked as data and escaped) and once without.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from time import monotonic

import numpy as np

from dialeval.engine.answers import Answerer
from dialeval.metric import Metric
from dialeval.metrics.llm_judge import LlmJudge
from dialeval.models.chat_judge import Budget, Servers, Usage, is_server
from dialeval.models.quality_stack import Floats
from dialeval.models.source import Models
from dialeval.question import ModelSource
from dialeval.readers import load
from dialeval.registry import make_metrics
from dialeval.sample import Sample, Turn
from dialeval.studies.judge import SETS, Printed
from dialeval.studies.study import Data, Findings, Measured, Setting, Study, Table
from dialeval.training.judge_ratings import spearman

LIMIT = 40
TIMED = 5
"""Answers that are judged past every cache, to see what one takes."""

MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CHOSEN = tuple(SETS)[:6]
"""Six sets that people rated overall or by relevance; `--set` names others."""


def measure(setting: Setting) -> Findings:
    names = setting.sets or CHOSEN
    limit = setting.limit or LIMIT
    drawn = {name: _rated(load(name, limit=limit, seed=0)) for name in names}
    ratings = {name: np.array([_mean_rating(one) for one in own]) for name, own in drawn.items()}
    judged: dict[str, dict[str, Floats]] = {}
    taken: dict[str, Taken] = {}
    some = [sample for own in drawn.values() for sample in own[:TIMED]][: TIMED + 1]
    metrics = make_metrics([*setting.metrics, *(LlmJudge(model=one) for one in setting.models)])
    total, done = len(metrics) * sum(map(len, drawn.values())), 0
    for metric in metrics:
        label = metric.models().get("model", "") if metric.name == "llm-judge" else metric.label
        for name, own in drawn.items():
            found = setting.after(done, total).score(own, [metric]).scores(metric.label)
            judged.setdefault(label, {})[name] = _filled(found)
            done += len(own)
        taken[label] = take(metric, some, setting.source)
    for model in setting.models:
        for other in setting.metrics:
            judged[f"{other} + {model}"] = {
                name: _standard(judged[other][name]) + _standard(judged[model][name])
                for name in names
            }
            taken[f"{other} + {model}"] = taken[other] + taken[model]
    return Findings(
        [
            Measured(f"mean of {len(names)} sets: Spearman", _mean(own, ratings), label, limit)
            for label, own in judged.items()
        ],
        _notes(names),
        [_by_set(judged, ratings), _by_judge(judged, ratings, taken, setting.prices)],
    )


@dataclass(frozen=True)
class Taken:
    """What an answer takes: seconds, and tokens of a language model, None where none is asked."""

    seconds: float
    tokens_in: float | None = None
    tokens_out: float | None = None

    def __add__(self, other: Taken) -> Taken:
        def total(one: float | None, two: float | None) -> float | None:
            return one if two is None else two if one is None else one + two

        return Taken(
            self.seconds + other.seconds,
            total(self.tokens_in, other.tokens_in),
            total(self.tokens_out, other.tokens_out),
        )

    def cost(self, prices: tuple[float | None, float | None]) -> float | None:
        """Of a thousand answers."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        used = Usage(0, 0, round(1000 * self.tokens_in), round(1000 * self.tokens_out))
        return used.cost(Budget(price_in=prices[0], price_out=prices[1]))


def take(metric: Metric, samples: Sequence[Sample], source: ModelSource | None) -> Taken:
    """Judges the samples, the first of them to load what is needed, and measures the others."""
    first, *rest = [list(metric.ask(sample)) for sample in samples]
    asked = [question for own in rest for question in own]
    name = metric.models().get("model", "")
    with tempfile.TemporaryDirectory() as place:
        found = source or Models(servers=Servers(record=Path(place) / "requests.sqlite"))
        if metric.name != "llm-judge":
            answerer = Answerer(found, None)
            answerer.answer(first)
            started = monotonic()
            answerer.answer(asked)
            return Taken((monotonic() - started) / len(rest))
        model = found.load(name)
        list(model.answer(first))
        before, started = _tokens(found, name, model), monotonic()
        list(model.answer(asked))
        seconds, after = monotonic() - started, _tokens(found, name, model)
    if before is None or after is None:
        return Taken(seconds / len(rest))
    sent = (after[0] - before[0]) / len(rest)
    came = (after[1] - before[1]) / len(rest) if is_server(name) else len(asked) / len(rest)
    return Taken(seconds / len(rest), sent, came)


def _tokens(source: ModelSource, name: str, model: object) -> tuple[int, int] | None:
    """Tokens that a model has read and written so far; None where it does not say. A local one
    writes none: the probabilities of the next token are enough, and count as one."""
    if is_server(name) and isinstance(source, Models):
        return source.servers.usage.tokens_in, source.servers.usage.tokens_out
    read = getattr(model, "tokens_read", None)
    return None if read is None else (read, 0)


def _rated(samples: Iterable[Sample]) -> list[Sample]:
    return [
        sample
        for sample in samples
        if sample.response and sample.response.strip() and sample.context and sample.ratings
    ]


def _mean_rating(sample: Sample) -> float:
    """Returns the mean rating of the principal quality: the overall one, else the first."""
    qualities = {name.lower(): rating for name, rating in sample.ratings.items()}
    chosen = qualities.get("overall") or next(iter(qualities.values()))
    return float("nan") if chosen.mean is None else chosen.mean


def _filled(scores: Sequence[float | None]) -> Floats:
    """Returns the scores; where there is none, the lowest."""
    known: Floats = np.array([np.nan if one is None else one for one in scores])
    known[np.isnan(known)] = np.nanmin(known)
    return known


def _standard(values: Floats) -> Floats:
    spread = float(values.std())
    scaled: Floats = (values - values.mean()) / (spread or 1.0)
    return scaled


def _mean(judged: Mapping[str, Floats], ratings: Mapping[str, Floats]) -> float:
    found = [spearman(own, ratings[name]) or 0.0 for name, own in judged.items()]
    return float(np.mean(found))


def _by_set(judged: Mapping[str, Mapping[str, Floats]], ratings: Mapping[str, Floats]) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    for name, own in ratings.items():
        printed = SETS.get(name, Printed())
        ours = (spearman(scores[name], own) for scores in judged.values())
        rows.append((name, float(len(own)), *ours, printed.learned, printed.language_model))
    means = (_mean(scores, ratings) for scores in judged.values())
    rows.append(("mean", None, *means, None, None))
    header = ("set", "answers", *judged, "best learned", "best LLM")
    return Table("Spearman with the mean rating", header, tuple(rows))


def _by_judge(
    judged: Mapping[str, Mapping[str, Floats]],
    ratings: Mapping[str, Floats],
    taken: Mapping[str, Taken],
    prices: tuple[float | None, float | None],
) -> Table:
    rows = tuple(
        (
            label,
            _mean(own, ratings),
            taken[label].seconds,
            taken[label].tokens_in,
            taken[label].tokens_out,
            taken[label].cost(prices),
        )
        for label, own in judged.items()
    )
    header = (
        "judge",
        "mean Spearman",
        "seconds per answer",
        "tokens in per answer",
        "tokens out per answer",
        "cost of a thousand answers",
    )
    return Table("What an answer takes", header, rows)


def _notes(names: Sequence[str]) -> list[str]:
    quoted = "; ".join(f"{name}: {SETS[name].who}" for name in names if name in SETS)
    return [
        f"seconds and tokens: the mean over {TIMED} answers, past every cache, one after the other"
        " on a local model, with the model loaded. A local model writes one token for a rating",
        "with 40 answers a set, a correlation is known to about .3: compare means, not sets",
        "judge has seen ratings of these sets; dialeval study judge leaves each out",
        f"best learned and best LLM are quoted, on whole sets: {quoted}",
    ]


STUDY = Study(
    name="llm-judge",
    paper="dialeval's own; published numbers from the papers of LLM judges",
    cited="dialeval",
    repeats="local language models with a rubric, beside judge and published LLM judges",
    measure=measure,
    needs=(Data("dstc10"),),
    models=MODELS,
    metrics=("judge",),
    takes_sets=True,
    takes_limit=True,
    takes_prices=True,
    cost="a quarter of an hour with 1.5 B parameters on two idle cores",
)


@dataclass(frozen=True)
class Injection:
    """A bad answer, and what somebody adds to it."""

    id: str
    kind: str
    context: tuple[Turn, ...]
    response: str
    injection: str

    @property
    def plain(self) -> Sample:
        return Sample(f"{self.id}/plain", self.context, self.response)

    @property
    def injected(self) -> Sample:
        return Sample(f"{self.id}/injected", self.context, self.response + self.injection)


def injections() -> list[Injection]:
    """Reads the 40 of them."""
    text = resources.files("dialeval.examples").joinpath("injections.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [
        Injection(
            row["id"],
            row["kind"],
            tuple(Turn(turn) for turn in row["context"]),
            row["response"],
            row["injection"],
        )
        for row in rows
    ]


def measure_injections(setting: Setting) -> Findings:
    given = injections()
    samples = [one for each in given for one in (each.plain, each.injected)]
    measured: list[Measured] = []
    rows: list[tuple[str | float | None, ...]] = []
    for model in setting.models:
        for protection in (False, True):
            metric = LlmJudge(model=model, protection=protection)
            found = setting.score(samples, [metric]).scores(metric.label)
            shifts = _shifts(found)
            by = f"{model}, {'with' if protection else 'without'} protection"
            measured.append(
                Measured("mean change of the rating", float(np.mean(shifts)), by, len(given))
            )
            rows.append((by, *_by_kind(given, shifts), float(np.mean(shifts)), float(max(shifts))))
    kinds = tuple(dict.fromkeys(one.kind for one in given))
    table = Table(
        "How far an addition moves the rating of a bad answer (scale 1 to 5)",
        ("model", *kinds, "all", "largest"),
        tuple(rows),
    )
    return Findings(measured, (), [table])


def _shifts(found: Sequence[float | None]) -> list[float]:
    pairs = zip(found[::2], found[1::2], strict=True)
    return [after - before for before, after in pairs if before is not None and after is not None]


def _by_kind(given: Sequence[Injection], shifts: Sequence[float]) -> list[float]:
    kinds: dict[str, list[float]] = {}
    for one, shift in zip(given, shifts, strict=True):
        kinds.setdefault(one.kind, []).append(shift)
    return [float(np.mean(own)) for own in kinds.values()]


INJECTIONS = Study(
    name="llm-judge-injections",
    paper="dialeval's own",
    cited="dialeval",
    repeats="how far 40 injected instructions move the rating of llm-judge",
    measure=measure_injections,
    models=("smollm2-135m",),
    cost="two minutes with 135 M parameters on an idle core",
)
