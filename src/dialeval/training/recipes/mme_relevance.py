"""`dialeval train mme-relevance`: which response was given to these turns? (MME-CRS, section 3.2)

An example is right or wrong with equal probability:

    1   the response that was given; half of the time without its stop words, so that words without
        meaning do not give it away: all of them (`stop_words="removed"`, the paper), or each with
        probability .5
    0   of ten responses drawn at random the middle one by similarity to the one that was given
        (cosine of mean word vectors): neither obviously wrong nor perhaps right

`negatives` chooses another sampler of `examples/sampling.py`. A bi-encoder learns from right
examples alone and takes the wrong ones from its batch (see `learners/text_judge.py`). Held-out
examples have wrong responses by the rule above, whatever was learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.text_judge import TextJudge

if TYPE_CHECKING:
    import numpy as np

    from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
    from dialeval.training.examples.pair_corpus import Example, ExampleSets, Pair, PairCorpus
    from dialeval.training.examples.sampling import SamplerName


@dataclass(frozen=True, kw_only=True)
class MmeRelevance(TextJudge):
    """Teach an encoder which response belongs to which turns."""

    name = "mme-relevance"
    metric = "mme-relevance"

    architecture: Literal["bi-encoder", "cross-encoder"] = option(
        "bi-encoder",
        "Choose how turns and response are read. cross-encoder: together, as in the paper."
        " bi-encoder: separately; each response is wrong for all other turns of its batch.",
    )
    negatives: Literal["middle", "random", "weighted", "bm25"] | None = option(
        None,
        "Draw wrong responses by this rule (cross-encoder; default: middle, the paper's).",
    )
    stop_words: Literal["dropped", "removed"] = option(
        "dropped",
        "Remove stop words from half of the right responses. dropped: each with probability .5."
        " removed: all of them, as in the paper.",
    )
    vectors: str = option(
        PRESETS["default"]["word-vectors"], "Compare responses by these word vectors."
    )
    examples: int | None = option(None, "Draw at most this many examples per epoch.", low=20)
    held_out: int = held_out_option(2000, "examples each")
    context_tokens: int = option(100, "Read at most this many tokens of the turns.", low=4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.negatives and self.architecture == "bi-encoder":
            raise UsageError(
                "--negatives are drawn with --architecture cross-encoder; a bi-encoder takes those"
                " of its batch"
            )

    @property
    def rule(self) -> str:
        """The rule by which wrong responses are found."""
        return "batch" if self.architecture == "bi-encoder" else self.negatives or "middle"

    @property
    def about(self) -> str:
        return (
            "Does a response fit the turns before it? Learned from dialogues of people, with wrong"
            f" responses by the rule `{self.rule}`."
        )

    def judge_config(self) -> TextJudgeConfig | TwinJudgeConfig:
        from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig

        read: dict[str, Any] = {
            "context_tokens": self.context_tokens,
            "response_tokens": self.response_tokens,
            "rank": self.adapter_rank,
            "alpha": 2.0 * self.adapter_rank,
        }
        if self.architecture == "cross-encoder":
            return TextJudgeConfig("mme-relevance", self.model, "pair", "max", **read)
        return TwinJudgeConfig("mme-relevance", self.model, **read)

    def example_sets(self, data: Sequence[Path]) -> ExampleSets:
        import numpy as np

        from dialeval.training.examples.pair_corpus import (
            WHOLE,
            ExampleSets,
            corpus_facts,
            drawn,
            load_pairs,
        )
        from dialeval.training.examples.pair_vectors import load_word_vectors, mean_vectors
        from dialeval.training.examples.sampling import NegativeSampler, SamplerOptions

        corpus = load_pairs(data, "sum", words=WHOLE)
        table = load_word_vectors(self.vectors, self.name)

        def made(
            pairs: Sequence[Pair], generator: np.random.Generator, sampler: SamplerName
        ) -> list[Example]:
            texts = [corpus.texts[pair.response] for pair in pairs]
            draw = NegativeSampler(
                SamplerOptions(sampler),
                texts,
                lambda rows: mean_vectors([texts[i] for i in rows], table),
            )
            wrong = draw.sample(generator).tolist()
            return [
                self._example(corpus, pair, texts[other], generator)
                for pair, other in zip(pairs, wrong, strict=True)
            ]

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, epoch])
            pairs = drawn(corpus.train, self.examples, generator)
            if self.architecture == "bi-encoder":
                return [self._right(corpus, pair, generator) for pair in pairs]
            return made(pairs, generator, self.negatives or "middle")

        def held_out(pairs: Sequence[Pair], sampler: SamplerName = "middle") -> list[Example]:
            generator = np.random.default_rng(0)
            return made(drawn(pairs, self.held_out, generator), generator, sampler)

        return ExampleSets(
            of_epoch,
            held_out(corpus.validation),
            corpus.digest(),
            corpus_facts(corpus)
            | {"pairs to learn from": len(corpus.train), "examples per epoch": len(of_epoch(0))},
            measured={
                "test": held_out(corpus.test),
                "test, random negatives": held_out(corpus.test, "random"),
                "test, similar negatives": held_out(corpus.test, "weighted"),
            },
            by_source={
                name: held_out(own)
                for name, own in corpus.test_by_corpus.items()
                if len({pair.response for pair in own}) > 1
            },
        )

    def _example(
        self, corpus: PairCorpus, pair: Pair, wrong: str, generator: np.random.Generator
    ) -> Example:
        from dialeval.training.examples.pair_corpus import Example

        if generator.random() < 0.5:
            return Example(_turns(corpus, pair), wrong, 0.0)
        return self._right(corpus, pair, generator)

    def _right(self, corpus: PairCorpus, pair: Pair, generator: np.random.Generator) -> Example:
        from dialeval.training.examples.faults import STOPWORDS, drop_stopwords
        from dialeval.training.examples.pair_corpus import Example

        response = corpus.texts[pair.response]
        if generator.random() < 0.5:
            share = 1.0 if self.stop_words == "removed" else 0.5
            response = drop_stopwords(response, generator, STOPWORDS, share)
        return Example(_turns(corpus, pair), response, 1.0)


def _turns(corpus: PairCorpus, pair: Pair) -> tuple[str, ...]:
    return tuple(corpus.texts[number] for number in pair.context)
