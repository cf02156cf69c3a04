"""How well do the metrics of some runs agree with people? Spearman's rho with the mean rating.

    dialeval score fed_data.json -m length -m full -m follow-up-contrast -o runs/fed
    python benchmarks/agreement.py runs/fed [--quality Overall] [--json]

One row for each run, level, quality and metric; `n` samples had both a score and a rating.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from typing import Any

import dialeval
from dialeval.agreement.correlation import spearman


def rows_of(directory: str, wanted: set[str]) -> list[dict[str, Any]]:
    run = dialeval.open_run(directory)
    ratings: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    positions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, sample in enumerate(run.samples()):
        for quality, rating in sample.ratings.items():
            if not wanted or quality in wanted:
                ratings[sample.level, quality].append(rating.mean)
                positions[sample.level, quality].append(position)
    found = []
    for label in run.metrics:
        scores = run.scores(label)
        for (level, quality), means in ratings.items():
            values = [scores[position] for position in positions[level, quality]]
            correlation = spearman(values, means)
            found.append(
                {
                    "run": directory,
                    "level": level,
                    "quality": quality,
                    "metric": label,
                    "n": correlation.n,
                    "spearman": correlation.value,
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--quality", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [row for run in arguments.runs for row in rows_of(run, set(arguments.quality))]
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        value = "-" if row["spearman"] is None else f"{row['spearman']:.3f}"
        print(
            f"{row['run']:<24} {row['level']:<9} {row['quality']:<24} {row['metric']:<40}"
            f" {row['n']:>6} {value:>7}"
        )


if __name__ == "__main__":
    main()
