"""Word vectors: every layout on disk gives the same table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.errors import UsageError
from dialeval.models.word_vectors import load
from dialeval.question import Embed, WordVectors

WORDS = ["the", '"', "naïve", "nan", "\u2028", "a\xa0b", "null", "7"]
VECTORS = np.arange(24, dtype=np.float32).reshape(8, 3) / 8


def lines(words=WORDS, end=""):
    rows = zip(words, VECTORS, strict=True)
    return "".join(f"{word} {' '.join(map(str, row.tolist()))}{end}\n" for word, row in rows)


def write_parquet(directory):
    np.save(directory / "vectors.npy", VECTORS)
    pq.write_table(pa.table({"index": WORDS}), directory / "index.parquet")


def write_vocabulary(directory):
    np.save(directory / "vectors.npy", VECTORS)
    (directory / "vocabulary.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")


def write_glove(directory):
    (directory / "glove.txt").write_text(lines(), encoding="utf-8")


def write_word2vec(directory):
    """The C program writes a header, and a space at the end of each line."""
    (directory / "words.vec").write_text("8 3\n" + lines(end=" "), encoding="utf-8")


@pytest.mark.parametrize("write", [write_parquet, write_vocabulary, write_glove, write_word2vec])
def test_each_layout_gives_the_same_vectors(write, tmp_path):
    write(tmp_path)
    asked = (*WORDS, "The", "unheard", "", "the")
    [(position, found)] = load(tmp_path).answer([WordVectors("tiny", asked)])
    assert position == 0
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:8], VECTORS)
    np.testing.assert_array_equal(found[11], VECTORS[0])
    assert np.isnan(found[8:11]).all()


def test_no_words_are_no_rows(tmp_path):
    write_parquet(tmp_path)
    [(_, found)] = load(tmp_path).answer([WordVectors("tiny", ())])
    assert found.shape == (0, 3)


def test_vectors_are_mapped_not_read(tmp_path):
    write_parquet(tmp_path)
    assert isinstance(load(tmp_path).vectors, np.memmap)


def test_the_first_of_two_equal_words_counts(tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS)
    (tmp_path / "vocabulary.txt").write_text("a\nb\na\nc\nb\nd\ne\nf\n", encoding="utf-8")
    np.testing.assert_array_equal(load(tmp_path).look_up(["a", "b"]), VECTORS[:2])


def test_a_word_with_spaces_in_it_keeps_its_numbers(tmp_path):
    """GloVe 840B holds words such as `. . .`."""
    text = "the 1 2 3\n. . . 4 5 6\ncat 7 8 9\n"
    (tmp_path / "glove.txt").write_text(text, encoding="utf-8")
    found = load(tmp_path).look_up([". . .", "cat", "the"])
    np.testing.assert_array_equal(found, [[4, 5, 6], [7, 8, 9], [1, 2, 3]])


def test_half_precision_is_widened(tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS.astype(np.float16))
    (tmp_path / "vocabulary.txt").write_text("\n".join("abcdefgh"), encoding="utf-8")
    found = load(tmp_path).look_up(["h"])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, VECTORS[7:])


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "no word vectors found"),
        ({"a.txt": "the 1 2\n", "b.txt": "the 1 2\n"}, "no word vectors found"),
        ({"a.txt": "the\n"}, r"a\.txt:1: expected a word and its numbers, found 'the'"),
        ({"a.txt": "the 1 2\ncat 1 x\n"}, r"a\.txt: .*'x'"),
        ({"a.txt": "the 1 2\ncat 1\n"}, r"a\.txt: 'cat 1': expected 2 numbers"),
        ({"a.npy": VECTORS, "a.txt": "the\ncat\n"}, "8 vectors, but 2 words beside it"),
        ({"a.npy": VECTORS[0], "a.txt": "the\n"}, r"expected a table .* shape \(3,\)"),
        ({"a.npy": np.array([["x"]], object), "a.txt": "the\n"}, "not an array of numbers"),
    ],
)
def test_what_is_wrong_with_the_files_is_said(files, complaint, tmp_path):
    for name, content in files.items():
        if isinstance(content, str):
            (tmp_path / name).write_text(content, encoding="utf-8")
        else:
            np.save(tmp_path / name, content)
    with pytest.raises(UsageError, match=complaint):
        load(tmp_path)


def test_other_questions_are_refused(tmp_path):
    write_parquet(tmp_path)
    with pytest.raises(UsageError, match="is a table of word vectors and cannot answer Embed"):
        list(load(tmp_path).answer([Embed("tiny", "hello")]))
