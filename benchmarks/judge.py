"""How much faster does a trained scorer judge pairs together than one by one, and in what memory?

    python benchmarks/judge.py [--model bert-ruber-minilm-l6] [--context last|weighted|sum]
                               [--pairs 10000] [--serial 100] [--threads 1]

Pairs are the turns of dialogues of DailyDialog (`dialeval data get dailydialog`), each judged after
what was said before, with an empty cache. Together is `dialeval.score`: reading, encoding, scoring,
the answer cache and the run directory. One by one is the loop that a person would write, and what
the released code of PONE does: for each pair, encode its turns and its response, one text at a
time, then ask the network. It is run twice, with transformers' `AutoModel` as the card of the
encoder shows, and with our own encoder, which has less overhead per text. Only `--serial` pairs,
drawn at random, are judged so.

All are measured in one run, in pairs per second by the clock and per second of processor time: a
busy machine halves the first. `--context` takes the same network under another rule for the turns,
so that its scores mean nothing; the work is that of a network trained with it. Memory is the peak
of the whole process after a tenth of the pairs and after all.

What can be gained is bounded, and the last lines say by what:

    ratio = (tokens per pair one by one / together) * (FLOP/s together / FLOP/s one by one)

A text is read once instead of once for every pair that it is a part of: a factor of 2 with the rule
`last`, and of the mean number of turns with the others. A batch computes faster than a single text
of 17 tokens, but not faster than the machine multiplies matrices. With `last` and 32-bit numbers
the product of both stays below 10 on a core with AVX-512, overhead of any kind left aside.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dialeval
from dialeval.engine.answers import LoadedOnce
from dialeval.model_store.locate import locate
from dialeval.model_store.scorer_directory import DESCRIPTION
from dialeval.models.loading import silence
from dialeval.models.pair_scorer import PairScorer
from dialeval.models.source import Models
from dialeval.question import Embed, Judge
from dialeval.sample import Sample, Turn
from dialeval.training.examples.corpora import load_corpus

Vector = Callable[[str], Any]


@dataclass(frozen=True)
class Speed:
    """Pairs per second, by the clock and of processor time; the scores."""

    clock: float
    processor: float
    scores: list[float]


def pairs() -> Iterator[Sample]:
    for number, dialogue in enumerate(load_corpus(Path("dailydialog")).train):
        turns = tuple(Turn(text) for text in dialogue)
        for place in range(1, len(turns)):
            yield Sample(f"{number}-{place}", turns[:place], dialogue[place])


def timed(count: int, work: Callable[[], list[float]]) -> Speed:
    clock, processor = time.perf_counter(), time.process_time()
    scores = work()
    return Speed(
        count / (time.perf_counter() - clock), count / (time.process_time() - processor), scores
    )


def together(samples: Sequence[Sample], model: str, source: LoadedOnce, folder: Path) -> Speed:
    def work() -> list[float]:
        metric = f"pone:model={model}"
        run = dialeval.score(samples, [metric], models=source, cache=folder / "answers.sqlite")
        scores = run.scores(run.metrics[0])
        return [float("nan") if score is None else score for score in scores]

    return timed(len(samples), work)


def one_by_one(samples: Sequence[Sample], scorer: PairScorer, model: str, vector: Vector) -> Speed:
    def work() -> list[float]:
        found = []
        for sample in samples:
            question = _question(model, sample)
            vectors = [vector(one.text) for one in _texts(scorer, question)]
            ((_, score),) = scorer.answer([question], [vectors])
            found.append(float(score[0]))
        return found

    return timed(len(samples), work)


def _question(model: str, sample: Sample) -> Judge:
    return Judge(model, tuple(turn.text for turn in sample.context), sample.response or "")


def _texts(scorer: PairScorer, question: Judge) -> list[Embed]:
    (wanted,) = scorer.asks([question])
    return [one for one in wanted if isinstance(one, Embed)]


def our_vector(encoder: Any, name: str) -> Vector:
    def vector(text: str) -> Any:
        ((_, found),) = encoder.answer([Embed(name, text)])
        return found

    return vector


def plain_vector(directory: Path) -> Vector:
    """As the card of all-MiniLM-L6-v2 shows it."""
    from transformers import AutoModel, AutoTokenizer

    with silence():
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        model = AutoModel.from_pretrained(directory, local_files_only=True).float().eval()

    def vector(text: str) -> Any:
        inputs = tokenizer(text, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).float()
        return ((states * mask).sum(1) / mask.sum(1))[0].numpy()

    return vector


def with_context(model: str, context: str, folder: Path) -> str:
    """A copy of the scorer that makes its queries by another rule."""
    copy = folder / "scorer"
    shutil.copytree(locate(model).directory, copy)
    described = json.loads((copy / DESCRIPTION).read_text("utf-8"))
    (copy / DESCRIPTION).write_text(json.dumps(described | {"context": context}), "utf-8")
    return str(copy)


def matrix_products(rows: int, width: int) -> float:
    """FLOP per second of processor time of the largest product of the encoder, for so many rows."""
    states, weights = torch.randn(rows, width), torch.randn(4 * width, width)
    rounds = max(20, 40_000 // rows)
    with torch.inference_mode():
        for _ in range(rounds // 4):
            states @ weights.T
        started = time.process_time()
        for _ in range(rounds):
            states @ weights.T
    return 8 * rounds * rows * width**2 / (time.process_time() - started)


def show_bound(
    samples: Sequence[Sample],
    scorer: PairScorer,
    model: str,
    encoder: Any,
    fast: Speed,
    slow: Speed,
) -> None:
    """Why the ratio is what it is."""
    asked = [[one.text for one in _texts(scorer, _question(model, s))] for s in samples]
    distinct = list({text for texts in asked for text in texts})
    ids = encoder.tokenizer(distinct, verbose=False).input_ids
    lengths = {
        text: min(len(one), encoder.sentence_limit) for text, one in zip(distinct, ids, strict=True)
    }
    repeated = sum(lengths[text] for texts in asked for text in texts) / len(samples)
    once = sum(lengths.values()) / len(samples)
    flop = 2 * sum(p.numel() for p in encoder._model.encoder.parameters())
    width = encoder._model.config.hidden_size
    typical = round(sum(lengths.values()) / len(lengths))
    best = matrix_products(2048, width)
    giga = 1e-9 * flop
    print(f"tokens per pair: {repeated:.1f} one by one, {once:.1f} together")
    print(
        f"GFLOP/s of the encoder: {giga * repeated * slow.processor:.0f} one by one,"
        f" {giga * once * fast.processor:.0f} together; of matrix products alone:"
        f" {matrix_products(typical, width) / 1e9:.0f} with {typical} rows, {best / 1e9:.0f} with"
        " 2048"
    )
    bound = repeated / once * best / (1e9 * giga * repeated * slow.processor)
    print(f"so no more than {bound:.1f} times could be had of this loop")


def rates(speed: Speed) -> str:
    return f"{speed.clock:7.1f} pairs/s, {speed.processor:7.1f} per processor second"


def peak() -> float:
    """MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="bert-ruber-minilm-l6")
    parser.add_argument("--context", choices=("last", "weighted", "sum"))
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--serial", type=int, default=100)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    samples = list(islice(pairs(), arguments.pairs))
    drawn = np.random.default_rng(0).choice(len(samples), arguments.serial, replace=False)
    alone = [samples[i] for i in drawn]
    source = LoadedOnce(Models())
    with tempfile.TemporaryDirectory() as name:
        folder, model = Path(name), arguments.model
        if arguments.context:
            model = with_context(model, arguments.context, folder)
        tenth = samples[: len(samples) // 10]
        together(tenth, model, source, folder / "tenth")
        early = peak()
        fast = together(samples, model, source, folder / "all")
        late = peak()
        scorer = source.load(model)
        assert isinstance(scorer, PairScorer)
        base = locate(model).base
        assert base is not None
        encoder = source.load(base.name)
        loops = {
            "transformers": plain_vector(base.directory),
            "our encoder": our_vector(encoder, base.name),
        }
        print(f"together{'':18}{rates(fast)}")
        for title, vector in loops.items():
            vector("hello")
            slow = one_by_one(alone, scorer, model, vector)
            apart = max(abs(fast.scores[i] - s) for i, s in zip(drawn, slow.scores, strict=True))
            print(
                f"one by one, {title:13} {rates(slow)}:"
                f" {fast.clock / slow.clock:.1f} times slower by the clock,"
                f" {fast.processor / slow.processor:.1f} in processor time;"
                f" scores differ by {apart:.0e}"
            )
        show_bound(samples, scorer, model, encoder, fast, slow)
    print(f"peak memory {early:,.0f} MB after {len(tenth):,} pairs, {late:,.0f} MB after all")


if __name__ == "__main__":
    main()
