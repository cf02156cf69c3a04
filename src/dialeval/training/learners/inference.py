"""Learns whether one sentence follows from another, or contradicts it.

A folder is searched for the public sets that people have, by the names that their authors gave the
files; anything else is a table of one's own with the columns premise, hypothesis and label.

    mnli_train.tsv                sentence1, sentence2, label
    mnli_dev_matched.txt          held out: reported, never learned from
    snli/{s1,s2,labels}.dev       the development split is learned from ...
    snli/{s1,s2,labels}.test      ... and the test split held out
    dialogue/train_3_data.csv     GU-CLASP: turns of a dialogue, a sentence about them
    breaking/dataset.jsonl        Breaking NLI: one word exchanged, mostly contradictions
    sick/SICK_train.txt           SICK (not for commercial use: left out unless asked for)
    decode/contradictions.tsv     DECODE: utterances of one speaker that contradict each other;
                                  read with dialogues that give consistent ones (`add_decode`)
    *.tsv, *.csv, *.jsonl         premise, hypothesis, label

A premise belongs to one split only, so that validation does not see a sentence twice.

An encoder learns to tell contradiction, neutral and entailment apart. Both sentences are read
together, `[CLS] premise [SEP] hypothesis [SEP]`, and a linear head on the pooled state of the first
token gives three logits. Pairs of similar length share a batch.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from dialeval.datasets.locate import resolve_folder
from dialeval.errors import InputError, Problem, UsageError
from dialeval.models.classifier import pad
from dialeval.question import NLI_LABELS
from dialeval.storage import read_lines
from dialeval.text import content_words, swap_persons
from dialeval.training.card import SourceScores, score_source, word_count
from dialeval.training.loop import NetworkLearner, Validation, multiply_in, similar_batches

if TYPE_CHECKING:
    from dialeval.training.recipes.nli import Inference


FEWEST = 30
VALIDATION_SHARE = 20
"""One premise in twenty is kept for validation."""

DECODE = "decode/contradictions.tsv"
FEWEST_WORDS = 3
"""Content words of a turn that says enough to be contradicted."""

UNDECIDED = "-"
"""The label in SNLI of pairs on which its annotators did not agree."""

_SPEAKER = re.compile(r"<[A-Z]>\s*")


@dataclass(frozen=True, slots=True)
class InferencePair:
    """`label` is a place in `NLI_LABELS`; `source` the set that the pair is from."""

    premise: str
    hypothesis: str
    label: int
    source: str


@dataclass(frozen=True)
class InferencePairs:
    """The pairs to learn from, to choose the best epoch by, and to report on only."""

    name: str
    train: tuple[InferencePair, ...]
    validation: tuple[InferencePair, ...]
    held_out: Mapping[str, tuple[InferencePair, ...]]

    def digest(self) -> str:
        sha = hashlib.sha256()
        for pairs in (self.train, self.validation, *self.held_out.values()):
            for pair in pairs:
                row = f"{pair.premise}\x1f{pair.hypothesis}\x1f{pair.label}\x1e"
                sha.update(row.encode("utf-8", "replace"))
            sha.update(b"\x1d")
        return sha.hexdigest()

    def at_most(self, held_out: int | None) -> InferencePairs:
        """Keeps `held_out` pairs to validate on and in each reported set; None: all."""
        return replace(
            self,
            validation=_drawn(self.validation, held_out),
            held_out={name: _drawn(pairs, held_out) for name, pairs in self.held_out.items()},
        )


def _drawn(pairs: tuple[InferencePair, ...], most: int | None) -> tuple[InferencePair, ...]:
    """Draws pairs at random, always the same ones, in their order."""
    chosen = np.random.default_rng(0).permutation(len(pairs))[:most]
    return tuple(pairs[i] for i in np.sort(chosen).tolist())


def add_decode(pairs: InferencePairs, folder: Path, corpora: Sequence[Path]) -> InferencePairs:
    """Adds the contradictions of DECODE, and as many consistent pairs from dialogues.

    DECODE as it can be had holds contradictions only. Two turns that one speaker said in a dialogue
    of a corpus are consistent (counted as neutral); two in three share a content word, so that
    sharing one does not mean contradiction. A third of all pairs is written from the other side
    (I am -> you are). A tenth is held out, by premise and by dialogue.
    """
    path = resolve_folder(folder) / DECODE
    if not path.is_file():
        raise UsageError(f"{path} is missing: it holds the contradictions of DECODE")
    generator = np.random.default_rng(0)
    found = list(_read("decode", path))
    wanted = len(found)
    found += _consistent_pairs(corpora, wanted, generator)
    swapped = generator.random(len(found)) < 1 / 3
    found = [
        replace(pair, premise=swap_persons(pair.premise), hypothesis=swap_persons(pair.hypothesis))
        if turn
        else pair
        for pair, turn in zip(found, swapped, strict=True)
    ]
    places = [_place(pair.premise) for pair in found]
    split = list(zip(found, places, strict=True))
    return InferencePairs(
        f"{pairs.name}+decode",
        (*pairs.train, *(pair for pair, place in split if place > 2)),
        (*pairs.validation, *(pair for pair, place in split if place == 2)),
        {**pairs.held_out, "decode": tuple(pair for pair, place in split if place < 2)},
    )


def _consistent_pairs(
    corpora: Sequence[Path], wanted: int, generator: np.random.Generator
) -> list[InferencePair]:
    """Turns of one speaker, two or four turns apart, from dialogues that no rated set holds."""
    from dialeval.training.examples.corpora import load_unrated

    corpus, _ = load_unrated(corpora)
    near: list[InferencePair] = []
    far: list[InferencePair] = []
    for dialogue in corpus.train:
        for first in range(len(dialogue)):
            for second in (first + 2, first + 4):
                if second >= len(dialogue):
                    break
                said, later = _plain(dialogue[first]), _plain(dialogue[second])
                words = content_words(said), content_words(later)
                if min(map(len, words)) < FEWEST_WORDS:
                    continue
                share = near if words[0] & words[1] else far
                share.append(InferencePair(said, later, NLI_LABELS.index("neutral"), "dialogues"))
    drawn = []
    for pairs, most in ((near, 2 * wanted // 3), (far, wanted - 2 * wanted // 3)):
        drawn += [pairs[i] for i in generator.permutation(len(pairs))[:most].tolist()]
    if len(drawn) < wanted // 2:
        raise UsageError(f"the dialogues hold {len(drawn)} consistent pairs, {wanted} are needed")
    return drawn


Rows = Iterator[tuple[int, Sequence[object]]]
"""Line, and premise, hypothesis and label as they stand in a file; None where one is missing."""

FIELDS = ("premise", "hypothesis", "label")


def load_inference_pairs(path: Path, sources: Sequence[str] = ()) -> InferencePairs:
    """Reads a folder of the public sets (by name: `nli`) or of one's own tables, or a table.

    `sources` chooses among the sets of the folder; without it all but SICK are used.
    """
    path = resolve_folder(path)
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    learned = _known(path, _LEARNED) or {p.stem: p for p in _tables(path)}
    wanted = sources or [name for name in learned if name != "sick"]
    if unknown := [name for name in wanted if name not in learned]:
        raise UsageError(
            f"{path} holds no {', '.join(unknown)}. There are: {', '.join(learned) or 'none'}"
        )
    pairs = [pair for name in wanted for pair in _read(name, learned[name])]
    pairs = list({(pair.premise, pair.hypothesis): pair for pair in pairs}.values())
    held_out = {name: tuple(_read(name, p)) for name, p in _known(path, _HELD_OUT).items()}
    seen = {(p.premise, p.hypothesis) for held in held_out.values() for p in held}
    pairs = [pair for pair in pairs if (pair.premise, pair.hypothesis) not in seen]
    chosen = [_is_for_validation(pair.premise) for pair in pairs]
    train = tuple(p for p, validation in zip(pairs, chosen, strict=True) if not validation)
    validation = tuple(p for p, validation in zip(pairs, chosen, strict=True) if validation)
    if len(pairs) < FEWEST or not train or not validation:
        premises = len({pair.premise for pair in pairs})
        raise UsageError(
            f"{path}: {len(pairs)} pairs with {premises} different premises are too few to learn"
            f" from and to validate on (one premise in {VALIDATION_SHARE}, drawn at random)"
        )
    return InferencePairs("+".join(wanted), train, validation, held_out)


def _is_for_validation(premise: str) -> bool:
    return _place(premise) == 0


def _place(premise: str) -> int:
    digest = hashlib.sha256(premise.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8]) % VALIDATION_SHARE


def _known(path: Path, sets: Mapping[str, str]) -> dict[str, Path]:
    return {name: path / file for name, file in sets.items() if (path / file).is_file()}


def _tables(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(p for p in path.iterdir() if p.suffix in (".tsv", ".csv", ".jsonl"))


def _read(source: str, path: Path) -> Iterator[InferencePair]:
    """Yields the pairs of a file that have a gold label; every other line is an error."""
    problems: list[Problem] = []
    reader = _READERS.get(source, _own_table)
    try:
        for line, row in reader(path):
            wrong = [
                Problem(str(path), line, field, "is missing" if value is None else "is no text")
                for field, value in zip(FIELDS, row, strict=True)
                if not isinstance(value, str)
            ]
            premise, hypothesis, label = map(str, row)
            name = label.strip().lower()
            if wrong:
                problems += wrong
            elif name in NLI_LABELS:
                yield InferencePair(
                    _plain(premise), _plain(hypothesis), NLI_LABELS.index(name), source
                )
            elif name != UNDECIDED:
                what = f"{label!r} is none of {', '.join(NLI_LABELS)}"
                problems.append(Problem(str(path), line, "label", what))
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as inference pairs: {error}") from error
    if problems:
        raise InputError(problems)


def _plain(text: str) -> str:
    """Returns the text as people write it: treebank tokens such as `do n't` and `it 's` closed up
    again."""
    text = re.sub(r"\s+(n't|'(?:s|m|d|re|ve|ll))\b", r"\1", " ".join(text.split()))
    return re.sub(r"\s+([.,!?;:])(?=\s|$)", r"\1", text)


def _columns(premise: str, hypothesis: str, label: str) -> Callable[[Path], Rows]:
    def read(path: Path) -> Rows:
        with path.open(encoding="utf-8", newline="") as file:
            rows = (
                csv.DictReader(file)
                if path.suffix == ".csv"
                else csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            )
            for name in (premise, hypothesis, label):
                if name not in (rows.fieldnames or ()):
                    raise ValueError(f"it has no column {name!r}")
            for row in rows:
                yield rows.line_num, [row.get(name) for name in (premise, hypothesis, label)]

    return read


def _parallel(path: Path) -> Rows:
    """SNLI as three files of lines."""
    columns = [read_lines(path.with_name(name + path.suffix)) for name in ("s1", "s2", "labels")]
    yield from enumerate(zip(*columns, strict=True), 1)


def _clasp(path: Path) -> Rows:
    """Yields turns marked `<A>`, without their marks."""
    for number, line in enumerate(read_lines(path), 1):
        turns, about, label = line.rsplit("\t", 2)
        yield number, (_SPEAKER.sub("", turns), about, label)


def _json_lines(premise: str, hypothesis: str, label: str) -> Callable[[Path], Rows]:
    def read(path: Path) -> Rows:
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            row = json.loads(line)
            found = row if isinstance(row, dict) else {}
            yield number, [found.get(name) for name in (premise, hypothesis, label)]

    return read


def _decode(path: Path) -> Rows:
    for line, (first, second, label) in _columns("seg1", "seg2", "label")(path):
        yield line, (first, second, str(label).removeprefix("self-"))


def _own_table(path: Path) -> Rows:
    return (_json_lines if path.suffix == ".jsonl" else _columns)(*FIELDS)(path)


_LEARNED = {
    "mnli": "mnli_train.tsv",
    "snli": "snli/labels.dev",
    "dialogue": "dialogue/train_3_data.csv",
    "breaking": "breaking/dataset.jsonl",
    "sick": "sick/SICK_train.txt",
}
_HELD_OUT = {"mnli dev matched": "mnli_dev_matched.txt", "snli test": "snli/labels.test"}
_READERS: Mapping[str, Callable[[Path], Rows]] = {
    "mnli": _columns("sentence1", "sentence2", "label"),
    "mnli dev matched": _columns("premise", "hypothesis", "gold_label"),
    "snli": _parallel,
    "snli test": _parallel,
    "dialogue": _clasp,
    "breaking": _json_lines("sentence1", "sentence2", "gold_label"),
    "sick": _columns("sentence_A", "sentence_B", "entailment_judgment"),
    "decode": _decode,
}


Probabilities = npt.NDArray[np.floating[Any]]
"""Of the labels in the order of `NLI_LABELS`, one row per pair."""


def score_pairs(
    source: str, pairs: Sequence[InferencePair], probabilities: Probabilities
) -> SourceScores:
    """Returns what the card says of pairs that were not learned from. Majority and accuracy are
    those of the three labels; what is correlated, also with the words of both sentences, is the
    probability of a contradiction."""
    labels = np.array([pair.label for pair in pairs])
    contradiction = NLI_LABELS.index("contradiction")
    found = score_source(
        source,
        probabilities[:, contradiction].tolist(),
        (labels == contradiction).astype(float).tolist(),
        [word_count(pair.premise) + word_count(pair.hypothesis) for pair in pairs],
    )
    return replace(
        found,
        majority=float(np.bincount(labels).max() / len(labels)),
        accuracy=float((probabilities.argmax(axis=1) == labels).mean()),
    )


Encoded = tuple[list[int], list[int], int]
"""Token ids, segment of each token, label."""


class InferenceLearner(NetworkLearner):
    """Three-way classification of pairs of sentences."""

    network: Any

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        train: Sequence[InferencePair],
        validation: Sequence[InferencePair],
        recipe: Inference,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._recipe = recipe
        chosen = np.random.default_rng(recipe.seed).permutation(len(train))[: recipe.pairs]
        self._train = self.encode([train[i] for i in sorted(chosen)])
        self._validation = self.encode(validation)

    def encode(self, pairs: Sequence[InferencePair]) -> list[Encoded]:
        """Longer pairs are cut, the longer of both texts first."""
        read = self._tokenizer(
            [pair.premise for pair in pairs],
            [pair.hypothesis for pair in pairs],
            truncation=True,
            max_length=self._recipe.pair_tokens,
            return_token_type_ids=True,
        )
        labels = [pair.label for pair in pairs]
        return list(zip(read.input_ids, read.token_type_ids, labels, strict=True))

    @property
    def pairs(self) -> int:
        """Pairs that one epoch sees."""
        return len(self._train)

    def batches(self, epoch: int) -> list[list[Encoded]]:
        generator = np.random.default_rng([self._recipe.seed, epoch])
        lengths = [len(ids) // 4 for ids, _, _ in self._train]
        batches = similar_batches(lengths, self._recipe.batch, generator)
        return [[self._train[row] for row in batch] for batch in batches]

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        with multiply_in(self._recipe.precision):
            logits = self._logits(batch)
        return torch.nn.functional.cross_entropy(logits.float(), _labels(batch))

    def validate(self) -> Validation:
        probabilities = self.predict(self._validation)
        labels = _labels(self._validation)
        loss = -probabilities[torch.arange(len(labels)), labels].log().mean()
        correct = float((probabilities.argmax(1) == labels).double().mean())
        # If two epochs are right equally often, the surer one is kept.
        error = 1 - correct + float(loss) / (1000 * len(labels))
        return Validation(float(loss), {"validation_accuracy": correct}, error)

    @torch.no_grad()
    def predict(self, encoded: Sequence[Encoded]) -> torch.Tensor:
        """Probabilities of the labels, one row per pair."""
        self.network.eval()
        found = torch.empty(len(encoded), self.network.config.num_labels)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        size = 2 * self._recipe.batch
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            found[rows] = self._logits([encoded[i] for i in rows]).softmax(-1)
        return found

    def probabilities(self, pairs: Sequence[InferencePair]) -> Probabilities:
        """Returns one row per pair."""
        return self.predict(self.encode(pairs)).numpy()

    def _logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        inputs = pad([(ids, types) for ids, types, _ in batch], self._tokenizer)
        logits: torch.Tensor = self.network(**inputs).logits
        return logits


def _labels(batch: Sequence[Encoded]) -> torch.Tensor:
    return torch.tensor([label for _, _, label in batch])
