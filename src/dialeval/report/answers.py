"""`dialeval.worst` and `dialeval.best`: the answers at one end of a metric, each with the reason.

What is known of an answer comes from its run; nothing is scored again:

    note     what the metric said of the answer in words, as `judge` does of a low rating
    lowest   the part with the lowest value, among those that say what a low value means
    parts    the other numbers that stand behind the score

Answers with the same score stand in the order of the file. Where a metric was scaled and cut off at
an end of the scale, the raw value decides between equal scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats
from dialeval.agreement.joining import has_one_scale
from dialeval.errors import UsageError, did_you_mean
from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.report.look import environment, stylesheet
from dialeval.report.material import read_rows
from dialeval.report.page import source_hash
from dialeval.runs.run import Run, open_run
from dialeval.storage import write_text

if TYPE_CHECKING:
    from dialeval.metric import Direction

End = Literal["worst", "best"]
By = Literal["system"]

DEFAULT_METRIC = "judge"
MEANS_LOW = "low: "
"""The beginning of the summary of a part that says what is wrong if the part is low."""


@dataclass(frozen=True)
class Lowest:
    """The sub-judgement that speaks most against an answer, and what that means: nothing if it is
    in the upper half of the range."""

    part: str
    value: float
    meaning: str

    @property
    def number(self) -> str:
        return f"{self.part} {self.value:.1f}"

    def __str__(self) -> str:
        return f"{self.number} ({self.meaning})" if self.meaning else self.number


@dataclass(frozen=True)
class RankedAnswer:
    """One answer; `context` are the turns before it. A whole dialogue has no `response`."""

    rank: int
    id: str
    system: str
    score: float
    note: str
    lowest: Lowest | None
    parts: Mapping[str, float]
    context: tuple[str, ...]
    response: str | None
    view: DialogueView
    """The same as the page shows it."""

    @property
    def reason(self) -> str:
        """Why the score is what it is, in one line; empty if the metric does not say."""
        said = [self.note] if self.note else []
        if self.lowest:
            known = self.lowest.meaning in self.note
            said.append(f"lowest: {self.lowest.number if known else self.lowest}")
        elif self.parts and not self.note:
            said.append(", ".join(f"{name} {value:.3g}" for name, value in self.parts.items()))
        return "; ".join(said)

    def to_record(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "system": self.system,
            "score": self.score,
            "reason": self.reason,
            "note": self.note,
            "lowest": asdict(self.lowest) if self.lowest else None,
            "parts": dict(self.parts),
            "context": list(self.context),
            "response": self.response,
        }


@dataclass(frozen=True)
class RankedAnswers:
    """The answers at one end of a metric; by system if `groups` has more than one name."""

    end: End
    run: str
    metric: str
    direction: Direction
    scored: int
    groups: Mapping[str, tuple[RankedAnswer, ...]]
    """System -> its answers; all answers under the empty name if they are not divided."""

    def __iter__(self) -> Iterator[RankedAnswer]:
        return (one for group in self.groups.values() for one in group)

    def __len__(self) -> int:
        return sum(map(len, self.groups.values()))

    @property
    def title(self) -> str:
        return f"{self.end.capitalize()} answers by {self.metric}"

    def to_record(self) -> dict[str, Any]:
        return {
            "end": self.end,
            "run": self.run,
            "metric": self.metric,
            "direction": self.direction,
            "scored": self.scored,
            "answers": [one.to_record() for one in self],
        }

    def to_html(self) -> str:
        """Returns one page in the look of the report, without a script."""
        from markupsafe import Markup

        style = stylesheet("report.css")
        policy = (
            f"default-src 'none'; style-src {source_hash(style)}; base-uri 'none';"
            " form-action 'none'"
        )
        template = environment().get_template("answers.html")
        return template.render(found=self, style=Markup(style), policy=policy)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Writes the page."""
        destination = Path(path)
        if destination.is_dir():
            raise UsageError(f"{destination} is a folder; name a file: {destination}/answers.html")
        if destination.exists() and not overwrite:
            raise UsageError(f"{destination} exists already: --overwrite replaces it")
        write_text(destination, self.to_html())


