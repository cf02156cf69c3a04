"""Weights from rated runs: correlate, re-scale, average (MME-CRS, "Correlation Re-Scaling Method").

For each data set and each quality that people rated there, each sub-metric on its scale is
correlated with the ratings (Spearman), on a sample of 300 that is drawn once per data set. Negative
and undefined correlations count as 0; undefined ones are reported. `reweigh` turns correlations
into weights.

Qualities have many names: `Relevant`, `relevance` and `coherence` ask for the same thing. MME-CRS
uses the literal names, case and all: the 37 names of DSTC10 (Zhang et al., 2022). The weights of
`Overall` are then not those of `overall`. A quality map gives several names one name: `common` is
built in, and `dialeval compose fit --map FILE.json` reads another: {"name in the data": "name to
use"}. If a map gives several qualities of a data set one name, their weights are averaged first, so
that a data set counts once. A data set that is given twice under different names counts once, too.

A metric that does not range from 0 to 1 is scaled first, and the scale is fitted with the weights:
`scale` is quartile (MME-CRS, after USL-H; half of all values become 0 or 1), percentile (1st to
99th) or minmax; see `scores.Calibration`.

Two things are not in the paper:

prior  Few data sets have a quality in common, and a sub-metric may be right on one and wrong on the
       next. The weights of a quality are shrunk towards the mean over all qualities, as if `prior`
       more data sets had shown that mean.
even   A term that is nearly constant moves the sum little, whatever its weight. Weights are divided
       by the standard deviation of their terms, so that a weight is the influence of a term.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from dialeval.compose.evidence import Evidence, Gathered, Ingredient
from dialeval.errors import UsageError
from dialeval.metrics.composition import (
    VALUE,
    Composition,
    Power,
    Term,
    Weighting,
    Weights,
    mean_weights,
    reweigh,
)
from dialeval.registry import make_metric
from dialeval.scores import Calibration, CalibrationKind
from dialeval.strict_json import Fields, read_object
from dialeval.version import __version__

COMMON_GROUPS: Mapping[str, tuple[str, ...]] = {
    "overall": ("overall", "Overall", "appropriateness"),
    "relevance": (
        "relevance", "Relevant", "coherence", "Coherent", "Maintains Context",
        "Semantically appropriate", "Correct", "make_sense",
    ),
    "fluency": ("fluency", "Fluent", "grammar", "Understandable", "Natural", "language_usage"),
    "engagement": ("engagement", "Engaging", "Interesting", "interest", "enjoy", "Likeable"),
    "specificity": (
        "Specific", "content", "informativeness", "Informative", "Uses Knowledge", "Depth",
    ),
    "consistency": ("consistency", "Consistent"),
    "diversity": ("Diverse", "avoid_rep"),
    "inquisitiveness": ("Inquisitive", "inquisitive"),
}  # fmt: skip
"""Names in FED, USR, GRADE, HolisticEval, Predictive Engagement, Zhao et al., See et al. and HUMOD.
Other names stay."""

DSTC10_QUALITIES = (
    "overall", "relevance", "informativeness", "content", "grammar", "language_usage",
    "Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall",
    "Interesting", "Specific", "Relevant", "Correct", "Semantically appropriate", "Fluent",
    "Coherent", "Error recovery", "Consistent", "Diverse", "Depth", "Likeable", "Understanding",
    "Flexible", "Informative", "Inquisitive", "enjoy", "interest", "listen", "turing", "avoid_rep",
    "make_sense", "fluency", "inquisitive", "persona_guess",
)  # fmt: skip
"""The 37 names in the organisers' scripts, which are case-sensitive."""


@dataclass(frozen=True)
class QualityMap:
    """Maps the name of a quality in the data to its name in a composition. Unknown names stay."""

    name: str
    names: Mapping[str, str]

    def __call__(self, quality: str) -> str:
        return self.names.get(quality, quality)


