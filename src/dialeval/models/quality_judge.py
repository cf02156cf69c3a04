"""The judge: one pass over the dialogue and the answer, one rating from 1 to 5 for each aspect.

    [CLS] you: turn  me: turn ... you: turn [SEP] answer [SEP]       me: who answers
    s = W [h_CLS ; mean of h over the answer] + b                    one row of W an aspect
    rating = 1 + 4 sigmoid(a s + c)                                  a, c: `Scale`, one an aspect

Whoever answers is `me`, the other `you`: without that, no reader could tell an answer that
contradicts itself from one that disagrees. Of turns that are too long the beginning is cut, of the
answer the end.

It has learned without ratings of people (`training/learners/judge_corpus`). Its directory holds the
head and, in 16 bits, all layers of the encoder or adapters of them (`rank`); the word embeddings
are those of its base. What people's ratings add is in `quality_stack`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import field, load_tensors, not_these, read_scorer
from dialeval.model_store.weights import replace_weights
from dialeval.models.classifier import Segmented, padded
from dialeval.models.loading import batches_by_length, choose_device, in_halves, token_ids
from dialeval.models.text_judge import TOKENS_PER_BATCH, load_encoder
from dialeval.networks.low_rank import add_low_rank, load_low_rank, merge_low_rank
from dialeval.question import ASPECTS, Answer, Assess, Assessment, Question, cannot_answer

EMBEDDINGS = "encoder.embeddings."
"""Weights that a quality-judge shares with its encoder and does not keep."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From what the head says to the scale that people know.

    slopes, shifts  per aspect: rating = 1 + 4 sigmoid(slope x + shift)
    margin, doubt   see `Assessment`
    """

    slopes: tuple[float, ...]
    shifts: tuple[float, ...]
    margin: float
    doubt: float

    @classmethod
    def neutral(cls) -> Scale:
        """Before any rating was seen; the interval is the whole scale."""
        return cls((1.0,) * len(ASPECTS), (0.0,) * len(ASPECTS), 2.0, 1.0)

    def ratings(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(answers, aspects) of what a judge says to (answers, aspects) from 1 to 5."""
        found: npt.NDArray[np.float64] = 1.0 + 4.0 / (
            1.0 + np.exp(-(values * np.array(self.slopes) + np.array(self.shifts)))
        )
        return found

    @classmethod
    def read(cls, directory: Path, record: Mapping[str, Any]) -> Scale:
        found = field(directory, record, "scale", dict)
        numbers = {name: field(directory, found, name, list) for name in ("slopes", "shifts")}
        for name, values in numbers.items():
            if len(values) != len(ASPECTS):
                raise UsageError(f"{directory}: scale: {name}: expected {len(ASPECTS)} numbers.")
        return cls(
            tuple(float(value) for value in numbers["slopes"]),
            tuple(float(value) for value in numbers["shifts"]),
            float(field(directory, found, "margin", float)),
            float(field(directory, found, "doubt", float)),
        )


@dataclass(frozen=True)
class QualityConfig:
    """`encoder` names the base; `_tokens` say how much of the turns and of the answer is read.
    rank 0: all layers of the encoder were trained; the file has no rank then."""

    encoder: str
    metric: str = "judge"
    context_tokens: int = 100
    response_tokens: int = 60
    rank: int = 0
    scale: Scale = Scale.neutral()

    @classmethod
    def read(cls, directory: Path) -> QualityConfig:
        record = read_scorer(directory)
        return cls(
            encoder=record["encoder"],
            context_tokens=field(directory, record, "context_tokens", int),
            response_tokens=field(directory, record, "response_tokens", int),
            rank=field(directory, record, "rank", int) if "rank" in record else 0,
            scale=Scale.read(directory, record),
        )

    def to_record(self) -> dict[str, Any]:
        record = asdict(self)
        if not self.rank:
            del record["rank"]
        return {"kind": "quality-judge", **record}


def alpha_of(rank: int) -> float:
    """How much adapters of this rank count: what they add is multiplied by alpha / rank."""
    return 2.0 * rank


