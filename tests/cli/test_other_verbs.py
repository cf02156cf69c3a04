from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from dialeval.model_store.catalogue import CATALOGUE
from dialeval.registry import METRICS

EXAMPLE = "examples/four-bots.jsonl"


def test_metrics_lists_every_metric(dialeval):
    done = dialeval("metrics")
    for name in METRICS.names():
        assert name in done.out


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_can_be_described(dialeval, name):
    done = dialeval("metrics", name, "--json")
    record = json.loads(done.out)
    assert record["name"] == name
    assert record["citation"]
    assert record["summary"]
    assert dialeval("metrics", name).code == 0


def test_doctor_finds_that_all_is_well(dialeval):
    done = dialeval("doctor")
    assert done.code == 0, done.out
    assert "All is well" in done.out


def test_doctor_notices_a_score_that_moved(dialeval, monkeypatch):
    import dialeval.doctor as doctor

    stored = json.loads(doctor.EXPECTED.read_text())["metrics"]
    monkeypatch.setattr(doctor, "example_scores", lambda metrics: {**stored, "length": {}})
    done = dialeval("doctor")
    assert done.code == 1
    assert "scores of length" in done.out


def test_data_check_lists_all_problems_and_exits_2(dialeval, tmp_path):
    path = tmp_path / "ratings.jsonl"
    rows = [
        {"id": "a", "response": "", "context": ["x"]},
        {"id": "a", "response": "b", "context": ["x"]},
        {"id": "c", "response": "b", "context": ["x"], "ratings": {"overall": ["N/A", 9]}},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = dialeval("data", "check", str(path), "--scale", "overall=1..5")
    assert done.code == 2
    assert f"{path}:1: response:" in done.out
    assert f"{path}:2: id:" in done.out
    assert done.out.count(f"{path}:3: ratings") == 2


def test_data_check_of_a_clean_file_exits_0(dialeval):
    done = dialeval("data", "check", EXAMPLE)
    assert done.code == 0
    assert "60" in done.out
    assert json.loads(dialeval("data", "check", EXAMPLE, "--json").out)["samples"] == 60


def test_data_convert_gives_what_score_reads(dialeval, tmp_path):
    before = json.loads(dialeval("score", EXAMPLE, "-m", "length", "--json").out)
    for name in ("x.parquet", "x.jsonl.zst", "x.jsonl.gz", "x.jsonl"):
        path = str(tmp_path / name)
        assert dialeval("data", "convert", EXAMPLE, "-o", path).code == 0
        after = json.loads(dialeval("score", path, "-m", "length", "--json").out)
        assert after["manifest"]["data"]["sha256"] == before["manifest"]["data"]["sha256"]


@pytest.fixture
def run(dialeval, tmp_path):
    path = tmp_path / "hostile.jsonl"
    rows = [
        {"id": "1", "context": ["hi"], "response": "=1+1", "system": "@bot"},
        {"id": "2", "context": ["hi"], "response": "fine & 50%", "system": "b_ot|x"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dialeval("score", str(path), "-m", "length", "-m", "bleu", "-o", str(tmp_path / "run"))
    return str(tmp_path / "run")


def test_csv_cells_never_run_as_formulas(dialeval, run):
    rows = list(csv.DictReader(io.StringIO(dialeval("export", run, "--to", "csv").out)))
    assert rows[0]["response"] == "'=1+1"
    assert rows[0]["system"] == "'@bot"
    assert rows[0]["length"] == "1.0"
    assert rows[0]["bleu.note"] == "no references"
    raw = list(csv.DictReader(io.StringIO(dialeval("export", run, "--raw").out)))
    assert raw[0]["response"] == "=1+1"


def test_jsonl_has_one_object_for_each_sample(dialeval, run):
    rows = [json.loads(x) for x in dialeval("export", run, "--to", "jsonl").out.splitlines()]
    assert [row["response"] for row in rows] == ["=1+1", "fine & 50%"]
    assert [row["length"] for row in rows] == [1.0, 3.0]


def test_markdown_and_latex_escape_what_is_special(dialeval, run):
    assert r"b\_ot\|x" in dialeval("export", run, "--to", "markdown").out
    assert r"b\_ot|x" in dialeval("export", run, "--to", "latex").out


def test_parquet_goes_to_a_file(dialeval, run, tmp_path):
    import pyarrow.parquet as pq

    out = tmp_path / "scores.parquet"
    assert dialeval("export", run, "--to", "parquet", "-o", str(out)).code == 0
    assert pq.read_table(out).column("length").to_pylist() == [1.0, 3.0]
    assert dialeval("export", run, "--to", "parquet").code == 2


def run_quickly(code: str) -> str:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_importing_dialeval_imports_nothing_heavy():
    heavy = run_quickly(
        "import sys, dialeval; import dialeval.cli.app;"
        "print([m for m in ('torch', 'transformers', 'numpy', 'pyarrow', 'nltk', 'sacrebleu')"
        " if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_reading_a_run_needs_no_torch(run):
    found = run_quickly(
        f"import sys, dialeval; r = dialeval.open_run({run!r}); r.table(); list(r.samples());"
        "print('torch' in sys.modules)"
    )
    assert found.strip() == "False"


def test_every_verb_has_help_and_says_what_it_does(dialeval):
    listing = dialeval("--help")
    assert listing.code == 0
    for verb in ("score", "export", "metrics", "data", "models", "train", "doctor"):
        assert verb in listing.out
        assert dialeval(verb, "--help").code == 0


def test_only_the_verb_that_is_run_is_made():
    import typer.main

    from dialeval.cli.app import app, app_for

    made = {verb: typer.main.get_command(app_for([verb, "--help"])) for verb in ("score", "train")}
    assert list(made["score"].commands) == ["score"]
    # A verb with verbs of its own, an unknown one and none at all get all of them.
    assert {"score", "train", "models"} <= made["train"].commands.keys()
    assert app_for(["scor"]) is app_for([]) is app


def test_an_export_never_replaces_the_run_itself(dialeval, run):
    done = dialeval("export", run, "-o", f"{run}/scores.parquet")
    assert (done.code, "lies in the run itself" in done.err) == (2, True)


def test_a_conversion_never_replaces_its_own_input(dialeval, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"context": ["a"], "response": "b"}\n')
    done = dialeval("data", "convert", str(path), "-o", str(path))
    assert (done.code, "being read" in done.err) == (2, True)


@pytest.mark.parametrize("content", [None, b"not parquet"])
def test_a_damaged_run_says_so(dialeval, run, content):
    from pathlib import Path

    scores = Path(run) / "scores.parquet"
    scores.unlink() if content is None else scores.write_bytes(content)
    done = dialeval("export", run)
    assert (done.code, "damaged" in done.err) == (2, True)


def test_what_a_run_was_made_from_is_not_written_over(dialeval, tmp_path):
    path = tmp_path / "rated.csv"
    path.write_text("id,response,rating_q_1,rating_q_2\na,yes,1,5\n")
    assert dialeval("score", str(path), "-m", "length", "-o", str(tmp_path / "run")).code == 0
    done = dialeval("export", str(tmp_path / "run"), "-o", str(path))
    assert (done.code, "what the run was made from" in done.err) == (2, True)
    assert "rating_q_2" in path.read_text()


def test_an_ending_that_says_nothing_is_not_taken_for_csv(dialeval, run, tmp_path):
    done = dialeval("export", run, "-o", str(tmp_path / "scores.xlsx"))
    assert (done.code, "cannot tell what to write" in done.err) == (2, True)
    assert not list(tmp_path.glob("*.xlsx"))


def test_a_place_that_cannot_be_written_is_a_failed_job(dialeval, run):
    done = dialeval("export", run, "-o", "/proc/nowhere/scores.csv")
    assert done.code == 1
    assert "Traceback" not in done.err


def test_the_namesake_of_the_authors_package_is_there():
    import dialeval

    assert dialeval.full.evaluate_turn
    with pytest.raises(dialeval.UsageError, match="list of turns"):
        dialeval.full.evaluate_dialog("Hi!")


@pytest.mark.parametrize(
    "spec", ["full:mode=released,layout=chat", "fed:mode=released,layout=chat"]
)
def test_an_option_that_would_be_ignored_is_refused(spec):
    from dialeval import UsageError, make_metric

    with pytest.raises(UsageError, match="leave out layout"):
        make_metric(spec)


def test_a_reader_that_has_seen_enough_is_no_failure():
    """A verb that prints line by line meets the closed pipe of `head`."""
    command = f"{sys.executable} -m dialeval data show holistic"
    done = subprocess.run(
        ["bash", "-c", f'{command} | head -n 1; exit "${{PIPESTATUS[0]}}"'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("holistic")


def test_models_check_without_a_name_checks_all_that_are_here(dialeval, monkeypatch, tmp_path):
    from dialeval.model_store import locate as inventory

    first, second, *others = inventory.list_models()
    there = [replace(one, path=tmp_path) for one in (first, second)]
    absent = [replace(one, path=None) for one in others]
    monkeypatch.setattr(inventory, "list_models", lambda: [*there, *absent])
    monkeypatch.setattr(inventory, "verify", lambda name: True)
    done = dialeval("models", "check")
    assert done.out.splitlines() == [f"{one.name}: undamaged" for one in there]
    monkeypatch.setattr(inventory, "list_models", lambda: absent)
    done = dialeval("models", "check")
    assert (done.code, "dialeval models get --preset default" in done.err) == (2, True)


def test_a_card_tells_how_a_part_was_made_also_without_its_base(dialeval, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_MODELS", str(tmp_path))
    shown = dialeval("models", "card", "minilm-l6-nli")
    assert shown.code == 0
    assert "dialeval train nli" in shown.out
    assert json.loads(dialeval("models", "card", "minilm-l6-nli", "--json").out)["base"]


def test_a_model_that_nobody_trained_here_has_no_card(dialeval, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    done = dialeval("models", "card", str(tmp_path))
    assert (done.code, "Traceback" in done.err) == (2, False)


def test_the_doctor_examines_a_run_and_exits_1_if_it_is_damaged(dialeval, tmp_path):
    import dialeval as library
    from dialeval.examples import four_bots

    run = tmp_path / "run"
    library.score(library.load(four_bots()), ["length"], out=run)
    assert dialeval("doctor", str(run)).code == 0
    scores = run / "scores.parquet"
    scores.write_bytes(scores.read_bytes()[:-1])
    done = dialeval("doctor", str(run), "--json")
    assert (done.code, "scores.parquet has" in done.out) == (1, True)
    for verb in ("report", "export", "compare", "agree"):
        done = dialeval(verb, str(run), *(["-o", str(tmp_path / "x.html")] * (verb == "report")))
        assert (done.code, "scores.parquet has" in done.err) == (2, True), (verb, done.err)


def test_the_list_of_models_says_which_languages_they_know(dialeval, monkeypatch, tmp_path):
    monkeypatch.setenv("DIALEVAL_MODELS", str(tmp_path))
    records = {one["name"]: one for one in json.loads(dialeval("models", "--json").out)}
    known = {name: entry.languages for name, entry in CATALOGUE.items()}
    assert {name: tuple(record["languages"]) for name, record in records.items()} == known
    assert ("zh",) in known.values()
    monkeypatch.setenv("COLUMNS", "300")
    assert "languages" in dialeval("models").out.splitlines()[0]


@pytest.fixture
def bots(dialeval, tmp_path):
    name = str(tmp_path / "bots")
    metrics = ("-m", "chrf", "-m", "length")
    assert dialeval("score", "examples/four-bots.jsonl", *metrics, "-o", name, "-q").code == 0
    return name


def test_an_answer_is_one_line_on_the_screen_and_a_long_one_is_cut(dialeval, tmp_path):
    said = ["So:\n     reason: none\n```\ncode\n```", "word " * 500]
    log = tmp_path / "chats.jsonl"
    log.write_text(
        "".join(json.dumps({"prompt": "Hi!\nYou", "response": one}) + "\n" for one in said)
    )
    dialeval("score", str(log), "-m", "flags", "-o", str(tmp_path / "run"))
    lines = dialeval("worst", str(tmp_path / "run")).out.splitlines()
    assert "     answer: So: reason: none ``` code ```" in lines
    (cut,) = [line for line in lines if line.endswith("... (2,500 characters)")]
    assert len(cut) < 450
    assert lines.count("     before: Hi! You") == 2


def test_the_worst_answers_are_printed_with_what_was_said_before(dialeval, bots):
    done = dialeval("worst", bots, "-m", "chrf", "-n", "3")
    assert done.code == 0, done.err
    assert done.out.startswith("Worst answers by chrf: 3 of 60 in ")
    assert done.out.count("before: ") == done.out.count("answer: ") == 3


def test_best_by_system_as_json_and_as_a_page(dialeval, bots, tmp_path):
    page = tmp_path / "best.html"
    words = ("best", bots, "--metric", "chrf", "--by", "system", "-n", "2", "--page", str(page))
    done = dialeval(*words, "--json")
    answers = json.loads(done.out)["answers"]
    systems = ["attentive", "bland", "broken", "parrot"]
    assert [one["system"] for one in answers] == [name for name in systems for _ in range(2)]
    assert all(f"<bdi>{name}</bdi></h2>" in page.read_text("utf-8") for name in systems)
    again = dialeval(*words)
    assert (again.code, "--overwrite replaces it" in again.err) == (2, True)
    assert dialeval(*words, "--overwrite").code == 0


def test_a_metric_has_to_be_named_if_there_is_no_judge(dialeval, bots):
    done = dialeval("worst", bots)
    assert (done.code, "Name one with --metric: chrf, length" in done.err) == (2, True)


def test_overwrite_without_a_page_is_refused(dialeval, bots):
    done = dialeval("worst", bots, "-m", "chrf", "--overwrite")
    assert (done.code, "add --page FILE" in done.err) == (2, True)
