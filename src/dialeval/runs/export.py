"""A run in the formats that other programs read.

csv, jsonl, parquet   one row per sample: who said what to whom, mean ratings, all scores
latex, markdown       the summary table, for papers and pages
dstc10                dialogue_id and score: to hand in to an evaluation of metrics

Text in CSV that a spreadsheet would run is neutralised (`safe_text.py`), unless the caller asks
for the text as it is. Numbers are never touched.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.safe_text import clean, neutralise
from dialeval.storage import PARQUET, atomic_path

if TYPE_CHECKING:
    from dialeval.runs.run import Run


def export(run: Run, to: str, destination: Path, *, raw: bool = False) -> None:
    """Writes the run to a file; it appears whole or not at all."""
    if destination.resolve().parent == run.directory.resolve():
        raise UsageError(f"{destination} lies in the run itself; choose another place for it")
    sources = [source["path"] for source in run.manifest["data"].get("sources", ())]
    if any(Path(source).resolve() == destination.resolve() for source in sources):
        raise UsageError(f"{destination} is what the run was made from; choose another file")
    with atomic_path(destination) as temporary:
        if to == "parquet":
            _write_parquet(run, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                export_text(run, to, file, raw=raw)


def export_text(run: Run, to: str, file: IO[str], *, raw: bool = False) -> None:
    """Writes any of the text formats to an open file."""
    if to not in _WRITERS:
        known = [*_WRITERS, "parquet"]
        raise UsageError(
            f"cannot export to {to!r}.{did_you_mean(to, known)} Known: {', '.join(known)}"
        )
    _WRITERS[to](run, file, raw)


def _write_csv(run: Run, file: IO[str], raw: bool) -> None:
    names = _column_names(run)
    writer = csv.writer(file)
    protect = (lambda text: text) if raw else neutralise
    writer.writerow([protect(name) for name in names])
    for row in _rows(run):
        cells = [row.get(name) for name in names]
        writer.writerow(
            ["" if cell is None else protect(_cell(cell)) if not isinstance(cell, float) else cell
             for cell in cells]
        )  # fmt: skip


def _cell(cell: Any) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)


def _write_jsonl(run: Run, file: IO[str], raw: bool) -> None:
    for row in _rows(run):
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_parquet(run: Run, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for batch in run.batches():
        table = pa.Table.from_batches([batch])
        writer = writer or pq.ParquetWriter(path, table.schema, **PARQUET)
        writer.write_table(table)
    if writer is None:
        raise UsageError(f"the run {run.directory} holds no samples to export")
    writer.close()


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    """Samples and scores as flat dictionaries, without what is empty everywhere by design."""
    score_columns = _score_columns(run)
    for batch in run.batches():
        for row in batch.to_pylist():
            flat: dict[str, Any] = {
                name: row[name] for name in ("id", "dialogue", "item", "system")
            }
            flat["context"] = "\n".join(turn["text"] for turn in row["context"])
            flat["response"] = row["response"]
            for quality, rating in row["ratings"]:
                given = [value for value in rating["values"] if value is not None]
                flat[f"rating_{quality}"] = sum(given) / len(given) if given else None
            flat |= {name: row[name] for name in score_columns}
            yield flat


def _score_columns(run: Run) -> list[str]:
    columns = []
    for metric in run.manifest["metrics"]:
        label = metric["label"]
        columns.append(label)
        columns += [f"{label}.raw"] if metric["calibration"] else []
        columns += [f"{label}.{part['name']}" for part in metric["parts"]]
        columns.append(f"{label}.note")
    return columns


def _column_names(run: Run) -> list[str]:
    qualities: dict[str, None] = {}
    for batch in run.batches(["ratings"]):
        for ratings in batch.column(0).to_pylist():
            qualities.update(dict.fromkeys(quality for quality, _ in ratings))
    ratings_columns = [f"rating_{quality}" for quality in qualities]
    texts = ["id", "dialogue", "item", "system", "context", "response"]
    return [*texts, *ratings_columns, *_score_columns(run)]


def _write_markdown(run: Run, file: IO[str], raw: bool) -> None:
    header, *rows = run.table().text(width=10_000)
    escape = (lambda text: text) if raw else _escape_markdown
    file.write("| " + " | ".join(escape(cell) for cell in header) + " |\n")
    file.write("|---|" + "---:|" * (len(header) - 1) + "\n")
    for row in rows:
        file.write("| " + " | ".join(escape(cell) for cell in row) + " |\n")
    for signature in run.table().signatures:
        # A name with a backtick would end the code.
        shown = escape(signature) if "`" in signature else f"`{' '.join(clean(signature).split())}`"
        file.write(f"\n{shown}\n")


def _escape_markdown(text: str) -> str:
    text = clean(text)
    for char in "\\`*_[]<>|":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


def _write_latex(run: Run, file: IO[str], raw: bool) -> None:
    header, *rows = run.table().text(width=10_000)
    escape = (lambda text: text) if raw else escape_latex
    file.write(f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}\n\\hline\n")
    file.write(" & ".join(escape(cell) for cell in header) + " \\\\\n\\hline\n")
    for row in rows:
        file.write(" & ".join(escape(cell) for cell in row) + " \\\\\n")
    file.write("\\hline\n\\end{tabular}\n")
    for signature in run.table().signatures:
        file.write(f"% {' '.join(clean(signature).split())}\n")


def _write_dstc10(run: Run, file: IO[str], raw: bool) -> None:
    """One score for each sample, in the order of the file. The form that DSTC10 track 5 asked for
    stood in a document for its participants and is not public: this is what its organisers need to
    join scores, the id of their files and a number. A sample without a score has an empty cell."""
    labels = [label for label in run.metrics if label.partition(":")[0] == "mme-crs"]
    labels = labels if len(labels) == 1 else run.metrics
    if len(labels) != 1:
        raise UsageError(
            f"one score is handed in, but the run {run.directory} has {len(labels)} metrics:"
            f" {', '.join(labels)}. Score with a single one."
        )
    protect = (lambda text: text) if raw else neutralise
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["dialogue_id", "score"])
    for batch in run.batches(["id", labels[0]]):
        for ident, score in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            writer.writerow([protect(ident), "" if score is None else repr(score)])


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    # After the end of a row these two would belong to it: \\[2pt] and \\*.
    "[": "{[}", "*": "{*}",
}  # fmt: skip


def escape_latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(char, char) for char in clean(text)).split())


_WRITERS: Mapping[str, Callable[[Run, IO[str], bool], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "dstc10": _write_dstc10,
}
