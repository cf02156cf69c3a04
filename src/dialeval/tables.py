"""A table of texts in the forms that people read: Markdown, LaTeX, CSV, and HTML for notebooks.

Results (scores of systems, agreement, a comparison) make such a table once; the screen, a notebook
and `-o table.tex` show the same cells. Names come from outside: no cell can end a cell, start a tag
or run in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.storage import write_text
from dialeval.text import clean, neutralise

SUFFIXES = (".tex", ".md", ".csv", ".html")


@dataclass(frozen=True)
class TextTable:
    """Cells as people read them.

    texts   how many columns on the left hold words; the others hold numbers, aligned to the right
    notes   lines below the table; `code` are lines below those, such as signatures
    bold    (row, column) of the cells that stand out
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    notes: tuple[str, ...] = ()
    title: str = ""
    code: tuple[str, ...] = ()
    bold: frozenset[tuple[int, int]] = frozenset()

    def markdown(self, raw: bool = False) -> str:
        """Returns a table of Markdown; with `raw`, text is left as it is."""
        protect = _as_it_is if raw else escape_markdown
        rules = ["---" if i < self.texts else "---:" for i in range(len(self.header))]
        lines = [
            _framed([protect(cell) for cell in self.header]),
            "|" + "|".join(rules) + "|",
        ]
        for i, row in enumerate(self.rows):
            cells = [protect(cell) for cell in row]
            marked = [f"**{c}**" if (i, j) in self.bold else c for j, c in enumerate(cells)]
            lines.append(_framed(marked))
        title = [f"**{protect(self.title)}**", ""] if self.title else []
        below = [*map(protect, self.notes), *map(_markdown_code, self.code)]
        notes = [line for note in below for line in ("", note)]
        return "\n".join([*title, *lines, *notes]) + "\n"

    def latex(self, raw: bool = False) -> str:
        """Returns a `tabular` with the lines of booktabs; notes are comments."""
        protect = _as_it_is if raw else escape_latex
        kinds = "l" * self.texts + "r" * (len(self.header) - self.texts)
        lines = ["% \\usepackage{booktabs}"]
        lines += [f"% {_one_line(self.title)}"] if self.title else []
        lines += [f"\\begin{{tabular}}{{{kinds}}}", "\\toprule"]
        lines += [" & ".join(protect(cell) for cell in self.header) + " \\\\", "\\midrule"]
        for i, row in enumerate(self.rows):
            cells = [protect(cell) for cell in row]
            marked = [f"\\textbf{{{c}}}" if (i, j) in self.bold else c for j, c in enumerate(cells)]
            lines.append(" & ".join(marked) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}"]
        below = [f"% {_one_line(note)}" for note in (*self.notes, *self.code)]
        return "\n".join([*lines, *below]) + "\n"

    def csv(self) -> str:
        """Returns the cells, without title and notes."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([[neutralise(cell) for cell in row] for row in (self.header, *self.rows)])
        return file.getvalue()

    def html(self) -> str:
        """Returns the table for a notebook or a page, in the look of reports."""
        return shown_in_notebook(self._html())

    def _html(self) -> str:
        def cell(tag: str, text: str, column: int, bold: bool = False) -> str:
            inner = f"<strong>{_escaped(text)}</strong>" if bold else _escaped(text)
            kind = "" if column < self.texts else ' class="n"'
            return f"<{tag}{kind}>{inner}</{tag}>"

        head = "".join(cell("th", text, i) for i, text in enumerate(self.header))
        body = "".join(
            "<tr>"
            + "".join(
                cell("th" if j == 0 else "td", text, j, (i, j) in self.bold)
                for j, text in enumerate(row)
            )
            + "</tr>\n"
            for i, row in enumerate(self.rows)
        )
        caption = f"<caption>{_escaped(self.title)}</caption>" if self.title else ""
        notes = "".join(f'<p class="muted">{_escaped(note)}</p>' for note in self.notes)
        notes += "".join(f'<p class="muted"><code>{_escaped(one)}</code></p>' for one in self.code)
        return (
            f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>{notes}"
        )


def write_tables(tables: Sequence[TextTable], path: Path) -> None:
    """Writes tables into one file, in the form that its name ends in."""
    match path.suffix.lower():
        case ".tex":
            text = "\n".join(table.latex() for table in tables)
        case ".md":
            text = "\n".join(table.markdown() for table in tables)
        case ".csv":
            text = "\n".join(table.csv() for table in tables)
        case ".html":
            text = f"<!doctype html>\n<meta charset=utf-8>\n{html_of(tables)}\n"
        case _:
            raise UsageError(table_ending(path))
    write_text(path, text)


def table_ending(path: Path) -> str:
    return f"{path}: the name of a table ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


def html_of(tables: Sequence[TextTable], after: Sequence[str] = ()) -> str:
    """Several tables below each other for a notebook; `after` are lines of text below them."""
    lines = "".join(f"<p>{_escaped(line)}</p>" for line in after)
    return shown_in_notebook("".join(table._html() for table in tables) + lines)


def shown_in_notebook(body: str) -> str:
    """Markup of ours with the style that it needs: a notebook has none."""
    return f'<style>{_style()}</style>\n<div class="dialeval-shown">{body}</div>'


@cache
def _style() -> str:
    """Returns the colours and the tables of the report's style sheet, for what stands in our own
    box."""
    sheet = Path(__file__).parent / "report" / "static" / "dialeval.css"
    text = sheet.read_text(encoding="utf-8")
    colours = text[text.index(":root") : text.index("*, *::before")]
    tables = text[text.index("/* Tables */") : text.index("/* Chat */")].partition("*/")[2]
    scoped = []
    for rule in tables.split("}"):
        selectors, brace, body = rule.partition("{")
        if brace:
            names = ", ".join(f".dialeval-shown {one.strip()}" for one in selectors.split(","))
            scoped.append(f"{names} {{{body}}}")
    box = (
        ".dialeval-shown { background: var(--paper); color: var(--ink); padding: 0.6rem 0.8rem;"
        " font: var(--small)/1.5 var(--sans); font-variant-numeric: tabular-nums; }\n"
        ".dialeval-shown .muted { color: var(--muted); margin: 0.15rem 0; }\n"
        ".dialeval-shown table { background: transparent; color: inherit; border: 0; margin: 0; }\n"
        ".dialeval-shown tr { background: transparent !important; }\n"
    )
    return colours.replace(":root", ".dialeval-shown") + box + "\n".join(scoped)


def _markdown_code(text: str) -> str:
    """Backticks, unless a name holds one: it would end the code."""
    return escape_markdown(text) if "`" in text else f"`{_one_line(text)}`"


def _framed(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _as_it_is(text: str) -> str:
    return text


def _escaped(text: str) -> str:
    return escape(clean(text))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def escape_markdown(text: str) -> str:
    text = clean(text)
    for char in "\\`*_[]<>|":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "ρ": r"$\rho$", "τ": r"$\tau$",
    "\N{MINUS SIGN}": "$-$", "<": "$<$", ">": "$>$",
    # After the end of a row these two would belong to it: \\[2pt] and \\*.
    "[": "{[}", "*": "{*}",
}  # fmt: skip


def escape_latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(char, char) for char in clean(text)).split())
