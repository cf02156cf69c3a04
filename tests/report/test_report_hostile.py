"""Whatever dialogues hold, a report shows it and nothing of it does anything."""

import csv
import io
import re

import pytest
from hostile import FORMULAS, LONE_SURROGATE, PAYLOADS
from report.page_reader import PageReader
from report.report_runs import METRICS, hostile_sample

import dialeval
from dialeval.report.build import write_report
from dialeval.report.dialogue import dialogue_view
from dialeval.report.look import environment, visible
from dialeval.runs.export import export_text
from dialeval.studies.result import markdown_table
from dialeval.text import FORMULA_STARTS, clean


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Every payload in every field of a sample, and each of them the name of a system too."""
    samples = [hostile_sample(i, text) for i, text in enumerate(PAYLOADS)]
    return dialeval.score(samples, METRICS, out=tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report([run.directory], out, title=PAYLOADS[0] + LONE_SURROGATE, rounds=99)
    return out.read_text(encoding="utf-8")


def test_no_payload_becomes_an_element_or_an_attribute(page):
    read = PageReader(page)
    assert read.problems == []
    assert (read.elements["script"], read.elements["style"]) == (1, 1)
    assert not any("pwned" in text for text in read.scripts)


def test_every_payload_is_there_as_text(page):
    text = PageReader(page).text
    missing = [one for one in PAYLOADS if visible(one) not in text]
    assert missing == []


def test_the_policy_allows_the_script_and_the_style_by_hash_and_no_address(page):
    policy = next(
        value
        for tag, name, value in PageReader(page).attributes
        if tag == "meta" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"'sha256-[^']+'|'[a-z-]+'|https?:|data:|\*", policy)) == {
        "'none'",
        *re.findall(r"'sha256-[^']+'", policy),
    }
    assert "http" not in policy


def test_nothing_steers_or_hides(page):
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\ufeff]", page
    )


def test_a_lone_surrogate_in_an_edited_answer_can_be_written(run):
    row = next(iter(run.batches())).slice(0, 1).to_pylist()[0] | {"response": LONE_SURROGATE}
    view = dialogue_view(row, run.manifest["metrics"])
    template = environment().from_string('{% import "dialogue.html" as d %}{{ d.chat(view) }}')
    assert b"half \xef\xbf\xbd of a pair" in template.render(view=view).encode("utf-8")


@pytest.mark.parametrize("text", [*PAYLOADS, LONE_SURROGATE])
def test_what_is_made_visible_keeps_its_length(text):
    assert len(visible(text)) == len(text)
    assert visible(visible(text)) == visible(text)


def _export(run, to):
    file = io.StringIO(newline="")
    export_text(run, to, file)
    return file.getvalue()


def test_no_cell_of_a_csv_file_is_a_formula(run):
    rows = list(csv.reader(io.StringIO(_export(run, "csv"), newline="")))
    assert len(rows) == len(PAYLOADS) + 1
    assert len({len(row) for row in rows}) == 1
    texts = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.e-]+", cell)]
    assert [cell for cell in texts if cell.startswith(FORMULA_STARTS)] == []
    systems = [row[rows[0].index("system")] for row in rows]
    assert "'=1+1" in systems


def test_markdown_cells_stay_cells(run):
    table = _export(run, "markdown").split("\n\n")[0]
    lines = table.splitlines()
    assert len(lines) == len(PAYLOADS) + 2
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert not re.search(r"(?<!\\)[<>`\[\]]", table)
    assert clean(table.replace("\n", "")) == table.replace("\n", "")


def test_latex_cells_stay_cells(run):
    table = _export(run, "latex")
    known = (
        r"\\(begin|end)\{tabular\}|\\(top|mid|bottom)rule|\\\\"
        r"|\\text(backslash|asciitilde|asciicircum)\{\}|\$[<>]\$|\$\\(rho|tau)\$"
    )
    bare = re.sub(known + r"|\\[&%$#_{}]|\$\\(up|down)arrow\$", "", table)
    body = "\n".join(line for line in bare.splitlines() if not line.startswith("%"))
    assert not re.search(r"[\\%$#_~^]", body)
    rows = [line for line in table.splitlines() if line.endswith("\\\\")]
    assert len(rows) == len(PAYLOADS) + 1
    assert not any(row.startswith(("[", "*")) for row in rows)  # options of the row before
    assert clean(table.replace("\n", "")) == table.replace("\n", "")


def test_a_table_in_a_notebook_holds_no_tag_but_our_own(run):
    page = run.table().as_text_table(width=10_000).html()
    assert len(re.findall(r"<tr>", page)) == len(PAYLOADS) + 1
    tags = set(re.findall(r"<(/?\w[^>]*)>", page.partition("</style>")[2]))
    own = ["div", "table", "thead", "tbody", "tr", "th", "td", "p", "code"]
    kinds = {tag.split()[0].lstrip("/") for tag in tags}
    assert kinds <= set(own)
    extra = {tag for tag in tags if " " in tag}
    assert extra <= {'div class="dialeval-shown"', 'div class="wide"', 'p class="muted"'} | {
        f'{tag} class="n"' for tag in ("th", "td")
    }


def test_a_printed_table_cannot_steer_the_terminal(run):
    text = str(run.table())
    assert all(clean(line) == line for line in text.split("\n"))
    assert len(text.split("\n")) < 2 * len(PAYLOADS)


@pytest.mark.parametrize("text", PAYLOADS)
def test_a_table_of_a_study_keeps_its_cells(text):
    header, line, row = markdown_table(["a", "b"], [[text, "x"]]).split("\n")
    assert (header, line) == ("| a | b |", "| --- | --- |")
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert not re.search(r"(?<!\\)[<>`]", row)


def test_payloads_are_many_and_different():
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60
    assert all(text.startswith(FORMULA_STARTS) for text in FORMULAS)
