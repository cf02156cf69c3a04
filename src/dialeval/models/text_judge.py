"""Judges that read text: an encoder with an adapter, pooled states, a small head (MME-CRS, USL-H).

    response   [CLS] response [SEP]
    pair       [CLS] turns so far, joined by spaces [SEP] response [SEP]

What is too long is cut: of the turns the beginning, of the response the end. The head gives one
logit; its sigmoid is the softmax over two classes of the papers, whose two logits count only by
their difference. All that these judges have of their own lies in `scorer.safetensors`: the adapter
(or, trained with `--full`, the encoder's weights) and the head. The encoder is that of their base.

A twin judge reads the turns so far and the response apart, with the same encoder:

    s = sigmoid( a cos(v_c, v_r) + b )      v: mean states of an encoder with an adapter

A text is encoded once however many pairs it is part of. Where rival systems answer the same turns,
or the same answer comes often, that saves most of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import torch

from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import (
    choice,
    field,
    load_tensors,
    not_these,
    read_scorer,
)
from dialeval.model_store.weights import replace_weights
from dialeval.models.classifier import Segmented, pad
from dialeval.models.encoder import load_parts
from dialeval.models.loading import (
    batches_by_length,
    choose_device,
    in_halves,
    positions_of,
    token_ids,
)
from dialeval.networks.low_rank import merge_low_rank
from dialeval.question import Answer, Judge, Judgement, Question, cannot_answer

TOKENS_PER_BATCH = 4096

Reads = Literal["response", "pair"]
Pooling = Literal["max", "mean"]


@dataclass(frozen=True)
class TextJudgeConfig:
    """rank 0: all weights of the encoder were trained. `hidden`: layers of the head, if any."""

    metric: str
    encoder: str
    reads: Reads
    pooling: Pooling
    context_tokens: int = 100
    response_tokens: int = 50
    hidden: tuple[int, ...] = ()
    rank: int = 8
    alpha: float = 16.0

    @classmethod
    def read(cls, directory: Path) -> TextJudgeConfig:
        record = read_scorer(directory)
        whole = {
            name: field(directory, record, name, int)
            for name in ("context_tokens", "response_tokens", "rank")
        }
        hidden = field(directory, record, "hidden", list)
        return cls(
            field(directory, record, "metric", str),
            record["encoder"],
            choice(directory, record, "reads", get_args(Reads)),
            choice(directory, record, "pooling", get_args(Pooling)),
            hidden=tuple(field(directory, {"hidden": size}, "hidden", int) for size in hidden),
            alpha=field(directory, record, "alpha", float),
            **whole,
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "text-judge", **asdict(self)}


class TextJudgeNetwork(torch.nn.Module):
    """An encoder, pooled, and a head with one logit."""

    def __init__(self, encoder: Any, config: TextJudgeConfig, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self._pooling = config.pooling
        sizes = (encoder.config.hidden_size, *config.hidden)
        layers: list[torch.nn.Module] = [torch.nn.Dropout(dropout)]
        for size, next_size in zip(sizes, config.hidden, strict=False):
            layers += [
                torch.nn.Linear(size, next_size),
                torch.nn.Tanh(),
                torch.nn.Dropout(dropout),
            ]
        self.head = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        states = self.encoder(**inputs).last_hidden_state
        real = inputs["attention_mask"].bool()[:, :, None]
        if self._pooling == "max":
            pooled = states.masked_fill(~real, -torch.inf).amax(dim=1)
        else:
            pooled = states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1)
        logits: torch.Tensor = self.head(pooled)[:, 0]
        return logits


class Reading:
    """How questions become token ids."""

    def __init__(self, tokenizer: Any, config: TextJudgeConfig, positions: int) -> None:
        self._tokenizer = tokenizer
        self._pair = config.reads == "pair"
        marks, context = (3, config.context_tokens) if self._pair else (2, 0)
        room = min(positions, tokenizer.model_max_length) - marks
        # Of a window that is too small for both, each side gets its share.
        fits = min(1.0, room / (context + config.response_tokens))
        self._response = int(config.response_tokens * fits)
        self._context = int(context * fits)

    def __call__(
        self, questions: Sequence[tuple[Sequence[str], str]]
    ) -> tuple[list[Segmented], list[tuple[int, int]]]:
        """Returns for each (turns, response) the token ids, and how many tokens are read of what
        was cut."""
        responses = token_ids(self._tokenizer, [response for _, response in questions])
        contexts: list[list[int]] = [[] for _ in questions]
        if self._pair:
            joined = [" ".join(turn.strip() for turn in turns) for turns, _ in questions]
            contexts = token_ids(self._tokenizer, joined)
        pairs = list(zip(contexts, responses, strict=True))
        cut = [
            (
                self._context if len(context) > self._context else 0,
                self._response if len(response) > self._response else 0,
            )
            for context, response in pairs
        ]
        return [self._join(*pair) for pair in pairs], cut

    def _join(self, context: list[int], response: list[int]) -> Segmented:
        start, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        said = [*response[: self._response], end]
        if not self._pair:
            return [start, *said], [0] * (1 + len(said))
        before = [start, *context[max(0, len(context) - self._context) :], end]
        return before + said, [0] * len(before) + [1] * len(said)


def load_encoder(name: str) -> tuple[Any, Any]:
    """Encoder and tokenizer by a name that `dialeval models` knows, or by path."""
    from dialeval.model_store.locate import locate, ready

    found = locate(name)
    if found.role != "encoder" or found.base:
        raise UsageError(
            f"model {name!r} is a {found.role}: a judge that reads text stands on an encoder."
            " See: dialeval models"
        )
    model, tokenizer = load_parts(ready(found))
    return model.float(), tokenizer


def load(directory: Path, *, device: str = "auto") -> TextJudge:
    """Loads the judge in a directory that `dialeval train mme-fluency` and its like made."""
    config = TextJudgeConfig.read(directory)
    encoder, tokenizer = load_encoder(config.encoder)
    tensors = load_tensors(directory)
    network = TextJudgeNetwork(encoder, config)
    own = {name: tensors.pop(name) for name in list(tensors) if name.startswith("head.")}
    bare = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
    try:
        network.head.load_state_dict({n.removeprefix("head."): t for n, t in own.items()})
        if config.rank:
            merge_low_rank(encoder, bare, config.alpha)
        else:
            replace_weights(encoder, bare)
    except RuntimeError as error:
        raise not_these(directory, error) from error
    return TextJudge(network.to(choose_device(device)), tokenizer, config)


class TextJudge:
    """Answers `Judge`: a number from 0 to 1."""

    def __init__(self, network: TextJudgeNetwork, tokenizer: Any, config: TextJudgeConfig) -> None:
        self._network = network.eval()
        self._pad = tokenizer
        self._read = Reading(tokenizer, config, positions_of(network.encoder))

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        texts = []
        for question in questions:
            if not isinstance(question, Judge):
                raise cannot_answer(question, "a judge of text")
            texts.append((question.turns, question.response))
        encoded, cut = self._read(texts)
        for batch in batches_by_length([len(ids) for ids, _ in encoded], TOKENS_PER_BATCH):
            parts = in_halves(
                self._scores,
                [encoded[number] for number in batch],
                lambda text: f"text of {len(text[0])} tokens",
            )
            scores = torch.cat(parts).cpu().numpy()
            for number, score in zip(batch, scores, strict=True):
                yield number, Judgement(score, *cut[number]).answer()

    def _scores(self, batch: Sequence[Segmented]) -> torch.Tensor:
        with torch.inference_mode():
            inputs = pad(batch, self._pad)
            device = self._network.encoder.device
            on_device = {name: tensor.to(device) for name, tensor in inputs.items()}
            logits: torch.Tensor = self._network(**on_device)
            return logits.double().sigmoid()


Ids: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class TwinJudgeConfig:
    """rank 0: all weights of the encoder were trained."""

    metric: str
    encoder: str
    context_tokens: int = 100
    response_tokens: int = 50
    rank: int = 8
    alpha: float = 16.0

    @classmethod
    def read(cls, directory: Path) -> TwinJudgeConfig:
        record = read_scorer(directory)
        whole = {
            name: field(directory, record, name, int)
            for name in ("context_tokens", "response_tokens", "rank")
        }
        metric = field(directory, record, "metric", str)
        return cls(
            metric, record["encoder"], alpha=field(directory, record, "alpha", float), **whole
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "twin-judge", **asdict(self)}


class TwinJudgeNetwork(torch.nn.Module):
    """One encoder for both sides, and two numbers that make a probability of a cosine."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.log_scale = torch.nn.Parameter(torch.tensor(2.3))
        self.bias = torch.nn.Parameter(torch.tensor(-4.0))

    def vectors(self, texts: Sequence[Sequence[int]], tokenizer: Any) -> torch.Tensor:
        """Returns one unit vector per text."""
        inputs = pad([(list(ids), [0] * len(ids)) for ids in texts], tokenizer)
        device = self.encoder.device
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        states = self.encoder(**inputs).last_hidden_state
        real = inputs["attention_mask"][:, :, None]
        mean = (states * real).sum(dim=1) / real.sum(dim=1)
        return torch.nn.functional.normalize(mean, dim=-1)

    def logits(self, cosines: torch.Tensor) -> torch.Tensor:
        return self.log_scale.exp() * cosines + self.bias


