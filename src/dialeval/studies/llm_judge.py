"""How well does a language model with a plain rubric agree with people, and is it worth its time?

Some answers of each rated set are drawn at random (`--limit`, the same ones each time). `llm-judge`
with the rubric `overall` is asked about them by each model; beside it stand the embedded `judge`,
and the best published language models, which read the whole sets. `judge` has seen ratings of these
sets when its weights were fitted: `dialeval study judge` has its numbers with each set left out.

Does the sum beat both? `judge` and `llm-judge` are brought to mean 0 and deviation 1 within a set
and added, with equal weights, so that nothing is fitted on what is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

import numpy as np

from dialeval.metrics.llm_judge import LlmJudge
from dialeval.models.quality_stack import Floats
from dialeval.readers import load
from dialeval.registry import make_metrics
from dialeval.sample import Sample
from dialeval.studies.judge import SETS, Printed
from dialeval.studies.study import Data, Findings, Measured, Setting, Study, Table
from dialeval.training.judge_left_out import spearman

LIMIT = 40
MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CHOSEN = tuple(SETS)[:6]
"""Six sets that people rated overall or by relevance; `--set` names others."""


def measure(setting: Setting) -> Findings:
    names = setting.sets or CHOSEN
    limit = setting.limit or LIMIT
    drawn = {name: _rated(load(name, limit=limit, seed=0)) for name in names}
    ratings = {name: np.array([_mean_rating(one) for one in own]) for name, own in drawn.items()}
    judged: dict[str, dict[str, Floats]] = {}
    seconds: dict[str, float] = {}
    metrics = make_metrics([*setting.metrics, *(LlmJudge(model=one) for one in setting.models)])
    total, done = len(metrics) * sum(map(len, drawn.values())), 0
    for metric in metrics:
        label = metric.models().get("model", "") if metric.name == "llm-judge" else metric.label
        started = monotonic()
        for name, own in drawn.items():
            found = setting.after(done, total).score(own, [metric]).scores(metric.label)
            judged.setdefault(label, {})[name] = _filled(found)
            done += len(own)
        seconds[label] = monotonic() - started
    for model in setting.models:
        for other in setting.metrics:
            judged[f"{other} + {model}"] = {
                name: _standard(judged[other][name]) + _standard(judged[model][name])
                for name in names
            }
    return Findings(
        [
            Measured(f"mean of {len(names)} sets: Spearman", _mean(own, ratings), label, limit)
            for label, own in judged.items()
        ],
        _notes(names, seconds, sum(map(len, drawn.values()))),
        [_by_set(judged, ratings)],
    )


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


def _notes(names: Sequence[str], seconds: Mapping[str, float], answers: int) -> list[str]:
    slow = [f"{label} {1000 * took / answers:.0f} s" for label, took in seconds.items()]
    quoted = "; ".join(f"{name}: {SETS[name].who}" for name in names if name in SETS)
    return [
        f"time for a thousand answers in this run, cached ones included: {', '.join(slow)}",
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
    cost="a quarter of an hour with 1.5 B parameters on two idle cores",
)
