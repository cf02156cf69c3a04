"""GPT-2 with a scalar head, such as DialogRPT, answers `Judge`: one number for a reply.

    turn <|endoftext|> turn <|endoftext|> response      the head reads the state of the last token

The sigmoid of its number is the score. What does not fit the model loses tokens at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.models.loading import (
    batches_by_length,
    choose_device,
    in_halves,
    silence,
    text_tokenizer,
    token_ids,
    window_of,
)
from dialeval.question import Answer, Judge, Judgement, Question, cannot_answer

TOKENS_PER_BATCH = 2048


def load(directory: Path, *, device: str = "auto", adapter: Path | None = None) -> ReplyRanker:
    """Loads the model in a directory of the Hugging Face layout."""
    from transformers import AutoModelForSequenceClassification

    if adapter is not None:
        raise UsageError(f"{adapter}: a ranker of replies takes no adapter.")
    with silence():
        model = AutoModelForSequenceClassification.from_pretrained(
            directory, local_files_only=True, dtype=torch.float32, weights_only=True
        )
    return ReplyRanker(model.to(choose_device(device)), text_tokenizer(directory))


class ReplyRanker:
    """A tokenizer and a model."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._window = window_of(model, tokenizer)
        self._end = int(tokenizer.eos_token_id)

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        read = [self._ids(question) for question in questions]
        for batch in batches_by_length([len(ids) for ids, _ in read], TOKENS_PER_BATCH):
            scores = in_halves(
                self._scores,
                [read[place][0] for place in batch],
                lambda ids: f"dialogue of {max(1, len(ids))} tokens",
            )
            for place, score in zip(batch, torch.cat(scores).tolist(), strict=True):
                yield place, Judgement(score, *read[place][1]).answer()

    def _ids(self, question: Question) -> tuple[list[int], tuple[int, int]]:
        """Returns the token ids, and how many tokens are read of what was cut."""
        if not isinstance(question, Judge):
            raise cannot_answer(question, "a ranker of replies")
        *turns, response = token_ids(self._tokenizer, (*question.turns, question.response))
        before = [token for turn in turns for token in (*turn, self._end)]
        room = self._window - len(response)
        if room < 0:
            return response[: self._window], (0, self._window)
        if len(before) <= room:
            return before + response, (0, 0)
        return before[len(before) - room :] + response, (room, 0)

    def _scores(self, batch: Sequence[Sequence[int]]) -> torch.Tensor:
        longest = max(1, *map(len, batch))
        ids = torch.full((len(batch), longest), self._end)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for row, own in enumerate(batch):
            ids[row, : len(own)] = torch.tensor(own)
            mask[row, : len(own)] = 1
        last = torch.tensor([max(0, len(own) - 1) for own in batch])
        device = self._model.device
        with torch.inference_mode():
            body = getattr(self._model, self._model.base_model_prefix)
            states = body(
                input_ids=ids.to(device), attention_mask=mask.to(device)
            ).last_hidden_state
            ends = states[torch.arange(len(batch), device=device), last.to(device)]
            logits: torch.Tensor = self._model.score(ends)[:, 0]
            return logits.double().sigmoid().cpu()
