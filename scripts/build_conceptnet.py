"""Build the graph of concepts that ships in `dialeval.lexicon` from assertions of ConceptNet 5.

    python scripts/build_conceptnet.py DIRECTORY            CN-100K: train.txt, valid.txt, test.txt,
                                                            conceptnet_synonyms.txt, ..._antonyms.txt
    python scripts/build_conceptnet.py assertions.csv.gz    all of ConceptNet 5, English alone

CN-100K (Li et al., 2016) has lines of `relation TAB head TAB tail`; its lists of synonyms and
antonyms have `head|||/r/Relation|||tail`. ConceptNet's own dump has
`uri TAB /r/Relation TAB /c/en/head/... TAB /c/en/tail/... TAB json`.

What becomes an edge: keywords are single words, and so are the nodes. Only a fifth of CN-100K joins
one word with one word, so a concept of several words stands for the words in it that mean something
("play on ice": play, ice), and an assertion joins each such word of its head with each of its tail.
A concept with more than three of them says too much to be about any of them, and is left out, as
are function words. The kind of relation and its direction are not kept: neither is looked at by
GRADE. Words are written as WordNet has them (`rocks` -> `rock`); what WordNet does not have, such
as misspellings, is left out.

The neighbours of a word are ordered from the nearest to the furthest by cosine of their word
vectors, so that the nearest ten are the first ten; words without a vector come last. With each word
go the ten nearest of the neighbours of its ten nearest neighbours. The arrays are described in
`dialeval.lexicon.conceptnet`.
"""  # noqa: E501

import argparse
import gzip
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from dialeval.lexicon import load_wordnet
from dialeval.lexicon.conceptnet import NEAREST
from dialeval.model_store.locate import locate, ready
from dialeval.models.word_vectors import WordVectorTable, load
from dialeval.text import FUNCTION_WORDS, treebank_words

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dialeval" / "lexicon"

MOST_WORDS = 3
LISTS = ("conceptnet_synonyms.txt", "conceptnet_antonyms.txt")
TRIPLES = ("train.txt", "valid.txt", "test.txt")

Concepts = tuple[str, str]


def read_cn100k(directory: Path) -> Iterator[Concepts]:
    """Heads and tails of the files that are there; the triples of `train.txt` must be."""
    if not (directory / "train.txt").is_file():
        sys.exit(f"{directory}: there is no train.txt of CN-100K")
    for name in TRIPLES:
        if (directory / name).is_file():
            for line in (directory / name).read_text(encoding="utf-8").splitlines():
                _, head, tail = line.split("\t")[:3]
                yield head, tail
    for name in LISTS:
        if (directory / name).is_file():
            for line in (directory / name).read_text(encoding="utf-8").splitlines():
                head, _, tail = line.split("|||")
                yield head, tail


def read_dump(path: Path) -> Iterator[Concepts]:
    """English heads and tails: `/c/en/ice_hockey/n` is `ice hockey`."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            _, _, head, tail, _ = line.rstrip("\n").split("\t", 4)
            if head.startswith("/c/en/") and tail.startswith("/c/en/"):
                yield _phrase(head), _phrase(tail)


def _phrase(uri: str) -> str:
    return uri.split("/")[3].replace("_", " ")


@cache
def words_of(concept: str) -> tuple[str, ...]:
    """The words that a concept stands for; none if there are too many."""
    found = []
    for word in treebank_words(concept.lower()):
        if word in FUNCTION_WORDS or len(word) < 2 or not word.replace("-", "").isalpha():
            continue
        lemma = load_wordnet().morphy(word)
        if lemma is not None and lemma not in FUNCTION_WORDS:
            found.append(lemma)
    return tuple(dict.fromkeys(found)) if len(found) <= MOST_WORDS else ()


def edges_of(assertions: Iterable[Concepts]) -> dict[str, set[str]]:
    """Each word with the words that it is joined with."""
    graph: dict[str, set[str]] = {}
    for head, tail in assertions:
        for one in words_of(head):
            for other in words_of(tail):
                if one != other:
                    graph.setdefault(one, set()).add(other)
                    graph.setdefault(other, set()).add(one)
    return graph


class Nearness:
    """Cosines of word vectors; a word without a vector is nearest to nothing."""

    def __init__(self, words: list[str], table: WordVectorTable) -> None:
        rows = np.nan_to_num(np.array(table.look_up(words), dtype=np.float64))
        self._unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def ordered(self, number: int, others: np.ndarray) -> np.ndarray:
        """From the nearest to the furthest; among equals the first in the alphabet."""
        others = np.sort(others)
        cosines = self._unit[others] @ self._unit[number]
        known = self._unit[others].any(axis=1)
        return others[np.argsort(np.where(known, -cosines, 2.0), kind="stable")]


def build(assertions: Iterable[Concepts], table: WordVectorTable) -> dict[str, np.ndarray]:
    """The arrays of the graph."""
    graph = edges_of(assertions)
    words = sorted(graph)
    numbers = {word: number for number, word in enumerate(words)}
    nearness = Nearness(words, table)
    rows = [
        nearness.ordered(number, np.array([numbers[other] for other in graph[word]]))
        for number, word in enumerate(words)
    ]
    beyond = np.repeat(np.arange(len(words))[:, None], NEAREST, axis=1)
    for number, row in enumerate(rows):
        reached = np.unique(np.concatenate([rows[near][:NEAREST] for near in row[:NEAREST]]))
        found = nearness.ordered(number, reached[reached != number])[:NEAREST]
        beyond[number, : len(found)] = found
    size = np.uint16 if len(words) <= 1 << 16 else np.uint32
    return {
        "words": np.frombuffer("\n".join(words).encode("utf-8"), dtype=np.uint8),
        "degrees": np.array([len(row) for row in rows], dtype=np.uint32),
        "neighbours": np.concatenate(rows).astype(size),
        "beyond": beyond.astype(size),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the folder of CN-100K, or the dump (.csv.gz)")
    parser.add_argument("--vectors", default="glove-50d", help="word vectors; default: %(default)s")
    parser.add_argument(
        "--output", type=Path, default=PACKAGE / "conceptnet.npz", help="default: %(default)s"
    )
    arguments = parser.parse_args()

    source = arguments.source
    assertions = read_cn100k(source) if source.is_dir() else read_dump(source)
    arrays = build(assertions, load(ready(locate(arguments.vectors))))
    # NumPy dates the members of the archive 1980-01-01, so equal arrays give equal bytes.
    np.savez_compressed(arguments.output, **arrays)
    print(
        f"wrote {arguments.output} ({arguments.output.stat().st_size} bytes):"
        f" {len(arrays['degrees'])} words, {len(arrays['neighbours']) // 2} edges"
    )


if __name__ == "__main__":
    main()
