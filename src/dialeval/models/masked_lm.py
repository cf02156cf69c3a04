"""Masked language models: how likely is a word-piece, to a model that sees all the others?

    log P(w_i | w_1 ... w_i-1 [MASK] w_i+1 ... w_n)       for each of the n pieces of a text

Two kinds. An encoder of the hub that was made to guess masked tokens (BERT, RoBERTa) brings its
head along, and answers `MaskedLikelihood` beside its other questions. A directory of the kind
`masked-lm`, which `dialeval train mme-specificity` makes, teaches any other encoder to guess:
`scorer.safetensors` holds an adapter of the encoder (or, trained with `--full`, its weights) and
the head: a dense layer, a layer norm and the bias of each piece. The logits are products with the
encoder's own word embeddings, which are not copied.

States go through the head only where a piece is hidden: the vocabulary is 80 times as wide as a
small encoder, and 30 000 logits for each of the pieces that are seen would cost more than the rest.

In training the networks are those of transformers. For reading they are `networks.bert`, where that
can hold them, and need no transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import field, load_tensors, not_these, read_scorer
from dialeval.model_store.weights import replace_weights
from dialeval.models.encoder import Encoder, Tokens
from dialeval.models.layout import EncoderInput, Segment
from dialeval.models.loading import choose_device, load_tokenizer, silence, text_tokenizer
from dialeval.networks import bert
from dialeval.networks.low_rank import low_rank_tensors, merge_low_rank
from dialeval.question import Answer, MaskedLikelihood, Question, cannot_answer

HEADS = (
    ("cls",),  # BERT
    ("lm_head",),  # RoBERTa, MPNet
    ("predictions",),  # ALBERT
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),  # DistilBERT
    ("generator_predictions", "generator_lm_head"),  # ELECTRA
    ("head", "decoder"),  # ModernBERT
)
"""The parts of transformers' models that turn the states of their encoder into logits, in order."""


class MaskedNetwork(torch.nn.Module):
    """An encoder, and the head on top of it; `is_new`: the head has yet to learn."""

    def __init__(self, model: Any, is_new: bool) -> None:
        super().__init__()
        self.encoder: Any = model.base_model
        self.head = _head_of(model)
        self.is_new = is_new

    def own_head(self) -> dict[str, torch.nn.Parameter]:
        """Returns the parameters of the head but for those that are the encoder's word
        embeddings."""
        shared = {id(parameter) for parameter in self.encoder.parameters()}
        return {n: p for n, p in self.head.named_parameters() if id(p) not in shared}

    def trained_tensors(self) -> dict[str, torch.Tensor]:
        """Returns what a directory keeps: the head, and the adapters or the whole encoder."""
        own = low_rank_tensors(self.encoder) or self.encoder.state_dict()
        head = {f"head.{name}": parameter.detach() for name, parameter in self.own_head().items()}
        return head | {f"encoder.{name}": tensor for name, tensor in own.items()}


def load_network(name: str) -> tuple[MaskedNetwork, Any]:
    """Network and tokenizer of transformers, which can be trained: of an encoder by a name that
    `dialeval models` knows, or by path."""
    directory = encoder_directory(name)
    return _network(directory), load_tokenizer(directory)


def encoder_directory(name: str) -> Path:
    from dialeval.model_store.locate import locate, ready

    found = locate(name)
    if found.role != "encoder" or found.base:
        raise UsageError(
            f"model {name!r} is a {found.role}: a masked language model stands on an encoder."
            " See: dialeval models"
        )
    return ready(found)


def load_head(directory: Path) -> torch.nn.Module:
    """Loads the head that an encoder of the hub brings along."""
    network = light_network(directory)
    if network.is_new:
        raise UsageError(
            f"the encoder in {directory} has no head for guessing masked tokens."
            " Teach it: dialeval train mme-specificity --model NAME"
        )
    return network.head.eval()


