"""Bytes and lines: compression, encodings, limits; arrays read in pieces."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from dialeval.errors import InputError, UsageError
from dialeval.readers import Place, Problems, Source, load
from dialeval.readers.json_stream import array_elements
from dialeval.readers.source import BLOCK, Rejoined, decompressed

from .conftest import Read

RECORDS = "".join(f'{{"response": "number {k}"}}\n' for k in range(3)).encode()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt"])
@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(RECORDS),
        gzip.compress(RECORDS[:40]) + gzip.compress(RECORDS[40:]),
        zstandard.compress(RECORDS),
        zstandard.compress(RECORDS[:40]) + zstandard.compress(RECORDS[40:]),
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + zstandard.compress(RECORDS),
    ],
    ids=["gzip", "two members", "zstd", "two frames", "skippable frame"],
)
def test_compression_is_found_by_content_not_by_name(read: Read, packed: bytes, name: str) -> None:
    assert len(read(packed, name=name).samples) == 3


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_cut_off_archive_is_a_problem_after_what_could_be_read(read: Read, pack: object) -> None:
    lines = b"".join(b'{"response": "%d"}\n' % (k * k * 7919) for k in range(100_000))
    packed: bytes = pack(lines)  # type: ignore[operator]
    reading = read(packed[: len(packed) // 2])
    assert reading.samples
    assert "archive is cut off" in reading.problems[-1]


def test_a_damaged_archive_is_a_problem(read: Read) -> None:
    packed = bytearray(gzip.compress(RECORDS * 1000))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match=r"the gzip archive is (damaged|cut off)"):
        read(bytes(packed))


def test_a_small_archive_of_a_huge_line_is_an_error(read: Read) -> None:
    packed = zstandard.compress(b'{"response": "' + b"a" * (1 << 24))
    assert read(packed, largest_record=1).problems == [
        ":1: the line is longer than 1,048,576 characters. If that is right, raise"
        " --largest-record (now 1)"
    ]


def test_a_long_record_is_refused_until_the_limit_is_raised(read: Read) -> None:
    line = b'{"response": "' + b"a " * (1 << 22) + b'"}\n'
    for record in (line, b"[" + line + b"]"):
        assert "is longer than 8,388,608 characters" in read(record).problems[0]
        reading = read(record, largest_record=20)
        assert not reading.problems
        assert len(reading.samples) == 1


def test_an_archive_of_blank_lines_is_given_up_early(read: Read) -> None:
    reading = read(zstandard.compress(RECORDS + b"\n" * (1 << 25)))
    assert "there are more than 1,048,576 blank lines in a row" in reading.problems[0]
    few = read(RECORDS + b"\n" * 1000 + RECORDS)
    assert not few.problems


def test_unpacked_blocks_are_bounded() -> None:
    packed = Rejoined(zstandard.compress(b"\n" * (1 << 25)), io.BytesIO())
    sizes = [len(block) for block in decompressed(packed)]
    assert sum(sizes) == 1 << 25
    assert max(sizes) <= BLOCK


def test_a_table_with_more_columns_than_a_row_can_mean_is_refused(read: Read) -> None:
    table = "\n".join(",".join(["response", *(f"c{i}" for i in range(5000))]) for _ in range(2))
    assert "the table has more than 4,096 columns" in read(table.encode()).problems[0]
    assert len(read(table.encode(), largest_record=16).samples) == 1


def test_a_long_cell_is_refused_until_the_limit_is_raised(read: Read) -> None:
    table = b'id,response\n1,"' + b"a " * 100_000 + b'"\n'
    assert "a cell is longer than 131,072 characters" in read(table).problems[0]
    before = csv.field_size_limit()
    assert len(read(table, largest_record=16).samples) == 1
    assert csv.field_size_limit() == before


def test_a_large_text_that_parquet_holds_once_is_not_held_for_every_row(tmp_path: Path) -> None:
    rows, text = 300, "a " * (1 << 20)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    turns = pa.StructArray.from_arrays([pa.array(["user"] * rows), texts], ["speaker", "text"])
    context = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), turns)
    table = pa.table({"context": context, "response": texts})
    path = tmp_path / "bomb.parquet"
    pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 10_000
    before = pa.default_memory_pool().max_memory()
    taken = list(islice(load(path), 3))
    assert [(sample.context[0].text, sample.response) for sample in taken] == [(text, text)] * 3
    assert pa.default_memory_pool().max_memory() - before < 30 * len(text)
    with pytest.raises(InputError, match=r":1: the record is longer than 1,048,576 characters"):
        list(load(path, largest_record=1))


def test_a_limit_is_at_least_one(read: Read) -> None:
    with pytest.raises(UsageError, match="largest_record must be at least 1, not 0"):
        read(RECORDS, largest_record=0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_encodings_are_understood(read: Read, encoding: str) -> None:
    reading = read('{"response": "é – 😀"}\r\n'.encode(encoding))
    assert reading.samples[0].response == "é – 😀"
    assert not reading.problems


def test_other_bytes_are_read_as_windows_1252_and_reported(read: Read) -> None:
    reading = read(b'{"response": "\xc3\xa9"}\n{"response": "\xc3\xa9 it\x92s \x80"}\n')
    assert reading.samples[1].response == "é it\u2019s €"
    assert reading.problems == [":2: byte 0x92 at column 19 is not UTF-8: read as Windows-1252"]


def test_lines_are_the_same_whatever_the_size_of_the_blocks(tmp_path: Path) -> None:
    text = "".join("é" * (k * 37 % 5000) + "\r\n" * (k % 3) for k in range(400))
    path = tmp_path / "lines.txt"
    path.write_bytes(text.encode())
    place = Place(Problems(), "lines")
    wanted = [line.removesuffix("\r") for line in text.split("\n")]
    assert [line for _, line in Source(path).lines(place)] == wanted[
        : len(wanted) - (not wanted[-1])
    ]
    assert not place.problems.kept


def test_a_line_of_a_megabyte_is_fine(read: Read) -> None:
    assert len(read(json.dumps({"response": "a" * 1_000_000})).samples[0].response or "") == 10**6


def test_standard_input_can_be_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(RECORDS * 5000))
    monkeypatch.setattr(sys, "stdin", stdin)
    samples = load("-", bad="skip", format=None)
    for index, sample in enumerate(samples, 1):
        assert sample.id == f"stdin-{index:06d}"
    assert index == 15_000
    assert samples.fraction() == 1.0
    assert not list(samples)
    assert "can be read only once" in str(samples.problems[0])


def test_a_named_pipe_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if os.fork() == 0:
        path.write_bytes(RECORDS * 50)
        os._exit(0)
    assert len(list(load(path))) == 150
    os.wait()


@pytest.mark.parametrize(
    ("name", "problem"), [("missing.jsonl", "there is no such file"), ("", "fits no format")]
)
def test_what_cannot_be_opened_is_told_at_once(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load(tmp_path / name, bad="skip")


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 2, 7, 100, 100_000])
def test_arrays_are_the_same_in_pieces_of_any_size(size: int) -> None:
    values = [{"a": [1, {"b": "x" * k}]} for k in range(60)] + [1.5, -12, True, None, "é\n", []]
    text = " \n" + json.dumps(values, indent=2)
    place = Place(Problems(), "array")
    found = list(array_elements(pieces(text, size), place))
    assert [value for _, value in found] == values
    lines = text.split("\n")
    assert all(lines[line - 1].startswith("  ") for line, _ in found)
    assert not place.problems.kept


def test_a_broken_element_is_reported_and_the_next_one_read(read: Read) -> None:
    records = [f'  {{"response": "{k}"}}' for k in range(4)]
    records[1] = '  {"response": "1" "x": {\n  "y": 2}}'
    reading = read("[\n" + ",\n".join(records) + "\n]\n", name="a.json")
    assert [sample.response for sample in reading.samples] == ["0", "2", "3"]
    assert len(reading.problems) == 1
    assert reading.problems[0].startswith(":3: invalid JSON: Expecting ',' delimiter")


def test_without_line_starts_reading_stops_at_a_broken_element(read: Read) -> None:
    reading = read('[{"response": "1"}, {"response" "2"}, {"response": "3"}]', name="a.json")
    assert [sample.response for sample in reading.samples] == ["1"]
    assert "cannot find the next record" in reading.problems[-1]


@pytest.mark.parametrize("ending", ["", ",", ', {"respon'])
def test_an_array_that_is_cut_off_is_an_error(read: Read, ending: str) -> None:
    reading = read('[{"response": "1"}' + ending, name="a.json")
    assert [sample.response for sample in reading.samples] == ["1"]
    assert reading.problems


def test_a_long_array_is_decoded_in_linear_time_and_small_windows() -> None:
    element = '{"response": "' + "x" * 1000 + '"},\n'
    text = itertools.chain("[", itertools.repeat(element, 20_000), '{"response": ""}]')
    assert sum(1 for _ in array_elements(text, Place(Problems(), ""))) == 20_001
