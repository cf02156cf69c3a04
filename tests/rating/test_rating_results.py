"""What comes out: agreement, attention, preferences, files that other verbs read."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3

import krippendorff
import numpy as np
import pytest
from hostile import FORMULAS, LONE_SURROGATE, PAYLOADS
from rating_jobs import comparison_job, rating_job

import dialeval
from dialeval.errors import InputError
from dialeval.rating.design import RatingMaterial, design
from dialeval.rating.job import Job, parse_qualities
from dialeval.rating.opening import create_store
from dialeval.rating.overview import overview
from dialeval.rating.results import answer_records, export_ratings, rated_samples
from dialeval.sample import Sample, Turn


def rate_all(store, say, until=None):
    """Every rater answers every page (up to `until`) with what `say(rater, showing)` returns."""
    for rater in store.raters():
        for position in range(1, (until or store.total(rater)) + 1):
            showing = store.show(rater, position)
            store.save(rater, position, say(rater, showing), f"s{position}")


def value(rater, showing) -> dict[str, float]:
    number = showing.task.number
    return {
        "overall": (number * (rater.number + 1)) % 5 + 1,
        "natural": (number + rater.number) % 3 + 1,
    }


@pytest.fixture
def rated(tmp_path):
    store = create_store(
        str(tmp_path / "ratings.db"), rating_job(12, checks=0.1, duplicates=0.2), 3
    )
    rate_all(store, value)
    return store


def test_alpha_is_that_of_the_krippendorff_package(rated):
    table = np.array([[(n * (r + 1)) % 5 + 1 for n in range(1, 13)] for r in (1, 2, 3)], float)
    expected = krippendorff.alpha(table, level_of_measurement="ordinal")
    (overall, _) = overview(rated).agreement
    assert overall.alpha.value == pytest.approx(expected, abs=1e-9)
    assert overall.ratings == 36
    assert overall.mean == pytest.approx(table.mean())


def test_checks_and_second_showings_are_no_ratings(rated):
    samples = list(rated_samples(rated))
    assert [sample.id for sample in samples] == [f"bot-{i}" for i in range(12)]
    for number, sample in enumerate(samples, 1):
        said = sample.ratings["overall"]
        assert said.raters == ("rater-1", "rater-2", "rater-3")
        assert said.values == tuple((number * (r + 1)) % 5 + 1 for r in (1, 2, 3))
        assert said.scale == (1.0, 5.0)


def test_the_overview_counts_pages_checks_and_steadiness(tmp_path):
    job = rating_job(10, checks=0.2, duplicates=0.3)
    store = create_store(str(tmp_path / "r.db"), job, 2)
    moody = store.raters()[1].number

    def say(rater, showing):
        if showing.task.kind == "check":
            return {"overall": 1, "natural": 1} if rater.number != moody else {
                "overall": 5, "natural": 3,
            }  # fmt: skip
        again = showing.assignment.repeat and rater.number == moody
        return {"overall": 5 if again else 4, "natural": 2}

    rate_all(store, say)
    steady, other = overview(store).raters
    assert (steady.pages.count, steady.pages.of) == (15, 15)
    assert (steady.checks.count, steady.checks.of) == (2, 2)
    assert (other.checks.count, other.checks.of) == (0, 2)
    assert (steady.steady.count, steady.steady.of) == (6, 6)
    assert (other.steady.count, other.steady.of) == (3, 6)


def test_an_empty_job_has_reasons_and_no_numbers(tmp_path):
    found = overview(create_store(str(tmp_path / "r.db"), comparison_job(), 2))
    assert found.agreement[0].alpha.value is None
    assert found.preferences[0].ranking.reason == "no comparison yet"
    assert found.pages.count == 0
    assert json.dumps(found.to_record())


def test_who_is_called_first_does_not_move_agreement(tmp_path):
    """All prefer `b`, whichever side it stands on: then people agree, but for one rater's whim."""

    def prefer(system):
        def say(rater, showing):
            whim = rater.number == 3 and showing.task.number == 1
            wins = (showing.task.samples[0].system == system) != whim
            return {"preference": 1.0 if wins else 0.0}

        return say

    alphas = []
    for number, systems in enumerate((("a", "b"), ("b", "a"))):
        store = create_store(str(tmp_path / f"{number}.db"), comparison_job(5, systems), 3)
        rate_all(store, prefer("b"))
        alphas.append(overview(store).agreement[0].alpha.value)
    both_ways = np.array([[1] * 5 + [0] * 5, [1] * 5 + [0] * 5, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]])
    expected = krippendorff.alpha(both_ways.astype(float), level_of_measurement="interval")
    assert alphas == pytest.approx([expected, expected], abs=1e-9)


def test_win_rates_count_ties_half_and_unflip_the_sides(tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(4, ("a", "b")), 1)
    said = {1: 1.0, 2: 1.0, 3: 0.5, 4: 0.0}
    rate_all(store, lambda rater, showing: {"preference": said[showing.task.number]})
    (found,) = overview(store).preferences
    assert found.win_rates == {"a": 0.625, "b": 0.375}
    (pair,) = found.pairs
    assert (pair.wins, pair.ties, pair.losses, pair.items) == (2, 1, 1, 4)
    assert found.ranking.strengths[0].strength == pytest.approx(np.log(2.5 / 1.5) / 2)


