"""Judges that read the turns so far and the response apart, with the same encoder.

    s = sigmoid( a cos(v_c, v_r) + b )      v: mean states of an encoder with an adapter

A text is encoded once however many pairs it is part of: where rival systems answer the same turns,
or the same answer comes often, that is most of the work saved. What is too long is cut: of the
turns, joined by spaces, the beginning; of the response the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from dialeval.models.classifier import pad
from dialeval.models.loading import SURROGATE, batches_by_length, choose_device, positions_of
from dialeval.models.low_rank import merge_low_rank
from dialeval.models.scorer_directory import field, load_tensors, not_these, read_scorer
from dialeval.models.text_judge import TOKENS_PER_BATCH, load_encoder
from dialeval.models.weights import replace_weights
from dialeval.question import Answer, Judge, Judgement, Question, cannot_answer

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
        """One unit vector per text."""
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
        read = self._ids([" ".join(turn.strip() for turn in turns) for turns in dialogues])
        return [self._marked(ids[max(0, len(ids) - self._context) :], ids) for ids in read]

    def responses(self, texts: Sequence[str]) -> list[tuple[Ids, bool]]:
        return [self._marked(ids[: self._response], ids) for ids in self._ids(texts)]

    def limits(self, turns_cut: bool, response_cut: bool) -> tuple[int, int]:
        """How many tokens are read of what was cut."""
        return self._context * turns_cut, self._response * response_cut

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        clean = [SURROGATE.sub("\ufffd", text.strip()) for text in texts]
        ids: list[list[int]] = self._tokenizer(
            clean, add_special_tokens=False, verbose=False
        ).input_ids
        return ids

    def _marked(self, kept: list[int], whole: list[int]) -> tuple[Ids, bool]:
        marked = (self._tokenizer.cls_token_id, *kept, self._tokenizer.sep_token_id)
        return marked, len(kept) < len(whole)


def load(directory: Path, *, device: str = "auto") -> TwinJudge:
    """The judge in a directory that `dialeval train mme-relevance` made."""
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
