"""Tables in columns: Parquet, Arrow files, folders of Hugging Face `datasets`, frames in memory.

    folder/                          what `Dataset.save_to_disk` writes
        data-00000-of-00002.arrow    an Arrow stream
        state.json                   names the Arrow files in their order
        dataset_info.json
    folder/dataset_dict.json         {"splits": ["train", "test"]}: such a folder for each split,
                                     which is read as an input of its own

The packages `datasets`, pandas and polars are not needed: Arrow reads their files, and takes their
frames by the Arrow PyCapsule interface (`__arrow_c_stream__`). Rows come one at a time, and none
may be larger than the limits.

`InMemory` stands for what is read from memory instead of a file:

    dialeval.load([{"prompt": "Hi!", "completion": "Hello."}])
    dialeval.load(frame)                     pandas, polars, pyarrow, datasets.Dataset

What offers no Arrow interface is iterated, and gives its rows as mappings.

All of them are read as plain tables:

    id | context                             | response | references | rating_overall
    1  | [{speaker: user, text: Hi!}, ...]   | Hello.   | [Hi there.] | 4.5

Columns are those of `plain_record.py`, nested as in `storage.sample_schema` or plain text; columns
of ratings follow the rule of `ratings.py`. The line of a problem is the number of the row.
`data convert` writes such Parquet files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers import arrow
from dialeval.readers.json_stream import without_unfit
from dialeval.readers.plain_record import NAMES, RESPONSES, advice, maker, renamed, without_path
from dialeval.readers.ratings import half_named, is_reference, rating_columns, read_ratings
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample

BATCH = 1024
PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
"""How the three kinds of file start; a stream starts with the mark of a message."""

Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Columns:
    """An open table: the names of its columns, how many rows it has (None: unknown), its rows."""

    names: list[str]
    count: int | None
    rows: Callable[[list[str]], Rows]


def is_arrow(source: Source) -> bool:
    if isinstance(source, InMemory):
        return True
    if source.is_directory:
        return bool(_dataset_files(source.path))
    return source.head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def column_names(source: Source) -> list[str]:
    with opened(source) as table:
        return table.names


def rows(source: Source, wanted: Callable[[list[str]], list[str]] = lambda names: names) -> Rows:
    """Yields the rows with the columns that are `wanted` of those that there are."""
    number = source.span.records if source.span else 0
    with opened(source) as table:
        if len(table.names) > source.limits.columns:
            problem = f"the table has more than {source.limits.columns:,} columns"
            raise UnreadableError(source.limits.exceeded(problem))
        left = table.count
        source.handed_out = left or 0
        found = table.rows(wanted(table.names))
        while True:
            with _told(source, number):
                row = next(found, None)
            if row is None:
                return
            number += 1
            if left is not None:
                left -= 1
                source.tell_unread(left)
            yield row


@contextmanager
def opened(source: Source) -> Iterator[Columns]:
    if isinstance(source, InMemory):
        yield _in_memory(source)
    elif source.is_directory:
        yield _of_dataset(source)
    else:
        _ = source.head  # it opens the file anew: before it is read, and kept
        with source.seekable() as file:
            with _told(source):
                table = _of_file(file, source)
            yield table


@contextmanager
def _told(source: Source, row: int = 0) -> Iterator[None]:
    """A damaged file makes pyarrow raise any of these, depending on where the damage is."""
    import pyarrow as pa

    try:
        yield
    except (
        pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError
    ) as error:  # fmt: skip
        kind = "Parquet" if source.head.startswith(PARQUET) else "Arrow"
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UnreadableError(f"not a valid {kind} file: {first}", row) from error


def _of_file(file: Any, source: Source) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.head.startswith(PARQUET):
        table = pq.ParquetFile(file, page_checksum_verification=True)
        names = [str(name) for name in table.schema_arrow.names]
        count = table.metadata.num_rows
        if (span := source.span) is not None:
            groups = range(span.start, span.end)
            count = sum(table.metadata.row_group(group).num_rows for group in groups)
            return Columns(
                names,
                count,
                lambda names: rows_within(file, names, source.limits, groups, span.records),
            )
        return Columns(names, count, lambda names: rows_within(file, names, source.limits))
    if source.head.startswith(ARROW_FILE):
        reader = pa.ipc.open_file(file)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        reader = batches = pa.ipc.open_stream(file)
    names = [str(name) for name in reader.schema.names]
    return Columns(names, None, lambda names: _rows_of(batches, names, source.limits))


def _in_memory(source: InMemory) -> Columns:
    if source.table is None:
        records = source.records
        names = list(dict.fromkeys(str(key) for one in records[:100] for key in one))
        return Columns(names, len(records), lambda names: map(dict, records))
    table = source.table
    names = [str(name) for name in table.schema.names]
    return Columns(
        names, len(table), lambda names: _rows_of(table.to_batches(), names, source.limits)
    )


def dataset_folders(folder: Path) -> list[Path]:
    """Returns the folders of a data set that `datasets` wrote: one for each split, as splits may
    have other columns; none where it is none."""
    splits = _json_object(folder / "dataset_dict.json").get("splits")
    if isinstance(splits, list):
        return [folder / str(name) for name in splits if Path(str(name)).name == str(name)]
    return [folder] if _dataset_files(folder) else []


def _dataset_files(folder: Path) -> list[Path]:
    """Returns the Arrow files of a folder that `datasets` wrote, in their order; none where it is
    none."""
    listed = _json_object(folder / "state.json").get("_data_files")
    if not isinstance(listed, list):
        return []
    names = [str(one.get("filename")) for one in listed if isinstance(one, dict)]
    return [folder / name for name in names if Path(name).name == name]


def _json_object(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _of_dataset(source: Source) -> Columns:
    files = [source.beside(path) for path in _dataset_files(source.path)]

    def rows_of_all(names: list[str]) -> Rows:
        for file in files:
            try:
                yield from rows(file, lambda _: names)
            except UnreadableError as error:
                error.path = error.path or file.name
                raise

    return Columns(column_names(files[0]), None, rows_of_all)


def _rows_of(batches: Any, columns: list[str], limits: Limits) -> Rows:
    number = 0
    for batch in batches:
        chosen = batch.select([batch.schema.get_field_index(name) for name in columns])
        for start in range(0, len(chosen), BATCH):
            yield from _spelled_out(chosen.slice(start, BATCH), number + start, limits)
        number += len(batch)


def rows_within(
    file: Any,
    columns: list[str],
    limits: Limits,
    groups: Iterable[int] | None = None,
    before: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yields the rows, of which none may be larger than the limits, in memory that they bound;
    with `groups` those of some row groups, which have so many rows `before` them.

    A few kB can hold the same large text a thousand times, by a dictionary. So texts are read as
    dictionaries, and spelled out where that is little; else one row at a time. Texts within lists
    and structs are spelled out by Arrow: it cannot put dictionaries of several row groups together.
    """
    import pyarrow.parquet as pq

    plain = pq.ParquetFile(file)
    leaves = [plain.schema.column(number) for number in range(len(plain.schema))]
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.path in plain.schema_arrow.names
    ]
    table = pq.ParquetFile(file, read_dictionary=texts, page_checksum_verification=True)
    number = before
    chosen = {} if groups is None else {"row_groups": list(groups)}
    for batch in table.iter_batches(batch_size=BATCH, columns=columns, **chosen):
        yield from _spelled_out(batch, number, limits)
        number += len(batch)


