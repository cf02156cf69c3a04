"""What is in memory loads like files: lists of dicts, frames, Arrow tables, datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import dialeval
from dialeval.errors import InputError, UsageError

from .test_reader_logs import ASKED, SAID, SHAREGPT, assert_the_exchange, the_only

PAIR = {"id": "a", "prompt": ASKED.text, "completion": SAID, "rating_overall": 4}
TABLE = pa.Table.from_pylist([PAIR])


class Frame:
    """As polars offers its frames: by the Arrow interface, and by nothing else we know."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        views = TABLE.cast(pa.schema([(f.name, _view(f.type)) for f in TABLE.schema]))
        return views.__arrow_c_stream__(requested_schema)


def _view(kind: pa.DataType) -> pa.DataType:
    return pa.string_view() if kind == pa.string() else kind


class Dataset:
    """As `datasets.Dataset`: it has a length, and gives its rows as dicts, again and again."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([PAIR])

    def to_dict(self, batch_size: int | None = None) -> dict[str, list[Any]]:
        """Unlike that of pandas, it gives columns, whatever it is asked for."""
        return {name: [value] for name, value in PAIR.items()}


GIVEN = {
    "list": [PAIR],
    "pandas": pd.DataFrame([PAIR]),
    "polars": Frame(),
    "arrow": TABLE,
    "datasets": Dataset(),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_records_in_memory_are_loaded_and_scored(kind: str) -> None:
    loaded = dialeval.load(GIVEN[kind])
    sample = the_only(list(loaded))
    assert_the_exchange(sample)
    assert sample.ratings["overall"].values == (4.0,)
    assert list(loaded) == [sample]
    run = dialeval.score(GIVEN[kind], metrics=["length"])
    assert list(run.scores("length")) == [2.0]


def test_what_can_be_read_once_is_loaded_too() -> None:
    loaded = dialeval.load(TABLE.to_reader())
    assert list(loaded) == list(loaded)
    assert_the_exchange(the_only(list(loaded)))
    assert_the_exchange(the_only(list(dialeval.load(iter([PAIR])))))


def test_a_frame_may_hold_conversations_and_other_names() -> None:
    loaded = dialeval.load(pd.DataFrame([SHAREGPT]))
    assert [sample.id for sample in loaded] == ["QWJhYvA_0#1", "QWJhYvA_0#3"]
    frame = pd.DataFrame([{"q": ASKED.text, "out": {"text": SAID}}])
    columns = {"prompt": "q", "response": "out.text"}
    assert_the_exchange(the_only(list(dialeval.load(frame, columns=columns))))


def test_missing_cells_are_no_text() -> None:
    frame = pd.DataFrame([PAIR, {"id": "b", "prompt": "Why?"}])
    loaded = dialeval.load(frame, bad="skip")
    assert [sample.id for sample in loaded] == ["a"]
    assert str(loaded.problems[0]) == "<DataFrame>:2: completion: there is no answer"
    assert loaded.skipped == 1


def test_what_is_no_record_is_told() -> None:
    with pytest.raises(UsageError, match="item 0 is of type int"):
        dialeval.load([1, 2])
    with pytest.raises(InputError, match="there are no records in it"):
        list(dialeval.load([]))
    with pytest.raises(UsageError, match=r"not a dict\. Put a single record into a list"):
        dialeval.load({"prompt": "Hi"})
    with pytest.raises(UsageError, match="Choose one of its parts: 'train', 'test'"):
        dialeval.load({"train": Dataset(), "test": Dataset()})


def test_the_real_dataset_is_loaded_where_its_package_is_installed() -> None:
    datasets = pytest.importorskip("datasets")
    given = datasets.Dataset.from_list([PAIR])
    assert_the_exchange(the_only(list(dialeval.load(given))))
    assert_the_exchange(the_only(list(dialeval.load(given.to_iterable_dataset()))))
