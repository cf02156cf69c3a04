"""Qualities have many names: `Relevant`, `relevance` and `coherence` are asked for the same thing.

MME-CRS groups by the literal name, case and all: the 37 names of DSTC10 (Zhang et al., 2022). Then
weights of `Overall` do not know those of `overall`, and a name that no data set has is unknown. A
quality map gives several names one name. `common` is built in; `dialeval compose fit --map
FILE.json` takes any other: {"name in the data": "name to use"}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.strict_json import Fields, read_object

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
    if not path.exists():
        raise UsageError(
            f"--map {wanted}: it is literal, common, or a JSON file, and there is no such file"
        )
    names = read_object(path, 'a map {"name in the data": "name to use"}')
    fields = Fields(path)
    for name, joined in names.items():
        if not fields.text(joined, name).strip():
            fields.wrong(name, "the name to use is empty")
    fields.complain()
    return QualityMap(path.name, names)
