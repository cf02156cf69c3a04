"""Conditional text generator (CTG): other queries, given the turns before.

HolisticEval, section 3.3: a generator reads the history u_1 ... u_{t-1}, and its top K beams take
the place of the query u_t. They are other queries in the same situation, not paraphrases: the
original is not read. `closeness=0.3-0.9` keeps those whose meaning is near it, as the cosine of
sentence embeddings; too near is the same thing again. With `method=sample` K texts are drawn
instead, each token among the `top_k` likeliest; with `method=diverse` the beams avoid each other's
words.

What is the original, or is there already, is left out (case, punctuation and spacing aside), and
the search widens until K are found or nothing more turns up. Where there is no history, there is
nothing to condition on: every such query would get the same variants, what dialogues begin with,
and their answers would say nothing about each other. So it gets none. Both are reported as
warnings.

The model is any that writes: the embedded dialogue model, a directory that `dialeval train
generator` made, or a name of `dialeval models`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from dialeval.augment.queries import Query, QueryVariant
from dialeval.errors import UsageError
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.text import letters_and_digits

if TYPE_CHECKING:
    from dialeval.generation.generator import Generator
    from dialeval.question import Model

MOST_TEXTS = 64
"""A search that found too little gets twice the beams, or draws, up to this many."""

BAND = re.compile(r"(-?\d*\.?\d+)-(-?\d*\.?\d+)")

logger = logging.getLogger("dialeval.augment")


@dataclass(frozen=True)
class ConditionalTextGenerator:
    """Puts what a generator writes in the place of a query."""

    name: ClassVar[str] = "ctg"
    keeps_repeats: ClassVar[bool] = False
    reads_all: ClassVar[bool] = False

    model: str = model_option("lm", "the model that writes")
    variants: int = option(4, "variants of each query", low=1, high=MOST_TEXTS)
    method: Literal["beam", "diverse", "sample"] = option("beam", "how the model chooses tokens")
    top_k: int = option(0, "sample from the k likeliest tokens; 0: from all", low=0)
    diversity: float = option(0.5, "penalty of a diverse beam for a word of another beam", low=0.0)
    seed: int = option(0, "seed of the sampling", low=0)
    closeness: str = option("", "LOW-HIGH: allowed cosine to the original query, such as 0.3-0.9")
    encoder: str = model_option("sentence-encoder", "the encoder that measures closeness")
    length_penalty: float = option(
        1.0, "exponent x of log P / length ** x, which ranks beams; 0 favours short ones"
    )
    tokens: int = option(40, "largest number of tokens of a variant", low=1)

    def __post_init__(self) -> None:
        self._band  # noqa: B018 (a band that makes no sense is to be refused at once)
        if self.top_k and self.method != "sample":
            raise UsageError("augmenter 'ctg': option 'top_k' is of use with method=sample only")
        if self.diversity != 0.5 and self.method != "diverse":
            raise UsageError(
                "augmenter 'ctg': option 'diversity' is of use with method=diverse only"
            )

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        found: list[list[str]] = [[] for _ in queries]
        missing = [place for place, query in enumerate(queries) if query.context]
        count = min(MOST_TEXTS, self.variants + 2)
        while missing:
            texts = self._write([queries[i] for i in missing], count)
            for i, written in zip(missing, texts, strict=True):
                found[i] = self._close(queries[i].query, distinct(queries[i].query, written))
            if count == MOST_TEXTS:
                break
            missing = [i for i in missing if len(found[i]) < self.variants]
            count = min(MOST_TEXTS, 2 * count)
        self._warn(queries, found)
        return [
            [
                QueryVariant(text, f"{self.method} {rank}")
                for rank, text in enumerate(texts, start=1)
            ]
            for texts in (texts[: self.variants] for texts in found)
        ]

    def _write(self, queries: Sequence[Query], count: int) -> list[list[str]]:
        from dialeval.generation.generator import Decoding

        decoding = Decoding(
            self.method,
            beams=count,
            count=count,
            top_k=self.top_k,
            max_new_tokens=self.tokens,
            length_penalty=self.length_penalty,
            diversity=self.diversity,
        )
        histories = [query.context for query in queries]
        return self._generator.replies(histories, decoding, self.seed, speaker="user")

    def _close(self, query: str, texts: list[str]) -> list[str]:
        """Returns the texts within the band of closeness, in their order."""
        if self._band is None or not texts:
            return texts
        low, high = self._band
        cosines = self._cosines(query, texts)
        return [text for text, cosine in zip(texts, cosines, strict=True) if low <= cosine <= high]

    def _cosines(self, query: str, texts: list[str]) -> list[float]:
        import numpy as np

        from dialeval.question import Embed

        questions = [Embed(self.encoder, text) for text in (query, *texts)]
        answers = dict(self._encoder.answer(questions))
        vectors = np.array([answers[i] for i in range(len(questions))], dtype=np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [float(cosine) for cosine in vectors[1:] @ vectors[0]]

    def _warn(self, queries: Sequence[Query], found: Sequence[Sequence[str]]) -> None:
        conditioned = [texts for query, texts in zip(queries, found, strict=True) if query.context]
        if short := sum(len(texts) < self.variants for texts in conditioned):
            logger.warning(
                "ctg: %d of %d queries have fewer than %d variants: %d %ss gave no more",
                short,
                len(queries),
                self.variants,
                MOST_TEXTS,
                self.method,
            )
        if bare := len(queries) - len(conditioned):
            logger.warning(
                "ctg: %d of %d queries have no history to write from, so it gives them no variant;"
                " --with ws does",
                bare,
                len(queries),
            )

    @cached_property
    def _band(self) -> tuple[float, float] | None:
        if not self.closeness:
            return None
        match = BAND.fullmatch(self.closeness.replace(" ", ""))
        low, high = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
        if not -1 <= low < high <= 1:
            raise UsageError(
                f"augmenter 'ctg': option 'closeness' must be LOW-HIGH between -1 and 1, such as"
                f" 0.3-0.9, not {self.closeness!r}"
            )
        return low, high

    @cached_property
    def _generator(self) -> Generator:
        from dialeval.generation.generator import load_generator

        return load_generator(self.model)

    @cached_property
    def _encoder(self) -> Model:
        from dialeval.models.source import Models

        return Models().load(self.encoder)


def distinct(query: str, texts: Sequence[str]) -> list[str]:
    """Returns the texts that say something, are not the query, and are not there yet, in their
    order."""
    seen = {letters_and_digits(query), ""}
    kept = []
    for text in texts:
        if (said := letters_and_digits(text)) not in seen:
            seen.add(said)
            kept.append(text)
    return kept
