"""How well a part that was just trained agrees with people, on the rated sets on this machine.

Nothing is chosen by these numbers: the best epoch and the best seed are those of held-out data. The
dialogues of rated sets were not learned from (`examples/rated_exchanges.py`). A rated set counts
with one quality, and a response with the mean of its ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dialeval.agreement.correlation import correlations
from dialeval.datasets import find_dataset
from dialeval.training.recipe import RATED, Progress


def rated_here(rated: Mapping[str, str] = RATED) -> dict[str, str]:
    """Those of the rated sets that are on this machine, each with its quality."""
    return {name: quality for name, quality in rated.items() if find_dataset(name) is not None}


def title(name: str, quality: str, count: int) -> str:
    """How a card names a correlation: `Spearman, fed Overall (375)`."""
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
