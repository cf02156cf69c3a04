"""A million samples through `length` and `distinct`: how long, and how much memory?

    python benchmarks/million.py [--samples 1000000] [--json]

Writes a file of made-up chats (seeded), scores it with the command that people type, in a process
of its own, and reports the highest memory that process had. The same is done with a tenth of the
samples: memory must not grow with the file.
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

WORDS = [f"word{i}" for i in range(20_000)]


def write_chats(path: Path, count: int) -> None:
    generator = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            record = {
                "id": f"s{i}",
                "system": f"bot{i % 3}",
                "context": [{"speaker": "user", "text": " ".join(generator.choices(WORDS, k=8))}],
                "response": " ".join(generator.choices(WORDS, k=generator.randint(3, 20))),
            }
            file.write(json.dumps(record) + "\n")


def measure(count: int, folder: Path) -> dict[str, float]:
    """Runs in a child that forks nothing else, so RUSAGE_CHILDREN is that of the command."""
    chats = folder / f"{count}.jsonl"
    write_chats(chats, count)
    command = [sys.executable, "-m", "dialeval", "score", str(chats), "-m", "length",
               "-m", "distinct", "-o", str(folder / f"run{count}"), "--quiet"]  # fmt: skip
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "samples": count,
        "file_mb": chats.stat().st_size / 1e6,
        "seconds": seconds,
        "per_second": count / seconds,
        "peak_mb": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # The small one first: the peak of all children can only rise.
        sizes = (arguments.samples // 10, arguments.samples)
        results = [measure(count, Path(folder)) for count in sizes]
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{'samples':>10} {'file MB':>9} {'seconds':>9} {'samples/s':>10} {'peak MB':>9}")
    for r in results:
        print(
            f"{r['samples']:>10,} {r['file_mb']:>9.0f} {r['seconds']:>9.1f}"
            f" {r['per_second']:>10,.0f} {r['peak_mb']:>9.0f}"
        )
    print(f"{os.cpu_count()} cores; memory for 10 times the samples:"
          f" {results[1]['peak_mb'] / results[0]['peak_mb']:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
