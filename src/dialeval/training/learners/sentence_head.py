"""A head on frozen sentence vectors learns from examples with a target (`models/sentence_head.py`).

The vectors of all texts are computed before the training (`embed`) and lie in one table; an example
is a few numbers of rows. The loss is binary cross-entropy. With `balanced`, each class of a batch
has the same weight, N / (2 N_class), as in Predictive Engagement. The best epoch is that of the
highest AUC with `balanced`, and else that of the highest accuracy, on held-out examples.
`FlowLearner` has no targets to learn: it foretells what is said next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from dialeval.agreement.arithmetic import rank
from dialeval.models.sentence_head import FlowHead, SentenceHeadConfig
from dialeval.training.examples.pair_corpus import Example, Examples, Pair
from dialeval.training.examples.pair_vectors import embed
from dialeval.training.loop import NetworkLearner, Validation
from dialeval.training.recipe import Progress

SCORED_AT_ONCE = 2048


class TextVectors:
    """The vectors of texts, one row each.

    corpus  texts whose vectors other recipes read too, each once: they are stored as one list
    others  what one recipe alone reads
    """

    def __init__(
        self, corpus: Sequence[str], others: Iterable[str], encoder: str, progress: Progress
    ) -> None:
        known = set(corpus)
        lists = [list(corpus), list(dict.fromkeys(text for text in others if text not in known))]
        tables = []
        for texts in filter(None, lists):
            progress.say(f"vectors of {len(texts):,} texts")
            with progress.counting("vectors") as count:
                tables.append(np.asarray(embed(texts, encoder, progress=count)))
        self.rows = {text: row for row, text in enumerate(chain(*lists))}
        self.table = torch.from_numpy(np.concatenate(tables)).float()

    @property
    def dimensions(self) -> int:
        return self.table.shape[1]


@dataclass(frozen=True)
class Rows:
    """Examples as numbers of rows: (examples, turns) padded with 0, how many turns are real,
    responses, targets."""

    turns: torch.Tensor
    counts: torch.Tensor
    responses: torch.Tensor
    targets: torch.Tensor

    @classmethod
    def of(cls, numbers: Sequence[Sequence[int]], targets: Sequence[float]) -> Rows:
        """Makes rows of numbers: those of the turns, then that of the response."""
        longest = max(map(len, numbers))
        return cls(
            torch.tensor([[*own[:-1], *[0] * (longest - len(own))] for own in numbers]),
            torch.tensor([len(own) - 1 for own in numbers]),
            torch.tensor([own[-1] for own in numbers]),
            torch.tensor(targets, dtype=torch.float32),
        )

    def __len__(self) -> int:
        return len(self.counts)

    def some(self, numbers: torch.Tensor) -> Rows:
        counts = self.counts[numbers]
        turns = self.turns[numbers][:, : int(counts.max())]
        return Rows(turns, counts, self.responses[numbers], self.targets[numbers])


class SentenceHeadLearner(NetworkLearner):
    """A head, the vectors, examples to learn from and examples to validate on."""

    def __init__(
        self,
        network: torch.nn.Module,
        config: SentenceHeadConfig,
        vectors: TextVectors,
        examples: Examples,
        validation: Sequence[Example],
        *,
        batch: int,
        seed: int,
        balanced: bool = False,
    ) -> None:
        self.network = network
        self._config = config
        self._vectors = vectors
        self._row_of: dict[str, int] = {}
        self._examples = examples
        self._validation = self._rows(validation)
        self._batch = batch
        self._seed = seed
        self._balanced = balanced

    def _rows(self, examples: Sequence[Example]) -> Rows:
        turns = self._config.turns
        numbers = [
            [self._row(text) for text in (*(one.turns or ("",))[-turns:], one.response)]
            for one in examples
        ]
        return Rows.of(numbers, [one.target for one in examples])

    def _row(self, text: str) -> int:
        """Returns the row of a text as it is read. Epochs repeat their texts: each is cut once."""
        if text not in self._row_of:
            [cut] = self._config.texts((), text)
            self._row_of[text] = self._vectors.rows[cut]
        return self._row_of[text]

    def batches(self, epoch: int) -> list[Rows]:
        rows = self._rows(self._examples(epoch))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(rows))
        return [
            rows.some(torch.from_numpy(order[start : start + self._batch]))
            for start in range(0, len(order), self._batch)
        ]

    def loss(self, batch: Rows) -> torch.Tensor:
        self.network.train()
        logits = self._logits(batch, self._vectors.table)
        return head_loss(logits, batch.targets, self._balanced)

    def _logits(self, rows: Rows, table: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(table[rows.turns], rows.counts, table[rows.responses])
        return logits

    def validate(self) -> Validation:
        targets = self._validation.targets
        logits = self._predict(self._validation, self._vectors.table)
        loss = float(head_loss(logits, targets, self._balanced))
        right = accuracy(logits, targets)
        area = area_under_curve(logits, targets)
        measures = {"validation_accuracy": right, "validation_auc": area}
        return Validation(loss, measures, error=1.0 - (area if self._balanced else right))

    def predict(self, examples: Sequence[Example]) -> torch.Tensor:
        """Returns the logits of examples whose texts have vectors."""
        return self._predict(self._rows(examples), self._vectors.table)

    def predict_pairs(self, pairs: Sequence[Pair], table: torch.Tensor) -> torch.Tensor:
        """Returns the logits of pairs of numbers, whose vectors are the rows of a table."""
        turns = self._config.turns
        numbers = [(*pair.context[-turns:], pair.response) for pair in pairs]
        return self._predict(Rows.of(numbers, [0.0] * len(numbers)), table)

    @torch.no_grad()
    def _predict(self, rows: Rows, table: torch.Tensor) -> torch.Tensor:
        self.network.eval()
        every = torch.arange(len(rows))
        parts = (every[at : at + SCORED_AT_ONCE] for at in range(0, len(rows), SCORED_AT_ONCE))
        return torch.cat([self._logits(rows.some(part), table) for part in parts])


class FlowLearner(SentenceHeadLearner):
    """Learns from right examples to foretell the next vector, by the squared distance. The best
    epoch is that of the smallest distance in right examples; wrong ones say what it is good for."""

    def loss(self, batch: Rows) -> torch.Tensor:
        self.network.train()
        return self._distances(batch).mean()

    def validate(self) -> Validation:
        targets = self._validation.targets
        logits = self._predict(self._validation, self._vectors.table)
        loss = self._distance(self._validation)
        return Validation(loss, {"validation_auc": area_under_curve(logits, targets)})

    def distance(self, examples: Sequence[Example]) -> float:
        """Returns the mean squared distance in the right ones of these examples."""
        return self._distance(self._rows(examples))

    def distance_from_mean(self, examples: Sequence[Example]) -> float:
        """Returns the same of a flow that always foretells the mean of what is said in these."""
        rows = self._rows([one for one in examples if one.target > 0.5])
        place = torch.arange(rows.turns.shape[1])
        before = rows.turns[(place > 0) & (place < rows.counts[:, None])]
        said = self._vectors.table[torch.cat([before, rows.responses])]
        return float((said - said.mean(dim=0)).square().sum(dim=-1).mean())

    @torch.no_grad()
    def _distance(self, rows: Rows) -> float:
        self.network.eval()
        right = rows.some(torch.nonzero(rows.targets > 0.5)[:, 0])
        every = torch.arange(len(right))
        parts = (every[at : at + SCORED_AT_ONCE] for at in range(0, len(every), SCORED_AT_ONCE))
        return float(torch.cat([self._distances(right.some(part)) for part in parts]).mean())

    def _distances(self, rows: Rows) -> torch.Tensor:
        assert isinstance(self.network, FlowHead)
        table = self._vectors.table
        return self.network.distances(table[rows.turns], rows.counts, table[rows.responses])


def head_loss(logits: torch.Tensor, targets: torch.Tensor, balanced: bool) -> torch.Tensor:
    """Cross-entropy with targets from 0 to 1, with `balanced` as if both classes were as large."""
    weight = None
    if balanced:
        good = targets > 0.5
        share = good.float().mean().clamp(1 / (2 * len(targets)), 1 - 1 / (2 * len(targets)))
        weight = torch.where(good, 1 / (2 * share), 1 / (2 * (1 - share)))
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, weight)


def targets_of(examples: Sequence[Example]) -> torch.Tensor:
    return torch.tensor([example.target for example in examples])


def accuracy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """Returns the share of examples on the right side of one half."""
    return float(((logits > 0) == (targets > 0.5)).double().mean())


def area_under_curve(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """How often a good example scores higher than a bad one; .5 where there is only one class."""
    good = (targets > 0.5).numpy()
    if good.all() or not good.any():
        return 0.5
    ranked = rank(logits.double().numpy())
    above = ranked[good].sum() - good.sum() * (good.sum() + 1) / 2
    return float(above / (good.sum() * (~good).sum()))
