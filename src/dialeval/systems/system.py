"""The interface of a system under test, and the simplest system: one that replays recorded answers.

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

`replay:answers.jsonl` gives recorded answers instead of asking a live system. The file holds one
object per line: {"messages": [{"role": ..., "content": ...}], "reply": "..."}. `exchanges.jsonl` of
an earlier probe is such a file, and the directory of that probe will do as well. A history is
answered only if it was recorded word for word. If it was recorded more than once, the first answer
counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dialeval.chat_http import LARGEST_REPLY, Asking, ReplyError
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers import fields
from dialeval.readers.fields import SPEAKERS, alternating
from dialeval.readers.json_stream import json_records
from dialeval.readers.reader import Place, Problems, UnreadableError
from dialeval.readers.source import Source
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


Messages = tuple[tuple[str, str], ...]


class Replay:
    """The answers of a file."""

    def __init__(self, address: str, asking: Asking) -> None:
        path = Path(address)
        self._path = path / "exchanges.jsonl" if path.is_dir() else path
        self.name = path.stem
        self.concurrency = asking.concurrency or 1
        self._answers = read_answers(self._path, Limits(asking.largest_record))

    @property
    def settings(self) -> Mapping[str, object]:
        return {"kind": "replay", "file": str(self._path)}

    def reply(self, history: Sequence[Turn]) -> str:
        try:
            return self._answers[_key(as_messages(history))]
        except KeyError:
            last = json.dumps(history[-1].text[:80], ensure_ascii=False)
            raise ReplyError("not recorded", f"no answer to {last}") from None

    def close(self) -> None:
        pass


def read_answers(path: Path, limits: Limits = USUAL_LIMITS) -> dict[Messages, str]:
    """History -> the first answer to it; `InputError` with all that is wrong with the file."""
    problems = Problems()
    place = Place(problems, str(path))
    answers: dict[Messages, str] = {}
    is_empty = True
    try:
        for line, value in json_records(Source(path, limits=limits), place):
            place.line, is_empty = line, False
            record = fields.record(value, place)
            if record.get("error") is not None and record.get("reply") is None:
                continue  # a probe records its failures as well
            reply = fields.text(record.get("reply"), "reply", place)
            if messages := _messages(record.get("messages"), place):
                answers.setdefault(_key(messages), reply)
    except UnreadableError as error:
        place.line = error.line
        place.error(error.field, error.problem)
    if is_empty and not problems.errors:
        place.error("", "the file is empty")
    problems.check()
    return answers


def _messages(value: object, place: Place) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        place.error("messages", fields.expected("a list of {role, content}", value))
        return []
    found = []
    for index, item in enumerate(value):
        message: Mapping[str, Any] = item if isinstance(item, dict) else {}
        role = fields.text(message.get("role"), f"messages[{index}].role", place)
        content = fields.text(message.get("content"), f"messages[{index}].content", place)
        found.append({"role": role, "content": content})
    return found


def _key(messages: Sequence[Mapping[str, str]]) -> Messages:
    return tuple((message["role"], message["content"]) for message in messages)
