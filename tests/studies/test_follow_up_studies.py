"""The studies of FULL, with a made-up model on made-up dialogues in the form of FED."""

import json

import numpy as np
import pytest

from dialeval.errors import UsageError
from dialeval.metrics.follow_ups import fed_qualities
from dialeval.question import Embed
from dialeval.studies.full import MODEL_OF_THE_PAPER, TABLE_3, metrics_by_model
from dialeval.studies.result import run_study
from dialeval.studies.study import find_study

COMPLAINT = "Not really relevant here."


class Sensible:
    """Finds one complaint the less likely, the longer the last turn is, and the rest constant.

    No two texts have close vectors.
    """

    def fingerprint(self, name):
        return f"sensible {name}"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            if isinstance(question, Embed):
                yield position, np.random.default_rng(position).normal(size=64)
                continue
            length = len(question.turns[-1].text) if question.text == COMPLAINT else 1
            yield position, np.array([[0, 0, 0], [-float(length), 0, 1]], dtype=np.float64)


@pytest.fixture
def fed(tmp_path, monkeypatch):
    """Turns and dialogues whose ratings grow with the length of the last turn."""
    turns = [
        {
            "context": "User: hi",
            "response": "System: " + "x" * i,
            "system": "Meena",
            "annotations": {"Overall": [i % 5, i % 5]},
        }
        for i in range(1, 5)
    ]
    dialogues = [
        {
            "context": "User: hi\nSystem: " + "x" * (i + 1),
            "system": "Meena",
            "annotations": {"Overall": [4 - i % 5]},
        }
        for i in range(5)
    ]
    place = tmp_path / "data" / "rated" / "fed" / "fed_data.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(turns + dialogues))
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))


def test_another_model_stands_beside_the_published_numbers_and_fails_nothing(fed):
    result = run_study(find_study("full-fed"), source=Sensible())
    assert result.failures == ()
    found = {(row.what, row.ours.by): row.value for row in result.rows}
    assert found["full, turns: Spearman", "full, smollm2-135m"] == pytest.approx(1)
    assert found["full, dialogues: Spearman", "full, smollm2-135m"] == pytest.approx(-1)
    assert found["length, turns: Spearman", "length"] is None
    assert len(found) == 5
    assert any("model:smollm2-135m@sensible" in note for note in result.notes)


def test_the_published_number_of_full_stands_beside_full_only(fed):
    result = run_study(find_study("full-fed"), source=Sensible())
    beside = {row.ours.by: row.published and row.published.printed for row in result.rows}
    assert beside["length"] is None
    assert beside["full:mode=released, smollm2-135m"] == "0.69"


def test_a_metric_of_ones_own_alone_has_nothing_to_match(fed):
    result = run_study(find_study("full-fed"), metrics=["length"], source=Sensible())
    assert result.failures == ()
    assert {row.what for row in result.rows if row.ours} == {"length, turns: Spearman"}


def test_the_model_of_the_paper_has_to_give_the_numbers_of_the_paper(fed):
    models = ["smollm2-135m", MODEL_OF_THE_PAPER]
    told = []
    result = run_study(
        find_study("full-fed"),
        models=models,
        source=Sensible(),
        progress=lambda done, total: told.append((done, total)),
    )
    assert [(row.what, row.ours.by) for row in result.failures] == [
        ("full, turns: Spearman", f"full:model={MODEL_OF_THE_PAPER},mode=released"),
        ("full, dialogues: Spearman", f"full:model={MODEL_OF_THE_PAPER},mode=released"),
    ]
    assert told[-1] == (27, 27)
    assert sorted(told) == told


def test_metrics_that_ask_no_model_or_name_their_own_are_scored_once():
    groups = metrics_by_model(["length", "full", "fed:model=mine"], ["a", "b"])
    labels = {model: [metric.label for metric in metrics] for model, metrics in groups.items()}
    assert labels == {
        "": ["length", "fed:model=mine"],
        "a": ["full:model=a"],
        "b": ["full:model=b"],
    }


@pytest.fixture
def usr(fed, tmp_path):
    place = tmp_path / "data" / "rated" / "usr-topical" / "tc_usr_data.json"
    place.parent.mkdir()
    responses = [{"response": "x" * i, "model": "bot", "Overall": [i, i]} for i in range(1, 6)]
    place.write_text(json.dumps([{"context": "hi\n", "fact": "", "responses": responses}]))


def test_follow_ups_are_chosen_on_fed_and_reported_elsewhere(usr):
    result = run_study(find_study("follow-up-selection"), metrics=["full"], source=Sensible())
    found = {row.what: row for row in result.rows}
    assert found[f"fed, turns: {COMPLAINT}"].value == pytest.approx(1)
    assert found[f"fed, turns: {COMPLAINT}"].published.printed == "0.48"
    assert found["fed, turns: You're really boring."].reason == "constant"
    assert found["usr-topical, turns: FULL's five"].value == pytest.approx(1)
    assert not any(what.startswith("grade") for what in found)
    (table,) = result.tables
    assert table.header == ("follow-up", "turn", "dialogue")
    assert len(table.rows) == 10


def test_follow_ups_are_chosen_with_the_perplexities_of_the_package_too(usr):
    metrics = ["full:mode=released"]
    result = run_study(find_study("follow-up-selection"), metrics=metrics, source=Sensible())
    found = {row.what: row for row in result.rows}
    by = "full:mode=released, smollm2-135m"
    assert found[f"fed, turns: {COMPLAINT}"].ours.by == by
    assert found[f"fed, turns: {COMPLAINT}"].value == pytest.approx(1)
    assert found["usr-topical, turns: FULL's package"].value == pytest.approx(1)
    assert result.tables[0].title == f"Best follow-ups on FED, {by}"


@pytest.mark.parametrize("metric", ["length", "full:follow_ups=mine.txt"])
def test_only_full_has_follow_ups_to_choose(fed, metric):
    with pytest.raises(UsageError, match="Give full or full:mode=released"):
        run_study(find_study("follow-up-selection"), metrics=[metric], source=Sensible())


def test_table_3_has_the_follow_ups_of_fed():
    both = ((*quality.positive, *quality.negative) for quality in fed_qualities())
    assert {*TABLE_3} == {text for texts in both for text in texts}
