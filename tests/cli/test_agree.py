"""Metrics against people, and people against each other."""

import json
from dataclasses import dataclass

import pytest

import dialeval as library
from dialeval.metric import Metric, Part
from dialeval.scores import Score


@dataclass(frozen=True)
class Listed(Metric):
    """A metric with a list of numbers beside each score."""

    name = "listed"

    def parts(self):
        return (Part("lengths", "of each word", many=True),)

    def score(self, sample, answers):
        words = sample.response.split()
        return Score(float(len(words)), {"lengths": tuple(float(len(w)) for w in words)})


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


def test_several_scores_are_held_against_the_same_ratings(dialeval, rated):
    """The first of two was dropped without a word; what export writes could not be read."""
    (rated / "mine.csv").write_text("id,mine\n" + "".join(f"s{i},{-i}\n" for i in range(9)))
    dialeval("export", str(rated / "run"), "--to", "csv", "-o", str(rated / "export.csv"))
    both = ["--scores", str(rated / "mine.csv"), "--scores", str(rated / "export.csv")]
    done = dialeval("agree", str(rated / "rated.jsonl"), *both, "--json")
    assert done.code == 0, done.err
    assert {row["metric"]: row["n"] for row in json.loads(done.out)} == {"mine": 9, "length": 10}


def test_scores_of_other_samples_are_refused(dialeval, rated):
    (rated / "other.csv").write_text("id,mine\nx1,1\n")
    done = dialeval("agree", str(rated / "rated.jsonl"), "--scores", str(rated / "other.csv"))
    assert (done.code, "'s0' here and 'x1' there" in done.err) == (2, True)


def test_a_run_without_ratings_has_nothing_to_agree_with(dialeval, tmp_path):
    out = str(tmp_path / "run")
    dialeval("score", "examples/four-bots.jsonl", "-m", "length", "-o", out)
    done = dialeval("agree", out)
    assert (done.code, "no sample has ratings" in done.err) == (2, True)


def test_a_rater_who_answers_anything_is_pointed_out(dialeval, rated):
    done = dialeval("raters", str(rated / "rated.jsonl"))
    assert "rater3 looks random" in done.out
    (report,) = json.loads(dialeval("raters", str(rated / "rated.jsonl"), "--json").out)
    assert (report["quality"], report["level"]) == ("Overall", "turn")
    assert (report["n_items"], report["n_raters"]) == (10, 3)


def test_the_published_agreement_of_holistic_eval_comes_out(dialeval, datasets, golden):
    path = datasets / "rated" / "holistic" / "context_data_release.csv"
    reports = json.loads(dialeval("raters", str(path), "--json").out)
    (report,) = [one for one in reports if one["quality"] == "coherence"]
    expected = golden["inter_rater_leave_one_out"]["released_files"]
    for name, value in expected["context_data_release.csv (200x10)"].items():
        if name != "paper_table3":
            assert report["leave_one_out"][name]["value"] == pytest.approx(value, abs=1e-6)


@pytest.fixture
def table(tmp_path):
    """An ordinary table whose ratings go by a name of their own, and scores for it."""
    path = tmp_path / "ratings.csv"
    rows = [f"s{i},hi,answer {i},bot{i % 4},{i * 7 % 12}\n" for i in range(12)]
    path.write_text("id,context,response,system,overall\n" + "".join(rows))
    scores = [f"s{i};{i * 7 % 12 + i % 3};{i if i > 2 else ''}\n" for i in range(12)]
    (tmp_path / "mine.csv").write_text("id;mine;other\n" + "".join(scores))
    return path


def with_scores(path, *more):
    return ["agree", str(path), "--scores", str(path.parent / "mine.csv"), *more]


def test_columns_of_ratings_can_be_named(dialeval, table):
    done = dialeval(
        *with_scores(table, "--rating", "overall", "--scale", "overall=0..11", "--json")
    )
    row, _ = json.loads(done.out)
    assert (row["quality"], row["n"]) == ("overall", 12)
    (report,) = json.loads(dialeval("raters", str(table), "--rating", "overall", "--json").out)
    assert (report["quality"], report["n_items"]) == ("overall", 12)
    mapped = with_scores(table, "--rating", "overall", "--map", "system=context", "--by", "system")
    assert json.loads(dialeval(*mapped, "--json").out)[0]["n"] == 1
    outside = dialeval("raters", str(table), "--rating", "overall", "--scale", "overall=1..5")
    assert (outside.code, "outside its scale 1 to 5" in outside.err) == (2, True)


