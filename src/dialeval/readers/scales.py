"""The scales that people used in the published data sets, by quality.

Sources: Mehri & Eskenazi 2020 (FED: the turn and the dialogue questionnaire; USR), Huang et al.
2020 (GRADE), Zhao et al. 2020 (DailyDialog, PersonaChat), Gupta et al. 2019 (DailyDialog), Merdivan
et al. 2020 (HUMOD), Galley et al. 2019 (DSTC7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Scale = tuple[float, float]

FED_TURN: Mapping[str, Scale] = {
    **dict.fromkeys(
        ("Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate"),
        (0.0, 2.0),
    ),
    "Understandable": (0.0, 1.0),
    "Fluent": (0.0, 2.0),
    "Overall": (0.0, 4.0),
}
FED_DIALOGUE: Mapping[str, Scale] = {
    **dict.fromkeys(
        ("Coherent", "Error recovery", "Diverse", "Depth", "Likeable", "Understanding"),
        (0.0, 2.0),
    ),
    "Consistent": (0.0, 1.0),
    **dict.fromkeys(("Flexible", "Informative", "Inquisitive"), (0.0, 2.0)),
    "Overall": (0.0, 4.0),
}
USR: Mapping[str, Scale] = {
    "Understandable": (0.0, 1.0),
    "Natural": (1.0, 3.0),
    "Maintains Context": (1.0, 3.0),
    "Engaging": (1.0, 3.0),
    "Uses Knowledge": (0.0, 1.0),
    "Overall": (1.0, 5.0),
}
ZHAO: Mapping[str, Scale] = dict.fromkeys(
    ("content", "grammar", "relevance", "appropriateness"), (1.0, 5.0)
)
ZHAO_TRACK: Mapping[str, Scale] = dict.fromkeys(
    ("content", "grammar", "relevance", "overall"), (1.0, 5.0)
)
"""The DSTC10 track calls `appropriateness` `overall`."""

GUPTA: Mapping[str, Scale] = {"overall": (1.0, 5.0)}
ZHAO_PERSONA: Mapping[str, Scale] = {"appropriateness": (1.0, 5.0)}
HUMOD: Mapping[str, Scale] = {"relevance": (1.0, 5.0), "language_usage": (1.0, 3.0)}
DSTC7: Mapping[str, Scale] = dict.fromkeys(("informativeness", "overall", "relevance"), (1.0, 5.0))
GRADE: Mapping[str, Scale] = {"coherence": (1.0, 5.0)}
GRADE_TRACK: Mapping[str, Scale] = {"relevance": (1.0, 5.0)}

_SETS = (
    FED_TURN, FED_DIALOGUE, USR, ZHAO, ZHAO_TRACK, ZHAO_PERSONA, GRADE_TRACK, GUPTA, HUMOD, DSTC7,
)  # fmt: skip


def known_scales(qualities: Iterable[str]) -> Mapping[str, Scale]:
    """The scales of the questionnaire that asks for exactly these qualities; empty if none does.

    `Overall` alone says nothing: it goes to 4 in FED and to 5 in USR.
    """
    asked = set(qualities)
    return next((scales for scales in _SETS if asked == scales.keys()), {})
