"""Which format is this? Judged by content, from the most specific format to the least.

The name of a file counts only where its content fits nothing: a `.csv`, `.tsv`, `.json` or `.jsonl`
is then read as a plain table or as plain records, so that its reader can say which column or field
it misses.
"""

from __future__ import annotations

from dialeval.errors import UsageError
from dialeval.readers.reader import Reader, UnreadableError
from dialeval.readers.source import Source
from dialeval.registry import READERS

SPECIFIC = (
    "parquet",
    "ratings",
    "grade",
    "holistic-consistency",
    "usr",
    "dstc10",
    "fed",
    "holistic-diversity",
    "holistic",
    "probe",
    "engage",
    "convai2",
    "convai2017",
    "topical-chat",
    "dailydialog",
    "empathetic",
    "personachat",
)
GENERAL = ("chat", "jsonl", "csv", "tsv")
"""Plugins are asked between the two."""

_BY_NAME = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "jsonl"}


def detect(source: Source, without: str = "") -> Reader:
    """The reader for this source, if need be another one than the plugin that failed on it;
    `UnreadableError` where there is none."""
    if not source.is_directory and not source.head.strip():
        raise UnreadableError("the file is empty")
    for name in order():
        reader = READERS.get(name)
        if reader.name != without and _recognises(reader, source):
            return reader
    for suffix in reversed(source.path.suffixes):
        if suffix.lower() in _BY_NAME and not source.is_directory:
            return READERS.get(_BY_NAME[suffix.lower()])
    known = ", ".join(READERS.names())
    if source.is_directory:
        looked_for = (
            "eval_data/DATASET/SYSTEM/human_ctx.txt (grade), rater1.txt (holistic), probe.json"
        )
        raise UnreadableError(f"the folder fits no format: looked for {looked_for}")
    raise UnreadableError(
        "the format is not recognised: looked for JSON records with messages, response, responses"
        " or annotations, a table whose header has a column response, Parquet, and the files of"
        f" known data sets. If you know the format, name it: --format {{{known}}}. Where a command"
        " has no --format, convert first: dialeval data convert FILE --format NAME -o chats.jsonl"
    )


def formats() -> dict[str, str]:
    """Name of each format -> what it is, in the order in which they are tried."""
    return {name: READERS.get(name).summary for name in order()}


def order() -> list[str]:
    """Of the readers that can be loaded."""
    plugins = [name for name in READERS.working() if name not in (*SPECIFIC, *GENERAL)]
    return [*SPECIFIC, *plugins, *GENERAL]


def _recognises(reader: Reader, source: Source) -> bool:
    try:
        return reader.recognises(source)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from error
    except UnreadableError:
        raise
    except Exception as error:
        raise UsageError(
            f"the reader {reader.name!r} failed on {source.name}: {type(error).__name__}: {error}"
        ) from error
