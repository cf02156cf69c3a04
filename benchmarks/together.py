"""Where does the time of a run with thirteen metrics go?

    OMP_NUM_THREADS=1 python benchmarks/together.py [--turns 40]

Scores short turns with the metrics of `bounded_memory.py --thirteen` and an empty answer cache,
under a profiler that counts processor time, and prints the share of each part of the work. Parts
do not overlap, but for the products, which are inside the two kinds of models.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bounded_memory import THIRTEEN, write_short_turns

import dialeval
from dialeval.storage import models_directory

PARTS = {
    "language models (two, SmolLM2-135M)": ("causal_lm.py", "log_probs"),
    "encoders (eight on MiniLM)": ("networks/bert.py", "forward"),
    "loading of models, import of torch": ("models/source.py", "load"),
    "keys of questions": ("question.py", "key"),
    "answer cache": ("engine/answers.py", ("get", "put")),
}
"""What is printed -> file and function whose time, with all that it calls, counts."""

PRODUCTS = ("torch._C._nn.linear", "torch.addmm")


def shares(profile: pstats.Stats) -> dict[str, float]:
    """Share of the processor time of each part."""
    timings: Mapping[tuple[str, int, str], Any] = profile.stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in timings.values())
    found = {}
    for part, (file, names) in PARTS.items():
        wanted = (names,) if isinstance(names, str) else names
        # The same name several times in one file: the outermost call holds the others.
        seconds = [
            row[3]
            for (path, _, name), row in timings.items()
            if path.endswith(file) and name in wanted
        ]
        found[part] = max(seconds, default=0.0) / total
    products = sum(
        row[2] for (_, _, name), row in timings.items() if any(one in name for one in PRODUCTS)
    )
    return found | {"products with weights, of all": products / total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=40)
    arguments = parser.parse_args()
    os.environ["DIALEVAL_MODELS"] = str(models_directory())
    with tempfile.TemporaryDirectory() as name:
        os.environ["DIALEVAL_CACHE"] = name
        turns = Path(name) / "turns.jsonl"
        write_short_turns(turns, arguments.turns)
        profiler = cProfile.Profile(time.process_time)
        profiler.runcall(dialeval.score, dialeval.load(turns), THIRTEEN)
    profile = pstats.Stats(profiler)
    print(f"{arguments.turns} turns, {len(THIRTEEN)} metrics")
    for part, share in shares(profile).items():
        print(f"{share:6.1%}  {part}")


if __name__ == "__main__":
    main()
