"""Classifiers of sentence pairs: BERT, RoBERTa and their relatives answer `Inference`.

Which of a model's outputs means contradiction is read from its configuration (`id2label`): models
trained on the same data order their labels differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.models.loading import (
    SURROGATE,
    batches_by_length,
    choose_device,
    in_halves,
    merged_by_peft,
    positions_of,
    silence,
    text_tokenizer,
    window_of,
)
from dialeval.networks import bert
from dialeval.question import NLI_LABELS, Answer, Inference, Question, cannot_answer

TOKENS_PER_BATCH = 4096
LONGEST = 256
"""The most tokens of a pair, if the model can read that many: both texts are single turns."""

Inputs = dict[str, torch.Tensor]
Segmented = tuple[list[int], list[int]]
"""Token ids, and of each token the text that it belongs to: 0 or 1."""


def load(directory: Path, *, device: str = "auto", adapter: Path | None = None) -> Classifier:
    """Loads the classifier in a directory of the Hugging Face layout; an adapter brings its own
    head."""
    head = {"num_labels": len(NLI_LABELS)} | label_names() if adapter else {}
    model = bert.load_classifier(directory, adapter, head)
    if model is None:
        model = _any_classifier(directory, adapter, head)
    return Classifier(model.to(choose_device(device)), text_tokenizer(directory))


def _any_classifier(directory: Path, adapter: Path | None, head: dict[str, Any]) -> Any:
    """Loads also a classifier that `networks.bert` does not know: RoBERTa, DeBERTa and so on."""
    from transformers import AutoModelForSequenceClassification

    with silence():
        model = AutoModelForSequenceClassification.from_pretrained(
            directory, local_files_only=True, dtype=torch.float32, weights_only=True, **head
        )
        return merged_by_peft(model, adapter) if adapter else model


def label_names() -> dict[str, Any]:
    """Our labels in the words of a transformers configuration."""
    return {
        "id2label": dict(enumerate(NLI_LABELS)),
        "label2id": {name: i for i, name in enumerate(NLI_LABELS)},
    }


class Classifier:
    """A tokenizer and a model."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._columns = label_columns(model.config)
        body = getattr(model, model.base_model_prefix)
        self._limit = min(LONGEST, window_of(model, tokenizer), positions_of(body))

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        pairs = []
        for question in questions:
            if not isinstance(question, Inference):
                raise cannot_answer(question, "a classifier of sentence pairs")
            pairs.append((question.premise, question.hypothesis))
        if not pairs:
            return
        encoded, cut = self._encode(pairs)
        for batch in batches_by_length([len(ids) for ids, _ in encoded], TOKENS_PER_BATCH):
            parts = in_halves(
                self._probabilities,
                [encoded[i] for i in batch],
                lambda pair: f"pair of {len(pair[0])} tokens",
            )
            probabilities = torch.cat(parts).cpu().double().numpy()
            for number, found in zip(batch, probabilities, strict=True):
                yield number, np.append(found, 1.0) if number in cut else found

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[Segmented], set[int]]:
        """Token ids of each pair, and the numbers of those that were cut."""
        clean = [[SURROGATE.sub("\ufffd", text.strip()) for text in pair] for pair in pairs]
        columns = [list(column) for column in zip(*clean, strict=True)]
        read = self._tokenizer(*columns, return_token_type_ids=True, verbose=False)
        encoded: list[Segmented] = list(zip(read.input_ids, read.token_type_ids, strict=True))
        too_long = {number for number, (ids, _) in enumerate(encoded) if len(ids) > self._limit}
        for number in too_long:
            cut = self._tokenizer(
                *clean[number],
                truncation=True,
                max_length=self._limit,
                return_token_type_ids=True,
            )
            encoded[number] = (cut.input_ids, cut.token_type_ids)
        return encoded, too_long

    def _probabilities(self, batch: Sequence[Segmented]) -> torch.Tensor:
        inputs = pad(batch, self._tokenizer)
        with torch.inference_mode():
            on_device = {name: t.to(self._model.device) for name, t in inputs.items()}
            logits: torch.Tensor = self._model(**on_device).logits.double()
        return logits.softmax(-1)[:, self._columns]


def padded(batch: Sequence[Segmented], padding: int) -> Inputs:
    """Token ids and segments as tensors; the padding is masked."""
    shape = (len(batch), max(len(ids) for ids, _ in batch))
    inputs = {
        "input_ids": torch.full(shape, padding),
        "attention_mask": torch.zeros(shape, dtype=torch.long),
        "token_type_ids": torch.zeros(shape, dtype=torch.long),
    }
    for row, (ids, types) in enumerate(batch):
        inputs["input_ids"][row, : len(ids)] = torch.tensor(ids)
        inputs["attention_mask"][row, : len(ids)] = 1
        inputs["token_type_ids"][row, : len(ids)] = torch.tensor(types)
    return inputs


def pad(batch: Sequence[Segmented], tokenizer: Any) -> Inputs:
    """Pads for a network that takes segments only if its tokenizer names them."""
    inputs = padded(batch, tokenizer.pad_token_id)
    if "token_type_ids" not in tokenizer.model_input_names:
        del inputs["token_type_ids"]
    return inputs


def label_columns(config: Any) -> list[int]:
    """Returns which of the model's outputs belongs to each of `NLI_LABELS`."""
    names = {str(name).strip().lower(): int(i) for i, name in (config.id2label or {}).items()}
    missing = [label for label in NLI_LABELS if label not in names]
    if missing or len(names) != len(NLI_LABELS):
        raise UsageError(
            f"this classifier names its labels {', '.join(names)}; to judge contradictions it must"
            f" name them {', '.join(NLI_LABELS)} (id2label in its config.json)"
        )
    return [names[label] for label in NLI_LABELS]
