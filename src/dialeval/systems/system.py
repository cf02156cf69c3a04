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
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dialeval.limits import USUAL
from dialeval.readers.fields import SPEAKERS, alternating
from dialeval.sample import Turn

LARGEST_REPLY = 1 << 20
"""Bytes of a reply, or of what it is wrapped in. Nobody says a megabyte in a chat."""

INSTRUCTIONS = "instructions"
"""The speaker of a first turn that is no utterance: what the system is told before the dialogue."""

_UNFIT = re.compile(r"[\x00\ud800-\udfff]")


class ReplyError(Exception):
    """A question got no usable reply.

    reason   a few words that are the same for the same trouble: failures are counted by it
    detail   what this one looked like
    passing  the same question may be answered at the next attempt
    down     it was not the question: any other would have failed, too
    advice   what to change before anything will be answered, such as the API key
    """

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        passing: bool = False,
        down: bool = False,
        advice: str = "",
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.passing = passing
        self.down = down
        self.advice = advice


class CutReply(str):
    """A reply that the system itself calls unfinished: it met a limit of tokens."""


@dataclass(frozen=True)
class Asking:
    """How to ask. None of it changes what a system would say, so a resumed probe may change it.

    concurrency  questions under way at once; None: what suits the kind of system
    timeout      seconds until an attempt is given up
    retries      further attempts after a failure that may pass; None: what suits the system
    rate         requests a minute at most; None: no limit
    key_env      the environment variable with the API key; None: the usual one, if it is set
    seed         of the jitter of the waits between attempts
    largest_record  of a file of recorded answers, in million characters
    """

    concurrency: int | None = None
    timeout: float = 60.0
    retries: int | None = None
    rate: float | None = None
    key_env: str | None = None
    seed: int = 0
    largest_record: int = USUAL


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
