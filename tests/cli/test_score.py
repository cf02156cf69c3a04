import json
import subprocess
import sys

import pytest

EXAMPLE = "examples/four-bots.jsonl"


def test_the_readmes_command_prints_a_row_for_each_system(dialeval):
    done = dialeval("score", EXAMPLE, "-m", "bleu", "-m", "length")
    assert done.code == 0
    rows = {line.split()[0] for line in done.out.splitlines() if line.strip()}
    assert {"attentive", "bland", "broken"} <= rows
    assert "bleu|v3|n:4|mode:paper" in done.out
    assert "60 responses" in done.out


def test_a_run_is_kept_and_shown_again(dialeval, tmp_path):
    out = str(tmp_path / "run")
    first = dialeval("score", EXAMPLE, "-m", "length", "-o", out)
    again = dialeval("score", EXAMPLE, "-m", "length", "-o", out)
    assert (first.code, again.code) == (0, 0)
    assert first.out == again.out


def test_json_is_json_and_nothing_else(dialeval):
    done = dialeval("score", EXAMPLE, "-m", "length", "--json")
    record = json.loads(done.out)
    assert [row["system"] for row in record["table"]] == [
        "attentive",
        "bland",
        "broken",
        "parrot",
    ]
    assert record["manifest"]["metrics"][0]["scored"] == 60


