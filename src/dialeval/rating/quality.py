"""What raters are asked about: a quality and its scale, as people write them on a command line.

    overall             on the usual scale, 1 to 5
    natural:1-3         on a scale of its own
    understandable:0-1

Where answers are compared there is no scale: for each quality a rater says which answer has more of
it, or that both have the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dialeval.errors import UsageError, did_you_mean

USUAL_SCALE = (1, 5)
LOWEST, HIGHEST = 0, 10
"""Each point of a scale is a key of the keyboard: 0 to 9, and 0 again for 10."""

FIRST, TIE, SECOND = 1.0, 0.5, 0.0
"""What a comparison says, as the share of the win that goes to the first answer."""

PREFERENCE = "preference"
"""The quality that is compared where nobody says which."""

DESCRIPTIONS: Mapping[str, str] = {
    "coherence": "Does the answer fit what was said before it?",
    "fluency": "Is it written as a fluent speaker would write it?",
    "overall": "All in all, how good is it?",
    "engaging": "Does it make you want to go on talking?",
    "relevance": "Is it about what was said before it?",
    "natural": "Would a person say it like this?",
    "consistency": "Does it agree with what the same speaker said before?",
    "diversity": "Does it say something that was not said before?",
    "specific": "Is it made for this conversation, or would it fit any?",
    "understandable": "Can you understand what it says?",
    "interesting": "Does it say something interesting?",
    "informative": "Does it tell you something?",
    PREFERENCE: "Which answer is better?",
}
"""What is asked about a quality unless the organiser asks something else."""

_FORM = re.compile(r"(?P<name>[^:,]+?)\s*(?::\s*(?P<low>-?\d+)\s*-\s*(?P<high>-?\d+))?")


@dataclass(frozen=True, slots=True)
class Quality:
    """One question to a rater. `low` and `high` are the ends of its scale of whole numbers."""

    name: str
    low: int = USUAL_SCALE[0]
    high: int = USUAL_SCALE[1]
    description: str = ""

    @property
    def points(self) -> range:
        return range(self.low, self.high + 1)

    def share(self, value: float) -> float:
        """Where on the scale a rating lies: 0 at its low end, 1 at its high end."""
        return (value - self.low) / (self.high - self.low)


def parse_qualities(text: str) -> tuple[Quality, ...]:
    """`"overall:1-5,natural:1-3"` -> qualities, in this order."""
    qualities = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    names = [quality.name for quality in qualities]
    if not qualities:
        raise UsageError("--qualities: name at least one, such as overall:1-5")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--qualities: {twice[0]!r} is named twice")
    return qualities


def described(qualities: Sequence[Quality], descriptions: Mapping[str, str]) -> tuple[Quality, ...]:
    """The qualities with what is to be asked about each."""
    names = [quality.name for quality in qualities]
    for name in descriptions:
        if name not in names:
            raise UsageError(
                f"--describe: there is no quality {name!r}.{did_you_mean(name, names)}"
            )
    return tuple(
        replace(quality, description=descriptions.get(quality.name, quality.description))
        for quality in qualities
    )


def _parse(text: str) -> Quality:
    form = _FORM.fullmatch(text)
    if form is None:
        raise UsageError(f"--qualities {text!r}: expected NAME or NAME:LOW-HIGH, as overall:1-5")
    name = form["name"].strip()
    low, high = USUAL_SCALE if form["low"] is None else (int(form["low"]), int(form["high"]))
    if not LOWEST <= low < high <= HIGHEST:
        raise UsageError(
            f"--qualities {text!r}: a scale goes from a smaller to a larger whole number between"
            f" {LOWEST} and {HIGHEST}"
        )
    if "__" in name or not name.isprintable() or len(name) > 60:
        raise UsageError(f"--qualities: {name!r} cannot be the name of a quality")
    return Quality(name, low, high, DESCRIPTIONS.get(name.lower(), ""))