def light_network(directory: Path) -> MaskedNetwork:
    """Loads a network that only reads, without transformers where that is possible."""
    ours = bert.load_masked(directory)
    return MaskedNetwork(ours, ours.is_new) if ours else _network(directory)


def _network(directory: Path) -> MaskedNetwork:
    from transformers import AutoModelForMaskedLM

    with silence():
        try:
            model, found = AutoModelForMaskedLM.from_pretrained(
                directory,
                local_files_only=True,
                weights_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except ValueError as error:
            raise UsageError(f"{directory}: there are no masked models of this kind") from error
    return MaskedNetwork(model, bool(found["missing_keys"]))


def _head_of(model: Any) -> torch.nn.Module:
    for names in HEADS:
        if all(hasattr(model, name) for name in names):
            return torch.nn.Sequential(*(getattr(model, name) for name in names))
    raise UsageError(f"a {type(model).__name__} keeps its head where dialeval does not find it")


PROJECTED_AT_ONCE = 256
"""Hidden pieces: with 30 000 logits each, 31 MB."""

READ_AT_ONCE = 1 << 18
"""Tokens of all passes that are held as numbers at the same time."""


@dataclass(frozen=True)
class MaskedLMConfig:
    """What `scorer.json` says. rank 0: all weights of the encoder were trained."""

    encoder: str
    rank: int = 12
    alpha: float = 24.0
    tokens: int = 25

    @classmethod
    def read(cls, directory: Path) -> MaskedLMConfig:
        record = read_scorer(directory)
        return cls(
            record["encoder"],
            field(directory, record, "rank", int),
            field(directory, record, "alpha", float),
            field(directory, record, "tokens", int),
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "masked-lm", "metric": "mme-specificity", **asdict(self)}


def load(directory: Path, *, device: str = "auto") -> MaskedLanguageModel:
    """Loads the model in a directory that `dialeval train mme-specificity` made."""
    config = MaskedLMConfig.read(directory)
    base = encoder_directory(config.encoder)
    network, tokenizer = light_network(base), text_tokenizer(base)
    tensors = load_tensors(directory)
    parts = {
        part: {n.removeprefix(part): t for n, t in tensors.items() if n.startswith(part)}
        for part in ("head.", "encoder.")
    }
    own = network.own_head()
    if own.keys() != parts["head."].keys():
        raise not_these(directory, ValueError("its head has other parts"))
    try:
        if config.rank:
            merge_low_rank(network.encoder, parts["encoder."], config.alpha)
        else:
            replace_weights(network.encoder, parts["encoder."])
        for name, parameter in own.items():
            if parameter.shape != parts["head."][name].shape:
                raise RuntimeError(f"head.{name} differs in size")
            parameter.data = parts["head."][name]
    except (RuntimeError, UsageError) as error:
        raise not_these(directory, error) from error
    network.to(choose_device(device)).eval()
    return MaskedLanguageModel(Encoder(tokenizer, network.encoder), network.head)


class MaskedLanguageModel:
    """Answers `MaskedLikelihood`."""

    def __init__(self, encoder: Encoder, head: torch.nn.Module) -> None:
        if encoder.tokenizer.mask_token_id is None:
            raise UsageError("the tokenizer of this model has no mask")
        self._encoder = encoder
        self._head = head.to(encoder.device)
        self._mask: int = encoder.tokenizer.mask_token_id
        self._input = EncoderInput(encoder.tokenizer, encoder.limit)

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        held: list[_Reading] = []
        size = 0
        for position, question in enumerate(questions):
            if not isinstance(question, MaskedLikelihood):
                raise cannot_answer(question, "a masked language model")
            reading = self._read(position, question)
            held.append(reading)
            size += len(reading.passes) * len(reading.pieces.ids)
            if size > READ_AT_ONCE:
                yield from self._guess(held)
                held, size = [], 0
        yield from self._guess(held)

    def _read(self, position: int, question: MaskedLikelihood) -> _Reading:
        whole = self._input.segments.text(question.text.strip())
        room = self._encoder.limit - len(self._input.before) - len(self._input.after)
        kept = min(len(whole.ids), room, question.tokens or room)
        shift = len(question.text) - len(question.text.lstrip())
        spans = tuple((start + shift, end + shift) for start, end in whole.spans[:kept])
        return _Reading(
            position,
            Segment(whole.ids[:kept], spans),
            len(whole.ids) - kept,
            passes(kept, question.masks),
        )

    def _guess(self, readings: Sequence[_Reading]) -> Iterator[tuple[int, Answer]]:
        work = [(reading, hidden) for reading in readings for hidden in reading.passes]
        tokens = [Tokens(self._hide(reading.pieces.ids, hidden), 0) for reading, hidden in work]
        log_probs = {r.position: np.empty(len(r.pieces.ids)) for r in readings}
        left = {r.position: len(r.passes) for r in readings}
        for reading in readings:
            if not reading.passes:
                yield reading.position, reading.answer(log_probs[reading.position])
        for some in _together(self._encoder.encode(tokens), work, len(self._input.before)):
            found = self._project(
                torch.cat([states for _, states in some]),
                [i for number, _ in some for i in _ids(*work[number])],
            )
            for number, states in some:
                reading, hidden = work[number]
                values, found = found[: len(states)], found[len(states) :]
                log_probs[reading.position][list(hidden)] = values
                left[reading.position] -= 1
                if not left[reading.position]:
                    yield reading.position, reading.answer(log_probs[reading.position])

    def _hide(self, ids: Sequence[int], hidden: range) -> tuple[int, ...]:
        shown = list(ids)
        for place in hidden:
            shown[place] = self._mask
        return (*self._input.before, *shown, *self._input.after)

    def _project(self, states: torch.Tensor, ids: Sequence[int]) -> np.ndarray[Any, Any]:
        with torch.inference_mode():
            return masked_log_probs(self._head, states, torch.tensor(ids)).cpu().numpy()


@dataclass(frozen=True, slots=True)
class _Reading:
    """A question as the model reads it; `passes` are the places that are hidden together."""

    position: int
    pieces: Segment
    cut: int
    passes: list[range]

    def answer(self, log_probs: np.ndarray[Any, Any]) -> Answer:
        rows = np.array([(self.cut, 0, 0), *((0, *span) for span in self.pieces.spans)], float)
        rows[1:, 0] = log_probs
        return rows


def passes(pieces: int, masks: int) -> list[range]:
    """Returns the places that are hidden in each pass, so that every piece is hidden once."""
    step = min(masks or pieces, pieces)
    return [range(first, pieces, step) for first in range(step)]


def masked_log_probs(
    head: torch.nn.Module, states: torch.Tensor, ids: torch.Tensor
) -> torch.Tensor:
    """Log-probability of each piece, from the state at its place, a few at a time."""
    found = []
    for start in range(0, len(ids), PROJECTED_AT_ONCE):
        some = slice(start, start + PROJECTED_AT_ONCE)
        logits = head(states[some])
        chosen = logits.gather(1, ids[some, None].to(logits.device))[:, 0]
        found.append(chosen - logits.logsumexp(dim=1))
    return torch.cat(found)


def _together(
    encoded: Iterator[tuple[int, torch.Tensor]],
    work: Sequence[tuple[_Reading, range]],
    before: int,
) -> Iterator[list[tuple[int, torch.Tensor]]]:
    """States at the hidden places, pass by pass, as many as are projected at once."""
    some: list[tuple[int, torch.Tensor]] = []
    size = 0
    for number, states in encoded:
        hidden = work[number][1]
        some.append((number, states[before + hidden.start : before + hidden.stop : hidden.step]))
        size += len(hidden)
        if size >= PROJECTED_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _ids(reading: _Reading, hidden: range) -> list[int]:
    return [reading.pieces.ids[place] for place in hidden]
