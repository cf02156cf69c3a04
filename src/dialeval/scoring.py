"""`score`: the one function that judges."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.registry import DEFAULT_METRICS, make_metrics

if TYPE_CHECKING:
    from dialeval.engine.cache import AnswerCache
    from dialeval.metric import Metric
    from dialeval.question import ModelSource
    from dialeval.run import Run
    from dialeval.sample import Sample
    from dialeval.scores import Calibration


def score(
    samples: Iterable[Sample],
    metrics: Iterable[str | Metric] = DEFAULT_METRICS,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    preset: str = "",
    models: ModelSource | None = None,
    cache: str | Path | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    progress: Callable[[int, int], None] = lambda done, read: None,
) -> Run:
    """Scores every sample with every metric and returns the run.

    out           directory of the run; without it the run lives as long as the returned object.
                  An unfinished run there is resumed, a finished one of the same input reused
    overwrite     start again, whatever `out` holds
    preset        `paper` takes the models of the papers where a metric names none
    models        who answers the metrics' questions; by default the models of `dialeval models`
    cache         the SQLite file of answers; by default one in the user's cache directory
    calibrations  scales of an earlier run (`Run.calibrations`) instead of ones fitted on this
    progress      called with the number of samples that are done, and of those read so far
    """
    if isinstance(samples, str | Path):
        raise UsageError(
            f"score takes samples: dialeval.score(dialeval.load({str(samples)!r}), ...)"
        )
    chosen = make_metrics([metrics] if isinstance(metrics, str) else metrics, preset)

    def score_into(directory: Path) -> Run:
        from dialeval.engine.job import Job
        from dialeval.run import open_run

        with _answer_cache(chosen, cache) as answers:
            Job(
                directory,
                chosen,
                models=models or _built_in_models(chosen),
                cache=answers,
                calibrations=calibrations,
                overwrite=overwrite,
                progress=progress,
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


def _built_in_models(metrics: Iterable[Metric]) -> ModelSource | None:
    if not any(metric.models() for metric in metrics):
        return None
    from dialeval.models.source import Models

    return Models()


@contextmanager
def _answer_cache(
    metrics: Iterable[Metric], path: str | Path | None
) -> Iterator[AnswerCache | None]:
    """Opened only where something is asked: string metrics need no database."""
    if not any(metric.models() for metric in metrics):
        yield None
        return
    from dialeval.engine.cache import AnswerCache, default_cache_path

    with AnswerCache(Path(path) if path else default_cache_path()) as cache:
        yield cache


def _about(samples: Iterable[Sample]) -> dict[str, Any]:
    """What the manifest says of the input, where it came from files."""
    about = getattr(samples, "about", None)
    return dict(about()) if about else {}
