"""The report of many dialogues: how long until it is written, how large it is, how soon it opens.

    python benchmarks/report_page.py [--samples 1000 100000] [--json]

Made-up chats of eight turns (seeded) by two systems, scored with `length`, `distinct` and a made-up
metric that has a log-probability for each word, which is what takes most room in a page. `opens` is
the median of five times, from the address to the first frame after the page and its script have
loaded, in headless Chromium.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dialeval import score
from dialeval.metric import Metric, Part
from dialeval.metrics.likelihood import TOKEN_PARTS
from dialeval.question import Answer
from dialeval.report.build import write_report
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

WORDS = [f"word{i}" for i in range(20_000)]
OPENINGS = 5
NEXT_FRAME = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


@dataclass(frozen=True)
class Worded(Metric):
    """A log-probability for each word that depends on the word alone."""

    name = "worded"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        spans = [match.span() for match in re.finditer(r"\S+", sample.response or "")]
        values = tuple(-float(end % 13) for _, end in spans)
        starts, ends = zip(*spans, strict=True)
        parts = {"starts": tuple(map(float, starts)), "ends": tuple(map(float, ends))}
        return Score(statistics.fmean(values), {"log_probs": values, **parts})

    def parts(self) -> tuple[Part, ...]:
        return TOKEN_PARTS


@dataclass(frozen=True)
class Outcome:
    samples: int
    shown: int
    seconds: float
    megabytes: float
    opens: float | None


def samples(count: int) -> Iterator[Sample]:
    rng = random.Random(0)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(6, 24)))

    for i in range(count):
        speakers = ("user", "system", "user", "system", "user", "system", "user")
        turns = tuple(Turn(text(), speaker) for speaker in speakers)
        yield Sample(f"s{i}", turns, text(), item=f"q{i // 2}", system=("a", "b")[i % 2])


def measure(count: int, folder: Path) -> Outcome:
    run, page = folder / f"run-{count}", folder / f"{count}.html"
    score(samples(count), ["length", "distinct", Worded()], out=run)
    start = time.perf_counter()
    written = write_report([run], page)
    seconds = time.perf_counter() - start
    return Outcome(count, written.shown, seconds, written.bytes / 1e6, opening_time(page))


def opening_time(page: Path) -> float | None:
    """None where there is no Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        return None
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(OPENINGS):
            window = browser.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            window.goto(page.as_uri())
            window.evaluate(NEXT_FRAME)
            times.append(time.perf_counter() - start)
            window.close()
        browser.close()
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [measure(count, Path(folder)) for count in given.samples]
    if given.json:
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
        return
    print("| dialogues | shown | written in s | MB | opens in s |")
    print("|---:|---:|---:|---:|---:|")
    for one in outcomes:
        opens = "no Chromium" if one.opens is None else f"{one.opens:.2f}"
        cells = (f"{one.samples:,}", f"{one.shown:,}", f"{one.seconds:.1f}", f"{one.megabytes:.1f}")
        print(f"| {' | '.join((*cells, opens))} |")


if __name__ == "__main__":
    main()
