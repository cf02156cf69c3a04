"""Low-rank adapters (LoRA; Hu et al., ICLR 2022) of linear layers: W x + (alpha / rank) U D x.

D and U are what is trained and kept, a few hundred kB, and W stays what it was. A network that only
reads multiplies with W + (alpha / rank) U D. One of ours makes this sum for every pass, so
that all adapters of a model share one W, mapped from its file: the sum takes `rank` multiplications
per weight, where a pass takes one per weight and token. In a network of another library the sum
takes the place of W. Both give the same numbers. (peft does the same and more; it takes longer to
import than a small encoder takes to load.)

`read_adapter` reads the two files that peft writes:

    adapter_config.json         rank, alpha, and how the adapted layers are called
    adapter_model.safetensors   base_model.model.LAYER.lora_A.weight and .lora_B.weight, and
                                base_model.model.NAME of what was trained whole, such as a head

peft knows many more kinds of adapters (DoRA, ranks by layer, biases, other scalings, ...); those
are left to it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json, read_tensors


class Linear(torch.nn.Linear):
    """A linear layer of ours: one that only reads may carry a trained path beside its weights."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.register_buffer("down", None, persistent=False)
        self.register_buffer("up", None, persistent=False)
        self.scale = 1.0

    def carry(self, down: torch.Tensor, up: torch.Tensor, scale: float) -> None:
        """Puts an adapter on this layer: from now on its weights are W + scale * up down."""
        self.down, self.up, self.scale = down, up, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight: torch.Tensor = self.weight
        if self.up is not None:
            weight = torch.addmm(weight, self.up, self.down, alpha=self.scale)
        return torch.nn.functional.linear(x, weight, self.bias)


class LowRankLinear(torch.nn.Module):
    """A frozen linear layer with a trainable path of low rank beside it, which begins as zero."""

    def __init__(self, linear: torch.nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear = linear
        self.scale = alpha / rank
        self.down = torch.nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = torch.nn.Parameter(torch.zeros(linear.out_features, rank))
        torch.nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        change = torch.nn.functional.linear(torch.nn.functional.linear(x, self.down), self.up)
        whole: torch.Tensor = self.linear(x) + self.scale * change
        return whole


def add_low_rank(model: torch.nn.Module, rank: int, alpha: float, seed: int) -> None:
    """Freezes the model and puts a trainable path beside each linear layer of its blocks."""
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, linear in linear_layers(model).items():
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, LowRankLinear(linear, rank, alpha))


def low_rank_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns what `merge_low_rank` needs: `NAME.down` and `NAME.up` of each layer, by its name in
    the model without adapters."""
    return {
        f"{name}.{part}": getattr(module, part).detach()
        for name, module in model.named_modules()
        if isinstance(module, LowRankLinear)
        for part in ("down", "up")
    }


def load_low_rank(model: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
    """Gives the trainable paths of a model the values that `low_rank_tensors` returned."""
    paths = low_rank_tensors(model)
    if paths.keys() != tensors.keys():
        raise _of_another_model(paths.keys() ^ tensors.keys())
    for name, path in paths.items():
        if path.shape != tensors[name].shape:
            raise UsageError(f"these adapters belong to another model: {name} differs in size")
        path.copy_(tensors[name])


def merge_low_rank(
    model: torch.nn.Module,
    tensors: Mapping[str, torch.Tensor],
    alpha: float,
    targets: Collection[str] = (),
) -> None:
    """Adds the trained paths to the layers of a model that has none and only reads; `targets`: to
    these layers."""
    layers = linear_layers(model, targets)
    wanted = {f"{name}.{part}" for name in layers for part in ("down", "up")}
    if wanted != tensors.keys():
        raise _of_another_model(wanted ^ tensors.keys())
    with torch.no_grad():
        for name, linear in layers.items():
            down, up = tensors[f"{name}.down"].float(), tensors[f"{name}.up"].float()
            if (up.shape[0], down.shape[1]) != linear.weight.shape:
                raise UsageError(f"these adapters belong to another model: {name} differs in size")
            scale = alpha / down.shape[0]
            if isinstance(linear, Linear):
                linear.carry(down, up, scale)
                continue
            # A new tensor: what was here may be mapped from a file, or belong to others as well.
            merged = torch.addmm(linear.weight, up, down, alpha=scale)
            linear.weight = torch.nn.Parameter(merged, requires_grad=linear.weight.requires_grad)


def _of_another_model(odd: Collection[str]) -> UsageError:
    return UsageError(f"these adapters belong to another model: {min(odd)} is on one side only")


def merged_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns a copy of all weights of a model that only reads, the paths that it carries added to
    them."""
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, module in model.named_modules():
        if isinstance(module, Linear) and module.up is not None:
            weights[f"{name}.weight"].addmm_(module.up, module.down, alpha=module.scale)
    return weights


