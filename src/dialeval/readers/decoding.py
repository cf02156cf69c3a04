"""Bytes -> text: UTF-8 with or without a byte order mark, or UTF-16 with one.

A byte that is not UTF-8 is reported and read as Windows-1252, byte by byte, not line by line: the
released HolisticEval file `CTG.csv` holds curly apostrophes (0x92) of that kind, and other files
mix both encodings even within a line.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from dialeval.readers.reader import Place, UnreadableError

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_WINDOWS = "dialeval-windows-1252"


def as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Takes the byte order mark off; UTF-16 becomes UTF-8."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(_UTF8_MARK):
            break
    encoding = _UTF16_MARKS.get(start[:2])
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
    """Where to cut a block without a line end: not inside a UTF-8 character."""
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
    """The bytes that are UTF-8 as such, each other byte as Windows-1252; one warning per line."""
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
