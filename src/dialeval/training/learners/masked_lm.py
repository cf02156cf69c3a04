"""An encoder learns to guess the word-pieces that are hidden from it in a response.

A quarter of the pieces, at least one, is hidden at random, anew in each epoch: about as many as the
metric hides at once, so that it asks what was learned. What is hidden is always `[MASK]`: there
are no random or kept pieces as in BERT's own training, because the metric never shows any. The
validation hides every fourth piece, each piece once.

A new head begins with what is known before anything is learned: the bias of a piece is the
logarithm of how often it occurs in the responses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dialeval.models.layout import EncoderInput
from dialeval.models.loading import batches_by_length, positions_of, window_of
from dialeval.models.masked_lm import MaskedNetwork, masked_log_probs, passes
from dialeval.training.loop import NetworkLearner, Validation
from dialeval.training.recipe import Counted

if TYPE_CHECKING:
    from dialeval.training.recipes.mme_specificity import MmeSpecificity

TOKENS_AT_ONCE = 4096
VALIDATION_MASKS = 4


@dataclass(frozen=True, slots=True)
class HiddenBatch:
    """Numbers of responses, and the seed by which their pieces are hidden."""

    responses: tuple[int, ...]
    seed: tuple[int, ...]


Hidden = tuple[list[int], Sequence[int]]
"""A response with its marks, and the places in it that are hidden."""


class MaskedLMLearner(NetworkLearner):
    """Cross-entropy over the pieces that are hidden; responses of similar length share a batch."""

    network: MaskedNetwork

    def __init__(
        self,
        network: MaskedNetwork,
        tokenizer: Any,
        train: Sequence[str],
        validation: Sequence[str],
        recipe: MmeSpecificity,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._recipe = recipe
        window = min(window_of(network.encoder, tokenizer), positions_of(network.encoder))
        self._input = EncoderInput(tokenizer, window)
        self._train = self.encode(train)
        self._validation = self.encode(validation)
        if network.is_new:
            start_from_frequencies(network, self._train)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Responses as the metric reads them; those without a piece are left out."""
        marks = (*self._input.before, *self._input.after)
        room = min(self._recipe.response_tokens, self._input.window - len(marks))
        read = (self._input.segments.text(text.strip()).ids[:room] for text in texts)
        return [[*self._input.before, *ids, *self._input.after] for ids in read if ids]

    @property
    def responses(self) -> int:
        """Responses that one epoch sees."""
        return len(self._train)

    def batches(self, epoch: int) -> list[HiddenBatch]:
        generator = np.random.default_rng([self._recipe.seed, epoch])
        jitter = generator.random(len(self._train))
        order = sorted(range(len(self._train)), key=lambda i: (len(self._train[i]) // 4, jitter[i]))
        size, seed = self._recipe.batch, self._recipe.seed
        batches = [
            HiddenBatch(tuple(order[start : start + size]), (seed, epoch, start))
            for start in range(0, len(order), size)
        ]
        return [batches[i] for i in generator.permutation(len(batches))]

    def loss(self, batch: HiddenBatch) -> torch.Tensor:
        # An adapter learns too little to need dropout, and is slowed down by it.
        self.network.train(self._recipe.full)
        generator = np.random.default_rng(batch.seed)
        rows = [self._draw(self._train[i], generator) for i in batch.responses]
        states, ids = self._hidden_states(rows)
        return torch.nn.functional.cross_entropy(self.network.head(states), ids)

    def _draw(self, ids: list[int], generator: np.random.Generator) -> Hidden:
        first = len(self._input.before)
        pieces = len(ids) - first - len(self._input.after)
        # Rounded at random, so that the share is right on average.
        wanted = int(pieces * self._recipe.share + generator.random())
        hidden = generator.permutation(pieces)[: max(1, wanted)]
        return ids, (hidden + first).tolist()

    def validate(self) -> Validation:
        """The loss is the mean over pieces: its exponential is the perplexity."""
        log_probs, right = self.guess(self._validation, VALIDATION_MASKS)
        loss = -float(np.concatenate(log_probs).mean())
        return Validation(
            loss, {"validation_perplexity": math.exp(loss), "validation_accuracy": right}
        )

    @torch.no_grad()
    def guess(
        self,
        encoded: Sequence[list[int]],
        masks: int,
        progress: Counted = lambda done, total: None,
    ) -> tuple[list[np.ndarray[Any, Any]], float]:
        """Log-probability of each piece of each response, and the share guessed right."""
        self.network.eval()
        first, after = len(self._input.before), len(self._input.after)
        work = [
            (number, hidden)
            for number, ids in enumerate(encoded)
            for hidden in passes(len(ids) - first - after, masks)
        ]
        found = [np.empty(len(ids) - first - after) for ids in encoded]
        right = done = 0
        lengths = [len(encoded[number]) for number, _ in work]
        for some in batches_by_length(lengths, TOKENS_AT_ONCE):
            rows = [(encoded[work[i][0]], [first + p for p in work[i][1]]) for i in some]
            states, ids = self._hidden_states(rows)
            right += int((self.network.head(states).argmax(1) == ids).sum())
            values = masked_log_probs(self.network.head, states, ids).cpu().numpy()
            for i in some:
                number, hidden = work[i]
                found[number][list(hidden)], values = values[: len(hidden)], values[len(hidden) :]
            done += len(some)
            progress(done, len(work))
        return found, right / max(1, sum(map(len, found)))

    def _hidden_states(self, rows: Sequence[Hidden]) -> tuple[torch.Tensor, torch.Tensor]:
        """The states where pieces are hidden, row by row, and what is hidden there."""
        device = self.network.encoder.device
        lengths = torch.tensor([len(ids) for ids, _ in rows])
        padded = torch.full((len(rows), int(lengths.max())), self._tokenizer.pad_token_id)
        for row, (ids, _) in enumerate(rows):
            padded[row, : len(ids)] = torch.tensor(ids)
        numbers = torch.tensor([row for row, (_, hidden) in enumerate(rows) for _ in hidden])
        places = torch.tensor([place for _, hidden in rows for place in hidden])
        targets = padded[numbers, places]
        padded[numbers, places] = self._tokenizer.mask_token_id
        real = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
        out = self.network.encoder(input_ids=padded.to(device), attention_mask=real.to(device))
        states: torch.Tensor = out.last_hidden_state[numbers, places]
        return states, targets.to(device)


def start_from_frequencies(network: MaskedNetwork, encoded: Sequence[list[int]]) -> None:
    """Each piece counts once more than it occurs."""
    words = network.encoder.get_input_embeddings().weight.shape[0]
    counts = np.bincount(np.concatenate([np.array(ids) for ids in encoded]), minlength=words) + 1
    frequencies = torch.from_numpy(np.log(counts / counts.sum())).float()
    with torch.no_grad():
        for parameter in network.own_head().values():
            if parameter.shape == frequencies.shape:
                parameter.copy_(frequencies)
