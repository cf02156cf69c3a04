"""A card for everything that was trained: what it saw, how it was made, how good it is.

`card.json` for programs, `card.md` for people, `curve.svg` to look at. A card holds no clock time:
the same data, command and seed give the same card.

A card also says how well the part agrees with people, on the rated sets on this machine. Nothing is
chosen by these numbers: the best epoch and the best seed are those of held-out data. The dialogues
of rated sets were not learned from (`examples/corpora.py`). A rated set counts with one quality,
and a response with the mean of its ratings.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.correlation import correlations, spearman
from dialeval.datasets import find_dataset
from dialeval.datasets.entries import find_entry
from dialeval.datasets.locate import is_dataset
from dialeval.pictures import line_chart
from dialeval.storage import write_json, write_text
from dialeval.training.recipe import RATED, Progress

if TYPE_CHECKING:
    from dialeval.training.examples.pair_corpus import Example

BY_SOURCE = (
    "Examples that were not learned from, each source alone. `majority`: how often somebody is"
    " right who always gives the commoner answer. `given length`: Spearman with the label, the"
    " number of words held constant; `with length`: Spearman with the number of words."
)


@dataclass(frozen=True)
class Card:
    """All that is known about a trained part.

    data    what it learned from: name, licence if known, digest, sizes
    scores  what was measured, by name, each with what it was measured on; None: not defined, as a
            correlation with scores that are all the same
    curve   one entry per validation, the first before any training
    tables  other courses of the training, by title: rows of the same columns
    by_source  what it knows beyond source and length, a record for each source (see `by_source`)
    """

    name: str
    summary: str
    command: str
    seed: int
    base: str
    licence: str
    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    scores: Mapping[str, float | None]
    curve: Sequence[Mapping[str, float]]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    by_source: Sequence[Mapping[str, Any]] = ()

    def write(self, directory: Path) -> None:
        """`card.json` comes last: with it the training counts as finished."""
        write_text(directory / "card.md", self.text())
        write_text(directory / "curve.svg", draw_curve(self.curve))
        write_json(directory / "card.json", asdict(self))

    def text(self) -> str:
        def table(title: str, rows: Mapping[str, Any]) -> list[str]:
            return ["", f"## {title}", "", "| | |", "|---|---|"] + [
                f"| {key} | {shown(value)} |" for key, value in rows.items()
            ]

        lines = [f"# {self.name}", "", self.summary, "", "```", self.command, "```"]
        facts = {"base": self.base, "licence": self.licence, "seed": self.seed}
        lines += table("What it is", facts)
        lines += table("Data", self.data)
        lines += table("Settings", self.settings)
        lines += table("Scores", {name: shown_score(own) for name, own in self.scores.items()})
        for title, rows in self.tables.items():
            if rows:
                lines += ["", f"## {title}", "", _row(rows[0]), _row(["---"] * len(rows[0]))]
                lines += [_row(map(shown, row.values())) for row in rows]
        if self.by_source:
            lines += ["", "## By source", "", BY_SOURCE, "", *source_lines(self.by_source)]
        return "\n".join([*lines, "", "![training curve](curve.svg)", ""])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def licence_of(data: Sequence[Path]) -> str:
    """Returns the licences of data sets by name, each once; unknown if some data have no name."""
    if any(os.path.lexists(path) or not is_dataset(os.fspath(path)) for path in data):
        return "unknown"
    known = [find_entry(os.fspath(path))[0].licence for path in data]
    return "; ".join(dict.fromkeys(known))


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shown_score(value: float | None) -> str:
    return "undefined" if value is None else shown(value)


def draw_curve(curve: Sequence[Mapping[str, float]]) -> str:
    """Training and validation loss over the steps, as SVG."""
    series = {
        name.replace("_", " "): found
        for name in ("train_loss", "validation_loss")
        if (found := [(entry["step"], entry[name]) for entry in curve if name in entry])
    }
    return line_chart(series, title="Training curve", x_label="step", y_label="loss").svg()


@dataclass(frozen=True)
class SourceScores:
    """One source. None: not defined, as a correlation with labels that are all the same, or as the
    accuracy of a judge that was taught an order and no threshold."""

    source: str
    n: int
    majority: float
    accuracy: float | None
    spearman: float | None
    partial: float | None
    length: float | None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def score_source(
    source: str,
    scores: Sequence[float],
    labels: Sequence[float],
    words: Sequence[int],
    threshold: float | None = 0.5,
) -> SourceScores:
    """`scores` above the threshold say that the label is above one half; None: they only say an
    order."""
    found, wanted = np.asarray(scores, dtype=float), np.asarray(labels, dtype=float)
    lengths = np.asarray(words, dtype=float)
    good = float((wanted > 0.5).mean())
    right = None if threshold is None else float(((found > threshold) == (wanted > 0.5)).mean())
    plain = spearman(found, wanted).value
    length = spearman(found, lengths).value
    asked = spearman(wanted, lengths).value
    return SourceScores(
        source,
        len(found),
        max(good, 1.0 - good),
        right,
        plain,
        partial_correlation(plain, length, asked),
        length,
    )


def score_examples(
    source: str, examples: Sequence[Example], scores: Sequence[float], threshold: float | None
) -> SourceScores:
    """Returns the same for examples, by their targets and the length of their responses."""
    labels = [example.target for example in examples]
    words = [word_count(example.response) for example in examples]
    return score_source(source, scores, labels, words, threshold)


def word_count(text: str) -> int:
    return len(text.split())


def partial_correlation(xy: float | None, xz: float | None, yz: float | None) -> float | None:
    """Returns the correlation of x and y with z held constant. If z never changes, it is that of x
    and y; if z determines one of them, there is none."""
    if xy is None:
        return None
    x, y = xz or 0.0, yz or 0.0
    left = (1 - x * x) * (1 - y * y)
    return (xy - x * y) / math.sqrt(left) if left > 1e-12 else None


def source_cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Returns a header and a row for each source."""
    names = ("source", "n", "majority", "accuracy", "spearman", "partial", "length")
    header = ["source", "n", "majority", "accuracy", "Spearman", "given length", "with length"]
    return [header, *([_shown(row[name]) for name in names] for row in rows)]


