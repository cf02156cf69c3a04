"""The results of a probe, query by query: variants, answers, how much they vary, contradictions.

It reads a scored run (`dialeval score runs/probe -m diversity -m consistency -o RUN`), or a probe
that nobody scored, and works with whichever of the two metrics is there. The worst come first:
queries whose answers contradict each other, the most certain contradiction before the others, and
then the queries whose answers vary least. Entropy grows with the length of the answers, so how much
they vary is their dispersion; where it was not scored, the normalised entropy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from dialeval.errors import UsageError
from dialeval.probe.directory import open_probe, read_settings
from dialeval.probe.plan import kind_of
from dialeval.runs.run import Run, open_run
from dialeval.sample import Sample
from dialeval.storage import sample_schema, table_to_samples

CONTRADICTION = 0.5
"""A contradiction that is likelier than not is one."""

VARIETY = ("dispersion", "normalised-2", "normalised-1")
"""Parts of `diversity` that do not grow with the length of the answers; the first that is there
counts."""

Order = Literal["worst", "diversity", "consistency", "file"]


@dataclass(frozen=True)
class Said:
    """A variant of the query, and the answer. `contradiction`: how likely it contradicts the
    answer to the query itself; None where that is not known."""

    query: str
    response: str
    contradiction: float | None = None


@dataclass(frozen=True)
class Contradiction:
    """A later answer against an earlier one in the same dialogue."""

    earlier: str
    paraphrase: str
    later: str
    probability: float | None


@dataclass
class ProbedQuery:
    """All that a probe found out about one query of one system."""

    id: str
    system: str
    context: tuple[str, ...] = ()
    answers: tuple[Said, ...] = ()
    entropy: dict[str, float] = field(default_factory=dict)
    """The value of `diversity` and its parts."""
    consistency: float | None = None
    """The lowest value of `consistency` among the samples of the query."""
    again: list[Contradiction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def different(self) -> int:
        """Returns the number of different answers to the variants."""
        return len({said.response for said in self.answers})

    @property
    def worst(self) -> float | None:
        """The likeliest contradiction."""
        found = [said.contradiction for said in self.answers if said.contradiction is not None]
        found += [pair.probability for pair in self.again if pair.probability is not None]
        return max(found, default=None)

    @property
    def variety(self) -> float:
        """How much the answers vary, from 0; infinite where there is nothing to vary.

        Identical answers do not vary, however many different words each of them has. Others vary
        by their dispersion, or by the entropy of their n-grams as a share of its largest value;
        where neither was scored, by the share of different answers.
        """
        if not self.answers:
            return math.inf
        if self.different == 1:
            return 0.0
        scored = [self.entropy[part] for part in VARIETY if part in self.entropy]
        return scored[0] if scored else self.different / len(self.answers)

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "different": self.different, "worst": self.worst}


def probe_report(path: str | Path, order: Order = "worst") -> list[ProbedQuery]:
    """Returns the queries of a scored run, or of a probe that was not scored."""
    directory = Path(path)
    if read_settings(directory) is not None:
        probe = open_probe(directory)
        if not probe.samples:
            raise UsageError(
                f"{directory}: the probe is unfinished. Repeat the `dialeval probe` command that"
                " started it to resume it."
            )
        rows: Iterable[tuple[Sample, Mapping[str, Any]]] = ((s, {}) for s in probe.samples)
    else:
        rows = _scored(open_run(directory))
    queries = list(gathered(rows))
    if not any(query.answers or query.again for query in queries):
        raise UsageError(
            f"{directory} holds no answers to paraphrased queries and no scores of consistency."
            " Score a probe: dialeval score runs/probe -m diversity -m consistency -o RUN"
        )
    return sorted(queries, key=_ORDERS[order])


def gathered(rows: Iterable[tuple[Sample, Mapping[str, Any]]]) -> Iterator[ProbedQuery]:
    """Yields one `ProbedQuery` for all samples of a query, in the order of the first of each."""
    found: dict[tuple[str, str], ProbedQuery] = {}
    for sample, scores in rows:
        ident = sample.dialogue or sample.id
        kind = kind_of(sample)
        if kind and kind.kind == "first" and "consistency" not in scores:
            continue  # one answer: there is nothing beside it
        if kind and kind.by:  # groups of WS and of CTG are told apart
            ident = f"{ident} ({kind.by})"
        query = found.setdefault((sample.system, ident), ProbedQuery(ident, sample.system))
        if sample.variants:
            _add_variants(query, sample, scores)
        elif sample.response is not None and (_is_put_again(sample) or "consistency" in scores):
            _add_again(query, sample, scores)
    yield from found.values()


def _is_put_again(sample: Sample) -> bool:
    """Ids of a probe say what a sample is for (see `plan.py`)."""
    kind = kind_of(sample)
    return kind is not None and kind.kind == "consistency"


def _add_variants(query: ProbedQuery, sample: Sample, scores: Mapping[str, Any]) -> None:
    query.context = tuple(turn.text for turn in sample.context)
    probability = _by_place(scores)
    query.answers = tuple(
        Said(variant.query, variant.response, probability.get(place))
        for place, variant in enumerate(sample.variants, 1)
    )
    for name, value in scores.items():
        metric, _, part = name.partition(".")
        if metric == "diversity" and isinstance(value, float):
            query.entropy[part or metric] = value
    _add_score(query, scores, "diversity")


def _add_again(query: ProbedQuery, sample: Sample, scores: Mapping[str, Any]) -> None:
    said = [turn.text for turn in sample.context]
    if not said:
        return
    probability = _by_place(scores)
    likeliest = max(probability, key=lambda place: probability[place], default=len(said) - 1)
    if not 1 <= likeliest <= len(said):
        return
    query.context = query.context or tuple(said[:-3])
    query.again.append(
        Contradiction(
            said[likeliest - 1], said[-1], sample.response or "", probability.get(likeliest)
        )
    )
    _add_score(query, scores, "consistency")


def _add_score(query: ProbedQuery, scores: Mapping[str, Any], protocol: str) -> None:
    """Notes are those of the metric that the sample was made for, or of one that judged it."""
    if (value := scores.get("consistency")) is not None:
        query.consistency = min(value, 1.0 if query.consistency is None else query.consistency)
    for metric in ("diversity", "consistency"):
        is_news = metric == protocol or scores.get(metric) is not None
        if is_news and (note := scores.get(f"{metric}.note")):
            query.notes.append(f"{metric}: {note}")


def _by_place(scores: Mapping[str, Any]) -> dict[int, float]:
    """Place of the earlier turn (or of the variant), from 1 -> probability of contradiction."""
    places = scores.get("consistency.turns") or ()
    found = scores.get("consistency.contradictions") or ()
    return {int(place): value for place, value in zip(places, found, strict=True)}


def _scored(run: Run) -> Iterator[tuple[Sample, dict[str, Any]]]:
    """Yields each sample with its scores; columns of `diversity:n=3` are called those of
    `diversity`."""
    labels: dict[str, str] = {}
    for metric in run.manifest["metrics"]:
        if metric["name"] in ("diversity", "consistency"):
            labels.setdefault(metric["name"], metric["label"])
    samples = set(sample_schema().names)
    for batch in run.batches():
        columns = {
            name + column.removeprefix(label): batch.column(column)
            for name, label in labels.items()
            for column in batch.schema.names
            if column not in samples and (column == label or column.startswith(f"{label}."))
        }
        for row, sample in enumerate(table_to_samples(batch.select(sample_schema().names))):
            yield sample, {name: column[row].as_py() for name, column in columns.items()}


def _worst_first(query: ProbedQuery) -> tuple[float, float]:
    worst = query.worst or 0.0
    return (-worst if worst > CONTRADICTION else 0.0, query.variety)


_ORDERS = {
    "worst": _worst_first,
    "diversity": lambda query: (query.variety, 0.0),
    "consistency": lambda query: (1.0 if query.consistency is None else query.consistency, 0.0),
    "file": lambda query: (0.0, 0.0),
}
