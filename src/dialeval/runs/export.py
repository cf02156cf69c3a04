"""A run in the formats that other programs read.

    csv, jsonl, parquet   one row per sample: who said what to whom, mean ratings, all scores
    latex, markdown       the summary table, for papers and pages
    dstc10                dialogue_id and score: to hand in to an evaluation of metrics
    langfuse   JSON: a list of scores, as `POST /api/public/scores` takes each of them. The id of a
               sample is that of its trace, or `TRACE?observation=OBSERVATION`, as the reader of
               Langfuse exports has it
    argilla    JSON: a list of records, as `dataset.records.from_json` reads it: texts as fields,
               scores as metadata
    mlflow     a folder with a database of MLflow: a metric for each mean, signatures as parameters,
               the table of scores as an artifact
    wandb      a folder with an offline run; `wandb sync` sends it, if you want that

The last two need their own packages, which are imported here only. Nothing leaves the machine. Text
in CSV that a spreadsheet would run is neutralised (`text.py`), unless the caller asks for the text
as it is. Numbers are never touched.

A data frame of a run, and the file that `dialeval export --to csv` writes, has one row per sample:

id, dialogue, item, system    names
context, response             texts; the turns of a context stand below each other
rating_QUALITY                the mean over the raters
METRIC, METRIC.PART, ...      scores; a list of numbers where a part has several
METRIC.note                   why there is no score

pandas and polars are imported here only, and only if somebody asks for their frames.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.storage import PARQUET, atomic_path
from dialeval.text import neutralise

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from dialeval.runs.run import Run


def export(run: Run, to: str, destination: Path, *, raw: bool = False) -> None:
    """Writes the run to a file; it appears whole or not at all."""
    if destination.resolve().parent == run.directory.resolve():
        raise UsageError(f"{destination} lies in the run itself; choose another place for it")
    sources = [source["path"] for source in run.manifest["data"].get("sources", ())]
    if any(Path(source).resolve() == destination.resolve() for source in sources):
        raise UsageError(f"{destination} is what the run was made from; choose another file")
    if to in FOLDERS:
        FOLDERS[to](run, destination)
        return
    with atomic_path(destination) as temporary:
        if to == "parquet":
            _write_parquet(run, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                export_text(run, to, file, raw=raw)


def export_text(run: Run, to: str, file: IO[str], *, raw: bool = False) -> None:
    """Writes any of the text formats to an open file."""
    if to not in _WRITERS:
        known = [*_WRITERS, "parquet", *FOLDERS]
        raise UsageError(
            f"cannot export to {to!r}.{did_you_mean(to, known)} Known: {', '.join(known)}"
        )
    _WRITERS[to](run, file, raw)


def _write_csv(run: Run, file: IO[str], raw: bool) -> None:
    writer = csv.writer(file)
    protect = (lambda text: text) if raw else neutralise
    for number, table in enumerate(flat_batches(run)):
        if number == 0:
            writer.writerow([protect(name) for name in table.column_names])
        for row in table.to_pylist():
            writer.writerow(
                ["" if cell is None
                 else cell if isinstance(cell, float)
                 else protect(_cell(cell))
                 for cell in row.values()]
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
    """Yields samples and scores as flat dictionaries, without missing ratings."""
    for table in flat_batches(run):
        for row in table.to_pylist():
            yield {
                name: value
                for name, value in row.items()
                if value is not None or not name.startswith("rating_")
            }


def _write_markdown(run: Run, file: IO[str], raw: bool) -> None:
    file.write(run.table().as_text_table(width=10_000).markdown(raw))


def _write_latex(run: Run, file: IO[str], raw: bool) -> None:
    file.write(run.table().as_text_table(width=10_000).latex(raw))


def _write_dstc10(run: Run, file: IO[str], raw: bool) -> None:
    """One score for each sample, in the order of the file: the columns that the scripts of DSTC10
    track 5 read (they cut an id at `|`, behind which a quality may stand). A sample without a score
    has an empty cell."""
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


PROJECT = "dialeval"
MOST_PARAMETER = 500
"""Characters of a parameter that every version of MLflow takes."""


OBSERVATION = "?observation="
"""Stands between the ids of a trace and of an observation in it, as in Langfuse's own addresses."""


def _write_langfuse(run: Run, file: IO[str], raw: bool) -> None:
    """Writes one score for each sample and metric that has a value. Writing it again gives the
    same ids, so that Langfuse updates scores in place of adding others."""
    signatures = {label: str(signature) for label, signature in run.signatures.items()}
    scores = []
    for row in _rows(run):
        trace, _, observation = row["id"].partition(OBSERVATION)
        target = {"traceId": trace} | ({"observationId": observation} if observation else {})
        for label, signature in signatures.items():
            if row[label] is None:
                continue
            name = hashlib.sha256(f"{signature}\0{row['id']}".encode("utf-8", "replace"))
            score = {
                "id": name.hexdigest()[:32],
                **target,
                "name": label,
                "value": row[label],
                "dataType": "NUMERIC",
                "metadata": {"signature": signature},
            }
            scores.append(score | ({"comment": note} if (note := row[f"{label}.note"]) else {}))
    json.dump(scores, file, ensure_ascii=False, indent=1)
    file.write("\n")


def _write_argilla(run: Run, file: IO[str], raw: bool) -> None:
    """Writes one record for each sample. A value that is missing is left out of the metadata."""
    records = []
    for row in _rows(run):
        scores = {_plain_name(label): row[label] for label in run.metrics if row[label] is not None}
        records.append(
            {
                "id": row["id"],
                "status": "pending",
                "fields": {"context": row["context"], "response": row["response"] or ""},
                "metadata": {"system": row["system"], "dialogue": row["dialogue"], **scores},
                "suggestions": {},
                "responses": {},
                "vectors": {},
            }
        )
    json.dump(records, file, ensure_ascii=False, indent=1)
    file.write("\n")


