"""The source of samples: a file, a URL, a directory or standard input, as text and line by line.

    source = Source("chats.jsonl.zst")            # "-" is standard input
    for number, line in source.lines(place): ...

Lines end in LF or CRLF. `decoding.py` says which encodings are understood.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.decoding import (
    BLOCK,
    ByteStream,
    Rejoined,
    as_utf8,
    decode,
    decompressed,
    is_compressed,
    whole_characters,
)
from dialeval.readers.reader import Place, UnreadableError
from dialeval.remote import is_url, open_url

PathLike = str | os.PathLike[str]

HEAD = 1 << 16
"""The number of bytes at the start of a file that decide on its format."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file that is read by itself: bytes of JSON Lines, or row groups of Parquet.

    start, end  bytes from the start of a line to the end of one; or numbers of row groups
    lines       before the part: problems have the lines of the file
    records     before the part: ids that are made of the number of a record stay the same
    """

    start: int
    end: int
    lines: int = 0
    records: int = 0


class Source:
    """One input. It can be read again and again, except standard input, which can be read once."""

    def __init__(self, path: PathLike, label: str = "", limits: Limits = USUAL_LIMITS) -> None:
        self.limits = limits
        self.is_stdin = os.fspath(path) == "-"
        self.is_remote = is_url(os.fspath(path))
        self.path = Path(path)
        self.name = "<stdin>" if self.is_stdin else os.fspath(path)
        self.label = label or ("stdin" if self.is_stdin else stem(self.path))
        """The name without its endings: ids are made from it if the format has none."""
        self._stream: IO[bytes] | None = None
        self._start = b""
        self._size = 0
        self._used = False
        self._bytes: Rejoined | None = None
        self.handed_out = 0
        """Characters or rows that left this source in this pass."""
        self._unread = 0
        self.known_columns: frozenset[str] | None = None
        """The result of `containers.columns`."""
        self.span: Span | None = None
        """The part that is read; by default everything."""
        self.remark: tuple[str, str] | None = None
        """A remark on the folder that the file came from: the folder's name, and the remark."""

    def beside(self, path: PathLike, label: str = "") -> Source:
        """Returns another file that belongs to this input, with the same limits."""
        return Source(path, label, self.limits)

    @cached_property
    def reads_once(self) -> bool:
        """Standard input and other pipes (`<(zcat ...)`) cannot be read again."""
        if self.is_stdin or self.is_remote:
            return self.is_stdin
        return self.path.exists() and not self.path.is_file() and not self.is_directory

    @cached_property
    def is_directory(self) -> bool:
        return not self.is_stdin and not self.is_remote and self.path.is_dir()

    @property
    def is_missing(self) -> bool:
        return not self.is_stdin and not self.is_remote and not os.path.lexists(self.path)

    @cached_property
    def is_packed(self) -> bool:
        """Whether the bytes have to be decompressed, so that nobody can read from the middle."""
        self._open()
        self.close()
        return is_compressed(self._start)

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB after decompression, without a byte order mark, always UTF-8 or binary.

        A damaged archive gives what could be unpacked of it, and raises if that is nothing.
        """
        if self.is_directory:
            return b""
        self._open()
        head = bytearray()
        try:
            for block in as_utf8(self._decompressed_start()):
                head += block
                if len(head) >= HEAD:
                    break
        except UnreadableError:
            if not head:
                raise
        finally:
            self.close()
        return bytes(head[:HEAD])

    @cached_property
    def text_head(self) -> str:
        return self.head.decode("utf-8", "replace")

    def _open(self) -> None:
        """Open the file anew; a pipe stays open and its first bytes are kept."""
        if self.reads_once and self._stream is not None:
            return
        self.close()
        self._bytes = None
        self.handed_out = self._unread = 0
        if self.is_directory:
            raise UnreadableError("is a directory, but the format is that of a single file")
        try:
            self._stream = cast("IO[bytes]", sys.stdin.buffer if self.is_stdin else self._file())
            self._start = self._stream.read(HEAD)
        except (OSError, ValueError) as error:
            raise UnreadableError(f"cannot be opened: {_reason(error)}") from error

    def _file(self) -> IO[bytes]:
        if self.is_remote:
            file, self._size = open_url(self.name)
            return file
        file = self.path.open("rb")
        self._size = os.fstat(file.fileno()).st_size
        return file

    def _decompressed_start(self) -> Iterator[bytes]:
        rest: ByteStream = _Nothing() if self.reads_once else self._opened
        return decompressed(Rejoined(self._start, rest))

    @property
    def _opened(self) -> IO[bytes]:
        return cast("IO[bytes]", self._stream)

    def check(self) -> None:
        """Raises `UnreadableError` if there is nothing here that could be opened."""
        if not self.is_directory:
            self._open()
            self.close()

    def close(self) -> None:
        if self._stream is not None and (self._used or not self.reads_once):
            if not self.is_stdin:
                self._stream.close()
            self._stream = None

    def blocks(self) -> Iterator[bytes]:
        """Yields the bytes after decompression, from the start."""
        if self._used:
            raise UnreadableError("can be read only once, as it is a pipe: save it to a file first")
        self._used = self.reads_once
        self._open()
        if self.span is not None:
            yield from self._bytes_of(self.span)
            return
        self._bytes = Rejoined(self._start, self._opened)
        try:
            yield from decompressed(self._bytes)
        finally:
            self.close()

    def _bytes_of(self, span: Span) -> Iterator[bytes]:
        left = span.end - span.start
        try:
            self._opened.seek(span.start)
            while left > 0 and (block := self._opened.read(min(BLOCK, left))):
                left -= len(block)
                yield block
        except OSError as error:
            raise UnreadableError(f"cannot be read: {error.strerror or error}") from error
        finally:
            self.close()

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """Yields the bytes as a file that can seek: itself, or a temporary copy of what was
        unpacked."""
        self._open()
        if not self.reads_once and not is_compressed(self._start):
            self._opened.seek(0)
            try:
                yield self._opened
            finally:
                self.close()
            return
        with tempfile.TemporaryFile(prefix="dialeval-") as copy:
            for block in self.blocks():
                copy.write(block)
            copy.seek(0)
            yield copy

    def fraction(self) -> float | None:
        """Returns the share of the file that its reader has come to; None where that is unknown."""
        if self.reads_once or not self._size:
            return None
        taken = self._bytes.taken / self._size if self._bytes and self._stream else 1.0
        return min(1.0, taken) * (1 - self._unread / max(1, self.handed_out))

    def tell_unread(self, count: int) -> None:
        """Takes how much of what was handed out the reader has not come to: blocks are ahead of
        samples, and small files are one block."""
        self._unread = count

    def text(self, place: Place) -> Iterator[str]:
        """Yields the text in pieces. A piece ends with a line where it can; long lines are cut."""
        line, column, pending = 1 + (self.span.lines if self.span else 0), 0, b""
        blocks = self.blocks()
        for block in blocks if self.span and self.span.start else as_utf8(blocks):
            block = pending + block
            cut = block.rfind(b"\n") + 1 or whole_characters(block)
            piece = decode(block[:cut], place, line, column)
            pending = block[cut:]
            line += (breaks := piece.count("\n"))
            column = 0 if breaks else column + len(piece)
            self.handed_out += len(piece)
            yield piece
        if pending:
            yield decode(pending, place, line, column)

    def lines(self, place: Place) -> Iterator[tuple[int, str]]:
        """(line number from 1, line without its end), decoded as it is asked for."""
        number, parts, length, blank = self.span.lines if self.span else 0, list[str](), 0, 0
        longest, most_blank = self.limits.record, self.limits.blank_lines
        for piece in self.text(place):
            *whole, rest = piece.split("\n")
            unread = length + len(piece)
            if whole and parts:
                whole[0] = "".join((*parts, whole[0]))
                parts, length = [], 0
            for line in whole:
                number += 1
                blank = 0 if line else blank + 1
                if blank > most_blank:
                    problem = f"there are more than {most_blank:,} blank lines in a row"
                    raise UnreadableError(self.limits.exceeded(problem), number)
                if len(line) > longest:
                    raise UnreadableError(self.limits.long_line(), number)
                unread -= len(line) + 1
                self._unread = unread
                yield number, line[:-1] if line.endswith("\r") else line
            self._unread = 0
            if rest:
                parts.append(rest)
                length += len(rest)
                if length > longest:
                    raise UnreadableError(self.limits.long_line(), number + 1)
        if parts:
            yield number + 1, "".join(parts).removesuffix("\r")


def stem(path: Path) -> str:
    """`a/chats.jsonl.gz` -> `chats`; `.` -> the name of the working directory."""
    name = path.name or path.absolute().name
    return name.lstrip(".").partition(".")[0] or name or "input"


class _Nothing:
    """A stream that is at its end."""

    def read(self, size: int = -1, /) -> bytes:
        return b""


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    return str(getattr(error, "strerror", None) or error)


SQLITE = b"SQLite format 3\0"


def is_database(path: str | Path) -> bool:
    """Returns whether this is a file of SQLite; whose it is, reading will tell."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE
