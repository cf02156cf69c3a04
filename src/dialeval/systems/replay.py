"""`replay:answers.jsonl`: recorded answers instead of a live system.

The file holds one object per line: {"messages": [{"role": ..., "content": ...}], "reply": "..."}.
`exchanges.jsonl` of an earlier probe is such a file, and the directory of that probe will do as
well. A history is answered only where it was recorded word for word. Where it was recorded more
than once, the first answer counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.chat_http import Asking, ReplyError
from dialeval.errors import InputError
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers import fields
from dialeval.readers.json_stream import json_records
from dialeval.readers.reader import Place, Problems, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Turn
from dialeval.systems.system import as_messages

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
    if problems.errors:
        wrong = [problem for problem in problems.kept if problem.severity == "error"]
        raise InputError(wrong, problems.errors - len(wrong))
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
