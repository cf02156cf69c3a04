"""Finds what is to be read, and the format of each file, by its content.

Formats are tried from the most specific to the least. The name of a file counts only where its
content fits nothing: a `.csv` or `.tsv` is then read as a plain table, so that its reader can say
which column it misses; JSON is read as plain records, whose reader says what it found in them. A
folder that no reader knows stands for the logs in it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.datasets.locate import name_hint, resolve
from dialeval.errors import Problem, UsageError
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.arrow import RECORDS, InMemory, dataset_folders, is_arrow, is_in_memory
from dialeval.readers.plain_record import ANSWERS, PROMPTS
from dialeval.readers.reader import Reader, UnreadableError
from dialeval.readers.source import PathLike, Source, stem
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
    "holistic-run",
    "engage",
    "convai2",
    "convai2017",
    "topical-chat",
    "dailydialog",
    "empathetic",
    "personachat",
    "cornell",
    "tencent",
    "xiaohuangji",
)
LOGS = (
    "chatgpt",
    "claude",
    "openai-batch",
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


def open_sources(
    paths: Sequence[PathLike | Any],
    format: str | None,
    limits: Limits = USUAL_LIMITS,
    columns: Collection[str] = (),
) -> tuple[list[tuple[Source, Reader]], list[Problem]]:
    """Opens the sources that can be read, with their readers, and what is wrong with the others.

    `columns` are the fields that the user has mapped.
    """
    chosen = None if format is None else READERS.get(format)
    opened: list[tuple[Source, Reader]] = []
    problems: list[Problem] = []
    labels: set[str] = set()
    for source, known in _sources(paths, limits):
        reader = chosen or (READERS.get(known) if known else None)
        try:
            source.check()
            if (source.is_directory and reader is None) or (reader and not _reads(reader, source)):
                found = _of_folder(source, reader, columns)
            else:
                found = [(source, reader or detect(source, columns=columns))]
        except UnreadableError as error:
            hint = name_hint(source.name) if source.is_missing else ""
            problems.append(Problem(source.name, error.line, error.field, error.problem + hint))
            continue
        for one, _ in found:
            one.label = _unique(one.label, labels)
        opened += found
    return opened, problems


def _sources(paths: Sequence[PathLike | Any], limits: Limits) -> Iterator[tuple[Source, str]]:
    """Yields what is to be read, and the format that it is known to have."""
    for path in paths:
        if is_in_memory(path):
            yield InMemory(path, limits=limits), ""
        elif isinstance(path, str | os.PathLike):
            for target in resolve(path):
                source = Source(target.path, limits=limits)
                splits = dataset_folders(source.path) if source.is_directory else []
                if splits in ([], [source.path]):
                    yield source, target.format
                    continue
                for split in splits:
                    yield source.beside(split, f"{source.label}/{split.name}"), target.format
        else:
            raise UsageError(
                f"expected names of files, lists of dicts or data frames, not a"
                f" {type(path).__name__}{_instead(path)}"
            )


def _instead(given: object) -> str:
    """Returns advice for values that are nearly readable."""
    if hasattr(given, "collect"):
        return ". Call its collect() first"
    if not isinstance(given, Mapping):
        return ""
    if any(is_in_memory(held) and not isinstance(held, list) for held in given.values()):
        return f". Choose one of its parts: {', '.join(map(repr, list(given)[:10]))}"
    return ". Put a single record into a list"


def _reads(reader: Reader, source: Source) -> bool:
    """Returns whether the reader that was named takes this source whole; of a folder, it may take
    each file instead."""
    return not source.is_directory or reader.recognises(source)


def _of_folder(
    folder: Source, reader: Reader | None, columns: Collection[str]
) -> list[tuple[Source, Reader]]:
    """Returns a folder that a reader knows, or else the logs in it."""
    try:
        return [(folder, reader if reader else detect(folder, columns=columns))]
    except UnreadableError:
        files, others = log_files(folder.path)
        if not files:
            raise
    found, strange = [], []
    for path in files:
        inside = path.relative_to(folder.path)
        label = (inside if path.is_dir() else inside.parent / stem(path)).as_posix()
        source = folder.beside(path, label)
        try:
            found.append((source, reader or detect(source, columns=columns)))
        except UnreadableError as error:
            strange.append((path, error))
    if not found:
        path, first = strange[0]
        raise UnreadableError(f"{path.name}: {first.problem}", first.line, first.field)
    left_out = [str(path.relative_to(folder.path)) for path in (*others, *dict(strange))]
    if left_out:
        listed = ", ".join(left_out[:10]) + (", ..." if len(left_out) > 10 else "")
        found[0][0].remark = folder.name, f"left out, as no reader knows it: {listed}"
    return found


def _unique(label: str, taken: set[str]) -> str:
    """Two files of the same name must not give their samples the same ids."""
    candidate, count = label, 1
    while candidate in taken:
        count += 1
        candidate = f"{label}-{count}"
    taken.add(candidate)
    return candidate


def detect(source: Source, without: str = "", columns: Collection[str] = ()) -> Reader:
    """Returns the reader for this source, but not the plugin `without`, which failed on it; raises
    `UnreadableError` if there is none. `columns` are the fields that the user has mapped: a mapped
    response means a plain file, and mapped messages mean a chat."""
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
    others. A data set of `datasets` counts as its folder."""
    logs: list[Path] = []
    others: list[Path] = []
    for place, folders, names in os.walk(folder):
        if parts := dataset_folders(Path(place)):
            logs += parts
            folders.clear()
            continue
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
