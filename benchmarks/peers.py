"""Each job against the package that people use for it: the ratio in one run, same data and weights.

    python benchmarks/peers.py [NAME ...] [--pairs 100000] [--encoded 2000] [--dialogues 12]
                               [--rounds 3] [--threads 1] [--json]
    python benchmarks/peers.py --example     # about a minute, on the bundled conversations

    rouge bleu chrf   every pair by itself, against rouge-score and sacrebleu
    bertscore vectors all-MiniLM-L6-v2, against bert-score and sentence-transformers
    full              SmolLM2-135M, against one forward pass per follow-up
    full-blenderbot   the same on a random encoder-decoder with the sizes of BlenderBot-400M-distill
    bootstrap         Pearson, Spearman, tau-b with intervals, against a loop of scipy
    permutation       PERM-BOTH, against a loop as in nlpstats and mt-metrics-eval

Texts are turns of DailyDialog (DIALEVAL_DATA), each paired with the turn before. Both sides take
turns, the fastest round of each counts. A package or a model that is absent is named and skipped.
The column "differs" is the largest difference of a score; for the bootstrap it is that of interval
widths and for the permutation test that of p values, which are random on both sides.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import contests
from contests import Contest, Outcome, Pair, Skipped, hold

from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn

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
    import torch
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    from dialeval.training.learners.seq2seq import build_tokenizer

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


def different(pairs: list[Pair]) -> list[Pair]:
    """No text twice: both sides would encode it once only."""
    return [(f"{one} {number}", f"{other} {number}") for number, (one, other) in enumerate(pairs)]


def makers(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    """What makes each contest: fails with ImportError where the peer is not installed, with a
    UsageError where a model is absent."""
    if options.example:
        pairs = contests.example_pairs(2000)
        encoded = different(contests.example_pairs(100))
        vectors = [text for pair in encoded for text in pair]
        judged = contests.example_dialogues(3)
        items, resampled = 1000, 500
    else:
        talks = dialogues(options.data)
        pairs, encoded = turn_pairs(talks, options.pairs), turn_pairs(talks, options.encoded)
        vectors = [text for text, _ in encoded]
        judged = whole(talks, options.dialogues)
        items, resampled = options.items, 1000
    found: dict[str, Callable[[], Contest]] = {
        "rouge": lambda: contests.rouge(pairs),
        "bleu": lambda: contests.bleu(pairs),
        "chrf": lambda: contests.chrf(pairs),
        "bertscore": lambda: contests.bertscore(encoded),
        "vectors": lambda: contests.embeddings(vectors),
        "full": lambda: contests.full_causal(judged),
        "bootstrap": lambda: contests.bootstrap_correlation(items, resampled),
        "permutation": lambda: contests.permutation_test(items, resampled),
        "permutation-spearman": lambda: contests.permutation_test(items, resampled, "spearman"),
    }
    if not options.example:
        found["full-blenderbot"] = lambda: contests.full_seq2seq(judged, *blenderbot(talks))
    return found


def measure(
    made: Mapping[str, Callable[[], Contest]], names: Sequence[str], rounds: int
) -> tuple[list[Outcome], list[Skipped]]:
    outcomes: list[Outcome] = []
    skipped: list[Skipped] = []
    for name in names:
        try:
            outcomes.append(hold(made[name](), rounds))
            print(f"{name}: {outcomes[-1].times_faster:.2f}", file=sys.stderr, flush=True)
        except ImportError as error:
            skipped.append(Skipped(name, f"{error.name or error} is not installed"))
        except UsageError as error:
            skipped.append(Skipped(name, str(error)))
    return outcomes, skipped


def show(outcomes: list[Outcome], skipped: list[Skipped]) -> None:
    print("| what | against | faster | processor | ours s | theirs s | differs |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for one in outcomes:
        print(
            f"| {one.name} | {one.peer} | {one.times_faster:.1f} | {one.times_less_processor:.1f}"
            f" | {one.our_seconds:.2f} | {one.peer_seconds:.2f} | {one.difference:.0e} |"
        )
    for absent in skipped:
        print(f"skipped: {absent.name}: {absent.reason}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    parser.add_argument("names", nargs="*")
    parser.add_argument("--example", action="store_true", help="small, on the bundled example")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DIALEVAL_DATA") or here))
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--encoded", type=int, default=2000)
    parser.add_argument("--dialogues", type=int, default=12)
    parser.add_argument("--items", type=int, default=1000, help="for the statistics")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    # Peers remark on what they load, and look for news of it on the network.
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
    logging.disable(logging.WARNING)
    set_threads(options.threads)
    made = makers(options)
    if unknown := set(options.names) - made.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}. There are: {', '.join(made)}")
    outcomes, skipped = measure(made, options.names or list(made), options.rounds)
    if not options.json:
        return show(outcomes, skipped)
    record = {
        "python": platform.python_version(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "contests": [one.to_record() for one in outcomes],
        "skipped": [one.to_record() for one in skipped],
    }
    return print(json.dumps(record, indent=2))


def set_threads(threads: int) -> None:
    try:
        import torch
    except ImportError:  # string metrics and statistics have no threads
        return
    torch.set_num_threads(threads)


if __name__ == "__main__":
    main()
