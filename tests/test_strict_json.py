"""Files that people write: every oddity is named with its place, and none is a traceback."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.compose.fitting import find_quality_map
from dialeval.errors import DialevalError, InputError, UsageError
from dialeval.strict_json import Fields, parse, read_object


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{\n"a": 1,\n}', ":3: is not JSON"),
        (b'{"a":\n"\xff"}', ":2: is not UTF-8 text"),
        (b'{"a": 1, "a": 2}', '"a" occurs twice'),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": -Infinity}', "-Infinity is no number of JSON"),
        (b'{"a": {"b": [1e999]}}', r"a\.b\[0\]: a number that is too large"),
        (b'{"a": ["\\udc00"]}', r"a\[0\]: half a character"),
        (b'{"\\ud800": 1}', "half a character in the name"),
        (b"[1]", "expected an object, found"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b'{"a": ' * 50 + b"1" + b"}" * 50, "more than 32 levels"),
        (b"[" * 100_000, "more than 32 levels"),
    ],
)
def test_an_oddity_is_named_with_its_place(tmp_path, content, problem):
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        read_object(path)
    assert str(path) in str(caught.value)
    str(caught.value).encode("utf-8")


def test_a_mark_that_windows_puts_first_is_no_content(tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"a": 1}')
    assert read_object(path) == {"a": 1}


def test_a_file_that_is_far_too_large_is_not_read(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"a": 1}')
    with pytest.raises(UsageError, match="has 8 bytes; the most that is read is 7"):
        read_object(path, largest=7)


def test_all_wrong_fields_are_told_at_once(tmp_path):
    fields = Fields(tmp_path / "mine.json")
    assert fields.texts("abc", "list") == ()
    assert fields.count(True, "count") == 0
    assert fields.number("1", "number") == 0
    assert fields.choice([], "choice", ("a", "b")) == "a"
    assert fields.truth(1, "truth") is False
    with pytest.raises(InputError) as caught:
        fields.complain()
    assert [problem.field for problem in caught.value.problems] == [
        "list",
        "count",
        "number",
        "choice",
        "truth",
    ]


leaves = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
)


@given(anything)
def test_what_json_can_say_is_read_as_python_reads_it_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "x.json"
    text = json.dumps(value)
    if any(odd in text for odd in ("NaN", "Infinity", "\\ud")):
        with suppress(InputError):
            parse(text.encode(), path)
    else:
        assert parse(text.encode(), path) == json.loads(text)


@given(st.binary(max_size=40))
def test_no_bytes_end_in_a_traceback(tmp_path_factory, content):
    with suppress(DialevalError):
        parse(content, tmp_path_factory.getbasetemp() / "x.json")


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{"Overall": 3}', "Overall: must be a text"), ('{"a": " "}', "a: the name to use is empty")],
)
def test_a_quality_map_is_read_strictly(tmp_path, text, problem):
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        find_quality_map(str(path))
