"""The interface of a metric: two pure functions, and a declaration of what they need and return.

A metric is a frozen dataclass whose fields are its options:

    @dataclass(frozen=True)
    class Length(Metric):
        '''Number of words in the response.'''

        name = "length"
        range = (0, math.inf)
        unit: Literal["words", "characters"] = option("words", "what to count")

        def score(self, sample, answers):
            return Score(len(sample.response.split()))

It never touches a model, a file or the network. What it wants to know from a model it asks for with
`ask`; the engine passes the answers, in the same order, to `score`.

A metric whose option names a file reads it once, when it is made, and keeps what it read:

    follow_ups: str = option("full", "a set of follow-ups by name, or a file")
    texts: FollowUps = bound()

    def __post_init__(self):
        self.bind(texts=load_follow_ups(self.follow_ups))

What is bound travels with the metric to the workers of a cluster, and `signature_fields` names its
digest. So a file that changes while a run is under way moves no score.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from dialeval.question import Answer, Question
from dialeval.sample import Level, Sample
from dialeval.scores import CalibrationKind, Score, Signature
from dialeval.version import __version__

Need = Literal["context", "references", "facts", "ratings", "variants"]
Direction = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Part:
    """A component that every score of a metric carries: a number, or a list of them if `many`."""

    name: str
    summary: str
    many: bool = False
    weight: float | None = None
    """The share of a sub-metric in the score of a composed metric."""
    in_table: bool = True
    """Whether `--parts` shows its mean: that of the end of an interval says nothing."""

    def to_record(self) -> dict[str, object]:
        """Returns the part as the manifest of a run stores it."""
        record: dict[str, object] = {
            "name": self.name,
            "summary": self.summary,
            "many": self.many,
        }
        if self.weight is not None:
            record["weight"] = self.weight
        return record if self.in_table else record | {"in_table": False}


class Pool(Protocol):
    """Gathers the scores of a system into a number that is not a mean: corpus BLEU, distinct.

    It goes by `Score.counts`, so that what was counted for the score of a sample is not counted
    again. Several processes fill pools of the same system, which are merged in any order: a pool
    adds up whole numbers or joins sets, since a sum of floats would depend on that order.
    """

    def add(self, score: Score) -> None:
        """Adds the score of one more sample, also where it has no value."""

    def merge(self, other: Self) -> None:
        """Adds everything that another pool of the same metric was given."""

    def result(self) -> Score: ...


def bound() -> Any:
    """Returns a field that holds what an option named, as it was when the metric was made.

    It cannot be set from outside; `__post_init__` fills it with `Metric.bind`.
    """
    return dataclasses.field(init=False, repr=False, hash=False)


def option_fields(metric: Metric | type[Metric]) -> list[dataclasses.Field[Any]]:
    """Returns the options of a metric: all of its fields but those that are bound."""
    return [field for field in dataclasses.fields(metric) if field.init]


@dataclass(frozen=True)
class Metric:
    """Base of all metrics. The class attributes are the declaration; nothing else repeats them."""

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    without_model: ClassVar[str] = ""
    """The message if an option names no model; empty: every option has a default."""
    levels: ClassVar[frozenset[Level]] = frozenset({"turn"})
    direction: ClassVar[Direction] = "higher"
    citation: ClassVar[str] = ""
    calibration: ClassVar[CalibrationKind | None] = None
    file_digest: ClassVar[str] = ""
    """The digest of the file, for a metric from a file (`-m ./my_metric.py:EchoRate`)."""

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and highest value. A plain class attribute, `range = (0.0, 1.0)`, will do
        unless it depends on the options."""
        return (-math.inf, math.inf)

    @property
    def needs(self) -> frozenset[Need]:
        """What a sample must have. As with `range`, a plain class attribute will do unless it
        depends on the options."""
        return frozenset()

    @property
    def languages(self) -> frozenset[str]:
        """What its rules are made for, as in `text.NAMES`; empty: any. What the models in
        `models` have learned is theirs to say. As with `range`, a class attribute will do."""
        return frozenset()

    def ask(self, sample: Sample) -> Sequence[Question]:
        """Returns what this metric wants to know about the sample. Most string metrics ask
        nothing."""
        return ()

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        """Returns the score of a sample that has everything in `needs`; `answers` as asked, in
        order."""
        raise NotImplementedError

    def parts(self) -> tuple[Part, ...]:
        """Returns the parts that each score carries, in the order of the table's columns."""
        return ()

    def scales(self) -> Mapping[str, CalibrationKind]:
        """Parts that are put on a scale of their own, fitted on the run like `calibration`, before
        `combine` makes the value of them. The value that `score` gives is then the raw one."""
        return {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        """Returns the value of a sample, from its parts in `scales`, on their scales."""
        raise NotImplementedError

    def pool(self) -> Pool | None:
        """Returns a fresh accumulator if a system's number is not the mean of its scores. A metric
        that has one asks nothing, so that a resumed run can count what was scored before."""
        return None

    def models(self) -> Mapping[str, str]:
        """Returns the models that are asked, by role: `{"model": "smollm2-135m"}`. By default those
        that the options name."""
        return {name: getattr(self, name) for name in self.uses()}

    @classmethod
    def uses(cls) -> dict[str, str]:
        """Returns the options that name a model, each with its use (see
        `model_store/presets.py`)."""
        uses = {field.name: field.metadata.get("use", "") for field in option_fields(cls)}
        return {name: use for name, use in uses.items() if use}

    def signature_fields(self) -> Mapping[str, str]:
        """Returns what moves the number besides the options: a library's version, a tokenizer."""
        return {}

    def options(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in option_fields(self)}

    def bind(self, **found: Any) -> None:
        """Fills fields that are declared with `bound`. Only `__post_init__` may call this."""
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """The name of this metric in tables: with the options that differ from the default."""
        changed = [
            f"{field.name}={render_option(getattr(self, field.name))}"
            for field in option_fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}:{','.join(changed)}" if changed else self.name

    def signature(self, fingerprints: Mapping[str, str] | None = None) -> Signature:
        """`fingerprints` gives, by name, the identity of the weights of each model in `models`."""
        known = fingerprints or {}
        fields = {
            field.name: render_option(getattr(self, field.name))
            for field in option_fields(self)
            if field.metadata.get("moves_score", True)
        }
        for role, model in self.models().items():
            identity = known.get(model, "")
            fields[role] = f"{model}@{identity[:8]}" if identity else model
        fields |= self.signature_fields()
        if self.file_digest:
            fields["file"] = self.file_digest[:12]
        fields["dialeval"] = __version__
        return Signature(self.name, self.version, tuple(fields.items()))

    def obstacle(self, sample: Sample) -> str:
        """Returns why this metric has nothing to say about the sample; empty if it has."""
        if sample.level not in self.levels:
            return "no response" if sample.level == "dialogue" else "not a whole dialogue"
        needs = self.needs
        for need in ("context", "references", "facts", "ratings", "variants"):
            if need in needs and not getattr(sample, need):
                return f"no {need}"
        return ""


def render_option(value: object) -> str:
    """Returns an option's value as it is typed on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if not text or text != text.strip() or any(char in text for char in ',"'):
        return '"' + text.replace('"', '""') + '"'
    return text
