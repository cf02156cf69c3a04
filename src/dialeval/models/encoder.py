"""Encoders: BERT and its relatives, which turn a text into one state per token.

They answer `Embed` with the pooled states of the last layer (`pooling=pooler`: with what the layer
on top of BERT makes of the first state), `TokenMatch` with the best cosines
between the tokens of two texts, `DocumentFrequency`, for which the tokenizer is enough, and, those
that were made to guess masked tokens, `MaskedLikelihood` (see `masked_lm`).

Mean pooling is that of sentence-transformers: over all tokens, with the marks at both ends. A text
that does not fit is cut on the right: for `Embed` at the length that the authors of a sentence
encoder fixed (`sentence_bert_config.json`), else at the length that the model can take.

All texts are tokenized first, then encoded from the longest to the shortest, so that a batch holds
texts of about one length. What little padding is left is masked, and an answer does not depend on
its batch beyond rounding (1e-5, 32-bit floats).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.models.loading import (
    GIVE_BACK_AFTER,
    SURROGATE,
    batches_by_length,
    choose_device,
    give_back,
    in_halves,
    positions_of,
    silence,
    text_tokenizer,
    window_of,
)
from dialeval.networks import bert
from dialeval.question import (
    Answer,
    DocumentFrequency,
    Embed,
    MaskedLikelihood,
    Question,
    TokenMatch,
    cannot_answer,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dialeval.models.masked_lm import MaskedLanguageModel

TOKENS_PER_BATCH = 1024
"""Texts times tokens of the longest: on a CPU a larger batch takes more memory and no less time."""

MORE_ON_A_GPU = 16
"""Times as many there, where it is the number of steps that takes the time."""

STATES_HELD = 1 << 26
"""Numbers kept while token matches are computed: 256 MB."""


def load(directory: Path, *, device: str = "auto") -> Encoder:
    """Loads the encoder in a directory of the Hugging Face layout."""
    model, tokenizer = load_parts(directory)
    sentence_config = directory / "sentence_bert_config.json"
    sentence_limit = None
    if sentence_config.exists():
        sentence_limit = json.loads(sentence_config.read_text("utf-8")).get("max_seq_length")
    on_device = model.float().to(choose_device(device)).eval()
    return Encoder(
        tokenizer,
        on_device,
        sentence_limit,
        lambda: _masked_head(directory),
        lambda: load_pooler(directory).float().to(on_device.device).eval(),
    )


def load_parts(directory: Path) -> tuple[Any, Any]:
    """Network and tokenizer."""
    return bert.load(directory) or _any_encoder(directory), text_tokenizer(directory)


def _any_encoder(directory: Path) -> Any:
    """Loads also an encoder that `bert` does not know: RoBERTa, ELECTRA, DeBERTa and so on."""
    from transformers import AutoModel

    with silence():
        return AutoModel.from_pretrained(directory, local_files_only=True, weights_only=True)


def _masked_head(directory: Path) -> torch.nn.Module:
    from dialeval.models.masked_lm import load_head

    return load_head(directory)


def load_pooler(directory: Path) -> torch.nn.Module:
    """Loads the layer on top of an encoder, which maps the states of a batch to one vector each. An
    encoder whose weights do not hold it is refused: transformers would make a random one."""
    if (found := bert.load_pooler(directory)) is not None:
        return found
    from transformers import AutoModel

    with silence():
        model, how = AutoModel.from_pretrained(
            directory, local_files_only=True, weights_only=True, output_loading_info=True
        )
    pooler = getattr(model, "pooler", None)
    if pooler is None or any("pooler" in name for name in how["missing_keys"]):
        raise UsageError(f"the encoder in {directory} has no pooler. Use pooling=cls or mean.")
    layer: torch.nn.Module = pooler
    return layer


def _no_pooler() -> torch.nn.Module:
    raise UsageError("this encoder has no pooler. Use pooling=cls or mean.")


def _no_masked_head() -> torch.nn.Module:
    raise UsageError("this encoder has no head that could guess masked tokens")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the model reads it, and how many of its tokens were cut."""

    ids: tuple[int, ...]
    cut: int


