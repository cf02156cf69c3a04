"""Messages, however a tool spells them -> turns, and the answers to judge.

    {"role": "user", "content": "Hi!"}                              OpenAI, and most others
    {"role": "assistant", "content": [{"type": "text", "text": "Ahoy!"}, {"type": "tool_use", ...}]}
    {"from": "gpt", "value": "Ahoy!"}                               ShareGPT
    {"role": "assistant", "parts": [{"type": "text", "content": "Ahoy!"}]}      OpenTelemetry
    {"message.role": "user", "message.content": "Hi!"}              OpenInference
    {"lc": 1, "id": [..., "HumanMessage"], "kwargs": {"content": "Hi!"}}        LangChain

A `Chat` takes messages one after the other and gives a sample for each answer of the assistant,
with all turns before it as its context.

- Instructions (`system`, `developer`) are no turns and no facts of the conversation: they are left
  out, unless `system_prompt="facts"` makes `facts` of them, which raters see.
- What tools are told and what they say (`tool` messages, `tool_use` and `tool_result` blocks), and
  what a model thinks before it speaks, was not said to the user: it is neither judged nor shown. An
  assistant message that only calls tools is no answer.
- Of content in parts, the texts are joined by line breaks. Text stays as it is, Markdown and code
  blocks included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dialeval.readers import fields
from dialeval.readers.ratings import ratings, shown
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Ratings, Sample, Turn

Voice = Literal["user", "system", "instructions", "tool"]

VOICES: dict[str, Voice] = {
    **dict.fromkeys(("user", "human", "prompter", "customer", "client", "visitor", "you"), "user"),
    **dict.fromkeys(
        ("assistant", "model", "bot", "system-bot", "gpt", "chatgpt", "ai", "chatbot", "agent"),
        "system",
    ),
    **dict.fromkeys(("claude", "gemini", "bard", "bing", "llm"), "system"),
    **dict.fromkeys(("system", "developer"), "instructions"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "function_call"), "tool"),
    **dict.fromkeys(("tool_call", "tool_calls", "tool_response", "tool_result"), "tool"),
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "aimessage": "system",
    "aimessagechunk": "system",
    "systemmessage": "instructions",
    "toolmessage": "tool",
    "functionmessage": "tool",
}
"""What tools call those who speak."""

ROLES = ("role", "from", "speaker", "author", "sender", "message.role", "type")
CONTENTS = ("content", "value", "parts", "text", "message.content", "message.contents", "contents")
"""Where messages say who speaks, and what: the first of these that they have."""

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
UNSAID_PARTS = ("thinking", "redacted_thinking", "reasoning", "tool", "function")
"""Parts whose type starts so, or ends in `tool_use` or `tool_result`, were not said to the user."""


@dataclass(slots=True)
class _Answer:
    """An answer to judge: its place among the turns, and what was known and said about it."""

    turn: int
    facts: int
    system: str
    references: tuple[str, ...]
    ratings: Ratings


class Chat:
    """A conversation that is put together message by message. `system` is who answers in it."""

    def __init__(
        self, place: Place, options: ReadOptions, facts: Sequence[str] = (), system: str = ""
    ) -> None:
        self.turns: list[Turn] = []
        self.facts = list(facts)
        self.answers: list[_Answer] = []
        self._place = place
        self._options = options
        self._system = system

    def add(self, value: object, where: str, judged: bool = True) -> None:
        """Adds one message. An answer that is not `judged` is a turn like others."""
        if not isinstance(value, Mapping):
            self._place.error(where, fields.expected("an object with role and content", value))
            return
        message = unwrapped(value)
        key, role = _role(message)
        name = fields.text(role, f"{where}.{key}", self._place).lower().strip()
        voice = VOICES.get(name)
        if not name or voice == "tool" or _was_not_said(message):
            return
        if voice is None:
            problem = f"unknown role {shown(name)}: expected user or assistant"
            self._place.error(f"{where}.{key}", problem)
        elif voice == "instructions":
            self.instruct(self._content(message, where))
        elif voice == "user":
            self.turns.append(Turn(self._content(message, where), voice))
        elif judged:
            system = fields.name(message.get("model"), f"{where}.model", self._place)
            rated = message.get("ratings")
            self.answer(
                self._answer(message, where),
                system=system,
                references=references(message, f"{where}.", self._place),
                rated=ratings(rated, f"{where}.ratings", self._place, self._options),
            )
        else:
            self.turns.append(Turn(self._content(message, where), voice))

    def add_all(self, messages: Sequence[object], where: str, judged: bool = True) -> None:
        for index, message in enumerate(messages):
            self.add(message, f"{where}[{index}]", judged)

    def instruct(self, text: str) -> None:
        if self._options.system_prompt == "facts" and text.strip():
            self.facts.append(text)

    def answer(
        self,
        text: str,
        system: str = "",
        references: tuple[str, ...] = (),
        rated: Ratings | None = None,
    ) -> None:
        """Adds an answer of the assistant that is to be judged."""
        turn, facts = len(self.turns), len(self.facts)
        self.answers.append(_Answer(turn, facts, system or self._system, references, rated or {}))
        self.turns.append(Turn(text, "system"))

    def rate_last(self, references: tuple[str, ...], rated: Ratings) -> None:
        """Adds what a record says about its last answer."""
        last = self.answers[-1]
        last.references += references
        last.ratings = {**rated, **last.ratings}

    def samples(self, dialogue: str) -> Iterator[Sample]:
        for answer in self.answers:
            yield Sample(
                id=f"{dialogue}#{answer.turn}",
                context=tuple(self.turns[: answer.turn]),
                response=self.turns[answer.turn].text,
                references=answer.references,
                facts=tuple(self.facts[: answer.facts]),
                system=answer.system,
                dialogue=dialogue,
                ratings=answer.ratings,
            )
        if self.is_unanswered:
            turns = tuple(self.turns)
            name = f"{dialogue}#{len(turns)}"
            yield Sample(name, turns, facts=tuple(self.facts), dialogue=dialogue)

    @property
    def is_unanswered(self) -> bool:
        """Whether the user spoke last, and the options ask for that."""
        last = self.turns[-1] if self.turns else Turn("")
        return self._options.unanswered and last.speaker == "user" and bool(last.text.strip())

    def _answer(self, message: Mapping[str, Any], where: str) -> str:
        key, content = _content(message)
        text = self._content(message, where)
        if not text.strip() and isinstance(content, str | list):
            told = "empty: kept, as a system that says nothing"
            self._place.warning(f"{where}.{key}", told)
        return text

    def _content(self, message: Mapping[str, Any], where: str) -> str:
        key, content = _content(message)
        return text_of(content, f"{where}.{key}", self._place)


def text_of(content: object, field: str, place: Place) -> str:
    """Content that is text, or parts of which some are texts."""
    if not isinstance(content, list):
        return fields.text(content, field, place)
    texts = []
    for index, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            place.error(f"{field}[{index}]", fields.expected("an object", part))
        elif (kind := _kind(part)) in TEXT_PARTS:
            key, text = _text(part)
            texts.append(fields.text(text, f"{field}[{index}].{key}", place))
        elif not _is_unsaid(kind):
            place.warning(f"{field}[{index}]", f"a part of type {kind[:40]!r} is left out")
    return "\n".join(texts)


def references(holder: Mapping[str, Any], prefix: str, place: Place) -> tuple[str, ...]:
    plural = fields.texts(holder.get("references"), f"{prefix}references", place)
    return plural + fields.texts(holder.get("reference"), f"{prefix}reference", place)


def unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a message without what LangChain, OpenAI and OpenInference put around it."""
    inner = message.get("kwargs")
    name = message.get("id")
    if isinstance(inner, Mapping) and isinstance(name, list) and name:
        return {**inner, "role": str(name[-1])}
    inner = message.get("data")
    if isinstance(inner, Mapping) and "content" in inner:
        return {**inner, "role": message.get("type")}
    for key in ("message", "content"):
        inner = message.get(key)
        if isinstance(inner, Mapping) and not {"content", "parts"}.isdisjoint(inner):
            return inner
    return message


