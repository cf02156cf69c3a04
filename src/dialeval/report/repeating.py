"""The end of a report: what measured, on what, and the commands that give the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialeval.agreement.joining import differing_fields

if TYPE_CHECKING:
    from dialeval.report.material import Material
    from dialeval.runs.run import Run
    from dialeval.scores import Signature


@dataclass(frozen=True)
class Measured:
    """One metric: its signature in each run (one if they are all the same), its paper."""

    label: str
    signatures: tuple[tuple[str, str], ...]
    differs: tuple[str, ...]
    citation: str


READING = ("format", "limit", "seed", "system_prompt", "largest_record")


@dataclass(frozen=True)
class Origin:
    """Where a run comes from. Samples that a program made have no files and no command, and a run
    on the scales of another has no command, either: that other one is not on record."""

    name: str
    sources: tuple[str, ...]
    sha256: str
    samples: int
    versions: Mapping[str, str]
    command: str


def measured(material: Material) -> list[Measured]:
    found = []
    for metric in material.metrics:
        label = metric["label"]
        signatures: dict[str, Signature] = {
            name: run.signatures[label]
            for name, run in zip(material.names, material.runs, strict=True)
        }
        texts = {name: str(one) for name, one in signatures.items()}
        same = len(set(texts.values())) == 1
        found.append(
            Measured(
                label,
                (("", next(iter(texts.values()))),) if same else tuple(texts.items()),
                () if same else tuple(differing_fields(list(signatures.values()))),
                metric["citation"],
            )
        )
    return found


def origins(material: Material) -> list[Origin]:
    return [_origin(n, run) for n, run in zip(material.names, material.runs, strict=True)]


def _origin(name: str, run: Run) -> Origin:
    data = run.manifest["data"]
    sources = [source["path"] for source in data.get("sources", ())]
    own_scales = not any(metric["calibration_given"] for metric in run.manifest["metrics"])
    return Origin(
        name,
        tuple(sources),
        data["sha256"],
        len(run),
        run.manifest["versions"],
        score_command(data, run.manifest["metrics"], str(run.directory))
        if sources and own_scales
        else "",
    )


def score_command(
    data: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], directory: str
) -> str:
    """`dialeval score FILE -m METRIC -o RUN`, ready to be pasted into a shell."""
    words = ["dialeval", "score", *(_word(source["path"]) for source in data["sources"])]
    words += [word for metric in metrics for word in ("-m", shlex.quote(metric["label"]))]
    return " ".join([*words, *_reading(data.get("read", {})), "-o", _word(directory)])


def _reading(read: Mapping[str, Any]) -> list[str]:
    """How the files were read, as options."""
    words = [
        f"--{name.replace('_', '-')} {shlex.quote(str(read[name]))}"
        for name in READING
        if name in read
    ]
    words += [
        f"--map {shlex.quote(f'{field}={c}')}" for field, c in read.get("columns", {}).items()
    ]
    words += [f"--rating {shlex.quote(column)}" for column in read.get("ratings", ())]
    words += [
        f"--scale {shlex.quote(f'{quality}={low:g}..{high:g}')}"
        for quality, (low, high) in read.get("scales", {}).items()
    ]
    return [*words, *(["--skip-bad"] if read.get("bad") == "skip" else [])]


def report_command(
    runs: Sequence[str],
    out: str,
    metrics: Sequence[str],
    title: str,
    sample: int,
    seed: int,
    rounds: int,
) -> str:
    words = ["dialeval", "report", *map(_word, runs), "-o", _word(out)]
    words += [word for metric in metrics for word in ("-m", shlex.quote(metric))]
    words += [f"--title={shlex.quote(title)}"] if title else []
    return " ".join([*words, f"--sample {sample} --seed {seed} --rounds {rounds}"])


def _word(path: str) -> str:
    """Quoted for a shell; what begins with a dash is no option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
