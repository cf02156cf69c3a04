"""RUBER's scorer learns to tell the response that was given from one given to somebody else.

    margin         mean of max(0, delta - s(q, r) + s(q, r'))       (Tao et al., 2018)
    cross-entropy  of both pairs, with the labels 1 and 0           (code of PONE; the default: on
                   15 000 pairs of DailyDialog and after 4 epochs it puts the right response first
                   in 72% of unseen cases, margin in 66%)

r' is the response of another pair of the batch: batches are drawn at random in each epoch, so it is
a random response, and no text has to be read for it. Where it happens to be the same text, the
pair teaches nothing and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from dialeval.models.pair_scorer import RuberNetwork, padded, query_words, response_words
from dialeval.models.word_vectors import WordVectorTable
from dialeval.training.examples.pair_corpus import Pair
from dialeval.training.loop import NetworkLearner, Validation

if TYPE_CHECKING:
    from dialeval.training.recipes.ruber import Ruber


@dataclass(frozen=True)
class ShiftedBatch:
    """Numbers of pairs; the wrong response of each is that of the pair `shift` places on."""

    pairs: npt.NDArray[np.int64]
    shift: int


@dataclass(frozen=True)
class Scored:
    """Logits of right and wrong pairs; `different` where the two responses differ."""

    right: torch.Tensor
    wrong: torch.Tensor
    different: torch.Tensor


class WordNumbers:
    """Texts as numbers of words, and one row per word: what is looked up once for a corpus."""

    def __init__(self, texts: Sequence[str], table: WordVectorTable, most: int) -> None:
        numbers: dict[str, int] = {}

        def number(words: Sequence[str]) -> torch.Tensor:
            return torch.tensor([numbers.setdefault(word, len(numbers)) for word in words])

        self.queries = [number(query_words(text, most)) for text in texts]
        self.responses = [number(response_words(text, most)) for text in texts]
        self._rows = torch.from_numpy(np.array(table.look_up(list(numbers)), dtype=np.float32))
        self._is_word = np.array([any(map(str.isalpha, word)) for word in numbers], dtype=bool)

    def without_vector(self) -> tuple[int, int]:
        """Returns words (not marks and numbers) without a vector, and all of them, in all texts."""
        times = torch.bincount(torch.cat(self.responses), minlength=len(self._rows)).numpy()
        unknown = self._rows[:, 0].isnan().numpy()
        return int(times[self._is_word & unknown].sum()), int(times[self._is_word].sum())

    def padded(self, texts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return padded([self._rows[numbers] for numbers in texts])


class RuberLearner(NetworkLearner):
    """Right responses against random ones."""

    network: RuberNetwork

    def __init__(
        self,
        network: RuberNetwork,
        words: WordNumbers,
        train: Sequence[Pair],
        validation: Sequence[Pair],
        recipe: Ruber,
    ) -> None:
        self.network = network
        self._words = words
        self._train = train
        self._validation = validation
        self._recipe = recipe

    def batches(self, epoch: int) -> list[ShiftedBatch]:
        return _batches(
            len(self._train), self._recipe.batch, np.random.default_rng([self._recipe.seed, epoch])
        )

    def loss(self, batch: ShiftedBatch) -> torch.Tensor:
        self.network.train()
        return self._loss(self._score(self._train, batch))

    def validate(self) -> Validation:
        scored = self.score(self._validation)
        return Validation(float(self._loss(scored)), measures(scored, "validation"))

    @torch.no_grad()
    def score(self, pairs: Sequence[Pair]) -> Scored:
        """Returns all pairs, each with the same wrong response every time."""
        self.network.eval()
        batches = _batches(len(pairs), 4 * self._recipe.batch, np.random.default_rng(0))
        found = [self._score(pairs, batch) for batch in batches]
        return Scored(
            *(
                torch.cat([getattr(scored, name) for scored in found])
                for name in ("right", "wrong", "different")
            )
        )

    def _score(self, pairs: Sequence[Pair], batch: ShiftedBatch) -> Scored:
        chosen = [pairs[i] for i in batch.pairs.tolist()]
        queries = [self._words.queries[pair.context[-1]] for pair in chosen]
        responses = [self._words.responses[pair.response] for pair in chosen]
        query = self.network.encode_queries(*self._words.padded(queries))
        response = self.network.encode_responses(*self._words.padded(responses))
        numbers = torch.tensor([pair.response for pair in chosen])
        return Scored(
            self.network(query, response),
            self.network(query, response.roll(batch.shift, dims=0)),
            numbers != numbers.roll(batch.shift),
        )

    def _loss(self, scored: Scored) -> torch.Tensor:
        right, wrong = scored.right[scored.different], scored.wrong[scored.different]
        if self._recipe.loss == "margin":
            apart = right.sigmoid() - wrong.sigmoid()
            return torch.relu(self._recipe.delta - apart).mean()
        logits = torch.cat([right, wrong])
        labels = torch.cat([torch.ones_like(right), torch.zeros_like(wrong)])
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)


def measures(scored: Scored, split: str) -> dict[str, float]:
    """accuracy: right above .5, wrong below. ranking: right above wrong."""
    right, wrong = scored.right[scored.different], scored.wrong[scored.different]
    correct = torch.cat([right > 0, wrong <= 0])
    return {
        f"{split}_accuracy": float(correct.double().mean()),
        f"{split}_ranking": float((right > wrong).double().mean()),
    }


def _batches(pairs: int, size: int, generator: np.random.Generator) -> list[ShiftedBatch]:
    """A last pair that would be alone in its batch has no wrong response, and sits out."""
    order = generator.permutation(pairs)
    parts = [order[start : start + size] for start in range(0, pairs, size)]
    return [
        ShiftedBatch(part, int(generator.integers(1, len(part)))) for part in parts if len(part) > 1
    ]