def is_message(value: object) -> bool:
    """Returns whether somebody says something here."""
    if not isinstance(value, Mapping):
        return False
    message = unwrapped(value)
    key, role = _role(message)
    if key == "type" and (not isinstance(role, str) or role.lower() not in VOICES):
        return False
    return isinstance(role, str) and any(key in message for key in CONTENTS)


def _role(message: Mapping[str, Any]) -> tuple[str, object]:
    for key in ROLES:
        if (role := message.get(key)) is not None:
            return key, role.get("role") if isinstance(role, Mapping) else role
    return "role", None


def _content(message: Mapping[str, Any]) -> tuple[str, object]:
    for key in CONTENTS:
        if (content := message.get(key)) is not None:
            return key, content
    return "content", None


def _kind(part: Mapping[str, Any]) -> str:
    nested = part.get("message_content")
    kind = (nested if isinstance(nested, Mapping) else part).get("type")
    return str(kind or part.get("message_content.type") or "text")


def _text(part: Mapping[str, Any]) -> tuple[str, object]:
    nested = part.get("message_content")
    part = nested if isinstance(nested, Mapping) else part
    for key in ("text", "content", "refusal", "message_content.text"):
        if (text := part.get(key)) is not None:
            return key, text.get("value") if isinstance(text, Mapping) else text
    return "text", None


