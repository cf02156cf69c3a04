"""Checks that the engine, the tables and a signature can rely on a metric.

For the author of a metric, built-in or plugin:

    from dialeval import check_metric

    check_metric(MyMetric())              # raises MetricCheckError, with all that is wrong

or one test per claim:

    @pytest.mark.parametrize("check", metric_checks(MyMetric()), ids=str)
    def test_my_metric(check):
        check()

The checks know nothing about what the metric measures: they hold for all metrics. A metric that
asks questions gets made-up answers that depend on nothing but the question; for kinds of question
that are not known here, pass your own `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dialeval.check.claims import CLAIMS, survives
from dialeval.check.trial import (
    AnswerQuestion,
    Bench,
    MetricCheckError,
    example_samples,
    hostile_texts,
    made_up_answer,
)
from dialeval.metric import Metric
from dialeval.registry import make_metric
from dialeval.sample import Sample

__all__ = [
    "Check",
    "CheckResult",
    "MetricCheckError",
    "check_metric",
    "example_samples",
    "made_up_answer",
    "metric_checks",
]


@dataclass(frozen=True)
class Check:
    """One claim about one metric. Call it: it raises `MetricCheckError` if the claim is false."""

    name: str
    claim: str
    run: Callable[[], None]

    def __call__(self) -> None:
        try:
            self.run()
        except MetricCheckError as error:
            raise MetricCheckError(f"{self.name}: {error}") from error.__cause__
        except Exception as error:
            raise MetricCheckError(
                f"{self.name}: the metric raises {type(error).__name__}: {error}"
            ) from error

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class CheckResult:
    """What `check_metric` found true."""

    metric: str
    passed: tuple[str, ...]


def check_metric(
    metric: Metric | type[Metric] | str,
    samples: Sequence[Sample] | None = None,
    answer: AnswerQuestion | None = None,
) -> CheckResult:
    """Runs every check; raises one `MetricCheckError` that lists all failures.

    `metric` may be a class, or a name with options, as on the command line. `samples` replaces the
    built-in ones, for a metric that needs something special in them.
    """
    metric = make_metric(metric)
    passed, failures = [], []
    for check in metric_checks(metric, samples, answer):
        try:
            check()
            passed.append(check.name)
        except MetricCheckError as error:
            failures.append(f"- {error}")
    if failures:
        total = len(passed) + len(failures)
        head = f"metric {metric.name!r} fails {len(failures)} of {total} checks:"
        raise MetricCheckError("\n".join([head, *failures]))
    return CheckResult(metric.label, tuple(passed))


def metric_checks(
    metric: Metric,
    samples: Sequence[Sample] | None = None,
    answer: AnswerQuestion | None = None,
) -> Iterator[Check]:
    """Yields the checks of this metric, one by one."""
    bench = Bench(metric, tuple(samples or example_samples(metric)), answer or made_up_answer)
    for claim in CLAIMS:
        name = claim.__name__.replace("_", "-")
        yield Check(name, claim.__doc__ or "", partial(claim, bench))
    for name, text in hostile_texts().items():
        claim_text = f"A text that is {name} gets a score or a reason, not an exception."
        yield Check(f"survives-{name}", claim_text, partial(survives, bench, text))