class TwinReading:
    """How turns and responses become token ids; whether a text was cut stands beside them."""

    def __init__(self, tokenizer: Any, config: TwinJudgeConfig, positions: int) -> None:
        self._tokenizer = tokenizer
        room = min(positions, tokenizer.model_max_length) - 2
        self._context = min(config.context_tokens, room)
        self._response = min(config.response_tokens, room)

    def contexts(self, dialogues: Sequence[Sequence[str]]) -> list[tuple[Ids, bool]]:
        joined = [" ".join(turn.strip() for turn in turns) for turns in dialogues]
        read = token_ids(self._tokenizer, joined)
        return [self._marked(ids[max(0, len(ids) - self._context) :], ids) for ids in read]

    def responses(self, texts: Sequence[str]) -> list[tuple[Ids, bool]]:
        read = token_ids(self._tokenizer, texts)
        return [self._marked(ids[: self._response], ids) for ids in read]

    def limits(self, turns_cut: bool, response_cut: bool) -> tuple[int, int]:
        """Returns how many tokens are read of what was cut."""
        return self._context * turns_cut, self._response * response_cut

    def _marked(self, kept: list[int], whole: list[int]) -> tuple[Ids, bool]:
        marked = (self._tokenizer.cls_token_id, *kept, self._tokenizer.sep_token_id)
        return marked, len(kept) < len(whole)


