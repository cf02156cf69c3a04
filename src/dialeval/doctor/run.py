"""`dialeval doctor RUN`: is every byte of a run what it was when the run was finished?

Opening a run compares what is cheap. Here everything is read: the files against their sha256, every
page against its checksum, and the means of the manifest against the scores that they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dialeval.doctor import Finding
from dialeval.errors import DialevalError
from dialeval.runs.directory import RunDirectory
from dialeval.runs.manifest import UNSEALED, check_files, read_manifest
from dialeval.runs.run import Run, open_run
from dialeval.runs.table import ExactMean


def examine_run(directory: Path) -> list[Finding]:
    """Returns the findings in the order of the files; a file that cannot be read ends the check."""
    unfinished = not (directory / "manifest.json").exists() and (directory / "job.json").exists()
    findings: list[Finding] = []
    try:
        for finding in _unfinished(directory) if unfinished else _finished(directory):
            findings.append(replace(finding, what=str(directory / finding.what)))
    except DialevalError as error:
        findings.append(Finding(str(directory), "failed", str(error)))
    return findings


def _finished(directory: Path) -> Iterator[Finding]:
    run = open_run(directory)
    manifest = read_manifest(directory)
    if manifest["run_format"] == UNSEALED and "sha256" not in manifest:
        remark = "written by an older dialeval, without digests: nothing to compare with"
        yield Finding("manifest.json", "absent", remark)
    else:
        check_files(directory, manifest, whole=True)
        yield Finding("manifest.json", "ok", "as it was written")
        for name, record in manifest["files"].items():
            yield Finding(name, "ok", f"{record['size']:,} bytes, sha256 {record['sha256'][:16]}")
    yield from _scores(run)
    problem = RunDirectory(directory).job_damage()
    yield Finding("job.json", "failed" if problem else "ok", problem or "as it was written")
    events, lines = len(run.history), _lines(directory / "history.jsonl")
    remark = f"{events} of {lines} lines can be read"
    yield Finding("history.jsonl", "ok" if events == lines else "failed", remark)


def _scores(run: Run) -> Iterator[Finding]:
    """Reads every page, and adds up again what the manifest says of each system."""
    means: dict[tuple[str, str], ExactMean] = {}
    rows = 0
    for batch in run.batches():  # all columns: each page is compared with its checksum
        rows += batch.num_rows
        systems = batch.column("system").to_pylist()
        for label in run.metrics:
            for system, value in zip(systems, batch.column(label).to_pylist(), strict=True):
                if value is not None:
                    means.setdefault((system, label), ExactMean()).add(value)
    wrong = [
        f"{label} of {system['name'] or 'the only system'}"
        for system in run.manifest["systems"]
        for label in run.metrics
        if not _agrees(system["scores"][label], means.get((system["name"], label)))
    ]
    if rows != len(run):
        yield Finding("scores", "failed", f"{rows:,} rows, and the manifest says {len(run):,}")
    elif wrong:
        yield Finding("scores", "failed", f"the manifest has another mean: {', '.join(wrong)}")
    else:
        yield Finding("scores", "ok", f"{rows:,} rows; the means of the manifest are theirs")


def _agrees(summary: dict[str, object], mean: ExactMean | None) -> bool:
    mean = mean or ExactMean()
    return (summary["n"], summary["mean"]) == (mean.n, mean.value)


def _unfinished(directory: Path) -> Iterator[Finding]:
    """Finished chunks of a run that is not: damaged ones will be scored again."""
    place = RunDirectory(directory)
    problem = place.job_damage()
    yield Finding("job.json", "failed" if problem else "ok", problem or "as it was written")
    whole, damaged = place.count_shards()
    # Shards are removed after the manifest was written, so that it was there before.
    if not (whole or damaged) and any(directory.glob("scores*")):
        missing = "is missing, though the scores are here: repeat the command that made the run"
        yield Finding("manifest.json", "failed", missing)
        return
    yield Finding("run", "absent", "unfinished: repeat the command that started it")
    again = f"{damaged} damaged, which will be scored again"
    remark = f"{whole} whole" + (f", {again}" if damaged else "")
    yield Finding("shards", "failed" if damaged else "ok", remark)


def _lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.is_file() else 0
