"""LoRA adapters (Hu et al., ICLR 2022): a few MB, trained and saved beside a frozen model.

They are made with peft, and those of `networks/low_rank.py` are not: language models and NLI
classifiers come from transformers, with layers that only peft knows by name, and their adapters are
saved in the two files that other tools read. The order in which peft creates its layers decides
what a seed starts from, so only peft can train the shipped adapters again. It is also needed to
read adapters of other kinds (`models/loading.py`).

A model of which all weights were trained becomes adapters, too (`change_as_adapters`): the change
of each linear layer is rounded to low rank by its singular values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json
from dialeval.models.loading import silence
from dialeval.storage import atomic_path
from dialeval.training.recipe import seeded

ADAPTERS = "adapter_model.safetensors"

Task = Literal["CAUSAL_LM", "SEQ_CLS"]


def add_adapters(
    model: Any,
    task: Task,
    rank: int,
    alpha: int,
    seed: int,
    trained: Sequence[str] = (),
) -> Any:
    """Returns the model with adapters on its linear layers, the rest frozen; rank 0: the model as
    it is.

    `trained` names the modules that are trained and saved whole, such as a new head.
    """
    if rank == 0:
        return model
    from peft import LoraConfig, get_peft_model

    # peft by itself puts no path beside a layer called `classifier`, but beside every other one.
    others = [name for name in trained if name != "classifier"]
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        exclude_modules=others or None,
        modules_to_save=list(trained) or None,
        task_type=task,
    )
    with seeded(seed), silence():
        return get_peft_model(model, config)


def shape_of_adapters(directory: Path) -> tuple[int, int]:
    """Rank and alpha, by which their product is weighed: adapters mean nothing without them."""
    config = read_json(directory / "adapter_config.json")
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if not (directory / ADAPTERS).is_file() or type(rank) is not int or type(alpha) is not int:
        raise UsageError(
            f"{directory} holds no adapters: expected are {ADAPTERS} and its description"
        )
    return rank, alpha


def load_adapters(model: Any, start: Path) -> None:
    """Puts adapters that were trained before into a model that has fresh ones of the same shape."""
    from peft import set_peft_model_state_dict

    tensors = load_file(start / ADAPTERS)
    try:
        found: Any = set_peft_model_state_dict(model, tensors)
    except RuntimeError as error:
        raise UsageError(f"{start}: its adapters have another shape than the model") from error
    if found.unexpected_keys:
        raise UsageError(f"{start}: not adapters of this model ({found.unexpected_keys[0]})")


def change_as_adapters(trained: Any, adapted: Any) -> None:
    """Writes into the adapters of an untrained model what training changed in the linear layers.

    Of a matrix of this rank none is nearer to the change (Eckart and Young, 1936). Layers that are
    saved whole are copied; embeddings, biases and norms stay what they were before the training.
    """
    from peft.tuners.lora import Linear
    from peft.utils import ModulesToSaveWrapper

    inner = adapted.get_base_model()
    with torch.no_grad():
        for name, module in inner.named_modules():
            if isinstance(module, ModulesToSaveWrapper):
                whole: Any = module.modules_to_save["default"]
                whole.load_state_dict(trained.get_submodule(name).state_dict())
            elif isinstance(module, Linear):
                down: Any = module.lora_A["default"]
                up: Any = module.lora_B["default"]
                change = trained.get_submodule(name).weight - module.get_base_layer().weight
                left, values, right = torch.linalg.svd(
                    change / module.scaling["default"], full_matrices=False
                )
                rank = min(len(values), down.out_features)
                root = values[:rank].sqrt()
                up.weight.zero_()[:, :rank] = left[:, :rank] * root
                down.weight.zero_()[:rank] = root[:, None] * right[:rank]


def save_adapters(model: Any, base: str, out: Path) -> None:
    """Saves the adapters alone, with the name of the model that they change."""
    from peft import get_peft_model_state_dict

    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.save_pretrained(out)
    tensors = get_peft_model_state_dict(model, save_embedding_layers=False)
    halves = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
    with atomic_path(out / ADAPTERS) as temporary:
        save_file(halves, temporary)


def save_model(model: Any, tokenizer: Any, out: Path) -> None:
    """Saves all weights, with their tokenizer."""
    with silence():
        model.save_pretrained(out, safe_serialization=True)
        tokenizer.save_pretrained(out)
