"""Rows by filter, order and page, against the same done in plain Python over the whole run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up import edit_manifest, sample

from dialeval import open_run, score
from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn, Variant
from dialeval.web.rows import ArrayCache, Orderings, Query, RunRows, Shape, page_number

WORDS = ["Straße", "ÉCOLE", "50%", "a.c", "abc", "тест", "\\d", "<b>", "", "two words"]


def mixed() -> list[Sample]:
    """1200 samples that differ in everything that can be asked for."""
    generator = np.random.default_rng(0)
    found = []
    for number in range(1200):
        words = [WORDS[i] for i in generator.integers(len(WORDS), size=generator.integers(0, 6))]
        one = sample(number, " ".join(words), system=("a", "b", "")[number % 3])
        if number % 7 == 0:
            one = dataclasses.replace(one, response=None)
        if number % 11 == 0:
            one = dataclasses.replace(one, variants=(Variant("why?", f"because {number}"),))
        if number % 13 == 0:
            one = dataclasses.replace(one, context=(Turn(f"hidden in turn {number}"),))
        found.append(one)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return score(mixed(), ["length", "distinct"], out=tmp_path_factory.mktemp("rows") / "run")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr("dialeval.web.rows.BATCH", 500)


@pytest.fixture(scope="module")
def whole(run):
    return [row for batch in run.batches() for row in batch.to_pylist()]


def said(row) -> list[str]:
    turns = [turn["text"] for turn in row["context"]]
    variants = [text for one in row["variants"] for text in (one["query"], one["response"])]
    return [row["id"], row["response"] or "", *turns, *variants]


def expected(whole, shape: Shape, query: Query) -> list[int]:
    """The definition, one row at a time."""

    def fits(row) -> bool:
        if query.text and not any(query.text.lower() in text.lower() for text in said(row)):
            return False
        if query.system is not None and row["system"] != shape.systems[query.system]:
            return False
        if query.note is not None:
            chosen = shape.notes[query.note]
            if row[f"{chosen.label}.note"] != chosen.note:
                return False
        value = row[query.metric] if query.metric else None
        if query.low is not None and (value is None or value < query.low):
            return False
        return not (query.high is not None and (value is None or value > query.high))

    numbers = [number for number, row in enumerate(whole) if fits(row)]
    if not query.sort:
        return numbers
    there = [n for n in numbers if whole[n][query.sort] is not None]
    sign = -1 if query.descending else 1
    there.sort(key=lambda n: sign * whole[n][query.sort])
    return there + [n for n in numbers if whole[n][query.sort] is None]


queries = st.builds(
    Query,
    text=st.sampled_from(["", "école", "50%", "a.c", "S77", "ТЕСТ", "\\D", "BECAUSE 1", "in turn"]),
    system=st.sampled_from([None, 0, 1, 2]),
    metric=st.just("length"),
    low=st.sampled_from([None, 0.0, 2.0]),
    high=st.sampled_from([None, 1.0, 4.0]),
    note=st.sampled_from([None, None, 0]),
    sort=st.sampled_from(["", "length", "distinct", "distinct.distinct-1"]),
    descending=st.booleans(),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=queries)
def test_an_ordering_is_what_its_definition_says(run, whole, query):
    rows = RunRows(run)
    assert Orderings().of(rows, query).tolist() == expected(whole, rows.shape, query)


def test_rows_come_in_the_order_asked_for_and_whole(run, whole):
    numbers = [1199, 0, 1024, 1023, 17]
    assert RunRows(run).take(numbers) == [whole[number] for number in numbers]


def test_rows_of_many_row_groups_are_found(tmp_path, run, whole):
    import pyarrow.parquet as pq

    copy = run.save(tmp_path / "copy")
    table = pq.read_table(copy.directory / "scores.parquet")
    pq.write_table(table, copy.directory / "scores.parquet", row_group_size=70)
    rows = RunRows(copy)
    numbers = [69, 70, 139, 140, 1199, 700]
    assert rows.take(numbers) == [whole[number] for number in numbers]
    query = Query(text="école", sort="length")
    assert Orderings().of(rows, query).tolist() == expected(whole, rows.shape, query)


def test_an_ordering_is_found_once_and_kept(run, monkeypatch):
    rows, orderings = RunRows(run), Orderings()
    first = orderings.of(rows, Query(text="abc", sort="length"))
    monkeypatch.setattr(RunRows, "_batches", None)
    assert orderings.of(rows, Query(text="abc", sort="length")) is first
    assert len(orderings.of(rows, Query(text="abc"))) == len(first)


def test_what_is_kept_stays_below_its_bound_and_the_oldest_goes_first():
    kept = ArrayCache(most_bytes=100)
    for number in range(5):
        kept.put((number,), np.zeros(40, np.uint8))
        kept.get((0,))
    assert kept.bytes == 80
    assert kept.get((0,)) is not None
    assert kept.get((3,)) is None
    assert kept.get((4,)) is not None


def test_a_run_that_was_written_anew_is_noticed(tmp_path):
    out = tmp_path / "run"
    rows = RunRows(score([sample(0)], ["length"], out=out))
    score([sample(0), sample(1)], ["length"], out=out, overwrite=True)
    assert not rows.is_current()
    with pytest.raises(UsageError, match="rewritten"):
        rows.take([0])


def test_a_damaged_file_is_a_clear_error(tmp_path):
    run = score([sample(0)], ["length"], out=tmp_path / "run")
    (run.directory / "scores.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(UsageError, match="damaged"):
        RunRows(run)


def test_a_manifest_that_names_other_metrics_is_a_clear_error(tmp_path):
    run = score([sample(0)], ["length"], out=tmp_path / "run")
    edit_manifest(run.directory, '"length"', '"width"')
    with pytest.raises(UsageError, match="no column 'width'"):
        RunRows(open_run(run.directory))


def test_an_empty_run_has_no_rows(tmp_path):
    rows = RunRows(score([], ["length"], out=tmp_path / "run"))
    assert Orderings().of(rows, Query(text="x", sort="length")).tolist() == []
    assert rows.take([]) == []


SHAPE = Shape(("a", "b"), ("length", "ppl"), ("length", "ppl"), (), frozenset({"ppl"}))


@given(queries.filter(lambda query: query.system in (None, 0, 1)))
def test_an_address_brings_its_query_back(query):
    from urllib.parse import parse_qsl

    shape = dataclasses.replace(
        SHAPE,
        columns=("length", "distinct", "distinct.distinct-1"),
        notes=(None,),  # type: ignore[arg-type]
    )
    canonical = Query.parse(dict(parse_qsl(query.address())), shape)
    assert Query.parse(dict(parse_qsl(canonical.address())), shape) == canonical
    assert (canonical.text, canonical.system, canonical.low) == (
        query.text,
        query.system,
        query.low,
    )


@pytest.mark.parametrize(
    "given_",
    [
        {"low": "x", "metric": "length"},
        {"low": "nan", "metric": "length"},
        {"high": "inf", "metric": "length"},
        {"low": "1"},
        {"system": "2"},
        {"system": "-1"},
        {"system": "٣"},
        {"system": "9" * 400},
        {"note": "0"},
        {"sort": "lenght"},
        {"sort": "id"},
        {"metric": "response", "low": "1"},
    ],
)
def test_a_query_that_makes_no_sense_is_refused(given_):
    with pytest.raises(UsageError):
        Query.parse(given_, SHAPE)


@pytest.mark.parametrize("page", ["-1", "x", "1.5", "9" * 300])
def test_a_page_that_makes_no_sense_is_refused(page):
    with pytest.raises(UsageError):
        page_number(page)


def test_a_head_sorts_the_worst_first_then_the_best_then_not_at_all():
    orders = []
    for column in ("length", "ppl"):
        query = Query()
        for _ in range(3):
            query = query.sorted_by(column, SHAPE)
            orders.append((query.sort, query.descending))
    assert orders == [
        ("length", False),
        ("length", True),
        ("", False),
        ("ppl", True),
        ("ppl", False),
        ("", False),
    ]