@pytest.mark.parametrize("more", [[], ["--quality", "overall"]])
def test_where_no_column_counts_as_ratings_the_unused_ones_are_named(dialeval, table, more):
    for arguments in (with_scores(table, *more), ["raters", str(table), *more]):
        done = dialeval(*arguments)
        assert done.code == 2
        assert "no sample has ratings. Not used: overall." in done.err
        assert "--rating overall" in done.err
        assert "rating_overall_1" in done.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("only.csv", "id,rating_overall_1,rating_overall_2\n{csv}"),
        ("only.jsonl", "{jsonl}"),
    ],
)
def test_ratings_need_no_dialogues(dialeval, table, name, text):
    given = [(f"s{i}", i * 7 % 12, i) for i in range(12)]
    csv = "".join(f"{ident},{a},{b}\n" for ident, a, b in given)
    records = [{"id": ident, "ratings": {"overall": [a, b]}} for ident, a, b in given]
    jsonl = "".join(json.dumps(record) + "\n" for record in records)
    path = table.parent / name
    path.write_text(text.format(csv=csv, jsonl=jsonl))
    row, _ = json.loads(dialeval(*with_scores(path, "--target", "rater:1", "--json")).out)
    assert (row["level"], row["n"]) == ("turn", 12)
    (report,) = json.loads(dialeval("raters", str(path), "--json").out)
    assert (report["n_items"], report["n_raters"]) == (12, 2)
    assert dialeval("score", str(path), "-m", "length").code == 2


def test_ratings_that_are_dropped_are_remarked(dialeval, table):
    path = table.parent / "odd.csv"
    rows = [f"s{i},{i},{'N/A' if i < 3 else i}\n" for i in range(12)]
    path.write_text("id,rating_overall_1,rating_overall_2\n" + "".join(rows))
    for arguments in (with_scores(path), ["raters", str(path)]):
        done = dialeval(*arguments)
        assert "odd.csv:2: rating_overall_2: 'N/A' is not a number: dropped, and 2 more" in done.err
        assert dialeval(*arguments, "--quiet").err == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ratings.csv", "is a file, not a run. Score it first: dialeval score"),
        ("ratings.csv", "--scores SCORES.csv"),
        ("nowhere", "no such folder"),
        (".", "it has no manifest.json. dialeval score FILE -o RUN makes one"),
    ],
)
def test_what_is_no_run_is_told_what_to_do(dialeval, table, name, message):
    done = dialeval("agree", str(table.parent / name))
    assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("option", [["--rating", "x"], ["--map", "id=x"], ["--scale", "x=1..5"]])
def test_options_for_files_are_refused_for_runs(dialeval, rated, option):
    done = dialeval("agree", str(rated / "run"), *option)
    assert (done.code, f"{option[0]} goes with --scores" in done.err) == (2, True)


def test_headings_say_what_is_compared(dialeval, table):
    named = with_scores(table, "--rating", "overall", "--by", "system")
    assert "means of systems over turns): Pearson" in dialeval(*named, "--test", "williams").out
    assert "spearman (" in dialeval(*named, "--relations").out
    assert "means of systems over turns)" in dialeval(*named, "--relations").out
    picture = table.parent / "picture.svg"
    for more in ([], ["--relations"]):
        dialeval(*named, *more, "--plot", str(picture))
        assert "means of systems over turns" in picture.read_text(encoding="utf-8")
    refused = dialeval(
        *with_scores(table, "--rating", "overall"), "--relations", "--by", "within-item"
    )
    assert (refused.code, "use --by turn or --by system" in refused.err) == (2, True)


def test_a_ranking_says_which_samples_it_leaves_out(dialeval, table):
    done = dialeval(*with_scores(table, "--rating", "overall", "--test", "williams"))
    assert "3 samples are left out because not all metrics scored them; other scored" in done.err
    assert "a new one begins with the first metric that is significantly worse" in done.out


def test_no_interval_of_width_zero_is_shown(dialeval, table):
    done = dialeval(*with_scores(table, "--rating", "overall", "--by", "system"))
    assert "no interval: fewer than 5 items" in done.out
    assert "[" not in done.out


def test_a_maximum_over_raters_shows_no_pairs(dialeval, rated):
    done = dialeval("agree", str(rated / "run"), "--target", "max-over-raters")
    assert "pairs" not in done.out
    assert "pairs" in dialeval("agree", str(rated / "run")).out


def test_a_single_rater_is_not_called_random(dialeval, table):
    done = dialeval("raters", str(table), "--rating", "overall")
    assert "overall: only one rater" in done.out
    assert "random" not in done.out


