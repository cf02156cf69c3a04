"""How long does `dialeval score` take on ten dialogues, in units of `import torch`?

    python benchmarks/startup.py [--rounds 5] [-m METRIC ...] [--against OTHER/src]

Each start is a process of its own, with an empty answer cache, fetched models and compiled modules.
The commands take turns; the table shows the least processor time and clock of each, and the ratio
to `import torch`, which no command that asks a model can do without. `--against` puts another
version of dialeval beside this one, by the folder that holds its package.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import dialeval
from dialeval.examples import four_bots
from dialeval.storage import models_directory


def started(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Processor time and clock of one process."""
    with tempfile.TemporaryDirectory() as cache:
        before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, *command],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**environment, "DIALEVAL_CACHE": cache},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.perf_counter() - clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-m", "--metric", nargs="*", default=["judge", "length"])
    parser.add_argument("--against", type=Path, metavar="SRC")
    arguments = parser.parse_args()
    sources = {"": Path(dialeval.__file__).parents[1]}
    if arguments.against:
        sources[", the other version"] = arguments.against.resolve()
    with tempfile.TemporaryDirectory() as modules:
        # Compiled beside nobody's sources, and in every environment: as after an installation.
        plain = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        plain |= {"PYTHONPYCACHEPREFIX": modules, "DIALEVAL_MODELS": str(models_directory())}
        score = ["-m", "dialeval", "score", str(four_bots()), "--limit", "10", "-m"]
        commands = {"import torch": (["-c", "import torch"], plain)} | {
            f"-m {metric}{name}": ([*score, metric], plain | {"PYTHONPATH": str(source)})
            for metric in arguments.metric
            for name, source in sources.items()
        }
        rounds = [
            {name: started(*command) for name, command in commands.items()}
            for _ in range(arguments.rounds + 1)
        ][1:]  # the first compiles
    least = {name: [min(r[name][i] for r in rounds) for i in (0, 1)] for name in commands}
    unit = least["import torch"][0]
    print(f"{'':<32}{'processor s':>12}{'clock s':>9}{'x import torch':>16}")
    for name, (spent, clock) in least.items():
        print(f"{name:<32}{spent:>12.2f}{clock:>9.2f}{spent / unit:>16.2f}")


if __name__ == "__main__":
    main()
