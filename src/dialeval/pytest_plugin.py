"""A pytest plugin: fail a test if the new version of a chatbot is worse than the old one.

    from dialeval.pytest_plugin import assert_not_worse

    def test_the_new_version_is_not_worse(dialeval_compare):
        assert_not_worse(dialeval_compare("answers/old.jsonl", "answers/new.jsonl"), margin=0.1)

pytest finds the plugin by its entry point. Unless the fixture is asked for, nothing of dialeval but
this file is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.metric import Metric
    from dialeval.runs.run import Run
    from dialeval.scores import Calibration


@pytest.fixture
def dialeval_compare(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Comparison]:
    """Compares two versions, the old one first: runs, or files that are scored before.

    `metrics` are those to score files with (default: `judge`); what else is given goes to
    `dialeval.compare`. Files are scored on the scales of the old version.
    """

    def compare(
        old: Run | str | Path,
        new: Run | str | Path,
        *,
        metrics: Sequence[str | Metric] = ("judge",),
        **options: Any,
    ) -> Comparison:
        import dialeval

        folder = tmp_path_factory.mktemp("dialeval")
        first = _run(old, metrics, folder / "old", None)
        second = _run(new, metrics, folder / "new", first.calibrations or None)
        return dialeval.compare(first, second, **options)

    return compare


def _run(
    version: Run | str | Path,
    metrics: Sequence[str | Metric],
    place: Path,
    scales: dict[str, Calibration] | None,
) -> Run:
    import dialeval
    from dialeval.remote import located

    if not isinstance(version, str | Path):
        return version
    if any((located(version) / name).exists() for name in ("manifest.json", "job.json")):
        return dialeval.open_run(version)
    return dialeval.score(dialeval.load(str(version)), metrics, out=place, calibrations=scales)


def assert_not_worse(
    comparison: Comparison,
    metric: str | Sequence[str] = "judge",
    *,
    margin: float = 0.0,
    fail_if_unsure: bool = False,
) -> None:
    """Fails with a sentence if a later side is worse than the first on this metric: significantly,
    and by more than `margin`. With `fail_if_unsure` it also fails if that cannot be told."""
    __tracebackhide__ = True
    from dialeval.agreement.decision import decide

    metrics = [metric] if isinstance(metric, str) else list(metric)
    decisions = decide(comparison, metrics, margin, fail_if_unsure)
    if failed := [one.sentence() for one in decisions if one.failed]:
        raise AssertionError("\n".join(failed))
