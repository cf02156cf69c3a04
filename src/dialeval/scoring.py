"""`score`: the one function that judges. `add_metrics` lets a metric join a finished run."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.progress import Progress, usual_progress
from dialeval.registry import DEFAULT_METRICS, make_metrics
from dialeval.remote import located

if TYPE_CHECKING:
    from dialeval.engine.answers import AnswerCache
    from dialeval.metric import Metric
    from dialeval.models.chat_judge import Servers
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Sample
    from dialeval.scores import Calibration


def score(
    samples: Iterable[Sample] | Any,
    metrics: Iterable[str | Metric | type[Metric]] = DEFAULT_METRICS,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    preset: str = "",
    models: ModelSource | None = None,
    cache: str | Path | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    servers: Servers | None = None,
    known: Run | None = None,
    progress: Progress | None = None,
    on: str = "local",
    ray_address: str = "",
    workers: int | None = None,
) -> Run:
    """Scores every sample with every metric and returns the run.

    Samples are what `load` gives, or what it takes: a list of dicts, a data frame, an Arrow table.

    out           directory or URL of the run; without it the run lives as long as the returned
                  object. An unfinished run there is resumed, a finished one reused
    overwrite     start again, whatever `out` holds
    preset        `paper` takes the models of the papers where a metric names none
    models        who answers the metrics' questions; by default the models of `dialeval models`
    cache         the SQLite file of answers; by default one in the user's cache directory
    calibrations  scales of an earlier run (`Run.calibrations`) instead of ones fitted on this
    servers       how `openai:` models are asked, and where to stop
    known         an earlier run: samples that it holds are not scored again, if its metrics, models
                  and releases are the same
    progress      called with the number of samples that are done, and of those read so far; by
                  default a notebook shows a bar
    on            `ray` scores on a Ray cluster: the same run, by several workers (docs/scaling.md)
    ray_address   of a cluster that is there; by default $RAY_ADDRESS, and without that a cluster
                  on this machine that ends with the run
    workers       how many, on Ray; by default one for each GPU or core
    """
    from dialeval.readers.arrow import holds_records
    from dialeval.readers.load import Samples, load

    _check_place(on, ray_address, workers, cache, servers, known)
    if isinstance(samples, str | Path):
        raise UsageError(
            f"score takes samples: dialeval.score(dialeval.load({str(samples)!r}), ...)"
        )
    if not isinstance(samples, Samples) and holds_records(samples):
        samples = load(samples)
    chosen = make_metrics([metrics] if isinstance(metrics, str) else metrics, preset)
    if on == "ray" and (local := [metric.name for metric in chosen if metric.file_digest]):
        raise UsageError(
            f"{', '.join(local)}: workers on Ray do not have the file of a metric. Make it a plugin"
            " (examples/plugin), and install that where they run"
        )

    options: dict[str, Any] = {
        "overwrite": overwrite,
        "models": models,
        "cache": cache,
        "calibrations": calibrations,
        "servers": servers,
        "known": known,
        "progress": progress,
        "on": on,
        "ray_address": ray_address,
        "workers": workers,
    }
    if out is not None:
        return _score_into(located(out), samples, chosen, **options)
    temporary = Path(tempfile.mkdtemp(prefix="dialeval-"))
    try:
        run = _score_into(temporary / "run", samples, chosen, **options)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(run, shutil.rmtree, temporary, ignore_errors=True)
    return run


def add_metrics(
    run: Run | str | Path,
    metrics: str | Iterable[str | Metric],
    *,
    overwrite: bool = False,
    preset: str = "",
    models: ModelSource | None = None,
    cache: str | Path | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    progress: Progress | None = None,
    on: str = "local",
    ray_address: str = "",
    workers: int | None = None,
    servers: Servers | None = None,
) -> Run:
    """Scores the samples of a finished run with more metrics, which join it; returns the run.

    What is there is not scored again. An addition that was killed goes on where it stopped;
    `overwrite` starts it again. The other parameters are those of `score`.
    """
    from dialeval.engine.adding import adding_place, finish_addition, join_addition
    from dialeval.readers.load import load
    from dialeval.runs.directory import RunDirectory
    from dialeval.runs.run import Run as Opened
    from dialeval.runs.run import open_run

    _check_place(on, ray_address, workers, cache, servers)
    directory = run.directory if isinstance(run, Opened) else located(run)
    chosen = make_metrics([metrics] if isinstance(metrics, str) else metrics, preset)
    if not (directory / "manifest.json").is_file():
        return open_run(directory)  # says what lies there instead
    with RunDirectory(directory).exclusive():
        finish_addition(directory)
        there = open_run(directory)
        missing = [metric for metric in chosen if metric.label not in there.metrics]
        _check_same(there, [one for one in chosen if one not in missing], models, servers)
        if missing:
            added = _score_into(
                adding_place(directory),
                load(*there.score_files, format="parquet") if on == "ray" else there.samples(),
                missing,
                overwrite=overwrite,
                models=models,
                cache=cache,
                calibrations=calibrations,
                servers=servers,
                progress=progress,
                on=on,
                ray_address=ray_address,
                workers=workers,
            )
            join_addition(there, added)
    return open_run(directory)


def _check_same(
    run: Run, metrics: Sequence[Metric], models: ModelSource | None, servers: Servers | None
) -> None:
    """A metric that is there already must be the one that was asked for."""
    from dialeval.engine.answers import NoModels
    from dialeval.engine.chunk import fingerprints

    weights = fingerprints(metrics, models or _built_in_models(metrics, servers) or NoModels())
    for metric in metrics:
        asked = metric.signature(weights)
        fields = [one for one in run.signatures[metric.label].fields if one[0] != "calibration"]
        there = dataclasses.replace(run.signatures[metric.label], fields=tuple(fields))
        if there.short() != asked.short():
            raise UsageError(
                f"{run.directory} has {metric.label} already, measured in another way:\n"
                f"  there: {there}\n  here:  {asked}\nScore into another run instead."
            )


def _score_into(
    directory: Path,
    samples: Iterable[Sample],
    metrics: Sequence[Metric],
    *,
    overwrite: bool,
    models: ModelSource | None,
    cache: str | Path | None,
    calibrations: Mapping[str, Calibration] | None,
    servers: Servers | None,
    known: Run | None = None,
    progress: Progress | None,
    on: str,
    ray_address: str,
    workers: int | None,
) -> Run:
    """Scores the samples into a run directory, here or on Ray; the parameters are those of
    `score`."""
    from dialeval.engine.job import Job
    from dialeval.runs.run import open_run

    source = models or _built_in_models(metrics, servers)
    options: dict[str, Any] = {
        "models": source,
        "calibrations": calibrations,
        "overwrite": overwrite,
        "progress": progress or usual_progress("scoring"),
        "about_data": lambda: _about(samples),
    }
    if on == "ray":
        from dialeval.engine.ray_job import RayJob
        from dialeval.readers import pieces
        from dialeval.readers.load import Samples

        division = pieces if isinstance(samples, Samples) and samples.is_whole else None
        where: dict[str, Any] = {"address": ray_address, "count": workers, "division": division}
        RayJob(directory, metrics, **where, **options).run(samples)
    else:
        with _answer_cache(metrics, cache) as answers:
            Job(directory, metrics, cache=answers, known=known, **options).run(samples)
    return open_run(directory)


def _check_place(
    on: str,
    ray_address: str,
    workers: int | None,
    cache: str | Path | None,
    servers: Servers | None,
    known: Run | None = None,
) -> None:
    if on not in ("local", "ray"):
        raise UsageError(f"a run can be scored on 'local' or 'ray', not on {on!r}")
    if on == "local" and (ray_address or workers is not None):
        raise UsageError("an address or a number of workers is for Ray: add --on ray")
    if on == "ray" and cache is not None:
        raise UsageError("workers on Ray keep their answers in memory: they take no cache")
    if on == "ray" and known is not None:
        raise UsageError("an earlier run serves on one machine only: leave out known, or on='ray'")
    if on == "ray" and servers is not None and servers.budget.is_limited:
        raise UsageError(
            "--max-requests and --max-tokens hold on one machine only, as each worker of Ray counts"
            " its own requests: leave out --on ray, or the limits. --estimate says what it takes"
        )
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")


def _built_in_models(metrics: Sequence[Metric], servers: Servers | None) -> ModelSource | None:
    if not any(metric.models() for metric in metrics):
        return None
    from dialeval.models.source import Models, check_trained_for

    for metric in metrics:
        models = metric.models()
        for role, use in metric.uses().items():
            if model := models.get(role):
                check_trained_for(model, use)
    return Models(servers=servers)


@contextmanager
def _answer_cache(
    metrics: Iterable[Metric], path: str | Path | None
) -> Iterator[AnswerCache | None]:
    """Opened only where something is asked: string metrics need no database."""
    if not any(metric.models() for metric in metrics):
        yield None
        return
    from dialeval.engine.answers import AnswerCache, default_cache_path

    with AnswerCache(Path(path) if path else default_cache_path()) as cache:
        yield cache


def _about(samples: Iterable[Sample]) -> dict[str, Any]:
    """Returns what the manifest says of the input, where it came from files."""
    about = getattr(samples, "about", None)
    return dict(about()) if about else {}
