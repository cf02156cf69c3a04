"""The judges of MME-CRS, but for `mme-topic` (`recipes/topic_graph.py`); `train mme` trains all.

`dialeval train mme-fluency`: which responses are fluent? (MME-CRS, section 3.1)

It learns from responses of people, half of them corrupted (see `examples/faults.py`).

`dialeval train mme-relevance`: which response was given to these turns? (MME-CRS, section 3.2)

An example is right or wrong with equal probability:

    1   the response that was given; half of the time without its stop words, so that words without
        meaning do not give it away: all of them (`stop_words="removed"`, the paper), or each with
        probability .5
    0   of ten responses drawn at random the middle one by similarity to the one that was given
        (cosine of mean word vectors): neither obviously wrong nor perhaps right

`negatives` chooses another sampler of `examples/sampling.py`. A bi-encoder learns from right
examples alone and takes the wrong ones from its batch (see `learners/text_judge.py`). Held-out
examples have wrong responses by the rule above, whatever was learned from.

`dialeval train mme-engagement`: which response did people like better?

MME-CRS learns the labels. Our sources (`examples/engagement.py`) differ in size by a hundred times
and in their mean by half of the scale, and people like longer messages: a judge of labels learned
to tell the sources apart (AUC .94) and to count words (Spearman .79), and within a source it knew
nothing. So by default the judge learns the order of two responses of one source that are equally
long. An epoch draws at most `per_source` pairs of each source again; validation pairs are drawn in
the same way. `target="label"` learns the ratings themselves, from 0 to 1, by cross-entropy with a
soft label, as the paper does from ConvAI 2017.

`dialeval train mme-specificity`: an encoder learns to guess hidden word-pieces of responses.

How surely it guesses them says how specific a response is (see `learners/language_models.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    seeded,
)
from dialeval.training.recipes.text_judge import PreparedJudge, TextJudge

if TYPE_CHECKING:
    import numpy as np

    from dialeval.models.masked_lm import MaskedNetwork
    from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
    from dialeval.training.examples.engagement import Engaging
    from dialeval.training.examples.pair_corpus import Example, ExampleSets, Pair, PairCorpus
    from dialeval.training.examples.sampling import SamplerName
    from dialeval.training.learners.language_models import MaskedLMLearner
    from dialeval.training.run import Training


@dataclass(frozen=True, kw_only=True)
class MmeFluency(TextJudge):
    """Teach an encoder to tell fluent responses from broken ones (shuffled or dropped words)."""

    name = "mme-fluency"
    metric = "mme-fluency"

    examples: int | None = option(None, "Draw at most this many examples per epoch.", low=20)
    held_out: int = held_out_option(2000, "examples each")

    @property
    def about(self) -> str:
        return (
            "Is a response fluent? Learned from responses of people, half of them broken: words"
            " shuffled, dropped, repeated."
        )

    def judge_config(self) -> TextJudgeConfig:
        from dialeval.models.text_judge import TextJudgeConfig

        return TextJudgeConfig(
            "mme-fluency",
            self.model,
            "response",
            "max",
            context_tokens=0,
            response_tokens=self.response_tokens,
            rank=self.adapter_rank,
            alpha=2.0 * self.adapter_rank,
        )

    def example_sets(self, data: Sequence[Path]) -> ExampleSets:
        import numpy as np

        from dialeval.training.examples.faults import STOPWORDS, fluency_example
        from dialeval.training.examples.pair_corpus import (
            WHOLE,
            Example,
            ExampleSets,
            corpus_facts,
            drawn,
            load_pairs,
        )

        corpus = load_pairs(data, "last", words=WHOLE)
        responses = corpus.responses(corpus.train)

        def corrupted(texts: Iterable[str], generator: np.random.Generator) -> list[Example]:
            made = (fluency_example(text, generator, STOPWORDS) for text in texts)
            return [Example((), text, float(label)) for text, label in made]

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, epoch])
            return corrupted(drawn(responses, self.examples, generator), generator)

        def held_out(pairs: Sequence[Pair]) -> list[Example]:
            generator = np.random.default_rng(0)
            return corrupted(drawn(corpus.responses(pairs), self.held_out, generator), generator)

        return ExampleSets(
            of_epoch,
            held_out(corpus.validation),
            corpus.digest(),
            corpus_facts(corpus)
            | {"responses to learn from": len(responses), "examples per epoch": len(of_epoch(0))},
            measured={"test": held_out(corpus.test)},
            by_source={name: held_out(own) for name, own in corpus.test_by_corpus.items() if own},
        )


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
            return Example(corpus.turns(pair), wrong, 0.0)
        return self._right(corpus, pair, generator)

    def _right(self, corpus: PairCorpus, pair: Pair, generator: np.random.Generator) -> Example:
        from dialeval.training.examples.faults import STOPWORDS, drop_stopwords
        from dialeval.training.examples.pair_corpus import Example

        response = corpus.texts[pair.response]
        if generator.random() < 0.5:
            share = 1.0 if self.stop_words == "removed" else 0.5
            response = drop_stopwords(response, generator, STOPWORDS, share)
        return Example(corpus.turns(pair), response, 1.0)


NOT_HERE = "groups that a language model rated, texts not here"


@dataclass(frozen=True, kw_only=True)
class MmeEngagement(TextJudge):
    """Teach an encoder which responses are engaging, from ratings of conversations.

    The encoder learns the order of two equally long responses of one source, so that it can learn
    neither the source nor the length. With `--target label` it learns the ratings. The data are
    rated conversations (topical-chat, convai2-human, engage, or a file of ConvAI 2017), or
    model-ratings: single answers that a language model rated, with texts from the installed
    corpora.
    """

    name = "mme-engagement"
    metric = "mme-engagement"
    usual_rates: ClassVar[tuple[float, float]] = (3e-4, 1e-5)

    epochs: int = epochs_option(2)
    per_source: int = option(
        1000,
        "Draw at most this many pairs of each source per epoch; with --target label, this many"
        " responses, or with 0 all.",
        low=0,
    )
    target: Literal["order", "label"] = option(
        "order",
        "Choose what to learn. order: which of two responses of one source people liked better."
        " label: the rating, from 0 to 1, as in the paper.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.per_source and self.target == "order":
            raise UsageError("--per-source 0, all responses, is for --target label")

    @property
    def about(self) -> str:
        if self.target == "label":
            return "How engaging is a response, from 0 to 1? Learned from ratings on that scale."
        return (
            "How engaging is a response, from 0 to 1? Learned from which of two responses of one"
            " source, equally long, partners and readers liked better."
        )

    def judge_config(self) -> TextJudgeConfig:
        from dialeval.models.text_judge import TextJudgeConfig

        return TextJudgeConfig(
            "mme-engagement",
            self.model,
            "response",
            "mean",
            context_tokens=0,
            response_tokens=self.response_tokens,
            hidden=(64,),
            rank=self.adapter_rank,
            alpha=2.0 * self.adapter_rank,
        )

    def example_sets(self, data: Sequence[Path]) -> ExampleSets:
        import numpy as np

        from dialeval.training.examples.engagement import (
            at_most_of_each,
            load_engagement,
            matched_pairs,
        )
        from dialeval.training.examples.pair_corpus import ExampleSets

        found = load_engagement(data)

        def pairs(
            among: Sequence[Engaging], count: int, generator: np.random.Generator
        ) -> list[Example]:
            drawn = matched_pairs(among, max(1, count), generator)
            if not drawn:
                raise UsageError(
                    "no source holds two responses that are equally long and differ in their"
                    " rating: there is no order to learn"
                )
            return _examples([one for pair in drawn for one in (pair.better, pair.worse)])

        def some(
            among: Sequence[Engaging], count: int, generator: np.random.Generator
        ) -> list[Example]:
            """Returns pairs, or for labels single responses of each source, each once."""
            if self.target == "order":
                return pairs(among, count, generator)
            return _examples(at_most_of_each(among, count, generator))

        def of_epoch(epoch: int) -> list[Example]:
            return some(found.train, self.per_source, np.random.default_rng([self.seed, epoch]))

        sources = sorted({one.source for one in found.validation})
        return ExampleSets(
            of_epoch,
            some(found.validation, self.per_source // 4, np.random.default_rng(0)),
            found.digest(),
            {
                "sha256": found.digest(),
                **_counts("to learn from", found.train),
                **_counts("to validate on", found.validation),
                f"{'pairs' if self.target == 'order' else 'responses'} of each source in an epoch,"
                " at most": self.per_source or "all",
                **({NOT_HERE: found.missing} if found.missing else {}),
                **found.left_out.facts(),
            },
            by_source={
                source: _examples([one for one in found.validation if one.source == source])
                for source in sources
            },
        )

    def learner_class(self) -> Any:
        from dialeval.training.learners.text_judge import RankingLearner, TextJudgeLearner

        return RankingLearner if self.target == "order" else TextJudgeLearner

    def learn(self, prepared: PreparedJudge, training: Training) -> Sequence[Mapping[str, float]]:
        state = training.stage(prepared.learner, self.settings())
        if self.target == "label":
            return state.curve
        if state.best_epoch < 0:
            raise UsageError(
                "no epoch orders held-out pairs better than the start: nothing was learned. Take"
                " more data, a lower --learning-rate or fewer --epochs"
            )
        learner: Any = prepared.learner
        learner.standardise()
        return state.curve

    @property
    def threshold(self) -> float | None:
        return None if self.target == "order" else super().threshold

    def measured(
        self, name: str, examples: Sequence[Example], logits: Any
    ) -> tuple[str, float | None]:
        from dialeval.training.learners.text_judge import in_order

        if self.target == "label":
            return super().measured(name, examples, logits)
        pairs = len(examples) // 2
        return f"pairs in order on {name} ({pairs:,} pairs; .5 by chance)", in_order(logits)


def _examples(found: Sequence[Engaging]) -> list[Example]:
    from dialeval.training.examples.pair_corpus import Example

    return [Example((), one.text, one.target) for one in found]


def _counts(what: str, found: Sequence[Engaging]) -> dict[str, Any]:
    return {
        f"responses {what}, {source}": count
        for source, count in sorted(Counter(one.source for one in found).items())
    }


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
        from dialeval.training.examples.pair_corpus import WHOLE, always_drawn, load_pairs
        from dialeval.training.learners.language_models import MaskedLMLearner

        corpus = load_pairs(data, "last", words=WHOLE)
        texts_of = {
            split: corpus.responses(getattr(corpus, split)) for split in ("validation", "test")
        }
        seen = {text for texts in texts_of.values() for text in texts}
        learned = [text for text in corpus.responses(corpus.train) if text not in seen]
        learned = always_drawn(learned, self.responses)
        measured = {split: always_drawn(texts, self.held_out) for split, texts in texts_of.items()}
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
        from dialeval.models.masked_lm import load_network
        from dialeval.networks.low_rank import add_low_rank

        with seeded(self.seed):
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
