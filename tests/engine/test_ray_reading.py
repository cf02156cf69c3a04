"""What tasks on Ray find in the input is put together without the process that started them."""

from __future__ import annotations

import hashlib
import pickle
import random
from itertools import chain

import pyarrow as pa
import pytest
from made_up import samples

from dialeval.engine.job import judged_digest
from dialeval.engine.ray_job import HEAP, Heaps
from dialeval.engine.ray_reading import (
    APART,
    JOINS,
    Digester,
    Found,
    block_digest,
    divided,
    joined,
    repeated,
)


class Piles:
    """Stands for a task of Ray: joins lists, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def remote(self, *lists: list[int]) -> list[int]:
        self.calls += 1
        return list(chain(*lists))


@pytest.mark.parametrize("rows", [1, HEAP // 20, HEAP])
def test_heaps_keep_their_order_and_stay_few(rows):
    task = Piles()
    heaps = Heaps(task)
    for number in range(1000):
        heaps.add(rows, [number])
    assert list(chain(*(heap.found for heap in heaps.all))) == list(range(1000))
    assert [heap.rows for heap in heaps.all] == [rows * heap.pieces for heap in heaps.all]
    assert all(heap.rows <= HEAP for heap in heaps.all)
    few = {1: 1 + 7 + 6 + 4, HEAP // 20: 125, HEAP: 1000}  # 1000 = 1750 in octal = 1 7 5 0
    assert len(heaps.all) <= few[rows]
    assert task.calls <= 1000 // 7


def test_the_digests_of_blocks_and_of_all_samples_are_those_of_one_reading():
    data = samples(100)
    digests = [sample.digest() for sample in data]
    judged = [judged_digest(sample, ratings=False) for sample in data]
    digester = Digester(b"job", 20)
    one, less = digester.blocks([30, 0, 20], [3, 45], b"".join(digests[:50]), b"".join(judged[:50]))
    two, nothing = digester.blocks([50], [], b"".join(digests[50:]), b"")
    kept = [digest for row, digest in enumerate(digests) if row not in (3, 45)]
    cuts = [(0, 20), (20, 29), (29, 48), (48, 68), (68, 88), (88, 98)]
    expected = [block_digest(b"job", b"".join(kept[first:last])) for first, last in cuts]
    assert one == [expected[:2], [], expected[2:3]]
    assert two == [expected[3:]]
    assert digester.whole() == hashlib.sha256(b"".join(kept)).hexdigest()
    assert less == int.from_bytes(judged[3]) + int.from_bytes(judged[45])
    assert nothing == 0


def test_ids_that_occur_twice_are_found_in_tables_that_were_joined():
    generator = random.Random(0)
    ids = [f"s{generator.randrange(300)}" for _ in range(JOINS * 40)]
    first_rows = {name: row for row, name in reversed(list(enumerate(ids)))}
    found = list[Found]()
    for number in range(JOINS):
        own = ids[40 * number : 40 * number + 40]
        columns = {"id": own, "piece": [number] * 40, "row": list(range(40)), "line": [0] * 40}
        found.append(Found.of(bytes([number]), b"", [pa.table(columns)]))
    digests, judged, table = divided(joined(*found))
    assert (digests, judged) == (bytes(range(JOINS)), b"")
    again = {(row["piece"], row["row"]) for row in repeated(table).to_pylist()}
    assert again == {divmod(row, 40) for row, name in enumerate(ids) if first_rows[name] != row}
    assert len(again) > 50


@pytest.mark.parametrize("samples", [0, 1, 100, 5000])
def test_what_a_scan_finds_is_too_large_for_ray_to_keep_it_in_the_driver(samples):
    """The default of Ray's `max_direct_call_object_size`, a larger result lies in the cluster."""
    ids = pa.table({"id": pa.array([f"s{number}" for number in range(samples)], pa.string())})
    found = Found.of(bytes(32 * samples), b"", [ids])
    assert len(pickle.dumps(found)) > 100 * 1024
    assert len(pickle.dumps(joined(found, found))) > 100 * 1024
    assert len(found.padding) == max(0, APART - 32 * samples)
