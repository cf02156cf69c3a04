"""`dialeval train seq2seq` and `train generator`: a corpus becomes a model that says the next turn.

seq2seq    the chatbots that the papers tested: an LSTM with attention, or by `--architecture`
           CopyNet, a Transformer, HRED, ReCoSa
generator  the Transformer of HolisticEval's CTG, which proposes other queries

Sizes and settings of the presets are in `learners/seq2seq.py`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    held_out_option,
    seeded,
)

if TYPE_CHECKING:
    from dialeval.training.learners.seq2seq import Preset, ReplyPair, Seq2SeqLearner
    from dialeval.training.run import Training


@dataclass
class PreparedSeq2Seq(Prepared[Any]):
    """The learner, its tokenizer, and the pairs to test on."""

    learner: Seq2SeqLearner
    tokenizer: Any
    test: list[ReplyPair]


TITLES = {
    "seq2seq": "LSTM with attention",
    "copynet": "CopyNet",
    "transformer": "Transformer",
    "hred": "HRED",
    "recosa": "ReCoSa",
}


@dataclass(frozen=True, kw_only=True)
class ReplyRecipe(Recipe[PreparedSeq2Seq]):
    """Base of the two recipes that train chatbots."""

    preset: Literal["small", "paper"] = option(
        "small", "Choose the size. small: minutes on a laptop. paper: as published, hours to days."
    )
    epochs: int | None = option(None, "Train for this many epochs (default: the preset's).", low=1)
    pairs: int | None = option(
        None, "Learn from this many turns, each with the turns before it.", low=1
    )
    units: int | None = option(None, "Set the width of the network (default: the preset's).", low=8)
    vocabulary: int | None = option(
        None, "Use at most this many tokens (default: the preset's).", low=300
    )
    turns: int | None = option(
        None,
        "Read only this many turns before the reply; 0 (the default): all of them. The"
        " single-turn systems of PONE read 1.",
        low=0,
    )
    apart_from: int = option(
        0,
        "Leave out the N pairs that `train pone --context last --pairs N` learns from, so that a"
        " generator of positives learns from other pairs; 0: leave out none.",
        low=0,
    )
    held_out: int = held_out_option(200, "dialogues each")
    format: str = option("", "Read the data as this format (see: dialeval data formats).")

    @property
    def bits(self) -> int:
        return 32

    @property
    def title(self) -> str:
        return TITLES["transformer"]

    @abstractmethod
    def presets(self) -> Mapping[str, Preset]: ...

    def chosen(self) -> Preset:
        from dialeval.training.learners.seq2seq import changed

        return changed(
            self.presets()[self.preset],
            epochs=self.epochs,
            pairs=self.pairs,
            units=self.units,
            vocabulary=self.vocabulary,
            turns=self.turns,
            seed=self.seed,
        )

    def settings(self) -> Settings:
        return self.chosen().settings

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedSeq2Seq:
        from dialeval.training.examples.corpora import load_unrated
        from dialeval.training.learners.seq2seq import (
            Seq2SeqLearner,
            build_tokenizer,
            describe,
            encode_pairs,
        )

        preset = self.chosen()
        options = preset.options
        corpus, left_out = load_unrated(data, self.format or None)
        tokenizer = build_tokenizer(
            corpus.train, options.vocabulary, options.pieces, options.history_tokens
        )
        without = self._pairs_of_others(data)
        train, validation, test = (
            encode_pairs(
                tokenizer,
                dialogues,
                options.history_tokens,
                options.reply_tokens,
                options.turns,
                apart,
            )
            for dialogues, apart in (
                (corpus.train, without),
                (corpus.validation[: self.held_out], ()),
                (corpus.test[: self.held_out], ()),
            )
        )
        if not train:
            raise UsageError(
                f"{corpus.name}: --apart-from {self.apart_from} leaves no pair to learn from"
            )
        with seeded(self.seed):
            network = preset.architecture.build(
                tokenizer, options.history_tokens, options.reply_tokens
            )
        learner = Seq2SeqLearner(network, preset, tokenizer.bos_token_id, train, validation)
        progress.say(
            f"{corpus.name}: {len(learner.train):,} pairs of a history and what came next,"
            f" {len(tokenizer):,} tokens in the vocabulary, {describe(network)}"
        )
        return PreparedSeq2Seq(
            learner,
            f"{self.title} of {describe(network)} that says what comes next in a dialogue.",
            "none",
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "train dialogues": len(corpus.train),
                "pairs per epoch": len(learner.train),
                "tokens of replies per epoch": sum(len(pair.target) for pair in learner.train),
                **({"pairs left to a scorer": len(without)} if without else {}),
                **left_out.facts(),
            },
            {"data": corpus.digest(), "preset": asdict(preset)},
            tokenizer,
            test,
            config=asdict(preset.settings) | asdict(options) | asdict(preset.architecture),
        )

    def _pairs_of_others(self, data: Sequence[Path]) -> frozenset[tuple[str, str]]:
        """Returns the turns and replies that `train pone --context last --pairs N` learns from."""
        from dialeval.training.examples.pair_corpus import load_pairs
        from dialeval.training.learners.seq2seq import SCORER_WORDS

        if not self.apart_from:
            return frozenset()
        other = load_pairs(data, "last", words=SCORER_WORDS, most=self.apart_from)
        texts = other.texts
        return frozenset((texts[pair.context[-1]], texts[pair.response]) for pair in other.train)

    def learn(self, prepared: PreparedSeq2Seq, training: Training) -> Sequence[Mapping[str, float]]:
        state = training.stage(prepared.learner, self.settings())
        epochs = state.step / len(prepared.learner.batches(0))
        prepared.data["epochs seen"] = round(epochs, 2)
        return state.curve

    def save(self, prepared: PreparedSeq2Seq, out: Path) -> None:
        from dialeval.model_store.weights import LAYOUT
        from dialeval.storage import write_json

        preset = self.chosen()
        preset.architecture.save(prepared.learner.network, out)
        prepared.tokenizer.save_pretrained(out)
        if preset.options.turns:
            write_json(out / LAYOUT, {"turns": preset.options.turns})

    def measure(self, prepared: PreparedSeq2Seq, progress: Progress) -> Measures:
        progress.say("measuring the test perplexity")
        perplexity = math.exp(prepared.learner.mean_nll(prepared.test))
        return Measures({f"test perplexity per token ({len(prepared.test):,} replies)": perplexity})


@dataclass(frozen=True, kw_only=True)
class Seq2Seq(ReplyRecipe):
    """Train a chatbot that the papers tested: an LSTM with attention, CopyNet, a Transformer, HRED
    or ReCoSa.

    Higher values of top_k (1, 10, 100) give more varied answers.
    """

    name: ClassVar[str] = "seq2seq"
    usage: ClassVar[str] = (
        "dialeval probe hf:{out} --queries FILE -o PROBE --set method=sample --set top_k=10"
    )

    architecture: Literal["seq2seq", "copynet", "transformer", "hred", "recosa"] = option(
        "seq2seq",
        "Choose the network. seq2seq: an LSTM with attention. copynet: the same, which may copy"
        " words of the history. hred and recosa read a dialogue turn by turn.",
    )

    @property
    def title(self) -> str:
        return TITLES[self.architecture]

    def presets(self) -> Mapping[str, Preset]:
        from dialeval.training.learners.seq2seq import PRESETS

        return PRESETS[self.architecture]


@dataclass(frozen=True, kw_only=True)
class Generator(ReplyRecipe):
    """Train a Transformer that proposes other queries: the generator of HolisticEval's CTG."""

    name: ClassVar[str] = "generator"
    usage: ClassVar[str] = "dialeval augment FILE --with ctg:model={out}"

    def presets(self) -> Mapping[str, Preset]:
        from dialeval.training.learners.seq2seq import PRESETS

        return PRESETS["transformer"]