def log_to_mlflow(run: Run, destination: Path) -> None:
    """Adds a run to the experiment `dialeval` in a folder: a database, and artifacts beside it.

    MLflow 3 refuses folders of plain files. Look at it: mlflow ui --backend-store-uri
    sqlite:///FOLDER/mlflow.db
    """
    mlflow = needed("mlflow")
    folder = destination.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    found = client.get_experiment_by_name(PROJECT)
    artifacts = (folder / "artifacts").as_uri()
    place = found.experiment_id if found else client.create_experiment(PROJECT, artifacts)
    made = client.create_run(place, run_name=run.directory.name).info.run_id
    for label, signature in run.signatures.items():
        client.log_param(made, _plain_name(label), str(signature)[:MOST_PARAMETER])
    for name, value in _means(run).items():
        client.log_metric(made, name, value)
    client.log_text(made, _scores_csv(run), "scores.csv")
    client.log_dict(made, run.manifest, "manifest.json")
    client.set_terminated(made)


def log_to_wandb(run: Run, destination: Path) -> None:
    """Writes an offline run of Weights & Biases into a folder."""
    wandb = needed("wandb")
    destination.mkdir(parents=True, exist_ok=True)
    signatures = {label: str(signature) for label, signature in run.signatures.items()}
    session = wandb.init(
        project=PROJECT,
        name=run.directory.name,
        dir=str(destination),
        mode="offline",
        config={"signatures": signatures, "samples": len(run)},
    )
    names = ["id", "system", "context", "response", *run.metrics]
    rows = [[row[name] for name in names] for row in _rows(run)]
    session.log({**_means(run), "scores": wandb.Table(columns=names, data=rows)})
    session.finish()


def _means(run: Run) -> dict[str, float]:
    """`system/metric` -> mean; without the system where there is only one without a name."""
    systems = run.manifest["systems"]
    alone = len(systems) == 1 and not systems[0]["name"]
    return {
        _plain_name(label if alone else f"{system['name'] or 'unnamed'}/{label}"): summary["mean"]
        for system in systems
        for label, summary in system["scores"].items()
        if summary["mean"] is not None
    }


def _plain_name(label: str) -> str:
    """Returns a name that MLflow and Argilla take: `bleu:n=2` has a sign that they do not."""
    return re.sub(r"[^\w\-./]", "_", label)


def _scores_csv(run: Run) -> str:
    text = io.StringIO()
    export_text(run, "csv", text)
    return text.getvalue()


FOLDERS: Mapping[str, Callable[[Run, Path], None]] = {
    "mlflow": log_to_mlflow,
    "wandb": log_to_wandb,
}
"""Forms that are a folder."""

_WRITERS: Mapping[str, Callable[[Run, IO[str], bool], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "dstc10": _write_dstc10,
    "langfuse": _write_langfuse,
    "argilla": _write_argilla,
}


NAMES = ("id", "dialogue", "item", "system")


def flat_batches(run: Run) -> Iterator[pa.Table]:
    """Yields the rows of a run, some at a time, all with the same columns."""
    import pyarrow as pa

    qualities, scored = _qualities(run), score_columns(run)
    for batch in run.batches():
        context = [
            "\n".join(turn["text"] for turn in turns)
            for turns in batch.column("context").to_pylist()
        ]
        columns: dict[str, Any] = {name: batch.column(name) for name in NAMES}
        columns |= {"context": pa.array(context, pa.string()), "response": batch.column("response")}
        ratings = [dict(pairs) for pairs in batch.column("ratings").to_pylist()]
        for quality in qualities:
            means = [_mean(one.get(quality)) for one in ratings]
            columns[f"rating_{quality}"] = pa.array(means, pa.float64())
        columns |= {name: batch.column(name) for name in scored}
        yield pa.table(columns)


def to_arrow(run: Run) -> pa.Table:
    import pyarrow as pa

    batches = list(flat_batches(run))
    if not batches:
        raise UsageError(f"the run {run.directory} holds no samples")
    return pa.concat_tables(batches)


def to_pandas(run: Run) -> pd.DataFrame:
    needed("pandas")
    return to_arrow(run).to_pandas()


def to_polars(run: Run) -> pl.DataFrame:
    frames: Any = needed("polars")
    frame: pl.DataFrame = frames.from_arrow(to_arrow(run))
    return frame


def needed(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise UsageError(f"{library} is not installed: pip install {library}") from None


def _mean(rating: Mapping[str, Any] | None) -> float | None:
    given = [value for value in rating["values"] if value is not None] if rating else []
    return sum(given) / len(given) if given else None


def score_columns(run: Run) -> list[str]:
    """Returns the columns of the scores: of each metric the value, what it was made of, and a
    note."""
    columns = []
    for metric in run.manifest["metrics"]:
        label = metric["label"]
        columns.append(label)
        columns += [f"{label}.raw"] if metric["calibration"] else []
        columns += [f"{label}.{part['name']}" for part in metric["parts"]]
        columns.append(f"{label}.note")
    return columns


def _qualities(run: Run) -> list[str]:
    found: dict[str, None] = {}
    for batch in run.batches(["ratings"]):
        for ratings in batch.column(0).to_pylist():
            found.update(dict.fromkeys(quality for quality, _ in ratings))
    return list(found)
