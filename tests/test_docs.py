"""The documents speak of what exists: every command, metric, file and format that they name."""

import re
from pathlib import Path

import pytest

from dialeval.registry import METRICS, READERS, make_metric

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
VERBS = {
    "score": set(),
    "export": set(),
    "metrics": set(),
    "doctor": set(),
    "data": {"check", "convert", "formats"},
    "models": {"get", "check"},
    "train": {"lm"},
    "agree": set(),
    "raters": set(),
}


def commands() -> list[tuple[str, str]]:
    return [
        (document.name, line.split("#")[0].strip())
        for document in DOCUMENTS
        for line in document.read_text(encoding="utf-8").splitlines()
        if line.startswith("    dialeval ")
    ]


@pytest.mark.parametrize(("document", "command"), commands())
def test_a_command_in_a_document_exists(document, command):
    words = command.split()
    if words[1].startswith("-"):
        return
    assert words[1] in VERBS
    if VERBS[words[1]] and len(words) > 2:
        assert words[2] in VERBS[words[1]] or words[2].startswith("-")
    for spec in re.findall(r"-m (\S+)", command):
        name, _, options = spec.partition(":")
        assert name in METRICS.names()
        if "/" not in options and "my-lm" not in options:
            make_metric(spec)


def test_the_readme_names_every_metric_and_no_other():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## Metrics")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^\|.*\|$", table, re.M))))
    assert set(METRICS.names()) <= named


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "benchmarks" / "README.md"])
def test_no_document_holds_a_place_for_something_to_come(document):
    assert not re.search(r"^[A-Z]{4,}$", document.read_text(encoding="utf-8"), re.M)


def test_every_reader_says_what_it_reads():
    for name in READERS.names():
        assert len(READERS.get(name).summary) > 10


def test_links_between_the_documents_lead_somewhere():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_verbs_of_this_test_are_those_of_the_command():
    from dialeval.cli.app import app

    names = {command.name for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert names == set(VERBS)
