from pathlib import Path

import pytest

from dialeval.studies.result import run_study
from dialeval.studies.study import Setting, find_study
from dialeval.studies.ws_substitutions import FILE, STUDY, name_lines, read_group, substitutions

LINES = [  # the order is shuffled: nouns, original, all, verbs, adjectives and adverbs
    "well . i got a good remainder",
    "well . i got a good rest",
    "well . i get a full remainder",
    "well . i get a good rest",
    "well . i got a full rest",
]
TAGS = ["UH", ".", "PRP", "VBD", "DT", "JJ", "NN"]


def test_a_group_is_read_by_majority():
    group = read_group(LINES)
    assert " ".join(group.words) == LINES[1]
    assert group.new == {3: "get", 5: "full", 6: "remainder"}
    assert group.lines == (frozenset({6}), frozenset({3}), frozenset({5}))
    assert name_lines(group, TAGS) == ("nouns", "verbs", "modifiers")


def test_the_rule_and_the_tagger_are_judged_apart():
    group = read_group(LINES)
    wrong = [*TAGS[:6], "VB"]
    right = list(substitutions(group, TAGS))
    slipped = list(substitutions(group, wrong))
    assert all(item.follows_rule and item.ours == item.released for item in right)
    assert all(item.follows_rule for item in slipped)
    assert [item.ours == item.released for item in slipped] == [False, True, True]


def test_95_of_100_released_substitutions_follow_the_rule(datasets, embedded_models):
    pytest.importorskip("spacy", reason="needs the extra 'augment'")
    folder: Path = datasets / "rated" / "holistic"
    if not (folder / FILE).exists():
        pytest.skip(f"no {FILE} in {folder}")
    findings = STUDY.measure(Setting({"holistic": folder}))
    ours = {item.what: item.value for item in findings.measured}
    assert ours["substitutions in WS.csv"] == 301 + 240 + 174
    for kind in ("verbs", "nouns", "modifiers"):
        assert ours[f"{kind}: by the rule"] >= 0.95
    assert ours["verbs: end to end"] >= 0.95
    assert ours["all: end to end"] >= 0.9


def test_the_paraphrases_of_the_self_consistency_set_are_made_again(
    datasets, embedded_models, monkeypatch
):
    """57 of 100 changed, each in one word; 14 of 100 by the rule of WS.csv."""
    pytest.importorskip("spacy", reason="needs the extra 'augment'")
    if not (datasets / "rated" / "holistic" / "self_consistency" / "word_net").exists():
        pytest.skip("no self-consistency set of HolisticEval")
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    result = run_study(find_study("ws-consistency"))
    found = {row.what: row.value for row in result.rows}
    assert found["changed paraphrases"] == 57
    assert found["the new word, given the old one"] == 1.0
    assert found["end to end: all"] >= 0.85
    assert result.failures == ()
