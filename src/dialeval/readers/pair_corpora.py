"""PONE's other corpora: Cornell (films), Tencent (rated answers), Xiaohuangji (a chatbot's log).

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
from collections.abc import Iterator

from dialeval.readers import fields
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn

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
    if "\0" in text:
        place.warning("", "holds NUL: replaced by U+FFFD")
        text = text.replace("\0", "\ufffd")
    return text.strip()


CORNELL_READER = Reader(
    "cornell",
    "Cornell Movie-Dialogs: movie_lines.txt and movie_conversations.txt",
    recognises_cornell,
    read_cornell,
)

QUALITY = "overall"
SCALE = (1.0, 5.0)
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
    scale = options.scales.get(QUALITY) or SCALE
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
            ratings={QUALITY: Rating((grade,), scale)},
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
