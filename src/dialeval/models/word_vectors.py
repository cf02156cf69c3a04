"""Word vectors: a table from words to points in space, such as GloVe and word2vec.

Three ways to keep them in a directory are understood:

    NAME.npy and NAME.parquet    vectors, and a column with their words in the same order
    NAME.npy and NAME.txt        vectors, and their words in the same order, one per line
    NAME.txt (or .vec)           `word number number ...`, one per line, as GloVe and word2vec write
                                 them; a first line with the number of words and of dimensions
                                 may be there or not

Vectors in a .npy file are mapped into memory, not read, so 400 000 words are ready in a fifth of a
second. Text has to be parsed at each start. Where a word occurs twice the first vector counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.errors import UsageError
from dialeval.question import Answer, Question, WordVectors, cannot_answer

if TYPE_CHECKING:
    import numpy.typing as npt

    Table = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def load(directory: Path, *, device: str = "auto") -> WordVectorTable:
    """Loads the word vectors in a directory. Nothing is computed, so `device` has no effect."""
    arrays, words, text = (
        sorted(path for path in directory.iterdir() if path.suffix in suffixes)
        for suffixes in ({".npy"}, {".parquet"}, {".txt", ".vec"})
    )
    if len(arrays) == 1 and len(words or text) == 1:
        vocabulary = _read_column(words[0]) if words else _read_lines(text[0])
        return WordVectorTable(_numbered(vocabulary), _map(arrays[0], len(vocabulary)))
    if not arrays and len(text) == 1:
        return _parse(text[0])
    raise UsageError(
        f"{directory}: no word vectors found. Expected one .npy file beside one .parquet or .txt"
        " file with the words, or a single .txt or .vec file with words and numbers."
    )


@dataclass(frozen=True)
class WordVectorTable:
    """Words, and the rows of `vectors` where they are found."""

    rows: Mapping[str, int]
    vectors: Table

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        for position, question in enumerate(questions):
            if not isinstance(question, WordVectors):
                raise cannot_answer(question, "a table of word vectors")
            yield position, self.look_up(question.words)

    def look_up(self, words: Sequence[str]) -> Table:
        """Returns one row per word; NaN where the word is unknown."""
        rows = np.array([self.rows.get(word, -1) for word in words], np.int64)
        found: Table = np.full((len(rows), self.vectors.shape[1]), np.nan, self.vectors.dtype)
        found[rows >= 0] = self.vectors[rows[rows >= 0]]
        return found


def _numbered(vocabulary: Sequence[str]) -> dict[str, int]:
    last = len(vocabulary) - 1
    return dict(zip(reversed(vocabulary), range(last, -1, -1), strict=True))


def _map(path: Path, words: int) -> Table:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise UsageError(f"{path}: not an array of numbers ({error})") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise UsageError(
            f"{path}: expected a table of floating-point numbers, found {vectors.dtype} of shape"
            f" {vectors.shape}"
        )
    if len(vectors) != words:
        raise UsageError(f"{path}: {len(vectors)} vectors, but {words} words beside it")
    exact = vectors.dtype in (np.float32, np.float64)
    table: Table = vectors if exact else vectors.astype(np.float32)
    return table


def _read_column(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    strings = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
    if len(strings) != 1:
        raise UsageError(f"{path}: expected one column of words, found {len(strings)}")
    words: list[str] = file.read(strings)[strings[0]].to_pylist()
    return words


def _read_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    # Not splitlines(), which would also cut at the exotic spaces that vocabularies are full of.
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _parse(path: Path) -> WordVectorTable:
    """Words and numbers in text. A word may itself hold spaces, as a few in GloVe 840B do."""
    import pyarrow as pa
    import pyarrow.csv as csv

    with path.open(encoding="utf-8", newline="\n") as file:
        first, second = file.readline().rstrip("\r\n"), file.readline().rstrip("\r\n")
    header = len(first.split()) == 2
    example = second if header else first
    dimensions = len(example.split()) - 1
    if dimensions < 1:
        raise UsageError(f"{path}:1: expected a word and its numbers, found {example[:60]!r}")
    # word2vec leaves a space at the end of each line: one more, empty, column.
    names = ["word", *map(str, range(dimensions)), *["end"] * example.endswith(" ")]
    spaced: list[str] = []

    def keep(row: Any) -> str:
        spaced.append(row.text)
        return "skip"

    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=names, skip_rows=int(header)),
            csv.ParseOptions(delimiter=" ", quote_char=False, invalid_row_handler=keep),
            csv.ConvertOptions(
                column_types={"word": pa.string()} | {name: pa.float32() for name in names[1:]},
                include_columns=names[: 1 + dimensions],
                null_values=[],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path}: {error}") from error
    words = table["word"].to_pylist()
    vectors = np.column_stack([table[name].to_numpy() for name in names[1 : 1 + dimensions]])
    return WordVectorTable(*_with_spaced(path, words, vectors, spaced))


def _with_spaced(
    path: Path, words: list[str], vectors: Table, spaced: Iterable[str]
) -> tuple[dict[str, int], Table]:
    dimensions = vectors.shape[1]
    extra = []
    for line in spaced:
        word, *numbers = line.rstrip("\r ").rsplit(" ", dimensions)
        try:
            extra.append([float(number) for number in numbers])
        except ValueError as error:
            raise UsageError(f"{path}: {line[:60]!r}: {error}") from error
        if len(numbers) != dimensions:
            raise UsageError(f"{path}: {line[:60]!r}: expected {dimensions} numbers")
        words.append(word)
    if extra:
        vectors = np.concatenate([vectors, np.array(extra, vectors.dtype)])
    return _numbered(words), vectors