def test_limit_takes_the_first_and_seed_takes_any(dialeval):
    def systems(*more):
        done = dialeval("score", EXAMPLE, "-m", "length", "--limit", "9", "--json", *more)
        return json.loads(done.out)["manifest"]["data"]

    first, one, again, two = (
        systems(),
        systems("--seed", "1"),
        systems("--seed", "1"),
        systems("--seed", "2"),
    )
    assert first["samples"] == one["samples"] == 9
    assert one == again
    assert len({first["sha256"], one["sha256"], two["sha256"]}) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", EXAMPLE, "-m", "belu"], "Did you mean 'bleu'?"),
        (["score", EXAMPLE, "-m", "bleu:n=7"], "at most 4"),
        (["score", EXAMPLE, "-m", "bleu:mode=papr"], "Did you mean 'paper'?"),
        (["score", "nowhere.jsonl", "-m", "bleu"], "nowhere.jsonl"),
        (["score", EXAMPLE, "-m", "bleu", "--format", "chatt"], "Did you mean 'chat'?"),
        (["score", EXAMPLE, "-m", "bleu", "--scale", "overall=5..1"], "LOW..HIGH"),
        (["score", EXAMPLE, "-m", "bleu", "--map", "response"], "NAME=VALUE"),
        (["score", EXAMPLE, "-m", "length", "--calibration", "nowhere"], "no such folder"),
        (["metrics", "rogue"], "Did you mean 'rouge'?"),
        (["export", "nowhere"], "no such folder"),
        (["export", EXAMPLE], "is a file, not a run. Score it first: dialeval score"),
        (["show", "README.md"], "is a file, not a run"),
        (["export", "tests"], "is not a run: it has no manifest.json"),
        (["score", EXAMPLE, "-m", "length", "--seed", "3"], "add --limit N"),
        (["score", EXAMPLE, "-m", "length", "-o", "README.md/x"], "cannot create README.md/x"),
        (["augment", EXAMPLE, "--with", "eda", "-o", "tests"], "tests is a directory"),
        (["data", "convert", EXAMPLE, "-o", "README.md/x.jsonl"], "is no directory"),
        (["nonsense"], "No such command"),
    ],
)
def test_wrong_words_get_a_helpful_message_and_exit_2(dialeval, arguments, message):
    done = dialeval(*arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_bad_input_is_listed_completely_and_exits_2(dialeval, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"response": 1}\n{"context": ["hi"], "response": "yes"}\n{nonsense\n')
    done = dialeval("score", str(path), "-m", "length", "--format", "jsonl")
    assert done.code == 2
    assert f"{path}:1: response:" in done.err
    assert f"{path}:3:" in done.err
    skipping = dialeval("score", str(path), "-m", "length", "--format", "jsonl", "--skip-bad")
    assert skipping.code == 0
    assert "2 bad records skipped" in skipping.out
    path.write_text('{"response": 1}\n{nonsense\n')
    nothing = dialeval("score", str(path), "-m", "length", "--format", "jsonl", "--skip-bad")
    assert nothing.code == 2
    assert "nothing was scored: all of 2 records have errors" in nothing.err


def test_odd_input_is_counted_once_and_listed_if_asked(dialeval, tmp_path):
    path = tmp_path / "odd.jsonl"
    path.write_text(
        '{"context": ["Hi"], "response": ""}\n{"context": ["Hi"], "response": "Yes."}\n'
    )
    done = dialeval("score", str(path), "-m", "length")
    assert (done.out + done.err).count("in the input") == 1
    assert "1 warning in the input" in done.out
    assert "odd.jsonl:1: response: empty" not in done.err
    assert "odd.jsonl:1: response: empty" in dialeval("score", str(path), "-m", "length", "-v").err


def test_hostile_text_never_reaches_the_terminal(dialeval, tmp_path):
    path = tmp_path / "hostile.jsonl"
    record = {"context": ["hi"], "response": "x", "system": "\x1b[31mred\u202e\x07[bold]"}
    path.write_text(json.dumps(record) + "\n")
    done = dialeval("score", str(path), "-m", "length")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "red" in done.out
    assert "[bold]" in done.out


def test_standard_input_is_read(dialeval):
    done = dialeval(
        "score", "-", "-m", "length", "--json", stdin='{"context": ["a"], "response": "b c"}\n'
    )
    assert json.loads(done.out)["table"][0]["scores"]["length"] == 2.0


def test_two_metrics_may_share_a_name_with_other_options(dialeval):
    done = dialeval("score", EXAMPLE, "-m", "bleu", "-m", "bleu:n=2", "--json")
    assert [m["label"] for m in json.loads(done.out)["manifest"]["metrics"]] == ["bleu", "bleu:n=2"]


def test_without_a_metric_the_judge_scores_and_shows_its_sub_judgements(dialeval, embedded_models):
    done = dialeval("score", EXAMPLE, "--limit", "3")
    assert done.code == 0, done.err
    assert {"judge", "judge.relevance", "judge.novelty"} <= {
        word for line in done.out.splitlines() for word in line.split()
    }
    assert "judge.low" not in done.out


@pytest.mark.parametrize(
    "words",
    [("--max-requests", "5"), ("--max-tokens", "9"), ("--price-in", "1"), ("--key-env", "K")],
)
def test_limits_without_a_metric_that_asks_a_server_are_refused(dialeval, tmp_path, words):
    done = dialeval("score", EXAMPLE, "-m", "length", *words)
    assert done.code == 2
    assert "none of length does" in done.err
    dialeval("score", EXAMPLE, "-m", "length", "-o", str(tmp_path / "run"))
    added = dialeval("score", "--add", "distinct", str(tmp_path / "run"), *words)
    assert (added.code, "none of distinct does" in added.err) == (2, True)


def test_a_language_model_as_a_judge_has_to_be_named(dialeval):
    done = dialeval("score", EXAMPLE, "-m", "llm-judge")
    assert done.code == 2
    assert "llm-judge: name a model" in done.err


def test_a_model_that_is_not_here_says_how_to_get_it(dialeval):
    done = dialeval("score", EXAMPLE, "-m", "full")
    assert done.code == 2
    assert "dialeval models get smollm2-135m" in done.err


def test_a_directory_is_no_file_to_export_to(dialeval, tmp_path):
    run, folder = tmp_path / "run", tmp_path / "out"
    dialeval("score", EXAMPLE, "-m", "length", "-o", str(run))
    folder.mkdir()
    done = dialeval("export", str(run), "--to", "csv", "-o", str(folder))
    assert (done.code, done.err) == (
        2,
        f"{folder} is a directory; name a file in it, or another one\n",
    )


def test_a_probe_is_no_run_and_is_to_be_scored_first(dialeval, tmp_path):
    (tmp_path / "probe.json").write_text("{}")
    done = dialeval("export", str(tmp_path))
    assert done.code == 2
    assert f"is a probe, not a run. Score it first: dialeval score {tmp_path}" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", EXAMPLE], "With -o, repeat the command to resume."),
        (["train", "lm", "--data", "x", "-o", "y"], "Interrupted. Repeat the command to resume."),
        (["doctor"], "Interrupted.\n"),
    ],
)
def test_an_interrupted_verb_says_whether_it_can_be_resumed(
    dialeval, monkeypatch, arguments, message
):
    def interrupt(self, context):
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperCommand.invoke", interrupt, raising=False)
    done = dialeval(*arguments)
    assert (done.code, message in done.err) == (130, True), done.err


def test_scoring_imports_neither_pandas_nor_pictures_and_frames_work_afterwards(tmp_path):
    code = """
import sys
from dialeval.cli import main
try:
    main()
except SystemExit:
    pass
slow = {"pandas", "pyarrow.compute", "pyarrow.dataset", "dialeval.pictures", "torch"}
print(sorted(slow & sys.modules.keys()))
import pandas, pyarrow
frame = pandas.DataFrame({"a": [1.5, None], "b": pandas.Categorical(["x", None])})
print(pyarrow.Table.from_pandas(frame).to_pydict(), len(pyarrow.table({"a": [1]}).to_pandas()))
"""
    row = {"id": "1", "context": ["Hello."], "response": "Hi."}
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    command = [sys.executable, "-c", code, "score", str(tmp_path / "one.jsonl"), "-m", "length"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "{'a': [1.5, None], 'b': ['x', None]} 1"]
