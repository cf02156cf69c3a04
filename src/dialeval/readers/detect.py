"""Which format is this? Judged by content, from the most specific format to the least.

The name of a file counts only where its content fits nothing: a `.csv` or `.tsv` is then read as a
plain table, so that its reader can say which column it misses; JSON is read as plain records, whose
reader says what it found in them. A folder that no reader knows stands for the logs in it.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.readers.arrow import InMemory, is_arrow
from dialeval.readers.parquet import RECORDS
from dialeval.readers.plain_record import ANSWERS, PROMPTS
from dialeval.readers.reader import Reader, UnreadableError
from dialeval.readers.source import Source
from dialeval.registry import READERS

SPECIFIC = (
    "ratings",
    "label-studio",
    "argilla",
    "grade",
    "holistic-consistency",
    "usr",
    "dstc10",
    "fed",
    "holistic-diversity",
    "holistic-toy",
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
LOGS = (
    "opentelemetry",
    "langfuse",
    "langsmith",
    "chat",
    "sharegpt",
    "wildchat",
    "messages",
)
PLAIN = ("parquet", "arrow", "datasets", "jsonl", "csv", "tsv", "transcript")
"""Plugins are asked between data sets and logs. Plain files are what is left."""

_BY_NAME = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "jsonl"}
_ANSWERS = {"response", "context", *ANSWERS, *PROMPTS}


def detect(source: Source, without: str = "", columns: Collection[str] = ()) -> Reader:
    """Returns the reader for this source, if need be another one than the plugin that failed on it;
    `UnreadableError` where there is none. `columns` are the fields that the user has mapped: who
    says where the response is has a plain file, who says where the messages are has a chat."""
    in_columns = is_arrow(source)
    if not in_columns and not source.is_directory and not source.head.strip():
        raise UnreadableError("the file is empty")
    if "messages" in columns:
        return READERS.get("chat")
    is_plain = not _ANSWERS.isdisjoint(columns)
    for name in order():
        reader = READERS.get(name)
        if reader.name == without or (in_columns and name in SPECIFIC):
            continue
        if not (is_plain and name in LOGS) and _recognises(reader, source):
            return reader
    if isinstance(source, InMemory):
        return RECORDS
    if source.is_directory:
        raise UnreadableError(
            "the folder fits no format, and no file in it is a log by its name: looked for"
            f" {', '.join(sorted(ENDINGS))}, dataset_info.json (datasets), probe.json,"
            " eval_data/DATASET/SYSTEM/human_ctx.txt (grade), rater1.txt (holistic)"
        )
    if source.text_head.lstrip().startswith(("{", "[{")):
        return READERS.get("jsonl")
    for suffix in reversed(source.path.suffixes):
        if suffix.lower() in _BY_NAME:
            return READERS.get(_BY_NAME[suffix.lower()])
    known = ", ".join(READERS.names())
    raise UnreadableError(
        "the format is not recognised: looked for JSON records with messages, response, responses"
        " or annotations, a table whose header has a column response, Parquet, lines that start"
        " with User: or Bot:, and the files of known data sets. If you know the format, name it:"
        f" --format {{{known}}}. Where a command has no --format, convert first: dialeval data"
        " convert FILE --format NAME -o chats.jsonl"
    )


ENDINGS = frozenset(
    (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".txt", ".log")
)
PACKED = (".gz", ".zst", ".bz2", ".xz")


def log_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Returns the files in a folder and the folders in it that are logs by their names, and the
    others."""
    logs: list[Path] = []
    others: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(place, name)
            ending = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
            (logs if ending.lower() in ENDINGS else others).append(path)
    return logs, others


def formats() -> dict[str, str]:
    """Returns what each format is, by name, in the order in which they are tried."""
    return {name: READERS.get(name).summary for name in order()}


def order() -> list[str]:
    """Returns the names of the readers that can be loaded, in order."""
    own = (*SPECIFIC, *LOGS, *PLAIN)
    plugins = [name for name in READERS.working() if name not in own]
    return [*SPECIFIC, *plugins, *LOGS, *PLAIN]


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
