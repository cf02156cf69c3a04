"""What do the seven sub-metrics of MME-CRS cost, and the judge, against relevance alone?

    python benchmarks/mme.py [--turns 1000] [--data dailydialog]

Scores the same turns (test part of the corpus, each with all turns before it) in one process,
models loaded, the answer cache empty at first: relevance alone, the judge, all seven together, each
of the others, and all seven with one hidden piece at a time, as the paper has it. (An adapter is
merged into its encoder when it is loaded, so per text it costs what a copy with weights of its own
costs.) Then the sizes: small parts on one backbone against five copies of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from dialeval.engine.answers import AnswerCache, Answerer
from dialeval.metric import Metric
from dialeval.model_store.catalogue import CATALOGUE
from dialeval.model_store.locate import entry_directory
from dialeval.models.source import Models
from dialeval.question import ModelSource
from dialeval.registry import make_metrics
from dialeval.sample import Sample, Turn
from dialeval.studies.rated_runs import SUB_METRICS
from dialeval.training.examples.corpora import load_corpus


def turns_of(data: Path, count: int) -> list[Sample]:
    found = [
        Sample(f"{d}-{place}", tuple(map(Turn, dialogue[:place])), dialogue[place])
        for d, dialogue in enumerate(load_corpus(data).test)
        for place in range(1, len(dialogue))
    ]
    return found[:count]


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock and of the processor, which other programs disturb less."""

    clock: float
    processor: float

    def text(self, of: Cost) -> str:
        times = f"{self.clock / of.clock:5.2f}, {self.processor / of.processor:5.2f} x relevance"
        return f"{self.clock:8.1f} s, {self.processor:8.1f} s of processor {times}"


def cost(metrics: Sequence[Metric], samples: Sequence[Sample], source: ModelSource) -> Cost:
    """Of asking, answering and scoring with an empty answer cache, in which models that ask find
    what another one has asked; the models are loaded by a first sample."""
    with (
        tempfile.TemporaryDirectory() as folder,
        AnswerCache(Path(folder) / "answers.sqlite") as cache,
    ):
        return _cost(metrics, samples, Answerer(source, cache))


def _cost(metrics: Sequence[Metric], samples: Sequence[Sample], answerer: Answerer) -> Cost:
    warm = [question for metric in metrics for question in metric.ask(samples[0])]
    answerer.answer(warm)
    start, processor = time.perf_counter(), time.process_time()
    asked = [[metric.ask(sample) for sample in samples] for metric in metrics]
    answers = answerer.answer(q for per_metric in asked for own in per_metric for q in own)
    for metric, per_metric in zip(metrics, asked, strict=True):
        for sample, own in zip(samples, per_metric, strict=True):
            metric.score(sample, [answers[question] for question in own])
    return Cost(time.perf_counter() - start, time.process_time() - processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=Path("dailydialog"))
    given = parser.parse_args()
    samples = turns_of(given.data, given.turns)
    source = Models("cpu")
    seven = make_metrics(SUB_METRICS)
    print(f"{len(samples)} turns, {torch.get_num_threads()} threads")
    costs: dict[str, Cost] = {}
    for name, metrics in {
        "mme-relevance": make_metrics(["mme-relevance"]),
        "judge": make_metrics(["judge"]),
        "all seven": seven,
        **{metric.label: [metric] for metric in seven if metric.name != "mme-relevance"},
    }.items():
        costs[name] = cost(metrics, samples, source)
        print(f"{name:28} {costs[name].text(of=costs['mme-relevance'])}")
    exact = make_metrics(
        spec + (",masks=0" if ":" in spec else ":masks=0") if "specificity" in spec else spec
        for spec in SUB_METRICS
    )
    took = cost(exact, samples, source)
    print(f"{'all seven, exact masks':28} {took.text(of=costs['mme-relevance'])}")
    print_sizes(seven)


def print_sizes(metrics: Sequence[Metric]) -> None:
    names = dict.fromkeys(model for metric in metrics for model in metric.models().values())
    own = 0
    for name in names:
        directory = entry_directory(CATALOGUE[name])
        assert directory is not None
        size = sum(path.stat().st_size for path in directory.glob("*.safetensors"))
        own += size
        print(f"{name:28} {size / 1e6:8.2f} MB")
    backbone = entry_directory(CATALOGUE["minilm-l6"])
    assert backbone is not None
    whole = (backbone / "model.safetensors").stat().st_size
    print(f"{'all parts':28} {own / 1e6:8.2f} MB on one backbone of {whole / 1e6:.0f} MB")
    print(f"{'five copies of it':28} {5 * whole / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