def load_twin(directory: Path, *, device: str = "auto") -> TwinJudge:
    """Loads the judge in a directory that `dialeval train mme-relevance` made."""
    config = TwinJudgeConfig.read(directory)
    encoder, tokenizer = load_encoder(config.encoder)
    tensors = load_tensors(directory)
    network = TwinJudgeNetwork(encoder)
    bare = {n.removeprefix("encoder."): t for n, t in tensors.items() if n.startswith("encoder.")}
    try:
        with torch.no_grad():
            network.log_scale.copy_(tensors["log_scale"])
            network.bias.copy_(tensors["bias"])
        if config.rank:
            merge_low_rank(encoder, bare, config.alpha)
        else:
            replace_weights(encoder, bare)
    except (RuntimeError, KeyError) as error:
        raise not_these(directory, error) from error
    return TwinJudge(network.to(choose_device(device)), tokenizer, config)


class TwinJudge:
    """Answers `Judge`: a number from 0 to 1."""

    def __init__(self, network: TwinJudgeNetwork, tokenizer: Any, config: TwinJudgeConfig) -> None:
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._read = TwinReading(tokenizer, config, positions_of(network.encoder))

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        judged = []
        for question in questions:
            if not isinstance(question, Judge):
                raise cannot_answer(question, "a judge of text")
            judged.append(question)
        if not judged:
            return
        contexts = self._read.contexts([question.turns for question in judged])
        responses = self._read.responses([question.response for question in judged])
        vectors = self._vectors(list(dict.fromkeys(ids for ids, _ in [*contexts, *responses])))
        pairs = list(zip(contexts, responses, strict=True))
        cosines = torch.stack([vectors[one] @ vectors[other] for (one, _), (other, _) in pairs])
        with torch.inference_mode():
            scores = self._network.logits(cosines).double().sigmoid().cpu().numpy()
        for position, (score, pair) in enumerate(zip(scores, pairs, strict=True)):
            cut = self._read.limits(*(was_cut for _, was_cut in pair))
            yield position, Judgement(score, *cut).answer()

    def _vectors(self, texts: Sequence[Ids]) -> dict[Ids, torch.Tensor]:
        found: dict[Ids, torch.Tensor] = {}
        with torch.inference_mode():
            for batch in batches_by_length([len(ids) for ids in texts], TOKENS_PER_BATCH):
                rows = self._network.vectors([texts[i] for i in batch], self._tokenizer)
                found |= {texts[i]: row for i, row in zip(batch, rows, strict=True)}
        return found
