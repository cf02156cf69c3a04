"""How much memory does a run take, and does it take more for more dialogues?

    python benchmarks/bounded_memory.py [--dialogues 10000]
    python benchmarks/bounded_memory.py --thirteen 600

The first scores 1/100 of the dialogues and then all of them, each in a process of its own, with
`full` and `coherence` on a tiny random Llama (the vocabulary of SmolLM2, one layer): what is
measured is what the engine holds, not what the weights weigh. Needs the model smollm2-135m, for its
tokenizer.

The second scores so many short turns with thirteen metrics and the embedded models, and prints the
peak of its resident memory, which must stay below 1.5 GB. On Linux it also prints what the process
held of its own and what was mapped from files (weights, libraries) when it held most. The turns are
made of the dialogues that come with dialeval. Most of the time goes into the 18 qualities of `fed`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dialeval.examples import four_bots
from dialeval.storage import models_directory

WORDS = ["the", "cat", "you", "I", "like", "tea", "music", "rain", "work", "why", "yes", "more"]


def save_tiny_model(directory: Path) -> None:
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from dialeval.model_store.locate import locate

    tokenizer = AutoTokenizer.from_pretrained(locate("smollm2-135m").directory)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=2048,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


THIRTEEN = [
    *("coherence", "fluency", "full", "fed", "bertscore", "embedding-average", "greedy-matching"),
    *("ruber", "bert-ruber", "pone", "mme-crs", "usl-h", "deep-am-fm"),
]

MOST_MEGABYTES = 1536


def write_short_turns(path: Path, count: int) -> None:
    """Turns that are made of the dialogues that come with dialeval."""
    generator = random.Random(0)
    rows = [json.loads(line) for line in four_bots().read_text("utf-8").splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            one, other = generator.choices(rows, k=2)
            begin = one["response"].split()[: generator.randint(3, 12)]
            end = other["response"].split()[-generator.randint(2, 8) :]
            row = {**one, "id": str(i), "response": " ".join([*begin, *end])}
            file.write(json.dumps(row) + "\n")


def held_by(process: int) -> dict[str, float]:
    """Megabytes of a process by kind; nothing where the system does not tell, or it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    except OSError:
        return {}
    kinds = {"RssAnon": "its own", "RssFile": "mapped"}
    rows = [line.split() for line in lines if line.split(":")[0] in kinds]
    return {kinds[name.rstrip(":")]: int(kilobytes) / 1024 for name, kilobytes, _ in rows}


def thirteen_metrics(folder: Path, count: int) -> tuple[float, dict[str, float]]:
    """Peak megabytes of a run with all of them, and of what kind they were about then; no answer is
    known before it."""
    turns = folder / "turns.jsonl"
    write_short_turns(turns, count)
    command = [sys.executable, "-m", "dialeval", "score", str(turns), "-q", "-o", str(folder / "r")]
    command += [part for metric in THIRTEEN for part in ("-m", metric)]
    caches = {"DIALEVAL_MODELS": str(models_directory()), "DIALEVAL_CACHE": str(folder / "cache")}
    most: dict[str, float] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | caches) as process:
        while process.poll() is None:
            most = max(most, held_by(process.pid), key=lambda held: sum(held.values()))
            time.sleep(0.2)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, most


def write_dialogues(path: Path, count: int) -> None:
    generator = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            turns = [" ".join(generator.choices(WORDS, k=12)) for _ in range(8)]
            file.write(json.dumps({"id": str(i), "context": turns[:-1], "response": turns[-1]}))
            file.write("\n")


def peak_megabytes(model: Path, folder: Path, count: int) -> float:
    dialogues = folder / f"{count}.jsonl"
    write_dialogues(dialogues, count)
    command = [sys.executable, "-m", "dialeval", "score", str(dialogues), "-q"]
    command += ["-m", f"full:model={model}", "-m", f"coherence:model={model}"]
    command += ["-o", str(folder / f"run{count}")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dialogues", type=int, default=10_000)
    parser.add_argument("--thirteen", type=int, metavar="TURNS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.thirteen:
            peak, kinds = thirteen_metrics(folder, arguments.thirteen)
            print(f"{len(THIRTEEN)} metrics, {arguments.thirteen:,} turns  {peak:,.0f} MB")
            for kind, megabytes in kinds.items():
                print(f"{megabytes:8,.0f} MB {kind}")
            sys.exit(peak > MOST_MEGABYTES)
        save_tiny_model(folder / "model")
        # The small one first: the peak of all children can only rise.
        for count in (arguments.dialogues // 100, arguments.dialogues):
            print(
                f"{count:>8,} dialogues  {peak_megabytes(folder / 'model', folder, count):,.0f} MB"
            )


if __name__ == "__main__":
    main()
