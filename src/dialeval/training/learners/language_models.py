"""Next-token prediction over whole dialogues, packed by length (see `recipes/lm.py`).

An encoder learns to guess the word-pieces that are hidden from it in a response.

A quarter of the pieces, at least one, is hidden at random in each epoch: about as many as the
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
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dialeval.models.layout import EncoderInput, start_token
from dialeval.models.loading import batches_by_length, positions_of, window_of
from dialeval.models.masked_lm import MaskedNetwork, masked_log_probs, passes
from dialeval.training.examples.corpora import Dialogue
from dialeval.training.loop import NetworkLearner, Validation
from dialeval.training.recipe import Counted

if TYPE_CHECKING:
    from dialeval.training.recipes.lm import LanguageModel
    from dialeval.training.recipes.mme_judges import MmeSpecificity

BUCKET = 8
"""Dialogues whose lengths differ by fewer tokens count as equally long."""


class LanguageModelLearner(NetworkLearner):
    """Next-token prediction."""

    network: Any

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        train: Sequence[Dialogue],
        validation: Sequence[Dialogue],
        recipe: LanguageModel,
    ) -> None:
        self.network = network
        self._recipe = recipe
        self._train = self._choose(encode_dialogues(tokenizer, train, recipe.dialogue_tokens))
        self._validation = encode_dialogues(tokenizer, validation, recipe.dialogue_tokens)
        self._pad = tokenizer.eos_token_id or 0
        # The batches of the first epoch say how large those of all epochs are: as many in each.
        order = _order(self._train, np.random.default_rng([recipe.seed, 0]))
        self._sizes = _sizes([len(self._train[i]) for i in order], recipe.batch_tokens)

    @property
    def tokens(self) -> int:
        """Tokens that one epoch sees."""
        return sum(len(ids) for ids in self._train)

    def batches(self, epoch: int) -> list[list[list[int]]]:
        generator = np.random.default_rng([self._recipe.seed, epoch])
        return _shuffled(self._train, _order(self._train, generator), self._sizes, generator)

    def loss(self, batch: list[list[int]]) -> torch.Tensor:
        self.network.train()
        total, count = self._nll(batch)
        return total / count

    def validate(self) -> Validation:
        loss = self.mean_nll(self._validation)
        return Validation(loss, {"validation_perplexity": math.exp(loss)})

    @torch.no_grad()
    def mean_nll(self, encoded: Sequence[list[int]]) -> float:
        """Returns the mean negative log-likelihood of a token."""
        self.network.eval()
        generator = np.random.default_rng(0)
        order = _order(encoded, generator)
        sizes = _sizes([len(encoded[i]) for i in order], 2 * self._recipe.batch_tokens)
        total, count = 0.0, 0
        for batch in _shuffled(encoded, order, sizes, generator):
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
        logits = self.network(input_ids=ids, use_cache=False).logits[:, :-1]
        wanted = real[:, 1:]
        nll = torch.nn.functional.cross_entropy(
            logits[wanted].float(), ids[:, 1:][wanted], reduction="sum"
        )
        return nll, int(wanted.sum())

    def _choose(self, encoded: list[list[int]]) -> list[list[int]]:
        """Returns a seeded selection of dialogues with at most `tokens` tokens."""
        if self._recipe.tokens is None:
            return encoded
        order = np.random.default_rng(self._recipe.seed).permutation(len(encoded))
        chosen, total = [], 0
        for i in order:
            if total + len(encoded[i]) > self._recipe.tokens:
                break
            chosen.append(encoded[i])
            total += len(encoded[i])
        return chosen


def encode_dialogues(tokenizer: Any, dialogues: Sequence[Dialogue], block: int) -> list[list[int]]:
    """Token ids of each dialogue, turn by turn as in the layout `plain`; a long end is cut."""
    start = start_token(tokenizer)
    encoded = []
    for dialogue in dialogues:
        ids = [start] if start is not None else []
        for i, turn in enumerate(dialogue):
            ids += tokenizer.encode(turn if i == 0 else f" {turn}", add_special_tokens=False)
        if len(ids) > 1:
            encoded.append(ids[:block])
    return encoded


def _order(encoded: Sequence[list[int]], generator: np.random.Generator) -> list[int]:
    """Returns an order from short to long texts, random among those of about one length."""
    jitter = generator.random(len(encoded))
    return sorted(range(len(encoded)), key=lambda i: (len(encoded[i]) // BUCKET, jitter[i]))


def _sizes(lengths: Sequence[int], batch_tokens: int) -> list[int]:
    """Returns how many dialogues of these lengths, in this order, fit into each batch."""
    sizes: list[int] = []
    for length in lengths:
        if sizes and (sizes[-1] + 1) * length <= batch_tokens:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes


def _shuffled(
    encoded: Sequence[list[int]],
    order: Sequence[int],
    sizes: Sequence[int],
    generator: np.random.Generator,
) -> list[list[list[int]]]:
    """Returns the dialogues cut into batches of these sizes, the batches in random order."""
    remaining = iter(order)
    batches = [[encoded[i] for i in islice(remaining, size)] for size in sizes]
    return [batches[i] for i in generator.permutation(len(batches))]


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
        """Returns the states where pieces are hidden, row by row, and what is hidden there."""
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
