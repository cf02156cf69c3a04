"""`dialeval compose`: fit, show, apply, and score with what was fitted."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest
from compose.made_up_runs import rated_samples, run_on, variety, words


@pytest.fixture
def runs(tmp_path):
    made = {
        "one": {"Overall": words, "Diverse": variety},
        "two": {"overall": words},
        "three": {"Diverse": variety, "Overall": words},
    }
    for name, rules in made.items():
        run_on(rated_samples(name, rules, noise=0.1), tmp_path / name)
    return [str(tmp_path / name) for name in made]


@pytest.fixture
def crs(dialeval, runs, tmp_path):
    path = str(tmp_path / "crs.json")
    done = dialeval(
        "compose", "fit", *runs, "-m", "length", "-m", "distinct:n=1", "--map", "common", "-o", path
    )
    assert done.code == 0, done.err
    return path


def test_fit_prints_and_writes_the_weights(dialeval, crs):
    record = json.loads(Path(crs).read_text())
    assert record["format"] == 1
    assert set(record["weights"]) == {"overall", "diversity"}
    assert [one["name"] for one in record["provenance"]["sets"]] == ["one", "two", "three"]
    assert record["terms"][0]["signature"] == "length|v1|unit:words"
    done = dialeval("compose", "show", crs)
    assert done.code == 0
    assert "diversity" in done.out
    assert "length|v1|unit:words" in done.out


def test_show_takes_a_quality_by_its_name_in_the_data_and_draws(dialeval, crs, tmp_path):
    picture = tmp_path / "weights.svg"
    done = dialeval(
        "compose", "show", crs, "--quality", "Diverse", "--json", "--plot", str(picture)
    )
    assert list(json.loads(done.out)["weights"]) == ["diversity"]
    assert "Weights for diversity" in picture.read_text()
    assert dialeval("compose", "show", crs, "--plot", str(picture), "--correlations").code == 0
    assert "Matrix of 2 rows and 2 columns" in picture.read_text()


def test_leave_one_out_compares_with_everything_and_writes_a_card(dialeval, runs, tmp_path):
    card = tmp_path / "card.md"
    done = dialeval(
        "compose", "fit", *runs, "-m", "length", "-m", "distinct:n=1", "--leave-one-out",
        "--card", str(card), "-o", str(tmp_path / "crs.json"), "--json",
    )  # fmt: skip
    record = json.loads(done.out)["leave_one_out"]
    assert {one["name"] for one in record["summary"]} == {
        "crs", "crs, one score", "average", "length", "distinct:n=1", "bleu:n=1"
    }  # fmt: skip
    assert len(record["trials"]) == 5
    assert "## Leave one data set out" in card.read_text()
    assert "bleu:n=1" in card.read_text()
    plain = dialeval("compose", "fit", *runs, "--leave-one-out")
    assert "Each data set left out once" in plain.out
    assert "nothing was written" in plain.err


def test_apply_gives_what_scoring_gives(dialeval, crs, runs, tmp_path):
    done = dialeval("compose", "apply", crs, runs[0], "--quality", "Diverse")
    assert done.code == 0
    applied = {row["id"]: float(row["mme-crs"]) for row in csv.DictReader(io.StringIO(done.out))}
    metric = f"mme-crs:weights={crs},quality=Diverse"
    parquet = f"{runs[0]}/scores.parquet"
    out = str(tmp_path / "scored")
    assert dialeval("score", parquet, "-m", metric, "-o", out, "-q").code == 0
    exported = dialeval("export", out, "--to", "csv").out
    for row in csv.DictReader(io.StringIO(exported)):
        assert applied[row["id"]] == pytest.approx(float(row[metric]))


def test_what_was_applied_can_be_held_against_people(dialeval, crs, runs, tmp_path):
    scores = str(tmp_path / "scores.csv")
    assert dialeval("compose", "apply", crs, runs[0], "-o", scores).code == 0
    done = dialeval(
        "agree", f"{runs[0]}/scores.parquet", "--scores", scores, "--rounds", "0", "--json"
    )
    rows = {row["quality"]: row for row in json.loads(done.out)}
    assert rows["Overall"]["spearman"]["value"] > 0.8


def test_scores_can_be_handed_in(dialeval, crs, runs, tmp_path):
    out = str(tmp_path / "scored")
    dialeval("score", f"{runs[0]}/scores.parquet", "-m", f"mme-crs:weights={crs}", "-o", out, "-q")
    lines = dialeval("export", out, "--to", "dstc10").out.splitlines()
    assert lines[0] == "dialogue_id,score"
    assert lines[1].startswith("one-0,0.")
    assert len(lines) == 61
    refused = dialeval("export", runs[0], "--to", "dstc10")
    assert refused.code == 2
    assert "one score is handed in" in refused.err


def test_the_names_that_common_joins_are_shown(dialeval):
    assert "Maintains Context" in dialeval("compose", "names").out
    assert "Relevant" in json.loads(dialeval("compose", "names", "--json").out)["relevance"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nowhere"], "no such folder"),
        (["fit", "RUN", "-m", "lenght"], "Did you mean 'length'"),
        (["fit", "RUN", "-m", "chrf"], "has no metric 'chrf'"),
        (["fit", "RUN", "--map", "nope"], "it is literal, common, or a JSON file"),
        (["fit", "RUN", "--card", "x.md"], "--card needs the numbers of --leave-one-out"),
        (["fit", "RUN", "--leave-one-out"], "there must be another"),
        (["fit", "RUN", "RUN"], "is given twice"),
        (["show", "nope"], "no weights 'nope' come with this dialeval"),
        (["show", "nope.json"], "cannot read weights: there is no such file"),
        (["show", "CRS", "--quality", "x"], "no weights for the quality 'x'"),
        (["show", "CRS", "--plot", "x.gif"], "a picture ends in .svg or .png"),
        (["apply", "CRS", "nowhere"], "no such folder"),
    ],
)
def test_wrong_input_is_told_without_a_traceback(dialeval, crs, runs, arguments, message):
    known = {"RUN": runs[0], "CRS": crs}
    done = dialeval("compose", *(known.get(word, word) for word in arguments))
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_apply_names_a_next_command_that_works(dialeval, runs, crs, tmp_path):
    done = dialeval("compose", "apply", crs, runs[0], "-o", str(tmp_path / "my scores.csv"))
    command = shlex.split(done.err.split("samples: ")[-1])
    assert command[:2] == ["dialeval", "agree"]
    assert dialeval(*command[1:], "--rounds", "0").code == 0


def test_the_papers_way_is_that_without_our_additions(dialeval, runs):
    def fitted(*options):
        done = dialeval("compose", "fit", *runs, "-m", "length", "--json", *options)
        provenance = json.loads(done.out)["provenance"]
        return provenance["prior"], provenance["even"]

    assert fitted() == (4.0, True)
    assert fitted("--paper") == fitted("--prior", "0", "--no-even") == (0.0, False)
    for contradiction in (("--prior", "3"), ("--even",), ("--scale", "minmax")):
        done = dialeval("compose", "fit", *runs, "--paper", *contradiction)
        assert done.code == 2
        assert "--paper means --prior 0, --no-even and --scale quartile" in done.err