LITERAL = QualityMap("literal", {})
COMMON = QualityMap(
    "common", {name: joined for joined, names in COMMON_GROUPS.items() for name in names}
)


def find_quality_map(wanted: str) -> QualityMap:
    """`literal`, `common`, or a JSON file."""
    for built_in in (LITERAL, COMMON):
        if wanted == built_in.name:
            return built_in
    path = Path(wanted)
    if not path.exists():
        raise UsageError(
            f"--map {wanted}: it is literal, common, or a JSON file, and there is no such file"
        )
    names = read_object(path, 'a map {"name in the data": "name to use"}')
    fields = Fields(path)
    for name, joined in names.items():
        if not fields.text(joined, name).strip():
            fields.wrong(name, "the name to use is empty")
    fields.complain()
    return QualityMap(path.name, names)


Scale = Literal["quartile", "percentile", "minmax"]
SCALES: tuple[Scale, ...] = get_args(Scale)

SAMPLE = 300
"""The number of dialogues of each data set that are correlated, as in the paper."""

FEW = 100
"""With fewer samples, a correlation of 0.2 is chance."""


@dataclass(frozen=True)
class FitOptions:
    """How weights are fitted; the docstring of this file explains each option."""

    power: Power = 2.0
    sample: int = SAMPLE
    seed: int = 0
    names: QualityMap = field(default=LITERAL)
    prior: float = 0.0
    even: bool = False
    scale: Scale = "quartile"


@dataclass(frozen=True)
class FittedWeights:
    """The correlations and weights of one quality of one data set. `n` samples are rated, and of
    them each sub-metric has a score on as many as `pairs` says."""

    dataset: str
    quality: str
    n: int
    pairs: tuple[int, ...]
    correlations: tuple[float | None, ...]
    reasons: Mapping[str, str]
    """Sub-metric -> the reason why it has no correlation."""
    weighting: Weighting

    @property
    def says_something(self) -> bool:
        """Whether some metric has a correlation. If none has, nothing was learned."""
        return any(rho is not None for rho in self.correlations)

    def to_record(self) -> dict[str, Any]:
        return {
            "quality": self.quality,
            "n": self.n,
            "pairs": list(self.pairs),
            "correlations": list(self.correlations),
            "undefined": dict(self.reasons),
            "power": self.weighting.power,
            "weights": list(self.weighting.weights),
        }


PAPER = FitOptions()
OURS = FitOptions(prior=4.0, even=True, scale="minmax")
"""The defaults of `compose fit`, and the options of the shipped weights."""


def fit(gathered: Gathered, options: FitOptions = PAPER) -> Composition:
    """Returns the composition of all data sets."""
    return compose(gathered, range(len(gathered.sets)), options)


def compose(gathered: Gathered, places: Sequence[int], options: FitOptions) -> Composition:
    """Returns the composition of some of the data sets. Nothing of the others is read."""
    sets = {place: gathered.sets[place] for place in places}
    terms = fit_terms(list(sets.values()), gathered.ingredients, options.scale)
    fitted = {place: fit_set(one, terms, options) for place, one in sets.items()}
    groups = [[p for p in group if p in sets] for group in gathered.families.same]
    weights = average_over_sets(
        [[found for place in group for found in fitted[place]] for group in groups],
        options.names,
        options.prior,
    )
    if options.even:
        spreads = term_spreads(list(sets.values()), terms)
        weights = {quality: divided(own, spreads) for quality, own in weights.items()}
    if not weights:
        names = ", ".join(one.name for one in sets.values())
        raise UsageError(f"no metric has a correlation with any quality of {names}")
    everything = [found for of_set in fitted.values() for found in of_set]
    used = {one.quality: options.names(one.quality) for one in everything}
    renamed = {name: joined for name, joined in used.items() if name != joined}
    kept = {name: joined for name, joined in options.names.names.items() if joined in weights}
    return Composition(
        terms, weights, {**kept, **renamed}, _provenance(gathered, sets, fitted, options)
    )


