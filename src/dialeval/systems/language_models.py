"""Language models as chatbots: in this process, or behind a server.

`hf:./my-model` or the name of a catalogue model: a language model in this process. These are causal
and encoder-decoder models of the Hugging Face layout, and what `dialeval train seq2seq`
wrote. Many dialogues are continued in one batch; --concurrency says how many. What is sampled
depends on the seed and the dialogue, not on the batch. Models differ in whether they know
instructions, so these are put before the first words of the user.

`openai:http://localhost:8000/v1#my-bot`: a server with OpenAI's chat completions. The part after
`#` is the model's name. `chat_http.py` says how it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dialeval.chat_http import Asking, ChatServer, CutReply, ReplyError
from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.sample import Turn
from dialeval.systems.system import INSTRUCTIONS, as_messages, with_speakers

BATCH = 16


@dataclass(frozen=True)
class GeneratorOptions:
    """How the model is decoded."""

    method: Literal["greedy", "beam", "sample"] = option("greedy", "how tokens are chosen")
    beams: int = option(5, "number of beams of the beam search", low=1)
    top_k: int = option(0, "sample from the k likeliest tokens; 0: from all", low=0)
    top_p: float = option(1.0, "sample from this share of the probability", low=0.0, high=1.0)
    temperature: float = option(1.0, "randomness of the sampling", low=0.0)
    max_new_tokens: int = option(64, "largest number of tokens of a reply", low=1)
    seed: int = option(0, "seed: the same seed gives the same replies", low=0)


METHOD_OF = {"beams": "beam", "top_k": "sample", "top_p": "sample", "temperature": "sample"}
"""Options that one method alone heeds."""


def check_method(given: Mapping[str, object], method: str) -> None:
    """Refuses an option that was given, and that this method would ignore."""
    for name, needed in METHOD_OF.items():
        if name in given and method != needed:
            raise UsageError(
                f"a model: option {name!r} is of use with method={needed} only, and the method is"
                f" {method}. Add --set method={needed}, or leave {name} out"
            )


class LocalModel:
    """A model that continues dialogues, asked by one thread. `turns`: how many of the last turns it
    reads; 0: all."""

    concurrency = 1

    def __init__(self, address: str, options: GeneratorOptions, asking: Asking) -> None:
        from dialeval.generation.generator import Decoding, load_generator

        self.name = Path(address).name or address
        self.batch = asking.concurrency or BATCH
        self._address = address
        self._options = options
        self._generator = load_generator(address)
        self.turns = self._generator.turns
        self._decoding = Decoding(
            method=options.method,
            beams=options.beams,
            top_k=options.top_k,
            top_p=options.top_p,
            temperature=options.temperature,
            max_new_tokens=options.max_new_tokens,
            count=1,
        )

    @property
    def settings(self) -> Mapping[str, object]:
        return {"kind": "hf", "model": self._address, **vars(self._options)}

    def reply(self, history: Sequence[Turn]) -> str:
        return self.replies([history])[0]

    def replies(self, histories: Sequence[Sequence[Turn]]) -> list[str]:
        spoken = [spoken_turns(history) for history in histories]
        found = self._generator.replies(spoken, self._decoding, self._options.seed)
        return [candidates[0] if candidates else "" for candidates in found]

    def close(self) -> None:
        pass


def spoken_turns(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """Returns the turns of user and system, the instructions put before the first words of the
    user."""
    if not history or history[0].speaker != INSTRUCTIONS:
        return with_speakers(history)
    turns = list(with_speakers(history[1:]))
    first = next((i for i, turn in enumerate(turns) if turn.speaker == "user"), 0)
    turns[first] = Turn(f"{history[0].text}\n{turns[first].text}", turns[first].speaker)
    return tuple(turns)


CONCURRENCY = 16

UNSET = -1
"""An option that is left to the server."""


@dataclass(frozen=True)
class OpenAiOptions:
    """The fields of each request besides the dialogue."""

    temperature: float = option(UNSET, "randomness of the reply, 0 or more", low=0.0)
    top_p: float = option(UNSET, "share of the probability to sample from", low=0.0, high=1.0)
    max_tokens: int = option(UNSET, "largest number of tokens of a reply", low=1)
    seed: int = option(UNSET, "seed of the sampling, if the server supports it", low=0)
    system_prompt: str = option("", "text of the system prompt")

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
