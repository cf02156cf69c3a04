"""Fewer bits: are 8-bit integers faster here, and do the scores stay what they were?

    python benchmarks/precision.py [--items 200] [--rounds 3] [--json]

all-MiniLM-L6-v2 with sentence vectors, on rated turns of FED, in one process and with the same
weights (`language_model.py` has SmolLM2):

    fp32   what dialeval does
    int8   torch's dynamic quantisation: weights per row in 8 bits, states quantised as they come

bfloat16 is left out: on a virtual machine that announces AMX and does not have it, its products end
the process with an illegal instruction (ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 prevents that), and
without AMX they are slower than 32 bits.

The rounds of the two take turns. Beside the ratio to fp32 stands how the scores agree with those
of fp32: Pearson's r over the items (of the cosine between the last turn and the response), the
largest difference, and the Spearman correlation with the people's ratings of both.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import stats

import dialeval
from dialeval.model_store.locate import locate
from dialeval.models import encoder
from dialeval.question import Embed, Question
from dialeval.sample import Sample

Networks = dict[str, torch.nn.Module]


def networks(model: torch.nn.Module) -> Networks:
    """The same weights in both forms."""
    plain = with_layers(model, plain_layer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch points to its successor, which is another package
        per_row = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        int8 = torch.ao.quantization.quantize_dynamic(plain, per_row)
    changed = [m for m in int8.modules() if "quantized" in type(m).__module__]
    assert changed, "torch has quantised no layer"
    return {"fp32": model, "int8": int8}


def with_layers(
    model: torch.nn.Module, change: Callable[[torch.nn.Linear], torch.nn.Module]
) -> torch.nn.Module:
    """A copy in which every linear layer is another one."""
    found = copy.deepcopy(model)
    for module in list(found.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, torch.nn.Linear):
                setattr(module, name, change(layer))
    return found


def plain_layer(layer: torch.nn.Linear) -> torch.nn.Linear:
    """torch quantises `torch.nn.Linear` itself, and passes over our subclass without a word."""
    outputs, inputs = layer.weight.shape
    found = torch.nn.Linear(inputs, outputs, bias=layer.bias is not None)
    found.weight, found.bias = layer.weight, layer.bias
    return found


def cosines(model: encoder.Encoder, samples: Sequence[Sample]) -> np.ndarray:
    questions: list[Question] = []
    for sample in samples:
        questions += [Embed("m", sample.context[-1].text), Embed("m", sample.response or "")]
    found = dict(model.answer(questions))
    pairs = np.array([found[n] for n in range(len(found))]).reshape(len(samples), 2, -1)
    pairs /= np.linalg.norm(pairs, axis=-1, keepdims=True)
    return (pairs[:, 0] * pairs[:, 1]).sum(axis=-1)


def compare(
    name: str,
    put: Callable[[torch.nn.Module], None],
    forms: Networks,
    score: Callable[[], np.ndarray],
    people: np.ndarray,
    rounds: int,
) -> list[dict[str, float | str]]:
    """Each form in turn, `rounds` times."""
    seconds: dict[str, list[float]] = {form: [] for form in forms}
    processor: dict[str, list[float]] = {form: [] for form in forms}
    scores = {}
    for _ in range(rounds):
        for form, network in forms.items():
            put(network)
            wall, cpu = time.perf_counter(), time.process_time()
            scores[form] = score()
            seconds[form].append(time.perf_counter() - wall)
            processor[form].append(time.process_time() - cpu)
    rows: list[dict[str, float | str]] = []
    for form in forms:
        rows.append(
            {
                "model": name,
                "form": form,
                "seconds": min(seconds[form]),
                "times_faster": min(seconds["fp32"]) / min(seconds[form]),
                "times_less_processor": min(processor["fp32"]) / min(processor[form]),
                "pearson_with_fp32": stats.pearsonr(scores["fp32"], scores[form]).statistic,
                "largest_difference": float(np.abs(scores[form] - scores["fp32"]).max()),
                "spearman_with_people": stats.spearmanr(scores[form], people).statistic,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    data = Path(os.environ.get("DIALEVAL_DATA") or here) / "rated" / "fed" / "fed_data.json"
    parser.add_argument("--data", type=Path, default=data, help="fed_data.json")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    turns = [s for s in dialeval.load(options.data) if s.level == "turn" and s.ratings]
    samples = turns[: options.items]
    people = np.array([np.mean(s.ratings["Overall"].values) for s in samples])

    minilm = encoder.load(locate("minilm-l6").directory, device="cpu")

    def put_encoder(network: torch.nn.Module) -> None:
        minilm._model = network

    rows = compare(
        "minilm-l6",
        put_encoder,
        networks(minilm._model),
        lambda: cosines(minilm, samples),
        people,
        options.rounds,
    )
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'':14}{'':6}{'s':>8}{'faster':>8}{'cpu':>7}{'r':>10}{'differs':>10}{'people':>8}")
    for row in rows:
        print(
            f"{row['model']:14}{row['form']:6}{row['seconds']:8.2f}{row['times_faster']:7.2f}x"
            f"{row['times_less_processor']:6.2f}x{row['pearson_with_fp32']:10.5f}"
            f"{row['largest_difference']:10.4f}{row['spearman_with_people']:8.3f}"
        )


if __name__ == "__main__":
    main()
