"""FULL as its authors' package offers it: two functions on lists of turns.

    >>> from dialeval import full
    >>> full.evaluate_turn(["Hi!", "Hello, how are you?"], "Fine!")  # doctest: +SKIP

Scores are those of the metric `full`; higher is better. Options are those of the metric, such as
`mode="released"` or `model="facebook/blenderbot-400M-distill"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn


def evaluate_turn(conversation: Sequence[str], response: str, **options: Any) -> float:
    """Returns how good the response is after the conversation. Turns are texts, without
    speakers."""
    return _evaluate(Sample(id="turn", context=_turns(conversation), response=response), options)


def evaluate_dialog(conversation: Sequence[str], **options: Any) -> float:
    """Returns how good the conversation is as a whole."""
    return _evaluate(Sample(id="dialogue", context=_turns(conversation)), options)


def _turns(conversation: Sequence[str]) -> tuple[Turn, ...]:
    if isinstance(conversation, str):
        raise UsageError("a conversation is a list of turns, not one text")
    return tuple(Turn(text) for text in conversation)


def _evaluate(sample: Sample, options: dict[str, Any]) -> float:
    from dialeval.registry import make_metric
    from dialeval.scoring import score

    metric = make_metric("full", **options)
    (value,) = score([sample], [metric]).scores(metric.label)
    assert value is not None  # `full` has an answer for every dialogue
    return value
