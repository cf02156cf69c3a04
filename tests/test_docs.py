"""The documents speak of what exists: every command, metric, file and format that they name."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from made_up import WORDS, term

import dialeval
from dialeval.cli.app import app
from dialeval.metrics.composition import Composition, save_composition
from dialeval.registry import METRICS, READERS, make_metric

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands() -> list[tuple[str, str]]:
    documented = [
        (document.name, line.split("#")[0].strip())
        for document in DOCUMENTS
        for line in document.read_text(encoding="utf-8").splitlines()
        if line.startswith("    dialeval ")
    ]
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    called = re.findall(r"^\t@\$\(BIN\)/(dialeval [^>\n]*)", recipes, re.M)
    return [*documented, *(("Makefile", command) for command in called)]


@pytest.mark.parametrize(("document", "command"), commands())
def test_a_command_in_a_document_exists(document, command, tmp_path, monkeypatch):
    # The weights that the documents fit before they score with them.
    weights = Composition((term("length", WORDS),), {"relevance": (1.0,)})
    save_composition(weights, tmp_path / "crs.json")
    monkeypatch.chdir(tmp_path)
    verb, words = typer.main.get_command(app), shlex.split(command)[1:]
    while words and hasattr(verb, "commands") and not words[0].startswith("-"):
        assert words[0] in verb.commands
        verb = verb.commands[words.pop(0)]
    known = {flag for parameter in verb.params for flag in (*parameter.opts, "--help", "-h")}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= known
    for spec in re.findall(r"-m (\S+)", command):
        name, _, options = spec.partition(":")
        assert name in METRICS.names()
        if "/" not in options and "=my-" not in options:
            make_metric(spec)


def test_the_page_of_metrics_names_every_metric_and_no_other():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = "\n".join(line.split("|")[2] for line in text.splitlines() if line.startswith("| "))
    assert set(re.findall(r"`([a-z-]+)`", rows)) == set(METRICS.names())


def test_the_page_of_python_names_everything_public():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", rows)) == set(dialeval.__all__) - {"__version__"}


def test_a_stranger_reads_the_readme_in_a_minute():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert sum(line.startswith("![") for line in lines) == 1
    for command in ("make demo", "make test"):
        assert any(line.startswith(f"    {command} ") for line in lines)


def test_the_index_lists_every_page():
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([a-z-]+\.md)\)", text)) == pages
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        "Tutorial",
        "How to",
        "Reference",
        "Explanations",
    ]


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "benchmarks" / "README.md"])
def test_no_document_holds_a_place_for_something_to_come(document):
    assert not re.search(r"^[A-Z]{4,}$", document.read_text(encoding="utf-8"), re.M)


def test_every_reader_says_what_it_reads():
    for name in READERS.names():
        assert len(READERS.get(name).summary) > 10


def test_the_logs_on_the_page_load_as_the_form_that_it_names(tmp_path):
    text = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    sections = [section for section in text.split("\n## ")[1:] if section.count("\n```") == 2]
    assert len(sections) == 12
    for section in sections:
        names, _, rest = section.partition("\n")
        ending, content = re.search(r"```(\w+)\n(.*?)```", rest, re.DOTALL).groups()
        if ending == "python":
            continue
        for number, line in enumerate(content.splitlines() if ending == "json" else [content]):
            path = tmp_path / f"log{number}.{ending}"
            path.write_text(line)
            loaded = dialeval.load(path)
            assert list(loaded), line
            assert all(f"`{name}`" in names for name in loaded.formats.values()), line


def test_links_between_the_documents_lead_somewhere():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_page_of_commands_shows_every_verb():
    shown = {command.split()[1] for name, command in commands() if name == "commands.md"}
    assert set(typer.main.get_command(app).commands) == shown


def test_the_page_of_metrics_says_which_need_context_or_references():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2:4] for line in text.splitlines() if line.startswith("| ")]
    said = {name: needs for names, needs in rows for name in re.findall(r"`([a-z-]+)`", names)}
    for name in METRICS.names():
        for need in METRICS.get(name)().needs & {"context", "references"}:
            assert need in said[name], name
    assert "references" in said["ruber"]  # its default blend takes both halves
