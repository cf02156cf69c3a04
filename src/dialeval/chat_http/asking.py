"""How to ask somebody who may be slow, busy or gone, and what it means to get no reply."""

from __future__ import annotations

from dataclasses import dataclass

from dialeval.limits import USUAL

LARGEST_REPLY = 1 << 20
"""Bytes of a reply, or of what it is wrapped in. Nobody says a megabyte in a chat."""


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
