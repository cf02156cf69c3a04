import sys
from dataclasses import replace

import pytest

from dialeval import registry
from dialeval.errors import UsageError
from dialeval.registry import METRICS, Registry, make_metric, make_metrics
from dialeval.sample import Sample, Turn, Variant

VARIANTS = (Variant("hi", "hello"), Variant("hey", "hello there"))


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UsageError, match=r"no metric 'belu'\. Did you mean 'bleu'\? See: dialeval"):
        make_metric("belu")


def test_every_builtin_metric_has_the_name_it_is_registered_under():
    for name in METRICS.names():
        assert METRICS.get(name).name == name


@pytest.mark.parametrize("need", ["context", "references", "variants"])
def test_a_metric_declares_what_it_is_silent_without(need):
    whole = Sample("s", (Turn("hi"),), "hello", references=("hey",), variants=VARIANTS)
    without = replace(whole, **{need: ()})
    names = ("llm-judge:model=m" if one == "llm-judge" else one for one in METRICS.names())
    specs = [*names, "ruber:blend=unreferenced", "consistency:groups=true"]
    specs += ["deep-am-fm:referenced=true", "mme-crs:missing=rescale", "mme-crs:weights=wide"]
    for metric in map(make_metric, specs):
        assert bool(metric.obstacle(without)) == (need in metric.needs), metric.label
    assert need not in make_metric("mme-crs:missing=rescale").needs
    silent = {"context": {"mme-crs", "mme-avg", "deep-am-fm", "consistency", "usl-h", "pmi"}}
    for name in silent.get(need, ()):
        assert need in make_metric(name).needs


def test_every_builtin_reader_has_the_name_it_is_registered_under():
    for name in registry.READERS.names():
        assert registry.READERS.get(name).name == name


def test_the_same_metric_twice_is_refused_but_two_variants_are_not():
    with pytest.raises(UsageError, match="given twice: length"):
        make_metrics(["length", "length"])
    assert len(make_metrics(["length", "length:unit=characters"])) == 2


def test_no_metric_at_all_is_refused():
    with pytest.raises(UsageError, match="no metric given"):
        make_metrics([])


class FakeEntryPoint:
    dist = None

    def __init__(self, name, value, load):
        self.name, self.value, self.load = name, value, load


def with_plugins(monkeypatch, *entries):
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    return Registry("metric", "dialeval metrics", {"mine": "decimal:Decimal"})


def exits():
    sys.exit("bye")


def test_a_plugin_that_exits_when_it_is_imported_is_named_once_and_left_out(monkeypatch, caplog):
    found = with_plugins(
        monkeypatch,
        FakeEntryPoint("theirs", "x:Y", exits),
        FakeEntryPoint("fine", "x:Z", lambda: "loaded"),
    )
    assert found.working() == ["mine", "fine"]
    assert found.working() == ["mine", "fine"]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("'theirs' (x:Y) cannot be loaded: SystemExit: bye. It is left out.")
    with pytest.raises(UsageError, match=r"'theirs' .* SystemExit: bye"):
        found.get("theirs")


@pytest.mark.parametrize(
    ("table", "offered", "told"),
    [
        (registry.READERS, print, "expected a Reader .* of type builtin_function_or_method"),
        (registry.READERS, Registry, "not the class Registry"),
        (registry.METRICS, make_metric, "expected a class of metrics"),
        (registry.METRICS, int, "not the class int"),
    ],
)
def test_a_plugin_of_the_wrong_type_is_refused_by_name(monkeypatch, table, offered, told):
    entry = FakeEntryPoint("theirs", "x:Y", lambda: offered)
    targets = {**table._targets, "theirs": entry}
    monkeypatch.setattr(table, "_targets", targets, raising=False)
    monkeypatch.setattr(table, "_broken", {})
    with pytest.raises(UsageError, match=f"'theirs' .*{told}"):
        table.get("theirs")
    assert "theirs" not in table.working()


def test_a_plugin_is_found_by_its_entry_point(monkeypatch):
    found = with_plugins(monkeypatch, FakeEntryPoint("theirs", "x:Y", lambda: "loaded"))
    assert found.get("theirs") == "loaded"
    assert found.is_plugin("theirs")
    assert not found.is_plugin("mine")


def test_a_name_that_exists_twice_is_an_error(monkeypatch):
    found = with_plugins(monkeypatch, FakeEntryPoint("mine", "x:Y", lambda: None))
    with pytest.raises(UsageError, match="exists twice"):
        found.names()


def test_a_plugin_that_cannot_be_loaded_says_so(monkeypatch):
    def fail():
        raise ImportError("no module named y")

    found = with_plugins(monkeypatch, FakeEntryPoint("theirs", "x:Y", fail))
    with pytest.raises(UsageError, match="cannot be loaded: ImportError: no module named y"):
        found.get("theirs")