def test_levels_are_kept_apart_and_many_qualities_fit_the_page(dialeval, tmp_path):
    path = tmp_path / "levels.jsonl"
    names = [f"a quality with a long name {i}" for i in range(6)]
    rows = [
        {
            "id": str(i),
            "context": ["hi"],
            "response": "x" if i < 12 else None,
            "ratings": {name: [i % 5, i * 2 % 5, i % 3] for name in names},
        }
        for i in range(20)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reports = json.loads(dialeval("raters", str(path), "--json").out)
    assert {(one["level"], one["n_items"]) for one in reports} == {("turn", 12), ("dialogue", 8)}
    assert len(reports) == 12
    shown = dialeval("raters", str(path)).out
    assert max(len(line) for line in shown.split("turns")[1].splitlines()[:40]) <= 100
    for title in ("kappa, linear", "alpha, nominal", "pairs: Pearson, max", "pairs: Spearman, max"):
        assert title in shown
    assert "turns" in shown
    assert "dialogues" in shown


def test_a_rating_column_in_json_is_told_where_ratings_belong(dialeval, tmp_path):
    path = tmp_path / "flat.jsonl"
    path.write_text('{"id": "a", "response": "x", "rating_overall": 4}\n')
    done = dialeval("raters", str(path))
    assert (done.code, '"ratings": {"overall": [4, 5]}' in done.err) == (2, True)
    assert "rating_rating" not in done.err


def test_scores_are_held_against_the_ratings_of_a_run_directory(dialeval, rated):
    """The scores are the ratings of the first two raters, so they agree with those fully."""
    scores = rated / "scores.csv"
    scores.write_text("id,mine\n" + "".join(f"s{i},{i}\n" for i in range(10)))
    arguments = ["--scores", str(scores), "--target", "rater:1", "--json"]
    done = dialeval("agree", str(rated / "run"), *arguments)
    assert done.code == 0, done.err
    assert json.loads(done.out)[0]["spearman"]["value"] == pytest.approx(1.0)
    (rated / "run" / "manifest.json").unlink()
    done = dialeval("agree", str(rated / "run"), *arguments)
    assert (done.code, "unfinished run" in done.err) == (2, True)


RATED = "id,response,rating_overall_1,rating_overall_2\na,x,1,5\nb,x y,2,4\nc,x y z,3,5\nd,w,4,1\n"
SCORED = "id,mine\na,1\nb,3\nc,2\nd,4\n"


def test_a_quality_stands_for_the_columns_of_all_its_raters(dialeval, tmp_path):
    (tmp_path / "r.csv").write_text(RATED)
    (tmp_path / "s.csv").write_text(SCORED)
    files = (str(tmp_path / "r.csv"), "--scores", str(tmp_path / "s.csv"), "--json")

    def found(*options):
        done = dialeval("agree", *files, *options)
        assert (done.code, done.err) == (0, ""), done.err
        (row,) = json.loads(done.out)
        return row["pearson"]["value"]

    everybody = found("--rating", "overall")
    assert everybody == found()
    assert found("--rating", "rating_overall_2") != everybody
    wrong = dialeval("agree", *files, "--rating", "overal")
    assert wrong.code == 2
    assert "Columns that could hold ratings: 'rating_overall_1, rating_overall_2'" in wrong.err


def test_a_metric_of_a_run_keeps_its_direction_as_scores_of_a_file(dialeval, tmp_path):
    (tmp_path / "r.csv").write_text(RATED)
    run = str(tmp_path / "run")
    assert dialeval("score", str(tmp_path / "r.csv"), "-m", "length", "-o", run).code == 0
    done = dialeval("agree", str(tmp_path / "r.csv"), "--scores", run)
    assert done.code == 0
    assert "length" in done.out
    assert "length ↑" not in done.out


def test_an_exported_table_keeps_the_directions_of_its_metrics(dialeval, rated, tmp_path):
    run, table = tmp_path / "flagged", tmp_path / "exported.csv"
    metrics = ["-m", "flags", "-m", "length", "-m", "distinct:n=1"]
    dialeval("score", str(rated / "grouped.jsonl"), *metrics, "-o", str(run))
    dialeval("export", str(run), "--to", "csv", "-o", str(table))
    (tmp_path / "elsewhere.csv").write_text("id,mine\ns0,1\ns1,3\ns2,2\n")
    tables = ["--scores", str(table), "--scores", str(tmp_path / "elsewhere.csv")]
    done = dialeval("agree", str(rated / "grouped.jsonl"), *tables, "--json")
    assert {row["metric"]: row["direction"] for row in json.loads(done.out)} == {
        "flags": "lower",
        "length": "neither",
        "distinct:n=1": "higher",
        "mine": "higher",
    }


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--test", "perm-both", "--rounds", "99"], {"test": "perm-both", "rounds": 99}),
        (
            ["--relations", "--coefficient", "pearson"],
            {"relations": True, "coefficient": "pearson"},
        ),
        (["--lower-is-better", "other"], {"lower_is_better": ["other"]}),
    ],
)
def test_the_library_finds_what_the_verb_prints(dialeval, table, arguments, options):
    """`dialeval.agree` knew neither files of scores nor tests nor relations."""
    import dialeval as library

    printed = dialeval(*with_scores(table, "--rating", "overall", *arguments, "--json"))
    scores = [table.parent / "mine.csv"]
    found = library.agree(table, scores=scores, ratings=["overall"], **options)
    assert json.loads(json.dumps(found.to_record())) == json.loads(printed.out)