def linear_layers(
    model: torch.nn.Module, targets: Collection[str] = ()
) -> dict[str, torch.nn.Linear]:
    """Returns the layers whose name ends in one of `targets`, as peft counts them (`value`,
    `output.dense`).

    Without targets, those of the blocks: a pooler on top, where there is one, is left out.
    """
    ends = tuple(f".{target}" for target in targets)
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and (f".{name}".endswith(ends) if targets else not name.startswith("pooler."))
    }


CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
PARTS = {".lora_A.weight": ".down", ".lora_B.weight": ".up"}

READ_HERE = {"peft_type", "r", "lora_alpha", "target_modules", "modules_to_save"}
WITHOUT_EFFECT = {
    "auto_mapping",
    "base_model_name_or_path",
    "inference_mode",
    "init_lora_weights",
    "lora_dropout",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "task_type",
}
"""On the merged weights, as long as everything else is switched off. An option that is in none of
the two sets has to be: that holds for those that peft does not have yet, too."""


@dataclass(frozen=True)
class PeftAdapter:
    """`paths` are NAME.down and NAME.up as `low_rank` has them, `whole` replaces what was there."""

    directory: Path
    alpha: float
    targets: frozenset[str]
    paths: Mapping[str, torch.Tensor]
    whole: Mapping[str, torch.Tensor]

    def merge_into(self, model: torch.nn.Module) -> bool:
        """Adds the paths to a model; False, and nothing is added, if it has other layers."""
        names = {name.rpartition(".")[0] for name in self.paths}
        if linear_layers(model, self.targets).keys() != names:
            return False
        try:
            merge_low_rank(model, self.paths, self.alpha, self.targets)
        except UsageError as error:
            raise UsageError(f"{self.directory}: {error}") from error
        return True


def read_adapter(directory: Path) -> PeftAdapter | None:
    """Returns the adapter of a directory; None if peft has to read it."""
    config = read_json(directory / CONFIG)
    if not _is_plain(config) or not (directory / WEIGHTS).is_file():
        return None
    paths, whole = {}, {}
    for full_name, tensor in read_tensors(directory / WEIGHTS).items():
        name = full_name.removeprefix(PREFIX)
        part = next((part for part in PARTS if name.endswith(part)), None)
        if part:
            paths[name.removesuffix(part) + PARTS[part]] = tensor
        else:
            whole[name] = tensor
    saved = set(config.get("modules_to_save") or ())
    known = all(name.rpartition(".")[0].rpartition(".")[2] in saved for name in whole)
    ranks = {tensor.shape[0] for name, tensor in paths.items() if name.endswith(".down")}
    if not known or ranks != {config["r"]}:
        return None
    targets = frozenset(config["target_modules"])
    return PeftAdapter(directory, float(config["lora_alpha"]), targets, paths, whole)


def _is_plain(config: Mapping[str, Any]) -> bool:
    return (
        config.get("peft_type") == "LORA"
        and isinstance(config.get("r"), int)
        and isinstance(config.get("lora_alpha"), int | float)
        and isinstance(config.get("target_modules"), list)
        # Some ways to begin change the weights of the model as well.
        and isinstance(config.get("init_lora_weights", True), bool)
        and all(
            not value or value == "none"
            for name, value in config.items()
            if name not in READ_HERE | WITHOUT_EFFECT
        )
    )
