"""Many questions about a dialogue in one forward pass, against one pass per question.

    python benchmarks/one_pass.py [--items 24] [--all-items 4] [--dialogues 2] [--json]

Same model, same data, same run. The naive side does what the reference implementations do: one
question, one forward pass, logits at every position. The questions are those that the metrics ask:

    follow-ups  FULL's five follow-ups on turns of FED
    all         coherence, fluency, full, fed (63 follow-ups) and follow-up-contrast together
    every turn  coherence and full at every system turn of dialogues of 20 turns

`tokens` are those that went through the model, beside the fewest that an exact computation needs.
`of peak` is the share of the machine's matrix multiplication, measured here, that the weights and
the head account for; attention is work too but not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM

import dialeval
from dialeval.model_store.locate import locate
from dialeval.models.causal_lm import CausalLM, TokenCounts, load, plain_log_probs
from dialeval.models.loading import silence
from dialeval.question import Likelihood, Question
from dialeval.registry import make_metrics
from dialeval.sample import Sample, Turn

TURNS = 20


def ask(metrics: Sequence[str], samples: Sequence[Sample], model: str) -> list[Question]:
    """Every question of these metrics, each once."""
    made = make_metrics([f"{spec}{',' if ':' in spec else ':'}model={model}" for spec in metrics])
    return list(dict.fromkeys(q for metric in made for s in samples for q in metric.ask(s)))


def long_dialogues(samples: Sequence[Sample], count: int) -> Iterator[list[Turn]]:
    """Dialogues of 20 turns, users and systems alternating, from those of FED put end to end."""
    texts = (turn.text for sample in samples for turn in sample.turns)
    for _ in range(count):
        yield [Turn(text, ("user", "system")[n % 2]) for n, text in enumerate(islice(texts, TURNS))]


def system_turns(dialogue: Sequence[Turn]) -> Iterator[Sample]:
    for n in range(1, len(dialogue), 2):
        yield Sample(id=str(n), context=tuple(dialogue[:n]), response=dialogue[n].text)


def matmul_peak(size: int = 3072, tries: int = 5) -> float:
    """The best floating-point operations per second of a large 32-bit product."""
    first, second = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(tries):
        started = time.perf_counter()
        torch.mm(first, second)
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def weights(model: torch.nn.Module) -> tuple[int, int]:
    """Numbers that every token is multiplied with, and those of the head."""
    head = model.get_output_embeddings().weight.numel()
    looked_up = {
        id(p) for m in model.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()
    }
    body = sum(p.numel() for p in model.base_model.parameters() if id(p) not in looked_up)
    return body, head


def run_naive(model: torch.nn.Module, lm: CausalLM, questions: Sequence[Question]):
    started = time.perf_counter()
    found, tokens = [], 0
    for number, question in enumerate(questions):
        assert isinstance(question, Likelihood)
        written = lm.writer.write(question)
        tokens += len(written.ids)
        found.append(plain_log_probs(model, written))
        if number % 50 == 49:
            print(f"    naive: {number + 1} of {len(questions)}", file=sys.stderr, flush=True)
    return found, tokens, time.perf_counter() - started


def run_packed(lm: CausalLM, questions: Sequence[Question], tries: int):
    """The median of several tries: the whole call, from text to answers."""
    seconds = []
    for _ in range(tries):
        lm.counts = TokenCounts()
        started = time.perf_counter()
        answers = dict(lm.answer(questions))
        seconds.append(time.perf_counter() - started)
    return answers, float(np.median(seconds))


def compare(name: str, questions: list[Question], plain, lm: CausalLM, tries: int) -> dict:
    print(f"{name}: {len(questions)} questions", file=sys.stderr, flush=True)
    answers, packed = run_packed(lm, questions, tries)
    print(f"    one pass: {packed:.1f} s", file=sys.stderr, flush=True)
    found, tokens, naive = run_naive(plain, lm, questions)
    body, head = weights(plain)
    peak = matmul_peak()
    work = 2 * (body * lm.counts.computed + head * lm.counts.predicted)
    return {
        "name": name,
        "questions": len(questions),
        "naive_seconds": naive,
        "packed_seconds": packed,
        "times_faster": naive / packed,
        "naive_tokens": tokens,
        "computed_tokens": lm.counts.computed,
        "minimum_tokens": lm.counts.minimum,
        "peak_gflops": peak / 1e9,
        "naive_share_of_peak": 2 * (body + head) * tokens / naive / peak,
        "packed_share_of_peak": work / packed / peak,
        "largest_difference": max(
            float(np.nanmax(np.abs(answers[n][1:, 0] - values), initial=0.0))
            for n, values in enumerate(found)
        ),
    }


def show(rows: Sequence[dict]) -> None:
    print(
        f"{'':12}{'questions':>10}{'naive':>9}{'one pass':>10}{'faster':>8}{'tokens: naive':>15}"
        f"{'read':>8}{'least':>8}{'of peak':>9}{'differs':>10}"
    )
    for row in rows:
        print(
            f"{row['name']:12}{row['questions']:10}{row['naive_seconds']:8.1f}s"
            f"{row['packed_seconds']:9.1f}s{row['times_faster']:7.1f}x{row['naive_tokens']:15}"
            f"{row['computed_tokens']:8}{row['minimum_tokens']:8}"
            f"{row['packed_share_of_peak']:9.0%}{row['largest_difference']:10.1e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    data = Path(os.environ.get("DIALEVAL_DATA") or here) / "rated" / "fed" / "fed_data.json"
    parser.add_argument("--data", type=Path, default=data, help="fed_data.json")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--items", type=int, default=24, help="turns for FULL's follow-ups")
    parser.add_argument("--all-items", type=int, default=4, help="turns for all questions")
    parser.add_argument("--dialogues", type=int, default=2, help="dialogues of 20 turns")
    parser.add_argument("--tries", type=int, default=3, help="repeats of the one-pass side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    directory = locate(options.model).directory
    samples = [s for s in dialeval.load(options.data) if s.level == "turn"]
    with silence():
        plain = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    lm = load(directory, device="cpu")
    every_turn = [
        sample
        for dialogue in long_dialogues(samples[::7], options.dialogues)
        for sample in system_turns(dialogue)
    ]
    everything = ["coherence", "fluency", "full", "fed", "follow-up-contrast"]
    questions = {
        "follow-ups": ask(["full"], samples[: options.items], options.model),
        "all": ask(everything, samples[: options.all_items], options.model),
        "every turn": ask(["coherence:layout=lines", "full"], every_turn, options.model),
    }
    rows = [compare(name, asked, plain, lm, options.tries) for name, asked in questions.items()]
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
