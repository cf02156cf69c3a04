"""Transcripts: text files in which each turn starts with the name of who speaks.

    User: Hi, who are you?
    Bot: I am Bob.
    I can help you with your order.

    User: Great!

Any two names will do. Lines without one of them go on with the turn before, blank lines between
them are kept, and so are code blocks (```), whatever stands in them. A time or a number before the
name, and Markdown around it, are dropped: `[2024-05-01 10:02] User: Hi`, `**User:** Hi`, `10:02 -
Alice: Hi`. A line of dashes, equals signs or the like, or `Conversation 2`, before a name starts
another dialogue. A file holds one dialogue otherwise, and a folder of files one in each.

Whose answers are judged: `Bot`, `Assistant`, `AI` and such names (`messages.VOICES`) are known, and
the other name of two is the user. Of two unknown names, the one that speaks second is judged, with
a warning; `--map response=NAME` says whom to judge. Its name is the system's if it is no such word.
`System:` is the bot beside `User:`, and instructions where there is a bot already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dialeval.readers.messages import VOICES, Chat, Voice
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

_TIME = r"(?:\[?\(?\d[\d/.:,\-T ]*(?:[AaPp]\.?[Mm]\.?)?Z?[\])]?\s*[-–|]?\s*)?"
_LINE = re.compile(
    rf"\s{{0,3}}(?:[-*>]\s+)?{_TIME}[#*_\s<\[]{{0,6}}"
    r"(?P<name>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2})[*_>\]]{0,3}\s?:"
    r"[*_]{0,3}(?:[ \t]+|$)(?P<text>.*)"
)
_BREAK = re.compile(
    r"\s*(?:[-=*_#~]{3,}|#*\s*(?:conversation|dialogue|dialog|chat|session)\s*#?\d*\s*:?)\s*", re.I
)
LEAST = 2
"""How often each of two unknown names speaks in a text that is taken for a transcript."""
MOST_ABOVE = 5
"""Lines that may stand above the first turn: a title, a date."""


@dataclass(frozen=True)
class _Cast:
    """Who speaks: name (without case) -> voice; whom it judges; whether that was guessed."""

    voices: Mapping[str, Voice | None]
    bot: str
    user: str
    guessed: bool


def recognises(source: Source) -> bool:
    if source.is_directory:
        return False
    return _cast(source.text_head) is not None


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    cast = _cast(source.text_head, options.columns.get("response", ""), 1)
    if cast is None:
        raise UnreadableError("no line starts with the name of a speaker, such as `User: Hi!`")
    if cast.guessed:
        told = f"{cast.bot} is judged, as {cast.user} speaks first. Say otherwise with"
        place.warning("", f"{told} --map response={cast.user}")
    for number, lines in enumerate(_dialogues(source, place, cast), 1):
        name = source.label if number == 1 else f"{source.label}-{number}"
        place.line = lines[0][0]
        chat = Chat(place, options, (), "" if cast.bot.lower() in VOICES else cast.bot)
        for _, voice, text in lines:
            if voice == "system":
                chat.answer(text)
            elif voice == "user":
                chat.turns.append(Turn(text, "user"))
            elif voice == "instructions":
                chat.instruct(text)
        if not chat.answers:
            place.warning("", f"{cast.bot} says nothing: nothing to judge")
        yield from chat.samples(name)


def _dialogues(source: Source, place: Place, cast: _Cast) -> Iterator[list[tuple[int, Voice, str]]]:
    """Yields the turns of each dialogue: the line where it starts, who speaks, what."""
    turns: list[tuple[int, Voice, list[str]]] = []
    held: list[str] = []
    """What may be a break between dialogues, if a name follows."""
    block = 0
    """The line where a code block starts in which we are: names in it speak to nobody."""
    for line, text in source.lines(place):
        text = text.replace("\0", "\ufffd")
        if turns and text.lstrip().startswith("```"):
            block = 0 if block else line
            turns[-1][2].extend((*held, text))
            held = []
            continue
        match = None if block else _LINE.fullmatch(text)
        voice = cast.voices.get(match["name"].lower()) if match else None
        if match and voice:
            if turns and any(_BREAK.fullmatch(one) for one in held):
                yield [(at, who, "\n".join(said).strip()) for at, who, said in turns]
                turns = []
            elif turns:
                turns[-1][2].extend(held)
            held = []
            turns.append((line, voice, [match["text"]]))
        elif not block and (_BREAK.fullmatch(text) or not text.strip()):
            held.append(text)
        elif turns:
            turns[-1][2].extend((*held, text))
            held = []
        else:
            place.line = line
            place.warning("", "left out: it stands above the first turn")
    if block:
        place.line = block
        place.warning("", "the code block that starts here is not closed: the rest is one turn")
    if turns:
        yield [(at, who, "\n".join(said).strip()) for at, who, said in turns]


def _cast(text: str, chosen: str = "", least: int = LEAST) -> _Cast | None:
    """Who speaks in a text, where `chosen` is to be judged; None where it is no transcript."""
    lines = [line for line in text.split("\n") if line.strip() and not _BREAK.fullmatch(line)]
    matches = [_LINE.fullmatch(line) for line in lines]
    spoken = Counter(match["name"] for match in matches if match)
    names = list(spoken)
    if chosen and chosen not in spoken:
        raise UnreadableError(f"nobody is called {chosen!r}. {', '.join(names[:10])} speak")
    often = [name for name, _ in spoken.most_common()]
    bot = chosen or next((name for name in often if _voice(name) == "system"), "")
    user = next((name for name in often if _voice(name) == "user" and name != bot), "")
    if user and not bot:
        bot = next((name for name in often if name.lower() == "system"), "")
    others = [name for name in often if name not in (bot, user) and _voice(name) is None]
    guessed = not bot and not user
    if guessed:
        pair = sorted(others[:2], key=names.index)
        if len(pair) < 2 or min(spoken[name] for name in pair) < least or pair[0] != names[0]:
            return None
        user, bot = pair
    elif not bot or not user:
        if not others:
            return None
        user, bot = (user or others[0], bot or others[0])
    if not any(match and match["name"] in (user, bot) for match in matches[:MOST_ABOVE]):
        return None
    unsaid = {name.lower(): _voice(name) for name in names}
    voices = {name: voice for name, voice in unsaid.items() if voice in ("instructions", "tool")}
    return _Cast({**voices, user.lower(): "user", bot.lower(): "system"}, bot, user, guessed)


def _voice(name: str) -> Voice | None:
    return VOICES.get(name.lower())


READER = Reader(
    "transcript", "text in which each turn starts with a name: User: Hi!", recognises, read
)