def worst(
    run: Run | str | Path, metric: str | None = None, *, by: By | None = None, n: int = 10
) -> RankedAnswers:
    """Returns the `n` answers with the worst scores, or those of each system with `by="system"`.

    Without a metric, `judge`; if the run does not have it, its only metric.
    """
    return _ranked("worst", run, metric, by, n)


def best(
    run: Run | str | Path, metric: str | None = None, *, by: By | None = None, n: int = 10
) -> RankedAnswers:
    """Returns the `n` answers with the best scores; see `worst`."""
    return _ranked("best", run, metric, by, n)


def _ranked(
    end: End, given: Run | str | Path, metric: str | None, by: By | None, n: int
) -> RankedAnswers:
    if by not in (None, "system"):
        raise UsageError(f"answers are divided by 'system', not by {by!r}")
    if n < 1:
        raise UsageError(f"n must be at least 1, not {n}")
    run = given if isinstance(given, Run) else open_run(given)
    record = _record(run, metric)
    label, direction = record["label"], record["direction"]
    if direction == "neither":
        raise UsageError(f"neither more nor less of {label} is better. Name another metric.")
    scores = np.array(run.scores(label), dtype=np.float64)
    order = _order(run, record, scores, end)
    systems = [name for batch in run.batches(["system"]) for name in batch.column(0).to_pylist()]
    groups = {
        name: [row for row in order if not by or systems[row] == name][:n]
        for name in (run.systems if by else [""])
    }
    rows = read_rows(run, [row for group in groups.values() for row in group], [label])
    return RankedAnswers(
        end,
        str(run.directory),
        label,
        direction,
        len(order),
        {
            name: tuple(_answer(place, rows[row], record) for place, row in enumerate(group, 1))
            for name, group in groups.items()
            if group
        },
    )


def _record(run: Run, metric: str | None) -> Mapping[str, Any]:
    label = metric
    if label is None:
        if DEFAULT_METRIC not in run.metrics and len(run.metrics) > 1:
            raise UsageError(
                f"{run.directory} has no metric {DEFAULT_METRIC!r}. Name one with --metric:"
                f" {', '.join(run.metrics)}"
            )
        label = DEFAULT_METRIC if DEFAULT_METRIC in run.metrics else run.metrics[0]
    if label not in run.metrics:
        raise UsageError(
            f"no metric {label!r} in {run.directory}.{did_you_mean(label, run.metrics)} There are:"
            f" {', '.join(run.metrics)}"
        )
    record: Mapping[str, Any] = next(m for m in run.manifest["metrics"] if m["label"] == label)
    return record


def _order(run: Run, record: Mapping[str, Any], scores: Floats, end: End) -> list[int]:
    """Returns the rows that have a score, the most extreme first."""
    towards = 1.0 if (end == "worst") == (record["direction"] == "higher") else -1.0
    there = np.flatnonzero(~np.isnan(scores))
    keys = [towards * scores[there]]
    if has_one_scale(record["calibration"]):
        raw = np.array(run.raw_scores(record["label"]), dtype=np.float64)
        keys.insert(0, towards * raw[there])
    order: list[int] = there[np.lexsort(keys)].tolist()
    return order


def _answer(rank: int, row: Mapping[str, Any], record: Mapping[str, Any]) -> RankedAnswer:
    label = record["label"]
    numbers = {
        part["name"]: (float(value), part["summary"])
        for part in record["parts"]
        if not part["many"] and part.get("in_table", True)
        if (value := row.get(f"{label}.{part['name']}")) is not None
    }
    bounds = [bound for bound in record["range"] if bound is not None]
    middle = sum(bounds) / 2 if len(bounds) == 2 else float("inf")
    telling = [
        Lowest(name, value, summary.removeprefix(MEANS_LOW) if value < middle else "")
        for name, (value, summary) in numbers.items()
        if summary.startswith(MEANS_LOW)
    ]
    return RankedAnswer(
        rank,
        row["id"],
        row["system"],
        float(row[label]),
        row.get(f"{label}.note") or "",
        min(telling, key=lambda one: one.value, default=None),
        {name: value for name, (value, _) in numbers.items()},
        tuple(turn["text"] for turn in row["context"]),
        row["response"],
        dialogue_view(row, [record]),
    )