def test_the_library_reports_on_raters_as_the_verb_does(dialeval, rated):
    import dialeval as library

    path = rated / "rated.jsonl"
    printed = json.loads(dialeval("raters", str(path), "--json").out)
    assert json.loads(json.dumps(library.raters(path).to_record())) == printed


def test_an_unused_column_keeps_its_name_whatever_is_in_it(dialeval, table):
    """The names were cut out of the text of a warning, at every comma."""
    text = table.read_text().replace("overall", '"overall, 1 to 5"')
    table.write_text(text)
    done = dialeval("raters", str(table))
    assert "--rating overall, 1 to 5." in done.err


def test_groups_are_counted_for_the_maximum_over_raters_too(dialeval, rated):
    arguments = ["--by", "within-item", "--target", "max-over-raters", "-m", "length"]
    (row,) = json.loads(dialeval("agree", str(rated / "grouped"), *arguments, "--json").out)
    assert row["spearman"]["groups"] == 4


def test_the_table_of_a_paper_has_metrics_down_and_qualities_across(dialeval, rated):
    from scipy import stats

    path = rated / "rated.jsonl"
    means = [(i + i + (i * 7) % 3) / 3 for i in range(10)]
    spearman = f"{stats.spearmanr(range(1, 11), means).statistic:.3f}"
    pearson = f"{stats.pearsonr(range(1, 11), means).statistic:.3f}"
    dialeval("score", str(path), "-m", "length", "-m", "distinct", "-o", str(rated / "two"))
    out = rated / "table.tex"
    done = dialeval("agree", str(rated / "two"), "-o", str(out), "--rounds", "0")
    assert (done.code, f"wrote {out}" in done.err.replace("\n", "")) == (0, True)
    text = out.read_text(encoding="utf-8")
    assert r"metric & Overall r & Overall $\rho$ \\" in text
    assert rf"length & \textbf{{{pearson}{{*}}{{*}}}} & \textbf{{{spearman}{{*}}{{*}}}} \\" in text
    assert "% length|v1|" in text
    for ending, mark in (".md", "| **"), (".html", "<strong>"):
        dialeval("agree", str(rated / "two"), "-o", str(out.with_suffix(ending)), "--rounds", "0")
        assert mark + spearman in out.with_suffix(ending).read_text().replace("\\", "")


def test_the_numbers_of_a_paper_come_out_as_csv(dialeval, rated):
    import csv

    out = rated / "table.csv"
    record = json.loads(dialeval("agree", str(rated / "run"), "-o", str(out), "--json").out)[0]
    with out.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["metric"], row["quality"], row["n"]) == ("length", "Overall", "10")
    for name in ("value", "p", "low", "high"):
        column = "spearman" + (f"_{name}" if name != "value" else "")
        assert float(row[column]) == record["spearman"][name]


def test_a_table_whose_name_says_nothing_is_refused_before_the_work(dialeval, rated):
    done = dialeval("agree", str(rated / "run"), "-o", str(rated / "table.docx"))
    assert (done.code, ".tex, .md, .csv or .html" in done.err) == (2, True)


@pytest.mark.parametrize("to", ["csv", "jsonl", "parquet"])
def test_agree_reads_what_export_writes_also_where_parts_are_lists(dialeval, rated, to):
    lists = rated / "lists"
    library.score(library.load(rated / "rated.jsonl"), [Listed(), "length"], out=lists)
    file = rated / f"scores.{to}"
    assert dialeval("export", str(lists), "-o", str(file)).code == 0
    done = dialeval("agree", str(rated / "rated.jsonl"), "--scores", str(file), "--json")
    rows = {row["metric"]: row for row in json.loads(done.out)}
    (direct,) = json.loads(dialeval("agree", str(rated / "run"), "--json").out)
    assert rows["length"]["spearman"] == direct["spearman"]
    assert rows["listed"]["n"] == 10


def test_several_tables_of_scores_are_joined(dialeval, rated):
    for metric in ("length", "distinct"):
        run = rated / f"of-{metric}"
        dialeval("score", str(rated / "rated.jsonl"), "-m", metric, "-o", str(run))
        dialeval("export", str(run), "-o", str(rated / f"{metric}.csv"))
    files = [str(rated / f"{metric}.csv") for metric in ("length", "distinct")]
    scores = ["--scores", files[0], "--scores", files[1]]
    rows = json.loads(dialeval("agree", str(rated / "rated.jsonl"), *scores, "--json").out)
    assert [row["metric"] for row in rows] == ["length", "distinct"]
