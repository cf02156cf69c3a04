"""Dialogues to learn from: lists of turns, from the corpora people use.

    dailydialog/   train/, validation/, test/ with dialogues_*.txt; turns end in `__eou__`
    FILE           anything that `dialeval.load` reads: its dialogues, responses included
    NAME           a data set by name: one of the above

A split is a whole number of dialogues, and each dialogue counts once.

Nothing is learned from the exchanges of rated sets, whatever lies on the machine. A metric that
learned from a dialogue must not be compared with the people who rated it. So every training leaves
out what the rated sets hold that dialeval knows. The sets themselves may not be passed on, and the
same training has to give the same weights where they are absent: therefore `rated-exchanges.npz`
ships with the package and holds hashes of their texts, made by `scripts/build_rated_exchanges.py`.
A hash has 40 bits: about 100 000 of them are known, so that one exchange in ten million is left out
by chance, and always the same one.

    exchange   two turns in a row, letters and digits alone, without case
    long turn  one turn of 40 letters or more

The copies of a dialogue differ in spaces, case and punctuation (`don 't` and `Don't`), not in
letters and digits. Short exchanges, such as thanks, are everyone's: only an exchange of 40 letters
or more takes its dialogue with it.

Contexts of HUMOD are one string each: what follows any of their sentence ends counts as the turn
before the response. Contexts of DSTC7 have lost their stop words at the source, so that its
exchanges would match nothing: only its long responses can be found again.

DailyDialog++ (Sai et al., TACL 2020): contexts of DailyDialog with answers that people wrote.

    dev.json, test.json   five right answers to each context, five wrong ones that share words with
                          it (adversarial), and five answers to other contexts (random)

Each line is a JSON object. `train deb` learns from the contexts of dev.json and measures on those
of test.json; `train judge-corpus` learns from both.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dialeval.datasets.locate import resolve_folder
from dialeval.errors import InputError, Problem, UsageError
from dialeval.storage import read_lines
from dialeval.text import letters_and_digits

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
    """Returns the dialogues that share no exchange (two turns in a row) with those that are held
    out.

    DailyDialog repeats dialogues, whole and in part, across its splits; rated sets were cut from
    its validation and test dialogues. Short exchanges, such as thanks, are everyone's.
    """

    def pairs(dialogue: Dialogue) -> set[tuple[str, str]]:
        turns = [letters_and_digits(turn) for turn in dialogue]
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
    size = max(2, len(ordered) // 20)
    test, validation, train = (
        tuple(dialogue for group in part for dialogue in group)
        for part in (ordered[:size], ordered[size : 2 * size], ordered[2 * size :])
    )
    validation = without_overlap(validation, test)
    train = without_overlap(train, (*validation, *test))
    if not (train and validation):
        raise UsageError(f"{name}: its dialogues share their exchanges: nothing can be held out")
    return Corpus(name, train, validation, test)


def _digest(dialogue: Dialogue) -> bytes:
    return hashlib.sha256("\x1f".join(dialogue).encode("utf-8", "replace")).digest()


SHIPPED = "rated-exchanges.npz"

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class RatedSet:
    """The hashes of one rated set, and how many rated items they are of."""

    name: str
    items: int
    exchanges: frozenset[int]
    long_turns: frozenset[int]


@dataclass(frozen=True)
class RatedExchanges:
    """Rated sets by what can be recognised of them."""

    sets: tuple[RatedSet, ...]

    def sets_with_exchange(self, one: str, other: str) -> tuple[str, ...]:
        """Returns the names of the sets in which `other` follows `one`."""
        found = self._exchanges.get(exchange_hash(one, other), ())
        return tuple(self.sets[place].name for place in found)

    def sets_with_long_turn(self, turn: str) -> tuple[str, ...]:
        """Returns the names of the sets in which the turn stands, which has to be a long one."""
        found = self._long_turns.get(turn_hash(turn), ()) if is_long(turn) else ()
        return tuple(self.sets[place].name for place in found)

    def sets_with_dialogue(self, dialogue: Dialogue) -> tuple[str, ...]:
        """Returns the names of the sets that share a long exchange with the dialogue."""
        found = {
            name: None
            for one, other in pairwise(dialogue)
            if is_long(one, other)
            for name in self.sets_with_exchange(one, other)
        }
        return tuple(found)

    @property
    def digest(self) -> str:
        sha = hashlib.sha256()
        for one in self.sets:
            sha.update(f"{one.name} {one.items}\x1d".encode())
            for hashes in (one.exchanges, one.long_turns):
                sha.update(np.array(sorted(hashes), dtype="<u8").tobytes() + b"\x1d")
        return sha.hexdigest()

    def described(self) -> str:
        """Returns names, items and exchanges for a card."""
        return "; ".join(
            f"{one.name} ({one.items:,} items, {len(one.exchanges):,} exchanges)"
            for one in self.sets
        )

    @cached_property
    def _exchanges(self) -> dict[int, tuple[int, ...]]:
        return _places([one.exchanges for one in self.sets])

    @cached_property
    def _long_turns(self) -> dict[int, tuple[int, ...]]:
        return _places([one.long_turns for one in self.sets])


@dataclass(frozen=True)
class LeftOut:
    """Counts of what was not learned from because rated sets hold it, in all and by set. What
    several sets hold counts for each of them, and once in all."""

    rated: RatedExchanges
    what: str = "dialogues"
    count: int = 0
    by_set: Mapping[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Returns the counts for the card."""
        shared = {one.name: self.by_set.get(one.name, 0) for one in self.rated.sets}
        return {
            f"{self.what} left out because rated sets share them": self.count,
            f"{self.what} left out, by rated set": ", ".join(
                f"{name} {count:,}" for name, count in shared.items()
            )
            or "no set",
            "rated sets that are left out": self.rated.described() or "none",
            "sha256 of their hashes": self.rated.digest,
        }

    def __add__(self, other: LeftOut) -> LeftOut:
        both = Counter(self.by_set) + Counter(other.by_set)
        return LeftOut(self.rated, self.what, self.count + other.count, both)


