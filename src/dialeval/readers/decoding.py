"""Bytes of a file -> text: unpacked, then decoded.

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
import zlib
from collections.abc import Iterator
from typing import Protocol

from dialeval.readers.reader import Place, UnreadableError

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
