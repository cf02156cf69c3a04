"""The material of the comparison: rated sets, metrics by model, and runs that are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import dialeval
from dialeval.agreement.dstc10 import DEVELOPMENT_SETS, protocol_samples, track_files
from dialeval.compose.evidence import Gathered, gather
from dialeval.datasets import DATASETS, find_dataset
from dialeval.engine.answers import LoadedOnce
from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.models.source import Models
from dialeval.question import ModelSource
from dialeval.registry import make_metrics
from dialeval.sample import Sample
from dialeval.storage import cache_directory
from dialeval.studies.study import Setting

REPEATED = {
    "dstc10/fed-turn": "fed",
    "dstc10/fed-dial": "fed",
    "dstc10/topical-usr": "usr-topical",
    "dstc10/dailydialog-grade": "grade-dailydialog",
}
"""Sets that hold the items of another: they count where the other is not here."""


LARGE, SAMPLED = 1000, 500
"""A study of all sets takes so many samples of each larger one: humod and dstc7 alone would take
longer than all others together."""


MAIN = ("Overall", "overall", "appropriateness")
"""The quality that speaks for a set, if it has one of them; else its first."""


@dataclass(frozen=True)
class LoadedSet:
    """Samples that people rated, under the name that tables show; `whole` is how many there are
    where these are a part of them."""

    name: str
    samples: tuple[Sample, ...]
    whole: int = 0

    def digest(self) -> str:
        sha = hashlib.sha256()
        for sample in self.samples:
            sha.update(sample.digest())
        return sha.hexdigest()


def load_rated_sets(wanted: Sequence[str], most: int = 0) -> list[LoadedSet]:
    """Loads the sets of these names, or rated files of the user; without a name, all that are
    installed, the large ones by a sample. `most`: draw at most so many samples of each."""
    names = list(wanted) or list(rated_sets_here())
    if not names:
        raise UsageError(
            "no rated set is here. Get one: dialeval data get usr-topical, or DIALEVAL_DATA=DIR"
            " where they lie already"
        )
    found = [LoadedSet(name, tuple(dialeval.load(name))) for name in names]
    for rated in found:
        if not any(sample.ratings for sample in rated.samples):
            raise UsageError(f"{rated.name}: no sample has ratings")
    if most:
        return [by_lot(rated, most) for rated in found]
    return found if wanted else [thinned(rated) for rated in found]


def thinned(rated: LoadedSet) -> LoadedSet:
    return by_lot(rated, SAMPLED) if len(rated.samples) > LARGE else rated


def by_lot(rated: LoadedSet, most: int, seed: int = 0) -> LoadedSet:
    """Draws at most `most` of its samples, in their order; the same seed draws the same ones."""
    whole = len(rated.samples)
    if whole <= most:
        return rated
    chosen = np.sort(np.random.default_rng(seed).permutation(whole)[:most])
    return LoadedSet(rated.name, tuple(rated.samples[i] for i in chosen.tolist()), whole)


def by_lot_at_each_level(rated: LoadedSet, most: int) -> LoadedSet:
    """Draws at most `most` turns and at most `most` dialogues; 0 draws none and keeps all."""
    levels = dict.fromkeys(sample.level for sample in rated.samples)
    parts = [
        by_lot(LoadedSet(rated.name, tuple(s for s in rated.samples if s.level == level)), most)
        for level in levels
    ]
    if not most or not any(part.whole for part in parts):
        return rated
    drawn = tuple(sample for part in parts for sample in part.samples)
    return LoadedSet(rated.name, drawn, len(rated.samples))


def main_quality(samples: Sequence[Sample]) -> str:
    """Returns the quality that speaks for a set."""
    names = list(dict.fromkeys(name for sample in samples for name in sample.ratings))
    return next((name for name in MAIN if name in names), names[0])


def sampling_notes(sets: Sequence[LoadedSet]) -> list[str]:
    return [
        f"{rated.name}: {len(rated.samples):,} of {rated.whole:,} samples, drawn at random"
        for rated in sets
        if rated.whole
    ]


def rated_sets_here() -> Iterator[str]:
    for dataset in DATASETS.values():
        if dataset.kind == "rated" and find_dataset(dataset.name) is not None:
            for part in dataset.parts:
                full = f"{dataset.name}/{part.name}"
                repeated = full in REPEATED and find_dataset(REPEATED[full]) is not None
                if part.qualities and not repeated and find_dataset(full) is not None:
                    yield dataset.name if len(dataset.parts) == 1 else full


def groups_by_model(metrics: Sequence[Metric]) -> list[list[Metric]]:
    """Metrics that ask the same models share a run, and their questions one pass over the texts."""
    groups: dict[tuple[str, ...], list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(tuple(sorted(metric.models().values())), []).append(metric)
    return list(groups.values())


def run_place(rated: LoadedSet, metrics: Sequence[Metric], source: ModelSource) -> Path:
    """Returns where the run of these metrics on this set is kept: under all that can move its
    numbers."""
    models = sorted({model for metric in metrics for model in metric.models().values()})
    fingerprints = {model: source.fingerprint(model) for model in models}
    signatures = [str(metric.signature(fingerprints)) for metric in metrics]
    text = json.dumps([rated.digest(), signatures, sorted(fingerprints.items())])
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_directory() / "studies" / "comparison" / key


def unusable(metrics: Sequence[Metric]) -> dict[str, str]:
    """Label -> why the metric cannot be asked here, and what to do."""
    from dialeval.model_store.locate import fingerprint, locate

    found = {}
    for metric in metrics:
        for model in metric.models().values():
            try:
                fingerprint(locate(model))
            except UsageError as error:
                found[metric.label] = f"{metric.label} is left out: {error}"
    return found


def usable_metrics(setting: Setting) -> tuple[list[Metric], dict[str, str]]:
    """Returns the metrics of the setting that can be asked here, and why the others cannot."""
    metrics = make_metrics(setting.metrics)
    left_out = {} if setting.source else unusable(metrics)
    usable = [metric for metric in metrics if metric.label not in left_out]
    if not usable:
        raise UsageError("\n".join(["no metric can be asked here:", *left_out.values()]))
    return usable, left_out


def what_was_learned(models: Sequence[str]) -> list[str]:
    """Returns what the cards of the models say that they learned from, if they have one."""
    from dialeval.model_store.locate import locate
    from dialeval.model_store.weights import read_json

    lines = []
    for name in models:
        try:
            card = read_json(locate(name).directory / "card.json")
        except UsageError:  # the models of a source that is not the built-in one
            continue
        data = card.get("data", {})
        corpus = data.get("corpus") or data.get("name") or data.get("sets")
        if corpus:
            lines.append(f"{name} learned from {corpus}: dialeval models card {name}")
    return lines


# What the studies of MME-CRS are run on: the files of DSTC10 that are here, scored and kept.

ASKED = ("minilm-l6", "glove-50d", "spacy-en-sm")
"""What the sub-metrics ask, or their judges stand on."""

SUB_METRICS = (
    "mme-fluency", "mme-relevance", "mme-topic", "mme-engagement",
    "mme-specificity", "mme-specificity:kind=nce", "mme-specificity:kind=ppl",
)  # fmt: skip
"""FM, RM, TCM, EM, SM-NLL, SM-NCE, SM-PPL."""

CITED = "Zhang et al., 2022"


@dataclass(frozen=True)
class ScoredSets:
    """Rated sets with all metrics; `notes` say what is not there and what was learned where."""

    gathered: Gathered
    notes: tuple[str, ...]


def score_sets(
    setting: Setting,
    terms: Sequence[str] = SUB_METRICS,
    most: int | None = None,
    sets: Sequence[LoadedSet] = (),
) -> ScoredSets:
    """Returns these sets, the user's or the files of DSTC10, with the metrics of the setting. Those
    of `terms` are composed where there are any, else everything is. `most`: take at most so many
    samples of a set."""
    source = LoadedOnce(setting.source or Models())
    usable, left_out = usable_metrics(setting)
    sets = sets or (load_rated_sets(setting.sets) if setting.sets else dstc10_sets(setting))
    if most is not None:
        sets = [by_lot(rated, most) for rated in sets]
    setting, before = replace(setting, source=source), 0
    total = sum(len(rated.samples) for rated in sets)
    runs = {}
    for rated in sets:
        place = run_place(rated, usable, source)
        runs[rated.name] = setting.after(before, total).score(rated.samples, usable, place)
        before += len(rated.samples)
    labels = [metric.label for metric in usable]
    gathered = gather(runs, [label for label in labels if label in terms] or labels)
    models = sorted({model for metric in usable for model in metric.models().values()})
    signatures = next(iter(runs.values())).signatures
    return ScoredSets(
        gathered,
        (
            *left_out.values(),
            *(() if setting.sets else (_absent(sets),)),
            *sampling_notes(sets),
            *gathered.left_out,
            *gathered.families.notes,
            *what_was_learned(models),
            *(str(signatures[label].short()) for label in labels),
        ),
    )


def dstc10_sets(setting: Setting) -> list[LoadedSet]:
    """Returns the files of the track that are here; of large ones a sample."""
    return [thinned(one) for one in dstc10_files(setting)]


def dstc10_files(setting: Setting) -> list[LoadedSet]:
    """Returns the files of the track that are here, whole, as a metric is to see them."""
    if "dstc10" not in setting.data:
        raise UsageError(
            "the files of DSTC10 are not here. Get them: dialeval data get dstc10, or choose rated"
            " sets of your own: --set FILE"
        )
    return [
        LoadedSet(name, tuple(protocol_samples(name, dialeval.load(path))))
        for path in track_files(setting.data["dstc10"])
        for name in [path.name.removesuffix("_eval.json")]
    ]


def _absent(sets: Sequence[LoadedSet]) -> str:
    here = {rated.name for rated in sets}
    absent = [name for name in DEVELOPMENT_SETS if name not in here]
    there = len(DEVELOPMENT_SETS) - len(absent)
    return (
        f"{there} of the {len(DEVELOPMENT_SETS)} development data sets are here; not here:"
        f" {', '.join(absent) or 'none'}"
    )
