"""One record with plain field names -> one sample. JSONL, CSV and Parquet share it.

| field | value |
|---|---|
| `response` | text; null: the whole dialogue is judged |
| `context` | text with a line per turn, a list of texts, or a list of {speaker, text} |
| `references`, `reference` | a text or a list |
| `facts`, `fact` | a text or a list |
| `system`, `model` | the chatbot's name |
| `id`, `dialogue`, `item` | text or a whole number |
| `ratings` | see `ratings.py` |
| `variants` | a list of {query, response} |

Context lines that all start with `User:` or `System:` lose these prefixes, and so does the
response. Other keys are ignored. A record without an id is called after its file and its number in
it: `chats-000012`.

Logs often hold one exchange under other names, each a text or a list of messages:

- `prompt`, `question`, `query`, `instruction`, `user_input`, `input`: the last turn, of the user.
  It is one turn, however many lines it has. An `input` beside an `instruction` is added to it.
- `completion`, `answer`, `output`, `reply`, `generation`: the response, where none is called so.
- `history`: the context. Pairs of a question and its answer are two turns each.
- `conversation_id`, `session_id`, `thread_id`: the dialogue.
- `system_prompt`: instructions. They are left out, unless the option `system_prompt` says `facts`.

Beside such a prompt, a `context` that is plain text is what the system could look up: a fact. One
that is a list, or whose lines name their speakers, holds the turns before the prompt.

A user's names for fields (`columns`) may be paths: `output.content`, `choices.0.message.content`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.messages import Chat, is_message, last_answer, messages_in, text_of
from dialeval.readers.ratings import rating, ratings
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Rating, Ratings, Sample, Turn, Variant

FIELDS = (
    "id", "dialogue", "item", "system", "context", "response", "references", "facts", "ratings",
    "variants",
)  # fmt: skip
ALIASES = {"model": "system", "reference": "references", "fact": "facts"}
PROMPTS = ("prompt", "question", "query", "instruction", "user_input", "input")
ANSWERS = ("completion", "answer", "output", "reply", "generation")
DIALOGUES = ("conversation_id", "session_id", "thread_id")
OTHERS = frozenset((*PROMPTS, *ANSWERS, *DIALOGUES, "history", "system_prompt"))
RESPONSES = frozenset(("response", *ANSWERS))
NAMES = frozenset((*FIELDS, *ALIASES, *OTHERS))
MISSING: Any = object()

Maker = Callable[[Mapping[str, Any], int, Place, Ratings], Sample]


def maker(label: str, options: ReadOptions) -> Maker:
    """Returns a function from (record, its number in the file, place, ratings from columns) to a
    sample."""

    def make(record: Mapping[str, Any], number: int, place: Place, rated: Ratings) -> Sample:
        if options.columns:
            record = renamed(record, options.columns)
        if not OTHERS.isdisjoint(record) or _holds_messages(record.get("context")):
            record = _with_plain_names(record, place, options)
        get = record.get
        context: Any = get("context")
        turns = fields.turns(context, "context", place)
        response = get("response")
        if type(response) is not str or not response or response.isspace():
            response = _unusual_response(record, turns, place, options)
        if (
            response
            and turns
            and turns[0].speaker
            and (type(context) is str or (type(context) is list and type(context[0]) is str))
        ):
            response = fields.without_prefix(response, turns)
        ident = get("id")
        if type(ident) is not str:
            ident = fields.name(ident, "id", place)
        if (own := get("ratings")) is not None:
            rated = {**ratings(own, "ratings", place, options), **rated}
        if options.ratings:
            rated = {**rated, **_named_ratings(record, options, place)}
        variants = get("variants")
        return Sample(
            ident or f"{label}-{number:06d}",
            turns,
            response,
            _texts(record, "references", "reference", place),
            _texts(record, "facts", "fact", place),
            _name(record, "system", place) or _name(record, "model", place),
            _name(record, "dialogue", place),
            _name(record, "item", place),
            rated,
            () if variants is None else _variants(variants, place),
        )

    return make


def renamed(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns the record with the user's column names replaced by ours. What they replace is not
    used."""
    replaced = {*columns, *_other_names(columns)}
    result = {
        key: value
        for key, value in record.items()
        if key not in replaced and ALIASES.get(key, key) not in columns
    }
    for field, column in columns.items():
        if (value := value_at(record, column)) is not MISSING:
            result[ALIASES.get(field, field)] = value
    return result


