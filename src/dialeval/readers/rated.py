"""Answers that people have rated: FED, USR, Predictive Engagement, GRADE, DSTC10.

FED (Mehri & Eskenazi 2020): fed_data.json, 375 turns and 125 dialogues, five raters each.

    [{"context": "User: Hi!\\nSystem: Hi! What's up?\\nUser: Nothing much",
      "response": "System: You must be bored.",          <- absent: the dialogue is judged
      "system": "Meena",
      "annotations": {"Interesting": [2, 1, 1, 1, 1], "Overall": [2, 1, 3, 3, 4]}}]

Raters may answer in words ("N/A (No errors)"): such answers become None. There are no ids: samples
are called `fed-turn-0001` and `fed-dialogue-0001` in the order of the file. A record whose context
continues that of the record before belongs to the same dialogue (`fed-001`).

USR (Mehri & Eskenazi 2020): tc_usr_data.json and pc_usr_data.json, 60 contexts x 5 or 6 answers.

    [{"context": "hello \\n hi there \\n", "fact": "your persona: i like cats .\\n",
      "responses": [{"response": "do you like cats ? \\n", "model": "Original Ground Truth",
                     "Understandable": [1, 1, 1], "Overall": [5, 5, 4]}, ...]}]

The answer of the model `Original Ground Truth` is the reference of the other answers; it is judged
too, without a reference. Every list of a response is a quality. Answers to one context share an
item. There are no ids: `tc_usr_data-0003-2` is the second answer to the third context of that file.

Predictive Engagement (Ghazarian et al. 2020): Eng_Scores_queries_gen_gtruth_replies.csv.

    query,response,human_score,Ruber_Unref_Score,CTX_Unref_Score,...
    how long will it take us to drive to London ?,Not really .,2,"7.99e-06",...

One row per rater: the three rows of a pair stand some rows apart, so all rows are gathered before
the first sample is made. The quality is `engagement`, 1 to 5; its raters are nameless. The scores
of the authors' metrics are not read. Samples are called `engage-0001` in the order in which pairs
first occur; answers to the same query share an item.

GRADE (Huang et al. 2020): a folder with parallel files, one line per rated answer.

    eval_data/dailydialog/transformer_ranker/human_ctx.txt      Hello .|||How are you ?
    eval_data/dailydialog/transformer_ranker/human_hyp.txt      Fine .
    eval_data/dailydialog/transformer_ranker/human_ref.txt      Very well , thanks .
    human_score/dailydialog/transformer_ranker/human_score.txt  3.4

Give the folder that holds `eval_data`, or one up to two levels above it. The quality is
`coherence`, 1 to 5. The released number is the mean over the raters of an item: it is kept as the
rating of one anonymous rater. Ids are `dailydialog-transformer_ranker-0001`; systems that answer
the same context share an item. Files of different length are an error: lines belong together.

DSTC10 track 5: NAME_eval.json, one record per rated answer or per rated dialogue.

    [{"dialogue_id": "dailydialog-zhao_00001", "model": "GPT2", "context": "well ?\\nit fits .",
      "response": "cash ?", "reference": ["cash or card ?"], "annotations": {"content": [4, 5]}}]
    [{"dialogue_id": "fed-dial_00000", "model": "Meena",
      "dialog": [{"speaker": "human", "text": "Hi!"}, {"speaker": "model", "text": "Hello"}],
      "annotations": {"Coherent": [2, 1, 2, 2, 2]}}]

`model` may be called `model_name` or `system`, `dialog` `dialogue`, `dialogue_id` `id`, `reference`
`references`; references may be absent, and other fields are not read. Lines of a context may all
start with the name of a speaker (`Human:`, `A:`, `Speaker 1:`). Test files hold items that nobody
rated, also as their first ones: `annotations` is absent, null or empty, and the item is read
without ratings, with a warning. They also hold answers that are null: those of a system that says
nothing. A file without any ratings is recognised by `dialogue_id`; with other fields than those
above, it is read with `--format dstc10`. `dialogue_id` is unique per answer in these files: it is
the sample's id. Where one recurs, the second is called ID-2, with a warning; where there is none,
the place in the file is the id. Answers to the same context share an item. Scales are known for the
questionnaires of FED, USR, Zhao et al. and GRADE. Where the track left out what a rater said, it
left no gap: one rater's ratings need not stand at the same place throughout.
Unlike in `usr`, an answer that equals its only reference (the ground truth itself) keeps it, as in
the track's own evaluation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, first_record, json_records
from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.ratings import (
    FED_DIALOGUE,
    FED_TURN,
    GRADE,
    USR,
    known_scales,
    number,
    ratings,
)
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn


def recognises_fed(source: Source) -> bool:
    keys = first_keys(source)
    return {"context", "system", "annotations"} <= keys and "dialogue_id" not in keys


def read_fed(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    turns = dialogues = conversation = 0
    before: str | None = None
    for line, value in json_records(source, place):
        place.line = line
        errors = place.problems.errors
        record = fields.record(value, place)
        text = fields.text(record.get("context"), "context", place)
        if before is None or not text.startswith(before):
            conversation += 1
        before = text
        context = fields.turns_of_lines(text.split("\n"))
        response = record.get("response")
        if response is None:
            dialogues += 1
            known, ident = FED_DIALOGUE, f"fed-dialogue-{dialogues:04d}"
        else:
            turns += 1
            known, ident = FED_TURN, f"fed-turn-{turns:04d}"
            response = fields.without_prefix(fields.response(response, place), context)
        sample = Sample(
            id=ident,
            context=context,
            response=response,
            system=fields.name(record.get("system"), "system", place),
            dialogue=f"fed-{conversation:03d}",
            ratings=ratings(record.get("annotations"), "annotations", place, options, known),
        )
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


FED_READER = Reader("fed", "FED: fed_data.json, turns and dialogues", recognises_fed, read_fed)


GROUND_TRUTH = "Original Ground Truth"
TEXTS = ("response", "model")


def recognises_usr(source: Source) -> bool:
    return {"context", "responses"} <= first_keys(source)


def read_usr(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for position, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        samples = _samples(fields.record(value, place), source.label, position, place, options)
        yield from fields.usable(samples, place)


def _samples(
    record: Mapping[str, Any], label: str, position: int, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    item = f"{label}-{position:04d}"
    context = fields.turns(record.get("context"), "context", place)
    facts = tuple(fact.strip() for fact in fields.texts(record.get("fact"), "fact", place))
    answers = record.get("responses")
    if not isinstance(answers, list):
        place.error("responses", fields.expected("a list", answers))
        return
    objects = [answer for answer in answers if isinstance(answer, dict)]
    truths = tuple(
        truth.strip()
        for answer in objects
        if answer.get("model") == GROUND_TRUTH and isinstance(truth := answer.get("response"), str)
    )
    if len(objects) < len(answers):
        place.error("responses", "expected objects with response and model")
    for index, answer in enumerate(objects, 1):
        system = fields.name(answer.get("model"), f"responses[{index - 1}].model", place)
        rated = {key: said for key, said in answer.items() if key not in TEXTS}
        yield Sample(
            id=f"{item}-{index}",
            context=context,
            response=fields.response(answer.get("response"), place).strip(),
            references=() if system == GROUND_TRUTH else truths,
            facts=facts,
            system=system,
            dialogue=item,
            item=item,
            ratings=ratings(rated, f"responses[{index - 1}]", place, options, USR),
        )


USR_READER = Reader("usr", "USR: tc_usr_data.json, pc_usr_data.json", recognises_usr, read_usr)


QUALITY = "engagement"
SCALE = (1.0, 5.0)
COLUMNS = ["query", "response", "human_score"]


@dataclass(slots=True)
class _Pair:
    """A query and an answer while their rows are read; `line` is the first."""

    line: int
    said: list[float | None] = field(default_factory=list)


def recognises_engage(source: Source) -> bool:
    return first_row(source, ",")[: len(COLUMNS)] == COLUMNS


def read_engage(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    scale = options.scales.get(QUALITY) or SCALE
    items: dict[str, str] = {}
    for index, ((query, answer), pair) in enumerate(_pairs(source, place, scale).items(), 1):
        place.line = pair.line
        item = items.setdefault(query, f"engage-query-{len(items) + 1:04d}")
        yield Sample(
            id=f"engage-{index:04d}",
            context=(Turn(query, "user"),),
            response=fields.response(answer, place),
            dialogue=item,
            item=item,
            ratings={QUALITY: Rating(tuple(pair.said), scale)},
        )


def _pairs(
    source: Source, place: Place, scale: tuple[float, float]
) -> dict[tuple[str, str], _Pair]:
    table = rows(source, place, ",")
    header = next(table, (0, []))[1]
    if header[: len(COLUMNS)] != COLUMNS:
        raise UnreadableError(f"expected a header that starts with {','.join(COLUMNS)}", 1)
    pairs: dict[tuple[str, str], _Pair] = {}
    for line, cells in table:
        place.line = line
        errors = place.problems.errors
        if len(cells) != len(header):
            place.error("", f"{len(cells)} cells: expected {len(header)}, as in the header")
            said = None
        else:
            said = number(cells[2], "human_score", place, scale)
        if place.problems.errors > errors:
            place.problems.skipped += 1
        else:
            pairs.setdefault((cells[0], cells[1]), _Pair(line)).said.append(said)
    return pairs


ENGAGE_READER = Reader(
    "engage",
    "Predictive Engagement: Eng_Scores_queries_gen_gtruth_replies.csv",
    recognises_engage,
    read_engage,
)


GRADE_FILES = ("human_ctx.txt", "human_hyp.txt", "human_ref.txt")
GRADE_QUALITY = "coherence"


def _grade_roots(folder: Path) -> list[Path]:
    for pattern in ("eval_data", "*/eval_data", "*/*/eval_data"):
        if found := sorted(path.parent for path in folder.glob(pattern) if path.is_dir()):
            return found
    return []


def recognises_grade(source: Source) -> bool:
    return source.is_directory and bool(_grade_roots(source.path))


def read_grade(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    roots = _grade_roots(source.path) if source.is_directory else []
    folders = [
        (root, folder)
        for root in roots
        for folder in sorted(root.glob("eval_data/*/*"))
        if folder.is_dir()
    ]
    if not folders:
        raise UnreadableError(
            "there is no eval_data/DATASET/SYSTEM/human_ctx.txt below this folder"
        )
    if source.path not in roots:
        found = ", ".join(str(root) for root in roots)
        place.warning("", f"only the data of GRADE in {found} is read, nothing else in the folder")
    items = {folder.parent: fields.Items() for _, folder in folders}
    for root, folder in folders:
        yield from _grade_system(source, root, folder, items[folder.parent], place, options)


def _grade_system(
    source: Source,
    root: Path,
    folder: Path,
    items: fields.Items,
    place: Place,
    options: ReadOptions,
) -> Iterator[Sample]:
    dataset, system = folder.parent.name, folder.name
    scores = root / "human_score" / dataset / system / "human_score.txt"
    paths = [*(folder / name for name in GRADE_FILES), scores]
    scale = options.scales.get(GRADE_QUALITY) or GRADE[GRADE_QUALITY]
    columns = (_grade_lines(source.beside(path), place) for path in paths)
    for index, cells in enumerate(zip_longest(*columns), 1):
        place.path, place.line = str(folder / GRADE_FILES[0]), index
        errors = place.problems.errors
        if None in cells:
            short = ", ".join(
                path.name for path, cell in zip(paths, cells, strict=True) if cell is None
            )
            raise UnreadableError(
                f"lines belong together, but from here on {short} has none", index
            )
        context_text, response, reference, score = cells
        context = fields.turns_of_lines(context_text.split("|||"))
        place.path = str(folder / GRADE_FILES[1])
        response = fields.response(response, place)
        place.path = str(scores)
        said = number(score, GRADE_QUALITY, place, scale)
        place.path = str(folder / GRADE_FILES[2])
        sample = Sample(
            id=f"{dataset}-{system}-{index:04d}",
            context=context,
            response=response,
            references=fields.texts(reference, "reference", place),
            system=system,
            dialogue=(item := f"{dataset}-{items.name(context, system)}"),
            item=item,
            ratings={GRADE_QUALITY: Rating((said,), scale)},
        )
        place.path = str(folder / GRADE_FILES[0])
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


def _grade_lines(source: Source, place: Place) -> Iterator[str]:
    try:
        for _, line in source.lines(Place(place.problems, source.name)):
            yield line.replace("\0", "\ufffd")
    except UnreadableError as error:
        error.path = source.name
        raise


GRADE_READER = Reader(
    "grade", "GRADE: a folder with eval_data and human_score", recognises_grade, read_grade
)


DSTC10_FIELDS = frozenset(
    (
        "dialogue_id", "model", "model_name", "context", "response", "reference", "references",
        "fact",
    )
)  # fmt: skip
"""What an answer of the track has besides its ratings."""

_RATED = re.compile(r'"annotations"\s*:\s*(?:\{|null)')
"""What `annotations` hold here; elsewhere, as in the messages of chat services, they are a list."""


def recognises_dstc10(source: Source) -> bool:
    keys = first_keys(source)
    if "annotations" in keys and not keys.isdisjoint(
        ("dialogue_id", "dialog", "dialogue", "model_name")
    ):
        return True
    if not {"context", "response"} <= keys or ("system" in keys and "id" not in keys):
        return False  # FED has a system, and no ids
    if _RATED.search(source.text_head):
        return _is_answer(first_record(source))
    return "dialogue_id" in keys <= DSTC10_FIELDS


def _is_answer(record: object) -> bool:
    """Whether context and response are texts; a record that is cut off at the end of the head is
    believed to be one."""
    if not isinstance(record, dict):
        return record is None
    response = record.get("response")
    said = response is None or isinstance(response, str)
    return said and isinstance(record.get("context"), str | list)


def read_dstc10(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    items, names = fields.Items(), Names()
    for position, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        errors = place.problems.errors
        record = fields.record(value, place)
        default = f"{source.label}-{position:05d}"
        sample = _dstc10_sample(record, default, items, place, options)
        if place.problems.errors == errors:
            yield replace(sample, id=names.unique(sample.id, place))
        else:
            place.problems.skipped += 1


def _dstc10_sample(
    record: Mapping[str, Any],
    default: str,
    items: fields.Items,
    place: Place,
    options: ReadOptions,
) -> Sample:
    ident = _first_name(record, ("dialogue_id", "id"), place) or default
    system = _first_name(record, ("model", "model_name", "system"), place)
    annotations = record.get("annotations")
    if not annotations and (annotations is None or isinstance(annotations, dict)):
        place.warning("annotations", "none: nobody rated this item")
    qualities = map(str, annotations) if isinstance(annotations, dict) else ()
    rated = ratings(annotations, "annotations", place, options, known_scales(qualities))
    facts = fields.texts(record.get("fact"), "fact", place)
    whole = "dialog" if record.get("dialog") is not None else "dialogue"
    if record.get(whole) is not None:
        spoken = fields.turns(record[whole], whole, place)
        context = tuple(Turn(t.text, fields.SPEAKERS.get(t.speaker, t.speaker)) for t in spoken)
        return Sample(ident, context, facts=facts, system=system, dialogue=ident, ratings=rated)
    context, has_names = _dstc10_context(record.get("context"), place)
    response = record.get("response")
    if response is None and "response" in record:
        place.warning("response", "null: kept, as a system that says nothing")
        response = ""
    else:
        response = fields.response(response, place)
    if has_names:
        response = _SPEAKER.sub("", response, count=1)
    item = items.name(context, system)
    reference = "reference" if record.get("reference") is not None else "references"
    return Sample(
        id=ident,
        context=context,
        response=response,
        references=fields.texts(record.get(reference), reference, place),
        facts=facts,
        system=system,
        dialogue=item,
        item=item,
        ratings=rated,
    )


def _first_name(record: Mapping[str, Any], keys: Sequence[str], place: Place) -> str:
    """Returns the name under the first of these keys that has one."""
    names = (fields.name(record.get(key), key, place) for key in keys)
    return next((name for name in names if name), "")


_SPEAKER = re.compile(
    r"^(User|Human|System|Assistant|Bot|Model|[AB]|(?:Speaker|Person)[ _]?[12AB]):[ \t]*", re.I
)


def _dstc10_context(value: object, place: Place) -> tuple[tuple[Turn, ...], bool]:
    """Returns the turns, and whether every line began with the name of a speaker. Names that do not
    tell people from systems, such as A and B, are dropped."""
    turns = fields.turns(value, "context", place)
    if turns and turns[0].speaker:
        return turns, True
    names = [_SPEAKER.match(turn.text) for turn in turns]
    if not turns or not all(names):
        return turns, False
    sides = [fields.SPEAKERS.get(name[1].lower(), "") for name in names if name]
    known = all(sides)
    return tuple(
        Turn(_SPEAKER.sub("", turn.text, count=1), side if known else "")
        for turn, side in zip(turns, sides, strict=True)
    ), True


class Names:
    """Tells repeated ids apart: `a`, `a-2`, `a-3`."""

    def __init__(self) -> None:
        self._seen = fields.IdSet()
        self._again: Counter[str] = Counter()

    def unique(self, ident: str, place: Place) -> str:
        if not self._seen.holds_or_adds(ident):
            return ident
        self._again[ident] += 1
        name = f"{ident}-{self._again[ident] + 1}"
        place.warning("dialogue_id", f"{ident[:80]!r} again: its id here is {name[:90]!r}")
        return name


DSTC10_READER = Reader("dstc10", "DSTC10 track 5: NAME_eval.json", recognises_dstc10, read_dstc10)
