"""Runs a study: published | ours, and whether what must match does.

How a study looks: on a terminal, and as Markdown for a paper, a pull request or a wiki.

`save_result` writes a file, in the form that its name ends in:

.json  everything                       .tex  tables for a paper
.csv   one number per cell              else  Markdown

`save_folder` writes all of them into a folder, with pictures and further files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.pictures.drawing import save
from dialeval.progress import Progress, silent
from dialeval.storage import write_json, write_text
from dialeval.studies.study import (
    Measured,
    Missing,
    Published,
    Setting,
    Study,
    Table,
    find_data,
    find_missing,
)
from dialeval.tables import escape_latex
from dialeval.text import clean, neutralise
from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.question import ModelSource
    from dialeval.studies.coverage import PaperTable


@dataclass(frozen=True)
class Row:
    """Published beside ours. Either may be absent.

    wanted  False: whoever runs the study chose other metrics, so that ours may be absent
    """

    what: str
    published: Published | None
    ours: Measured | None
    wanted: bool = True

    @property
    def must_match(self) -> bool:
        if self.published is None or not self.published.must_match:
            return False
        return self.wanted if self.ours is None else self.ours.comparable

    @property
    def value(self) -> float | None:
        return self.ours.value if self.ours else None

    @property
    def difference(self) -> float | None:
        if self.published is None or self.value is None:
            return None
        return self.value - self.published.value

    @property
    def fails(self) -> bool:
        """A number that must match does not, or does not exist."""
        if self.published is None or not self.must_match:
            return False
        return self.value is None or not self.published.is_met_by(self.value)

    @property
    def reason(self) -> str:
        """Why there is no number of ours; empty if there is one."""
        why = self.ours.reason if self.ours else "not measured"
        return f"quoted: {why}" if self.is_quoted and not self.must_match else why

    @property
    def is_quoted(self) -> bool:
        """Whether nothing was run. A number that ran and is undefined is not quoted."""
        return self.published is not None and (self.ours is None or not self.ours.ran)

    def to_record(self) -> dict[str, Any]:
        published = self.published and {
            "value": self.published.value,
            "printed": self.published.printed,
            "source": self.published.source,
        }
        record = {
            "what": self.what,
            "state": "quoted" if self.is_quoted else "ran",
            "by": self.ours.by if self.ours else "",
            "n": self.ours.n if self.ours else None,
            "published": published,
            "ours": self.value,
            "difference": self.difference,
            "must_match": self.must_match,
            "matches": not self.fails if self.must_match else None,
        }
        return record | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True)
class StudyResult:
    """What came out. `rows` are in the order of the published numbers, then what else there is."""

    study: Study
    setting: Setting
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    drawing: Drawing | None = None
    pictures: Mapping[str, Drawing] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def failures(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.fails)

    def to_record(self) -> dict[str, Any]:
        """JSON-ready; an undefined number is None, with a reason."""
        return {
            "study": self.study.name,
            "paper": self.study.paper,
            "repeats": self.study.repeats,
            "dialeval": __version__,
            "models": list(self.setting.models),
            "metrics": list(self.setting.metrics),
            "ok": not self.failures,
            "rows": [row.to_record() for row in self.rows],
            "tables": [
                {"title": table.title, "header": list(table.header), "rows": list(table.rows)}
                for table in self.tables
            ],
            "notes": list(self.notes),
            "differs": list(self.study.differs),
        }


def run_study(
    study: Study,
    *,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    sets: Sequence[str] = (),
    positives: Sequence[str] = (),
    draw: bool = False,
    limit: int = 0,
    pairs: int = 0,
    seeds: int = 0,
    corpus: Path | None = None,
    systems: Sequence[str] = (),
    raters: Sequence[str] = (),
    sweep: bool = False,
    prices: tuple[float | None, float | None] = (None, None),
    source: ModelSource | None = None,
    progress: Progress = silent,
) -> StudyResult:
    """Runs a study with its own models and metrics, or with those given.

    Data sets are looked for by name (`dialeval.datasets.find_dataset`). What is missing is a
    `UsageError` that names all of it, with the commands that get it.
    """
    if models and not study.models:
        raise UsageError(f"the study {study.name!r} asks no model of its own: leave out --model")
    if metrics and not study.metrics:
        raise UsageError(f"the study {study.name!r} takes no metrics: leave out --metric")
    if sets and not study.takes_sets:
        raise UsageError(f"the study {study.name!r} has its own data: leave out --set")
    if positives and not study.takes_positives:
        raise UsageError(f"the study {study.name!r} makes no positives: leave out --positives")
    if limit and not study.takes_limit:
        raise UsageError(f"the study {study.name!r} reads its sets whole: leave out --limit")
    if (pairs or seeds or corpus) and not study.trains:
        raise UsageError(
            f"the study {study.name!r} trains nothing: leave out --corpus, --pairs and --seeds"
        )
    if (systems or raters or sweep) and not study.takes_systems:
        raise UsageError(
            f"the study {study.name!r} asks no chatbot: leave out --systems, --raters and --sweep"
        )
    if prices != (None, None) and not study.takes_prices:
        raise UsageError(f"the study {study.name!r} counts no tokens: leave out the prices")
    if draw and not study.draws:
        raise UsageError(f"the study {study.name!r} has no picture: leave out --plot")
    asked = tuple(models) or study.models
    # Of the sets, or of the corpus to learn from, that it takes if nobody names others.
    needs = () if (corpus if study.trains else sets) else study.needs
    if missing := find_missing(needs, () if source else asked):
        raise UsageError(
            "\n".join([f"the study {study.name!r} cannot be run here:", *map(str, missing)])
        )
    data = find_data((*study.needs, *study.may_use))
    chosen = tuple(metrics) or study.metrics
    setting = Setting(
        data,
        asked,
        chosen,
        source,
        progress,
        sets=tuple(sets),
        positives=tuple(positives),
        draw=draw,
        limit=limit,
        pairs=pairs,
        seeds=seeds,
        corpus=corpus,
        systems=tuple(systems),
        raters=tuple(raters),
        sweep=sweep,
        prices=prices,
    )
    findings = study.measure(setting)
    published = (*study.published, *findings.published)
    rows = lay_side_by_side(published, findings.measured, wanted=not metrics)
    notes, tables = tuple(findings.notes), tuple(findings.tables)
    return StudyResult(
        study, setting, rows, notes, tables, findings.drawing, findings.pictures, findings.files
    )


def save_drawings(result: StudyResult, place: Path) -> None:
    """Writes one picture into a `.svg` or `.png` file; into a directory, each figure."""
    if place.suffix:
        if result.drawing is not None:
            save(result.drawing, place)
        return
    place.mkdir(parents=True, exist_ok=True)
    alone = {} if result.drawing is None else {f"{result.study.name}.svg": result.drawing}
    for name, drawing in (result.pictures or alone).items():
        save(drawing, place / name)


def lay_side_by_side(
    published: Sequence[Published], measured: Sequence[Measured], wanted: bool = True
) -> tuple[Row, ...]:
    """Rows by what was measured: a published number that nobody measured still has one.

    wanted  whether a published number that must match fails where nobody measured it
    """
    found: dict[str, list[Measured | None]] = {}
    for ours in measured:
        found.setdefault(ours.what, []).append(ours)
    rows = [
        Row(number.what, number, one, wanted)
        for number in published
        for one in found.pop(number.what, [None])
    ]
    return (*rows, *(Row(what, None, one) for what, rest in found.items() for one in rest))


MORE_DIGITS = 2
"""Ours and the difference show this many more digits than the paper printed."""

NUMBERS = ("n", "published", "ours", "difference")
"""Columns that are aligned to the right."""

Lines = tuple[list[str], list[list[str]]]
"""Header and rows, as cells."""


def result_cells(rows: Sequence[Row]) -> Lines:
    """what | by | published | ours | difference | must match | source; without empty columns.

    ours        a number that ran; else why there is none: quoted, or undefined
    must match  `same` or `DIFFERS` where it must, `no` where it need not
    """
    header = ["what", "by", "n", "published", "ours", "difference", "must match", "source"]
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
    if row.published is None:
        return ""
    return "same" if row.must_match else "no"


def rows_for_people(result: StudyResult) -> list[Row]:
    """Without the numbers that stand in a table of the study, as long as they are not wrong."""
    return [row for row in result.rows if row.fails or not (row.ours and row.ours.in_table)]


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


def list_records(studies: Listed, tables: Sequence[PaperTable] = ()) -> list[dict[str, Any]]:
    """JSON-ready; each study with the tables of papers that it repeats."""
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
            "tables": [asdict(one) for one in tables if one.study == study.name],
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
        blocks += [markdown_table(*result_cells(rows_for_people(result))), verdict_line(result)]
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


def save_folder(result: StudyResult, folder: Path) -> None:
    """Writes tables.md, .json, .csv and .tex, the pictures, and what is to be gone on with."""
    from dialeval.pictures import save

    if result.rows or result.tables:
        for ending in ("md", "json", "csv", "tex"):
            save_result(result, folder / f"tables.{ending}")
    for name, text in result.files.items():
        write_text(folder / name, text)
    for name, drawing in result.pictures.items():
        save(drawing, folder / name)


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
        rows = result_cells(rows_for_people(result))
        blocks.append(latex_table(result.study.repeats, *rows))
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