def source_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Renders the table as Markdown for a card."""
    header, *cells = ["| " + " | ".join(row) + " |" for row in source_cells(rows)]
    return [header, "|---|---:|---:|---:|---:|---:|---:|", *cells]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def rated_here(rated: Mapping[str, str] = RATED) -> dict[str, str]:
    """Returns the rated sets that are on this machine, each with its quality."""
    return {name: quality for name, quality in rated.items() if find_dataset(name) is not None}


def title(name: str, quality: str, count: int) -> str:
    """Returns how a card names a correlation: `Spearman, fed Overall (375)`."""
    return f"Spearman, {name} {quality} ({count})"


def metric_agreement(
    spec: str, out: Path, rated: Mapping[str, str], progress: Progress
) -> dict[str, float | None]:
    """Spearman of the metric that uses the part in `out`; None where it is not defined."""
    from dialeval.models.source import Models
    from dialeval.readers import load
    from dialeval.registry import make_metric
    from dialeval.scoring import score

    # A bare name could be that of a shipped model.
    metric = make_metric(spec, model=str(out.resolve()))
    found: dict[str, float | None] = {}
    for name, quality in rated_here(rated).items():
        ratings = {}
        for place, sample in enumerate(samples := list(load(name))):
            rating = sample.ratings.get(quality)
            if rating is not None and rating.mean is not None:
                ratings[place] = rating.mean
        chosen = [samples[place] for place in ratings]
        with progress.counting(f"agreement with people on {name}") as count:
            run = score(chosen, [metric], models=Models(), progress=count)
        scores = run.scores(metric.label)
        both = [(s, r) for s, r in zip(scores, ratings.values(), strict=True) if s is not None]
        if both:
            values, rated_as = zip(*both, strict=True)
            spearman = correlations(values, rated_as, None, ["spearman"])["spearman"]
            found[title(name, quality, len(both))] = spearman.value
    return found