def _spelled_out(batch: Any, before: int, limits: Limits) -> Rows:
    """Yields the rows of a batch: all at once where they are small, else one at a time."""
    import pyarrow as pa

    if sum(map(_size, batch.columns)) <= limits.record:
        spelled = pa.schema([pa.field(each.name, _spelled(each.type)) for each in batch.schema])
        yield from pa.Table.from_batches([batch]).cast(spelled).to_pylist()
        return
    for place in range(len(batch)):
        row = batch.slice(place, 1)
        if sum(map(_size, row.columns)) > limits.record:
            raise UnreadableError(limits.long_record(), before + place + 1)
        yield from row.to_pylist()


def _spelled(kind: Any) -> Any:
    """Returns the type without dictionaries."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct(
            [kind.field(n).with_type(_spelled(kind.field(n).type)) for n in range(kind.num_fields)]
        )
    if pa.types.is_map(kind):
        return pa.map_(_spelled(kind.key_type), _spelled(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_spelled(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_spelled(kind.value_type)))
    return kind


def _size(array: Any) -> int:
    """Returns how many bytes its texts have at most, spelled out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        used = array.dictionary.take(pc.unique(array.indices).drop_null())
        longest = pc.max(pc.binary_length(used)).as_py() if len(used) else 0
        return len(array) * (longest or 0)
    if pa.types.is_struct(kind):
        return sum(map(_size, array.flatten()))
    if pa.types.is_map(kind):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return _size(array.keys[start:end]) + _size(array.items[start:end])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _size(array.flatten())
    return int(array.nbytes)


