"""The interface of a recipe: the declaration of how one part is learned.

A recipe is a frozen dataclass. Its fields are its options, declared like those of metrics:

    @dataclass(frozen=True, kw_only=True)
    class MmeFluency(TextJudge):
        '''Teach an encoder which responses are fluent.'''

        name = "mme-fluency"
        metric = "mme-fluency"
        epochs: int = option(3, "Train for this many epochs.", low=1)

`dialeval train mme-fluency --epochs 5` and `dialeval.train("mme-fluency", ..., epochs=5)` take them
by these names. A field without `option` is a number of the recipe that only code changes.

`run.py` drives a recipe through its steps and does everything that recipes have in common:

    prepare    read the data, build what learns, say what must be equal for a resume
    learn      train it: by default one stage of the shared loop
    save       write what `-m METRIC:model=DIR` takes
    measure    measure what was saved, on data that were held out
    agreement  correlate the scores of the metric with the ratings of people

This file and the recipes import no model library before a step runs, so that help texts are fast.

`Settings` are the options of the training loop. Their `schedule` says how the learning rate rises
and falls:

    linear    it rises over the share `warmup` of all steps, then falls to 0
    noam      min(step ** -0.5, step * warmup_steps ** -1.5) (Vaswani et al., 2017); the learning
              rate that it is a share of contains their factor d_model ** -0.5
    halving   it is full for `halve_after` epochs, then half the previous rate in each further one
              (OpenNMT)
    constant  it is always full
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.progress import usual_progress

if TYPE_CHECKING:
    from dialeval.training.loop import State
    from dialeval.training.run import Training

Schedule = Literal["linear", "noam", "halving", "constant"]


@dataclass(frozen=True)
class Settings:
    """The options of the training loop.

    schedule      how the learning rate rises and falls; see above
    warmup        `linear`: share of all steps over which the learning rate rises
    warmup_steps  `noam`: the same, in steps
    halve_after   `halving`: epochs with the full learning rate
    clip          the largest norm of a gradient; 0: any
    steps         train for this many steps, whatever `epochs` says; 0: as `epochs` says
    patience      epochs without a better validation loss after which training stops; 0: never
    keep          the final parameters: those of the best epoch (which may be the start) or of the
                  last one
    """

    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    warmup: float = 0.05
    clip: float = 1.0
    patience: int = 0
    seed: int = 0
    checkpoint_seconds: float = 60.0
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    beta2: float = 0.999
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    halve_after: int = 0
    steps: int = 0
    keep: Literal["best", "last"] = "best"

    def share_of_rate(self, step: int, steps: int, per_epoch: int) -> float:
        """Returns the share of the learning rate for step number `step`, from 0, of `steps` in
        all."""
        if self.schedule == "constant":
            return 1.0
        if self.schedule == "noam":
            return float(min((step + 1) ** -0.5, (step + 1) * max(1, self.warmup_steps) ** -1.5))
        if self.schedule == "halving":
            return float(0.5 ** max(0, 1 + step // per_epoch - self.halve_after))
        rising = max(1, round(steps * self.warmup))
        if step < rising:
            return (step + 1) / rising
        return max(0.0, (steps - step) / max(1, steps - rising))


RATED: Mapping[str, str] = {
    "usr-topical": "Overall",
    "grade-dailydialog": "coherence",
    "fed": "Overall",
    "engage": "engagement",
    "holistic/coherence": "coherence",
}
"""Rated data set -> the quality that scores of single responses are compared with."""

Counted = Callable[[int, int], None]
"""Called with how many of how many are done."""


class Progress:
    """The reports of a running training. This class shows bars in a notebook, and else nothing.

    A terminal shows one bar at a time: they are opened one after the other.
    """

    def say(self, line: str) -> None: ...

    def counting(self, what: str) -> AbstractContextManager[Counted]:
        """Opens a bar for work whose steps are known."""
        return nullcontext(usual_progress(what))

    def training(self) -> AbstractContextManager[Callable[[State, int], None]]:
        """Opens a bar for the loop, which reports its state and the number of all steps."""
        bar = usual_progress("training")
        return nullcontext(lambda state, steps: bar(state.step, steps))

    def finished(self, done: int, total: int) -> None:
        """Called after each of several trainings, such as those with other seeds."""


L = TypeVar("L")


@dataclass
class Prepared(Generic[L]):
    """The result of `prepare`, for the steps after it. A recipe that needs more extends it.

    learner   the part that the loop trains; None: nothing is rounded to 16 bits
    summary   what the part does, for the card
    base      the model that it stands on
    data      facts about the data, for the card
    identity  what must be equal for a checkpoint to be continued, besides the options: digests of
              the data, fingerprints of models
    config    what has to be known to use the part, for the card
    seed      the seed that was kept, if several were trained
    """

    learner: L
    summary: str
    base: str
    data: dict[str, Any]
    identity: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Measures:
    """The numbers that were measured, for the card (see `card.Card`)."""

    scores: Mapping[str, float | None]
    by_source: Sequence[Mapping[str, Any]] = ()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


P = TypeVar("P", bound=Prepared[Any])


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC, Generic[P]):
    """Base of all recipes. The docstring of a recipe is its help text.

    name    as in `dialeval train NAME`
    metric  the metric that uses the result, with options: `ruber:blend=unreferenced`; empty: none
    rated   the rated sets that its agreement with people is measured on, each with its quality
    usage   the command that uses the result
    """

    name: ClassVar[str]
    metric: ClassVar[str] = ""
    rated: ClassVar[Mapping[str, str]] = RATED
    usage: ClassVar[str] = "dialeval score FILE -m {metric}:model={out}"

    seed: int = option(0, "Use this seed: the same seed gives the same result.")

    @abstractmethod
    def prepare(self, data: Sequence[Path], progress: Progress) -> P: ...

    def settings(self) -> Settings | None:
        """Returns how the loop trains; None: the recipe has a `learn` of its own without a loop."""
        return None

    def learn(self, prepared: P, training: Training) -> Sequence[Mapping[str, float]]:
        """Trains the learner and returns the curve for the card."""
        settings = self.settings()
        assert settings is not None
        return training.stage(prepared.learner, settings).curve

    @property
    def bits(self) -> int:
        """The precision of saved weights: 16 or 32. Learners are rounded before they are saved."""
        return 16

    @abstractmethod
    def save(self, prepared: P, out: Path) -> None: ...

    @abstractmethod
    def measure(self, prepared: P, progress: Progress) -> Measures: ...

    def agreement(self, prepared: P, out: Path, progress: Progress) -> dict[str, float | None]:
        """Returns Spearman's rho of the metric with this part and people, on each rated set that is
        here."""
        from dialeval.training.card import metric_agreement

        if not self.metric:
            return {}
        return metric_agreement(self.metric, out, self.rated, progress)

    def options(self) -> dict[str, Any]:
        """Returns all fields by name, as they are recorded and compared before a resume."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.repr}

    def command(self, data: Sequence[Path], out: Path, licence: str | None) -> str:
        """Returns the command that trains this, for the card."""
        words = ["dialeval", "train", self.name]
        for path in data:
            words += ["--data", str(path)]
        for one in option_fields(type(self)):
            value, flag = getattr(self, one.name), one.name.replace("_", "-")
            if isinstance(value, bool) and value != one.default:
                words.append(f"--{flag}" if value else f"--no-{flag}")
            elif value != one.default:
                words += [f"--{flag}", str(value)]
        words += ["--licence", licence] if licence else []
        return shlex.join([*words, "-o", str(out)])

    @property
    def metric_name(self) -> str:
        return self.metric.partition(":")[0]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws the random numbers of torch from this seed; those drawn afterwards do not show it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def settings_of(recipe: Recipe[Any], **others: Any) -> Settings:
    """Returns settings of the loop: the fields of the recipe that have the name of a setting, and
    `others`."""
    own = {one.name for one in fields(recipe)} & {one.name for one in fields(Settings)}
    return Settings(**{name: getattr(recipe, name) for name in own} | others)


