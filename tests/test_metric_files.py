"""A metric from a file (`-m ./my_metric.py:EchoRate`), and what to cite for one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.metric_description import bibtex, describe_metric
from dialeval.registry import METRICS, make_metric
from dialeval.sample import Sample, Turn
from dialeval.version import __version__

ROOT = Path(__file__).parent.parent

ECHO = '''
"""How much of the response repeats the last turn."""

from dataclasses import dataclass

from dialeval import Metric, Score, option


@dataclass(frozen=True)
class EchoRate(Metric):
    """Share of the words of the response that the last turn has."""

    name = "echo-rate"
    range = (0.0, 1.0)
    direction = "lower"
    needs = frozenset({"context"})
    citation = "Doe, Roe: Echoes. ACL 2020"
    least: int = option(1, "words that a response must have", low=1)

    def score(self, sample, answers):
        words = sample.response.lower().split()
        if len(words) < self.least:
            return Score(None, note="too short")
        said = set(sample.context[-1].text.lower().split())
        return Score(sum(word in said for word in words) / len(words))


def helper():
    return None
'''


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "my_metric.py"
    path.write_text(ECHO, encoding="utf-8")
    return path


def sample(said: str, response: str) -> Sample:
    return Sample("s", context=(Turn(said, "user"),), response=response)


def test_a_class_in_a_file_scores_and_the_signature_names_the_file(file):
    run = dialeval.score([sample("do you like tea", "you like it")], [f"{file}:EchoRate"])
    assert run.scores("echo-rate") == [2 / 3]
    digest = hashlib.sha256(ECHO.encode()).hexdigest()
    assert f"|file:{digest[:12]}|" in str(run.signatures["echo-rate"])


def test_options_follow_the_class_as_they_follow_a_name(file):
    metric = make_metric(f"{file}:EchoRate:least=4")
    assert metric.label == "echo-rate:least=4"
    with pytest.raises(UsageError, match="has no option 'most'"):
        make_metric(f"{file}:EchoRate:most=4")


def test_another_content_of_the_file_is_another_signature(file):
    before = str(make_metric(f"{file}:EchoRate").signature())
    file.write_text(ECHO.replace("len(words))", "len(words) + 0.0)"), encoding="utf-8")
    assert str(make_metric(f"{file}:EchoRate").signature()) != before


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (None, "EchoRate", "No such file"),
        (ECHO, "EchoRat", "Did you mean 'EchoRate'"),
        (ECHO, "helper", "expected a class of metrics"),
        ("import nothing_of_that_name", "EchoRate", "cannot be loaded"),
        ("raise SystemExit(3)", "EchoRate", "cannot be loaded"),
        ("def broken(:", "EchoRate", "cannot be loaded"),
        (ECHO.replace('"echo-rate"', '"bleu"'), "EchoRate", "'bleu' is taken"),
        (ECHO.replace('name = "echo-rate"', ""), "EchoRate", "has no name"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(tmp_path, content, name, message):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        make_metric(f"{path}:{name}")


def test_a_file_without_a_class_is_told_which_classes_it_has(file):
    with pytest.raises(UsageError, match=r"name the class: .*\.py:EchoRate\. Metrics in it: Echo"):
        make_metric(str(file))


def test_check_metric_takes_a_class_and_a_file(file):
    length = METRICS.get("length")
    assert dialeval.check_metric(length).metric == "length"
    assert dialeval.check_metric(f"{file}:EchoRate").metric == "echo-rate"
    assert dialeval.score([sample("a", "b c")], [length]).scores("length") == [2.0]


def test_workers_on_ray_are_not_sent_a_file(file):
    with pytest.raises(UsageError, match="plugin"):
        dialeval.score([sample("a", "b")], [f"{file}:EchoRate"], on="ray")


def test_a_metric_in_a_file_is_described_with_its_citation(file):
    found = describe_metric(f"{file}:EchoRate")
    assert found.summary == "Share of the words of the response that the last turn has."
    assert "author = {Doe and Roe}" in bibtex(found.citation)


def test_a_citation_becomes_bibtex():
    first, second, own = bibtex(METRICS.get("bleu").citation).split("\n\n")
    assert first == (
        "@inproceedings{papineni2002bleu,\n"
        "  author = {Papineni and Roukos and Ward and Zhu},\n"
        "  title = {{BLEU: a Method for Automatic Evaluation of Machine Translation}},\n"
        "  booktitle = {ACL},\n"
        "  year = {2002},\n"
        "}"
    )
    assert second.startswith("@inproceedings{post2018a,")
    assert own.startswith("@software{dialeval,")


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_has_something_to_cite_and_its_braces_match(name):
    text = bibtex(METRICS.get(name).citation)
    assert text.count("{") == text.count("}")
    own = METRICS.get(name).citation.startswith("dialeval")
    assert len(re.findall(r"^@", text, flags=re.MULTILINE)) >= (1 if own else 2)
    assert all(re.search(r"year = \{\d{4}\}", e) for e in text.split("\n\n")[:-1])


def test_the_citation_file_names_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in text
    assert "\ncff-version: 1.2.0\n" in "\n" + text
