import json
import os
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample, Turn, Variant
from dialeval.storage import (
    atomic_path,
    locked,
    samples_to_table,
    table_to_samples,
    write_json,
    write_text,
)

text = st.text(st.characters(exclude_categories=["Cs"]))
texts = st.lists(text, max_size=3).map(tuple)
value = st.none() | st.floats(allow_nan=False, allow_infinity=False)
rating = st.builds(
    Rating,
    values=st.lists(value, max_size=4).map(tuple),
    scale=st.none() | st.just((1.0, 5.0)),
    raters=texts,
)
samples = st.builds(
    Sample,
    id=text,
    context=st.lists(st.builds(Turn, text, text), max_size=3).map(tuple),
    response=st.none() | text,
    references=texts,
    facts=texts,
    system=text,
    dialogue=text,
    item=text,
    ratings=st.dictionaries(text, rating, max_size=3),
    variants=st.lists(st.builds(Variant, text, text), max_size=2).map(tuple),
)


@given(st.lists(samples, max_size=4))
@settings(deadline=None)
def test_samples_survive_parquet(some):
    assert list(table_to_samples(samples_to_table(some))) == some


@given(samples)
def test_a_sample_survives_json(one):
    assert Sample.from_record(one.to_record()) == one


@given(samples, samples)
def test_equal_samples_have_equal_digests_and_others_do_not(one, other):
    assert (one.digest() == other.digest()) == (one == other)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "scores.txt"
    write_text(path, "old")

    def fail_halfway():
        with atomic_path(path) as temporary:
            temporary.write_text("ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in the file system")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join(10)
    assert heard == ["through"]
    assert pipe.is_fifo()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is no directory"):
        write_text(tmp_path / "file" / "below", "x")


def test_a_directory_as_the_file_to_write_is_named_and_kept(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError, match=r"runs is a directory; name a file"):
        write_text(tmp_path / "runs", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_directory_below_a_file_is_a_slip_of_the_pen(tmp_path):
    (tmp_path / "chats.jsonl").write_text("")
    with (
        pytest.raises(UsageError, match="Choose another -o"),
        locked(tmp_path / "chats.jsonl" / "x"),
    ):
        pass


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_has_no_number_for_leaves_the_old_file(tmp_path, number):
    path = tmp_path / "a.json"
    write_json(path, {"value": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"value": [number]})
    assert json.loads(path.read_text()) == {"value": 1}
