"""`dialeval report` as a person types it."""

import json
import sys

import pytest


@pytest.fixture
def run(dialeval, tmp_path):
    path = tmp_path / "runs" / "bots"
    dialeval("score", "examples/four-bots.jsonl", "-m", "length", "-m", "distinct", "-o", str(path))
    return path


def test_a_page_is_written_and_not_replaced_by_chance(dialeval, run, tmp_path):
    out = tmp_path / "report.html"
    done = dialeval("report", str(run), "-o", str(out), "--rounds", "99")
    assert done.code == 0, done.err
    assert "60 dialogues" in done.err
    assert "<title>bots · dialeval report</title>" in out.read_text(encoding="utf-8")
    again = dialeval("report", str(run), "-o", str(out))
    assert (again.code, "--overwrite" in again.err) == (2, True)
    assert dialeval("report", str(run), "-o", str(out), "--overwrite", "--rounds", "99").code == 0


def test_json_says_what_was_written(dialeval, run, tmp_path):
    out = tmp_path / "r.html"
    arguments = ["-m", "length", "--title", "Bots & <b>", "--sample", "10", "--seed", "2"]
    done = dialeval("report", str(run), "-o", str(out), *arguments, "--rounds", "99", "--json")
    found = json.loads(done.out)
    assert (found["shown"], found["dialogues"], found["sampled"]) == (10, 60, True)
    assert (found["metrics"], found["bytes"]) == (["length"], out.stat().st_size)
    assert "<title>Bots &amp; &lt;b&gt;" in out.read_text(encoding="utf-8")


def test_the_command_that_repeats_it_stands_in_the_page(dialeval, run, tmp_path):
    out = tmp_path / "r.html"
    dialeval("report", str(run), "-o", str(out), "--rounds", "99")
    page = out.read_text(encoding="utf-8")
    assert f"dialeval score examples/four-bots.jsonl -m length -m distinct -o {run}" in page
    assert f"dialeval report {run} -o {out} --sample 1000 --seed 0 --rounds 99" in page


def test_the_browser_opens_it_when_asked(dialeval, run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "r.html"
    dialeval("report", str(run), "-o", str(out), "--rounds", "99", "--open")
    assert opened == [out.resolve().as_uri()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no run"),
        (["examples/four-bots.jsonl"], "is a file, not a run. Score it first"),
        (["RUN", "-m", "lenght"], "Did you mean 'length'?"),
        (["RUN", "RUN"], "given twice"),
        (["RUN", "-o", "RUN/report.html"], "lies in the run itself"),
        (["RUN", "-o", "FOLDER"], "is a folder"),
        (["RUN", "--sample", "0"], "--sample"),
        (["tests"], "is not a run"),
        (["RUNS"], "is not a run, but holds some: "),
        ([], "RUN"),
    ],
)
def test_what_makes_no_sense_is_refused(dialeval, run, tmp_path, arguments, message):
    places = {"RUNS": run.parent, "RUN": run, "FOLDER": tmp_path}
    words = arguments
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "never.html")]
    done = dialeval("report", *words)
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (tmp_path / "never.html").exists()


def test_without_jinja_it_says_what_to_install(dialeval, run, tmp_path, monkeypatch):
    from dialeval.report.look import environment

    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = dialeval("report", str(run), "-o", str(tmp_path / "r.html"))
    assert (done.code, "pip install 'dialeval[web]'" in done.err) == (2, True), done.err


def test_one_dialogue_is_not_called_dialogues(dialeval, tmp_path):
    dialeval(
        "score", "-", "-m", "length", "-o", str(tmp_path / "r"), stdin='{"response": "Yes."}\n'
    )
    done = dialeval("report", str(tmp_path / "r"), "-o", str(tmp_path / "r.html"))
    assert " 1 dialogue)" in done.err
