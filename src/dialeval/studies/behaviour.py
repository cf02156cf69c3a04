"""Minimal pairs: which kinds of bad answers does a metric notice?

A good and a bad answer to the same turns, written for dialeval; the bad one has one fault. A metric
orders a pair rightly if it scores the good answer better; equal scores count one half. The pairs
lie in `examples/behaviour.jsonl`. Half of each kind may be learned from; the study uses the other
half.

A language model wrote all pairs after a list of twelve faults, and kept the lengths of good and bad
answers alike; no person has rated them, and many faults are blatant. With sixteen pairs a kind, the
95 % interval around .70 is about .22 wide on either side. A high share shows that a metric notices
a kind of fault at all, not that it notices subtle cases.
"""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.examples import behaviour_pairs
from dialeval.metric import Metric
from dialeval.registry import make_metrics
from dialeval.studies.study import Findings, Measured, Setting, Study, Table

METRICS = ("judge", "length", "bert-ruber", "pone", "mme-relevance", "mme-crs", "consistency")


def measure(setting: Setting) -> Findings:
    pairs = behaviour_pairs("test")
    samples = [sample for pair in pairs for sample in pair.samples()]
    metrics = make_metrics(setting.metrics)
    run = setting.score(samples, metrics)
    kinds = list(dict.fromkeys(pair.kind for pair in pairs))
    columns = {metric.label: _ordered(run.scores(metric.label), metric) for metric in metrics}
    rows: list[tuple[str | float | None, ...]] = []
    for kind in kinds:
        own = [place for place, pair in enumerate(pairs) if pair.kind == kind]
        shares = [_share([column[place] for place in own]) for column in columns.values()]
        rows.append((kind, float(len(own)), *shares))
    rows.append(("all", float(len(pairs)), *(_share(column) for column in columns.values())))
    table = Table(
        "Share of pairs in which the good answer scores better",
        ("kind", "pairs", *columns),
        tuple(rows),
        decimals=2,
    )
    measured = [
        Measured("pairs ordered rightly", _share(column), label, len(pairs))
        for label, column in columns.items()
    ]
    notes = [
        "A pair that a metric has no score for counts as ordered wrongly (`consistency` has none"
        " where the speaker has not spoken before).",
        "A language model wrote the pairs, and no person has rated them.",
    ]
    return Findings(measured, notes, [table])


def _ordered(scores: Sequence[float | None], metric: Metric) -> list[float]:
    """Per pair 1, 0 or, where both are equal, one half."""
    found = []
    for good, bad in zip(scores[0::2], scores[1::2], strict=True):
        if good is None or bad is None:
            found.append(0.0)
        else:
            gain = bad - good if metric.direction == "lower" else good - bad
            found.append(0.5 if gain == 0 else float(gain > 0))
    return found


def _share(ordered: Sequence[float]) -> float:
    return sum(ordered) / len(ordered)


STUDY = Study(
    name="behaviour",
    paper="a study of dialeval itself, of no paper",
    cited="dialeval",
    repeats="minimal pairs of twelve kinds: which bad answers does each metric notice?",
    measure=measure,
    metrics=METRICS,
    cost="a minute or two",
)