def option_fields(recipe: type[Recipe[Any]]) -> list[Any]:
    """Returns the fields that people may set; those of the base come last."""
    declared = [one for one in fields(recipe) if "summary" in one.metadata]
    return sorted(declared, key=lambda one: one.name == "seed")


def epochs_option(default: int) -> Any:
    return option(default, "Train for this many epochs.", low=1)


def patience_option(default: int) -> Any:
    return option(default, "Stop after this many epochs without improvement; 0: never.", low=0)


def schedule_option() -> Any:
    return option(
        "linear",
        "Choose the schedule of the learning rate. linear: it rises, then falls to 0. constant:"
        " it stays the same, as in MME-CRS.",
    )


def precision_option() -> Any:
    return option(
        "float32",
        "Multiply in this precision while learning; bfloat16 is faster on processors that have it.",
    )


def held_out_option(default: int | None, what: str) -> Any:
    return option(default, f"Validate and test on this many {what}.", low=1)


@dataclass(frozen=True, kw_only=True)
class AdapterRecipe(Recipe[P]):
    """A recipe that trains a low-rank adapter of a model, or all of its weights.

    usual_rank   of the adapter
    usual_rates  highest learning rate for an adapter, and for all weights
    """

    usual_rank: ClassVar[int] = 8
    usual_rates: ClassVar[tuple[float, float]] = (1e-3, 1e-5)

    full: bool = option(False, "Train all weights instead of a low-rank adapter.")
    rank: int | None = option(
        None, "Set the rank of the adapter (default: {recipe.usual_rank}).", low=1
    )
    learning_rate: float | None = option(
        None,
        "Set the highest learning rate (default: {recipe.usual_rates[0]:g}, with --full"
        " {recipe.usual_rates[1]:g}).",
        low=0.0,
    )

    def __post_init__(self) -> None:
        if self.full and self.rank:
            raise UsageError("--full trains all weights: there is no adapter to give a --rank")

    @property
    def adapter_rank(self) -> int:
        """0 if all weights are trained."""
        return 0 if self.full else self.rank or self.usual_rank

    def settings(self) -> Settings:
        return settings_of(self, learning_rate=self.highest_rate)

    @property
    def highest_rate(self) -> float:
        usual = self.usual_rates[1 if self.full else 0]
        return usual if self.learning_rate is None else self.learning_rate
