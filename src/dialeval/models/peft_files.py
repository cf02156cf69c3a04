"""Adapters (LoRA) in the two files that peft writes, read without peft.

    adapter_config.json         rank, alpha, and how the adapted layers are called
    adapter_model.safetensors   base_model.model.LAYER.lora_A.weight and .lora_B.weight, and
                                base_model.model.NAME of what was trained whole, such as a head

peft imports transformers and accelerate, and that takes longer than ten dialogues do. It knows many
more kinds of adapters (DoRA, ranks by layer, biases, other scalings, ...); those are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.models.low_rank import linear_layers, merge_low_rank
from dialeval.models.weights import read_json, read_tensors

if TYPE_CHECKING:
    import torch

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


def read(directory: Path) -> PeftAdapter | None:
    """The adapter of a directory; None if peft has to read it."""
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