def _other_names(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the other names of what the user has named."""
    return (
        *(ANSWERS if "response" in columns else ()),
        *((*PROMPTS, "history") if "context" in columns else ()),
        *(PROMPTS if not columns.keys().isdisjoint(PROMPTS) else ()),
        *(DIALOGUES if "dialogue" in columns else ()),
    )


def value_at(value: Any, path: str) -> Any:
    """Returns what stands at a path, such as `output.content` or `choices.0.text`; `MISSING` if
    nothing.

    A key may hold dots itself, and text that is JSON is read as what it spells.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return MISSING
    if isinstance(value, list):
        step, _, rest = path.partition(".")
        if not step.removeprefix("-").isdecimal() or not -len(value) <= int(step) < len(value):
            return MISSING
        return value_at(value[int(step)], rest) if rest else value[int(step)]
    if not isinstance(value, Mapping):
        return MISSING
    if path in value:
        return value[path]
    cut = path.rfind(".")
    while cut > 0:
        if path[:cut] in value:
            return value_at(value[path[:cut]], path[cut + 1 :])
        cut = path.rfind(".", 0, cut)
    return MISSING


def without_path(column: str, names: Collection[str]) -> str:
    """Returns the column that a path starts in: `output` of `output.content`."""
    start = column
    while start not in names and "." in start:
        start = start.rpartition(".")[0]
    return start if start in names else column


def unread(names: Collection[str], columns: Mapping[str, str]) -> list[str]:
    """Returns the names of a record that are not read: unknown ones, and those with a better one
    beside them."""
    known = NAMES - {*_other_names(columns)}
    if "response" in names or "response" in columns:
        known -= {*ANSWERS}
    for group in (ANSWERS, PROMPTS, DIALOGUES):
        present = [name for name in group if name in names]
        known -= {*present[1:]}
    if "instruction" in names:
        known |= {"input"}
    used = {without_path(column, names) for column in columns.values()}
    return [name for name in names if name not in known and name not in used]


ANSWER_WORDS = ("bot", "assistant", "reply", "answer", "respon", "output", "complet", "generat")
PROMPT_WORDS = ("user", "human", "question", "prompt", "query", "input", "ask", "message")
"""How the names of answers and of prompts start in logs that nobody has seen."""


def advice(texts: Collection[str]) -> str:
    """Returns what to type for records whose texts go by these names, where none is one of ours."""
    answer = _like(texts, ANSWER_WORDS)
    prompt = _like([name for name in texts if name != answer], PROMPT_WORDS)
    if answer:
        asked = f" --map prompt={prompt}" if prompt else ""
        return f"If {answer} is what the bot said, add --map response={answer}{asked}"
    named = f"Texts are at {', '.join(list(texts)[:12])}. " if texts else ""
    return (
        f"{named}Say where the answer is: --map response=NAME --map prompt=NAME (a.b for b in a),"
        " or the whole conversation: --map messages=NAME. See: dialeval data formats"
    )


def _like(names: Collection[str], words: tuple[str, ...]) -> str:
    for word in words:
        for name in names:
            if re.search(rf"(^|[._-]){word}", name.lower()) and not name.lower().endswith("id"):
                return name
    return ""


def _with_plain_names(
    record: Mapping[str, Any], place: Place, options: ReadOptions
) -> dict[str, Any]:
    """Returns a record that calls things otherwise, with our names. Lists of messages become
    turns."""
    result = dict(record)
    if result.get("response") is None and (key := _first(result, ANSWERS)):
        result["response"] = _answer_text(result[key], key, place)
    elif "response" not in result and (key := next((one for one in ANSWERS if one in result), "")):
        place.error(key, "there is no answer")
        result["response"] = ""
    if result.get("dialogue") is None and (key := _first(result, DIALOGUES)):
        result["dialogue"] = result[key]
    chat = Chat(place, options)
    if instructions := result.get("system_prompt"):
        chat.instruct(text_of(instructions, "system_prompt", place))
    prompt = _first(result, PROMPTS)
    before = _first(result, ("context", "history"))
    earlier = _without_pairs(result.get(before))
    if before == "context" and not prompt and not _holds_messages(earlier):
        return result | {"facts": _with_facts(result, chat.facts, place)}
    if _holds_messages(earlier):
        chat.add_all(earlier, before, judged=False)
    elif not (prompt and isinstance(earlier, str)) or _names_speakers(earlier):
        chat.turns += fields.turns(earlier, before, place)
    else:
        chat.facts.append(earlier)
    if prompt:
        chat.add_all(_prompt_messages(result, prompt), prompt, judged=False)
    result["context"] = tuple(chat.turns)
    return result | {"facts": _with_facts(result, chat.facts, place)}


def _with_facts(record: Mapping[str, Any], more: list[str], place: Place) -> Any:
    facts = record.get("facts")
    return [*more, *fields.texts(facts, "facts", place)] if more else facts


def _holds_messages(context: Any) -> bool:
    return (
        type(context) is list
        and bool(context)
        and is_message(context[0])
        and ("text" not in context[0])
    )


def _names_speakers(context: str) -> bool:
    turns = fields.turns_of_lines(context.split("\n"))
    return bool(turns) and bool(turns[0].speaker)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((name for name in names if record.get(name) is not None), "")


def _without_pairs(history: Any) -> Any:
    if isinstance(history, list) and history and all(isinstance(one, list) for one in history):
        return [said for pair in history for said in pair]
    return history


def _prompt_messages(record: Mapping[str, Any], key: str) -> list[Any]:
    prompt = _messages_or_text(record[key])
    more = record.get("input") if key == "instruction" else None
    if isinstance(prompt, str):
        prompt = f"{prompt}\n{more}" if isinstance(more, str) and more else prompt
        return [{"role": "user", "content": prompt}]
    return messages_in(prompt, "user") or [{"role": "user", "content": prompt}]


def _messages_or_text(value: Any) -> Any:
    """A cell of a table may hold messages as JSON."""
    if isinstance(value, str) and value.startswith("["):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(parsed, list) and parsed and all(map(is_message, parsed)):
            return parsed
    return value


def _answer_text(value: Any, key: str, place: Place) -> Any:
    value = _messages_or_text(value)
    if isinstance(value, str) or value is None:
        return value
    message = last_answer(messages_in(value, "assistant"))
    if message is None:
        return value
    chat = Chat(place, ReadOptions())
    chat.add(message, key)
    return chat.turns[0].text if chat.turns else ""


def _unusual_response(
    record: Mapping[str, Any], turns: tuple[Turn, ...], place: Place, options: ReadOptions
) -> str | None:
    response = record.get("response")
    if isinstance(response, list | dict):
        response = _answer_text(response, "response", place)
    if not options.texts and "response" not in record:
        return ""
    if response is not None:
        return fields.response(response, place)
    if record.get("variants") is None:
        if "response" not in record and (path := options.columns.get("response")):
            place.error("response", f"nothing stands at {path!r}")
        elif "response" not in record:
            place.error("response", "missing. Write null to have the whole dialogue judged")
        elif not turns:
            place.error("context", "there is neither a response nor a context to judge")
    return None


def _texts(record: Mapping[str, Any], plural: str, single: str, place: Place) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if (value := record.get(plural)) is not None:
        found = fields.texts(value, plural, place)
    if (value := record.get(single)) is not None:
        found += fields.texts(value, single, place)
    return found


def _name(record: Mapping[str, Any], key: str, place: Place) -> str:
    value = record.get(key)
    return value if type(value) is str else "" if value is None else fields.name(value, key, place)


def _named_ratings(
    record: Mapping[str, Any], options: ReadOptions, place: Place
) -> dict[str, Rating]:
    return {
        key: rating(record[key], key, place, options.scales.get(key))
        for key in options.ratings
        if key in record
    }


def _variants(value: object, place: Place) -> tuple[Variant, ...]:
    if not isinstance(value, list):
        place.error("variants", fields.expected("a list of {query, response}", value))
        return ()
    found = []
    for index, item in enumerate(value):
        field = f"variants[{index}]"
        if not isinstance(item, dict):
            place.error(field, fields.expected("an object with query and response", item))
            continue
        query = fields.text(item.get("query"), f"{field}.query", place)
        found.append(Variant(query, fields.text(item.get("response"), f"{field}.response", place)))
    return tuple(found)
