"""The files that HolisticEval (Pang et al. 2020) released: ratings, groups of queries, labels.

HolisticEval (Pang et al. 2020): context_data_release.csv and fluency_data_release.csv.

    111,"Weed ! You know ?","Impossible ! I have a lot to learn .",4,2,1,1,1,1,2,2,2,2
    123,"Impossible ! I have a lot to learn .",3,2,4,3,2,4,3,4,3,4

No header. Thirteen cells are id, query, response and ten ratings of `coherence`; twelve are id,
response and ten ratings of `fluency`; both 1 to 5, ten raters called `1` to `10`. An id means
different things in the two files, so it is written `holistic-coherence-111`.

HolisticEval's groups of paraphrased queries: Response_Diversity/WS.csv and CTG.csv.

    Group Id,Question Group,Answer Group
    1,"Do you have any plans ?
    Do you have a plan ?","Yes .
    Certainly , but ..."

A group is one sample: line k of the answers replies to line k of the questions, as a variant. There
is no response of its own and no rating. Ids are `CTG-1`: the file and the group.

HolisticEval's toy set of diversity: diversity/data/toy.txt, here diversity_toy.txt.

    Leave it to me .
    Not so well , thanks . I just want to buy a new one .

Five lines are the five answers of a group; there are no queries. A blank line is an empty answer.
Nothing in a file of plain lines tells it from others, so it is known by its name, or read with
--format holistic-toy. Ids are `diversity_toy-1`: the file and the group.

HolisticEval's self-consistency labels: one file per rater, or the folder of all raters.

    sample 1:
        history: Hey man , you wanna buy some weed ?
                Some what ?
        pred: i sell weed.
        YOUR SCORE IS: 5

A folder holds rater1.txt, rater2.txt, ... and for some raters a list of numbers, rater10.json. Its
raters are called `rater1` to `rater10`, in numeric order; a single file is one anonymous rater. A
folder of such folders is read too. The quality is `consistency`, 1 to 5; ids are `word_net-001`:
folder (or file) and sample. Speakers take turns so that `pred` is the system's.

People typed these files: `sample 83: 1`, `YOUR SCORE3:` and stray blanks occur and are understood.
The dialogue is that of the first rater's file. Memory holds one sample of each rater.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dialeval.readers import fields
from dialeval.readers.json_stream import json_records
from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.ratings import number
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn, Variant

RATERS = tuple(str(rater) for rater in range(1, 11))
QUALITIES = {13: "coherence", 12: "fluency"}
HOLISTIC_SCALE = (1.0, 5.0)
_RATING = re.compile(r"\s*[1-5](\.\d+)?\s*", re.ASCII)


def recognises_holistic(source: Source) -> bool:
    cells = first_row(source, ",")
    return len(cells) in QUALITIES and all(map(_RATING.fullmatch, cells[-len(RATERS) :]))


def read_holistic(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for line, cells in rows(source, place, ","):
        place.line = line
        errors = place.problems.errors
        if quality := QUALITIES.get(len(cells)):
            sample = _sample_holistic(cells, quality, place, options)
            if place.problems.errors == errors:
                yield sample
                continue
        else:
            place.error("", f"{len(cells)} cells: expected 13 (with a query) or 12 (without)")
        place.problems.skipped += 1


def _sample_holistic(cells: list[str], quality: str, place: Place, options: ReadOptions) -> Sample:
    ident, *texts = cells[: -len(RATERS)]
    if not ident.strip():
        place.error("id", "missing")
    scale = options.scales.get(quality) or HOLISTIC_SCALE
    said = tuple(
        number(cell, f"{quality}[{rater}]", place, scale)
        for rater, cell in zip(RATERS, cells[-len(RATERS) :], strict=True)
    )
    return Sample(
        id=f"holistic-{quality}-{ident.strip()}",
        context=tuple(Turn(query, "user") for query in texts[:-1]),
        response=fields.response(texts[-1], place),
        ratings={quality: Rating(said, scale, RATERS)},
    )


HOLISTIC_READER = Reader(
    "holistic",
    "HolisticEval: context_data_release.csv, fluency_data_release.csv",
    recognises_holistic,
    read_holistic,
)


HEADER = ["Group Id", "Question Group", "Answer Group"]


def recognises_diversity(source: Source) -> bool:
    return [cell.strip() for cell in first_row(source, ",")] == HEADER


def read_diversity(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    table = rows(source, place, ",")
    _, header = next(table, (0, []))
    if [cell.strip() for cell in header] != HEADER:
        raise UnreadableError(f"the first line must be: {','.join(HEADER)}", 1, "header")
    for line, cells in table:
        place.line = line
        errors = place.problems.errors
        sample = _sample_diversity(cells, source.label, place)
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


def _sample_diversity(cells: list[str], label: str, place: Place) -> Sample:
    if len(cells) != len(HEADER):
        place.error("", f"{len(cells)} cells, but the header has {len(HEADER)} columns")
        return Sample(label)
    group, questions, answers = (cell.strip() for cell in cells)
    queries = [line.strip() for line in questions.split("\n")]
    responses = [line.strip() for line in answers.split("\n")]
    if not group:
        place.error("Group Id", "missing")
    if len(queries) != len(responses):
        place.error("Answer Group", f"{len(responses)} answers to {len(queries)} questions")
    return Sample(
        id=f"{label}-{group}",
        variants=tuple(map(Variant, queries, responses)),
    )


DIVERSITY_READER = Reader(
    "holistic-diversity",
    "HolisticEval: Response_Diversity, groups of paraphrased queries",
    recognises_diversity,
    read_diversity,
)


GROUP = 5
TOY_NAMES = ("diversity_toy.txt", "toy.txt")


def recognises_toy(source: Source) -> bool:
    return not source.is_directory and source.path.name in TOY_NAMES


def read_toy(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    answers: list[str] = []
    number = 0
    for line, text in source.lines(place):
        if not answers:
            place.line = line
        answers.append(text.strip().replace("\0", "\ufffd"))
        if len(answers) == GROUP:
            number += 1
            yield _toy_group(source.label, number, answers)
            answers = []
    if answers:
        number += 1
        place.warning("", f"the last group has {len(answers)} of {GROUP} answers")
        yield _toy_group(source.label, number, answers)


def _toy_group(label: str, number: int, answers: list[str]) -> Sample:
    return Sample(f"{label}-{number}", variants=tuple(Variant("", answer) for answer in answers))


TOY_READER = Reader(
    "holistic-toy",
    "HolisticEval: the toy set of diversity, five answers a group, a line each",
    recognises_toy,
    read_toy,
)


QUALITY = "consistency"
CONSISTENCY_SCALE = (1.0, 5.0)
_RATER = re.compile(r"rater(\d{1,6})\.(txt|json)")
_HEAD = re.compile(r"sample\s+\d+\s*(:|$)", re.MULTILINE)
_SCORE = re.compile(r"YOUR SCORE(?: IS)?[:\s]*(.*?)[:\s]*")


@dataclass(slots=True)
class _Label:
    """One sample as one rater saw it."""

    line: int
    history: list[str]
    prediction: str | None = None
    score: object = None


def _raters(folder: Path) -> list[Path]:
    found = [
        (int(match[1]), path) for path in folder.iterdir() if (match := _RATER.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found)]


def _folders(folder: Path) -> list[Path]:
    if _raters(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir() and _raters(path))


def recognises_consistency(source: Source) -> bool:
    if source.is_directory:
        return bool(_folders(source.path))
    start = source.text_head.lstrip()[:2000]
    return _HEAD.match(start) is not None and "history:" in start


def read_consistency(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    if not source.is_directory:
        labels = _labels(source, place)
        yield from _samples([labels], source.label, (), place, options)
        return
    folders = _folders(source.path)
    if not folders:
        raise UnreadableError("there is no rater1.txt in this folder")
    for folder in folders:
        paths = _raters(folder)
        place.path = str(paths[0])
        columns = [_labels(source.beside(path), Place(place.problems, str(path))) for path in paths]
        label = folder.resolve().name
        yield from _samples(columns, label, tuple(path.stem for path in paths), place, options)


def _labels(source: Source, place: Place) -> Iterator[_Label]:
    """Yields the samples of one rater's file, in its order."""
    try:
        yield from _parsed(source, place)
    except UnreadableError as error:
        error.path = source.name
        raise


