"""`dialeval train lm`: a language model learns how dialogues go on (HolisticEval, section 4.3).

The turns of a dialogue are written one after the other, as `coherence` will ask about them (layout
`plain`: a start token, turns joined by a space), and the model learns to predict every token of
them. By default only LoRA adapters are trained (Hu et al., ICLR 2022), a few MB beside a frozen
model; `full` trains and saves all weights, as the paper did with GPT-2.

`pairs` is the paper's own data: a query and its response as one text, from the train and the
validation split together. The paper counts 42,000, 3,900 and 3,700 of them in the splits of
DailyDialog; turns 1 and 2, 3 and 4, ... of each dialogue are 41,637, 3,851 and 3,700, so these are
what it means. `held_out` pairs of the validation split are kept for the curve. The test perplexity
stands beside the published 16.5, which counts tokens of GPT-2: another model's tokens are others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
)

if TYPE_CHECKING:
    from dialeval.training.examples.corpora import Corpus, Dialogue
    from dialeval.training.learners.language_models import LanguageModelLearner
    from dialeval.training.run import Training


@dataclass
class PreparedLanguageModel(Prepared[Any]):
    """The learner, its tokenizer, and the dialogues to test on, as token ids."""

    learner: LanguageModelLearner
    tokenizer: Any
    test: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class LanguageModel(AdapterRecipe[PreparedLanguageModel]):
    """Train a language model on dialogues, for coherence and fluency."""

    name = "lm"
    metric = "coherence"
    usual_rates: ClassVar[tuple[float, float]] = (5e-4, 5e-4)

    model: str = option(PRESETS["default"]["dialogue-lm"], "Start from this language model.")
    epochs: int = epochs_option(1)
    tokens: int | None = option(None, "Use at most this many tokens of the data.", low=1000)
    batch_tokens: int = option(2048, "Take this many tokens per step.", low=1)
    dialogue_tokens: int = option(256, "Read at most this many tokens of a dialogue.", low=8)
    held_out: int = held_out_option(200, "dialogues (or pairs) each")
    pairs: bool = option(
        False,
        "Learn from pairs of a query and its response, of the train and validation splits, as"
        " HolisticEval did.",
    )
    format: str = option("", "Read the data as this format (see: dialeval data formats).")

    @property
    def unit(self) -> str:
        return "pairs" if self.pairs else "dialogues"

    @property
    def bits(self) -> int:
        return 32 if self.full else 16

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedLanguageModel:
        from dialeval.models.source import Models
        from dialeval.training.adapters import add_adapters
        from dialeval.training.examples.corpora import load_unrated
        from dialeval.training.learners.language_models import (
            LanguageModelLearner,
            encode_dialogues,
        )

        corpus, left_out = load_unrated(data, self.format or None)
        if self.pairs:
            corpus = pair_corpus(corpus, self.held_out)
        progress.say(f"{corpus.name}: {len(corpus.train):,} {self.unit} to train on")
        network, tokenizer = self.load_base()
        rank = self.adapter_rank
        network = add_adapters(network, "CAUSAL_LM", rank, 2 * rank, self.seed)
        validation = corpus.validation[: self.held_out]
        learner = LanguageModelLearner(network, tokenizer, corpus.train, validation, self)
        kept = "weights" if self.full else "LoRA adapter"
        return PreparedLanguageModel(
            learner,
            f"{kept} for {self.model}, trained to continue the {self.unit} of {corpus.name}.",
            self.model,
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                f"train {self.unit}": len(corpus.train),
                "tokens per epoch": learner.tokens,
                **left_out.facts(),
            },
            {"base": Models().fingerprint(self.model), "data": corpus.digest()},
            tokenizer,
            encode_dialogues(tokenizer, corpus.test[: self.held_out], self.dialogue_tokens),
        )

    def learn(
        self, prepared: PreparedLanguageModel, training: Training
    ) -> Sequence[Mapping[str, float]]:
        learner = prepared.learner
        state = training.stage(learner, self.settings())
        epochs = state.step / len(learner.batches(0))
        prepared.data["tokens seen"] = round(learner.tokens * epochs)
        return state.curve

    def save(self, prepared: PreparedLanguageModel, out: Path) -> None:
        from dialeval.model_store.weights import LAYOUT
        from dialeval.storage import write_json
        from dialeval.training.adapters import save_adapters, save_model

        if self.full:
            save_model(prepared.learner.network, prepared.tokenizer, out)
        else:
            save_adapters(prepared.learner.network, self.model, out)
        write_json(out / LAYOUT, {"layout": "plain"})

    def measure(self, prepared: PreparedLanguageModel, progress: Progress) -> Measures:
        progress.say("measuring the test perplexity after and before training")
        learner, test = prepared.learner, prepared.test
        after = learner.mean_nll(test)
        if self.full:
            trained, learner.network = learner.network, self.load_base()[0]
            before = learner.mean_nll(test)
            learner.network = trained
        else:
            with learner.network.disable_adapter():
                before = learner.mean_nll(test)
        beside = f"; HolisticEval's GPT-2: {PUBLISHED_PERPLEXITY}" if self.pairs else ""
        return Measures(
            {
                f"test perplexity before ({len(test)} {self.unit})": math.exp(before),
                f"test perplexity after ({len(test)} {self.unit}{beside})": math.exp(after),
            }
        )

    def load_base(self) -> tuple[Any, Any]:
        """Loads the base model in fp32 with its tokenizer, from the model cache or a directory."""
        from transformers import AutoModelForCausalLM

        from dialeval.model_store.locate import locate, ready
        from dialeval.models.loading import load_tokenizer, silence, window_of

        found = locate(self.model)
        if found.role != "causal-lm" or found.base or found.gguf:
            raise UsageError(
                f"model {self.model!r} cannot be trained on: `train lm` takes a causal language"
                " model that is no adapter and no GGUF file. See: dialeval models"
            )
        ready(found)
        with silence():
            model = AutoModelForCausalLM.from_pretrained(
                found.directory, dtype="float32", local_files_only=True
            )
            tokenizer = load_tokenizer(found.directory)
        if self.dialogue_tokens > (window := window_of(model, tokenizer)):
            raise UsageError(
                f"--dialogue-tokens {self.dialogue_tokens} is more than the {window} tokens that"
                f" {self.model!r} can read"
            )
        return model, tokenizer


PUBLISHED_PERPLEXITY = 16.5
"""The perplexity of the fine-tuned GPT-2 on the test split (section 4.3)."""


def pair_corpus(corpus: Corpus, held_out: int) -> Corpus:
    """Queries and responses; the validation split joins the train split, but for `held_out` pairs.

    Dialogues of the validation split that share an exchange with the test split stay out.
    """
    from dialeval.training.examples.corpora import without_overlap

    validation = disjoint_pairs(without_overlap(corpus.validation, corpus.test))
    train = (*disjoint_pairs(corpus.train), *validation[held_out:])
    return replace(
        corpus,
        train=train,
        validation=validation[:held_out],
        test=disjoint_pairs(corpus.test),
    )


def disjoint_pairs(dialogues: Sequence[Dialogue]) -> tuple[Dialogue, ...]:
    """Returns turns 1 and 2, 3 and 4, ... of each dialogue; a last turn without an answer is no
    pair."""
    return tuple(
        dialogue[place : place + 2]
        for dialogue in dialogues
        for place in range(0, len(dialogue) - 1, 2)
    )