def test_an_answer_is_rated_by_the_share_of_its_wins(tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(1, ("a", "b", "c")), 1)
    better = {("a", "b"): 1.0, ("a", "c"): 1.0, ("b", "c"): 0.5}
    rate_all(
        store,
        lambda rater, showing: {
            "preference": better[tuple(s.system for s in showing.task.samples)]
        },
    )
    found = {s.system: s.ratings["preference"].values for s in rated_samples(store)}
    assert found == {"a": (1.0,), "b": (0.25,), "c": (0.25,)}


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_what_is_exported_is_read_again(rated, tmp_path, to):
    path = tmp_path / f"out.{to}"
    export_ratings(rated, to, path)
    expected = {s.id: s.ratings["natural"].values for s in rated_samples(rated)}
    again = list(dialeval.load(path))
    assert {s.id: s.ratings["natural"].values for s in again} == expected
    assert again[0].ratings["natural"].raters == ("rater-1", "rater-2", "rater-3")
    assert again[0].context == (Turn("What about 0?", "user" if to != "csv" else ""),)


def test_comments_go_where_ratings_go(tmp_path):
    store = create_store(str(tmp_path / "ratings.db"), rating_job(3), 2)
    rate_all(store, value)
    first = store.raters()[0]
    showing = store.show(first, 2)
    store.save(first, 2, value(first, showing), "new", "=He said so before.")
    ident = showing.task.samples[0].id
    assert [(one.rater, one.page, one.shown, one.text) for one in overview(store).comments] == [
        ("rater-1", 2, (ident,), "=He said so before.")
    ]
    wanted = ("=He said so before.", "")
    for to in ("jsonl", "parquet"):
        export_ratings(store, to, tmp_path / f"out.{to}")
        again = {sample.id: sample for sample in dialeval.load(tmp_path / f"out.{to}")}
        assert again[ident].ratings["overall"].comments == wanted
        assert again[ident].ratings["natural"].comments == ()
        assert sum(bool(one.ratings["overall"].comments) for one in again.values()) == 1
    export_ratings(store, "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["comment__rater-1"] for row in csv.DictReader(file) if row["id"] == ident]
    assert cells == ["'=He said so before."]
    said = [record.get("comment") for record in answer_records(store)]
    assert [comment for comment in said if comment] == ["=He said so before."]


def test_what_is_said_of_a_comparison_stands_with_both_answers(tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(1, ("a", "b", "c")), 1)
    (rater,) = store.raters()
    for position in (1, 2, 3):
        pair = "".join(s.system for s in store.show(rater, position).task.samples)
        store.save(rater, position, {"preference": 1.0}, "s", pair)
    found = {s.system: s.ratings["preference"].comments for s in rated_samples(store)}
    assert {system: set(*map(str.split, said)) for system, said in found.items()} == {
        "a": {"ab", "ac"},
        "b": {"ab", "bc"},
        "c": {"ac", "bc"},
    }


def test_the_database_is_read_as_it_is(rated):
    again = list(dialeval.load(rated.address.path))
    assert again == list(rated_samples(rated))


def test_the_database_is_read_while_the_server_is_at_work_and_from_a_read_only_folder(
    rated, tmp_path
):
    assert (tmp_path / "ratings.db-wal").exists()
    assert len(list(dialeval.load(rated.address.path))) == 12
    rated.close()
    assert len(list(dialeval.load(rated.address.path))) == 12


def test_another_database_is_refused_with_a_reason(tmp_path):
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(InputError, match="not one of dialeval rate"):
        list(dialeval.load(path))


def test_a_packed_database_is_refused_with_a_way_out(rated, tmp_path):
    rated.close()
    path = tmp_path / "ratings.db.gz"
    path.write_bytes(gzip.compress(rated.address.path.read_bytes()))
    with pytest.raises(InputError, match="unpack it"):
        list(dialeval.load(path))


def test_every_answer_can_be_had_by_itself(tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(8, checks=0.1, duplicates=0.2), 2)
    rate_all(store, lambda rater, showing: {"preference": 1.0})
    records = list(answer_records(store))
    assert {record["kind"] for record in records} == {"sample", "check", "repeat"}
    assert all(record["passed"] for record in records if record["kind"] == "check")
    first = {(r["rater"], r["first"]): r["shown"] for r in records if r["kind"] == "sample"}
    for record in records:
        if record["kind"] == "repeat":
            assert record["shown"] == first[record["rater"], record["first"]][::-1]


def hostile_store(tmp_path):
    texts = (*PAYLOADS, LONE_SURROGATE)
    samples = tuple(
        Sample(f"{number}{text}", (Turn(text, text),), text, system=text, item=text)
        for number, text in enumerate(texts)
    )
    job = Job("rate", parse_qualities("overall"))
    store = create_store(str(tmp_path / "h.db"), design([RatingMaterial("h", samples)], job).job, 1)
    (rater,) = store.raters()
    for position in range(1, len(texts) + 1):
        store.save(rater, position, {"overall": 3}, "s", texts[position - 1])
    return store, texts


def test_hostile_text_comes_out_of_jsonl_as_it_went_in(tmp_path):
    store, texts = hostile_store(tmp_path)
    export_ratings(store, "jsonl", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["response"] for line in lines] == list(texts)


def test_hostile_text_never_is_a_formula_in_csv(tmp_path):
    store, texts = hostile_store(tmp_path)
    export_ratings(store, "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == len(texts) + 1
    starts = ("=", "+", "-", "@", "\t", "\r", "\n", "＝")
    assert not [cell for row in rows for cell in row if cell.startswith(starts)]
    assert sum(row[5].startswith("'") for row in rows) >= len(FORMULAS)
