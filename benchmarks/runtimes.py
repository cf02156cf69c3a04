"""Would another runtime encode faster than torch as we use it?

    pip install onnxruntime onnx onnxscript
    python benchmarks/runtimes.py [--texts 800] [--rounds 3] [--compile]

Sentence vectors of all-MiniLM-L6-v2 for turns of DailyDialog, one thread, in one process:

    dialeval   `models.encoder`, texts packed
    onnx       the same weights in onnxruntime, batches of 32 texts of similar length
    onnx-int8  its dynamic quantisation, weights per channel
    compiled   `models.encoder` with torch.compile and dynamic shapes (only with --compile: slow)

They take turns; the least processor time of each counts. r is Pearson's correlation of the cosines
of neighbouring turns with those of dialeval.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.model_store.locate import locate
from dialeval.models import encoder
from dialeval.question import Embed
from dialeval.training.examples.corpora import load_corpus

MODEL = "minilm-l6"
BATCH = 32
Vectors = Callable[[], np.ndarray]


def ours(texts: Sequence[str], compiled: bool = False) -> Vectors:
    model = encoder.load(locate(MODEL).directory, device="cpu")
    if compiled:
        (network,) = (k for k, v in vars(model).items() if isinstance(v, torch.nn.Module))
        setattr(model, network, torch.compile(getattr(model, network), dynamic=True))

    def vectors() -> np.ndarray:
        found = dict(model.answer([Embed(MODEL, text) for text in texts]))
        return np.array([found[n] for n in range(len(texts))])

    return vectors


def onnx(texts: Sequence[str], folder: Path) -> dict[str, Vectors]:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(locate(MODEL).directory)
    whole, small = folder / "model.onnx", folder / "int8.onnx"
    export(tokenizer, whole)
    quantize_dynamic(whole, small, per_channel=True, weight_type=QuantType.QInt8)
    return {
        "onnx": session(whole, tokenizer, texts),
        "onnx-int8": session(small, tokenizer, texts),
    }


def export(tokenizer: Any, path: Path) -> None:
    from transformers import AutoModel

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(
                locate(MODEL).directory, attn_implementation="eager"
            ).eval()

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> Any:
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    some = tokenizer(["how are you", "hi"], padding=True, return_tensors="pt")
    shape = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        States(),
        (some.input_ids, some.attention_mask),
        str(path),
        input_names=["ids", "mask"],
        output_names=["states"],
        dynamic_axes={"ids": shape, "mask": shape, "states": shape},
        dynamo=False,
    )


def session(path: Path, tokenizer: Any, texts: Sequence[str]) -> Vectors:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    running = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    order = sorted(range(len(texts)), key=lambda n: len(texts[n]))

    def batches() -> Iterator[tuple[list[int], Any]]:
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            yield rows, tokenizer([texts[n] for n in rows], padding=True, return_tensors="np")

    def vectors() -> np.ndarray:
        found = np.zeros((len(texts), 384), np.float32)
        for rows, read in batches():
            mask = read["attention_mask"]
            (states,) = running.run(None, {"ids": read["input_ids"], "mask": mask})
            found[rows] = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return found

    return vectors


def cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit[:-1] * unit[1:]).sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    turns = (turn for dialogue in load_corpus(Path("dailydialog")).test for turn in dialogue)
    texts = list(dict.fromkeys(turns))[: given.texts]
    with tempfile.TemporaryDirectory() as folder:
        sides = {"dialeval": ours(texts), **onnx(texts, Path(folder))}
        if given.compile:
            sides["compiled"] = ours(texts, compiled=True)
        spent: dict[str, list[float]] = {name: [] for name in sides}
        found = {}
        for _ in range(given.rounds + 1):  # the first round is not counted
            for name, vectors in sides.items():
                start = time.process_time()
                found[name] = vectors()
                spent[name].append(time.process_time() - start)
    best = {name: min(times[1:]) for name, times in spent.items()}
    for name, least in best.items():
        r = np.corrcoef(cosines(found["dialeval"]), cosines(found[name]))[0, 1]
        print(f"{name:<10} {best['dialeval'] / least:5.2f} times as fast as dialeval, r {r:.4f}")


if __name__ == "__main__":
    main()
