"""`score`: the one function that judges."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from dialeval.engine.answers import AnswerCache
    from dialeval.engine.chunk import Workers
    from dialeval.metric import Metric
    from dialeval.models.chat_judge import Servers
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Sample
    from dialeval.scores import Calibration


def score(
    samples: Iterable[Sample] | Any,
    metrics: Iterable[str | Metric] = DEFAULT_METRICS,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    preset: str = "",
    models: ModelSource | None = None,
    cache: str | Path | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    servers: Servers | None = None,
    progress: Progress | None = None,
    on: str = "local",
    ray_address: str = "",
    workers: int | None = None,
) -> Run:
    """Scores every sample with every metric and returns the run.

    Samples are what `load` gives, or what it takes: a list of dicts, a data frame, an Arrow table.

    out           directory of the run; without it the run lives as long as the returned object.
                  An unfinished run there is resumed, a finished one of the same input reused
    overwrite     start again, whatever `out` holds
    preset        `paper` takes the models of the papers where a metric names none
    models        who answers the metrics' questions; by default the models of `dialeval models`
    cache         the SQLite file of answers; by default one in the user's cache directory
    calibrations  scales of an earlier run (`Run.calibrations`) instead of ones fitted on this
    servers       how `openai:` models are asked, and where to stop
    progress      called with the number of samples that are done, and of those read so far; by
                  default a notebook shows a bar
    on            `ray` scores on a Ray cluster: the same run, by several workers (docs/scaling.md)
    ray_address   of a cluster that is there; by default $RAY_ADDRESS, and without that a cluster
                  on this machine that ends with the run
    workers       how many, on Ray; by default one for each GPU or core
    """
    from dialeval.readers.arrow import holds_records
    from dialeval.readers.load import Samples, load

    _check_place(on, ray_address, workers, cache)
    if isinstance(samples, str | Path):
        raise UsageError(
            f"score takes samples: dialeval.score(dialeval.load({str(samples)!r}), ...)"
        )
    if not isinstance(samples, Samples) and holds_records(samples):
        samples = load(samples)
    chosen = make_metrics([metrics] if isinstance(metrics, str) else metrics, preset)

    def score_into(directory: Path) -> Run:
        from dialeval.engine.job import Job
        from dialeval.runs.run import open_run

        source = models or _built_in_models(chosen, servers)
        spread = _ray_workers(chosen, source, ray_address, workers) if on == "ray" else None
        with _answer_cache(chosen if spread is None else (), cache) as answers:
            Job(
                directory,
                chosen,
                models=source,
                cache=answers,
                workers=spread,
                calibrations=calibrations,
                overwrite=overwrite,
                progress=progress or usual_progress("scoring"),
                about_data=lambda: _about(samples),
            ).run(samples)
        return open_run(directory)

    if out is not None:
        return score_into(Path(out))
    temporary = Path(tempfile.mkdtemp(prefix="dialeval-"))
    try:
        run = score_into(temporary / "run")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(run, shutil.rmtree, temporary, ignore_errors=True)
    return run


def _check_place(on: str, ray_address: str, workers: int | None, cache: str | Path | None) -> None:
    if on not in ("local", "ray"):
        raise UsageError(f"a run can be scored on 'local' or 'ray', not on {on!r}")
    if on == "local" and (ray_address or workers is not None):
        raise UsageError("an address or a number of workers is for Ray: add --on ray")
    if on == "ray" and cache is not None:
        raise UsageError("workers on Ray keep their answers in memory: they take no cache")
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")


def _ray_workers(
    metrics: Sequence[Metric], models: ModelSource | None, address: str, count: int | None
) -> Workers:
    from dialeval.engine.ray import RayWorkers

    return RayWorkers(metrics, models, address=address, count=count)


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
