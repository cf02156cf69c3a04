"""Whatever the bytes, a reader gives samples and problems, never another exception."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.errors import InputError
from dialeval.readers import Place, Problems, ReadOptions, Source, UnreadableError, convert, load
from dialeval.readers.detect import detect
from dialeval.readers.fields import SPEAKERS
from dialeval.registry import READERS
from dialeval.sample import Rating, Sample, Turn, Variant

quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

STARTS = [
    b"",
    b"{",
    b"[",
    b'[{"context": "a", "annotations": {',
    b'{"messages": [',
    b'{"response": "',
    b"response,context\n",
    b'response;id\n"',
    b"response\tid\n",
    b"PAR1",
    b"\x1f\x8b\x08\x00",
    b"\x28\xb5\x2f\xfd",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"Group Id,Question Group,Answer Group\n",
    b"1,a,1,2,3,4,5,1,2,3,4,5\n",
    b"sample 1:\n\thistory: a\n\tpred: b\n\tYOUR SCORE IS: ",
]


def survive(path: Path, format: str | None) -> None:
    """Read to the end; only problems may come out besides samples."""
    source = Source(path)
    problems = Problems()
    try:
        reader = READERS.get(format) if format else detect(source)
        for sample in reader.read(source, Place(problems, source.name), ReadOptions()):
            assert isinstance(sample, Sample)
            sample.digest()
    except UnreadableError:
        return


@pytest.mark.parametrize("format", [None, *READERS.names()])
@quick
@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=300), pack=st.integers(0, 2))
def test_any_bytes(
    tmp_path: Path, format: str | None, start: bytes, rest: bytes, pack: int
) -> None:
    content = start + rest
    path = tmp_path / "file"
    path.write_bytes((content, gzip.compress(content), zstandard.compress(content))[pack])
    survive(path, format)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from(["User: a\nSystem: b", "assistant", "user", "\ud800", "4"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "text",
                    "speaker",
                    "role",
                    "content",
                    "values",
                    "scale",
                    "raters",
                    "model",
                    "query",
                    "response",
                    "type",
                    "ratings",
                    "Overall",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KEYS = [
    "id", "context", "response", "references", "reference", "facts", "fact", "system", "model",
    "ratings", "variants", "messages", "annotations", "responses", "dialog", "dialogue_id",
    "dialogue", "item", "model_name",
]  # fmt: skip


@pytest.mark.parametrize("format", [None, "chat", "jsonl", "fed", "usr", "dstc10"])
@quick
@given(
    records=st.lists(st.dictionaries(st.sampled_from(KEYS), anything) | anything, max_size=4),
    array=st.booleans(),
)
def test_any_json_values(
    tmp_path: Path, format: str | None, records: list[Any], array: bool
) -> None:
    path = tmp_path / "file"
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(json.dumps(records, indent=1) if array else lines)
    survive(path, format)


@pytest.mark.parametrize("format", ["csv", "tsv", "holistic", "holistic-diversity"])
@quick
@given(cells=st.lists(st.lists(st.text('ab1.,;"\n\t|\r\0é', max_size=6), max_size=14), max_size=5))
def test_any_table(tmp_path: Path, format: str, cells: list[list[str]]) -> None:
    path = tmp_path / "file"
    start = "response,context\n" if format == "csv" else ""
    path.write_text(start + "\n".join(",".join(row) for row in cells), newline="")
    survive(path, format)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '[{"response": ' + "[" * 100_000,
        '{"response": "a", "ratings": {"a": ' + "9" * 10_000 + "}}",
        '[{"response": "a", "id": ' + "9" * 10_000 + "}]",
        '{"response": NaN, "id": Infinity}',
        '{"response": "a", "response": "b"}',
        '{"response": "\\ud800"}',
    ],
    ids=["array", "object", "element", "digits", "digits in array", "NaN", "twice", "surrogate"],
)
@pytest.mark.parametrize("format", ["jsonl", "chat", "fed", "usr", "dstc10"])
def test_hostile_json_is_a_problem(tmp_path: Path, content: str, format: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    survive(path, format)


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
texts = names.filter(str.strip)
speakers = names.map(lambda name: SPEAKERS.get(name.lower(), name))  # readers know these names
numbers = st.floats(-1e6, 1e6)
ratings = st.builds(
    Rating,
    st.lists(st.none() | numbers, max_size=4).map(tuple),
    st.none() | st.just((-1e6, 1e6)),
)
samples = st.builds(
    Sample,
    id=texts,
    context=st.lists(st.builds(Turn, names, speakers), min_size=1, max_size=3).map(tuple),
    response=st.none() | names,
    references=st.lists(texts, max_size=2).map(tuple),
    facts=st.lists(texts, max_size=2).map(tuple),
    system=names,
    dialogue=names,
    item=names,
    ratings=st.dictionaries(names, ratings, max_size=2),
    variants=st.lists(st.builds(Variant, names, names), max_size=2).map(tuple),
)


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.zst", "parquet"])
@quick
@given(written=st.lists(samples, min_size=1, max_size=3, unique_by=lambda sample: sample.id))
def test_any_sample_survives_a_round_trip(
    tmp_path: Path, ending: str, written: list[Sample]
) -> None:
    path = tmp_path / f"file.{ending}"
    convert(written, path)
    assert list(load(path)) == written


def test_a_folder_with_wrong_files_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "eval_data" / "set" / "bot"
    folder.mkdir(parents=True)
    (folder / "human_ctx.txt").write_text("a|||b\n")
    with pytest.raises(
        InputError, match=r"human_hyp\.txt: cannot be opened: there is no such file"
    ):
        list(load(tmp_path))
    (folder / "human_hyp.txt").write_text("c\nd\n")
    (folder / "human_ref.txt").write_text("c\n")
    scores = tmp_path / "human_score" / "set" / "bot"
    scores.mkdir(parents=True)
    (scores / "human_score.txt").write_text("9\n")
    with pytest.raises(InputError, match=r"human_score\.txt:1: coherence: 9 is outside") as caught:
        list(load(tmp_path))
    assert "human_ctx.txt:2: lines belong together" in str(caught.value)


def test_raters_who_saw_different_numbers_of_samples_are_a_problem(tmp_path: Path) -> None:
    sample = "sample 1:\n\thistory: a\n\tpred: b\n\tYOUR SCORE: 3\n"
    (tmp_path / "rater1.txt").write_text(sample + sample)
    (tmp_path / "rater2.txt").write_text(sample)
    (tmp_path / "rater10.json").write_text("[1, 6]")
    with pytest.raises(InputError, match="sample 2 is missing in the file of rater2"):
        list(load(tmp_path))
