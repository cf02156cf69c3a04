"""A task as a rater sees it: the chat, and nothing that tells who spoke or what metrics say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dialeval.rating.job import FIRST, SECOND, TIE
from dialeval.rating.store import Showing
from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.sample import Sample

MOST_TURNS = 1000
"""A rater judges the whole dialogue, so the whole of it is shown."""

LEFT, EQUAL, RIGHT = "left", "equal", "right"


@dataclass(frozen=True)
class BlindTask:
    """What is on the page. Of a comparison, `answers` holds the left and the right one."""

    context: DialogueView
    answers: tuple[DialogueView, ...]
    shares_context: bool
    """Whether both sides answer the same turns; if not, each is shown with its own."""


def blind(showing: Showing) -> BlindTask:
    samples = showing.task.samples
    if showing.assignment.flipped:
        samples = samples[::-1]
    views = tuple(_view(sample) for sample in samples)
    contexts = {tuple(turn.text for turn in sample.context) for sample in samples}
    is_answered = all(sample.response is not None for sample in samples)
    return BlindTask(views[0], views, len(contexts) == 1 and is_answered)


def choice_of(value: float, flipped: bool) -> str:
    """Which button stands for a stored comparison."""
    if value == TIE:
        return EQUAL
    return LEFT if (value == FIRST) != flipped else RIGHT


def value_of(choice: str, flipped: bool) -> float | None:
    """What a button of a comparison stands for; None where it is no button."""
    if choice == EQUAL:
        return TIE
    if choice not in (LEFT, RIGHT):
        return None
    return FIRST if (choice == LEFT) != flipped else SECOND


def _view(sample: Sample) -> DialogueView:
    """Without the name of the system, which speakers may be called by as well."""
    names = {sample.system, "system"} - {""}
    row: dict[str, Any] = {
        "id": "",
        "system": "",
        "dialogue": "",
        "item": "",
        "context": [
            {"speaker": "system" if turn.speaker in names else turn.speaker, "text": turn.text}
            for turn in sample.context
        ],
        "response": sample.response,
        "references": (),
        "facts": sample.facts,
        "variants": (),
        "ratings": (),
    }
    return dialogue_view(row, (), most_turns=MOST_TURNS)