def _is_unsaid(kind: str) -> bool:
    return kind.startswith(UNSAID_PARTS) or kind.endswith(("tool_use", "tool_result"))


def _was_not_said(message: Mapping[str, Any]) -> bool:
    """Returns whether this only calls tools, or only gives what they returned."""
    _, content = _content(message)
    if isinstance(content, list) and content:
        return all(isinstance(part, dict) and _is_unsaid(_kind(part)) for part in content)
    more = message.get("additional_kwargs")
    calls = [*message.values()] if "message.tool_calls" in message else []
    for holder in (message, more if isinstance(more, Mapping) else {}):
        calls += [holder.get("tool_calls"), holder.get("function_call")]
    return any(calls) and content in (None, "", [])


HISTORY = ("chat_history", "history", "conversation_history")
ASKED = ("messages", "input", "question", "query", "prompt", "user_input", "message", "text")
TOLD = ("messages", "output", "answer", "response", "completion", "result", "message", "content")
"""Where applications put what they were asked and what they said; the first of these counts."""
DRAFTS = ("choices", "generations", "candidates")
DEEPEST = 8

Messages = list[Mapping[str, Any]]


def messages_in(value: object, role: str, depth: int = 0) -> Messages:
    """Returns the messages in what an application was given or gave back: text, messages, or an
    object around them. Text is what `role` (user or assistant) said. Empty where nothing is said
    that we understand."""
    if depth > DEEPEST:
        return []
    if isinstance(value, str):
        return _in_text(value, role, depth + 1)
    if isinstance(value, list):
        if messages := [one for one in value if is_message(one)]:
            return messages
        if value and all(isinstance(one, Mapping) and _kind(one) in TEXT_PARTS for one in value):
            return [{"role": role, "content": value}]
        return messages_in(value[0], role, depth + 1) if len(value) == 1 else []
    return _in_object(value, role, depth + 1) if isinstance(value, Mapping) else []


def _in_text(value: str, role: str, depth: int) -> Messages:
    """JSON in a string counts as what it spells, where that holds messages."""
    start = value.lstrip()[:1]
    if start in ("{", "["):
        try:
            if found := messages_in(json.loads(value), role, depth):
                return found
        except (ValueError, RecursionError):
            pass
    return [{"role": role, "content": value}] if start else []


def _in_object(value: Mapping[str, Any], role: str, depth: int) -> Messages:
    for key in DRAFTS:
        if isinstance(drafts := value.get(key), list) and drafts:
            return messages_in(drafts[0], role, depth)
    if isinstance(value.get("message"), Mapping):
        return messages_in(value["message"], role, depth)
    if is_message(value):
        return [value]
    if "messages" not in value and (content := _content(value)[1]) is not None:
        return [{"role": role, "content": content}]
    earlier = [
        one for key in HISTORY if value.get(key) for one in messages_in(value[key], "user", depth)
    ]
    instructions = value.get("system")
    if isinstance(instructions, str | list) and "messages" in value:
        earlier.insert(0, {"role": "system", "content": instructions})
    for key in (*(ASKED if role == "user" else TOLD), *ASKED, *TOLD):
        if found := messages_in(value.get(key), role, depth):
            return earlier + found
    held = [one for one in value.values() if isinstance(one, str | Mapping | list) and one]
    return messages_in(held[0], role, depth) if len(held) == 1 else []


def last_answer(messages: Messages) -> Mapping[str, Any] | None:
    """Returns the last message in which the assistant says something."""
    for message in reversed(messages):
        inner = unwrapped(message)
        voice = VOICES.get(str(_role(inner)[1]).lower())
        if voice == "system" and not _was_not_said(inner):
            return message
    return None
