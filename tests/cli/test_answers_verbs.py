"""`dialeval worst` and `dialeval best` on the bundled example."""

import json

import pytest


@pytest.fixture
def run(dialeval, tmp_path):
    name = str(tmp_path / "bots")
    metrics = ("-m", "chrf", "-m", "length")
    assert dialeval("score", "examples/four-bots.jsonl", *metrics, "-o", name, "-q").code == 0
    return name


def test_the_worst_answers_are_printed_with_what_was_said_before(dialeval, run):
    done = dialeval("worst", run, "-m", "chrf", "-n", "3")
    assert done.code == 0, done.err
    assert done.out.startswith("Worst answers by chrf: 3 of 60 in ")
    assert done.out.count("before: ") == done.out.count("answer: ") == 3


def test_best_by_system_as_json_and_as_a_page(dialeval, run, tmp_path):
    page = tmp_path / "best.html"
    words = ("best", run, "--metric", "chrf", "--by", "system", "-n", "2", "--page", str(page))
    done = dialeval(*words, "--json")
    answers = json.loads(done.out)["answers"]
    systems = ["attentive", "bland", "broken", "parrot"]
    assert [one["system"] for one in answers] == [name for name in systems for _ in range(2)]
    assert all(f"<bdi>{name}</bdi></h2>" in page.read_text("utf-8") for name in systems)
    again = dialeval(*words)
    assert (again.code, "--overwrite replaces it" in again.err) == (2, True)
    assert dialeval(*words, "--overwrite").code == 0


def test_a_metric_has_to_be_named_if_there_is_no_judge(dialeval, run):
    done = dialeval("worst", run)
    assert (done.code, "Name one with --metric: chrf, length" in done.err) == (2, True)


def test_overwrite_without_a_page_is_refused(dialeval, run):
    done = dialeval("worst", run, "-m", "chrf", "--overwrite")
    assert (done.code, "add --page FILE" in done.err) == (2, True)
