"""dialeval judges open-domain dialogue.

    >>> import dialeval
    >>> from dialeval.examples import four_bots
    >>> run = dialeval.score(dialeval.load(four_bots()), metrics=["length", "distinct"])
    >>> run.systems
    ['attentive', 'bland', 'broken']

Everything here is imported on first use: `import dialeval` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval import compose, full
    from dialeval.agreement.comparison import compare
    from dialeval.agreement.trend import trend
    from dialeval.check import check_metric
    from dialeval.errors import DialevalError, InputError, UsageError
    from dialeval.human_agreement import agree, raters
    from dialeval.metric import Metric, Part
    from dialeval.options import option
    from dialeval.preferences import prefer
    from dialeval.probe.holistic import holistic
    from dialeval.readers import load
    from dialeval.registry import make_metric
    from dialeval.report.answers import best, worst
    from dialeval.runs.run import Run, open_run
    from dialeval.sample import Rating, Sample, Turn
    from dialeval.scores import Calibration, Score, Signature
    from dialeval.scoring import add_metrics, score
    from dialeval.training.run import train
    from dialeval.verbs import augment, doctor, export, probe, rate, report, show, study
    from dialeval.watching import watch

_HOMES = {
    "Calibration": "scores",
    "DialevalError": "errors",
    "InputError": "errors",
    "Metric": "metric",
    "Part": "metric",
    "Rating": "sample",
    "Run": "runs.run",
    "Sample": "sample",
    "Score": "scores",
    "Signature": "scores",
    "Turn": "sample",
    "UsageError": "errors",
    "add_metrics": "scoring",
    "agree": "human_agreement",
    "best": "report.answers",
    "check_metric": "check",
    "compare": "agreement.comparison",
    "export": "verbs",
    "holistic": "probe.holistic",
    "load": "readers",
    "make_metric": "registry",
    "open_run": "runs.run",
    "option": "options",
    "prefer": "preferences",
    "rate": "verbs",
    "raters": "human_agreement",
    "score": "scoring",
    "show": "verbs",
    "study": "verbs",
    "train": "training.run",
    "trend": "agreement.trend",
    "watch": "watching",
    "worst": "report.answers",
}

_ROOMS = ("augment", "compose", "doctor", "full", "probe", "report")
"""Packages that are public themselves. Those that are verbs can be called."""

__all__ = [
    "Calibration",
    "DialevalError",
    "InputError",
    "Metric",
    "Part",
    "Rating",
    "Run",
    "Sample",
    "Score",
    "Signature",
    "Turn",
    "UsageError",
    "__version__",
    "add_metrics",
    "agree",
    "augment",
    "best",
    "check_metric",
    "compare",
    "compose",
    "doctor",
    "export",
    "full",
    "holistic",
    "load",
    "make_metric",
    "open_run",
    "option",
    "prefer",
    "probe",
    "rate",
    "raters",
    "report",
    "score",
    "show",
    "study",
    "train",
    "trend",
    "watch",
    "worst",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"dialeval.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dialeval' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dialeval.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
