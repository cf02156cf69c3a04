"""Corpora of dialogues, some of them rated, each in the form in which its authors released it.

DailyDialog (Li et al. 2017): dialogues_train.txt and others, one dialogue per line.

    Hey man , you wanna buy some weed ? __eou__ Some what ? __eou__ Weed ! You know ? __eou__

The last turn is the response that can be judged, the turns before it are its context; people took
turns, so the one before the response is the user's. Nobody rated anything. Ids are
`dialogues_train-00001`: file and line.

EmpatheticDialogues (Rashkin et al. 2019), one file per emotion, or the folder of them.

    Dialog_ID,Type,Actor,Text,Label
    hit:4821_conv:9643,situation,none,When my car caught on fire while driving,devastated
    hit:4821_conv:9643,utterance,speaker,I had my car catch on fire while driving!,devastated
    hit:4821_conv:9643,utterance,listener,"Oh my gosh, what did you do?",questioning

The speaker, who has the feeling, is the user and the listener the system. The last turn is the
response that can be judged; the situation, which the listener was not told, is not read, nor are
the labels. Nobody rated anything. A sample is called after its dialogue.

PersonaChat as ConvAI2 has it: valid_self_original_no_cands.txt, one exchange per line.

    1 your persona: i read twenty books a year.
    2 your persona: i only eat kosher.
    3 hello what are doing today ?<TAB>i am good , i just got off work .
    1 your persona: ...                                  <- the next dialogue

The last answer is the response that can be judged, everything before it is its context, and the
persona is its facts, whoever's it is. Nobody rated anything. Further columns, such as candidates,
are not read. Ids are `valid_self_original_no_cands-0001`.

Topical-Chat (Gopalakrishnan et al. 2019): valid_freq.json and others, every turn rated.

    {"t_c04d2b82": {"article_url": "https://...", "config": "D",
                    "content": [{"message": "Hello! Do you like rock music?", "agent": "agent_1",
                                 "sentiment": "Happy", "turn_rating": "Good"}, ...]}}

Every turn is a sample: the turns before it are its context, and the speaker of the rated turn is
`system`. The partner rated it in words, from Poor to Excellent; here they are 1 to 5 of the quality
`turn_rating`, None where nothing was said. Ids are `t_c04d2b82-01`, in the order of the turns.

Cornell Movie-Dialogs (Danescu-Niculescu-Mizil and Lee 2011): the folder of two files, or one of
them with the other beside it. The one has the texts of lines, the other names the lines of each
conversation.

    L195 +++$+++ u2 +++$+++ m0 +++$+++ CAMERON +++$+++ Well, I thought we'd start with ...
    u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L194', 'L195', 'L196', 'L197']

A conversation is a sample, called after its film and its first line: `m0-L194`. Its last line is
the response. The texts of all lines are held in memory while conversations are read.

Tencent (Li et al. 2018): a prompt, a response and its grade on a line, with tabs between. The grade
is 1 to 5 or bad, mediocre, acceptable, good, excellent, and becomes the quality `overall`. It may
stand in any column; of the other two the first is the prompt.

    你在干嘛呢<TAB>刚吃完饭，准备出去走走<TAB>4

Xiaohuangji (dgk_lost_conv): `E` begins a dialogue, `M` a turn. In the version whose words are
separated (`fenciA`), a slash stands between words; here a space does.

    E
    M 呵/呵
    M 是/王/若/猫/的/。

Nobody rated anything in Cornell and Xiaohuangji.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, object_members
from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.ratings import number, shown
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn

END = "__eou__"


def _without_nul(text: str, place: Place) -> str:
    if "\0" not in text:
        return text
    place.warning("", "holds NUL: replaced by U+FFFD")
    return text.replace("\0", "\ufffd")


def recognises_dailydialog(source: Source) -> bool:
    text = source.text_head.lstrip()
    return not text.startswith(("{", "[")) and text.partition("\n")[0].rstrip().endswith(END)


def read_dailydialog(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for position, line in source.lines(place):
        place.line = position
        line = _without_nul(line, place)
        turns = [turn for text in line.split(END) if (turn := text.strip())]
        if not turns:
            if line.strip():
                place.error("", f"no turns: expected texts that end in {END}")
                place.problems.skipped += 1
            continue
        ident = f"{source.label}-{position:05d}"
        yield Sample(
            id=ident,
            context=fields.alternating([Turn(text) for text in turns[:-1]]),
            response=turns[-1],
            dialogue=ident,
        )


DAILYDIALOG_READER = Reader(
    "dailydialog",
    "DailyDialog: dialogues_NAME.txt, one per line",
    recognises_dailydialog,
    read_dailydialog,
)


HEADER = ["Dialog_ID", "Type", "Actor", "Text", "Label"]
SPEAKERS = {"speaker": "user", "listener": "system"}


def recognises_empathetic(source: Source) -> bool:
    return bool(_files(source.path)) if source.is_directory else _is_ours(source)


def _is_ours(source: Source) -> bool:
    return first_row(source, ",") == HEADER


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.csv")) if _is_ours(Source(path))]


def read_empathetic(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    if not source.is_directory:
        yield from _read_file(source, place)
        return
    for path in _files(source.path):
        place.path = str(path)
        yield from _read_file(source.beside(path), place)


def _read_file(source: Source, place: Place) -> Iterator[Sample]:
    table = rows(source, place, ",")
    if next(table, (0, []))[1] != HEADER:
        raise UnreadableError(f"expected the header {','.join(HEADER)}", 1)
    for ident, dialogue in groupby(_usable(table, place), key=lambda row: row[1][0]):
        found = list(dialogue)
        place.line = found[0][0]
        turns = [
            Turn(cells[3], SPEAKERS.get(cells[2], cells[2]))
            for _, cells in found
            if cells[1] == "utterance"
        ]
        if turns:
            yield Sample(
                id=ident, context=tuple(turns[:-1]), response=turns[-1].text, dialogue=ident
            )
        else:
            place.error("Dialog_ID", f"{ident[:80]!r} has no utterance")
            place.problems.skipped += 1


def _usable(
    table: Iterator[tuple[int, list[str]]], place: Place
) -> Iterator[tuple[int, list[str]]]:
    for line, cells in table:
        if len(cells) == len(HEADER) and cells[0].strip():
            yield line, cells
        else:
            place.line = line
            place.error("", f"expected {len(HEADER)} cells, the first of them an id")
            place.problems.skipped += 1


EMPATHETIC_READER = Reader(
    "empathetic", "EmpatheticDialogues: a CSV per emotion", recognises_empathetic, read_empathetic
)


_PERSONA = re.compile(r"(your|partner's) persona: (.*)")
_LINE = re.compile(r"(\d{1,6}) (.*)", re.DOTALL)


@dataclass(slots=True)
class _Dialogue:
    """A dialogue while its lines are read; `line` is its first."""

    line: int
    facts: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def recognises_personachat(source: Source) -> bool:
    return re.match(r"1 (your|partner's) persona: ", source.text_head) is not None


def read_personachat(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for position, dialogue in enumerate(_dialogues(source, place), 1):
        place.line = dialogue.line
        if not dialogue.turns:
            place.error("", "a persona without a dialogue")
            place.problems.skipped += 1
            continue
        ident = f"{source.label}-{position:04d}"
        *context, last = dialogue.turns
        yield Sample(
            id=ident,
            context=tuple(context),
            response=last.text,
            facts=tuple(dialogue.facts),
            dialogue=ident,
        )


def _dialogues(source: Source, place: Place) -> Iterator[_Dialogue]:
    current: _Dialogue | None = None
    for position, line in source.lines(place):
        place.line = position
        if not line.strip():
            continue
        line = _without_nul(line, place)
        numbered = _LINE.fullmatch(line)
        if numbered is None or (current is None and numbered[1] != "1"):
            place.error("", "expected a number and a text; the first of a dialogue is 1")
            place.problems.skipped += 1
            continue
        if numbered[1] == "1" or current is None:
            if current is not None:
                yield current
            current = _Dialogue(position)
        if persona := _PERSONA.fullmatch(numbered[2]):
            current.facts.append(persona[2])
        else:
            asked, _, answered = numbered[2].partition("\t")
            current.turns.append(Turn(asked.strip(), "user"))
            if answer := answered.partition("\t")[0].strip():
                current.turns.append(Turn(answer, "system"))
    if current is not None:
        yield current


PERSONACHAT_READER = Reader(
    "personachat",
    "PersonaChat: exchanges under a persona",
    recognises_personachat,
    read_personachat,
)


TOPICAL_CHAT_QUALITY = "turn_rating"
TOPICAL_CHAT_SCALE = (1.0, 5.0)
WORDS = {"Poor": 1.0, "Not Good": 2.0, "Passable": 3.0, "Good": 4.0, "Excellent": 5.0}


def recognises_topical_chat(source: Source) -> bool:
    text = source.text_head.lstrip()
    return (
        text.startswith("{")
        and '"turn_rating"' in text
        and '"content"' in text
        and "turn_rating" not in _outer_keys(source)
    )


def _outer_keys(source: Source) -> set[str]:
    """Returns the keys of a whole record on the first line; that of JSON Lines is not ours."""
    return first_keys(source) if source.text_head.partition("\n")[0].endswith("}") else set()


def read_topical_chat(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    scale = options.scales.get(TOPICAL_CHAT_QUALITY) or TOPICAL_CHAT_SCALE
    for line, ident, value in object_members(source, place):
        place.line = line
        conversation = fields.record(value, place)
        yield from fields.usable(_samples(ident, conversation, place, scale), place)


def _samples(
    ident: str, conversation: Mapping[str, Any], place: Place, scale: tuple[float, float]
) -> Iterator[Sample]:
    content = conversation.get("content")
    if not isinstance(content, list):
        place.error("content", fields.expected("a list of turns", content))
        return
    spoken: list[Turn] = []
    for index, value in enumerate(content):
        turn = fields.record(value, place)
        message = fields.text(turn.get("message"), f"content[{index}].message", place)
        agent = fields.name(turn.get("agent"), f"content[{index}].agent", place)
        said = _said(turn.get("turn_rating"), f"content[{index}].turn_rating", place, scale)
        yield Sample(
            id=f"{ident}-{index + 1:02d}",
            context=tuple(
                Turn(before.text, "system" if before.speaker == agent else "user")
                for before in spoken
            ),
            response=message,
            dialogue=ident,
            ratings={TOPICAL_CHAT_QUALITY: Rating((said,), scale)},
        )
        spoken.append(Turn(message, agent))


def _said(value: object, field: str, place: Place, scale: tuple[float, float]) -> float | None:
    if not isinstance(value, str) or not value.strip():
        return number(value, field, place, scale)
    if (rated := WORDS.get(value.strip())) is None:
        place.warning(field, f"{shown(value)} is none of {', '.join(WORDS)}: dropped")
    return rated


TOPICAL_CHAT_READER = Reader(
    "topical-chat",
    "Topical-Chat: conversations whose turns are rated",
    recognises_topical_chat,
    read_topical_chat,
)


BETWEEN = " +++$+++ "
LINES, CONVERSATIONS = "movie_lines.txt", "movie_conversations.txt"
_LINE_NAMES = re.compile(r"L\d+")


def recognises_cornell(source: Source) -> bool:
    if source.is_directory:
        return all((source.path / name).is_file() for name in (LINES, CONVERSATIONS))
    return source.path.name in (LINES, CONVERSATIONS) and BETWEEN.strip() in source.text_head


def read_cornell(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    folder = source.path if source.is_directory else source.path.parent
    for name in (LINES, CONVERSATIONS):
        if not (folder / name).is_file():
            raise UnreadableError(f"needs {name} beside it: conversations name lines of the other")
    place.path = str(folder / LINES)
    texts = dict(_texts(source.beside(folder / LINES), place))
    place.path = str(folder / CONVERSATIONS)
    for position, line in source.beside(folder / CONVERSATIONS).lines(place):
        place.line = position
        if not line.strip():
            continue
        *heads, named = line.split(BETWEEN.strip())
        names = _LINE_NAMES.findall(named)
        if len(heads) != 3 or not names:
            place.error("", "expected two speakers, a film and a list of lines")
            place.problems.skipped += 1
            continue
        if missing := [name for name in names if name not in texts]:
            place.error("", f"no line {missing[0]} in {LINES}")
            place.problems.skipped += 1
            continue
        turns = [Turn(texts[name]) for name in names if texts[name]]
        if turns:
            ident = f"{heads[2].strip()}-{names[0]}"
            yield _dialogue(ident, turns)


def _texts(source: Source, place: Place) -> Iterator[tuple[str, str]]:
    for position, line in source.lines(place):
        place.line = position
        cells = line.split(BETWEEN.strip(), 4)
        if len(cells) == 5:
            yield cells[0].strip(), _text(cells[4], place)
        elif line.strip():
            place.error("", "expected a line, a speaker, a film, a name and a text")
            place.problems.skipped += 1


def _dialogue(ident: str, turns: list[Turn]) -> Sample:
    """The last turn is the response that can be judged; people took turns."""
    *context, last = turns
    return Sample(id=ident, context=fields.alternating(context), response=last.text, dialogue=ident)


def _text(text: str, place: Place) -> str:
    return _without_nul(text, place).strip()


CORNELL_READER = Reader(
    "cornell",
    "Cornell Movie-Dialogs: movie_lines.txt and movie_conversations.txt",
    recognises_cornell,
    read_cornell,
)

TENCENT_QUALITY = "overall"
TENCENT_SCALE = (1.0, 5.0)
GRADES = {"bad": 1.0, "mediocre": 2.0, "acceptable": 3.0, "good": 4.0, "excellent": 5.0}
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def recognises_tencent(source: Source) -> bool:
    """Three cells on each of the first lines, one of them a grade, and some Chinese."""
    if source.is_directory:
        return False
    whole = source.text_head.split("\n")
    # The last line may be cut.
    lines = [line for line in (whole[:-1] or whole)[:20] if line.strip()]
    found = [_graded(line.split("\t")) for line in lines]
    return (
        bool(found)
        and all(found)
        and any(_CHINESE.search(prompt + response) for prompt, response, _ in filter(None, found))
    )


def _graded(cells: list[str]) -> tuple[str, str, float] | None:
    """Prompt, response and grade, where the cells are those."""
    if len(cells) != 3:
        return None
    grades = [_grade(cell) for cell in cells]
    known = [place for place, grade in enumerate(grades) if grade is not None]
    if not known:
        return None
    # The last of them: a prompt may be a number.
    graded = known[-1]
    prompt, response = (cell.strip() for place, cell in enumerate(cells) if place != graded)
    return prompt, response, grades[graded] or 0.0


def _grade(cell: str) -> float | None:
    text = cell.strip().lower()
    if re.fullmatch(r"[1-5](\.0)?", text):
        return float(text)
    return GRADES.get(text)


def read_tencent(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    scale = options.scales.get(TENCENT_QUALITY) or TENCENT_SCALE
    number, before = 0, None
    for position, line in source.lines(place):
        place.line = position
        if not line.strip():
            continue
        graded = _graded(_text(line, place).split("\t"))
        if graded is None:
            place.error("", "expected a prompt, a response and a grade from 1 to 5, between tabs")
            place.problems.skipped += 1
            continue
        prompt, response, grade = graded
        if prompt != before:
            number, before = number + 1, prompt
        item = f"{source.label}-prompt-{number:05d}"
        yield Sample(
            id=f"{source.label}-{position:06d}",
            context=(Turn(prompt, "user"),),
            response=response,
            item=item,
            dialogue=item,
            ratings={TENCENT_QUALITY: Rating((grade,), scale)},
        )


TENCENT_READER = Reader(
    "tencent",
    "Tencent's Chinese prompts and responses with a grade, between tabs",
    recognises_tencent,
    read_tencent,
)


def recognises_xiaohuangji(source: Source) -> bool:
    return not source.is_directory and re.match(r"\s*E\s*\nM ", source.text_head) is not None


def read_xiaohuangji(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    has_slashes = _has_slashes(source.text_head)
    turns: list[Turn] = []
    first, number = 0, 0
    for position, line in source.lines(place):
        place.line = position
        mark, _, said = line.strip().partition(" ")
        if mark == "E" and not said:
            if turns:
                place.line, number = first, number + 1
                yield _dialogue(f"{source.label}-{number:06d}", turns)
            turns, first = [], position
        elif mark == "M":
            text = _text(said.replace("/", " ") if has_slashes else said, place)
            turns += [Turn(text)] if text else []
        elif line.strip():
            place.error("", "expected E, which begins a dialogue, or M and what was said")
            place.problems.skipped += 1
    if turns:
        place.line = first
        yield _dialogue(f"{source.label}-{number + 1:06d}", turns)


def _has_slashes(head: str) -> bool:
    """Whether slashes stand between words: in most turns of several characters."""
    said = [line[2:].strip() for line in head.split("\n") if line.startswith("M ")]
    longer = [text for text in said if len(text) > 3]
    return 2 * sum("/" in text for text in longer) > len(longer)


XIAOHUANGJI_READER = Reader(
    "xiaohuangji",
    "Xiaohuangji (dgk_lost_conv): E begins a dialogue, M a turn",
    recognises_xiaohuangji,
    read_xiaohuangji,
)
