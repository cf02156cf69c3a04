"""The chat template of a model, taken apart into what stands before and after a turn.

A template is a program that writes a whole conversation. Sharing needs its pieces. They are found
by letting it write conversations of made-up turns and looking at what stands between those:

    user            ... USER <close of user>
    user, system    ... USER <close of user> <open of system> SYSTEM <close of system>
    user, system, user   ... SYSTEM <close of system> <open of user> USER ...

What a template puts before the first turn, such as a default system prompt ("You are a helpful
assistant named ..."), is left out: nobody said it in the dialogue that is judged. Only a
start-of-text token that begins every conversation is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.errors import UsageError
from dialeval.models.segments import template_text

USER, SYSTEM, AGAIN = "QUSERQ", "QSYSTEMQ", "QAGAINQ"
"""Made-up turns; capital letters, so that a template which trims or escapes leaves them alone."""


@dataclass(frozen=True, slots=True)
class ChatPieces:
    """Per role (`user`, `system`), the marker text around a turn; `start` begins it all."""

    opening: dict[str, str]
    closing: dict[str, str]
    start: str


def chat_pieces(tokenizer: Any) -> ChatPieces:
    """The pieces of a tokenizer's chat template; a template that resists is a `UsageError`."""
    if not template_text(tokenizer):
        raise UsageError(
            "this model has no chat template, so layout 'chat' means nothing to it."
            " Its layouts: plain, lines, eos, tabs."
        )
    from jinja2 import TemplateError

    try:
        alone = _write(tokenizer, [USER])
        pair = _write(tokenizer, [USER, SYSTEM])
        three = _write(tokenizer, [USER, SYSTEM, AGAIN])
        user_close = alone.split(USER)[1]
        head, rest = pair.split(USER)
        user_to_system, system_close = rest.split(SYSTEM)
        system_to_user = three.split(SYSTEM)[1].split(AGAIN)[0]
    except (TemplateError, ValueError, IndexError) as error:
        raise _resists() from error
    if not (user_to_system.startswith(user_close) and system_to_user.startswith(system_close)):
        raise _resists()
    user_open = system_to_user.removeprefix(system_close)
    start = tokenizer.bos_token or ""
    begins = bool(start) and head.startswith(start) and not user_open.startswith(start)
    return ChatPieces(
        opening={"user": user_open, "system": user_to_system.removeprefix(user_close)},
        closing={"user": user_close, "system": system_close},
        start=start if begins else "",
    )


def _write(tokenizer: Any, turns: Sequence[str]) -> str:
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=False)]
    return str(tokenizer.apply_chat_template(messages, tokenize=False))


def _resists() -> UsageError:
    return UsageError(
        "the chat template of this model cannot be taken apart turn by turn."
        " Use another layout: plain, lines, eos, tabs."
    )
