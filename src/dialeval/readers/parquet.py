"""Parquet: what `data convert` writes, and flat tables with the plain column names.

    id | context                             | response | references | rating_overall
    1  | [{speaker: user, text: Hi!}, ...]   | Hello.   | [Hi there.] | 4.5

Columns are those of `plain_record.py`, nested as in `storage.sample_schema` or plain text; columns
of ratings follow the rule of `rating_columns.py`. Rows are read in batches; the line of a problem
is the number of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialeval.errors import did_you_mean
from dialeval.limits import Limits
from dialeval.readers.json_stream import without_unfit
from dialeval.readers.plain_record import NAMES, maker, renamed
from dialeval.readers.rating_columns import half_named, is_reference, rating_columns, read_ratings
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample

BATCH = 1024


def recognises(source: Source) -> bool:
    return source.head.startswith(b"PAR1")


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    import pyarrow as pa

    # A damaged file makes pyarrow raise any of these, depending on where the damage is.
    broken = (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError)
    with source.seekable() as file:
        rows = _rows(file, source, options)
        number = 0
        while True:
            try:
                row = next(rows, None)
            except broken as error:
                raise UnreadableError(
                    f"not a valid Parquet file: {_first_line(error)}", number
                ) from error
            if row is None:
                return
            number += 1
            place.line = number
            yield from _samples(row, number, source.label, place, options)


def _rows(file: Any, source: Source, options: ReadOptions) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(file, page_checksum_verification=True)
    if len(table.schema_arrow.names) > source.limits.columns:
        problem = f"the table has more than {source.limits.columns:,} columns"
        raise UnreadableError(source.limits.exceeded(problem))
    names = [str(name) for name in table.schema_arrow.names]
    response = options.columns.get("response", "response")
    if "variants" not in names and options.texts:
        _require(response, names)
    for column in (*options.columns.values(), *options.ratings):
        _require(column, names)
    columns = rating_columns(names, options)
    if mixed := half_named(columns):
        raise UnreadableError(f"some raters of {mixed!r} are named and others are not")
    used = {*NAMES, *options.columns.values(), *(column.column for column in columns)}
    wanted = [name for name in names if name in used or is_reference(name)]
    source.handed_out = left = table.metadata.num_rows
    for row in rows_within(file, wanted, source.limits):
        source.tell_unread(left := left - 1)
        yield row


def rows_within(file: Any, columns: list[str], limits: Limits) -> Iterator[dict[str, Any]]:
    """The rows, of which none may be larger than the limits, in memory that they bound.

    A few kB can hold the same large text a thousand times, by a dictionary. So texts are read as
    dictionaries, and spelled out where that is little; else one row at a time. Texts within lists
    and structs are spelled out by Arrow: it cannot put dictionaries of several row groups together.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = pq.ParquetFile(file)
    leaves = [plain.schema.column(number) for number in range(len(plain.schema))]
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.path in plain.schema_arrow.names
    ]
    table = pq.ParquetFile(file, read_dictionary=texts, page_checksum_verification=True)
    number = 0
    for batch in table.iter_batches(batch_size=BATCH, columns=columns):
        if sum(map(_size, batch.columns)) <= limits.record:
            spelled = pa.schema([pa.field(each.name, _spelled(each.type)) for each in batch.schema])
            yield from pa.Table.from_batches([batch]).cast(spelled).to_pylist()
        else:
            for place in range(len(batch)):
                row = batch.slice(place, 1)
                if sum(map(_size, row.columns)) > limits.record:
                    raise UnreadableError(limits.long_record(), number + place + 1)
                yield from row.to_pylist()
        number += len(batch)


def _spelled(kind: Any) -> Any:
    """The type without dictionaries."""
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
    """How many bytes its texts have at most, spelled out."""
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


def _require(column: str, names: list[str]) -> None:
    if column not in names:
        raise UnreadableError(
            f"there is no column {column!r}.{did_you_mean(column, names)}"
            f" The file has: {', '.join(names[:30])}. Map other names with --map response=NAME"
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
    make = maker(label, ReadOptions(scales=options.scales, texts=options.texts))
    sample = make(record, number, place, rated)
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


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


READER = Reader("parquet", "Parquet: written by dialeval, or a flat table", recognises, read)
