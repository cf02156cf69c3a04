"""Answers to turns of public corpora that a language model rated, for `train judge-corpus`.

    {"turns": ["#3f...", ...], "answers": ["#a1...", "=Nice!", ...], "ratings": ["545", "321", ...]}

Several answers to the same turns: the one that was given, answers of chatbots of ConvAI2 and of
small language models, answers to similar turns, stock answers; or the graded answers that come with
dialeval (`judge.graded_groups`). A rating has a digit from 1 to 5 for each of `RATED`. The rater
was a large language model (Claude) that was told to rate as crowd workers do, and that saw neither
the source of an answer nor any rating of people.

The corpora may not be passed on. A text of theirs is therefore a hash (`#`, see `corpora`) that is
looked up in the corpora on this machine, and one of the graded answers is looked up there; other
texts stand as they are (`=`). A group with a text
that is not found is left out and counted. No dialogue of a rated set is among them.
`scripts/draw_answers_to_rate.py` draws the answers and packs the ratings.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from dialeval.training.examples.corpora import load_corpus, read_written_answers, turn_hash
from dialeval.training.examples.judge import Answered, Group, Preference, graded_groups

SHIPPED = "model_ratings.jsonl.gz"

RATED = ("relevance", "engagement", "overall")
"""The aspects that were rated, in the order of the digits."""

RUN = 3
"""Turns in a row that may stand as one: a speaker may write several messages."""

STEEPNESS = 1.3
"""Of two answers one point apart, people prefer the better with a probability of
1 / (1 + e^-1.3) = .79, two points apart .93."""


class RatedGroups(NamedTuple):
    """The groups whose texts are here, and the number of those whose texts are not."""

    groups: list[Group]
    missing: int


Record = Mapping[str, Sequence[str]]
"""A group as it is stored; see the head of this file."""


def shipped_records() -> list[Record]:
    """Reads the groups that ship with dialeval."""
    with resources.files(__package__).joinpath(SHIPPED).open("rb") as file:
        return [json.loads(line) for line in gzip.decompress(file.read()).splitlines()]


def rated_groups(
    records: Sequence[Record], corpora: Sequence[Path], written: Path | None
) -> RatedGroups:
    """Looks up the texts of stored groups in `corpora`, and in the DailyDialog++ in the folder
    `written`."""
    wanted = {
        text[1:]
        for record in records
        for text in (*record["turns"], *record["answers"])
        if text[0] == "#"
    }
    known = _texts(wanted, corpora, written)
    groups = []
    for record in records:
        texts = [
            known.get(text[1:], "") if text[0] == "#" else text[1:]
            for text in (*record["turns"], *record["answers"])
        ]
        if all(texts):
            turns = len(record["turns"])
            groups.append(_group(texts[:turns], texts[turns:], record["ratings"]))
    return RatedGroups(groups, len(records) - len(groups))


def reference(text: str) -> str:
    """Returns what stands for a text of a corpus."""
    return f"#{turn_hash(text):010x}"


def _texts(wanted: set[str], corpora: Sequence[Path], written: Path | None) -> dict[str, str]:
    """Hash -> text, for those that are wanted and found."""
    found: dict[str, str] = {}
    for text in corpus_texts(corpora, written):
        key = reference(text)[1:]
        if key in wanted:
            found.setdefault(key, text)
    return found


def corpus_texts(corpora: Sequence[Path], written: Path | None) -> Iterable[str]:
    """Yields the texts that a group may refer to."""
    for group in graded_groups():
        yield from group.answers[0].turns
        yield from (answer.response for answer in group.answers)
    for path in corpora:
        corpus = load_corpus(path)
        for dialogue in (*corpus.train, *corpus.validation, *corpus.test):
            for length in range(1, RUN + 1):
                for start in range(len(dialogue) - length + 1):
                    yield " ".join(dialogue[start : start + length])
    for name in ("dev.json", "test.json") if written else ():
        assert written is not None
        if (written / name).is_file():
            for one in read_written_answers(written / name):
                yield from (*one.turns, *one.right, *one.adversarial)


def _group(turns: Sequence[str], answers: Sequence[str], ratings: Sequence[str]) -> Group:
    digits = [[int(digit) for digit in rating] for rating in ratings]
    answered = tuple(
        Answered(
            tuple(turns),
            answer,
            {aspect: (digit - 1) / 4 for aspect, digit in zip(RATED, own, strict=True)},
        )
        for answer, own in zip(answers, digits, strict=True)
    )
    preferred = []
    for one, other in combinations(range(len(answers)), 2):
        for place, aspect in enumerate(RATED):
            difference = digits[one][place] - digits[other][place]
            if difference:
                better, worse = (one, other) if difference > 0 else (other, one)
                sure = 1.0 / (1.0 + math.exp(-STEEPNESS * abs(difference)))
                preferred.append(Preference(better, worse, sure, aspect))
    return Group(answered, tuple(preferred))
