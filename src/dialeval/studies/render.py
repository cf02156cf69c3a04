"""How a study looks: on a terminal, and as Markdown for a paper, a pull request or a wiki.

`save_result` writes a file, in the form that its name ends in:

.json  everything                       .tex  tables for a paper
.csv   one number per cell              else  Markdown
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialeval.safe_text import clean, neutralise
from dialeval.storage import write_json, write_text
from dialeval.studies.result import Row, StudyResult
from dialeval.studies.study import Missing, Study, Table
from dialeval.tables import escape_latex

MORE_DIGITS = 2
"""Ours and the difference show this many more digits than the paper printed."""

NUMBERS = ("n", "published", "ours", "difference")
"""Columns that are aligned to the right."""

Lines = tuple[list[str], list[list[str]]]
"""Header and rows, as cells."""


def result_cells(rows: Sequence[Row]) -> Lines:
    """what | by | published | ours | difference | verdict | source; without empty columns."""
    header = ["what", "by", "n", "published", "ours", "difference", "", "source"]
    cells = [
        [
            row.what,
            row.ours.by if row.ours else "",
            f"{row.ours.n:,}" if row.ours and row.ours.n is not None else "",
            row.published.printed if row.published else "-",
            _ours(row),
            _signed(row),
            _verdict(row),
            row.published.source if row.published else "",
        ]
        for row in rows
    ]
    used = [i for i in range(len(header)) if any(line[i].strip("-") for line in cells)]
    return [header[i] for i in used], [[line[i] for i in used] for line in cells]


def _decimals(row: Row) -> int:
    return row.published.decimals + MORE_DIGITS if row.published else 4


def _ours(row: Row) -> str:
    if row.value is None:
        return f"- ({row.reason})"
    return f"{row.value:.{_decimals(row)}f}"


def _signed(row: Row) -> str:
    return "-" if row.difference is None else f"{row.difference:+.{_decimals(row)}f}"


def _verdict(row: Row) -> str:
    if row.fails:
        return "DIFFERS"
    return "same" if row.must_match else ""


def tables_for_people(result: StudyResult) -> list[Table]:
    return [table for table in result.tables if not table.for_programs]


def table_cells(table: Table) -> Lines:
    return list(table.header), [
        [cell if isinstance(cell, str) else _number(cell, table.decimals) for cell in row]
        for row in table.rows
    ]


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def verdict_line(result: StudyResult) -> str:
    """Returns how many of the numbers that must match do."""
    binding = sum(row.must_match for row in result.rows)
    if not binding:
        return "No number has to match here: see what is known to differ."
    met = binding - len(result.failures)
    return f"{met} of {binding} numbers that must match do, to the printed digits."


def failure_lines(result: StudyResult) -> list[str]:
    """Returns which numbers must match and do not."""
    return [f"{result.study.name}: {verdict_line(result)}"] + [
        f"{row.what}{f' ({row.ours.by})' if row.ours and row.ours.by else ''}:"
        f" published {row.published.printed if row.published else '-'}, ours {_ours(row)}"
        for row in result.failures
    ]


Listed = Sequence[tuple[Study, Sequence[Missing]]]
"""Studies, each with what it lacks here."""


def list_records(studies: Listed) -> list[dict[str, Any]]:
    """JSON-ready."""
    return [
        {
            "name": study.name,
            "paper": study.paper,
            "repeats": study.repeats,
            "cost": study.cost,
            "needs": [data.name for data in study.needs],
            "may_use": [data.name for data in study.may_use],
            "models": list(study.models),
            "metrics": list(study.metrics),
            "here": not missing,
            "missing": [{"what": lack.what, "command": lack.command} for lack in missing],
        }
        for study, missing in studies
    ]


def list_cells(studies: Listed) -> Lines:
    header = ["study", "here", "what it repeats", "paper", "takes"]
    return header, [
        [
            study.name,
            "no" if missing else "yes",
            study.repeats,
            study.cited,
            study.cost,
        ]
        for study, missing in studies
    ]


def result_markdown(result: StudyResult) -> str:
    """Heading, paper, table, what else was found, what is known to differ."""
    blocks = [f"# {result.study.name}", f"{result.study.repeats}  \n{result.study.paper}"]
    if result.rows:
        blocks += [markdown_table(*result_cells(result.rows)), verdict_line(result)]
    for table in tables_for_people(result):
        blocks += [f"## {_escaped(table.title)}", markdown_table(*table_cells(table))]
    for title, lines in (("Notes", result.notes), ("Known to differ", result.study.differs)):
        if lines:
            blocks += [f"## {title}", "\n".join(f"- {_escaped(line)}" for line in lines)]
    return "\n\n".join(blocks) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines)


def _escaped(text: str) -> str:
    """Follow-ups and names of models come from outside: no cell may end a cell or start a tag."""
    for char in "\\|<>`*_[]":
        text = text.replace(char, f"\\{char}")
    return clean(text)


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
    """Returns the table that is made for programs; where a study has none, its rows."""
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
    """Returns one `table` for each table, with lines of booktabs."""
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
