"""DailyDialog++ (Sai et al., TACL 2020): contexts of DailyDialog with answers that people wrote.

    dev.json, test.json   five right answers to each context, five wrong ones that share words with
                          it (adversarial), and five answers to other contexts (random)

Each line is a JSON object. `train deb` learns from the contexts of dev.json and measures on those
of test.json; `train judge-corpus` learns from both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dialeval.errors import InputError, Problem, UsageError
from dialeval.storage import read_lines
from dialeval.training.examples.corpora import LeftOut, RatedExchanges


@dataclass(frozen=True, slots=True)
class WrittenAnswers:
    """A context, the last turn last, and the answers to it."""

    turns: tuple[str, ...]
    right: tuple[str, ...]
    adversarial: tuple[str, ...]
    random: tuple[str, ...]


_FIELDS = (
    "context",
    "positive_responses",
    "adversarial_negative_responses",
    "random_negative_responses",
)


def read_written_answers(path: Path) -> Iterator[WrittenAnswers]:
    """Reads the contexts of a file that have wrong answers of both kinds."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            turns, *answers = (tuple(record.get(name) or ()) for name in _FIELDS)
            found = WrittenAnswers(tuple(turn.strip() for turn in turns), *answers)
        except (ValueError, AttributeError, TypeError):
            said = f"expected a JSON object with lists of texts: {', '.join(_FIELDS)}"
            raise InputError([Problem(str(path), number, "line", said, "error")]) from None
        if found.adversarial and found.random:
            yield found


def written_file(folder: Path, name: str) -> Path:
    """Returns a file of the folder, which has to be there."""
    path = folder / name
    if not path.is_file():
        raise UsageError(f"{folder}: holds no {name} of DailyDialog++")
    return path


def without_rated_contexts(
    found: Iterable[WrittenAnswers], rated: RatedExchanges
) -> tuple[list[WrittenAnswers], LeftOut]:
    """Returns the contexts that share no long exchange with a rated set, answers included."""
    kept, by_set, count = [], Counter[str](), 0
    for one in found:
        dialogues = ((*one.turns, answer) for answer in one.right)
        names = {name for dialogue in dialogues for name in rated.sets_with_dialogue(dialogue)}
        if names:
            by_set.update(names)
            count += 1
        else:
            kept.append(one)
    return kept, LeftOut(rated, "contexts", count, by_set)
