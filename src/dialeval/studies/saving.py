"""A study's result as a file: what the name ends in says how.

.json  everything                       .tex  tables for a paper
.csv   one number per cell              else  Markdown
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from dialeval.runs.export import escape_latex
from dialeval.safe_text import neutralise
from dialeval.storage import write_json, write_text
from dialeval.studies.render import result_cells, result_markdown, table_cells, tables_for_people
from dialeval.studies.result import StudyResult


def save_result(result: StudyResult, out: Path) -> None:
    match out.suffix.lower():
        case ".json":
            write_json(out, result.to_record())
        case ".csv":
            write_text(out, result_csv(result))
        case ".tex":
            write_text(out, result_latex(result))
        case _:
            write_text(out, result_markdown(result))


def result_csv(result: StudyResult) -> str:
    """The table that is made for programs; where a study has none, its rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    complete = [table for table in result.tables if table.for_programs]
    if not complete:
        header, rows = result_cells(result.rows)
        writer.writerows([[neutralise(cell) for cell in line] for line in (header, *rows)])
    for table in complete:
        writer.writerow(table.header)
        for row in table.rows:
            cells = ["" if cell is None else cell for cell in row]
            writer.writerow([neutralise(c) if isinstance(c, str) else c for c in cells])
    return text.getvalue()


def result_latex(result: StudyResult) -> str:
    """One `table` for each table, with lines of booktabs."""
    blocks = [f"% {escape_latex(result.study.paper)}", "% \\usepackage{booktabs}"]
    if result.rows:
        blocks.append(latex_table(result.study.repeats, *result_cells(result.rows)))
    blocks += [latex_table(table.title, *table_cells(table)) for table in tables_for_people(result)]
    notes = [*result.notes, *result.study.differs]
    return "\n\n".join([*blocks, "\n".join(f"% {escape_latex(note)}" for note in notes)]) + "\n"


def latex_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        "\\begin{table}",
        "\\centering\\small",
        f"\\caption{{{escape_latex(title)}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        "\\toprule",
        _latex_row(header),
        "\\midrule",
        *map(_latex_row, rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(escape_latex(cell) for cell in cells) + " \\\\"
