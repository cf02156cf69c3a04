"""Dialogues to learn from: lists of turns, from the corpora people use.

    dailydialog/   train/, validation/, test/ with dialogues_*.txt; turns end in `__eou__`
    FILE           anything that `dialeval.load` reads: its dialogues, responses included
    NAME           a data set by name: one of the above

A split is a whole number of dialogues, and each dialogue counts once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from dialeval.datasets.locate import resolve_folder
from dialeval.errors import UsageError
from dialeval.sample import letters
from dialeval.storage import read_lines

Dialogue = tuple[str, ...]

SPLITS = ("train", "validation", "test")
FEWEST = 10
LONG = 40
"""Letters of an exchange that two dialogues do not share by chance."""


@dataclass(frozen=True)
class Corpus:
    """Three sets of dialogues, and a digest of all of them for the card."""

    name: str
    train: tuple[Dialogue, ...]
    validation: tuple[Dialogue, ...]
    test: tuple[Dialogue, ...]

    def digest(self) -> str:
        sha = hashlib.sha256()
        for split in (self.train, self.validation, self.test):
            for dialogue in split:
                sha.update("\x1f".join(dialogue).encode("utf-8", "replace") + b"\x1e")
            sha.update(b"\x1d")
        return sha.hexdigest()


def load_corpus(path: Path, format: str | None = None) -> Corpus:
    """Reads a corpus with its own splits, or splits a file of dialogues 90 : 5 : 5 by digest."""
    folder = resolve_folder(path)
    if (folder / "train" / "dialogues_train.txt").is_file():
        splits = {name: _daily_dialog(folder / name / f"dialogues_{name}.txt") for name in SPLITS}
        held_out = (*splits["validation"], *splits["test"])
        splits["train"] = without_overlap(splits["train"], held_out)
        return Corpus(folder.name, **splits)
    if path.is_dir() and not any(path.iterdir()):
        raise UsageError(f"{path} is empty")
    return _split(path.name, _from_samples(path, format))


def _daily_dialog(path: Path) -> tuple[Dialogue, ...]:
    if not path.is_file():
        raise UsageError(f"{path} is missing: a DailyDialog folder has train, validation and test")
    dialogues = (
        tuple(turn.strip() for turn in line.split("__eou__") if turn.strip())
        for line in read_lines(path)
    )
    # The released corpus repeats dialogues: each counts once.
    return tuple(dict.fromkeys(dialogue for dialogue in dialogues if len(dialogue) > 1))


def without_overlap(
    dialogues: tuple[Dialogue, ...], held_out: tuple[Dialogue, ...]
) -> tuple[Dialogue, ...]:
    """The dialogues that share no exchange (two turns in a row) with those that are held out.

    DailyDialog repeats dialogues, whole and in part, across its splits; rated sets were cut from
    its validation and test dialogues. Short exchanges, such as thanks, are everyone's.
    """

    def pairs(dialogue: Dialogue) -> set[tuple[str, str]]:
        turns = [letters(turn) for turn in dialogue]
        return {(one, other) for one, other in pairwise(turns) if len(one + other) >= LONG}

    seen = set().union(*map(pairs, held_out))
    return tuple(dialogue for dialogue in dialogues if not pairs(dialogue) & seen)


def _from_samples(path: Path, format: str | None) -> list[list[Dialogue]]:
    """Dialogues, those together that go by one name."""
    from dialeval.readers import load

    found: dict[str, list[Dialogue]] = {}
    for sample in load(path, format=format):
        turns = tuple(turn.text for turn in sample.turns if turn.text.strip())
        _add(found.setdefault(sample.dialogue or sample.id, []), turns)
    seen: set[Dialogue] = set()
    groups = []
    for own in found.values():
        new = [dialogue for dialogue in own if len(dialogue) > 1 and dialogue not in seen]
        seen.update(new)
        groups += [new] if new else []
    return groups


def _add(found: list[Dialogue], turns: Dialogue) -> None:
    """Each turn of a chat is a sample with all turns before it: what another one continues goes.
    Several answers to the same turns are dialogues of their own."""
    if any(other[: len(turns)] == turns for other in found):
        return
    found[:] = [other for other in found if turns[: len(other)] != other]
    found.append(turns)


def _split(name: str, groups: list[list[Dialogue]]) -> Corpus:
    """90 : 5 : 5, at least two in each, in the order of a digest: the same for the same data.

    Answers of rival systems to the same turns stay together, by the name of their dialogue or by
    the exchanges that they share."""
    if len(groups) < FEWEST:
        raise UsageError(
            f"{name}: dialogues to learn from: {len(groups)}. It takes at least {FEWEST} to"
            " train, validate and test on"
        )
    ordered = sorted(groups, key=lambda group: min(map(_digest, group)))
    held = max(2, len(ordered) // 20)
    test, validation, train = (
        tuple(dialogue for group in part for dialogue in group)
        for part in (ordered[:held], ordered[held : 2 * held], ordered[2 * held :])
    )
    validation = without_overlap(validation, test)
    train = without_overlap(train, (*validation, *test))
    if not (train and validation):
        raise UsageError(f"{name}: its dialogues share their exchanges: nothing can be held out")
    return Corpus(name, train, validation, test)


def _digest(dialogue: Dialogue) -> bytes:
    return hashlib.sha256("\x1f".join(dialogue).encode("utf-8", "replace")).digest()
