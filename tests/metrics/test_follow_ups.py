"""FULL, FED and the contrast, with made-up log-probabilities in place of a model."""

import math

import numpy as np
import pytest

from dialeval.errors import InputError, UsageError
from dialeval.metrics.follow_ups import fed_qualities, load_follow_ups
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

DIALOGUE = Sample(id="d", context=(Turn("Hi!", "user"), Turn("Hello.", "system")))
TURN = Sample(id="t", context=(Turn("Hi!", "user"),), response="Hello.", system="bot")


def answer(*log_probs: float, cut: int = 0) -> np.ndarray:
    rows = [[log_prob, i, i + 1] for i, log_prob in enumerate(log_probs)]
    return np.array([[cut, 0, 0], *rows], dtype=np.float64)


def ask_and_score(metric, sample, answer_for):
    return metric.score(sample, [answer_for(question) for question in metric.ask(sample)])


def test_full_in_paper_mode_is_minus_the_sum_of_log_likelihoods(golden):
    fixture = golden["full"]

    def answer_for(question):
        tokens = fixture["n_tokens"][question.text]
        return answer(*[-fixture["mean_nll_per_followup"][question.text]] * tokens)

    found = ask_and_score(make_metric("full"), TURN, answer_for)
    assert found.value == pytest.approx(-fixture["paper_eq1_sum_of_total_loglik"])
    assert len(found.parts) == 5


def test_full_in_released_mode_is_the_mean_perplexity_of_four_strings(golden):
    fixture = golden["full"]
    metric = make_metric("full:mode=released")
    found = ask_and_score(
        metric, TURN, lambda q: answer(*[-fixture["package_mean_nll"][q.text]] * 3)
    )
    assert [q.text for q in metric.ask(TURN)] == fixture[
        "package_0.0.3_followups(4, comma missing)"
    ]
    assert found.value == pytest.approx(fixture["package_score(mean exp(nll))"])


def test_full_in_released_mode_writes_the_dialogue_as_the_package_does():
    for question in make_metric("full:mode=released").ask(TURN):
        assert (question.layout, question.truncate, question.end) == ("tabs", "right", True)


def test_full_judges_the_response_after_its_context_and_whole_dialogues():
    metric = make_metric("full")
    assert [t.text for t in metric.ask(TURN)[0].turns] == ["Hi!", "Hello."]
    assert [t.text for t in metric.ask(DIALOGUE)[0].turns] == ["Hi!", "Hello."]


def test_full_looks_back_over_fifty_turns_and_the_response():
    long = tuple(Turn(str(i)) for i in range(80))
    turn = make_metric("full").ask(Sample(id="x", context=long, response="r"))[0].turns
    assert (len(turn), turn[0].text, turn[-1].text) == (51, "30", "r")
    assert len(make_metric("full").ask(Sample(id="x", context=long))[0].turns) == 50


def test_follow_ups_of_ones_own_come_from_a_file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Huh?\n\nYou are rude.\n")
    metric = make_metric("full", follow_ups=str(path))
    assert [q.text for q in metric.ask(TURN)] == ["Huh?", "You are rude."]
    assert "follow_ups:full-v1" not in str(metric.signature())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ":1: is not JSON"),
        ("nonsense", ":1: is not JSON"),
        ("[]", "is not a set of follow-ups"),
        ("{}", "holds no follow-ups"),
        ('{"negative": "abc"}', 'negative: must be a list, not "abc"'),
        ('{"negative": [1]}', r"negative\[0\]: must be a text, not 1"),
        ('{"negative": [""]}', r"negative\[0\]: must be a text"),
        ('{"negative": ["Huh?"], "version": "1|v2"}', "version: is"),
        ('{"negative": ["Huh?"], "version": [1]}', "version: is"),
        ('{"negatives": ["Huh?"]}', "negatives: no such field. Did you mean 'negative'"),
        ('{"negative": ["Huh?"], "negative": ["Hm?"]}', '"negative" occurs twice'),
        ('{"negative": ["\\ud83d"]}', r"negative\[0\]: half a character"),
        ('{"negative": ' + "[" * 40 + "]" * 40 + "}", "more than 32 levels"),
        ('{"negative": ' + "[" * 200_000, "more than 32 levels"),
    ],
)
def test_a_bad_file_of_follow_ups_is_refused(tmp_path, text, problem):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        make_metric("full", follow_ups=str(path))


def test_full_without_a_complaint_is_refused(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"positive": ["Nice!"]}')
    with pytest.raises(UsageError, match="'full' needs negative follow-ups"):
        make_metric("full", follow_ups=str(path))


def test_fed_has_18_qualities_and_63_follow_ups(golden):
    texts = {text for q in fed_qualities() for text in (*q.positive, *q.negative)}
    assert len(fed_qualities()) == 18
    assert len(texts) == golden["fed"]["n_unique_followups"] == 63
    assert sum(q.level == "turn" for q in fed_qualities()) == 8
    for quality in fed_qualities():
        expected = golden["fed"]["followups"][quality.name]
        assert list(quality.positive) == expected["positive"]
        assert list(quality.negative) == expected["negative"]


def test_fed_in_released_mode_matches_the_arithmetic_of_the_code(golden):
    """golden: loss(f) = 1 + len(f)/100; quality = mean loss of negatives - of positives."""
    found = ask_and_score(
        make_metric("fed:mode=released"), TURN, lambda q: answer(-(1 + len(q.text.strip()) / 100))
    )
    for quality, expected in golden["fed"]["scores"].items():
        assert found.parts[quality] == pytest.approx(expected, abs=1e-6)
    assert found.value == pytest.approx(
        golden["fed"]["overall_DialEvalMetrics(mean of 18)"], abs=1e-6
    )


def test_fed_in_paper_mode_adds_up_log_likelihoods():
    """Three positives of -2 each minus three negatives of -3 each: 3."""
    interesting = next(q for q in fed_qualities() if q.name == "interesting")
    metric = make_metric("fed:quality=interesting")
    found = ask_and_score(
        metric,
        TURN,
        lambda q: answer(-1.0, -1.0) if q.text in interesting.positive else answer(-3.0),
    )
    assert found.value == pytest.approx(3 * -2.0 - 3 * -3.0)


def test_the_contrast_is_praise_minus_complaint():
    positive = load_follow_ups("contrast").positive
    metric = make_metric("follow-up-contrast")
    found = ask_and_score(
        metric, TURN, lambda q: answer(-1.0, -2.0) if q.text in positive else answer(-4.0)
    )
    assert found.value == pytest.approx(-1.5 - -4.0)
    assert found.parts == {"positive": -1.5, "negative": -4.0}


def test_the_relative_contrast_takes_off_what_follow_ups_get_alone():
    positive = load_follow_ups("contrast").positive

    def answer_for(question):
        likely = -1.0 if question.text in positive else -4.0
        return answer(likely - (0.0 if question.turns else 2.0))

    found = ask_and_score(make_metric("follow-up-contrast:relative=true"), TURN, answer_for)
    assert found.value == pytest.approx(0.0)
    assert found.parts == pytest.approx({"positive": 2.0, "negative": 2.0})


def test_a_cut_dialogue_is_noted():
    found = ask_and_score(make_metric("full"), TURN, lambda q: answer(-1.0, cut=7))
    assert found.note == "turns truncated"


def test_the_signature_names_the_set_of_follow_ups():
    assert "follow_ups:full-v1" in str(make_metric("full").signature())
    assert "follow_ups:full-released-v1" in str(make_metric("full:mode=released").signature())
    assert math.isinf(make_metric("full").range[1])
