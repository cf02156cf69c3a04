"""The public data sets: counts and facts from their README and papers."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from pathlib import Path

import pytest

from dialeval.readers import check, load


@pytest.mark.parametrize(
    ("path", "format", "turns", "dialogues"),
    [
        ("fed/fed_data.json", "fed", 375, 125),
        ("usr-topical/tc_usr_data.json", "usr", 360, 0),
        ("dstc10/fed-turn_eval.json", "dstc10", 375, 0),
        ("dstc10/fed-dial_eval.json", "dstc10", 0, 125),
        ("dstc10/topical-usr_eval.json", "dstc10", 360, 0),
        ("dstc10/dailydialog-zhao_eval.json", "dstc10", 900, 0),
        ("dstc10/dailydialog-grade_eval.json", "dstc10", 300, 0),
        ("dstc10/persona-usr_eval.json", "dstc10", 300, 0),
        ("dstc10/persona-zhao_eval.json", "dstc10", 900, 0),
        ("dstc10/dailydialog-gupta_eval.json", "dstc10", 500, 0),
        ("dstc10/convai2-grade_eval.json", "dstc10", 600, 0),
        ("dstc10/empathetic-grade_eval.json", "dstc10", 300, 0),
        ("dstc9/dialogues.jsonl", "jsonl", 0, 2080),
        ("grade-dailydialog", "grade", 300, 0),
        ("holistic/context_data_release.csv", "holistic", 200, 0),
        ("holistic/fluency_data_release.csv", "holistic", 200, 0),
        ("engage/Eng_Scores_queries_gen_gtruth_replies.csv", "engage", 600, 0),
        ("holistic/self_consistency/baseline", "holistic-consistency", 100, 0),
        ("holistic/self_consistency/seq2seq", "holistic-consistency", 100, 0),
        ("holistic/self_consistency/word_net", "holistic-consistency", 100, 0),
        ("holistic/augmented_dataset/Response_Diversity/WS.csv", "holistic-diversity", 0, 100),
        ("holistic/augmented_dataset/Response_Diversity/CTG.csv", "holistic-diversity", 0, 100),
        (
            "holistic/augmented_dataset/Logical_Self_Consistency/WS.txt",
            "holistic-consistency",
            100,
            0,
        ),
        (
            "holistic/augmented_dataset/Logical_Self_Consistency/CTG.txt",
            "holistic-consistency",
            100,
            0,
        ),
    ],
)
def test_every_data_set_is_recognised_and_read_whole(
    rated: Path, path: str, format: str, turns: int, dialogues: int
) -> None:
    report = check([rated / path])
    assert list(report.formats.values()) == [format]
    assert (report.levels.get("turn", 0), report.levels.get("dialogue", 0)) == (turns, dialogues)
    assert report.errors == 0


def test_data_sets_can_be_loaded_together_without_clashing_ids(rated: Path) -> None:
    """All but humod and dstc7 (20,000 turns): reading them takes longer than it proves."""
    small = ("fed-turn", "fed-dial", "topical-usr", "dailydialog-zhao", "dailydialog-grade")
    paths = [
        rated / "fed" / "fed_data.json",
        rated / "usr-topical" / "tc_usr_data.json",
        *(rated / "dstc10" / f"{name}_eval.json" for name in small),
        rated / "grade-dailydialog",
        rated / "holistic" / "context_data_release.csv",
        rated / "holistic" / "fluency_data_release.csv",
        rated / "holistic" / "self_consistency",
    ]
    assert sum(1 for _ in load(*paths)) == 500 + 360 + 2060 + 300 + 400 + 300


def test_fed_drops_exactly_the_154_answers_in_words_about_error_recovery(rated: Path) -> None:
    quality = check([rated / "fed/fed_data.json"]).qualities["Error recovery"]
    assert (quality.ratings, quality.dropped) == (625 - 154, 154)


def test_fed_keeps_five_raters_in_place_where_one_answered_in_words(rated: Path) -> None:
    for sample in load(rated / "fed/fed_data.json"):
        assert all(len(rating.values) == 5 for rating in sample.ratings.values())


def test_fed_prefixes_become_speakers(rated: Path) -> None:
    first = next(iter(load(rated / "fed/fed_data.json")))
    assert first.id == "fed-turn-0001"
    assert first.context[0].text == "Hi!"
    assert [turn.speaker for turn in first.context[:2]] == ["user", "system"]
    assert first.response == "It's probably boring, isn't it?"
    assert first.ratings["Overall"].values == (2, 1, 3, 3, 4)
    assert first.ratings["Overall"].scale == (0, 4)


def test_fed_has_125_dialogues_of_three_turns_and_a_whole(rated: Path) -> None:
    groups = Counter(sample.dialogue for sample in load(rated / "fed/fed_data.json"))
    assert set(groups.values()) == {4}
    assert len(groups) == 125


def test_fed_systems_are_counted_as_published(rated: Path) -> None:
    report = check([rated / "fed/fed_data.json"])
    assert report.systems == {"Mitsuku": 176, "Human": 164, "Meena": 160}


def test_usr_ground_truth_is_the_reference_of_the_other_five(rated: Path) -> None:
    items: dict[str, list[str]] = {}
    for sample in load(rated / "usr-topical/tc_usr_data.json"):
        truth = sample.system == "Original Ground Truth"
        assert len(sample.references) == (0 if truth else 1)
        assert sample.facts
        items.setdefault(sample.item, []).append(sample.system)
    assert len(items) == 60
    assert all(len(set(systems)) == 6 for systems in items.values())


def test_dstc10_rival_answers_share_an_item(rated: Path) -> None:
    items = Counter(s.item for s in load(rated / "dstc10/dailydialog-zhao_eval.json"))
    assert set(items.values()) == {9}
    assert len(items) == 100


def test_dstc10_and_original_fed_agree(rated: Path) -> None:
    ours = [s for s in load(rated / "fed/fed_data.json") if s.level == "turn"]
    theirs = list(load(rated / "dstc10/fed-turn_eval.json"))
    assert Counter((s.context, s.response) for s in ours) == Counter(
        (s.context, s.response) for s in theirs
    )


def test_dstc10_names_human_and_model_user_and_system(rated: Path) -> None:
    first = next(iter(load(rated / "dstc10/fed-dial_eval.json")))
    assert [turn.speaker for turn in first.context[:2]] == ["user", "system"]
    assert first.ratings["Consistent"].scale == (0, 1)


def answer(number: int, **given: object) -> dict[str, object]:
    """One answer of a test file of DSTC10."""
    said = {"context": "hi\nhow are you ?", "response": f"fine {number}"}
    return {"dialogue_id": f"jsalt_{number:05d}", "model": "A", **said, **given}


def test_dstc10_reads_test_files_some_of_whose_items_nobody_rated(tmp_path: Path) -> None:
    path = tmp_path / "jsalt_eval.json"
    unrated = [answer(0), answer(1, annotations=None), answer(2, annotations={})]
    asked = {"appropriateness": [1, 5], "grammar": []}
    path.write_text(json.dumps([*unrated, answer(3, annotations=asked)]))
    report = check([path])
    assert list(report.formats.values()) == ["dstc10"]
    assert (report.errors, report.warnings) == (0, 3)
    found = list(load(path))
    assert [sample.id for sample in found] == [f"jsalt_0000{n}" for n in range(4)]
    assert [turn.text for turn in found[0].context] == ["hi", "how are you ?"]
    assert [dict(sample.ratings) for sample in found[:3]] == [{}, {}, {}]
    assert found[3].ratings["appropriateness"].mean == 3
    assert found[3].ratings["grammar"].mean is None


def test_dstc10_reads_other_names_of_fields_and_passes_over_those_it_does_not_know(
    tmp_path: Path,
) -> None:
    path = tmp_path / "esl_eval.json"
    records = [
        {
            "id": f"esl_{n}", "system": "B", "context": "hi\nhow are you ?", "response": f"ok {n}",
            "references": ["fine", "well"], "data_source": "ESL", "turn": 3,
        }
        for n in range(3)
    ]  # fmt: skip
    records[2]["annotations"] = {"appropriateness": [4, 2]}
    path.write_text(json.dumps(records, indent=1))
    assert list(check([path]).formats.values()) == ["dstc10"]
    found = list(load(path))
    assert [sample.id for sample in found] == ["esl_0", "esl_1", "esl_2"]
    assert {sample.system for sample in found} == {"B"}
    assert found[0].references == ("fine", "well")
    assert found[2].ratings["appropriateness"].mean == 3


@pytest.mark.parametrize(
    ("names", "speakers"),
    [
        (("User", "System"), ["user", "system"]),
        (("Human", "Bot"), ["user", "system"]),
        (("A", "B"), ["", ""]),
        (("Speaker 1", "Speaker 2"), ["", ""]),
    ],
)
def test_dstc10_takes_the_names_of_speakers_from_the_lines(
    tmp_path: Path, names: tuple[str, str], speakers: list[str]
) -> None:
    path = tmp_path / "ncm_eval.json"
    first, second = names
    said = {"context": f"{first}: hi\n{second}: hello: you ?", "response": f"{first}: B: fine"}
    path.write_text(json.dumps([answer(0, annotations={"content": [1]}) | said]))
    (sample,) = load(path)
    assert [(t.text, t.speaker) for t in sample.context] == [
        ("hi", speakers[0]),
        ("hello: you ?", speakers[1]),
    ]
    assert sample.response == "B: fine"


def test_dstc10_keeps_a_line_that_only_looks_like_a_speaker(tmp_path: Path) -> None:
    path = tmp_path / "ncm_eval.json"
    said = {"context": "A: one way\nB is another", "response": "A: then"}
    path.write_text(json.dumps([answer(0, annotations={"content": [1]}) | said]))
    (sample,) = load(path)
    assert [turn.text for turn in sample.context] == ["A: one way", "B is another"]
    assert sample.response == "A: then"


def test_dstc10_keeps_the_ids_of_a_file_that_nobody_rated_and_answers_that_are_null(
    tmp_path: Path,
) -> None:
    path = tmp_path / "jsalt_eval.json"
    path.write_text(json.dumps([answer(0, reference=["a"]), answer(1, response=None)]))
    report = check([path])
    assert list(report.formats.values()) == ["dstc10"]
    assert report.errors == 0
    assert [(sample.id, sample.response) for sample in load(path)] == [
        ("jsalt_00000", "fine 0"),
        ("jsalt_00001", ""),
    ]


def test_annotations_that_are_a_list_are_not_those_of_dstc10(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    record = {"id": "1", "context": "hi", "response": "hello", "annotations": [{"url": "x"}]}
    path.write_text(json.dumps(record) + "\n")
    assert list(check([path]).formats.values()) == ["jsonl"]


def test_dstc10_tells_answers_apart_that_share_an_id_or_have_none(tmp_path: Path) -> None:
    path = tmp_path / "esl_eval.json"
    records = [answer(n, dialogue_id="d", annotations={"content": [n]}) for n in range(3)]
    path.write_text(json.dumps(records))
    assert [sample.id for sample in load(path)] == ["d", "d-2", "d-3"]
    for record in records:
        del record["dialogue_id"], record["model"]
    path.write_text(json.dumps(records))
    found = list(load(path))
    assert [sample.id for sample in found] == [f"esl_eval-0000{n}" for n in (1, 2, 3)]
    assert [sample.ratings["content"].mean for sample in found] == [0, 1, 2]


def test_grade_pairs_two_systems_on_150_items(rated: Path) -> None:
    samples = list(load(rated / "grade-dailydialog"))
    assert Counter(s.system for s in samples) == {
        "transformer_generator": 150,
        "transformer_ranker": 150,
    }
    assert set(Counter(s.item for s in samples).values()) == {2}
    ranker = next(s for s in samples if s.system == "transformer_ranker")
    assert ranker.ratings["coherence"].values == (3.0,)
    assert len(ranker.context) == 2


def _pearson(left: list[float], right: list[float]) -> float:
    return statistics.correlation(left, right)


@pytest.mark.parametrize(
    ("path", "quality", "mean", "largest"),
    [  # reference.md 1.9: each rater against the mean of the other nine, Tables 3, 4 and 9
        ("context_data_release.csv", "coherence", 0.6070, 0.9094),
        ("fluency_data_release.csv", "fluency", 0.6965, 0.8773),
        ("self_consistency/baseline", "consistency", 0.6117, 0.7542),
        ("self_consistency/word_net", "consistency", 0.6411, 0.7964),
        ("self_consistency/seq2seq", "consistency", 0.6539, 0.7516),
    ],
)
def test_holistic_raters_agree_as_published(
    rated: Path, path: str, quality: str, mean: float, largest: float
) -> None:
    rows = [s.ratings[quality].given for s in load(rated / "holistic" / path)]
    assert {len(row) for row in rows} == {10}
    agreement = [
        _pearson([row[k] for row in rows], [(math.fsum(row) - row[k]) / 9 for row in rows])
        for k in range(10)
    ]
    assert round(statistics.mean(agreement), 4) == pytest.approx(mean, abs=1e-4)
    assert round(max(agreement), 4) == pytest.approx(largest, abs=1e-4)


def test_holistic_consistency_raters_are_in_numeric_order(rated: Path) -> None:
    sample = next(iter(load(rated / "holistic/self_consistency/baseline")))
    assert sample.ratings["consistency"].raters == tuple(f"rater{k}" for k in range(1, 11))
    assert [turn.text for turn in sample.context] == [
        "Hey man , you wanna buy some weed ?",
        "Some what ?",
    ]
    assert [turn.speaker for turn in sample.context] == ["system", "user"]


def test_holistic_diversity_groups_have_five_answers_and_a_windows_apostrophe(rated: Path) -> None:
    samples = load(rated / "holistic/augmented_dataset/Response_Diversity/CTG.csv")
    groups = list(samples)
    assert all(len(group.variants) == 5 and group.response is None for group in groups)
    assert any("\u2019" in v.query + v.response for group in groups for v in group.variants)
    assert "byte 0x92" in str(samples.problems[0])


def test_engagement_scores_are_read_with_named_columns(rated: Path) -> None:
    samples = load(
        rated / "engage/Eng_Scores_queries_gen_gtruth_replies.csv",
        format="csv",
        columns={"context": "query"},
        ratings=["human_score"],
        scales={"human_score": (1, 5)},
    )
    assert sum(len(s.ratings["human_score"].given) for s in samples) == 1800