def _parsed(source: Source, place: Place) -> Iterator[_Label]:
    if source.path.suffix == ".json":
        for line, value in json_records(source, place):
            yield _Label(line, [], None, value)
        return
    label: _Label | None = None
    for line, text in source.lines(place):
        text = text.strip().replace("\0", "\ufffd")
        if not text:
            continue
        if _HEAD.match(text):
            if label is not None:
                yield label
            label = _Label(line, [])
        elif label is None:
            raise UnreadableError("expected 'sample 1:'", line)
        elif text.startswith("pred:"):
            label.prediction = text.removeprefix("pred:").strip()
        elif match := _SCORE.fullmatch(text):
            label.score = match[1]
        elif label.prediction is None:
            label.history.append(text.removeprefix("history:").strip())
        else:
            label.prediction += f"\n{text}"
    if label is not None:
        yield label


def _samples(
    columns: list[Iterator[_Label]],
    label: str,
    raters: tuple[str, ...],
    place: Place,
    options: ReadOptions,
) -> Iterator[Sample]:
    scale = options.scales.get(QUALITY) or CONSISTENCY_SCALE
    names = raters or ("score",)
    for index, seen in enumerate(zip_longest(*columns), 1):
        if None in seen:
            missing = ", ".join(
                name for name, each in zip(names, seen, strict=True) if each is None
            )
            raise UnreadableError(f"sample {index} is missing in the file of {missing}", place.line)
        errors = place.problems.errors
        place.line = seen[0].line
        said = tuple(
            number(each.score, name, place, scale) for name, each in zip(names, seen, strict=True)
        )
        for name, value in zip(names, said, strict=True):
            if value is None:
                place.warning(name, f"sample {index} has no score")
        told = next((each for each in seen if each.prediction is not None), seen[0])
        sample = Sample(
            id=f"{label}-{index:03d}",
            context=fields.alternating(fields.turns_of_lines(told.history)),
            response=fields.response(told.prediction, place),
            ratings={QUALITY: Rating(said, scale, raters)},
        )
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


CONSISTENCY_READER = Reader(
    "holistic-consistency",
    "HolisticEval: self-consistency labels, a file or a folder of raters",
    recognises_consistency,
    read_consistency,
)
