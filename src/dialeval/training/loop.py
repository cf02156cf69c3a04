"""The one training loop: seeded, resumable after a kill, best epoch kept.

A learner has parameters, batches, a loss and a validation. The loop owns everything else. A
checkpoint holds all that the rest of the training depends on (the parameters, the moments of Adam,
the generator's state, the curve), so a run that was killed and resumed ends with the same weights
as one that was not. It is one safetensors file, replaced as a whole; what is not a tensor is JSON
in its header. Nothing is pickled.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from dialeval.errors import JobError, UsageError
from dialeval.storage import atomic_path
from dialeval.training.recipe import Settings, seeded

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Objective:
    """The loss that a step minimises, if the curve shows another: a sum, a smoothed loss."""

    loss: torch.Tensor
    shown: torch.Tensor


@dataclass(frozen=True)
class Validation:
    """The lowest `criterion` decides which epoch is best; `measures` are what people read."""

    loss: float
    measures: Mapping[str, float]
    error: float | None = None
    """The number that chooses the best epoch, lowest first, if it is not the loss: the share of
    wrong answers, for instance."""

    @property
    def criterion(self) -> float:
        return self.loss if self.error is None else self.error


class Learner(Protocol):
    """The interface of the parts that the loop trains."""

    def parameters(self) -> Mapping[str, torch.nn.Parameter]: ...

    def batches(self, epoch: int) -> Sequence[Any]:
        """Returns the batches of an epoch: the same for the same epoch, and as many in every
        epoch."""
        ...

    def loss(self, batch: Any) -> torch.Tensor | Objective: ...

    def validate(self) -> Validation: ...


class NetworkLearner:
    """A learner that trains the parameters of its network that are not frozen."""

    network: torch.nn.Module

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}


def similar_batches(
    lengths: Sequence[int], size: int, generator: np.random.Generator
) -> list[list[int]]:
    """Returns batches of `size` rows of similar length, in random order."""
    jitter = generator.random(len(lengths))
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], jitter[row]))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return [batches[place] for place in generator.permutation(len(batches))]


def multiply_in(precision: str) -> torch.autocast:
    """Matrix products are computed in this precision; all else stays in 32 bits."""
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")


@torch.no_grad()
def round_to_half(learner: Learner) -> None:
    """Rounds the learned weights to 16 bits, as they are saved: the saved weights are measured."""
    for parameter in learner.parameters().values():
        parameter.copy_(parameter.half())


@dataclass
class State:
    """The state of the training. `step` counts batches over all epochs."""

    step: int = 0
    best_epoch: int = -1
    best_loss: float = math.inf
    curve: list[dict[str, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """The losses of the batches since the last validation."""


Report = Callable[[State, int], None]
"""Called after every step with the state and the number of all steps."""


def train(
    learner: Learner,
    settings: Settings,
    directory: Path,
    identity: Mapping[str, Any],
    report: Report = lambda state, steps: None,
) -> State:
    """Trains to the end and leaves the parameters of the best epoch (see `keep`) in the learner.

    `identity` is what must be equal for a checkpoint in `directory` to be continued. The checkpoint
    stays until `forget_checkpoint`, which is due when the result is saved.
    """
    with seeded(settings.seed):
        return _Training(learner, settings, directory, identity, report).run()


def forget_checkpoint(directory: Path) -> None:
    (directory / CHECKPOINT).unlink(missing_ok=True)


class _Training:
    """One run of the loop: the optimizer, the state and the checkpoint."""

    def __init__(
        self,
        learner: Learner,
        settings: Settings,
        directory: Path,
        identity: Mapping[str, Any],
        report: Report,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.identity = json.loads(json.dumps({**identity, "settings": asdict(settings)}))
        self.report = report
        self.parameters = dict(learner.parameters())
        self.best: dict[str, torch.Tensor] = {}
        self.state = State()
        self.optimizer = _optimizer(list(self.parameters.values()), settings)
        self._checkpoint = directory / CHECKPOINT
        self._saved_at = time.monotonic()

    def run(self) -> State:
        self._resume()
        per_epoch = len(self.learner.batches(0))
        if not per_epoch:
            raise UsageError("there is nothing to train on: the data give no batch")
        steps = self.settings.steps or per_epoch * self.settings.epochs
        if not self.state.curve:
            self._validate(epoch=-1)
        while self.state.step < steps and not self._is_out_of_patience():
            epoch, within = divmod(self.state.step, per_epoch)
            before = self.state.step
            for batch in self.learner.batches(epoch)[within : within + steps - self.state.step]:
                self._step(batch, steps, per_epoch)
                self.report(self.state, steps)
                # At the end of an epoch, or of all steps, validation comes first: a checkpoint
                # holds both.
                due = time.monotonic() - self._saved_at > self.settings.checkpoint_seconds
                if due and self.state.step % per_epoch and self.state.step < steps:
                    self._save()
            if self.state.step == before:
                raise JobError(
                    f"epoch {epoch + 1} has fewer batches than the first, which has {per_epoch}:"
                    " a learner gives as many in every epoch"
                )
            self._validate(epoch)
            self._save()
        if self.settings.keep == "best":
            self._restore_best()
        return self.state

    def _step(self, batch: Any, steps: int, per_epoch: int) -> None:
        for group in self.optimizer.param_groups:
            share = self.settings.share_of_rate(self.state.step, steps, per_epoch)
            group["lr"] = self.settings.learning_rate * share
        found = self.learner.loss(batch)
        objective = found if isinstance(found, Objective) else Objective(found, found)
        if not bool(torch.isfinite(objective.loss)):
            raise JobError(
                f"the loss is {float(objective.loss.detach())} at step {self.state.step + 1}:"
                " the learning rate is too high, or the data hold something odd"
            )
        objective.loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.state.losses.append(float(objective.shown.detach()))
        self.state.step += 1

    def _validate(self, epoch: int) -> None:
        """Epoch -1 is the model before any training: what the gain is measured against."""
        found = self.learner.validate()
        if not math.isfinite(found.criterion):
            raise JobError(
                f"validation gives {found.criterion} after step {self.state.step}: the data to"
                " validate on are too few or all alike, or the learning rate is too high"
            )
        entry = {"epoch": epoch, "step": self.state.step, "validation_loss": found.loss}
        if self.state.losses:
            entry["train_loss"] = math.fsum(self.state.losses) / len(self.state.losses)
        self.state.curve.append({**entry, **found.measures})
        self.state.losses.clear()
        if found.criterion < self.state.best_loss:
            self.state.best_loss, self.state.best_epoch = found.criterion, epoch
            self.best = {name: p.detach().clone() for name, p in self.parameters.items()}

    def _is_out_of_patience(self) -> bool:
        if not self.settings.patience or not self.state.curve:
            return False
        since_best = self.state.curve[-1]["epoch"] - self.state.best_epoch
        return since_best >= self.settings.patience

    def _restore_best(self) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(self.best[name])

    def _save(self) -> None:
        tensors = {"generator": torch.random.get_rng_state()}
        for name, parameter in self.parameters.items():
            tensors[f"parameter.{name}"] = parameter.detach()
            for moment, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"{moment}.{name}"] = torch.as_tensor(value)
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        facts = {"identity": self.identity, "state": asdict(self.state)}
        with atomic_path(self._checkpoint) as temporary:
            contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
            save_file(contiguous, temporary, metadata={"facts": json.dumps(facts)})
        self._saved_at = time.monotonic()

    def _resume(self) -> None:
        if not self._checkpoint.exists():
            return
        with safe_open(self._checkpoint, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if facts["identity"] != self.identity:
            raise UsageError(
                f"{self._checkpoint} belongs to another training. Repeat the command that began it,"
                " or choose another -o."
            )
        self.state = State(**facts["state"])
        torch.random.set_rng_state(tensors["generator"])
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[f"parameter.{name}"])
                if f"exp_avg.{name}" in tensors:
                    self.optimizer.state[parameter] = {
                        moment: tensors[f"{moment}.{name}"]
                        for moment in ("step", "exp_avg", "exp_avg_sq")
                    }
        self.best = {
            name.removeprefix("best."): tensor
            for name, tensor in tensors.items()
            if name.startswith("best.")
        }


def _optimizer(parameters: list[torch.nn.Parameter], settings: Settings) -> torch.optim.Optimizer:
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay)
    adam = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return adam(parameters, lr=rate, betas=(0.9, settings.beta2), weight_decay=decay)
