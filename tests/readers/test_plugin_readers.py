"""Readers of plugins that misbehave: they are named, and cost no more than themselves."""

import sys

import pytest

import dialeval
from dialeval import registry
from dialeval.augment.queries import read_queries
from dialeval.errors import InputError
from dialeval.readers.reader import Reader

LINE = '{"id": "1", "context": [{"text": "hi"}], "response": "hello"}\n'


class FakeEntryPoint:
    dist = None
    name, value = "theirs", "their_module:READER"

    def __init__(self, offered):
        self._offered = offered

    def load(self):
        return self._offered() if callable(self._offered) else self._offered


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text(LINE)
    return path


@pytest.fixture
def plugin(monkeypatch):
    """Puts one reader of a plugin into the table of readers."""

    def put(offered):
        table = registry.READERS
        targets = {**table._targets, "theirs": FakeEntryPoint(offered)}
        monkeypatch.setattr(table, "_targets", targets)
        monkeypatch.setattr(table, "_loaded", {})
        monkeypatch.setattr(table, "_broken", {})

    return put


def raises(*_):
    raise ValueError("not\ntoday")


def yields_text(source, place, options):
    yield "a sample"


def fails_late(source, place, options):
    yield dialeval.Sample("1", response="x")
    place.line = 7
    sys.exit(3)


def knows(source):
    return True


def test_what_cannot_be_imported_is_named_and_files_are_read_all_the_same(chats, plugin, caplog):
    plugin(lambda: sys.exit(0))
    assert [sample.id for sample in dialeval.load(chats)] == ["1"]
    assert "the plugin reader 'theirs' (their_module:READER) cannot be loaded" in caplog.text


def test_what_is_no_reader_is_named_and_files_are_read_all_the_same(chats, plugin, caplog):
    plugin("READER")
    assert [sample.id for sample in dialeval.load(chats)] == ["1"]
    assert "not a value of type str" in caplog.text


def test_a_reader_that_fails_to_look_at_a_file_does_not_know_it(chats, plugin, caplog):
    plugin(Reader("theirs", "", raises, yields_text))
    assert [sample.id for sample in dialeval.load(chats)] == ["1"]
    assert "the plugin reader 'theirs' failed: ValueError: not today" in caplog.text


@pytest.mark.parametrize("read", [raises, yields_text, lambda *_: None])
def test_a_reader_that_fails_on_a_file_leaves_it_to_the_next_one(chats, plugin, read, caplog):
    plugin(Reader("theirs", "", knows, read))
    samples = dialeval.load(chats)
    assert [sample.id for sample in samples] == ["1"]
    (warning,) = samples.problems
    assert warning.severity == "warning"
    assert warning.problem.startswith("the plugin reader 'theirs' failed: ")
    assert warning.problem.endswith("Read as jsonl instead")
    assert warning.problem in caplog.text
    assert samples.formats == {str(chats): "jsonl"}


def test_a_reader_that_fails_in_the_middle_costs_its_file(chats, plugin, tmp_path):
    plugin(Reader("theirs", "", knows, fails_late))
    with pytest.raises(InputError, match=r"chats.jsonl:7: the plugin reader 'theirs' failed: Sys"):
        list(dialeval.load(chats))
    assert len(list(dialeval.load(chats, bad="skip"))) == 1


def test_a_reader_that_was_asked_for_by_name_is_not_replaced(chats, plugin):
    plugin(Reader("theirs", "", knows, raises))
    with pytest.raises(InputError, match="'theirs' failed: ValueError: not today"):
        list(dialeval.load(chats, format="theirs"))


def test_queries_are_read_by_plugins_with_the_same_care(chats, plugin):
    plugin(Reader("theirs", "", knows, raises))
    with pytest.raises(InputError, match="'theirs' failed: ValueError: not today"):
        list(read_queries(chats))
