"""`openai:http://localhost:8000/v1#my-bot`: a server with OpenAI's chat completions.

The part after `#` is the model's name. `chat_http/server.py` says how it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.chat_http.asking import Asking, CutReply, ReplyError
from dialeval.chat_http.server import ChatServer
from dialeval.options import option
from dialeval.sample import Turn
from dialeval.systems.system import as_messages

CONCURRENCY = 16

UNSET = -1
"""An option that is left to the server."""


@dataclass(frozen=True)
class OpenAiOptions:
    """What goes into each request, besides the dialogue."""

    temperature: float = option(UNSET, "randomness of the reply, 0 or more", low=0.0)
    top_p: float = option(UNSET, "share of the probability to sample from", low=0.0, high=1.0)
    max_tokens: int = option(UNSET, "longest reply, in tokens", low=1)
    seed: int = option(UNSET, "seed of the server's sampling, where it has one", low=0)
    system_prompt: str = option("", "what the system is told before the dialogue")

    def fields(self) -> dict[str, object]:
        """Returns the fields of a request that were set."""
        numbers = ("temperature", "top_p", "max_tokens", "seed")
        return {name: getattr(self, name) for name in numbers if getattr(self, name) != UNSET}


class OpenAiServer:
    """A chatbot behind a server; safe to ask from several threads."""

    def __init__(self, address: str, options: OpenAiOptions, asking: Asking) -> None:
        self._server = ChatServer(address, asking)
        self.name = self._server.name
        self.concurrency = asking.concurrency or CONCURRENCY
        self._options = options

    @property
    def settings(self) -> Mapping[str, object]:
        prompt = {"system_prompt": self._options.system_prompt}
        return {
            "kind": "openai",
            "url": self._server.base,
            "model": self.name,
            **self._options.fields(),
            **(prompt if self._options.system_prompt else {}),
        }

    def reply(self, history: Sequence[Turn]) -> str:
        messages = as_messages(history)
        if prompt := self._options.system_prompt:
            messages.insert(0, {"role": "system", "content": prompt})
        request = {"messages": messages, **self._options.fields()}
        return self._server.blotted(self._server.ask(request, content_of))

    def close(self) -> None:
        self._server.close()


def content_of(body: bytes) -> str:
    """`choices[0].message.content` of a completion; a list of text parts counts as one text.

    A `CutReply` where the server says that it stopped at the limit of tokens.
    """
    try:
        record: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError("not JSON", f"{len(body)} bytes", passing=True) from error
    try:
        choice = record["choices"][0]
        content = choice["message"]["content"]
        is_cut = choice.get("finish_reason") == "length"
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if part.get("type") == "text")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ReplyError("not a chat completion", "no choices[0].message.content") from error
    if content is None:
        raise ReplyError("empty reply")
    if not isinstance(content, str):
        raise ReplyError("not a chat completion", "choices[0].message.content is not a text")
    return CutReply(content) if is_cut else content
