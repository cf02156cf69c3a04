"""Dialogues to learn from: lists of turns, from the corpora people use.

    dailydialog/   train/, validation/, test/ with dialogues_*.txt; turns end in `__eou__`
    FILE           anything that `dialeval.load` reads: its dialogues, responses included

A split is a whole number of dialogues: no dialogue is in two of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dialeval.errors import UsageError

Dialogue = tuple[str, ...]

SPLITS = ("train", "validation", "test")


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
    if (path / "train" / "dialogues_train.txt").is_file():
        splits = {name: _daily_dialog(path / name / f"dialogues_{name}.txt") for name in SPLITS}
        return Corpus(path.name, **splits)
    if path.is_dir() and not any(path.iterdir()):
        raise UsageError(f"{path} is empty")
    return _split(path.name, _from_samples(path, format))


def _daily_dialog(path: Path) -> tuple[Dialogue, ...]:
    if not path.is_file():
        raise UsageError(f"{path} is missing: a DailyDialog folder has train, validation and test")
    lines = path.read_text(encoding="utf-8").splitlines()
    dialogues = (
        tuple(turn.strip() for turn in line.split("__eou__") if turn.strip()) for line in lines
    )
    # The released corpus repeats dialogues: each counts once.
    return tuple(dict.fromkeys(dialogue for dialogue in dialogues if len(dialogue) > 1))


def _from_samples(path: Path, format: str | None) -> tuple[Dialogue, ...]:
    from dialeval.readers import load

    longest: dict[str, Dialogue] = {}
    for sample in load(path, format=format):
        turns = tuple(turn.text for turn in sample.turns if turn.text.strip())
        key = sample.dialogue or sample.id
        if len(turns) > len(longest.get(key, ())):
            longest[key] = turns
    return tuple(dict.fromkeys(d for d in longest.values() if len(d) > 1))


def _split(name: str, dialogues: tuple[Dialogue, ...]) -> Corpus:
    """By a digest of the first turns, so that adding dialogues moves none to another split."""
    splits: dict[str, list[Dialogue]] = {split: [] for split in SPLITS}
    for dialogue in dialogues:
        bucket = hashlib.sha256("\x1f".join(dialogue[:2]).encode("utf-8", "replace")).digest()[0]
        splits["test" if bucket < 13 else "validation" if bucket < 26 else "train"].append(dialogue)
    if not splits["train"] or not splits["validation"]:
        raise UsageError(f"{name}: {len(dialogues)} dialogues are too few to train and validate on")
    return Corpus(name, **{split: tuple(found) for split, found in splits.items()})