class InMemory(Source):
    """Records that are in memory: an Arrow `table`, or else a list of `records`."""

    def __init__(self, given: Any, label: str = "", limits: Limits = USUAL_LIMITS) -> None:
        kind = type(given).__name__
        super().__init__(f"<{kind}>", label or "records", limits)
        self.is_directory = False
        self.reads_once = False
        self.table = _table(given, kind) if has_stream(given) else None
        self.records = list(_rows(given, kind)) if self.table is None else []

    @property
    def is_missing(self) -> bool:
        return False

    @property
    def head(self) -> bytes:
        return b""

    def check(self) -> None:
        """There is nothing to open."""

    def fraction(self) -> float | None:
        return 1 - self._unread / self.handed_out if self.handed_out else None


def has_stream(given: object) -> bool:
    """Returns whether this offers its rows to Arrow."""
    return hasattr(given, "__arrow_c_stream__")


def is_in_memory(given: object) -> bool:
    """Returns whether these are records, and not the name of a file."""
    return has_stream(given) or (
        isinstance(given, Iterable) and not isinstance(given, str | bytes | os.PathLike | Mapping)
    )


def holds_records(given: object) -> bool:
    """Returns whether these are records, and not samples. What can be read only once is not looked
    at."""
    if has_stream(given) or isinstance(given, Iterator) or not isinstance(given, Iterable):
        return has_stream(given)
    return isinstance(next(iter(given), None), Mapping)


def _table(given: Any, kind: str) -> Any:
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(given).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UsageError(f"Arrow cannot read this {kind}: {first}") from error


def _rows(given: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    # pandas before 2.2 has no Arrow interface, and iterates over the names of its columns
    rows = given.to_dict("records") if hasattr(given, "iterrows") else given
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UsageError(
                f"cannot read samples from a {kind}: its item {number} is of type"
                f" {type(row).__name__}. Give file names, a list of dicts, a data frame"
                " (pandas, polars), an Arrow table or a datasets.Dataset"
            )
        yield row


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    first = 1 + (source.span.records if source.span else 0)
    rows = arrow.rows(source, lambda names: _wanted(names, options))
    for number, row in enumerate(rows, first):
        place.line = number
        yield from _samples(row, number, source.label, place, options)


def _wanted(names: list[str], options: ReadOptions) -> list[str]:
    named = RESPONSES.union(("variants",))
    if options.texts and named.isdisjoint(options.columns) and named.isdisjoint(names):
        _require("response", names)
    mapped = [without_path(column, names) for column in options.columns.values()]
    for column in (*mapped, *options.ratings):
        _require(column, names)
    columns = rating_columns(names, options)
    if mixed := half_named(columns):
        raise UnreadableError(f"some raters of {mixed!r} are named and others are not")
    used = {*NAMES, *mapped, *(column.column for column in columns)}
    return [name for name in names if name in used or is_reference(name)]


def _require(column: str, names: list[str]) -> None:
    if not names:
        raise UnreadableError("there are no records in it")
    if column not in names:
        raise UnreadableError(
            f"there is no column {column!r}.{did_you_mean(column, names)}"
            f" The file has: {', '.join(names[:30])}. {advice(names)}"
        )


def _samples(
    row: dict[str, Any], number: int, label: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    row = without_unfit(row, place, "")
    record = renamed(row, options.columns)
    if isinstance(entries := record.get("ratings"), list):
        record["ratings"] = _from_map(entries, place)
    references = [record[name] for name in sorted(record) if is_reference(name)]
    if any(references):
        record["reference"] = [text for text in references if text]
    errors = place.problems.errors
    rated = read_ratings(row, rating_columns(row, options), place, options)
    sample = maker(label, options.without_names())(record, number, place, rated)
    if place.problems.errors == errors:
        yield sample
    else:
        place.problems.skipped += 1


def _from_map(entries: list[Any], place: Place) -> dict[str, Any] | None:
    """Arrow gives a map as a list of pairs."""
    ratings: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2:
            place.error("ratings", "expected a map of quality: ratings")
            return None
        if entry[0] in ratings:
            place.error(f"ratings.{entry[0]}", "given twice")
        ratings[str(entry[0])] = entry[1]
    return ratings


def _starts(*marks: bytes) -> Callable[[Source], bool]:
    return lambda source: not source.is_directory and source.head.startswith(marks)


def _is_dataset(source: Source) -> bool:
    return source.is_directory and arrow.is_arrow(source)


READER = Reader(
    "parquet", "Parquet: written by dialeval, or a flat table", _starts(arrow.PARQUET), read
)
ARROW = Reader(
    "arrow", "Arrow files and streams", _starts(arrow.ARROW_FILE, arrow.ARROW_STREAM), read
)
DATASETS = Reader(
    "datasets", "Hugging Face datasets on disk: a folder of save_to_disk", _is_dataset, read
)
RECORDS = Reader(
    "records",
    "what is in memory: lists of dicts, data frames, Arrow tables",
    lambda source: isinstance(source, InMemory),
    read,
)
