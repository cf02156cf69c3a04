"""Would the products of another library make the language model faster?

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/products.py [--layers 4]

Reads short dialogues with many follow-ups, made of random tokens, with the first layers of
SmolLM2-135M, and lets its products be computed by torch (MKL), by numpy (OpenBLAS) and by oneDNN.
The last row has torch's products, and attention in runs of fewer nodes. The ways take turns; the
table shows the least processor time of each, how many times faster than torch it is, and by how
much the states differ.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from dialeval.model_store.locate import locate
from dialeval.networks import llama
from dialeval.networks.low_rank import Linear
from dialeval.networks.tree import ROWS_PER_VIEW, Forest, grow, views

DIALOGUES, CONTEXT, FOLLOW_UPS, TOKENS = 3, 60, 60, 6
FEWER_ROWS = 64

Product = Callable[[Linear, torch.Tensor], torch.Tensor]


def by_torch(layer: Linear, states: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(states, layer.weight)


def by_numpy(layer: Linear, states: torch.Tensor) -> torch.Tensor:
    flat = states.reshape(-1, states.shape[-1]).numpy()
    found = torch.from_numpy(flat @ layer.weight.detach().numpy().T)
    return found.view(*states.shape[:-1], -1)


def by_onednn(layer: Linear, states: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        states, layer.weight, None, "none", [], ""
    )
    return found


WAYS: dict[str, tuple[Product, int]] = {
    "torch": (by_torch, ROWS_PER_VIEW),
    "numpy": (by_numpy, ROWS_PER_VIEW),
    "oneDNN": (by_onednn, ROWS_PER_VIEW),
    f"torch, runs of {FEWER_ROWS} nodes": (by_torch, FEWER_ROWS),
}


def dialogues_with_follow_ups(generator: np.random.Generator) -> Forest:
    sequences = []
    for _ in range(DIALOGUES):
        context = generator.integers(10, 40_000, CONTEXT).tolist()
        for _ in range(FOLLOW_UPS):
            sequences.append((*context, *generator.integers(10, 40_000, TOKENS).tolist()))
    return grow(sorted(sequences))


def states(body: llama.Body, forest: Forest, rows: int) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = body(
            torch.from_numpy(forest.tokens)[None],
            torch.from_numpy(forest.depths)[None],
            tree=views(forest, "cpu", rows),
        ).last_hidden_state
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    model = llama.load(locate("smollm2-135m").directory)
    assert model is not None
    body = model.model
    body.layers = body.layers[: arguments.layers]
    forest = dialogues_with_follow_ups(np.random.default_rng(0))
    least = dict.fromkeys(WAYS, float("inf"))
    found = {}
    for _ in range(arguments.rounds):
        for name, (product, rows) in WAYS.items():
            Linear.forward = product  # type: ignore[method-assign]
            start = time.process_time()
            found[name] = states(body, forest, rows)
            least[name] = min(least[name], time.process_time() - start)
    print(f"{arguments.layers} layers, {len(forest.tokens):,} tokens")
    for name, seconds in least.items():
        faster = least["torch"] / seconds
        differs = float((found[name] - found["torch"]).abs().max())
        print(f"{name:<24}{seconds:>8.3f} s{faster:>8.2f}{differs:>12.1e}")


if __name__ == "__main__":
    main()
