"""The limits of this machine, and how near the language model and the answer cache come to them.

python benchmarks/limits.py
python benchmarks/limits.py --products    # how fast the products of the embedded models can be
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from contests import example_dialogues

from dialeval.question import Embed
from dialeval.registry import make_metric
from dialeval.sample import Sample


@dataclass(frozen=True)
class Limits:
    """`share_of_peak`: the products with weights, of what a large product reaches here. Attention
    is work too, but is not counted."""

    matmul_gflops: float
    share_of_peak: float
    tokens_computed: int
    tokens_necessary: int
    tokens_one_by_one: int
    cache_hits_per_second: float


def measure_limits(samples: Sequence[Sample], model: str = "smollm2-135m") -> Limits:
    """With FULL's questions about these dialogues."""
    from dialeval.model_store.locate import locate
    from dialeval.models.causal_lm import TokenCounts, load

    lm = load(locate(model).directory, device="cpu")
    questions = [question for sample in samples for question in make_metric("full").ask(sample)]
    best, peak = float("inf"), 0.0
    for _ in range(3):
        peak = max(peak, matmul_flops())
        lm.counts = TokenCounts()
        started = time.perf_counter()
        for _ in lm.answer(questions):
            pass
        best = min(best, time.perf_counter() - started)
    work = 2 * (lm.weights * lm.counts.computed + lm.head_weights * lm.counts.predicted)
    return Limits(
        matmul_gflops=peak / 1e9,
        share_of_peak=work / best / peak,
        tokens_computed=lm.counts.computed,
        tokens_necessary=lm.counts.minimum,
        tokens_one_by_one=lm.counts.naive,
        cache_hits_per_second=cache_hits_per_second(),
    )


def matmul_flops(size: int = 2048) -> float:
    """Floating-point operations per second of one large 32-bit product."""
    import torch

    first, second = torch.randn(size, size), torch.randn(size, size)
    started = time.perf_counter()
    torch.mm(first, second)
    return 2 * size**3 / (time.perf_counter() - started)


SHAPES = {
    "SmolLM2, wide": (2048, 576, 1536),
    "SmolLM2, narrow": (2048, 1536, 576),
    "SmolLM2, attention": (2048, 576, 576),
    "SmolLM2, head": (340, 576, 49152),
    "MiniLM, wide": (1024, 384, 1536),
    "MiniLM, attention": (1024, 384, 384),
}
"""Tokens, numbers of a state before and after: the products that the embedded models consist of."""


def product_rates(rounds: int = 4) -> dict[str, tuple[float, float]]:
    """GFLOP per second of processor time of each product: by torch as the models call it, and by
    numpy, which has another library of products. On one thread: set OMP_NUM_THREADS=1 and
    OPENBLAS_NUM_THREADS=1."""
    import torch

    def rate(work: Callable[[], object], operations: float) -> float:
        seconds = []
        for _ in range(rounds + 1):
            started = time.process_time()
            work()
            seconds.append(time.process_time() - started)
        return operations / min(seconds[1:]) / 1e9

    found = {}
    with torch.inference_mode():
        for name, (rows, before, after) in SHAPES.items():
            x, w = torch.randn(rows, before), torch.randn(after, before)
            flat, weights, work = x.numpy(), w.numpy(), 2.0 * rows * before * after
            found[name] = (
                rate(lambda x=x, w=w: torch.nn.functional.linear(x, w), work),  # type: ignore[misc]
                rate(lambda x=flat, w=weights: x @ w.T, work),  # type: ignore[misc]
            )
    return found


def cache_hits_per_second(answers: int = 20_000) -> float:
    """Vectors of 384 numbers found again, from the question to the answer."""
    from dialeval.engine.answers import AnswerCache

    questions = [Embed("m", f"text number {number}") for number in range(answers)]
    vector = np.zeros(384, np.float32)
    with (
        tempfile.TemporaryDirectory(prefix="dialeval-") as directory,
        AnswerCache(Path(directory) / "answers.sqlite") as cache,
    ):
        cache.put((question.key("weights"), vector) for question in questions)
        started = time.perf_counter()
        found = cache.get([question.key("weights") for question in questions])
        seconds = time.perf_counter() - started
    assert len(found) == answers
    return answers / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--products", action="store_true", help="measure single products only")
    if parser.parse_args().products:
        for name, (ours, numpys) in product_rates().items():
            print(f"{name:<20} torch {ours:6.1f} GFLOP/s  numpy {numpys:6.1f} GFLOP/s")
        return
    found = measure_limits(example_dialogues(6))
    print(
        f"32-bit products reach {found.matmul_gflops:,.0f} GFLOP/s; the language model reaches"
        f" {found.share_of_peak:.0%} of that.\nIt read {found.tokens_computed:,} tokens;"
        f" {found.tokens_necessary:,} are necessary, one question at a time reads"
        f" {found.tokens_one_by_one:,}.\nThe answer cache returns"
        f" {found.cache_hits_per_second:,.0f} answers per second."
    )


if __name__ == "__main__":
    main()