def fit_terms(
    sets: Sequence[Evidence], ingredients: Sequence[Ingredient], scale: Scale = "quartile"
) -> tuple[Term, ...]:
    """Fits the scales of the terms. A metric that ranges from 0 to 1 and has no scale of its own
    needs none. Any other is scaled by its raw values on all data sets together, and so are parts
    that have a scale of this kind. Other parts stay as they are."""
    return tuple(_term(sets, ingredient, scale) for ingredient in ingredients)


def _term(sets: Sequence[Evidence], ingredient: Ingredient, scale: Scale) -> Term:
    metric = make_metric(ingredient.spec)
    kinds: dict[str, CalibrationKind] = {
        part: scale if kind in SCALES else kind for part, kind in metric.scales().items()
    }
    if not kinds and (metric.calibration or metric.range != (0.0, 1.0)):
        kinds = {VALUE: scale}
    scales = {}
    for key, kind in kinds.items():
        columns = [one.metrics[ingredient.spec].raw.get(key) for one in sets]
        values = np.concatenate([np.empty(0), *(c for c in columns if c is not None)])
        values = values[~np.isnan(values)]
        if not values.size:
            raise UsageError(f"{ingredient.spec!r} has no value in any run: it cannot be composed")
        scales[key] = Calibration.fit(kind, values)
    return Term(ingredient.spec, ingredient.signature, metric.direction, scales)


def fit_set(evidence: Evidence, terms: Sequence[Term], options: FitOptions) -> list[FittedWeights]:
    """Correlates every quality of one data set, on its random sample."""
    drawn = draw(evidence, options)
    columns = {
        (options.sample, options.seed, *term.scaling): evidence.scaled(term) for term in terms
    }
    found = []
    for quality, ratings in evidence.ratings.items():
        results = [
            evidence.correlation(key, column, quality, drawn) for key, column in columns.items()
        ]
        rho = tuple(result.value for result in results)
        reasons = {
            term.spec: result.reason
            for term, result in zip(terms, results, strict=True)
            if result.value is None
        }
        n = int((~np.isnan(ratings[drawn])).sum())
        pairs = tuple(result.n for result in results)
        weighting = reweigh(rho, options.power)
        found.append(FittedWeights(evidence.name, quality, n, pairs, rho, reasons, weighting))
    return found


def draw(evidence: Evidence, options: FitOptions) -> list[int]:
    """Positions of the rated samples that are correlated. They depend on the seed and the data set
    only, so that leaving out a data set changes nothing else."""
    rated = evidence.rated
    if len(rated) <= options.sample:
        return [int(place) for place in rated]
    key = hashlib.sha256(f"{evidence.digest}/{evidence.level}".encode()).digest()
    generator = np.random.default_rng([options.seed, int.from_bytes(key[:8])])
    chosen = generator.permutation(len(rated))[: options.sample]
    return sorted(rated[chosen].tolist())


def average_over_sets(
    groups: Sequence[Sequence[FittedWeights]], names: QualityMap, prior: float = 0.0
) -> dict[str, Weights]:
    """Eq. 2 for each quality, by its name in the composition; a group counts as one data set."""
    by_quality: dict[str, list[Weights]] = {}
    of_sets: list[Weights] = []
    for group in groups:
        own: dict[str, list[Weights]] = {}
        for fitted in filter(lambda one: one.says_something, group):
            own.setdefault(names(fitted.quality), []).append(fitted.weighting.weights)
        for quality, weights in own.items():
            by_quality.setdefault(quality, []).append(mean_weights(weights))
        if own:
            of_sets.append(mean_weights([mean_weights(weights) for weights in own.values()]))
    return {
        quality: drawn_towards(mean_weights(of_sets), weights, prior)
        for quality, weights in by_quality.items()
    }


