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
    grouped = tmp_path / "grouped.jsonl"
    words = [" ".join(f"w{j % (i % 4 + 2)}" for j in range(3 + (i * 5) % 11)) for i in range(12)]
    rows = [
        {
            "id": f"s{i}",
            "response": words[i],
            "item": f"item{i // 3}",
            "system": ("a", "b", "c")[i % 3],
            "ratings": {"Overall": {"values": [(i * 5) % 11, i, (i * 7) % 5], "scale": [0, 12]}},
        }
        for i in range(12)
    ]
    grouped.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = ["-m", "length", "-m", "distinct"]
    dialeval("score", str(grouped), *metrics, "-o", str(tmp_path / "grouped"))
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


def test_several_runs_stand_in_one_table(dialeval, rated):
    dialeval("score", str(rated / "rated.jsonl"), "-m", "length", "-o", str(rated / "again"))
    runs = [str(rated / "run"), str(rated / "again")]
    rows = json.loads(dialeval("agree", *runs, "--json").out)
    assert [row["dataset"] for row in rows] == runs
    assert rows[0]["spearman"] == rows[1]["spearman"]
    assert "dataset" in dialeval("agree", *runs).out


def test_a_rater_and_the_maximum_over_raters_can_be_the_target(dialeval, rated):
    run = str(rated / "run")
    (one,) = json.loads(dialeval("agree", run, "--target", "rater:1", "--json").out)
    assert one["pearson"]["value"] == pytest.approx(1)
    (best,) = json.loads(dialeval("agree", run, "--target", "max-over-raters", "--json").out)
    assert (best["pearson"]["value"], best["pearson"]["rater"]) == (pytest.approx(1), "rater1")
    assert "PONE's rule" in dialeval("agree", run, "--target", "max-over-raters").out


@pytest.mark.parametrize("by", ["within-item", "within-system"])
def test_correlations_within_groups_are_averaged(dialeval, rated, by):
    done = dialeval("agree", str(rated / "grouped"), "--by", by, "--json")
    assert done.code == 0, done.err
    row = json.loads(done.out)[0]
    assert (row["by"], row["spearman"]["groups"]) == (by, 4 if by == "within-item" else 3)
    assert "mean of the correlations within" in dialeval(
        "agree", str(rated / "grouped"), "--by", by
    ).out  # fmt: skip


def test_metrics_are_tested_against_each_other(dialeval, rated):
    for test in ("williams", "perm-both"):
        arguments = ["agree", str(rated / "grouped"), "--test", test, "--rounds", "99"]
        found = json.loads(dialeval(*arguments, "--json").out)
        (ranking,) = found["tests"]
        assert {one["metric"] for one in ranking["metrics"]} == {"length", "distinct"}
        assert (ranking["test"], len(ranking["pairs"]), len(found["rows"])) == (test, 1, 2)
        assert "p after Holm" in dialeval(*arguments).out


def test_metrics_are_related_to_each_other(dialeval, rated):
    (found,) = json.loads(dialeval("agree", str(rated / "grouped"), "--relations", "--json").out)
    assert (found["of"], found["names"]) == ("metrics", ["length", "distinct"])
    assert found["values"][0][0] == 1
    done = dialeval("agree", str(rated / "grouped"), "--relations")
    assert "metrics among themselves, spearman" in done.out


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-m", "length", "--quality", "Overall"], "length and Overall"),
        ([], "Agreement with Overall"),
        (["--relations"], "among themselves"),
        (["-m", "length", "--by", "system", "--target", "max-over-raters"], "rating by rater"),
    ],
)
def test_pictures_are_drawn(dialeval, rated, arguments, shown):
    picture = rated / "picture.svg"
    done = dialeval("agree", str(rated / "grouped"), *arguments, "--plot", str(picture))
    assert done.code == 0, done.err
    assert shown in picture.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "x.pdf"], ".svg or .png"),
        (["--target", "median"], "no target 'median'"),
        (["--target", "rater:7"], "no rater '7'"),
        (["--quality", "Overal"], "Did you mean 'Overall'?"),
        (["-m", "lenght"], "Did you mean 'length'?"),
        (["--by", "within-item"], "no turn says which item it answers"),
        (["--by", "within-system", "--test", "williams"], "use --test perm-both"),
        (["--test", "williams", "--target", "max-over-raters"], "cannot be tested"),
        (["--lower-is-better", "length"], "goes with --scores"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(dialeval, rated, arguments, message):
    done = dialeval("agree", str(rated / "run"), *arguments)
    assert (done.code, message in done.err) == (2, True), done.err


def test_scores_from_anywhere_are_joined_by_id(dialeval, rated):
    scores = rated / "mine.csv"
    scores.write_text("id,mine\n" + "".join(f"s{i},{-i}\n" for i in range(9)))
    arguments = ["agree", str(rated / "rated.jsonl"), "--scores", str(scores), "--json"]
    (row,) = json.loads(dialeval(*arguments).out)
    assert (row["metric"], row["n"], row["n_missing"]) == ("mine", 9, 1)
    assert row["spearman"]["value"] < -0.9


@pytest.mark.parametrize(
    "text",
    ["name,mine\na,1\n", "id,mine\ns1,much\n", "id\ns1\n", "", "id,mine\ns1,1\ns1,2\n"],
)
def test_bad_files_of_scores_are_refused(dialeval, rated, text):
    (rated / "bad.csv").write_text(text)
    done = dialeval("agree", str(rated / "rated.jsonl"), "--scores", str(rated / "bad.csv"))
    assert done.code == 2
    assert "bad.csv" in done.err


def test_scores_of_other_samples_are_refused(dialeval, rated):
    (rated / "other.csv").write_text("id,mine\nx1,1\n")
    done = dialeval("agree", str(rated / "rated.jsonl"), "--scores", str(rated / "other.csv"))
    assert (done.code, "'s0' here and 'x1' there" in done.err) == (2, True)


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
