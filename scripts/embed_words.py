"""Writes a table of word vectors: each word has the vector that a sentence encoder gives it.

    DIALEVAL_DATA=DIR python scripts/embed_words.py minilm-l6 --data dailydialog -o words-minilm
    DIALEVAL_DATA=DIR dialeval train mme-topic --data dailydialog --model words-minilm -o by-encoder

The words are those of the graph of concepts, and those of the corpora. `train mme-topic` and `train
grade` then read the keywords of a topic graph, and the words around them, as sentences of one word.
They also draw near negatives by the mean of these vectors, so that of what they measure only the
ranking among random responses can be compared with that of a training on other vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dialeval.cli.terminal import counting_bar, run_script, say
from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import load_conceptnet
from dialeval.text import treebank_words
from dialeval.training.examples.corpora import load_corpus
from dialeval.training.examples.pair_vectors import embed


def words_of(data: Sequence[Path]) -> list[str]:
    """Returns the words of the graph of concepts and of all dialogues, each once."""
    found = set(load_conceptnet().words)
    for path in data:
        corpus = load_corpus(path)
        for dialogue in (*corpus.train, *corpus.validation, *corpus.test):
            for turn in dialogue:
                found.update(treebank_words(turn.lower()))
    return sorted(found)


def write_table(encoder: str, words: Sequence[str], out: Path) -> None:
    """Writes what `models/word_vectors.py` reads: rows of numbers, and the words beside them."""
    if out.exists():
        raise UsageError(f"{out} is there already")
    with counting_bar("vectors") as progress:
        vectors = embed(words, encoder, progress=progress)
    out.mkdir(parents=True)
    np.save(out / "vectors.npy", np.asarray(vectors, dtype=np.float32))
    (out / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("encoder", metavar="ENCODER")
    parser.add_argument("--data", action="append", type=Path, default=[])
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    words = words_of(given.data)
    write_table(given.encoder, words, given.out)
    say(f"{given.out}: {len(words):,} words")
    return 0


if __name__ == "__main__":
    run_script(main)