def known_exchanges() -> RatedExchanges:
    """Returns the exchanges of all rated sets that dialeval knows, which every training leaves
    out."""
    return _shipped()


@cache
def _shipped() -> RatedExchanges:
    with resources.files("dialeval.training").joinpath(SHIPPED).open("rb") as file:
        return read_exchanges(file)


def without_rated(corpus: Corpus, rated: RatedExchanges) -> tuple[Corpus, LeftOut]:
    """Returns the corpus without the dialogues that rated sets share. Held-out dialogues stay:
    nothing is learned from them."""
    kept, by_set = [], Counter[str]()
    for dialogue in corpus.train:
        if names := rated.sets_with_dialogue(dialogue):
            by_set.update(names)
        else:
            kept.append(dialogue)
    count = len(corpus.train) - len(kept)
    return (
        Corpus(corpus.name, tuple(kept), corpus.validation, corpus.test),
        LeftOut(rated, "dialogues", count, by_set),
    )


def load_unrated(data: Sequence[Path], format: str | None = None) -> tuple[Corpus, LeftOut]:
    """Loads one or several corpora as one, without the dialogues that rated sets share."""
    rated = known_exchanges()
    kept, left_out = [], LeftOut(rated)
    for path in data:
        corpus, shared = without_rated(load_corpus(path, format), rated)
        kept.append(corpus)
        left_out += shared
    if len(kept) == 1:
        return kept[0], left_out
    splits = {s: tuple(d for corpus in kept for d in getattr(corpus, s)) for s in SPLITS}
    splits["train"] = without_overlap(splits["train"], (*splits["validation"], *splits["test"]))
    return Corpus("+".join(corpus.name for corpus in kept), **splits), left_out


def exchanges_of(name: str, items: int, dialogues: Iterable[Dialogue]) -> RatedSet:
    """Returns what is to be recognised of a rated set with these conversations."""
    exchanges: set[int] = set()
    long_turns: set[int] = set()
    for dialogue in dialogues:
        exchanges.update(exchange_hash(*pair) for pair in pairwise(dialogue) if any(pair))
        long_turns.update(turn_hash(turn) for turn in dialogue if is_long(turn))
    return RatedSet(name, items, frozenset(exchanges), frozenset(long_turns))


def exchange_hash(one: str, other: str) -> int:
    return _hash(f"{letters_and_digits(one)}\x1f{letters_and_digits(other)}")


def turn_hash(turn: str) -> int:
    return _hash(letters_and_digits(turn))


def is_long(*turns: str) -> bool:
    return sum(len(letters_and_digits(turn)) for turn in turns) >= LONG


def write_exchanges(rated: RatedExchanges, path: Path) -> None:
    """Writes one column of hashes of each kind, sorted and as differences, which makes the file
    small; beside it the sets of each hash, as bits."""
    columns: dict[str, npt.NDArray[Any]] = {
        "names": np.array([one.name for one in rated.sets]),
        "items": np.array([one.items for one in rated.sets], dtype=np.int64),
    }
    for kind in ("exchanges", "long_turns"):
        places = _places([getattr(one, kind) for one in rated.sets])
        hashes = sorted(places)
        bits = [sum(1 << place for place in places[number]) for number in hashes]
        columns[kind] = np.diff(np.array(hashes, dtype=np.uint64), prepend=np.uint64(0))
        columns[f"sets_of_{kind}"] = np.array(bits, dtype=np.uint64)
    np.savez_compressed(path, allow_pickle=False, **columns)


def read_exchanges(file: IO[bytes]) -> RatedExchanges:
    with np.load(file, allow_pickle=False) as columns:
        names, items = columns["names"].tolist(), columns["items"].tolist()
        kinds = {
            kind: [
                _with_bit(columns[kind].cumsum(), columns[f"sets_of_{kind}"], place)
                for place in range(len(names))
            ]
            for kind in ("exchanges", "long_turns")
        }
    found = zip(names, items, kinds["exchanges"], kinds["long_turns"], strict=True)
    return RatedExchanges(tuple(RatedSet(*one) for one in found))


def _with_bit(hashes: Hashes, bits: Hashes, place: int) -> frozenset[int]:
    return frozenset(hashes[bits >> np.uint64(place) & np.uint64(1) == 1].tolist())


def _places(sets: Sequence[frozenset[int]]) -> dict[int, tuple[int, ...]]:
    """Hash -> the numbers of the sets that have it."""
    found: dict[int, tuple[int, ...]] = {}
    for place, hashes in enumerate(sets):
        for number in hashes:
            found[number] = (*found.get(number, ()), place)
    return found


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).digest()
    return int.from_bytes(digest, "little")


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
