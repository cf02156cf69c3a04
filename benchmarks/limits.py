"""The limits of this machine, and how near the language model and the answer cache come to them.

python benchmarks/limits.py
python benchmarks/limits.py --encoder     # the same of MiniLM, and where its time goes
python benchmarks/limits.py --products    # how fast the products of the embedded models can be
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from contests import example_dialogues, example_pairs

from dialeval.question import Embed, TokenMatch
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


@dataclass(frozen=True)
class EncoderLimits:
    """Shares of the processor time of one thread. `at_least` is what the products with weights
    would take at the speed of a large product, `products` what they took."""

    tokens_computed: int
    tokens_necessary: int
    at_least: float
    products: float
    attention: float
    network: float
    tokenizer: float


def measure_encoder(pairs: Sequence[tuple[str, str]], model: str = "minilm-l6") -> EncoderLimits:
    """With the questions of BERTScore about these pairs."""
    import torch

    from dialeval.model_store.locate import locate
    from dialeval.models.encoder import load

    encoder = load(locate(model).directory, device="cpu")
    network, functional = encoder._model, torch.nn.functional
    spent: dict[str, float] = {}
    tokens: list[int] = []

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return work(*given, **options)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - started

        return run

    network.embeddings.register_forward_pre_hook(lambda _, given: tokens.append(len(given[0])))
    questions = [TokenMatch(model, one, other) for one, other in pairs]
    texts = {text for pair in pairs for text in pair}
    necessary = sum(len(one.ids) for one in encoder._tokenize(list(texts), encoder.limit))
    weights = sum(layer.weight.numel() for layer in linear_layers(network.encoder))
    list(encoder.answer(questions[:32]))
    parts = {
        (network, "forward"): timed("network", network.forward),
        (encoder, "_tokenize"): timed("tokenizer", encoder._tokenize),
        (functional, "linear"): timed("products", functional.linear),
        (functional, "scaled_dot_product_attention"): timed(
            "attention", functional.scaled_dot_product_attention
        ),
    }
    before = {(owner, name): getattr(owner, name) for owner, name in parts}
    spent.clear()
    tokens.clear()
    peak = max(matmul_flops(clock=time.process_time) for _ in range(3))
    started = time.process_time()
    try:
        for (owner, name), work in parts.items():
            setattr(owner, name, work)
        list(encoder.answer(questions))
    finally:
        for (owner, name), work in before.items():
            setattr(owner, name, work)
    whole = time.process_time() - started
    return EncoderLimits(
        tokens_computed=sum(tokens),
        tokens_necessary=necessary,
        at_least=2 * weights * sum(tokens) / peak / whole,
        products=spent["products"] / whole,
        attention=spent["attention"] / whole,
        network=spent["network"] / whole,
        tokenizer=spent["tokenizer"] / whole,
    )


def linear_layers(network: Any) -> list[Any]:
    import torch

    return [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]


def matmul_flops(size: int = 2048, clock: Callable[[], float] = time.perf_counter) -> float:
    """Floating-point operations per second of one large 32-bit product."""
    import torch

    first, second = torch.randn(size, size), torch.randn(size, size)
    started = clock()
    torch.mm(first, second)
    return 2 * size**3 / (clock() - started)


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
    parser.add_argument("--encoder", action="store_true", help="measure the encoder only")
    arguments = parser.parse_args()
    if arguments.encoder:
        encoder = measure_encoder(example_pairs(300))
        print(
            f"MiniLM computed {encoder.tokens_computed:,} tokens; {encoder.tokens_necessary:,} are"
            f" necessary.\nShares of processor time: network {encoder.network:.0%} (products with"
            f" weights {encoder.products:.0%}, at the speed of a large product"
            f" {encoder.at_least:.0%}; attention {encoder.attention:.0%}), tokenizer"
            f" {encoder.tokenizer:.0%}."
        )
        return
    if arguments.products:
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
