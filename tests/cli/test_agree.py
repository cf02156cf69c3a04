"""Metrics against people, and people against each other."""

import json

import pytest


@pytest.fixture
def rated(dialeval, tmp_path):
    """Ten responses of growing length, rated by length, and one rater who answers anything."""
    path = tmp_path / "rated.jsonl"
    rows = [
        {
            "id": f"s{i}",
            "context": ["hi"],
            "response": " ".join(["word"] * (i + 1)),
            "system": ("a", "b", "c")[i % 3],
            "ratings": {"Overall": {"values": [i, i, (i * 7) % 3], "scale": [0, 9]}},
        }
        for i in range(10)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dialeval("score", str(path), "-m", "length", "-o", str(tmp_path / "run"))
    return tmp_path


def test_a_metric_that_follows_the_ratings_agrees(dialeval, rated):
    (row,) = json.loads(dialeval("agree", str(rated / "run"), "--json").out)
    assert {key: row[key] for key in ("metric", "quality", "level", "by", "n", "n_missing")} == {
        "metric": "length", "quality": "Overall", "level": "turn", "by": "turn", "n": 10,
        "n_missing": 0,
    }  # fmt: skip
    assert row["spearman"]["value"] > 0.9
    assert row["spearman"]["low"] < row["spearman"]["value"] < row["spearman"]["high"]
    assert 0 < row["kendall"]["p"] < 0.01
    assert "length" in dialeval("agree", str(rated / "run")).out


def test_means_of_systems_can_be_compared(dialeval, rated):
    (row,) = json.loads(dialeval("agree", str(rated / "run"), "--by", "system", "--json").out)
    assert (row["by"], row["n"]) == ("system", 3)


def test_scores_from_anywhere_are_joined_by_id(dialeval, rated):
    scores = rated / "mine.csv"
    scores.write_text("id,mine\n" + "".join(f"s{i},{-i}\n" for i in range(9)))
    arguments = ["agree", str(rated / "rated.jsonl"), "--scores", str(scores), "--json"]
    (row,) = json.loads(dialeval(*arguments).out)
    assert (row["metric"], row["n"], row["n_missing"]) == ("mine", 9, 1)
    assert row["spearman"]["value"] < -0.9


@pytest.mark.parametrize("text", ["name,mine\na,1\n", "id,mine\ns1,much\n", "id\ns1\n", ""])
def test_bad_files_of_scores_are_refused(dialeval, rated, text):
    (rated / "bad.csv").write_text(text)
    done = dialeval("agree", str(rated / "rated.jsonl"), "--scores", str(rated / "bad.csv"))
    assert done.code == 2
    assert "bad.csv" in done.err


def test_a_run_without_ratings_has_nothing_to_agree_with(dialeval, tmp_path):
    out = str(tmp_path / "run")
    dialeval("score", "examples/three-bots.jsonl", "-m", "length", "-o", out)
    done = dialeval("agree", out)
    assert (done.code, "no sample has ratings" in done.err) == (2, True)


def test_a_rater_who_answers_anything_is_pointed_out(dialeval, rated):
    done = dialeval("raters", str(rated / "rated.jsonl"))
    assert "rater3 looks random" in done.out
    report = json.loads(dialeval("raters", str(rated / "rated.jsonl"), "--json").out)["Overall"]
    assert (report["n_items"], report["n_raters"]) == (10, 3)


def test_the_published_agreement_of_holistic_eval_comes_out(dialeval, datasets, golden):
    path = datasets / "rated" / "holistic" / "context_data_release.csv"
    report = json.loads(dialeval("raters", str(path), "--json").out)["coherence"]
    expected = golden["inter_rater_leave_one_out"]["released_files"]
    for name, value in expected["context_data_release.csv (200x10)"].items():
        if name != "paper_table3":
            assert report["leave_one_out"][name]["value"] == pytest.approx(value, abs=1e-6)
