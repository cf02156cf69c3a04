"""How much faster does a trained scorer judge pairs together than one by one, and in what memory?

    python benchmarks/judge.py [--model pone-minilm-l6] [--pairs 10000] [--serial 100]

Pairs are the turns of dialogues of DailyDialog (`dialeval data get dailydialog`), each judged after
everything that was said before, with an empty cache. One by one, as the released code of PONE and
BERT-RUBER scores, each text of a pair is encoded for that pair alone; only `--serial` pairs, drawn
by lot, are judged so. Compared are pairs per second, in one run on one machine. Memory is the peak
of the whole process after a tenth of the pairs and after all.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

import dialeval
from dialeval.question import AskingModel, Judge
from dialeval.sample import Sample, Turn
from dialeval.studies.comparison_runs import LoadedOnce
from dialeval.training.corpora import load_corpus


def pairs() -> Iterator[Sample]:
    for number, dialogue in enumerate(load_corpus(Path("dailydialog")).train):
        turns = tuple(Turn(text) for text in dialogue)
        for place in range(1, len(turns)):
            yield Sample(f"{number}-{place}", turns[:place], dialogue[place])


def together(
    samples: list[Sample], model: str, source: LoadedOnce, folder: Path
) -> tuple[float, list[float]]:
    """Pairs per second, and the scores."""
    metric = f"pone:model={model}"
    started = time.perf_counter()
    run = dialeval.score(samples, [metric], models=source, cache=folder / "answers.sqlite")
    rate = len(samples) / (time.perf_counter() - started)
    return rate, [score for score in run.scores(run.metrics[0]) if score is not None]


def one_by_one(samples: list[Sample], model: str, source: LoadedOnce) -> tuple[float, list[float]]:
    """The same, each text of each pair on its own."""
    scorer = source.load(model)
    assert hasattr(scorer, "asks")
    asking: AskingModel = scorer  # type: ignore[assignment]
    question = Judge(model, ("hello",), "hi")
    encoder = source.load(asking.asks([question])[0][0].model)
    found = []
    started = time.perf_counter()
    for sample in samples:
        question = Judge(model, tuple(t.text for t in sample.context), sample.response or "")
        ((*wanted,),) = asking.asks([question])
        vectors = [answer for text in wanted for _, answer in encoder.answer([text])]
        ((_, score),) = asking.answer([question], [vectors])
        found.append(float(score[0]))
    return len(samples) / (time.perf_counter() - started), found


def peak() -> float:
    """MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="pone-minilm-l6")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--serial", type=int, default=100)
    arguments = parser.parse_args()
    samples = list(islice(pairs(), arguments.pairs))
    source = LoadedOnce(None)
    drawn = np.random.default_rng(0).choice(len(samples), arguments.serial, replace=False)
    with tempfile.TemporaryDirectory() as name:
        together(samples[: len(samples) // 10], arguments.model, source, Path(name) / "tenth")
        early = peak()
        rate, scores = together(samples, arguments.model, source, Path(name) / "all")
        late = peak()
    slow, alone = one_by_one([samples[i] for i in drawn], arguments.model, source)
    apart = max(abs(scores[i] - one) for i, one in zip(drawn, alone, strict=True))
    print(f"together    {rate:8.1f} pairs/s  ({len(samples):,} pairs)")
    print(f"one by one  {slow:8.1f} pairs/s  ({len(alone):,} pairs)")
    print(f"{rate / slow:.1f} times faster; scores differ by at most {apart:.1e}")
    print(f"peak memory {early:,.0f} MB after a tenth, {late:,.0f} MB after all")


if __name__ == "__main__":
    main()
