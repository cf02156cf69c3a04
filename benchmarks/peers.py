"""Each job against the package that people use for it: the ratio in one run, same data and weights.

    python benchmarks/peers.py [NAME ...] [--pairs 100000] [--encoded 2000] [--dialogues 12]
                               [--rounds 3] [--threads 1] [--json]

    rouge bleu chrf   every pair by itself, against rouge-score and sacrebleu
    bertscore vectors all-MiniLM-L6-v2, against bert-score and sentence-transformers
    full              SmolLM2-135M, against one forward pass per follow-up
    full-blenderbot   the same on a random encoder-decoder with the sizes of BlenderBot-400M-distill
    bootstrap         Pearson, Spearman, tau-b with intervals, against a loop of scipy
    permutation       PERM-BOTH, against a loop as in nlpstats and mt-metrics-eval

Texts are turns of DailyDialog (DIALEVAL_DATA), each paired with the turn before. Ours and theirs
take turns, the fastest round of each counts. `dialeval bench` holds the same contests, smaller, on
the bundled example.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from dialeval.sample import Sample, Turn
from dialeval.speed import encoding, likelihood, overlap, resampling
from dialeval.speed.contest import Contest, Outcome, hold
from dialeval.speed.texts import Pair

BLENDERBOT_400M = {
    "vocab_size": 8008,
    "d_model": 1280,
    "encoder_layers": 2,
    "decoder_layers": 12,
    "encoder_ffn_dim": 5120,
    "decoder_ffn_dim": 5120,
    "encoder_attention_heads": 32,
    "decoder_attention_heads": 32,
    "max_position_embeddings": 128,
}


def dialogues(data: Path) -> list[list[str]]:
    file = data / "corpora" / "dailydialog" / "train" / "dialogues_train.txt"
    with file.open(encoding="utf-8") as lines:
        split = ([turn.strip() for turn in line.split("__eou__")] for line in lines)
        return [[turn for turn in turns if turn] for turns in split]


def turn_pairs(talks: list[list[str]], count: int) -> list[Pair]:
    """Neighbours first, then turns that are two apart, and so on: no pair comes twice."""
    pairs = (
        pair
        for apart in range(1, 10)
        for turns in talks
        for pair in zip(turns[apart:], turns, strict=False)
    )
    found = list(islice(pairs, count))
    if len(found) < count:
        raise SystemExit(f"the data have {len(found):,} pairs, {count:,} are wanted")
    return found


def whole(talks: list[list[str]], count: int) -> list[Sample]:
    """Dialogues up to their last turn but one, which is judged."""
    chosen = [turns for turns in talks if 4 <= len(turns) <= 10][:count]
    return [
        Sample(
            id=str(number),
            context=tuple(Turn(text, ("user", "system")[n % 2]) for n, text in enumerate(before)),
            response=response,
        )
        for number, (*before, response) in enumerate(chosen)
    ]


def blenderbot(talks: list[list[str]]) -> tuple[Any, Any]:
    """Random weights take as long as learned ones."""
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    from dialeval.training.vocabulary import build_tokenizer

    tokenizer = build_tokenizer(talks[:2000], BLENDERBOT_400M["vocab_size"], window=128)
    tokens = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.bos_token_id,
    }
    torch.manual_seed(0)
    config = BlenderbotConfig(**BLENDERBOT_400M, **tokens)
    return BlenderbotForConditionalGeneration(config).eval(), tokenizer


def contests(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    talks = dialogues(options.data)
    pairs = turn_pairs(talks, options.pairs)
    some = turn_pairs(talks, options.encoded)
    judged = whole(talks, options.dialogues)
    return {
        "rouge": lambda: overlap.rouge(pairs),
        "bleu": lambda: overlap.bleu(pairs),
        "chrf": lambda: overlap.chrf(pairs),
        "bertscore": lambda: encoding.bertscore(some),
        "vectors": lambda: encoding.embeddings([text for text, _ in some]),
        "full": lambda: likelihood.full_causal(judged),
        "full-blenderbot": lambda: likelihood.full_seq2seq(judged, *blenderbot(talks)),
        "bootstrap": lambda: resampling.bootstrap_correlation(options.items, 1000),
        "permutation": lambda: resampling.permutation_test(options.items, 1000),
        "permutation-spearman": lambda: resampling.permutation_test(
            options.items, 1000, "spearman"
        ),
    }


def show(outcomes: list[Outcome]) -> None:
    print("| what | against | faster | processor | ours s | theirs s | differs |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for one in outcomes:
        print(
            f"| {one.name} | {one.peer} | {one.times_faster:.1f} | {one.times_less_processor:.1f}"
            f" | {one.our_seconds:.2f} | {one.peer_seconds:.2f} | {one.difference:.0e} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DIALEVAL_DATA") or here))
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--encoded", type=int, default=2000)
    parser.add_argument("--dialogues", type=int, default=12)
    parser.add_argument("--items", type=int, default=1000, help="for the statistics")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    makers = contests(options)
    if unknown := set(options.names) - makers.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}. There are: {', '.join(makers)}")
    outcomes = []
    for name in options.names or makers:
        outcomes.append(hold(makers[name](), options.rounds))
        print(f"{name}: {outcomes[-1].times_faster:.2f}", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([one.to_record() for one in outcomes], indent=2))
    else:
        show(outcomes)


if __name__ == "__main__":
    main()
