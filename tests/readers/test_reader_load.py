"""`load`, `check` and `convert`: laziness, what errors do, ids, detection."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from dialeval.errors import InputError, Problem, UsageError
from dialeval.readers import check, convert, formats, load
from dialeval.readers.fields import IdSet
from dialeval.registry import READERS
from dialeval.sample import Rating, Sample, Turn, Variant


def write(path: Path, *records: dict[str, object] | str) -> Path:
    lines = (r if isinstance(r, str) else json.dumps(r) for r in records)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_samples_can_be_iterated_again(tmp_path: Path) -> None:
    samples = load(write(tmp_path / "a.jsonl", {"response": "a"}, {"response": "b"}))
    assert list(samples) == list(samples)
    assert len(list(samples)) == 2


def test_an_error_ends_the_samples_but_all_errors_are_collected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a"}, "{", {"response": "b"}, {"response": 1})
    seen = []
    with pytest.raises(InputError) as caught:
        seen.extend(load(path))
    assert [problem.line for problem in caught.value.problems] == [2, 4]
    assert not seen or [s.response for s in seen] == ["a"]


def test_bad_records_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a"}, "{", {"response": "b"}, {"response": 1})
    samples = load(path, bad="skip")
    assert [s.response for s in samples] == ["a", "b"]
    assert samples.skipped == 2


def test_a_thousand_errors_are_kept_and_alike_ones_share_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a"}, *["{"] * 1500)
    with pytest.raises(InputError) as caught:
        list(load(path))
    assert len(caught.value.problems) == 1000
    told = "column 2 (and 999 more like it, at lines 3, 4, 5, 6, 7, ...)"
    assert str(caught.value).splitlines() == [
        f"{path}:2: invalid JSON: Expecting property name enclosed in double quotes at {told}",
        "... and 500 more",
    ]


def test_twenty_kinds_of_error_are_shown_and_the_rest_counted() -> None:
    problems = [Problem("a", line, "x" * (1 + line // 2), "missing") for line in range(1, 60)]
    lines = str(InputError(problems, hidden=3)).splitlines()
    assert lines[1] == "a:2: xx: missing (and 1 more like it, at line 3)"
    # the first kind has one problem, the next nineteen have two each
    assert (len(lines), lines[-1]) == (21, f"... and {59 - 39 + 3} more")


def test_unknown_records_get_one_line_that_says_what_to_type(tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": "hi"}, {"speaker": "bot", "text": "hello"}]
    dialogs = write(tmp_path / "d.jsonl", *[{"at": n, "log": {"dialog": turns}} for n in range(30)])
    with pytest.raises(InputError) as caught:
        list(load(dialogs))
    assert str(caught.value) == (
        f"{dialogs}: records of an unknown form: they hold at, log. If log.dialog is the"
        " conversation, add --map messages=log.dialog"
    )
    assert len(list(load(dialogs, columns={"messages": "log.dialog"}))) == 30
    pairs = write(tmp_path / "p.jsonl", *[{"user_says": "hi", "bot_says": "hello"}] * 30)
    with pytest.raises(InputError) as caught:
        list(load(pairs))
    assert str(caught.value).endswith("add --map response=bot_says --map prompt=user_says")
    columns = {"response": "bot_says", "prompt": "user_says"}
    assert len(list(load(pairs, columns=columns))) == 30


def test_a_name_that_no_record_has_is_one_error(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", *[{"user_says": "hi", "bot_says": "hello"}] * 30)
    with pytest.raises(InputError, match=r"no record has 'bot_sys'. Did you mean 'bot_says'") as e:
        list(load(path, columns={"response": "bot_sys"}))
    assert len(e.value.problems) == 1
    with pytest.raises(InputError, match=r"nothing stands at 'bot_says.text' \(and 29 more"):
        list(load(path, columns={"response": "bot_says.text"}))


def test_warnings_do_not_crowd_out_errors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *[{"response": ""}] * 1500, "{")
    with pytest.raises(InputError, match="invalid JSON"):
        list(load(path))


def test_an_id_that_occurs_twice_is_an_error_across_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", {"id": "x", "response": "a"})
    second = write(tmp_path / "b.jsonl", {"id": "y", "response": "a"}, {"id": "x", "response": "b"})
    with pytest.raises(InputError, match=r"b\.jsonl:2: id: 'x' occurs twice"):
        list(load(first, second))


def test_files_of_the_same_name_do_not_share_made_up_ids(tmp_path: Path) -> None:
    paths = []
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        paths.append(write(tmp_path / day / "chats.jsonl", {"response": "a"}))
    assert [s.id for s in load(*paths)] == ["chats-000001", "chats-2-000001"]


def test_a_limit_stops_before_later_errors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a"}, {"response": "b"}, "{")
    assert len(list(load(path, limit=2))) == 2
    assert list(load(path, limit=0)) == []


def test_the_fraction_grows_to_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *[{"response": "x" * 1000}] * 2000)
    samples = load(path)
    seen = [samples.fraction() or 0 for _ in samples]
    assert seen == sorted(seen)
    assert 0 < seen[0] < 0.5
    assert samples.fraction() == 1.0


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"context": "User: a", "response": "System: b"})
    assert next(iter(load(path, format="fed"))).id == "fed-turn-0001"
    with pytest.raises(UsageError, match="Did you mean 'jsonl'"):
        load(path, format="jsnl")


def test_a_file_that_fits_nothing_gets_one_error_with_the_choices(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("Shall I compare thee to a summer's day?\n" * 100)
    with pytest.raises(InputError, match=r"not recognised: looked for .*--format") as caught:
        load(path)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("content", [b"", b" \n\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_called_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="the file is empty"):
        load(path)


def test_every_registered_format_is_listed_and_tried() -> None:
    assert set(formats()) == set(READERS.names())


def test_wrong_options_are_usage_errors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a"})
    with pytest.raises(UsageError, match="Did you mean 'response'"):
        load(path, columns={"respons": "x"})
    with pytest.raises(UsageError, match="needs \\(lowest, highest\\)"):
        load(path, scales={"fun": (5, 1)})
    with pytest.raises(UsageError, match="no file"):
        load()


def test_ids_are_remembered_exactly() -> None:
    seen = IdSet()
    assert not any(seen.holds_or_adds(str(k)) for k in range(50_000))
    assert all(seen.holds_or_adds(str(k)) for k in range(50_000))


def test_check_tells_what_is_there(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"response": "a", "system": "v1", "references": ["r"], "ratings": {"fun": [1, 3, "N/A"]}},
        {"response": None, "context": "a", "system": "v2", "ratings": {"fun": 5}},
        "{",
    )
    report = check([path, tmp_path / "missing.csv"])
    assert (report.samples, report.levels) == (2, {"turn": 1, "dialogue": 1})
    assert report.systems == {"v1": 1, "v2": 1}
    fun = report.qualities["fun"]
    assert (fun.samples, fun.ratings, fun.dropped, fun.low, fun.high) == (2, 3, 1, 1.0, 5.0)
    assert (report.errors, report.warnings, report.skipped) == (2, 1, 1)
    assert not report.ok
    json.dumps(report.to_record())


FULL = Sample(
    id="1",
    context=(Turn("Hi\nthere", "user"), Turn("é 😀")),
    response="User: x",
    references=("a", "b"),
    facts=("c",),
    system="s",
    dialogue="d",
    item="i",
    ratings={"fun": Rating((1.0, None), (1.0, 5.0), ("x", "y")), "none": Rating(())},
    variants=(Variant("q", "r"),),
)
WHOLE = Sample(id="2", context=(Turn("User: a", "user"),))


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_what_is_converted_is_read_back_unchanged(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    assert convert([FULL, WHOLE], path) == 2
    assert list(load(path)) == [FULL, WHOLE]


def test_a_failed_conversion_leaves_no_file(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.jsonl", {"response": "a"}, "{")
    with pytest.raises(InputError):
        convert(load(bad), tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_conversion_needs_a_known_ending_and_a_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end it in"):
        convert([FULL], tmp_path / "out.xlsx")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is no directory"):
        convert([FULL], tmp_path / "file" / "out.jsonl")


@pytest.mark.parametrize(
    ("name", "start", "between", "end"),
    [("a.jsonl", "", "\n", "\n"), ("a.json", "[", ",", "]"), ("a.csv", "response,id\n", "\n", "")],
)
def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, name: str, start: str, between: str, end: str
) -> None:
    text = "x" * 1000  # so that the shorter file, too, is longer than a few blocks

    def peak(count: int) -> int:
        path = tmp_path / name
        with path.open("w") as file:
            file.write(start)
            for k in range(count):
                record = (
                    f"{text} {k},{k}" if name.endswith("csv") else f'{{"response": "{text} {k}"}}'
                )
                file.write(record + (between if k + 1 < count else ""))
            file.write(end)
        samples = load(path)
        tracemalloc.start()
        assert sum(1 for _ in samples) == count
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    ids = 10_000 * 8 * 4  # the hashes of the ids, in a table at most half full, while it doubles
    assert peak(10_000) < 1.5 * peak(1_000) + ids


def test_a_scale_or_rating_that_nothing_goes_by_is_reported(tmp_path):
    path = tmp_path / "rated.jsonl"
    path.write_text('{"context": ["a"], "response": "b", "overall": 4}\n')
    samples = load(path, ratings=["overall", "nosuch"], scales={"overal": (1, 5)})
    assert len(list(samples)) == 1
    texts = [str(problem) for problem in samples.problems]
    assert texts == [
        f"{path}: scale: there is no rating of 'overal'",
        f"{path}: rating: there is no rating 'nosuch'",
    ]


def test_fields_that_nobody_reads_are_named_once(tmp_path):
    path = tmp_path / "typo.jsonl"
    path.write_text('{"context": ["a"], "response": "b", "refrences": ["c"]}\n' * 3)
    samples = load(path)
    assert len(list(samples)) == 3
    assert [str(problem) for problem in samples.problems] == [f"{path}: not used: refrences"]


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "jsonl.zst", "json", "csv", "parquet"])
def test_the_fraction_is_that_of_the_samples_not_of_the_blocks_read_ahead(
    tmp_path: Path, form: str
) -> None:
    """4,000 samples of one length: after 1,000 of them a quarter is read, though a block holds
    more than that."""
    random = Random(1)
    responses = [random.randbytes(40).hex() for _ in range(4000)]
    plain = write(tmp_path / "a.jsonl", *[{"response": text} for text in responses])
    path = tmp_path / f"b.{form}"
    if form == "json":
        path.write_text(json.dumps([{"response": text} for text in responses]))
    elif form == "csv":
        path.write_text("\n".join(["response", *responses]))
    else:
        convert(load(plain), path)
    samples = load(path)
    seen = [samples.fraction() or 0.0 for _ in samples]
    assert seen[999::1000] == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.05)


@pytest.mark.parametrize("seed", [None, 3])
def test_the_fraction_of_a_limited_pass_is_that_of_the_limit(
    tmp_path: Path, seed: int | None
) -> None:
    path = write(tmp_path / "a.jsonl", *[{"response": f"{n:050}"} for n in range(1000)])
    samples = load(path, limit=10, seed=seed)
    assert [samples.fraction() for _ in samples] == [n / 10 for n in range(1, 11)]
