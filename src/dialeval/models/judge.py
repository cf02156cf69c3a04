"""Judges: trained scorers of several kinds, which answer `Judge` (see `scorer_directory`)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

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


def load(directory: Path, *, device: str = "auto") -> Model:
    """The scorer in a directory that `dialeval train` made."""
    module = importlib.import_module(f"dialeval.models.{KINDS[read_scorer(directory)['kind']]}")
    return cast("Model", module.load(directory, device=device))
