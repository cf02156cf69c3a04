"""A million pairs, a thousand bootstrap rounds: how long, and how much memory?

    python benchmarks/bootstrap.py [--pairs 1000000] [--rounds 1000] [--workers 2] [--json]
    python benchmarks/bootstrap.py --coverage [--simulations 400]

Pearson, Spearman and Kendall's tau-b with their intervals, of scores against grades from 1 to 5
(much tied), against means of three raters, and against scores without ties. Each case has a process
of its own, whose highest memory is reported. Beside it one round as it is usually written: scipy on
the drawn items. A round is measured in processor time (of all threads), which other work on the
machine disturbs less than the clock; both sides in the same run.

--coverage counts how often a 95 % interval holds the true correlation, for several distributions.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap
from dialeval.agreement.correlation import NAMES, correlations

CASES = ("grades", "means of 3 raters", "no ties")
SCIPY_ROUNDS = 3


def made_up(case: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    quality = rng.normal(size=n)
    scores = quality + rng.normal(size=n)
    if case == "no ties":
        return scores, quality
    raters = 1 if case == "grades" else 3
    grades = [np.clip(np.round(quality + rng.normal(size=n) + 3), 1, 5) for _ in range(raters)]
    return scores, np.round(np.mean(grades, axis=0), 9)


def measure(case: str, n: int, rounds: int, workers: int) -> dict[str, float | str]:
    """Runs in a process of its own: ru_maxrss is then the peak of this case alone."""
    x, y = made_up(case, n)
    told: list[int] = []
    started, processor = time.perf_counter(), time.process_time()
    bootstrap = Bootstrap(
        np.random.default_rng(1),
        rounds,
        workers=workers,
        progress=lambda done, total: told.append(done),
    )
    correlations(x, y, bootstrap)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "case": case,
        "seconds": seconds,
        "per_round": processor / rounds,
        "peak_mb": peak,
        "progress_reports": len(told),
        "scipy_per_round": scipy_round(x, y),
    }


def scipy_round(x: np.ndarray, y: np.ndarray) -> float:
    from scipy import stats

    rng = np.random.default_rng(2)
    started = time.process_time()
    for _ in range(SCIPY_ROUNDS):
        drawn = rng.integers(0, len(x), size=len(x))
        for function in (stats.pearsonr, stats.spearmanr, stats.kendalltau):
            function(x[drawn], y[drawn])
    return (time.process_time() - started) / SCIPY_ROUNDS


# -- coverage -------------------------------------------------------------------------------------

Sides = tuple[np.ndarray, np.ndarray]


def distributions() -> dict[str, tuple[object, object]]:
    """Name -> what becomes of two normal sides with correlation rho; the third draws noise."""

    def grade(values: np.ndarray) -> np.ndarray:
        return np.clip(np.round(values + 3), 1, 5)

    def rated(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> Sides:
        noise = 0.7 * rng.normal(size=(3, len(b)))
        return a, np.mean([grade(b + one) for one in noise], axis=0)

    def heavy(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> Sides:
        stretch = np.sqrt(5 / rng.chisquare(5, size=len(a)))
        return a * stretch, b * stretch

    return {
        "normal": lambda a, b, rng: (a, b),
        "grades": lambda a, b, rng: (grade(a), grade(b)),
        "means of 3 raters": rated,
        "Student's t, 5 degrees": heavy,
        "log-normal, sigma .5": lambda a, b, rng: (np.exp(a / 2), np.exp(b / 2)),
        "log-normal, sigma 1": lambda a, b, rng: (np.exp(a), np.exp(b)),
    }


def coverage(simulations: int) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    rng = np.random.default_rng(3)
    for name, made in distributions().items():
        for rho in (0.0, 0.5, 0.9):
            truth = true_values(made, rho)
            for n in (50, 200):
                covered = dict.fromkeys(NAMES, 0)
                for _ in range(simulations):
                    found = correlations(
                        *made(*normal_sides(rho, n, rng), rng), Bootstrap(rng, 300)
                    )
                    for kind, one in found.items():
                        if one.low is not None and one.high is not None:
                            covered[kind] += one.low <= truth[kind] <= one.high
                rows.append(
                    {"distribution": name, "rho": rho, "n": n}
                    | {kind: count / simulations for kind, count in covered.items()}
                )
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


def normal_sides(rho: float, n: int, rng: np.random.Generator) -> Sides:
    a = rng.normal(size=n)
    return a, rho * a + math.sqrt(1 - rho**2) * rng.normal(size=n)


def true_values(made: object, rho: float) -> dict[str, float]:
    """From four million draws (one million for Kendall, which takes longest)."""
    rng = np.random.default_rng(4)
    x, y = made(*normal_sides(rho, 4_000_000, rng), rng)
    found = correlations(x, y, names=["pearson", "spearman"])
    found |= correlations(x[:1_000_000], y[:1_000_000], names=["kendall"])
    return {name: one.value or 0.0 for name, one in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.coverage:
        rows = coverage(arguments.simulations)
        print(json.dumps(rows, indent=2) if arguments.json else coverage_table(rows))
    elif arguments.case:
        measured = measure(arguments.case, arguments.pairs, arguments.rounds, arguments.workers)
        print(json.dumps(measured))
    else:
        rows = [in_a_process(case, arguments) for case in CASES]
        print(json.dumps(rows, indent=2) if arguments.json else speed_table(rows))


def in_a_process(case: str, arguments: argparse.Namespace) -> dict[str, float | str]:
    command = [sys.executable, __file__, "--case", case]
    for option in ("pairs", "rounds", "workers"):
        command += [f"--{option}", str(getattr(arguments, option))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def speed_table(rows: list[dict[str, float | str]]) -> str:
    lines = [
        "| ratings | seconds | ms per round | scipy, ms per round | times faster | peak MB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['case']} | {row['seconds']:.0f} | {1000 * row['per_round']:.0f}"
            f" | {1000 * row['scipy_per_round']:.0f}"
            f" | {row['scipy_per_round'] / row['per_round']:.0f} | {row['peak_mb']:.0f} |"
        )
    return "\n".join(lines)


def coverage_table(rows: list[dict[str, float | str]]) -> str:
    lines = [
        "| distribution | rho | n | Pearson | Spearman | Kendall |",
        "|---|---:|---:|" + "---:|" * 3,
    ]
    for row in rows:
        values = " | ".join(f"{row[name]:.3f}" for name in NAMES)
        lines.append(f"| {row['distribution']} | {row['rho']} | {row['n']} | {values} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
