"""The report: numbers gathered, dialogues chosen and rendered, one page written.

The page stands alone. Its policy (a `meta` element) lets it use the style sheet and the script
whose hashes it names, and nothing else: no request leaves, whatever the dialogues hold. It works
without the script too; sorting, searching and the keyboard need it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.comparison import Comparison, compare_joined
from dialeval.agreement.drawings import draw_comparison
from dialeval.agreement.findings import verdict
from dialeval.agreement.joining import differing_fields
from dialeval.errors import UsageError
from dialeval.pictures import histogram
from dialeval.report.look import environment
from dialeval.report.material import (
    SHOWN_EXTREMES,
    Extremes,
    ReportData,
    extremes,
    gather,
    open_runs,
    select,
)
from dialeval.report.page import (
    DialogueCard,
    ExtremeLine,
    cards,
    extreme_lines,
    inline_svg,
    render_page,
)
from dialeval.report.tables import people, pooled_scores, summaries
from dialeval.storage import write_text

if TYPE_CHECKING:
    from dialeval.progress import Progress
    from dialeval.runs.run import Run
    from dialeval.scores import Signature

SAMPLE = 1000
MOST_PAIR_PICTURES = 3

Stage = Callable[[str], "Progress | None"]
"""Called with the name of each stage; returns the function that hears the progress of it."""


@dataclass(frozen=True)
class Written:
    """The report that was written, for people and programs."""

    path: str
    bytes: int
    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    dialogues: int
    shown: int
    brief: int
    """Shown without what stands behind their scores, because the page would be too large."""
    sampled: bool
    seed: int


@dataclass(frozen=True)
class ExtremesView:
    """A heading with the best and the worst of one metric, as lines that link to the dialogues."""

    title: str
    label: str
    direction: str
    best: tuple[ExtremeLine, ...]
    worst: tuple[ExtremeLine, ...]


def write_report(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    metrics: Sequence[str] = (),
    title: str = "",
    sample: int = SAMPLE,
    seed: int = 0,
    rounds: int = 1999,
    overwrite: bool = False,
    workers: int = 1,
    stage: Stage = lambda what: None,
) -> Written:
    """Writes one self-contained HTML file from one run, or from several side by side."""
    destination = Path(out)
    environment()
    opened = open_runs(runs)
    _check_destination(destination, [run.directory for run in opened], overwrite)
    stage("reading")
    material = gather(opened, metrics)
    command = report_command(
        [str(run) for run in runs], str(out), metrics, title, sample, seed, rounds
    )
    comparison = None
    if material.joined:
        comparison = compare_joined(
            material.joined,
            material.labels,
            rounds,
            seed,
            workers=workers,
            progress=stage("comparing"),
        )
    progress = stage("correlating with ratings")
    rated = [
        found
        for name, run in zip(material.names, material.runs, strict=True)
        if (found := people(name, run, material.labels, min(rounds, 999), seed, progress))
    ]
    stage("drawing")
    selection = select(material, sample, seed)
    values: dict[str, Any] = {
        "title": title or _title(material),
        "material": material,
        "summaries": summaries(material, comparison),
        "pooled": pooled_scores(material),
        "comparison": comparison,
        "verdict": verdict(comparison) if comparison else [],
        "pair_pictures": _pair_pictures(comparison),
        "histograms": _histograms(material),
        "people": [(one, [inline_svg(plot) for plot in one.plots]) for one in rated],
        "notes": _notes(material),
        "shows_system": len({name for one in material.levels for name in one.systems}) > 1,
        "has_words": any(
            part["name"] == "log_probs" for metric in material.metrics for part in metric["parts"]
        ),
        "selection": selection,
        "measured": measured(material),
        "origins": origins(material),
        "command": command,
        "sample": sample,
        "seed": seed,
        "rounds": rounds,
    }
    stage("writing the dialogues")
    every = cards(material, selection)
    values["extremes"] = _extremes_views(material, every, extremes(material, SHOWN_EXTREMES))
    page, shown, brief = render_page(values, every, selection, material.several)
    write_text(destination, page)
    return Written(
        str(destination),
        len(page.encode("utf-8")),
        material.names,
        tuple(material.labels),
        selection.of,
        shown,
        brief,
        shown < selection.of,
        seed,
    )


def _notes(material: ReportData) -> list[tuple[str, str]]:
    """Returns what the table of a run says beneath it, and which runs say so; nobody where all
    do."""
    said: dict[str, list[str]] = {}
    for name, run in zip(material.names, material.runs, strict=True):
        for text in run.table().notes:
            said.setdefault(text, []).append(name)
    everybody = len(material.runs)
    return [("" if len(who) == everybody else ", ".join(who), text) for text, who in said.items()]


def _pair_pictures(comparison: Comparison | None) -> list[Any]:
    if not comparison:
        return []
    pairs = list(dict.fromkeys((row.first, row.second) for row in comparison.rows))
    if len(pairs) > MOST_PAIR_PICTURES:
        return []
    return [
        inline_svg(
            draw_comparison(
                replace(
                    comparison,
                    rows=tuple(r for r in comparison.rows if (r.first, r.second) == pair),
                )
            )
        )
        for pair in pairs
    ]


def _histograms(material: ReportData) -> list[Any]:
    found = []
    for entries in material.levels:
        for label in material.labels:
            sides = {
                side.name: side.scores[label][np.array(side.levels) == entries.level]
                for side in material.sides
            }
            if any((~np.isnan(column)).any() for column in sides.values()):
                title = material.shown(label)
                if len(material.levels) > 1:
                    title += f" ({entries.level}s)"
                found.append(inline_svg(histogram(title, sides)))
    return found


def _extremes_views(
    material: ReportData, every: Sequence[DialogueCard], ends: Sequence[Extremes]
) -> list[ExtremesView]:
    found = []
    for one in ends:
        level = material.levels[one.level].level
        title = material.shown(one.label) + (f" ({level}s)" if len(material.levels) > 1 else "")
        if len(material.runs) > 2:
            title += f": {material.names[one.run]} against {material.names[0]}"
        best, worst = extreme_lines(material, every, one)
        if best or worst:
            found.append(ExtremesView(title, one.label, one.direction, best, worst))
    return found


def _title(material: ReportData) -> str:
    if material.several:
        return (
            " and ".join(material.names) if len(material.names) == 2 else ", ".join(material.names)
        )
    return material.names[0]


def _check_destination(destination: Path, directories: Sequence[Path], overwrite: bool) -> None:
    if destination.is_dir():
        raise UsageError(f"{destination} is a folder; name a file: -o {destination}/report.html")
    if any(destination.resolve().parent == one.resolve() for one in directories):
        raise UsageError(f"{destination} lies in the run itself; choose another place for it")
    if destination.exists() and not overwrite:
        raise UsageError(f"{destination} exists already: --overwrite replaces it")


# The end of a report: what measured, on what, and the commands that give the same again.


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


def measured(material: ReportData) -> list[Measured]:
    """Returns what measured: each metric with its signature in each run."""
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


def origins(material: ReportData) -> list[Origin]:
    """Returns where each run comes from."""
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
    """Returns how the files were read, as options."""
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
