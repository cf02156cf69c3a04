"""Pieces of the input, read one by one, give the samples and the problems of one pass."""

from __future__ import annotations

import gzip
import json
import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dialeval
from dialeval.errors import InputError
from dialeval.readers.pieces import Twice, divide, gather, place


def write_lines(path, count, seed, broken=True):
    """Records with and without ids, blank and broken lines, other scripts, unused columns."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        record = {
            "context": ["Grüße, 你好 " * draw.randint(0, 4)],
            "response": "so " * (1 + number % 7),
        }
        if draw.random() < 0.4:
            record["id"] = f"{path.stem}-own-{number}"
        if draw.random() < 0.1:
            record[f"column{number % 3}"] = 1
        lines.append(json.dumps(record, ensure_ascii=draw.random() < 0.5))
        lines += [""] * (draw.random() < 0.1)
        lines += ["{broken"] * (broken and draw.random() < 0.05)
        lines += ['{"response": 7}'] * (broken and draw.random() < 0.05)
    path.write_text("\n".join(lines) + "\n" * draw.randint(0, 1), encoding="utf-8")


def in_pieces(paths, size, **options):
    """Reads as workers do: each piece goes through another process, and comes back as a report."""
    samples = dialeval.load(*paths, **options)
    pieces = divide(samples, size)
    away = [pickle.loads(pickle.dumps(piece)) for piece in pieces]
    pieces = place(pieces, [piece.measure() if piece.to_measure else None for piece in away])
    found, reports, twice, seen = [], [], [], set()
    for number, piece in enumerate(pieces):
        reading = pickle.loads(pickle.dumps(piece)).reading()
        for row, (line, sample) in enumerate(reading):
            if sample.id in seen:
                twice.append(Twice(number, row, line, sample.id))
            else:
                seen.add(sample.id)
                found.append(sample)
        reports.append(reading.report)
    gather(samples, pieces, reports, twice)
    return found, samples, pieces


@pytest.mark.parametrize("size", [40, 333, 5000, 1 << 20])
def test_lines_and_row_groups_are_cut_without_a_trace(tmp_path, size):
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz", "d.parquet")]
    write_lines(paths[0], 120, 1)
    write_lines(paths[1], 40, 2)
    write_lines(tmp_path / "c", 30, 3)
    paths[2].write_bytes(gzip.compress((tmp_path / "c").read_bytes()))
    table = pa.table({"response": [f"row {number}" for number in range(50)], "other": [1] * 50})
    pq.write_table(table, paths[3], row_group_size=7)
    whole = dialeval.load(*paths, bad="skip")
    expected = list(whole)
    found, samples, pieces = in_pieces(paths, size, bad="skip")
    assert found == expected
    assert sorted(samples.problems, key=str) == sorted(whole.problems, key=str)
    assert [str(p) for p in samples.problems if p.line] == [
        str(p) for p in whole.problems if p.line
    ]
    assert samples.about() == whole.about()
    assert len(pieces) > 8 or size > 333


def test_errors_are_told_with_the_lines_of_the_file(tmp_path):
    path = tmp_path / "bad.jsonl"
    write_lines(path, 100, 4)
    with pytest.raises(InputError) as whole:
        list(dialeval.load(path))
    with pytest.raises(InputError) as pieces:
        in_pieces([path], 200)
    assert str(pieces.value) == str(whole.value)


def test_an_id_that_occurs_in_two_pieces_is_an_error_at_the_second(tmp_path):
    path = tmp_path / "twice.jsonl"
    records = [{"id": str(number % 37), "response": "yes"} for number in range(40)]
    path.write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(InputError) as whole:
        list(dialeval.load(path))
    with pytest.raises(InputError, match=r"twice.jsonl:38: id: '0' occurs twice") as pieces:
        in_pieces([path], 100)
    assert str(pieces.value) == str(whole.value)
    kept, samples, _ = in_pieces([path], 100, bad="skip")
    assert (len(kept), samples.skipped) == (37, 3)


def test_what_is_chosen_or_in_memory_is_not_divided(tmp_path):
    path = tmp_path / "a.jsonl"
    write_lines(path, 5, 5, broken=False)
    assert divide(dialeval.load(path, limit=3), 100) is None
    assert divide(dialeval.load([{"response": "yes"}]), 100) is None
    spread = tmp_path / "spread.json"
    spread.write_text(json.dumps([{"response": "yes"}] * 50, indent=1))
    (piece,) = divide(dialeval.load(spread), 100)
    assert piece.span is None
