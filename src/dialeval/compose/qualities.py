"""Qualities have many names: `Relevant`, `relevance` and `coherence` are asked for the same thing.

MME-CRS groups by the literal name, case and all: the 37 names of DSTC10 (Zhang et al., 2022). Then
weights of `Overall` do not know those of `overall`, and a name that no data set has is unknown. A
quality map gives several names one name. `common` is built in; `dialeval compose fit --map
FILE.json` takes any other: {"name in the data": "name to use"}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dialeval.errors import InputError, Problem, UsageError

COMMON_GROUPS: Mapping[str, tuple[str, ...]] = {
    "overall": ("overall", "Overall", "appropriateness"),
    "relevance": (
        "relevance", "Relevant", "coherence", "Coherent", "Maintains Context",
        "Semantically appropriate", "Correct", "make_sense",
    ),
    "fluency": ("fluency", "Fluent", "grammar", "Understandable", "Natural", "language_usage"),
    "engagement": ("engagement", "Engaging", "Interesting", "interest", "enjoy", "Likeable"),
    "specificity": (
        "Specific", "content", "informativeness", "Informative", "Uses Knowledge", "Depth",
    ),
    "consistency": ("consistency", "Consistent"),
    "diversity": ("Diverse", "avoid_rep"),
    "inquisitiveness": ("Inquisitive", "inquisitive"),
}  # fmt: skip
"""Names of FED, USR, GRADE, HolisticEval, Predictive Engagement, Zhao et al., See et al. and HUMOD.
Whatever is not here keeps its name."""

DSTC10_QUALITIES = (
    "overall", "relevance", "informativeness", "content", "grammar", "language_usage",
    "Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall",
    "Interesting", "Specific", "Relevant", "Correct", "Semantically appropriate", "Fluent",
    "Coherent", "Error recovery", "Consistent", "Diverse", "Depth", "Likeable", "Understanding",
    "Flexible", "Informative", "Inquisitive", "enjoy", "interest", "listen", "turing", "avoid_rep",
    "make_sense", "fluency", "inquisitive", "persona_guess",
)  # fmt: skip
"""The 37 names in the organisers' scripts; case tells them apart."""


@dataclass(frozen=True)
class QualityMap:
    """What a quality of the data is called in a composition. Unknown names stay as they are."""

    name: str
    names: Mapping[str, str]

    def __call__(self, quality: str) -> str:
        return self.names.get(quality, quality)


LITERAL = QualityMap("literal", {})
COMMON = QualityMap(
    "common", {name: joined for joined, names in COMMON_GROUPS.items() for name in names}
)


def find_quality_map(wanted: str) -> QualityMap:
    """`literal`, `common`, or a JSON file."""
    for built_in in (LITERAL, COMMON):
        if wanted == built_in.name:
            return built_in
    path = Path(wanted)
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"--map {wanted}: it is literal, common, or a JSON file, and there is no such file"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a readable JSON file: {error}") from None
    if not isinstance(names, dict):
        raise UsageError(f'{path}: expected {{"name in the data": "name to use"}}')
    wrong = [
        Problem(str(path), 0, name, f"the name to use is {joined!r}, not a text")
        for name, joined in names.items()
        if not (isinstance(joined, str) and joined.strip())
    ]
    if wrong:
        raise InputError(wrong)
    return QualityMap(path.name, names)
