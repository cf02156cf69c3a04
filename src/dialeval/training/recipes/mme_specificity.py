"""`dialeval train mme-specificity`: an encoder learns to guess hidden word-pieces of responses.

How surely it guesses them says how specific a response is (see `learners/language_models.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    AdapterRecipe,
    Measures,
    Prepared,
    Progress,
    epochs_option,
    held_out_option,
    schedule_option,
)

if TYPE_CHECKING:
    from dialeval.models.masked_lm import MaskedNetwork
    from dialeval.training.learners.language_models import MaskedLMLearner


@dataclass
class PreparedMaskedLM(Prepared[Any]):
    """The learner, and the responses that were held out."""

    learner: MaskedLMLearner
    held_out: dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class MmeSpecificity(AdapterRecipe[PreparedMaskedLM]):
    """Teach an encoder which words to expect in a response, for specificity."""

    name = "mme-specificity"
    metric = "mme-specificity"
    usual_rank: ClassVar[int] = 12
    usual_rates: ClassVar[tuple[float, float]] = (2e-3, 1e-4)

    model: str = option(PRESETS["default"]["encoder"], "Start from this encoder.")
    epochs: int = epochs_option(2)
    responses: int | None = option(None, "Learn from at most this many responses.", low=20)
    held_out: int = held_out_option(500, "responses each")
    response_tokens: int = option(25, "Read at most this many word-pieces of a response.", low=4)
    batch: int = option(64, "Take this many responses per step.", low=1)
    schedule: Literal["linear", "constant"] = schedule_option()

    share: float = 0.25
    """Share of the pieces that is hidden."""

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedMaskedLM:
        from dialeval.models.source import Models
        from dialeval.training.examples.pair_corpus import WHOLE, load_pairs
        from dialeval.training.learners.language_models import MaskedLMLearner

        corpus = load_pairs(data, "last", words=WHOLE)
        texts_of = {
            split: corpus.responses(getattr(corpus, split)) for split in ("validation", "test")
        }
        seen = {text for texts in texts_of.values() for text in texts}
        learned = [text for text in corpus.responses(corpus.train) if text not in seen]
        learned = draw(learned, self.responses)
        measured = {split: draw(texts, self.held_out) for split, texts in texts_of.items()}
        progress.say(f"{corpus.name}: {len(learned):,} responses to learn from")
        network, tokenizer = self.new_network()
        learner = MaskedLMLearner(network, tokenizer, learned, measured["validation"], self)
        kept = "Weights" if self.full else "Low-rank adapter"
        return PreparedMaskedLM(
            learner,
            f"{kept} and head for {self.model}, trained to guess the hidden word-pieces of"
            f" responses of {corpus.name}.",
            self.model,
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "responses to learn from": learner.responses,
                "responses for validation": len(measured["validation"]),
                "responses for test": len(measured["test"]),
                **corpus.left_out.facts(),
            },
            {"base": Models().fingerprint(self.model), "data": corpus.digest()},
            measured,
        )

    def new_network(self) -> tuple[MaskedNetwork, Any]:
        """Returns an encoder with its head, or a new one where it has none; adapters if there is a
        rank."""
        import torch

        from dialeval.models.masked_lm import load_network
        from dialeval.networks.low_rank import add_low_rank

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network, tokenizer = load_network(self.model)
        if tokenizer.mask_token_id is None:
            raise UsageError(
                f"the tokenizer of {self.model!r} has no mask, so nothing can be hidden from it"
            )
        if rank := self.adapter_rank:
            add_low_rank(network.encoder, rank, 2.0 * rank, self.seed)
        return network, tokenizer

    def save(self, prepared: PreparedMaskedLM, out: Path) -> None:
        from dialeval.model_store.scorer_directory import save_tensors
        from dialeval.models.masked_lm import MaskedLMConfig

        rank = self.adapter_rank
        config = MaskedLMConfig(self.model, rank, 2.0 * rank, self.response_tokens)
        save_tensors(out, config.to_record(), prepared.learner.network.trained_tensors())

    def measure(self, prepared: PreparedMaskedLM, progress: Progress) -> Measures:
        """Measures each set, exactly and as the metric asks by default."""
        import numpy as np

        from dialeval.metrics.mme import MmeSpecificity as Metric

        masks = {"one piece at a time": 0, "as the metric asks": Metric().masks}
        scores: dict[str, float | None] = {}
        for name, texts in prepared.held_out.items():
            encoded = prepared.learner.encode(texts)
            for how, hidden in masks.items():
                with progress.counting(f"measuring on {name}, {how}") as count:
                    log_probs, right = prepared.learner.guess(encoded, hidden, count)
                mean = float(np.concatenate(log_probs).mean())
                scores[f"perplexity on {name}, {how}"] = math.exp(-mean)
                scores[f"accuracy on {name}, {how}"] = right
        return Measures(scores)


def draw(texts: list[str], most: int | None) -> list[str]:
    """Always the same ones: the seed of a training decides how it learns, not from what."""
    import numpy as np

    if most is None or len(texts) <= most:
        return texts
    chosen = np.random.default_rng(0).permutation(len(texts))[:most]
    return [texts[i] for i in np.sort(chosen)]
