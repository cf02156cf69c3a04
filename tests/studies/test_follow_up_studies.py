"""The studies of FULL, with a made-up model on made-up dialogues in the form of FED."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from dialeval.errors import UsageError
from dialeval.metrics.follow_ups import fed_qualities
from dialeval.question import Embed
from dialeval.sample import Sample, Turn
from dialeval.studies import full
from dialeval.studies.comparison import PUBLISHED
from dialeval.studies.follow_up_selection import MODEL_OF_THE_PAPER, PRAISE, TABLE_3
from dialeval.studies.full import FIGURE_2, NAMES_OF_YEH, TABLE_2, Rival, metrics_by_model
from dialeval.studies.result import result_markdown, run_study
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
    assert result.tables[0].title == f"Best follow-ups on fed, {by}"


@pytest.mark.parametrize(
    ("study", "metric"),
    [("follow-up-selection", "length"), ("full-follow-ups", "full:follow_ups=mine.txt")],
)
def test_only_full_has_follow_ups_to_look_at(fed, study, metric):
    with pytest.raises(UsageError, match="Give full or full:mode=released"):
        run_study(find_study(study), metrics=[metric], source=Sensible())


def test_candidates_of_ones_own_are_chosen_on_the_first_set_and_reported_on_the_others(
    usr, tmp_path
):
    (tmp_path / "mine.txt").write_text(f"Boring!\n{COMPLAINT}\n")
    result = run_study(
        find_study("follow-up-selection"),
        metrics=[f"full:follow_ups={tmp_path / 'mine.txt'}"],
        sets=["usr-topical", "fed"],
        source=Sensible(),
    )
    found = {row.what: row.value for row in result.rows}
    assert found["usr-topical, turns: chosen here"] == pytest.approx(1)
    assert found["fed, turns: chosen here"] == pytest.approx(1)
    assert found["fed, dialogues: chosen here"] == pytest.approx(-1)
    (table,) = result.tables
    assert [row[0] for row in table.rows] == [COMPLAINT, "Boring!"]


def test_table_3_has_the_follow_ups_of_fed_and_their_types():
    qualities = fed_qualities()
    assert {text for quality in qualities for text in quality.positive} == PRAISE
    complaints = {text for quality in qualities for text in quality.negative}
    assert complaints == {*TABLE_3} - PRAISE


def follow_ups(**options):
    return run_study(find_study("full-follow-ups"), source=Sensible(), **options)


def test_the_means_that_the_paper_prints_follow_from_its_table_3(fed):
    printed = {
        row.what: (row.published.printed, row.must_match)
        for row in follow_ups().rows
        if row.published and row.ours.by == "Table 3, as printed"
    }
    assert printed == {
        "turns: mean of the negative follow-ups": ("0.39", True),
        "turns: mean of the positive follow-ups": ("0.24", True),
        "turns: mean of FULL's five": ("0.45", True),
        "turns: the best single follow-up": ("0.48", True),
        "dialogues: the best single follow-up": ("0.70", True),
    }
    assert follow_ups().failures == ()


def test_all_63_follow_ups_stand_beside_the_published_ones_in_both_modes(fed):
    result = follow_ups()
    released, paper, _ = result.tables
    assert "mode=released" in released.title
    assert "mode=released" not in paper.title
    assert len(released.rows) == len(paper.rows) == 63
    assert paper.rows[0] == (COMPLAINT, "neg, X", 0.48, pytest.approx(1), 0.65, pytest.approx(-1))
    # People find them in the tables, programs in the rows.
    each = [row for row in result.rows if row.published and row.published.source == "Table 3"]
    assert len(each) == 2 * 2 * 63
    assert result_markdown(result).count("You don't ask many questions.") == 2


def test_blenderbot_in_released_mode_has_to_give_table_3_unless_a_part_was_drawn(fed):
    model = [MODEL_OF_THE_PAPER]
    failing = {row.ours.by for row in follow_ups(models=model).failures}
    assert failing == {f"full:mode=released, {MODEL_OF_THE_PAPER}"}
    drawn = follow_ups(models=model, limit=3)
    assert drawn.failures == ()
    assert {row.ours.n for row in drawn.rows if row.ours.in_table} == {3}
    assert drawn.notes[0] == "fed: 6 of 9 samples, drawn at random"


def test_figure_2_has_a_bar_for_each_model_and_says_what_the_others_take(fed):
    models = ["a", "openai-community/gpt2-medium", "b"]
    result = follow_ups(models=models, metrics=["full"], draw=True)
    rows = {row[0]: row[1:] for row in result.tables[-1].rows}
    # The printed sizes add up to 21.20 and 28.95.
    printed = rows["BLD S, Table 3, as printed"]
    assert printed == (
        "quoted: recomputed from Table 3", pytest.approx(21.20 / 63), pytest.approx(28.95 / 63)
    )  # fmt: skip
    assert rows["full, a"] == ("ran", pytest.approx(1), pytest.approx(1))
    assert rows["GPT2 XL: gpt2-xl"][0].startswith("not here: dialeval models get gpt2-xl")
    others = {f"{short}: {model}" for model, short in FIGURE_2.items()}
    assert others - {*rows} == {"GPT2 M: gpt2-medium"}
    assert "full, b (entire dialogue) 1.00" in result.drawing.description
    assert follow_ups(metrics=["full"]).drawing is None


def test_table_2_is_what_its_authors_copied():
    for rival in TABLE_2:
        known = PUBLISHED[NAMES_OF_YEH.get(rival.name, rival.name)]
        for level, printed in (("turn", rival.turns), ("dialogue", rival.dialogues)):
            copied = float(known["fed", level, "Overall"].spearman.rstrip("*"))
            slipped = (rival.name, level) == ("DEB", "dialogue")
            assert (abs(float(printed) - copied) > 0.005 + 1e-9) == slipped


def test_each_row_of_table_2_ran_or_is_quoted_with_the_reason(fed, monkeypatch):
    rivals = (Rival("QuestEval", "0.09", "0.08", "no-such-metric", "T5 models"), TABLE_2[10])
    monkeypatch.setattr(full, "TABLE_2", rivals)
    metrics = ["full:mode=released", "length", "fed"]
    result = run_study(find_study("full-table"), metrics=metrics, source=Sensible())
    told = {row.what: row.to_record() for row in result.rows}
    quoted = told["fed, turns: QuestEval"]
    assert (quoted["state"], quoted["published"]["printed"]) == ("quoted", "0.09")
    assert quoted["reason"] == "quoted: dialeval has no no-such-metric, which takes T5 models"
    ran = told["fed, turns: FED"]
    assert (ran["state"], ran["by"], ran["must_match"]) == ("ran", "fed", False)
    assert told["fed, dialogues: FULL"]["published"]["printed"] == "0.69"
    assert told["fed, dialogues: FULL"]["must_match"] is False
    assert result.failures == ()


def test_a_metric_whose_model_is_not_here_is_quoted_with_the_command(fed, monkeypatch):
    monkeypatch.setattr(full, "TABLE_2", (TABLE_2[10],))
    monkeypatch.setattr(full, "unusable", lambda metrics: {"fed": "fed is left out: get it"})
    result = run_study(find_study("full-table"), metrics=["length"])
    assert [row.reason for row in result.rows if row.what.endswith(": FED")] == [
        "quoted: fed is left out: get it"
    ] * 2


def test_a_metric_that_the_user_gave_a_model_is_not_quoted(fed, monkeypatch):
    monkeypatch.setattr(full, "TABLE_2", (TABLE_2[10],))
    monkeypatch.setattr(full, "METRICS", SimpleNamespace(names=lambda: []))
    table = find_study("full-table")
    result = run_study(table, metrics=["fed:model=mine"], source=Sensible())
    rows = [(row.what, row.ours.by, row.reason) for row in result.rows if "FED" in row.what]
    assert rows == [
        ("fed, turns: FED", "fed:model=mine", ""),
        ("fed, dialogues: FED", "fed:model=mine", ""),
    ]


def test_full_has_to_give_table_2_with_the_model_of_the_paper_only(fed, monkeypatch):
    monkeypatch.setattr(full, "TABLE_2", ())
    as_published = f"full:model={MODEL_OF_THE_PAPER},mode=released"
    table = find_study("full-table")
    result = run_study(table, metrics=[as_published, "full"], source=Sensible())
    assert {row.ours.by for row in result.failures} == {as_published}
    assert run_study(table, metrics=[as_published], source=Sensible(), limit=3).failures == ()


def test_another_set_has_the_numbers_of_yeh_beside_it(usr, monkeypatch):
    monkeypatch.setattr(full, "TABLE_2", (TABLE_2[10],))
    table = find_study("full-table")
    result = run_study(table, metrics=["length"], sets=["usr-topical"], source=Sensible())
    beside = {row.what: row.published and row.published.printed for row in result.rows}
    assert beside == {
        "usr-topical, turns: FED": "-.135",
        "usr-topical, turns: length": None,
    }


def test_metrics_of_turns_see_the_last_answer_of_a_dialogue():
    turns = (Turn("hi", "user"), Turn("hello", "system"), Turn("bye", "user"))
    seen = full._last_answer(Sample("d", context=turns))
    assert (seen.context, seen.response) == (turns[:1], "hello")
