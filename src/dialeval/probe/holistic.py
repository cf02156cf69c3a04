"""`holistic`: HolisticEval whole (Pang et al., ACL 2020), of one or several chatbots.

    result = dialeval.holistic("openai:http://localhost:8000/v1#bot", queries="queries.txt",
                               out="runs/bot")
    result.rows["bot"]["coherence"].value

All four metrics judge the same dialogues. The queries are augmented once, for all systems; each
system is probed (`plan.py`, protocol `holistic`); then two runs are scored, whatever the number of
systems, so that the scale of coherence and fluency (their 5th percentile) is the same for all:

runs/bot/
  holistic.json    what was asked for, and of which samples the runs were made
  queries.jsonl    the queries with their variants
  probes/NAME/     the probe of each system: every exchange
  answers/         a run: coherence, fluency and plain consistency of the first answers
  variants/        a run: diversity of each group, consistency of the queries put again
  result.json      what `--json` prints
  holistic.svg     the picture

Probes and runs resume; a run is made again where its samples changed (a question that had failed
was answered, a system joined), with answers of models from the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.augment.augmenter import augment_queries, make_augmenters, watched
from dialeval.augment.queries import Query, given_or_read, read_queries, write_queries
from dialeval.errors import UsageError, did_you_mean
from dialeval.limits import OWN, USUAL
from dialeval.options import split_spec
from dialeval.pictures import save
from dialeval.probe.directory import (
    HOLISTIC_SETTINGS,
    PROBES,
    differences,
    foreign_entries,
    open_probe,
)
from dialeval.probe.holistic_result import (
    ASPECTS,
    HolisticResult,
    Judged,
    few_note,
    means_by_system,
    relations_among,
)
from dialeval.probe.plan import PLAIN, SampleKind, kind_of
from dialeval.probe.probing import ProbeProgress, ProbeSummary, probe, queries_digest
from dialeval.progress import Progress, usual_progress
from dialeval.registry import make_metrics
from dialeval.runs.run import Run, open_run
from dialeval.runs.table import FEW_TO_CALIBRATE
from dialeval.scoring import score
from dialeval.storage import locked, write_json
from dialeval.strict_json import read_object
from dialeval.systems import Asking, System, open_system
from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.question import ModelSource
    from dialeval.sample import Sample
    from dialeval.scores import Calibration

PathLike = str | Path
Stage = Callable[[str], Progress]
"""Hears the name of the work that begins, and returns who hears how far it is."""

QUERIES, ANSWERS, VARIANTS, RESULT, PICTURE = (
    "queries.jsonl",
    "answers",
    "variants",
    "result.json",
    "holistic.svg",
)
CONTENTS = (HOLISTIC_SETTINGS, QUERIES, PROBES, ANSWERS, VARIANTS, RESULT, PICTURE, ".lock")
AUGMENTERS = ("ws", "ctg")
"""The two of section 3.3."""

RUNS = {ANSWERS: ("coherence", "fluency", "consistency"), VARIANTS: ("diversity", "consistency")}
HOLISTIC_FORMAT = 1


def holistic(
    *systems: str | System,
    queries: PathLike | Sequence[PathLike] | Iterable[Query],
    out: PathLike,
    with_: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    preset: str = "",
    paraphrases: int = 1,
    calibration: PathLike | None = None,
    set: Mapping[str, object] | None = None,
    names: Sequence[str] = (),
    concurrency: int | None = None,
    timeout: float = 60.0,
    retries: int | None = None,
    rate: float | None = None,
    key_env: str | None = None,
    seed: int | None = None,
    limit: int | None = None,
    format: str | None = None,
    system_prompt: Literal["leave-out", "facts"] = "leave-out",
    largest_record: int = USUAL,
    overwrite: bool = False,
    models: ModelSource | None = None,
    cache: PathLike | None = None,
    stage: Stage | None = None,
) -> HolisticResult:
    """Judges chatbots by coherence, fluency, diversity and self-consistency, on the same dialogues.

    systems      addresses (`openai:URL#MODEL`, ...), or open systems
    queries      files, or queries
    out          the directory that stores everything; the same call resumes
    with_        the augmenters; by default `ws` and `ctg`, unless the queries have variants
    metrics      options for some of the four, such as `consistency:model=roberta-large-mnli`
    paraphrases  how many variants of each augmenter are put again, for self-consistency
    calibration  an earlier directory of `holistic`, whose scale of coherence and fluency is used
    set          options of the systems, such as `{"temperature": 0.7}`
    names        what the table calls the systems, in their order
    models       who answers the metrics' questions; by default the models of `dialeval models`
    stage        hears the name of the work that begins, and returns who hears how far it is
    """
    if not systems:
        raise UsageError("name a system to judge. See: dialeval holistic --help")
    if names and len(names) != len(systems):
        raise UsageError(f"{len(systems)} systems, but {len(names)} names: give --name for each")
    chosen = _metrics(metrics, preset)
    given = given_or_read(
        queries,
        format=format,
        system_prompt=system_prompt,
        largest_record=largest_record,
        limit=limit,
    )
    if not given:
        raise UsageError("there is no query to ask")
    specs = _augmenters(given, with_)
    tell = stage or usual_progress
    directory = Path(out)
    _check_is_holistic_or_empty(directory)
    scales = None if calibration is None else _scales(Path(calibration))
    asking = Asking(concurrency, timeout, retries, rate, key_env, seed or 0, largest_record)
    with locked(directory):
        settings = _begin(
            directory,
            {
                "queries": {"count": len(given), "sha256": queries_digest(given)},
                "augmented_with": {"specs": specs, "seed": seed},
                "paraphrases": paraphrases,
            },
            overwrite,
        )
        if not (directory / QUERIES).is_file():
            _augment(given, specs, seed, directory / QUERIES, tell("augmenting"))
        asked = list(read_queries(directory / QUERIES, format="queries", largest_record=OWN))
        probes: list[ProbeSummary] = []
        for place, system in enumerate(systems):
            opened = open_system(system, set, asking) if isinstance(system, str) else system
            try:
                name = names[place] if names else opened.name
                if name in (one.system for one in probes):
                    raise UsageError(f"two systems are called {name!r}: tell them apart by --name")
                probes.append(_probe(opened, asked, directory, name, paraphrases, tell))
            finally:
                if isinstance(system, str):
                    opened.close()
        samples = [s for one in probes for s in open_probe(one.directory).samples]
        runs = _score(directory, settings, samples, chosen, scales, models, cache, tell)
        result = _result(directory, probes, runs, chosen, scales is not None)
        save(result.plot(), directory / PICTURE)
        write_json(directory / RESULT, result.to_record())
    return result


def _metrics(specs: Sequence[str], preset: str) -> dict[str, Metric]:
    """The four metrics by name, with the options that somebody gave."""
    given: dict[str, str] = {}
    for spec in [specs] if isinstance(specs, str) else specs:
        name, _ = split_spec(spec)
        if name not in ASPECTS:
            raise UsageError(
                f"HolisticEval has no metric {name!r}.{did_you_mean(name, ASPECTS)} It has"
                f" {', '.join(ASPECTS)}; score others with: dialeval score DIR/answers -m {name}"
            )
        if name in given:
            raise UsageError(f"metric given twice: {name}")
        given[name] = spec
    made = make_metrics([given.get(name, name) for name in ASPECTS], preset)
    return dict(zip(ASPECTS, made, strict=True))


def _augmenters(queries: Sequence[Query], given: Sequence[str] | None) -> list[str]:
    if given is not None:
        return [given] if isinstance(given, str) else list(given)
    return [] if any(query.variants for query in queries) else list(AUGMENTERS)


def _augment(
    queries: Sequence[Query], specs: Sequence[str], seed: int | None, path: Path, told: Progress
) -> None:
    if not specs:
        write_queries(queries, path)
        return
    made = augment_queries(queries, make_augmenters(specs, seed))
    write_queries(watched(made, lambda done, _: told(done, len(queries))), path)


def _check_is_holistic_or_empty(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; choose another -o.")
    if foreign := foreign_entries(directory, CONTENTS):
        raise UsageError(
            f"{directory} is not a directory of `dialeval holistic`: it holds {foreign[0]!r}."
            " Choose another -o."
        )


def _begin(directory: Path, wanted: Mapping[str, Any], overwrite: bool) -> dict[str, Any]:
    """Returns the settings of a new directory, or of the one that is gone on with."""
    path = directory / HOLISTIC_SETTINGS
    if overwrite:
        for name in (HOLISTIC_SETTINGS, QUERIES, RESULT, PICTURE):
            (directory / name).unlink(missing_ok=True)
        for name in (PROBES, ANSWERS, VARIANTS):
            shutil.rmtree(directory / name, ignore_errors=True)
    # Where a command failed before it had its queries, nothing is there to go on with.
    begun = any((directory / name).exists() for name in (QUERIES, PROBES, ANSWERS, VARIANTS))
    if not path.is_file() or not begun:
        (directory / QUERIES).unlink(missing_ok=True)
        about = {"holistic_format": HOLISTIC_FORMAT, "dialeval": __version__}
        settings = {**about, **wanted, "runs": {}}
        write_json(path, settings)
        return settings
    settings = dict(read_object(path, "the settings of `dialeval holistic`"))
    if settings.get("holistic_format") != HOLISTIC_FORMAT or not isinstance(
        settings.get("runs"), dict
    ):
        raise UsageError(f"{path} is damaged. Add --overwrite to start again.")
    there = {name: settings.get(name) for name in wanted}
    if different := differences(there, wanted):
        raise UsageError(
            f"{directory} was made with other settings:\n  "
            + "\n  ".join(different)
            + "\nRepeat the earlier command to go on with it, add --overwrite to start again, or"
            " choose another -o."
        )
    return settings


def _probe(
    system: System,
    queries: Sequence[Query],
    directory: Path,
    name: str,
    paraphrases: int,
    tell: Stage,
) -> ProbeSummary:
    told = tell(f"asking {name}")

    def watch(now: ProbeProgress) -> None:
        told(now.done, now.total)

    return probe(
        system,
        queries,
        directory / PROBES / _folder(name),
        protocol="holistic",
        paraphrases=paraphrases,
        augment=(),
        name=name,
        watch=watch,
    )


def _folder(name: str) -> str:
    """A name that any file system takes; different names have different folders."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60]
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _scales(directory: Path) -> Mapping[str, Calibration]:
    inside = directory / ANSWERS
    return open_run(inside if inside.is_dir() else directory).calibrations


