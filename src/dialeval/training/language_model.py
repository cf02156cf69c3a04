"""`dialeval train lm`: a language model learns how dialogues go on (HolisticEval, section 4.3).

The turns of a dialogue are written one after the other, as `coherence` will ask about them (layout
`plain`: a start token, turns joined by a space), and the model learns to predict every token of
them. By default only LoRA adapters are trained (Hu et al., ICLR 2022), a few MB beside a frozen
model; `full` trains and saves all weights, as the paper did with GPT-2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from dialeval.storage import atomic_path
from dialeval.training.corpora import Dialogue
from dialeval.training.loop import Validation

LORA_TARGETS = "all-linear"


@dataclass(frozen=True)
class LanguageModelOptions:
    """rank 0 trains all weights. `tokens` bounds what one epoch sees; None: everything."""

    rank: int = 8
    alpha: int = 16
    batch_tokens: int = 2048
    block: int = 256
    tokens: int | None = None


class LanguageModelRecipe:
    """Next-token prediction over whole dialogues, packed by length."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        train: Sequence[Dialogue],
        validation: Sequence[Dialogue],
        options: LanguageModelOptions,
        seed: int,
    ) -> None:
        self.model = model
        self._options = options
        self._seed = seed
        self._train = self._choose(encode_dialogues(tokenizer, train, options.block))
        self._validation = encode_dialogues(tokenizer, validation, options.block)
        self._pad = tokenizer.eos_token_id or 0

    @property
    def tokens(self) -> int:
        """Tokens that one epoch sees."""
        return sum(len(ids) for ids in self._train)

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[list[int]]]:
        generator = np.random.default_rng([self._seed, epoch])
        return _batches(self._train, self._options.batch_tokens, generator)

    def loss(self, batch: list[list[int]]) -> torch.Tensor:
        self.model.train()
        total, count = self._nll(batch)
        return total / count

    def validate(self) -> Validation:
        loss = self.mean_nll(self._validation)
        return Validation(loss, {"validation_perplexity": math.exp(loss)})

    @torch.no_grad()
    def mean_nll(self, encoded: Sequence[list[int]]) -> float:
        """Mean negative log-likelihood of a token."""
        self.model.eval()
        generator = np.random.default_rng(0)
        total, count = 0.0, 0
        for batch in _batches(encoded, 2 * self._options.batch_tokens, generator):
            nll, n = self._nll(batch)
            total, count = total + float(nll), count + n
        return total / count

    def _nll(self, batch: list[list[int]]) -> tuple[torch.Tensor, int]:
        width = max(len(ids) for ids in batch)
        ids = torch.full((len(batch), width), self._pad)
        real = torch.zeros((len(batch), width), dtype=torch.bool)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            real[row, : len(tokens)] = True
        # Padding lies on the right, where causal attention never looks: no mask is needed.
        logits = self.model(input_ids=ids, use_cache=False).logits[:, :-1]
        wanted = real[:, 1:]
        nll = torch.nn.functional.cross_entropy(
            logits[wanted].float(), ids[:, 1:][wanted], reduction="sum"
        )
        return nll, int(wanted.sum())

    def _choose(self, encoded: list[list[int]]) -> list[list[int]]:
        """A seeded selection of dialogues with at most `tokens` tokens."""
        if self._options.tokens is None:
            return encoded
        order = np.random.default_rng(self._seed).permutation(len(encoded))
        chosen, total = [], 0
        for i in order:
            if total + len(encoded[i]) > self._options.tokens:
                break
            chosen.append(encoded[i])
            total += len(encoded[i])
        return chosen


def encode_dialogues(tokenizer: Any, dialogues: Sequence[Dialogue], block: int) -> list[list[int]]:
    """Token ids of each dialogue, turn by turn as in the layout `plain`; a long end is cut."""
    from dialeval.models.start_token import start_token

    start = start_token(tokenizer)
    encoded = []
    for dialogue in dialogues:
        ids = [start] if start is not None else []
        for i, turn in enumerate(dialogue):
            ids += tokenizer.encode(turn if i == 0 else f" {turn}", add_special_tokens=False)
        if len(ids) > 1:
            encoded.append(ids[:block])
    return encoded


def _batches(
    encoded: Sequence[list[int]], batch_tokens: int, generator: np.random.Generator
) -> list[list[list[int]]]:
    """Dialogues of similar length together, batches in random order."""
    jitter = generator.random(len(encoded))
    order = sorted(range(len(encoded)), key=lambda i: (len(encoded[i]) // 8, jitter[i]))
    batches: list[list[list[int]]] = []
    current: list[list[int]] = []
    for i in order:
        if current and (len(current) + 1) * len(encoded[i]) > batch_tokens:
            batches.append(current)
            current = []
        current.append(encoded[i])
    if current:
        batches.append(current)
    return [batches[i] for i in generator.permutation(len(batches))]


def add_adapters(model: Any, options: LanguageModelOptions, seed: int) -> Any:
    """The model with LoRA adapters on all linear layers but the head, the rest frozen."""
    if options.rank == 0:
        return model
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=0.0,
        target_modules=LORA_TARGETS,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_peft_model(model, config)


def round_adapters(model: Any) -> None:
    """To what 16 bits can hold, as adapters are saved: what is measured is what is kept."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(parameter.half())


def save(model: Any, tokenizer: Any, base: str, options: LanguageModelOptions, out: Path) -> None:
    """Adapters alone, with the name of their base, or the whole model with its tokenizer."""
    if not options.rank:
        model.save_pretrained(out, safe_serialization=True)
        tokenizer.save_pretrained(out)
        return
    from peft import get_peft_model_state_dict

    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.save_pretrained(out)
    tensors = get_peft_model_state_dict(model, save_embedding_layers=False)
    halves = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
    with atomic_path(out / "adapter_model.safetensors") as temporary:
        save_file(halves, temporary)
