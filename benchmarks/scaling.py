"""How time and memory grow: with turns, with the length of dialogues, with processes.

    python benchmarks/scaling.py [--metric full] [--turns 1000 10000] [--model DIR] [--json]

    turns      dialogues of 5 turns; `turns` system turns are judged in all
    length     dialogues of 5, 20 and 80 turns, every system turn judged, the same number of turns
    processes  the same file halved over two processes, one thread each, against one process

Every row is a process of its own (`dialeval score`), whose highest memory is reported. By default
the model is a random Llama of two layers: what is measured is dialeval, not the model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = ["the", "you", "we", "do", "not", "what", "yes", "maybe", "music", "train", "food", "home"]


def write_dialogues(path: Path, judged: int, length: int) -> None:
    """Every second turn is the system's and is judged."""
    rng = random.Random(0)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(4, 12)))

    written = 0
    with path.open("w", encoding="utf-8") as file:
        number = 0
        while written < judged:
            turns = [text() for _ in range(length)]
            for n in range(1, length, 2):
                context = [
                    {"speaker": ("user", "system")[i % 2], "text": turns[i]} for i in range(n)
                ]
                row = {"id": f"{number}/{n}", "context": context, "response": turns[n]}
                file.write(json.dumps(row) + "\n")
                written += 1
                if written == judged:
                    return
            number += 1


def make_model(directory: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    from dialeval.training.learners.seq2seq import build_tokenizer

    tokenizer = build_tokenizer([WORDS], 512)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def start(file: Path, metric: str, out: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"DIALEVAL_CACHE": str(out / "cache"), "OMP_NUM_THREADS": "1"}
    models = Path.home() / ".cache" / "dialeval" / "models"
    environment.setdefault("DIALEVAL_MODELS", str(models))
    command = [sys.executable, "-m", "dialeval", "score", str(file), "-m", metric, "-q"]
    return subprocess.Popen(
        [*command, "-o", str(out / "run")], env=environment, stdout=subprocess.DEVNULL
    )


def finish(jobs: list[subprocess.Popen[bytes]]) -> tuple[float, float]:
    """Processor seconds and the highest memory (MB) of processes that were started."""
    seconds, peak = 0.0, 0.0
    for job in jobs:
        _, status, usage = os.wait4(job.pid, 0)
        if status:
            raise SystemExit(f"a process failed with status {status}")
        seconds += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss / 1024)
    return seconds, peak


def measure(name: str, files: list[Path], metric: str, turns: int) -> dict[str, float | str]:
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        jobs = [start(file, metric, Path(place) / str(n)) for n, file in enumerate(files)]
        processor, peak = finish(jobs)
        seconds = time.perf_counter() - started
    row: dict[str, float | str] = {
        "name": name,
        "turns": turns,
        "seconds": seconds,
        "processor_seconds": processor,
        "turns_per_second": turns / seconds,
        "peak_mb": peak,
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--metric", default="full")
    parser.add_argument("--turns", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--lengths", type=int, nargs="+", default=[5, 20, 80])
    parser.add_argument("--model", type=Path, help="instead of the random Llama")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        directory = options.model or Path(place) / "llama"
        if options.model is None:
            make_model(directory)
        metric = f"{options.metric}:model={directory}"
        file = Path(place) / "dialogues.jsonl"
        for turns in options.turns:
            write_dialogues(file, turns, 5)
            rows.append(measure(f"{turns:,} turns", [file], metric, turns))
        turns = min(options.turns)
        for length in options.lengths:
            write_dialogues(file, turns, length)
            rows.append(measure(f"dialogues of {length}", [file], metric, turns))
        turns = sorted(options.turns)[len(options.turns) // 2]
        write_dialogues(file, turns, 5)
        lines = file.read_text("utf-8").splitlines(keepends=True)
        halves = [Path(place) / f"half{n}.jsonl" for n in range(2)]
        for n, half in enumerate(halves):
            half.write_text("".join(lines[n * turns // 2 : (n + 1) * turns // 2]), "utf-8")
        rows.append(measure("1 process", [file], metric, turns))
        rows.append(measure("2 processes", halves, metric, turns))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("| what | turns | seconds | processor s | turns/s | peak MB |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row['name']} | {row['turns']:,} | {row['seconds']:.1f}"
            f" | {row['processor_seconds']:.1f} | {row['turns_per_second']:.0f}"
            f" | {row['peak_mb']:.0f} |"
        )


if __name__ == "__main__":
    main()