def _score(
    directory: Path,
    settings: dict[str, Any],
    samples: Sequence[Sample],
    metrics: Mapping[str, Metric],
    scales: Mapping[str, Calibration] | None,
    models: ModelSource | None,
    cache: PathLike | None,
    tell: Stage,
) -> dict[str, Run]:
    """Scores the first answers, and what was made of the variants; a run for each."""
    runs: dict[str, Run] = {}
    for name, wanted in RUNS.items():
        own = [sample for sample in samples if (_kind(sample).kind == "first") == (name == ANSWERS)]
        if not own:
            continue
        chosen = [metrics[one] for one in wanted]
        given = scales if name == ANSWERS else None
        made_of = _digest(own, chosen, given)
        if settings["runs"].get(name) != made_of:
            shutil.rmtree(directory / name, ignore_errors=True)
            settings["runs"][name] = made_of
            write_json(directory / HOLISTIC_SETTINGS, settings)
        runs[name] = score(
            own,
            chosen,
            out=directory / name,
            models=models,
            cache=cache,
            calibrations=given,
            progress=_out_of(len(own), tell(f"scoring {name}")),
        )
    return runs


def _out_of(total: int, told: Progress) -> Progress:
    return lambda done, _: told(done, total)


def _digest(
    samples: Sequence[Sample], metrics: Sequence[Metric], scales: Mapping[str, Calibration] | None
) -> str:
    """A digest of everything that makes a run another one."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(sample.digest())
    labels = [metric.label for metric in metrics]
    used = {name: str(scale) for name, scale in (scales or {}).items()}
    digest.update(json.dumps([labels, used], sort_keys=True).encode())
    return digest.hexdigest()


def _result(
    directory: Path,
    probes: Sequence[ProbeSummary],
    runs: Mapping[str, Run],
    metrics: Mapping[str, Metric],
    scale_given: bool,
) -> HolisticResult:
    judged = [one for name, run in runs.items() for one in _judged(run, RUNS[name], metrics)]
    rows = means_by_system(judged)
    notes = []
    if ANSWERS in runs and not scale_given:
        scaled = runs[ANSWERS].calibrations
        fewest = min((scale.n for scale in scaled.values()), default=0)
        notes.append(few_note(list(scaled), fewest, FEW_TO_CALIBRATE))
    if not any(one.aspect == "diversity" for one in judged):
        notes.append("no query has a variant, so diversity and self-consistency are not judged")
    signatures = [line for run in runs.values() for line in run.table().signatures]
    return HolisticResult(
        directory,
        {one.system: rows.get(one.system, {}) for one in probes},
        relations_among(judged, directory.name),
        tuple(probes),
        tuple(dict.fromkeys(signatures)),
        tuple(notes),
    )


def _judged(run: Run, aspects: Sequence[str], metrics: Mapping[str, Metric]) -> Iterator[Judged]:
    """Yields every value that belongs to a column: a metric says nothing of other samples."""
    for aspect in aspects:
        label = metrics[aspect].label
        columns = [f"{label}.note", label]
        values = (
            row for batch in run.batches(columns) for row in batch.select(columns).to_pylist()
        )
        for sample, row in zip(run.samples(), values, strict=True):
            kind = _kind(sample)
            if kind.kind != "first" and kind.kind != aspect:
                continue
            by = PLAIN if aspect == "consistency" and kind.kind == "first" else kind.by
            note = row[f"{label}.note"] or ""
            yield Judged(sample.system, sample.dialogue, aspect, by, row[label], note)


def _kind(sample: Sample) -> SampleKind:
    kind = kind_of(sample)
    assert kind is not None, "a probe wrote it"
    return kind
