"""Which model finds the answers that people called inconsistent? (HolisticEval, section 5.4)

    python scripts/measure_contradictions.py                            # the embedded ones
    python scripts/measure_contradictions.py MODEL ...                  # others of `train nli`
    python scripts/measure_contradictions.py --onnx DIR --conflict 1    # a model for onnxruntime
    python scripts/measure_contradictions.py --decode dailydialog,empathetic,personachat

A row for each model: on each of the three self-consistency sets, how often an answer that ten
people found inconsistent (mean below 3 of 5) scores below one that they found consistent. .5 is
chance. Three ways to read a sample:

    mean, last  pairs of what the speaker said before and the response, by an inference model: the
                mean over the pairs (the paper), or the last pair alone (the released code)
    dialogue    the response after the whole dialogue, by the judge's aspect `consistency`

--decode measures something else: in which share of the held-out tenth of DECODE, and of as many
consistent turns of one speaker in these corpora, the model tells a contradiction (above .5) from
none. They are the pairs that `dialeval train nli --dialogues` keeps out; .5 is chance.

DIR holds one .onnx file and a tokenizer.json; `--conflict` is the output that stands for a
contradiction. The package onnxruntime is needed for it, and is no dependency of dialeval.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import dialeval
from dialeval.cli.terminal import print_table
from dialeval.engine.answers import Answerer
from dialeval.metrics.consistency import compared
from dialeval.metrics.judge import assessed
from dialeval.models.source import Models
from dialeval.question import ASPECTS, NLI_LABELS, Inference
from dialeval.sample import Sample
from dialeval.studies.holistic_released import area
from dialeval.training.learners.inference import InferencePair, add_decode, load_inference_pairs

NLI = Path("nli")
SHIPPED = ("minilm-l6-nli", "mpnet-nli")
SETS = ("holistic/consistency", "holistic/consistency-ws", "holistic/consistency-ctg")
JUDGES = ("judge-corpus-minilm-l6", "judge-corpus-mpnet")

Pairs = Sequence[tuple[str, str]]
Reads = Callable[[Pairs], Sequence[float]]
"""Premises and hypotheses -> how likely each pair is a contradiction."""


def by_inference(model: str) -> Reads:
    def read(pairs: Pairs) -> list[float]:
        questions = [Inference(model, *pair) for pair in pairs]
        found = Answerer(Models("cpu"), None).answer(questions)
        return [float(found[question][0]) for question in questions]

    return read


def by_onnx(directory: Path, conflict: int) -> Reads:
    import onnxruntime
    from tokenizers import Tokenizer

    [file] = directory.glob("*.onnx")
    session = onnxruntime.InferenceSession(str(file))
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    length = session.get_inputs()[0].shape[1]
    fixed = length if isinstance(length, int) else None
    tokenizer.enable_truncation(fixed or 256)
    tokenizer.enable_padding(length=fixed)

    def read(pairs: Pairs) -> list[float]:
        found: list[float] = []
        for start in range(0, len(pairs), 16):
            encoded = tokenizer.encode_batch(list(pairs[start : start + 16]))
            rows = {
                "input_ids": np.array([one.ids for one in encoded]),
                "attention_mask": np.array([one.attention_mask for one in encoded]),
                "token_type_ids": np.array([one.type_ids for one in encoded]),
            }
            wanted = {one.name: rows[one.name] for one in session.get_inputs()}
            logits = session.run(None, wanted)[0]
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            found += (weights[:, conflict] / weights.sum(axis=1)).tolist()
        return found

    return read


def areas_of_pairs(read: Reads, samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """The areas of the mean over the pairs, and of the last pair."""
    pairs = [[(one, other) for _, one, other in compared(sample)] for sample in samples]
    flat = iter(read([pair for own in pairs for pair in own]))
    found = [[next(flat) for _ in own] for own in pairs]
    means = [1.0 - sum(own) / len(own) if own else None for own in found]
    lasts = [1.0 - own[-1] if own else None for own in found]
    ratings = [sample.ratings["consistency"].mean for sample in samples]
    return area(means, ratings), area(lasts, ratings)


def held_out_of_decode(corpora: str, most: int | None) -> Sequence[InferencePair]:
    # What is learned from beside DECODE changes nothing in what is held out of it.
    pairs = load_inference_pairs(NLI, ["mnli"])
    with_decode = add_decode(pairs, NLI, [Path(name) for name in corpora.split(",")])
    return with_decode.at_most(most).held_out["decode"]


def share_told(read: Reads, pairs: Sequence[InferencePair]) -> float:
    """How many pairs are told right: above .5 a contradiction, else none."""
    found = read([(pair.premise, pair.hypothesis) for pair in pairs])
    contradiction = NLI_LABELS.index("contradiction")
    right = [
        (value > 0.5) == (pair.label == contradiction)
        for value, pair in zip(found, pairs, strict=True)
    ]
    return sum(right) / len(right)


def area_of_dialogues(judge: str, samples: Sequence[Sample]) -> float | None:
    questions = [assessed(sample, judge) for sample in samples]
    found = Answerer(Models("cpu"), None).answer(questions)
    place = ASPECTS.index("consistency")
    ratings = [sample.ratings["consistency"].mean for sample in samples]
    return area([float(found[question][0][place]) for question in questions], ratings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", default=SHIPPED)
    parser.add_argument("--onnx", type=Path, help="ask the model in this directory instead")
    parser.add_argument("--conflict", type=int, default=0, help="its output for a contradiction")
    parser.add_argument("--decode", metavar="CORPORA", help="measure on DECODE and these corpora")
    parser.add_argument("--pairs", type=int, help="draw this many pairs of DECODE; default: all")
    given = parser.parse_args()
    if given.onnx:
        readers = {given.onnx.name: by_onnx(given.onnx, given.conflict)}
    else:
        readers = {model: by_inference(model) for model in given.models}
    if given.decode:
        pairs = held_out_of_decode(given.decode, given.pairs)
        told = [[name, _text(share_told(read, pairs))] for name, read in readers.items()]
        print_table(["model", f"contradiction or not, {len(pairs):,} pairs"], told)
        return
    sets = [list(dialeval.load(name)) for name in SETS]
    rows = []
    for name, read in readers.items():
        areas = [areas_of_pairs(read, samples) for samples in sets]
        for way, place in (("mean", 0), ("last", 1)):
            rows.append([name, way, *(_text(both[place]) for both in areas)])
    for judge in () if given.onnx else JUDGES:
        areas = [area_of_dialogues(judge, samples) for samples in sets]
        rows.append([judge, "dialogue", *map(_text, areas)])
    print_table(["model", "reads", *SETS], rows)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
