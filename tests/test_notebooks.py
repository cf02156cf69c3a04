"""What a notebook shows: data frames, tables, pictures, bars; and examples/notebook.ipynb."""

from __future__ import annotations

import ast
import json
import sys
import types
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.examples import four_bots
from dialeval.sample import Rating, Sample, Turn

NOTEBOOK = Path(__file__).parent.parent / "examples" / "notebook.ipynb"


def samples() -> list[Sample]:
    return [
        Sample(
            f"s{i}",
            context=(Turn("Hi", "user"), Turn("there", "user")),
            response=text,
            references=("good day",),
            system="bot" if i % 2 else "<b>",
            ratings={"overall": Rating(given, (1, 5))} if given else {},
        )
        for i, (text, given) in enumerate(
            [("good day", (5.0, 4.0)), ("a b c", (2.0, None)), ("d", ()), ("good day to you", (4,))]
        )
    ]


@pytest.fixture(scope="module")
def run():
    return dialeval.score(samples(), metrics=["length", "bleu"])


def test_a_run_is_a_frame_with_texts_mean_ratings_and_scores(run):
    frame = run.to_pandas()
    assert list(frame.columns)[:7] == [
        *("id", "dialogue", "item", "system", "context", "response"),
        "rating_overall",
    ]
    assert frame["context"][0] == "Hi\nthere"
    assert frame["length"].tolist() == [2.0, 3.0, 1.0, 4.0]
    assert frame["rating_overall"].tolist()[:2] == [4.5, 2.0]
    assert frame["rating_overall"].isna().tolist() == [False, False, True, False]
    assert frame["bleu"].dtype == float


def test_arrow_and_csv_hold_the_same_columns(run, tmp_path):
    import csv

    from dialeval.runs.export import export

    export(run, "csv", tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    table = run.to_arrow()
    assert rows[0] == table.column_names
    assert [row[0] for row in rows[1:]] == table.column("id").to_pylist()


def test_polars_receives_the_arrow_table(run, monkeypatch):
    received: list[Any] = []
    polars = types.ModuleType("polars")
    polars.from_arrow = lambda table: received.append(table) or "frame"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", polars)
    assert run.to_polars() == "frame"
    assert received[0].equals(run.to_arrow())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_absent_is_named_with_the_way_to_get_it(run, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=f"pip install {library}"):
        getattr(run, f"to_{library}")()


def rows_of(page: str) -> list[list[str]]:
    """The texts of the cells of all tables; the page must be well-formed."""
    _, _, body = page.partition("</style>")
    tree = ElementTree.fromstring(body)
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_runs_agreement_raters_and_comparisons_show_themselves_as_tables(run):
    shown = rows_of(run._repr_html_())
    assert shown[0][:2] == ["system", "n"]
    assert shown[1][:2] == ["<b>", "2"]
    wide = rows_of(run.table(parts=True)._repr_html_())
    assert wide[:2] == [["system", "<b>", "bot"], ["n", "2", "2"]]
    agreement = dialeval.agree(run, rounds=0)
    header, *rows = rows_of(agreement._repr_html_())
    assert header[:2] == ["quality", "metric"]
    assert [row[1] for row in rows] == ["length", "bleu ↑"]
    comparison = dialeval.compare(run, rounds=99, join_by="context")
    assert rows_of(comparison._repr_html_())[0][:3] == ["metric", "<b>", "bot"]
    assert "not tested between" in comparison._repr_html_()


def test_what_a_notebook_shows_has_the_colours_of_the_report(run):
    from dialeval.report.look import stylesheet

    (accent,) = {line for line in stylesheet().splitlines() if "--line: #e4e4df" in line}
    page = run._repr_html_()
    assert accent in page
    style = page.partition("</style>")[0].partition("{")[2]
    assert ":root" not in style
    assert "body" not in style.replace("tbody", "")


def test_a_plot_is_an_object_that_a_notebook_draws(run, tmp_path):
    drawing = dialeval.compare(run, rounds=99, join_by="context").plot()
    assert drawing._repr_svg_().startswith("<svg")
    drawing.save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == drawing.svg()


class FakeShell:
    kernel = object()


@pytest.fixture
def notebook(monkeypatch):
    """IPython as a notebook has it, as far as a bar needs it."""
    drawn: list[str] = []

    class Handle:
        def update(self, markup: str) -> None:
            drawn.append(markup)

    def display(markup: str, display_id: bool) -> Handle:
        drawn.append(markup)
        return Handle()

    ipython, screen = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = FakeShell  # type: ignore[attr-defined]
    screen.HTML, screen.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    return drawn


def test_a_notebook_shows_a_bar_that_ends_full(notebook):
    dialeval.score(samples(), metrics=["length"])
    assert notebook[-1] == '<progress value="4" max="4"></progress> scoring: 4 of 4'


def test_a_caller_who_brings_a_callback_gets_no_bar(notebook):
    from dialeval.progress import silent

    dialeval.score(samples(), metrics=["length"], progress=silent)
    assert notebook == []


def executed(cells: list[dict[str, Any]]) -> list[Any]:
    """Runs the cells one after the other, as a kernel does; gives what each cell shows."""
    space: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), cell["id"], "exec"), space)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), space)
        shown.append(value)
    return shown


def test_the_notebook_of_the_examples_runs_and_shows_tables_and_pictures(capsys):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    shown = executed([cell for cell in cells if cell["cell_type"] == "code"])
    kinds = [type(value).__name__ for value in shown if value is not None]
    assert kinds == [
        *("Run", "DataFrame", "DataFrame", "Comparison", "Drawing", "Agreement", "Drawing"),
    ]
    assert all(
        hasattr(v, "_repr_html_") or hasattr(v, "_repr_svg_") for v in shown if v is not None
    )
    assert len(shown[0]) == len(list(dialeval.load(four_bots())))
    assert "\\begin{tabular}" in capsys.readouterr().out
