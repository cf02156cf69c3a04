"""The studies of FULL, with a made-up model on made-up dialogues in the form of FED."""

import json

import numpy as np
import pytest

from dialeval.studies.catalogue import find_study
from dialeval.studies.full_fed import MODEL_OF_THE_PAPER, groups_by_model
from dialeval.studies.result import run_study

COMPLAINT = "Not really relevant here."


class Sensible:
    """Finds one complaint the less likely, the longer the last turn is, and the rest constant."""

    def fingerprint(self, name):
        return f"sensible {name}"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
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
    assert found["turns: Spearman", "full, smollm2-135m"] == pytest.approx(1)
    assert found["dialogues: Spearman", "full, smollm2-135m"] == pytest.approx(-1)
    assert found["turns: Spearman", "length"] is None
    assert len(found) == 5
    assert {row.published.printed for row in result.rows} == {"0.51", "0.69"}
    assert any("model:smollm2-135m@sensible" in note for note in result.notes)


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
        ("turns: Spearman", f"full:model={MODEL_OF_THE_PAPER},mode=released"),
        ("dialogues: Spearman", f"full:model={MODEL_OF_THE_PAPER},mode=released"),
    ]
    assert told[-1] == (27, 27)
    assert sorted(told) == told


def test_metrics_that_ask_no_model_or_name_their_own_are_scored_once():
    groups = groups_by_model(["length", "full", "fed:model=mine"], ["a", "b"])
    labels = {model: [metric.label for metric in metrics] for model, metrics in groups.items()}
    assert labels == {
        "": ["length", "fed:model=mine"],
        "a": ["full:model=a"],
        "b": ["full:model=b"],
    }


def test_follow_ups_are_chosen_on_fed_and_reported_elsewhere(fed, tmp_path):
    usr = tmp_path / "data" / "rated" / "usr-topical" / "tc_usr_data.json"
    usr.parent.mkdir()
    responses = [{"response": "x" * i, "model": "bot", "Overall": [i, i]} for i in range(1, 6)]
    usr.write_text(json.dumps([{"context": "hi\n", "fact": "", "responses": responses}]))
    result = run_study(find_study("follow-up-selection"), source=Sensible())
    found = {row.what: row for row in result.rows}
    assert found[f"fed, turns: {COMPLAINT}"].value == pytest.approx(1)
    assert found[f"fed, turns: {COMPLAINT}"].published.printed == "0.48"
    assert found["fed, turns: You're really boring."].reason == "constant"
    assert found["usr-topical, turns: FULL's five"].value == pytest.approx(1)
    assert not any(what.startswith("grade") for what in found)
    assert result.failures == ()
    (table,) = result.tables
    assert table.header == ("follow-up", "turn", "dialogue")
    assert len(table.rows) == 10
