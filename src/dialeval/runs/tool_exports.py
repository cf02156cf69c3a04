"""A run in other tools: MLflow, Weights & Biases, Langfuse, Argilla.

langfuse   JSON: a list of scores, as `POST /api/public/scores` takes each of them. The id of a
           sample is that of its trace, as the reader of Langfuse exports has it
argilla    JSON: a list of records, as `dataset.records.from_json` reads it: texts as fields, scores
           as metadata
mlflow     a folder with a database of MLflow: a metric for each mean, signatures as parameters, the
           table of scores as an artifact
wandb      a folder with an offline run; `wandb sync` sends it, if you want that

The last two need their own packages, which are imported here only. Nothing leaves the machine.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dialeval.runs.frames import flat_batches, needed

if TYPE_CHECKING:
    from dialeval.runs.run import Run

PROJECT = "dialeval"
MOST_PARAMETER = 500
"""Characters of a parameter that every version of MLflow takes."""


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for table in flat_batches(run):
        yield from table.to_pylist()


def write_langfuse(run: Run, file: IO[str], raw: bool) -> None:
    """Writes one score for each sample and metric that has a value. Writing it again gives the
    same ids, so that Langfuse updates scores in place of adding others."""
    signatures = {label: str(signature) for label, signature in run.signatures.items()}
    scores = []
    for row in _rows(run):
        for label, signature in signatures.items():
            if row[label] is None:
                continue
            name = hashlib.sha256(f"{signature}\0{row['id']}".encode("utf-8", "replace"))
            score = {
                "id": name.hexdigest()[:32],
                "traceId": row["id"],
                "name": label,
                "value": row[label],
                "dataType": "NUMERIC",
                "metadata": {"signature": signature},
            }
            scores.append(score | ({"comment": note} if (note := row[f"{label}.note"]) else {}))
    json.dump(scores, file, ensure_ascii=False, indent=1)
    file.write("\n")


def write_argilla(run: Run, file: IO[str], raw: bool) -> None:
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
    """A name that MLflow and Argilla take: `bleu:n=2` has a sign that they do not."""
    return re.sub(r"[^\w\-./]", "_", label)


def _scores_csv(run: Run) -> str:
    from dialeval.runs.export import export_text

    text = io.StringIO()
    export_text(run, "csv", text)
    return text.getvalue()


FOLDERS: Mapping[str, Callable[[Run, Path], None]] = {
    "mlflow": log_to_mlflow,
    "wandb": log_to_wandb,
}
"""Forms that are a folder."""
