"""How well does `judge` agree with people on data that it has not seen?

Every rated set is left out once: the weights come from the others, and are tried on it. Sets that
share dialogues are left out together, and so is any answer to turns that the left-out set has, too.
What reads the dialogues (the quality-judge, the encoder, three scorers) has learned from no rating
of people, and from no dialogue of a rated set. `--model JUDGE --model ENCODER` chooses the first
two.

Beside it stand other metrics of ours, and what others printed for the same sets: the best metric
that learns and the best large language model. A paired bootstrap over the answers of all sets
says whether the mean over the sets differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
from dialeval.errors import UsageError
from dialeval.metrics.judge import of_dialogue
from dialeval.model_store.presets import PRESETS
from dialeval.models.quality_stack import COUNTED, FEATURES, NEAR, SCORERS, Floats, Readers
from dialeval.models.source import Models
from dialeval.question import ASPECTS
from dialeval.readers import load
from dialeval.registry import make_metrics
from dialeval.sample import Sample
from dialeval.studies.study import Data, Findings, Measured, Setting, Study, Table
from dialeval.training.examples.rated_answers import (
    Rated,
    pair_features,
    rated_dialogues,
    rated_features,
    shares_dialogues,
)
from dialeval.training.judge_ratings import (
    LeftOut,
    coverage_of,
    fit,
    fit_scale,
    learning_curve,
    leave_one_out,
    spearman,
)

READERS = (
    "judge-corpus-minilm-l6",
    *(PRESETS["default"][use] for use in ("sentence-encoder", *SCORERS)),
)
"""The models that are asked, in the order of `Readers`."""

MOST = 1500
"""Answers of a set that are read, drawn at random: two of the sets have near 10,000."""

ROUNDS = 500

SIZES = (50, 100, 500)
"""Ratings of a set that the judge is adapted to."""


@dataclass(frozen=True)
class Printed:
    """The best published Spearman correlations with the principal quality of a set."""

    learned: float | None = None
    language_model: float | None = None
    who: str = ""


SETS: Mapping[str, Printed] = {
    "dstc10/convai2-grade": Printed(0.604, 0.618, "DSTC10 team 8; LLM-Eval"),
    "dstc10/empathetic-grade": Printed(0.395, 0.423, "DEB; LLM-Eval"),
    "dstc10/persona-usr": Printed(0.523, 0.515, "USL-H; Claude"),
    "dstc10/dailydialog-gupta": Printed(0.633, 0.683, "MME-CRS on its development set; ChatGPT"),
    "dstc10/persona-zhao": Printed(0.646, 0.649, "DSTC10 team 8; Claude"),
    "dstc10/topical-usr": Printed(0.663, 0.800, "UniEval; BatchEval with GPT-4"),
    "dstc10/dailydialog-grade": Printed(0.419, 0.349, "DSTC10 team 9; LLM-Eval"),
    "dstc10/dailydialog-zhao": Printed(0.572, 0.756, "MDD-Eval; GPT-4o"),
    "dstc10/fed-turn": Printed(0.506, 0.509, "FULL, chosen on FED; Claude"),
    "dstc10/humod": Printed(0.585, 0.555, "IDK, trained on it; Claude"),
    "dstc10/dstc7": Printed(),
    "engage": Printed(0.699, 0.713, "USL-H; LLM-Eval"),
    "holistic/coherence": Printed(0.764, None, "HolisticEval"),
}

DIALOGUES: Mapping[str, Printed] = {
    "dstc10/fed-dial": Printed(0.547, 0.725, "DynaEval; GPT-4"),
    "dstc9": Printed(0.199, 0.252, "DEAM; GPT-4"),
}
"""Sets of whole dialogues. Nothing is fitted on them."""

MOST_DIALOGUES = 300

METRICS = ("length", "mme-relevance", "bert-ruber")

PARTS: Mapping[str, tuple[str, ...]] = {
    "the quality-judge alone": (*ASPECTS, *(f"bad {aspect}" for aspect in ASPECTS[1:])),
    "nearness and counts alone": (*NEAR, *COUNTED),
    "without counts": tuple(name for name in FEATURES if name not in COUNTED),
    "without length": tuple(name for name in FEATURES if not name.startswith("log ")),
    "all": FEATURES,
}
"""What the judge is made of, taken apart."""


def measure(setting: Setting) -> Findings:
    if len(setting.models) > len(READERS):
        raise UsageError(f"--model: at most {len(READERS)}, in the order {', '.join(READERS)}")
    names = [name for name in setting.sets or SETS if name.partition("/")[0] in setting.data]
    samples = {name: list(load(name, limit=setting.limit or MOST, seed=0)) for name in names}
    readers = Readers(*setting.models, *READERS[len(setting.models) :])
    total = sum(map(len, samples.values()))
    with AnswerCache(default_cache_path()) as cache:
        answerer = Answerer(setting.source or Models(), cache)
        rated, done = [], 0
        for name, own in samples.items():
            rated.append(rated_features(name, own, readers, answerer))
            done += len(own)
            setting.progress(done, total)
        pairs = pair_features(readers, answerer)
        dialogues = _by_dialogue(setting, rated, pairs, readers, answerer)
    left_out = leave_one_out(rated, pairs, shares_dialogues)
    judged = {one.name: (one.judged["overall"], one.ratings["overall"]) for one in left_out}
    others = _others(setting, samples, judged)
    return Findings(
        _measured(judged, others),
        _notes(left_out, judged, others),
        [
            _by_set(judged, others, left_out),
            _by_part(rated, pairs),
            _by_aspect(left_out),
            dialogues,
            _by_ratings(rated, pairs),
        ],
    )


Judged = Mapping[str, tuple[Floats, Floats]]
"""Set -> what was judged of its answers, and what people said."""


def _others(
    setting: Setting, samples: Mapping[str, Sequence[Sample]], judged: Judged
) -> dict[str, Judged]:
    """Other metrics on the same answers; where one has no score, it judges the least."""
    found: dict[str, dict[str, tuple[Floats, Floats]]] = {}
    metrics = make_metrics(setting.metrics)
    for name, (_, ratings) in judged.items():
        kept = [s for s in samples[name] if s.response and s.response.strip() and s.context]
        kept = [sample for sample in kept if sample.ratings]
        run = setting.score(kept, metrics)
        for metric in metrics:
            scores = np.array([np.nan if s is None else s for s in run.scores(metric.label)])
            filled = np.where(np.isnan(scores), np.nanmin(scores), scores)
            found.setdefault(metric.label, {})[name] = (filled, ratings)
    return dict(found)


def _measured(judged: Judged, others: Mapping[str, Judged]) -> list[Measured]:
    sets = len(judged)
    what = "mean over the sets, each left out: Spearman"
    found = [Measured(what, _mean(judged), "judge", sets, comparable=False)]
    return found + [
        Measured(what, _mean(own), label, sets, comparable=False) for label, own in others.items()
    ]


def _by_set(judged: Judged, others: Mapping[str, Judged], left_out: Sequence[LeftOut]) -> Table:
    covered = coverage_of(left_out)
    rows: list[tuple[str | float | None, ...]] = []
    for name, (own, ratings) in judged.items():
        printed = SETS.get(name, Printed())
        rows.append(
            (
                name,
                float(len(ratings)),
                spearman(own, ratings),
                *(spearman(*other[name]) for other in others.values()),
                printed.learned,
                printed.language_model,
                covered.get(name),
            )
        )
    means = (_mean(judged), *(_mean(other) for other in others.values()))
    rows.append(("mean", float(len(judged)), *means, None, None, None))
    header = ("set", "answers", "judge", *others, "best learned", "best LLM", "in interval")
    return Table("Spearman with the mean rating, the set left out", header, tuple(rows))


def _by_part(rated: Sequence[Rated], pairs: Floats) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    for what, names in PARTS.items():
        hidden = [place for place, name in enumerate(FEATURES) if name not in names]
        seen = [_hide(one, hidden) for one in rated]
        without = pairs.copy()
        without[:, :, hidden] = 0.0
        found = leave_one_out(seen, without, shares_dialogues)
        rows.append(
            (what, _mean({o.name: (o.judged["overall"], o.ratings["overall"]) for o in found}))
        )
    found = leave_one_out(rated, pairs[:0], shares_dialogues)
    rows.append(
        (
            "all, without behaviour pairs",
            _mean({o.name: (o.judged["overall"], o.ratings["overall"]) for o in found}),
        )
    )
    return Table("What it is made of: mean over left-out sets", ("features", "judge"), tuple(rows))


def _by_aspect(left_out: Sequence[LeftOut]) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    for one in left_out:
        found = [
            spearman(one.judged[aspect], one.ratings[aspect]) if aspect in one.ratings else None
            for aspect in ASPECTS[1:4]
        ]
        if any(value is not None for value in found):
            rows.append((one.name, *found))
    title = "Aspects that people rated: Spearman, the set left out"
    return Table(title, ("set", *ASPECTS[1:4]), tuple(rows))


def _by_dialogue(
    setting: Setting,
    rated: Sequence[Rated],
    pairs: Floats,
    readers: Readers,
    answerer: Answerer,
) -> Table:
    """Whole dialogues, by weights that were fitted on single answers of other sets."""
    rows: list[tuple[str | float | None, ...]] = []
    for name, printed in DIALOGUES.items():
        if name.partition("/")[0] not in setting.data:
            continue
        most = min(setting.limit or MOST_DIALOGUES, MOST_DIALOGUES)
        samples = list(load(name, limit=most, seed=0))
        found = rated_dialogues(name, samples, readers, answerer, setting.progress)
        kept = [one for one in rated if shares_dialogues(one.name) != shares_dialogues(name)]
        weights = fit(kept, pairs)
        scale = fit_scale(kept, weights)
        judged = []
        for dialogue, features in zip(found.dialogues, found.turns, strict=True):
            columns = scale.ratings(weights.judge(features)).T.tolist()
            by_aspect = dict(zip(ASPECTS, columns, strict=True))
            judged.append(of_dialogue(dialogue, by_aspect["overall"], by_aspect["novelty"]))
        value = spearman(np.array(judged), found.ratings)
        rows.append((name, float(len(judged)), value, printed.learned, printed.language_model))
    header = ("set", "dialogues", "judge", "best learned", "best LLM")
    return Table("Whole dialogues: Spearman with the mean overall rating", header, tuple(rows))


def _by_ratings(rated: Sequence[Rated], pairs: Floats) -> Table:
    """The learning curve of `dialeval train judge --data`."""
    rows: dict[str, list[str | float | None]] = {}
    for one in learning_curve(rated, pairs, SIZES):
        rows.setdefault(one.name, [one.name, one.before]).append(one.after)
    if rows:
        means = np.mean([[float(v or 0.0) for v in row[1:]] for row in rows.values()], axis=0)
        rows["mean"] = ["mean", *map(float, means)]
    return Table(
        "Adapted to ratings of the set itself: Spearman with its other answers, three draws",
        ("set", "none", *(f"{size} ratings" for size in SIZES)),
        tuple(map(tuple, rows.values())),
    )


def _hide(rated: Rated, hidden: Sequence[int]) -> Rated:
    features = rated.features.copy()
    features[:, list(hidden)] = 0.0
    return replace(rated, features=features)


def _notes(left_out: Sequence[LeftOut], judged: Judged, others: Mapping[str, Judged]) -> list[str]:
    notes = []
    for label, other in others.items():
        difference, p = _bootstrap(judged, other)
        notes.append(
            f"judge against {label}: {difference:+.3f} on the mean, p = {p:.3f}"
            f" (paired bootstrap, {ROUNDS} rounds)"
        )
    covered = coverage_of(left_out)
    if covered:
        notes.append(
            f"intervals hold {np.mean(list(covered.values())):.3f} of the mean ratings"
            " (nominal .9; widths from the other sets)"
        )
    quoted = "; ".join(f"{name}: {SETS[name].who}" for name in judged if name in SETS)
    return [*notes, f"best learned and best LLM are quoted, not run: {quoted}"]


def _bootstrap(one: Judged, other: Judged) -> tuple[float, float]:
    """The difference of the means over sets, and how often it vanishes when answers are drawn
    again."""
    generator = np.random.default_rng(0)
    differences = np.zeros(ROUNDS)
    for name, (own, ratings) in one.items():
        rivals = other[name][0]
        known = np.flatnonzero(~np.isnan(ratings))
        for number in range(ROUNDS):
            drawn = known[generator.integers(0, len(known), len(known))]
            here = spearman(own[drawn], ratings[drawn]) or 0.0
            there = spearman(rivals[drawn], ratings[drawn]) or 0.0
            differences[number] += (here - there) / len(one)
    share = float(np.mean(differences <= 0))
    return _mean(one) - _mean(other), min(1.0, 2 * min(share, 1 - share) + 1 / ROUNDS)


def _mean(judged: Judged) -> float:
    return float(np.mean([spearman(own, ratings) or 0.0 for own, ratings in judged.values()]))


STUDY = Study(
    name="judge",
    paper="dialeval's own; published numbers from the papers of the metrics and of LLM judges",
    cited="dialeval",
    repeats="judge on every rated set that is here, each left out of the fitting",
    measure=measure,
    needs=(Data("dstc10"),),
    may_use=(Data("engage"), Data("holistic"), Data("dstc9")),
    models=READERS,
    metrics=METRICS,
    takes_sets=True,
    takes_limit=True,
    cost="about ten minutes",
)