class QualityNetwork(torch.nn.Module):
    """An encoder and a linear head."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self._has_segments = getattr(encoder.config, "type_vocab_size", 0) > 1
        self.head = torch.nn.Linear(2 * encoder.config.hidden_size, len(ASPECTS))

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor,
    ) -> torch.Tensor:
        segments = {"token_type_ids": token_type_ids} if self._has_segments else {}
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, **segments
        ).last_hidden_state
        answer = (token_type_ids * attention_mask).bool()[:, :, None]
        mean = states.masked_fill(~answer, 0.0).sum(dim=1) / answer.sum(dim=1)
        logits: torch.Tensor = self.head(torch.cat((states[:, 0], mean), dim=1))
        return logits


Said = Sequence[tuple[bool, str]]
"""Turns: whether it is the one who answers that speaks, and what is said."""


def taking_turns(texts: Sequence[str]) -> list[tuple[bool, str]]:
    """Turns of two who take turns; the last one is not by the one who answers."""
    return [((len(texts) - place) % 2 == 0, text) for place, text in enumerate(texts)]


class Reading:
    """Turns and an answer as token ids."""

    def __init__(self, tokenizer: Any, config: QualityConfig) -> None:
        self._tokenizer = tokenizer
        self._context, self._response = config.context_tokens, config.response_tokens
        self._you, self._me = token_ids(tokenizer, ["you:", "me:"])

    def __call__(
        self, texts: Sequence[tuple[Said, str]]
    ) -> tuple[list[Segmented], list[tuple[int, int]]]:
        """Returns for each (turns, answer) the token ids, and how many tokens of both were cut."""
        known = dict.fromkeys(
            text for turns, answer in texts for text in (answer, *(text for _, text in turns))
        )
        ids = dict(zip(known, token_ids(self._tokenizer, list(known)), strict=True))
        start, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        read: list[Segmented] = []
        cut = []
        for turns, answer in texts:
            before = [
                token
                for mine, text in turns
                for token in (*(self._me if mine else self._you), *ids[text])
            ]
            lost = max(0, len(before) - self._context)
            first = [start, *before[lost:], end]
            said = ids[answer]
            second = [*said[: self._response], end]
            read.append((first + second, [0] * len(first) + [1] * len(second)))
            cut.append((lost, max(0, len(said) - self._response)))
        return read, cut


def load(directory: Path, *, device: str = "auto") -> QualityJudge:
    """Loads the judge in a directory that `dialeval train judge-corpus` made."""
    network, tokenizer, config = load_network(directory)
    return QualityJudge(network.to(choose_device(device)), tokenizer, config)


def is_quality_judge(directory: Path) -> bool:
    """Whether the directory holds what `dialeval train judge-corpus` made."""
    return (directory / "scorer.json").is_file() and (
        read_scorer(directory).get("kind") == "quality-judge"
    )


def load_network(
    directory: Path, *, trainable: bool = False
) -> tuple[QualityNetwork, Any, QualityConfig]:
    """Network, tokenizer and configuration; `trainable`: adapters stay beside the layers."""
    config = QualityConfig.read(directory)
    encoder, tokenizer = load_encoder(config.encoder)
    network = QualityNetwork(encoder)
    tensors = load_tensors(directory)
    head = {name: tensors.pop(name) for name in list(tensors) if name.startswith("head.")}
    layers = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
    try:
        network.head.load_state_dict({n.removeprefix("head."): t for n, t in head.items()})
        if config.rank and trainable:
            add_low_rank(encoder, config.rank, alpha_of(config.rank), seed=0)
            load_low_rank(encoder, layers)
        elif config.rank:
            merge_low_rank(encoder, layers, alpha_of(config.rank))
        else:
            kept = {n: t for n, t in encoder.state_dict().items() if n.startswith("embeddings.")}
            replace_weights(encoder, layers | kept)
    except RuntimeError as error:
        raise not_these(directory, error) from error
    return network, tokenizer, config


class QualityJudge:
    """Answers `Assess`."""

    def __init__(self, network: QualityNetwork, tokenizer: Any, config: QualityConfig) -> None:
        self._network = network.eval()
        self._padding = tokenizer.pad_token_id
        self._scale = config.scale
        self._read = Reading(tokenizer, config)

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        texts = []
        for question in questions:
            if not isinstance(question, Assess):
                raise cannot_answer(question, "a judge of quality")
            turns = [(turn.speaker == "me", turn.text) for turn in question.turns]
            texts.append((turns, question.response))
        encoded, cut = self._read(texts)
        for batch in batches_by_length([len(ids) for ids, _ in encoded], TOKENS_PER_BATCH):
            parts = in_halves(
                self._logits,
                [encoded[number] for number in batch],
                lambda text: f"text of {len(text[0])} tokens",
            )
            logits = torch.cat(parts)
            ratings = self._scale.ratings(logits.double().cpu().numpy())
            for number, rating in zip(batch, ratings, strict=True):
                found = Assessment(
                    tuple(rating), self._scale.margin, self._scale.doubt, *cut[number]
                )
                yield number, found.answer()

    def _logits(self, batch: Sequence[Segmented]) -> torch.Tensor:
        with torch.inference_mode():
            device = self._network.encoder.device
            inputs = {n: tensor.to(device) for n, tensor in padded(batch, self._padding).items()}
            logits: torch.Tensor = self._network(**inputs)
            return logits
