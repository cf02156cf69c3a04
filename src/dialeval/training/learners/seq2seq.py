"""Learning to say the next turn: cross-entropy over the tokens of a reply, given the history.

Five networks learn it, with small and published sizes. `RecurrentArchitecture` are the chatbots of
the papers that read with recurrent networks: Seq2Seq with attention, CopyNet, HRED and ReCoSa
(`networks.reply_network`). `TransformerArchitecture` is the encoder-decoder of Vaswani et al.
(2017) as OpenNMT builds it: normalised before each block and at the end, ReLU, sinusoidal
positions, embeddings times sqrt(d). That is what the class `Pegasus` of transformers computes, so
what was trained is a directory of the Hugging Face layout and answers questions like any other
encoder-decoder. Input, output and head share their embeddings, since both sides are dialogue.

A pair to learn from is the turns so far, and the turn that came next, in token ids. The first turn
of a dialogue is a pair as well, whose history is empty: whoever is asked to go on from nothing has
seen how dialogues begin. A history is written as it will be written at use (`models.layout`), so
what was learned is what is asked.

The vocabulary is made from the corpus that is learned: byte-pair pieces, or whole words.

    bpe    byte-level byte-pair encoding (Sennrich et al., 2016): nothing is unknown
    words  the most frequent words, split at spaces, as OpenNMT has them; others are `<unk>`

Turns are told apart by a tab, which is a piece of its own on both sides of which words look alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import nn
from torch.nn.functional import cross_entropy

from dialeval.errors import UsageError
from dialeval.models.layout import EncoderInput
from dialeval.models.loading import silence
from dialeval.models.pair_scorer import last_words
from dialeval.networks import reply_network
from dialeval.networks.reply_network import NetworkConfig, NetworkName, padding_of
from dialeval.training.examples.corpora import Dialogue
from dialeval.training.loop import NetworkLearner, Objective, Validation
from dialeval.training.recipe import Settings

SCORER_WORDS = 100
"""The end of an utterance that a pair scorer reads (`train pone`)."""

BUCKET = 4
"""Pairs whose lengths differ by less share batches."""


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """The tokens of a history and of its reply, with the end token if the reply was not cut."""

    source: tuple[int, ...]
    target: tuple[int, ...]


def encode_pairs(
    tokenizer: Any,
    dialogues: Sequence[Dialogue],
    history_tokens: int,
    reply_tokens: int,
    turns: int = 0,
    without: Collection[tuple[str, str]] = (),
) -> list[ReplyPair]:
    """Long histories lose their beginning, long replies their end. `turns`: read at most so many of
    the last turns; 0: all. `without`: turns and their replies, as a scorer reads them, that make no
    pair.

    A turn begins with a tab, which is split off before anything else (see `vocabulary`): so the ids
    of a history are those of its turns, and no turn is tokenised again for each that follows.
    """
    written = EncoderInput(tokenizer, history_tokens)
    room = history_tokens - len(written.before) - len(written.after)
    pairs = []
    for dialogue in dialogues:
        before: list[Sequence[int]] = []
        for place, turn in enumerate(dialogue):
            said = written.segments.text(turn).ids
            target = (*said, tokenizer.eos_token_id)[:reply_tokens]
            history = tuple(chain.from_iterable(before[-turns:]))[-room:]
            if not (place and without and _as_scored(dialogue, place) in without):
                pairs.append(ReplyPair((*written.before, *history, *written.after), target))
            before.append(written.segments.text(f"\t{turn}").ids)
    return pairs


def _as_scored(dialogue: Dialogue, place: int) -> tuple[str, str]:
    before, said = (last_words(text, SCORER_WORDS) for text in dialogue[place - 1 : place + 1])
    return before, said


def make_batches(
    pairs: Sequence[ReplyPair],
    limit: int,
    per: Literal["pairs", "tokens"],
    generator: np.random.Generator,
) -> list[list[ReplyPair]]:
    """Returns pairs of similar length together, batches in random order.

    `limit` bounds the pairs of a batch, or its tokens: pairs times the longer side of the longest.
    The cost of a pair is that of its bucket, so that every epoch has as many batches.
    """
    jitter = generator.random(len(pairs))
    buckets = [(_bucket(pair.target), _bucket(pair.source)) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda i: (buckets[i], jitter[i]))
    batches: list[list[ReplyPair]] = []
    longest = 0
    for i in order:
        longest = max(longest, *buckets[i])
        size = len(batches[-1]) + 1 if batches else 1
        if not batches or (size if per == "pairs" else size * longest) > limit:
            batches.append([])
            longest = max(buckets[i])
        batches[-1].append(pairs[i])
    return [batches[i] for i in generator.permutation(len(batches))]


def _bucket(ids: tuple[int, ...]) -> int:
    return -(-len(ids) // BUCKET) * BUCKET


Pieces = Literal["bpe", "words"]

PADDING, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = 256


def build_tokenizer(
    dialogues: Sequence[Dialogue], size: int, pieces: Pieces = "bpe", window: int | None = None
) -> Any:
    """Builds a tokenizer of transformers with at most `size` tokens; it closes a text with `</s>`.

    `window` is how many tokens of a history its model learned to read.
    """
    from transformers import PreTrainedTokenizerFast

    if pieces == "bpe" and size <= BYTES + len(SPECIAL):
        raise UsageError(f"a vocabulary of {size} is too small: the bytes alone are {BYTES}")
    backend, trainer = _bpe(size) if pieces == "bpe" else _words(size)
    backend.train_from_iterator((f"\t{turn}" for turns in dialogues for turn in turns), trainer)
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, backend.token_to_id(END))]
    )
    fast: Any = PreTrainedTokenizerFast  # it has no types
    return fast(
        tokenizer_object=backend,
        pad_token=PADDING,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        **({"model_max_length": window} if window else {}),
    )


def turn_mark(tokenizer: Any) -> int:
    """Returns the token that begins each turn of a history: the tab."""
    ids: list[int] = tokenizer("\t", add_special_tokens=False).input_ids
    return ids[-1]


def _bpe(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\t", "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return backend, trainer


def _words(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Replace(Regex(r"[^\S\t]+"), " ")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\t", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    trainer = trainers.WordLevelTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), show_progress=False
    )
    return backend, trainer


POSITIONS = 512
"""Sinusoidal positions are computed, not learned: a reply may be longer than any that was seen."""


@dataclass(frozen=True)
class RecurrentArchitecture:
    """Weights start between `-spread` and `spread`; 0.1 is OpenNMT's, for hundreds of units. ReCoSa
    alone has `heads`, and starts after Glorot and Bengio (2010), as a Transformer does."""

    network: NetworkName = "seq2seq"
    units: int = 192
    layers: int = 2
    dropout: float = 0.1
    spread: float = 0.1
    heads: int = 4

    def __post_init__(self) -> None:
        if self.network == "recosa":
            _check_heads(self.units, self.heads)

    def build(self, tokenizer: Any, history_tokens: int, reply_tokens: int) -> nn.Module:
        config = NetworkConfig(
            vocabulary=len(tokenizer),
            start=tokenizer.bos_token_id,
            units=self.units,
            layers=self.layers,
            dropout=self.dropout,
            history_tokens=history_tokens,
            turn=turn_mark(tokenizer),
            heads=self.heads,
        )
        model = reply_network.make_network(self.network, config)
        for parameter in model.parameters():
            if self.network != "recosa":
                nn.init.uniform_(parameter, -self.spread, self.spread)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        return model

    def logits(
        self, model: Any, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        found: torch.Tensor = model(sources, lengths, targets)
        return found

    def save(self, model: Any, out: Path) -> None:
        reply_network.save(self.network, model, out)


@dataclass(frozen=True)
class TransformerArchitecture:
    """Weights start after Glorot and Bengio (2010)."""

    layers: int = 2
    units: int = 192
    feed_forward: int = 768
    heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        _check_heads(self.units, self.heads)

    def build(self, tokenizer: Any, history_tokens: int, reply_tokens: int) -> nn.Module:
        from transformers import PegasusConfig, PegasusForConditionalGeneration

        config = PegasusConfig(
            vocab_size=len(tokenizer),
            d_model=self.units,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            encoder_ffn_dim=self.feed_forward,
            decoder_ffn_dim=self.feed_forward,
            encoder_attention_heads=self.heads,
            decoder_attention_heads=self.heads,
            dropout=self.dropout,
            attention_dropout=self.dropout,
            activation_dropout=self.dropout,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=max(POSITIONS, history_tokens, reply_tokens + 1),
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.bos_token_id,
            forced_eos_token_id=None,
        )
        model = PegasusForConditionalGeneration(config)
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        return model

    def logits(
        self, model: Any, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        mask = ~padding_of(lengths, sources.shape[1])
        found: torch.Tensor = model(
            input_ids=sources,
            attention_mask=mask.long(),
            decoder_input_ids=targets,
            use_cache=False,
        ).logits
        return found

    def save(self, model: Any, out: Path) -> None:
        with silence():
            model.save_pretrained(out)


Architecture = RecurrentArchitecture | TransformerArchitecture


def _check_heads(units: int, heads: int) -> None:
    if units % (2 * heads):
        raise UsageError(
            f"{units} units cannot be shared by {heads} heads: take a multiple of {2 * heads}"
        )


VALIDATION_TOKENS = 4096


@dataclass(frozen=True)
class Seq2SeqOptions:
    """The options of the data: the pairs to learn from, and how batches are made of them.

    batch, per  the size of a batch, in pairs or in tokens; a step minimises the loss per pair, or
                per token
    smoothing   share of the probability that is spread over the whole vocabulary
    pairs       learn from this many pairs, selected by the seed; None: from all
    turns       read at most this many of the last turns; 0: all
    """

    vocabulary: int = 4000
    pieces: Pieces = "bpe"
    history_tokens: int = 48
    reply_tokens: int = 40
    batch: int = 64
    per: Literal["pairs", "tokens"] = "pairs"
    smoothing: float = 0.0
    pairs: int | None = None
    turns: int = 0


@dataclass(frozen=True)
class Preset:
    """All that decides what is learned."""

    architecture: Architecture
    options: Seq2SeqOptions
    settings: Settings


LSTM_SMALL = Preset(
    RecurrentArchitecture(),
    Seq2SeqOptions(batch=32),
    Settings(epochs=2, learning_rate=2e-3, clip=5.0),
)

# OpenNMT's defaults in 2017 and 2018; the papers name the layers, the units and SGD with rate 1.
LSTM_PAPER = Preset(
    RecurrentArchitecture(units=500, layers=2, dropout=0.3),
    Seq2SeqOptions(vocabulary=50_000, pieces="words", history_tokens=50, reply_tokens=50),
    Settings(
        epochs=13,
        learning_rate=1.0,
        optimizer="sgd",
        schedule="halving",
        halve_after=8,
        clip=5.0,
    ),
)

TRANSFORMER_SMALL = Preset(
    TransformerArchitecture(),
    Seq2SeqOptions(batch=2048, per="tokens", smoothing=0.1),
    Settings(epochs=1, learning_rate=2e-3, beta2=0.998),
)

# The command in the README of HolisticEval's release; its batch size of 16 counts tokens, and the
# gradients of two batches are added up. Gradients are not clipped, as in OpenNMT's Transformer.
TRANSFORMER_PAPER = Preset(
    TransformerArchitecture(layers=6, units=512, feed_forward=2048, heads=8, dropout=0.1),
    Seq2SeqOptions(
        vocabulary=50_000,
        pieces="words",
        history_tokens=100,
        reply_tokens=50,
        batch=2 * 16,
        per="tokens",
        smoothing=0.1,
    ),
    Settings(
        epochs=1,
        steps=100_000,
        learning_rate=2 * 512**-0.5,
        beta2=0.998,
        schedule="noam",
        warmup_steps=8000,
        clip=0.0,
    ),
)


COPYNET_SMALL = replace(LSTM_SMALL, architecture=RecurrentArchitecture("copynet"))

HRED_SMALL = Preset(
    RecurrentArchitecture("hred", layers=1),
    Seq2SeqOptions(batch=32, history_tokens=96),
    LSTM_SMALL.settings,
)

RECOSA_SMALL = Preset(
    RecurrentArchitecture("recosa"),
    Seq2SeqOptions(batch=32, history_tokens=96),
    Settings(epochs=2, learning_rate=1e-3, clip=5.0),
)

# The paper that tested them does not state their sizes: these have the size of the LSTM above, read
# more of a dialogue, and take pieces of bytes, so that CopyNet can copy any word.
_LARGE = Seq2SeqOptions(vocabulary=16_000, history_tokens=200, reply_tokens=50)
_ADAM = Settings(epochs=20, learning_rate=3e-4, clip=5.0, patience=3)
COPYNET_PAPER = Preset(
    RecurrentArchitecture("copynet", units=500, layers=2, dropout=0.3), _LARGE, _ADAM
)
HRED_PAPER = Preset(RecurrentArchitecture("hred", units=500, layers=1, dropout=0.3), _LARGE, _ADAM)
RECOSA_PAPER = Preset(
    RecurrentArchitecture("recosa", units=512, layers=2, dropout=0.1, heads=8), _LARGE, _ADAM
)

PRESETS: Mapping[str, Mapping[str, Preset]] = {
    "seq2seq": {"small": LSTM_SMALL, "paper": LSTM_PAPER},
    "copynet": {"small": COPYNET_SMALL, "paper": COPYNET_PAPER},
    "transformer": {"small": TRANSFORMER_SMALL, "paper": TRANSFORMER_PAPER},
    "hred": {"small": HRED_SMALL, "paper": HRED_PAPER},
    "recosa": {"small": RECOSA_SMALL, "paper": RECOSA_PAPER},
}
"""Architecture -> its presets."""


def changed(
    preset: Preset,
    *,
    epochs: int | None = None,
    pairs: int | None = None,
    units: int | None = None,
    vocabulary: int | None = None,
    turns: int | None = None,
    seed: int = 0,
) -> Preset:
    """Returns a preset with some fields changed; None leaves a field unchanged."""
    settings = replace(preset.settings, seed=seed)
    if units is not None and settings.schedule == "noam":  # its rate has units ** -0.5 in it
        rate = settings.learning_rate * (preset.architecture.units / units) ** 0.5
        settings = replace(settings, learning_rate=rate)
    if epochs is not None:
        settings = replace(settings, epochs=epochs, steps=0)
    options = replace(
        preset.options,
        pairs=pairs,
        vocabulary=vocabulary or preset.options.vocabulary,
        turns=preset.options.turns if turns is None else turns,
    )
    architecture = replace(preset.architecture, units=units or preset.architecture.units)
    return Preset(architecture, options, settings)


class Seq2SeqLearner(NetworkLearner):
    """A network of `architectures`, and pairs."""

    def __init__(
        self,
        network: torch.nn.Module,
        preset: Preset,
        start: int,
        train: Sequence[ReplyPair],
        validation: Sequence[ReplyPair],
    ) -> None:
        options, seed = preset.options, preset.settings.seed
        self.network = network
        self._architecture = preset.architecture
        self._start = start
        self._validation = validation
        self._options = options
        self._seed = seed
        chosen = np.random.default_rng(seed).permutation(len(train))[: options.pairs]
        self.train = [train[i] for i in sorted(chosen)]

    def batches(self, epoch: int) -> list[list[ReplyPair]]:
        generator = np.random.default_rng([self._seed, epoch])
        return make_batches(self.train, self._options.batch, self._options.per, generator)

    def loss(self, batch: list[ReplyPair]) -> Objective:
        self.network.train()
        logits, wanted = self._predict(batch)
        nll = cross_entropy(logits, wanted, reduction="sum")
        learned = nll
        if self._options.smoothing:
            learned = cross_entropy(
                logits, wanted, reduction="sum", label_smoothing=self._options.smoothing
            )
        share = len(batch) if self._options.per == "pairs" else len(wanted)
        return Objective(learned / share, nll / len(wanted))

    def validate(self) -> Validation:
        loss = self.mean_nll(self._validation)
        return Validation(loss, {"validation_perplexity": math.exp(loss)})

    @torch.no_grad()
    def mean_nll(self, pairs: Sequence[ReplyPair]) -> float:
        """Returns the mean negative log-likelihood of a token of the replies."""
        self.network.eval()
        total, count = 0.0, 0
        for batch in make_batches(pairs, VALIDATION_TOKENS, "tokens", np.random.default_rng(0)):
            logits, wanted = self._predict(batch)
            total += float(cross_entropy(logits, wanted, reduction="sum"))
            count += len(wanted)
        return total / count

    def _predict(self, batch: Sequence[ReplyPair]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits at each token of the replies, and the tokens themselves."""
        sources, lengths = _pad([pair.source for pair in batch])
        read, _ = _pad([(self._start, *pair.target[:-1]) for pair in batch])
        wanted, sizes = _pad([pair.target for pair in batch])
        real = torch.arange(wanted.shape[1])[None] < sizes[:, None]
        logits = self._architecture.logits(self.network, sources, lengths, read)
        return logits[real].float(), wanted[real]


def _pad(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pads rows on the right with 0; also returns the length of each row."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros((len(rows), int(lengths.max())), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    return ids, lengths


def describe(model: Any) -> str:
    """`2.1 M parameters`."""
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return f"{count / 1e6:.1f} M parameters"