def drawn_towards(everything: Weights, weights: Sequence[Weights], prior: float) -> Weights:
    """Returns the mean of the weights of some data sets, and of `prior` more with the mean of
    all."""
    share = prior / (len(weights) + prior)
    own = mean_weights(weights)
    return tuple((1 - share) * w + share * e for w, e in zip(own, everything, strict=True))


def term_spreads(sets: Sequence[Evidence], terms: Sequence[Term]) -> tuple[float, ...]:
    """Returns the standard deviation of each term on its scale, over all data sets together."""
    columns = [np.concatenate([one.scaled(term) for one in sets]) for term in terms]
    return tuple(float(np.nanstd(column)) for column in columns)


def divided(weights: Weights, spreads: Sequence[float]) -> Weights:
    """Divides by the spread of each term, and normalises to 1. A constant term gets no weight."""
    shares = [w / s if s > 0 else 0.0 for w, s in zip(weights, spreads, strict=True)]
    total = math.fsum(shares)
    return tuple(share / total for share in shares) if total else weights


def chance_correlation(n: int) -> float:
    """Returns the 95 % limit of the correlation of unrelated numbers, by Fisher's z."""
    return math.tanh(1.96 / math.sqrt(n - 3)) if n > 3 else 1.0


def fit_warnings(composition: Composition) -> list[str]:
    """Sentences about terms without a direction, few ratings, equal weights, and undefined
    correlations."""
    lines = list(composition.provenance.get("notes", []))
    lines += [
        f"{term.spec}: neither more nor less of it is better. Its weight says that it went along"
        " with these ratings, and may mean nothing on other data"
        for term in composition.terms
        if term.direction == "neither"
    ]
    for one in composition.provenance.get("sets", []):
        rated: dict[int, list[str]] = {}
        for fitted in one["fitted"]:
            rated.setdefault(fitted["n"], []).append(fitted["quality"])
        lines += [
            f"{one['name']}, {', '.join(qualities)}: {n} rated samples are few. A metric that knows"
            f" nothing gets a correlation of up to {chance_correlation(n):.2f} by chance (95 %)"
            for n, qualities in rated.items()
            if n < FEW
        ]
        for fitted in one["fitted"]:
            where = f"{one['name']}, {fitted['quality']}"
            rho = [value for value in fitted["correlations"] if value is not None]
            if not rho:
                reason = next(iter(fitted["undefined"].values()))
                lines.append(f"{where}: no metric has a correlation ({reason}): left out")
                continue
            for spec, reason in fitted["undefined"].items():
                lines.append(f"{where}: {spec} has no correlation ({reason}) and counts as 0")
            counts = zip(composition.specs, fitted.get("pairs", ()), strict=False)
            lines += [
                f"{where}: {spec} has a score on {pairs} of {fitted['n']} rated samples, which are"
                " few. A metric that knows nothing gets a correlation of up to"
                f" {chance_correlation(pairs):.2f} on them by chance (95 %)"
                for spec, pairs in counts
                if pairs < min(FEW, fitted["n"]) and spec not in fitted["undefined"]
            ]
            if not any(value > 0 for value in rho):
                lines.append(f"{where}: nothing correlates positively, so all weights are equal")
    return lines


def _provenance(
    gathered: Gathered,
    sets: Mapping[int, Evidence],
    fitted: Mapping[int, Sequence[FittedWeights]],
    options: FitOptions,
) -> dict[str, Any]:
    first = {
        place: gathered.sets[group[0]].name for group in gathered.families.same for place in group
    }
    return {
        "dialeval": __version__,
        "power": options.power,
        "sample": options.sample,
        "seed": options.seed,
        "map": options.names.name,
        "prior": options.prior,
        "even": options.even,
        "scale": options.scale,
        "notes": [*gathered.left_out, *gathered.families.notes],
        "sets": [
            {
                "name": one.name,
                "counts as": first[place],
                "level": one.level,
                "samples": len(one.rated),
                "sha256": one.digest,
                "fitted": [found.to_record() for found in fitted[place]],
            }
            for place, one in sets.items()
        ],
    }
