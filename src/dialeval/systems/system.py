"""The interface of a system under test: it can be asked for a reply.

    class Echo:
        name = "echo"
        concurrency = 1
        settings = {}

        def reply(self, history):
            return history[-1].text

        def close(self):
            pass

A system that gives no reply raises `ReplyError`, and so costs that one question and no other. It
owns its patience: no call of `reply` may last for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from dialeval.chat_http import LARGEST_REPLY, ReplyError
from dialeval.readers.fields import SPEAKERS, alternating
from dialeval.sample import Turn

INSTRUCTIONS = "instructions"
"""The speaker of a first turn that is no utterance: what the system is told before the dialogue."""

_UNFIT = re.compile(r"[\x00\ud800-\udfff]")


@runtime_checkable
class System(Protocol):
    """A chatbot under test.

    name         what samples and tables call it
    concurrency  calls of `reply` that may run at the same time, in threads
    settings     all that can change its replies, JSON-ready and without secrets
    """

    @property
    def name(self) -> str: ...

    @property
    def concurrency(self) -> int: ...

    @property
    def settings(self) -> Mapping[str, object]: ...

    def reply(self, history: Sequence[Turn]) -> str:
        """Returns what the system says next. The last turn of the history is the user's."""

    def close(self) -> None:
        """Ends what the system holds: processes, waits. No reply is asked for afterwards."""


@runtime_checkable
class BatchedSystem(System, Protocol):
    """A system that answers up to `batch` histories in one call faster than one by one."""

    @property
    def batch(self) -> int: ...

    def replies(self, histories: Sequence[Sequence[Turn]]) -> list[str]:
        """Returns the replies in the order of the histories. An error fails the whole call."""


def as_messages(history: Sequence[Turn]) -> list[dict[str, str]]:
    """Returns the history as chat interfaces spell it: roles `system`, `user` and `assistant`.

    Turns whose speakers are not known take turns, so that the last one is the user's.
    """
    messages = []
    if history and history[0].speaker == INSTRUCTIONS:
        messages.append({"role": "system", "content": history[0].text})
        history = history[1:]
    roles = {"user": "user", "system": "assistant"}
    return messages + [
        {"role": roles[turn.speaker], "content": turn.text} for turn in with_speakers(history)
    ]


def with_speakers(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """Returns the turns with every speaker `user` or `system`."""
    known = [SPEAKERS.get(turn.speaker.lower()) for turn in history]
    if None in known:
        return alternating(history)
    return tuple(
        Turn(turn.text, speaker or "") for turn, speaker in zip(history, known, strict=True)
    )


def checked(reply: object) -> str:
    """Returns the reply as text that can be stored; `ReplyError` where there is nothing to
    judge."""
    if not isinstance(reply, str):
        raise ReplyError("not a text", f"the reply is of type {type(reply).__name__}")
    if len(reply) > LARGEST_REPLY:
        raise ReplyError("reply too long", f"{len(reply):,} characters")
    text = _UNFIT.sub("\ufffd", reply).strip()
    if not text:
        raise ReplyError("empty reply")
    return text
