"""`dialeval train mme`: the five judges of MME-CRS, one after the other, then weights by CRS.

    DIR/fluency, relevance, topic, engagement, specificity   the judges, each with its own card
    DIR/crs.json, crs.md       the weights of their seven metrics, and how these do on left-out sets

`as_published` trains and fits as Zhang et al. (2022) describe it:

    fluency       all weights of a copy of the backbone, Adam, learning rate 1e-5, max pooling
    relevance     the same; turns and response are read together; of half of the right responses
                  all stop words are removed; wrong ones are the middle of ten by similarity
    topic         a graph attention network of 3 layers and 4 heads of 75 units, margin loss, 1e-5
    engagement    like fluency with mean pooling; learns the ratings as labels from 0 to 1
    specificity   all weights, guesses hidden words; asked with one word hidden at a time
    weights       correlation squared, samples of 300, quartiles, literal names of qualities

The epoch with the lowest loss on held-out data is kept. The paper gives neither epochs nor batch
size: 16 is that of USL-H and GRADE, which it follows. Without `as_published` every judge is trained
by the defaults of its own recipe, and the weights are fitted as `dialeval compose fit` does.

A judge that is finished is not trained again, so that a training that was killed goes on where it
was. The data are told apart by what they hold (`kind_of`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import Measures, Prepared, Progress, Recipe

if TYPE_CHECKING:
    from dialeval.compose.evidence import Gathered
    from dialeval.compose.leave_one_out import LeaveOneOut
    from dialeval.metric import Metric
    from dialeval.metrics.composition import Composition
    from dialeval.sample import Sample
    from dialeval.training.run import Training

Kind = Literal["dialogues", "engagement", "rated"]

NEEDED: Mapping[Kind, str] = {
    "dialogues": "dialogues to learn from, such as --data dailydialog",
    "engagement": "conversations that were rated for engagement, such as --data convai2-human,"
    " --data topical-chat or a file of ConvAI 2017",
    "rated": "rated sets to fit the weights on, such as --data dstc10",
}
ENGAGING = frozenset({"convai2-human", "topical-chat"})
"""Corpora whose ratings are of engagement."""

PEEKED = 200
"""Samples that are looked at to tell what a file holds."""

PUBLISHED_RATE, PUBLISHED_BATCH, PUBLISHED_UNITS = 1e-5, 16, 300
WEIGHTS = "crs.json"


@dataclass
class PreparedMme(Prepared[None]):
    parts: Mapping[str, Recipe[Any]]
    sources: Mapping[Kind, Sequence[Path]]
    progress: Progress
    scores: dict[str, Mapping[str, float | None]] = field(default_factory=dict)
    composition: Composition | None = None
    trials: LeaveOneOut | None = None


@dataclass(frozen=True, kw_only=True)
class Mme(Recipe[PreparedMme]):
    """Train the five sub-metrics of MME-CRS, and fit their weights on rated sets.

    `--data` takes three kinds of data, and the command tells them apart: dialogues (dailydialog),
    conversations that were rated for engagement (convai2-human, topical-chat, ConvAI 2017), and
    rated sets to fit the weights on (dstc10, files with ratings).
    """

    name = "mme"
    metric = "mme-crs"
    usage = "dialeval score FILE -m mme-crs:weights={out}/crs.json"

    as_published: bool = option(
        False,
        "Train as the paper does: all weights of a copy of the backbone for each sub-metric, turns"
        " and response read together, stop words removed, ratings as labels, weights by plain CRS.",
    )
    backbone: str = option(
        PRESETS["default"]["sentence-encoder"],
        "Start the four sub-metrics that read text from this encoder (in the paper:"
        f" {PRESETS['paper']['sentence-encoder']}).",
    )
    vectors: str = option(
        PRESETS["default"]["word-vectors"],
        "Read topics, and compare responses, with these word vectors.",
    )
    tagger: str = option("lexicon", "Find keywords with this tagger (see: train mme-topic).")
    epochs: int | None = option(
        None, "Train for this many epochs (default: that of each sub-metric).", low=1
    )
    batch: int | None = option(
        None, "Take this many examples per step (default: 16 as published).", low=1
    )
    examples: int | None = option(
        None, "Draw at most this many examples for each sub-metric per epoch.", low=20
    )
    held_out: int | None = option(
        None,
        "Validate and test on this many examples each (default: that of each sub-metric).",
        low=1,
    )
    most: int = option(500, "Read at most this many samples of each rated set.", low=10)

    def parts(self) -> dict[str, Recipe[Any]]:
        """Returns the recipe of each judge, by the name of its directory."""
        from dialeval.training.recipes.mme_judges import (
            MmeEngagement,
            MmeFluency,
            MmeRelevance,
            MmeSpecificity,
        )
        from dialeval.training.recipes.topic_graph import MmeTopic

        paper = self.as_published
        shared = _given(seed=self.seed, epochs=self.epochs, batch=self.batch)
        if paper:
            shared = {"batch": PUBLISHED_BATCH, **shared, "schedule": "constant"}
            shared["learning_rate"] = PUBLISHED_RATE
        text = {"model": self.backbone, **shared, **({"full": True} if paper else {})}
        held_out = _given(held_out=self.held_out)
        drawn = {**_given(examples=self.examples), **held_out}
        joint, labels, wide = dict[str, Any](), _given(per_source=self.examples), dict[str, Any]()
        if paper:
            joint = {"architecture": "cross-encoder", "stop_words": "removed"}
            labels = {"target": "label", "per_source": self.examples or 0}
            wide = {"units": PUBLISHED_UNITS}
        graph = {"model": self.vectors, "tagger": self.tagger, **shared, **wide}
        return {
            "fluency": MmeFluency(**text, **drawn),
            "relevance": MmeRelevance(**text, **drawn, vectors=self.vectors, **joint),
            "topic": MmeTopic(**graph, **_given(pairs=self.examples)),
            "engagement": MmeEngagement(**text, **labels),
            "specificity": MmeSpecificity(**text, **held_out, **_given(responses=self.examples)),
        }

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedMme:
        sources: dict[Kind, list[Path]] = {"dialogues": [], "engagement": [], "rated": []}
        for path in data:
            sources[kind_of(path)].append(path)
        if lacking := [NEEDED[kind] for kind, paths in sources.items() if not paths]:
            raise UsageError("this takes more data: " + "; ".join(lacking))
        for kind, paths in sources.items():
            progress.say(f"{kind}: {', '.join(map(str, paths))}")
        return PreparedMme(
            None,
            f"The five judges of MME-CRS on {self.backbone}"
            f"{', trained as published' if self.as_published else ''}, and weights by CRS.",
            self.backbone,
            {kind: ", ".join(map(str, paths)) for kind, paths in sources.items()},
            {},
            self.parts(),
            sources,
            progress,
        )

    def learn(self, prepared: PreparedMme, training: Training) -> Sequence[Mapping[str, float]]:
        for name, recipe in prepared.parts.items():
            kind: Kind = "engagement" if name == "engagement" else "dialogues"
            place = training.out / name
            training.progress.say(f"{name}: {place}")
            found = _trained(recipe, prepared.sources[kind], place, training)
            prepared.scores[name] = found
        return []

    def metrics(self, out: Path) -> list[Metric]:
        """Returns the seven metrics by the judges of this directory."""
        from dialeval.registry import make_metric

        def judged(metric: str, part: str, **more: Any) -> Metric:
            # A bare name could be that of a shipped model.
            return make_metric(metric, model=str((out / part).resolve()), **more)

        masks = {"masks": 0} if self.as_published else {}
        return [
            judged("mme-fluency", "fluency"),
            judged("mme-relevance", "relevance"),
            judged("mme-topic", "topic"),
            judged("mme-engagement", "engagement"),
            *(
                judged("mme-specificity", "specificity", kind=kind, **masks)
                for kind in ("nll", "nce", "ppl")
            ),
        ]

    def save(self, prepared: PreparedMme, out: Path) -> None:
        """Scores the rated sets with all judges, and fits the weights on them."""
        from dialeval.compose.fitting import COMMON, OURS, PAPER, fit
        from dialeval.compose.leave_one_out import leave_each_out
        from dialeval.compose.tables import card_text
        from dialeval.metrics.composition import save_composition
        from dialeval.model_store.store import write_record
        from dialeval.storage import write_text

        gathered = self._scored(prepared, out, prepared.progress)
        options = PAPER if self.as_published else replace(OURS, names=COMMON)
        composition = fit(gathered, options)
        prepared.composition = composition
        save_composition(composition, out / WEIGHTS)
        if len(gathered.families.relatives) > 1:
            prepared.trials = leave_each_out(gathered, options)
            command = self.command([p for s in prepared.sources.values() for p in s], out, None)
            text = card_text(out.name, command, composition, prepared.trials)
            write_text(out / "crs.md", text)
        write_record(out, {}, [out / WEIGHTS])

    def _scored(self, prepared: PreparedMme, out: Path, progress: Progress) -> Gathered:
        from dialeval.compose.evidence import gather
        from dialeval.models.source import Models
        from dialeval.scoring import score

        metrics, runs = self.metrics(out), {}
        for path in prepared.sources["rated"]:
            for name, samples in rated_sets(path, self.most, self.seed):
                if name in runs:
                    raise UsageError(f"two rated sets are called {name!r}: rename one of the files")
                with progress.counting(f"scoring {name}") as count:
                    runs[name] = score(samples, metrics, models=Models(), progress=count)
        return gather(runs, [metric.label for metric in metrics])

    def measure(self, prepared: PreparedMme, progress: Progress) -> Measures:
        """Returns what the judges know of held-out data, and CRS on left-out sets."""
        from dialeval.compose.tables import method_lines, weight_lines

        assert prepared.composition is not None
        scores = {
            f"{part}: {name}": value
            for part, found in prepared.scores.items()
            for name, value in found.items()
            if not name.startswith("Spearman")
        }
        names = list(prepared.composition.weights)
        tables = {"Weights": _records(*weight_lines(prepared.composition, names))}
        if prepared.trials is not None:
            tables["Leave one rated set out"] = _records(*method_lines(prepared.trials))
            scores |= {
                f"mean by set where each is left out: {one.name}": one.all.by_set.value
                for one in prepared.trials.summary()
            }
        return Measures(scores, tables=tables)

    def agreement(
        self, prepared: PreparedMme, out: Path, progress: Progress
    ) -> dict[str, float | None]:
        """Returns nothing: the weights were fitted on the rated sets, and `measure` has them left
        out."""
        return {}


def kind_of(path: Path) -> Kind:
    """Returns what a data set by name, a file or a folder holds."""
    from dialeval.datasets.entries import find_entry
    from dialeval.datasets.locate import is_dataset, resolve_folder
    from dialeval.readers import load
    from dialeval.training.examples.engagement import QUALITIES, is_labelled

    name = os.fspath(path)
    if not os.path.lexists(path) and is_dataset(name):
        dataset = find_entry(name)[0]
        if dataset.kind == "rated":
            return "rated"
        return "engagement" if dataset.name in ENGAGING else "dialogues"
    place = resolve_folder(path)
    if place.is_dir():
        if any(place.glob("*_eval.json")):
            return "rated"
        files = [file for file in sorted(place.iterdir()) if file.suffix in (".json", ".csv")]
        if not files:
            return "dialogues"
        place = files[0]
    if is_labelled(place):
        return "engagement"
    qualities = {quality for sample in islice(load(place), PEEKED) for quality in sample.ratings}
    if qualities & set(QUALITIES):
        return "engagement"
    return "rated" if qualities else "dialogues"


def rated_sets(path: Path, most: int, seed: int) -> Iterator[tuple[str, list[Sample]]]:
    """Yields the rated sets of a path with their names: each file of a folder of DSTC10, or the one
    set that it is; of a large one `most` samples, drawn at random."""
    from dialeval.agreement.dstc10 import protocol_sample
    from dialeval.datasets.locate import resolve_folder
    from dialeval.readers import load

    place = resolve_folder(path)
    files = sorted(place.glob("*_eval.json")) if place.is_dir() else []
    for file in files or [path]:
        samples = [protocol_sample(sample) for sample in load(file, limit=most, seed=seed)]
        yield file.name.removesuffix(".json").removesuffix("_eval"), samples


def _trained(
    recipe: Recipe[Any], data: Sequence[Path], place: Path, training: Training
) -> Mapping[str, float | None]:
    """Trains a judge unless it is finished, and returns the scores of its card."""
    from dialeval.model_store.weights import read_json
    from dialeval.training.run import train

    if (place / "card.json").exists():
        card = read_json(place / "card.json")
        wanted = recipe.command(data, place, None)
        if card["command"] != wanted:
            raise UsageError(
                f"{place} was trained by another command ({card['command']}), not by {wanted}."
                " Choose another -o."
            )
        scores: Mapping[str, float | None] = card["scores"]
        return scores
    return train(
        recipe,
        list(data),
        place,
        progress=training.progress,
        checkpoint_seconds=training.checkpoint_seconds,
    ).scores


def _given(**options: Any) -> dict[str, Any]:
    """Returns the options that somebody set; a recipe has its own defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}


def _records(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    return [dict(zip(header, row, strict=True)) for row in rows]