class Encoder:
    """A tokenizer and a model.

    `load_head` gives what turns a state into logits of the vocabulary; it is called once, and only
    if somebody asks `MaskedLikelihood`. `load_pooler` gives the layer on top, in the same way.
    """

    def __init__(
        self,
        tokenizer: Any,
        model: Any,
        sentence_limit: int | None = None,
        load_head: Callable[[], torch.nn.Module] = _no_masked_head,
        load_pooler: Callable[[], torch.nn.Module] = _no_pooler,
    ) -> None:
        self.tokenizer = tokenizer
        self._model = model
        self._load_head = load_head
        self._load_pooler = load_pooler
        self._masked: MaskedLanguageModel | None = None
        self._pooler: torch.nn.Module | None = None
        self.limit = min(window_of(model, tokenizer), positions_of(model))
        self.sentence_limit = min(sentence_limit or self.limit, self.limit)
        self._ends = {tokenizer.cls_token_id, tokenizer.sep_token_id}
        self._byte_level = type(tokenizer.backend_tokenizer.pre_tokenizer).__name__ == "ByteLevel"

    @property
    def device(self) -> Any:
        return self._model.device

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        embeds: list[tuple[int, Embed]] = []
        masked: list[tuple[int, MaskedLikelihood]] = []
        matches: dict[int, list[tuple[int, TokenMatch]]] = {}
        for position, question in enumerate(questions):
            match question:
                case Embed():
                    embeds.append((position, question))
                case TokenMatch():
                    matches.setdefault(question.layer, []).append((position, question))
                case MaskedLikelihood():
                    masked.append((position, question))
                case DocumentFrequency():
                    yield position, self._document_frequency(question.texts)
                case _:
                    raise cannot_answer(question, "an encoder")
        yield from self._embed(embeds)
        for layer, group in matches.items():
            yield from self._match(group, layer)
        if masked:
            yield from self._guess(masked)

    def _embed(self, questions: Sequence[tuple[int, Embed]]) -> Iterator[tuple[int, Answer]]:
        asked: dict[str, list[tuple[int, Embed]]] = {}
        for position, question in questions:
            asked.setdefault(question.text, []).append((position, question))
        texts = list(asked)
        tokens = self._tokenize([text.strip() for text in texts], self.sentence_limit)
        for number, states in self.encode(tokens):
            for position, question in asked[texts[number]]:
                yield position, self._pooled(states, question.pooling).cpu().numpy().copy()
        if sum(len(text.ids) for text in tokens) > GIVE_BACK_AFTER:
            give_back()

    def _pooled(self, states: torch.Tensor, how: Pooling) -> torch.Tensor:
        """Returns one vector for a text, from one state per token."""
        if how != "pooler":
            return pool(states, how)
        if self._pooler is None:
            self._pooler = self._load_pooler()
        with torch.inference_mode():
            vector: torch.Tensor = self._pooler(states[None])[0]
        return vector

    def _guess(
        self, questions: Sequence[tuple[int, MaskedLikelihood]]
    ) -> Iterator[tuple[int, Answer]]:
        from dialeval.models.masked_lm import MaskedLanguageModel

        if self._masked is None:
            self._masked = MaskedLanguageModel(self, self._load_head())
        asked = [question for _, question in questions]
        for number, answer in self._masked.answer(asked):
            yield questions[number][0], answer

    def _match(
        self, questions: Sequence[tuple[int, TokenMatch]], layer: int
    ) -> Iterator[tuple[int, Answer]]:
        pairs = [(question.candidate, question.reference) for _, question in questions]
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        tokenized = self._tokenize([self._inside_a_text(text) for text in texts], self.limit)
        tokens = dict(zip(texts, tokenized, strict=True))
        for start, stop in self._groups([[len(tokens[t].ids) for t in pair] for pair in pairs]):
            held = list(dict.fromkeys(text for pair in pairs[start:stop] for text in pair))
            states = {
                held[number]: torch.nn.functional.normalize(rows, dim=-1)
                for number, rows in self.encode([tokens[text] for text in held], layer)
            }
            for number in range(start, stop):
                first, second = pairs[number]
                cosines = (states[first] @ states[second].T).clamp_(-1.0, 1.0).cpu().numpy()
                yield questions[number][0], self._best(tokens[first], tokens[second], cosines)

    def _groups(self, lengths: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
        """Runs of pairs whose states fit into memory together; start and stop of each."""
        start, held = 0, 0
        for number, pair in enumerate(lengths):
            size = sum(pair) * self._model.config.hidden_size
            if held + size > STATES_HELD and number > start:
                yield start, number
                start, held = number, 0
            held += size
        if lengths:
            yield start, len(lengths)

    def _best(self, first: Tokens, second: Tokens, cosines: npt.NDArray[np.float32]) -> Answer:
        rows = [
            (token, best)
            for ids, column in ((first.ids, cosines.max(axis=1)), (second.ids, cosines.max(axis=0)))
            for token, best in zip(ids, column.tolist(), strict=True)
            if token not in self._ends
        ]
        candidates = sum(token not in self._ends for token in first.ids)
        return np.array([(candidates, first.cut + second.cut), *rows], dtype=np.float32)

    def _document_frequency(self, texts: Sequence[str]) -> Answer:
        counts = np.zeros(max(len(self.tokenizer), self._model.config.vocab_size))
        for tokens in self._tokenize([self._inside_a_text(text) for text in texts], self.limit):
            counts[list(set(tokens.ids))] += 1
        return counts

    def _inside_a_text(self, text: str) -> str:
        """RoBERTa's first word is another token than the same word behind a space. BERTScore wants
        words that stand inside a text."""
        text = text.strip()
        return f" {text}" if self._byte_level and text else text

    def _tokenize(self, texts: Sequence[str], limit: int) -> list[Tokens]:
        if not texts:
            return []
        clean = [SURROGATE.sub("\ufffd", text) for text in texts]
        found = []
        for text, ids in zip(clean, self.tokenizer(clean, verbose=False).input_ids, strict=True):
            cut = max(0, len(ids) - limit)
            if cut:
                ids = self.tokenizer(text, truncation=True, max_length=limit).input_ids
            found.append(Tokens(tuple(ids), cut))
        return found

    def encode(
        self, tokens: Sequence[Tokens], layer: int = -1
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """(number of the text, its states without padding), a batch at a time."""
        lengths = [len(text.ids) for text in tokens]
        tokens_per_batch = TOKENS_PER_BATCH * (1 if self.device.type == "cpu" else MORE_ON_A_GPU)
        for batch in batches_by_length(lengths, tokens_per_batch):
            parts = in_halves(
                lambda some: self._states(some, layer),
                [tokens[number] for number in batch],
                lambda text: f"text of {len(text.ids)} tokens",
            )
            yield from zip(batch, chain.from_iterable(parts), strict=True)

    def _states(self, batch: Sequence[Tokens], layer: int) -> list[torch.Tensor]:
        longest = max(len(text.ids) for text in batch)
        ids = torch.full((len(batch), longest), self.tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, text in enumerate(batch):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            mask[row, : len(text.ids)] = 1
        device = self._model.device
        with self._first_layers(layer), torch.inference_mode():
            out = self._model(input_ids=ids.to(device), attention_mask=mask.to(device))
        rows = zip(out.last_hidden_state, batch, strict=True)
        return [states[: len(text.ids)] for states, text in rows]

    @contextmanager
    def _first_layers(self, layer: int) -> Iterator[None]:
        """The model ends after this layer, as if it had no more. -1: after the last."""
        if layer == -1:
            yield
            return
        stack: Any = getattr(self._model, "encoder", getattr(self._model, "transformer", None))
        layers = getattr(stack, "layer", None)
        if not isinstance(layers, torch.nn.ModuleList):
            kind = type(self._model).__name__
            raise UsageError(f"a {kind} does not let its layers be chosen. Use layer=-1.")
        if not 0 <= layer <= len(layers):
            raise UsageError(
                f"layer {layer} asked for, but this model has layers 0 to {len(layers)}"
            )
        stack.layer = layers[:layer]
        try:
            yield
        finally:
            stack.layer = layers


Pooling = Literal["mean", "cls", "max", "pooler"]


def pool(states: torch.Tensor, how: Literal["mean", "cls", "max"]) -> torch.Tensor:
    """Returns one vector for a text, from one state per token."""
    if how == "mean":
        return states.mean(dim=0)
    return states[0] if how == "cls" else states.amax(dim=0)
