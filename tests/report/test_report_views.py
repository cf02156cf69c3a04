"""What stands behind a score, worked out by hand."""

import math
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.report_runs import Complaints, Composed, Contradicts, Worded, plain_run

from dialeval.readers import load
from dialeval.report.build import score_command
from dialeval.report.dialogue import (
    MOST_CHARACTERS,
    MOST_TURNS,
    bars,
    dialogue_view,
    shade_of,
    words,
)
from dialeval.report.tables import mean_interval


def record(metric, **parts):
    return {
        "label": metric.label,
        "name": metric.name,
        "direction": "higher",
        "options": metric.options(),
        "parts": [part.to_record() for part in metric.parts()],
    }


def row(**fields):
    return {
        "id": "s1",
        "dialogue": "",
        "item": "",
        "system": "bot",
        "context": [],
        "response": "yes",
        "references": [],
        "facts": [],
        "variants": [],
        "ratings": [],
    } | fields


def scored(metric, parts, value=0.5, **fields):
    columns = {f"{metric.label}.{name}": part for name, part in parts.items()}
    given = row(**fields) | {metric.label: value, f"{metric.label}.note": None} | columns
    return dialogue_view(given, [record(metric)])


def test_what_raters_wrote_stands_beside_their_ratings():
    given = {"values": [1, 2, 3], "scale": None, "raters": ["ann", "bob", "cy"]}
    rated = [("overall", given | {"comments": ["", "No.", "Yes."]}), ("natural", given)]
    view = dialogue_view(row(ratings=rated), [])
    assert [(one.rater, one.text) for one in view.comments] == [("bob", "No."), ("cy", "Yes.")]
    assert dialogue_view(row(ratings=[("overall", given)]), []).comments == ()


def test_a_word_has_the_log_probability_of_its_tokens():
    parts = {"log_probs": [-1.0, -2.0, -4.5], "starts": [0, 2, 5], "ends": [2, 5, 9]}
    view = scored(Worded(), parts, response="Hello you")
    found = [(w.text, w.log_prob, w.shade) for w in view.metrics[0].words]
    assert found == [("Hello", -3.0, 1), (" ", None, 0), ("you", -4.5, 2)]


def test_a_token_that_nothing_predicts_is_not_coloured():
    parts = {"log_probs": [math.nan, -7.0], "starts": [0, 1], "ends": [1, 4]}
    assert [w.log_prob for w in words("A big", parts)] == [None, None, -7.0]


@given(st.text(max_size=60), st.data())
def test_coloured_words_are_the_response_whatever_the_spans(text, data):
    edges = st.integers(-5, 80)
    spans = data.draw(st.lists(st.tuples(edges, edges), max_size=8))
    parts = {
        "log_probs": [-1.0] * len(spans),
        "starts": [float(a) for a, _ in spans],
        "ends": [float(b) for _, b in spans],
    }
    assert "".join(word.text for word in words(text, parts)) == text


@pytest.mark.parametrize(("log_prob", "shade"), [(0.0, 0), (-1.99, 0), (-2.0, 1), (-40.0, 5)])
def test_the_less_likely_the_darker(log_prob, shade):
    assert shade_of(log_prob) == shade


def test_follow_ups_come_by_likelihood():
    found = scored(Complaints(), {"<b>What?</b>": 20.0, "Go away.": 10.0}).metrics[0]
    assert [(bar.name, bar.width) for bar in found.follow_ups] == [
        ("Go away.", 50),
        ("<b>What?</b>", 100),
    ]
    assert found.numbers == ()


def test_the_contradicted_turn_is_marked_and_quoted():
    context = [{"speaker": "", "text": "Any pets?"}, {"speaker": "", "text": "A dog."}] * 2
    parts = {"contradictions": [0.2, 0.9], "turns": [4.0, 2.0]}
    view = scored(Contradicts(), parts, context=context, response="No pets.")
    assert [pair.number for pair in view.metrics[0].pairs] == [2, 4]
    assert [turn.number for turn in view.turns if turn.mark] == [2]
    assert view.metrics[0].pairs[0].text == "A dog."


def test_contributions_add_up_to_the_composed_score():
    found = scored(Composed(), {"first": 0.8, "second": 0.4}).metrics[0].contributions
    assert [bar.name for bar in found] == ["second", "first"]
    assert math.isclose(sum(bar.value for bar in found), 0.25 * 0.8 + 0.75 * 0.4)
    alone = scored(Composed(), {"second": 0.4}).metrics[0].contributions
    assert [bar.value for bar in alone] == pytest.approx([0.4])


def test_bars_lie_on_one_scale_with_zero():
    found = bars([("down", -1.0), ("up", 3.0)])
    assert [(bar.start, bar.width) for bar in found] == [(0, 25), (25, 75)]
    assert bars([("nothing", 0.0)])[0].width == 0


def test_repeated_ngrams_are_counted_over_all_answers(tmp_path):
    run = plain_run(tmp_path / "run", [2], metrics=("distinct:n=1",))
    (given,) = [r for batch in run.batches() for r in batch.to_pylist()]
    given["variants"] = [{"query": "q", "response": "a b"}, {"query": "r", "response": "a c"}]
    (metric,) = dialogue_view(given, run.manifest["metrics"]).metrics
    assert [(one.text, one.count) for one in metric.ngrams] == [("a", 2)]


def test_speakers_without_names_take_turns_before_the_answer():
    context = [{"speaker": "", "text": str(i)} for i in range(3)]
    view = scored(Composed(), {}, context=context)
    assert [turn.side for turn in view.turns] == ["user", "system", "user"]
    whole = scored(Composed(), {}, context=context[:2], response=None)
    assert ([t.side for t in whole.turns], whole.response) == (["user", "system"], None)


def test_what_is_too_long_is_cut_and_said():
    context = [{"speaker": "", "text": "hi"}] * (MOST_TURNS + 3)
    view = scored(Composed(), {}, context=context, response="x" * (MOST_CHARACTERS + 7))
    assert (view.earlier, len(view.turns)) == (3, MOST_TURNS)
    assert (view.response.cut, len(view.response.text)) == (7, MOST_CHARACTERS)


def test_the_interval_of_a_mean_is_students():
    import numpy as np
    from scipy import stats

    values = np.array([1.0, 2.0, 4.0, 8.0])
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx((3.75, low, high))
    assert mean_interval(values[:1]) == (1.0, None, None)
    assert mean_interval(values[:0]) == (None, None, None)


def test_the_command_of_a_run_says_how_its_files_were_read(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("id,answer,grade\n1,yes,4\n2,no,5\n3,well,1\n")
    about = load(
        table, columns={"response": "answer"}, ratings=["grade"], scales={"grade": (1, 5)}, limit=2
    ).about()
    command = score_command(about, [{"label": "length"}], "run")
    given = shlex.split(command)
    assert given[:4] == ["dialeval", "score", str(table), "-m"]
    assert given[5:] == [
        *("--limit", "2", "--map", "response=answer", "--rating", "grade"),
        *("--scale", "grade=1..5", "-o", "run"),
    ]
