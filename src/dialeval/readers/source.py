"""The source of samples: a file, a URL, a directory or standard input, as text and line by line.

    source = Source("chats.jsonl.zst")            # "-" is standard input
    for number, line in source.lines(place): ...

Lines end in LF or CRLF.

Text is UTF-8 with or without a byte order mark, or UTF-16 with one. A byte that is not UTF-8 is
reported and read as Windows-1252, byte by byte, not line by line: the released HolisticEval file
`CTG.csv` holds curly apostrophes (0x92) of that kind, and other files mix both encodings even
within a line.

Bytes are decompressed where the first of them say that they are gzip or zstd. The name plays no
part: `chats.jsonl` may be compressed and `chats.gz` may not be. Files of several members or frames
(`cat a.gz b.gz`, `pzstd`) are read to their end. Blocks are bounded whatever the archive claims, so
that a small file that unpacks to a huge one costs time but no memory.
"""

from __future__ import annotations

import codecs
import gzip
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Protocol, cast

from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.reader import Place, UnreadableError
from dialeval.remote import is_url, open_url

_UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_WINDOWS = "dialeval-windows-1252"


def as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Takes the byte order mark off; UTF-16 becomes UTF-8."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(_UTF8_MARK):
            break
    encoding = UTF16_MARKS.get(start[:2])
    if encoding is None:
        yield start.removeprefix(_UTF8_MARK)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        yield decoder.decode(start[2:]).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UnreadableError("the file starts with a mark of UTF-16 but is not UTF-16") from error


def whole_characters(block: bytes) -> int:
    """Returns where to cut a block without a line end: not inside a UTF-8 character."""
    for back in range(1, min(4, len(block)) + 1):
        byte = block[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            return len(block) - back
    return len(block)


def decode(raw: bytes, place: Place, line: int, column: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        lines = raw.split(b"\n")
        return "\n".join(
            _decode_line(piece, place, line + index, 0 if index else column)
            for index, piece in enumerate(lines)
        )


def _decode_line(raw: bytes, place: Place, line: int, column: int) -> str:
    """Returns the bytes that are UTF-8 as such, each other byte as Windows-1252; one warning per
    line."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        place.line = line
        column += len(raw[: error.start].decode()) + 1
        place.warning(
            "",
            f"byte 0x{raw[error.start]:02x} at column {column} is not UTF-8: read as Windows-1252",
        )
        return raw.decode(errors=_WINDOWS)


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    return byte.decode("cp1252", "replace"), error.start + 1


codecs.register_error(_WINDOWS, _as_windows_1252)


BLOCK = 1 << 18

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = tuple(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))

_ZSTD_STEP = 1 << 10
"""zstd packs up to 128 KiB into 4 bytes: compressed input is fed in sips to bound the output at 32
MiB, which are handed on in blocks."""


class ByteStream(Protocol):
    """The little that is asked of a file or of standard input."""

    def read(self, size: int = -1, /) -> bytes: ...


def is_compressed(start: bytes) -> bool:
    return start.startswith((GZIP, ZSTD, *ZSTD_SKIPPABLE))


def decompressed(stream: Rejoined) -> Iterator[bytes]:
    """Yields the blocks of the stream."""
    try:
        if stream.start.startswith(GZIP):
            yield from _gzip(stream)
        elif is_compressed(stream.start):
            yield from _zstd(stream)
        else:
            while block := stream.read(BLOCK):
                yield block
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from error


def _gzip(stream: ByteStream) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=stream) as archive:  # type: ignore[call-overload]
            while block := archive.read(BLOCK):
                yield block
    except EOFError as error:
        raise UnreadableError("the gzip archive is cut off") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableError(f"the gzip archive is damaged: {error}") from error


def _zstd(stream: ByteStream) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    inside = False
    pending = b""
    ready = bytearray()
    while sip := pending or stream.read(_ZSTD_STEP):
        try:
            ready += frame.decompress(sip)
        except zstandard.ZstdError as error:
            raise UnreadableError(f"the zstd archive is damaged: {error}") from error
        inside = not frame.eof
        pending = b"" if inside else frame.unused_data
        if not inside:
            frame = decompressor.decompressobj()
        if len(ready) >= BLOCK:
            for start in range(0, len(ready), BLOCK):
                yield bytes(ready[start : start + BLOCK])
            ready.clear()
    yield bytes(ready)
    if inside:
        raise UnreadableError("the zstd archive is cut off")


class Rejoined:
    """A stream whose start was read and is put back: standard input cannot seek."""

    def __init__(self, start: bytes, rest: ByteStream) -> None:
        self.start = start
        self.taken = 0
        """Bytes that were read of the whole."""
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        if self.taken < len(self.start):
            end = len(self.start) if size < 0 else self.taken + size
            piece = self.start[self.taken : end]
        else:
            piece = self._rest.read(size)
        self.taken += len(piece)
        return piece


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
