"""Judges: trained scorers of several kinds, which answer `Judge` (see `scorer_directory`)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from dialeval.errors import UsageError
from dialeval.models.locate import locate
from dialeval.models.scorer_directory import read_scorer
from dialeval.question import Model

KINDS = {
    "pair-scorer": "pair_scorer",
    "ruber": "ruber",
    "text-judge": "text_judge",
    "twin-judge": "twin_judge",
    "masked-lm": "masked_lm",
    "topic-graph": "topic_graph",
}
"""Kind of scorer -> the module of this package that loads it."""


LEARN_THE_SAME = ({"pone", "bert-ruber"},)
"""Metrics whose scorers answer the same question: they learned it from other examples."""


def check_lesson(name: str, use: str) -> None:
    """Refuses a judge that learned to answer another question than a metric with this `use`."""
    found = locate(name)
    learned = read_scorer(found.directory).get("metric") if found.role == "judge" else None
    alike = next((group for group in LEARN_THE_SAME if use in group), {use})
    if learned is not None and learned not in alike:
        raise UsageError(
            f"model {name!r} was trained for {learned}, and is asked for {use}. See: dialeval"
            " models, dialeval train"
        )


def load(directory: Path, *, device: str = "auto") -> Model:
    """The scorer in a directory that `dialeval train` made."""
    module = importlib.import_module(f"dialeval.models.{KINDS[read_scorer(directory)['kind']]}")
    return cast("Model", module.load(directory, device=device))
