"""Bytes of a file, decompressed where its first bytes say that it is gzip or zstd.

The name plays no part: `chats.jsonl` may be compressed and `chats.gz` may not be. Files of several
members or frames (`cat a.gz b.gz`, `pzstd`) are read to their end. Blocks are bounded whatever the
archive claims, so that a small file that unpacks to a huge one costs time but no memory.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Protocol

from dialeval.readers.reader import UnreadableError

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
    """The blocks of the stream."""
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
