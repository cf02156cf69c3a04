"""Models that write: the next turn of a dialogue, from any model that `dialeval models` knows.

    generator = load_generator("smollm2-135m-dialogue")
    generator.replies([[Turn("How are you?")]], Decoding("beam", beams=5, count=3))

How a dialogue is put to a model is its layout (`question.Layout`). An encoder-decoder reads `tabs`.
A causal model reads the layout that the catalogue names, or that of `dialogue.json` beside its
weights, which `dialeval train lm` writes and which is part of the fingerprint; without either, its
chat template or `lines`. A model that was trained to read the last turns alone gets those: the
same file says how many. A history that is too long loses tokens on the left. A reply ends where
the layout ends a turn; roles that a model writes in front of it are taken off.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast, get_args

from dialeval.errors import JobError, UsageError
from dialeval.generation.search import Decoding, beam_search, diverse_beam_search, sample
from dialeval.model_store.locate import Located, locate
from dialeval.model_store.weights import LAYOUT, read_json
from dialeval.question import Layout
from dialeval.sample import Turn

if TYPE_CHECKING:
    import numpy as np

    from dialeval.generation.search import Endings, Hypothesis, Reading

__all__ = ["Decoding", "Generator", "load_generator"]

TOKENS_PER_BATCH = 4096
"""Texts that are written at once, times their length with the prompt."""

ROLE = re.compile(r"^(?:\s*(?:user|system|assistant|bot)\s*:)+", re.IGNORECASE)


class Backend(Protocol):
    """The parts of a kind of model: prompts, probabilities, ends, and how ids become text."""

    layout: Layout
    endings: Endings

    def prompt(self, history: Sequence[Turn], speaker: str, new_tokens: int) -> tuple[int, ...]:
        """Returns the ids that are read before `speaker` says at most `new_tokens` tokens."""
        ...

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading: ...

    def text(self, ids: Sequence[int]) -> str: ...


class Generator:
    """Writes replies. `layout` is how the model reads a dialogue, and `turns` how many of its last
    turns (0: all)."""

    def __init__(
        self, backend: Backend, tokens_per_batch: int = TOKENS_PER_BATCH, turns: int = 0
    ) -> None:
        self.tokens_per_batch = tokens_per_batch
        self.turns = turns
        self._backend = backend

    @property
    def layout(self) -> Layout:
        return self._backend.layout

    def replies(
        self,
        histories: Sequence[Sequence[Turn]],
        decoding: Decoding,
        seed: int = 0,
        *,
        speaker: str = "system",
    ) -> list[list[str]]:
        """Returns `count` things of a word or more that `speaker` may say next, for each history.

        What is drawn depends on the seed and the history, not on the histories beside it. A beam
        search may find fewer texts than it was asked for.
        """
        prompts = [
            self._backend.prompt(history[-self.turns :], speaker, decoding.max_new_tokens)
            for history in histories
        ]
        found: list[list[str]] = [[] for _ in histories]
        waiting = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), i))
        while waiting:
            batch = waiting[-self._fitting(waiting, prompts, decoding) :]
            written = self._write(batch, prompts, histories, decoding, seed)
            if written is None:
                continue
            for i, texts in zip(batch, written, strict=True):
                found[i] = [self._text(text.ids) for text in texts]
            del waiting[-len(batch) :]
        return found

    def _write(
        self,
        batch: Sequence[int],
        prompts: Sequence[tuple[int, ...]],
        histories: Sequence[Sequence[Turn]],
        decoding: Decoding,
        seed: int,
    ) -> list[list[Hypothesis]] | None:
        """None if memory did not suffice: the next batch will be smaller."""
        import torch

        from dialeval.models.loading import is_out_of_memory

        try:
            with torch.inference_mode():
                reading = self._backend.read([prompts[i] for i in batch])
                if decoding.method in ("beam", "diverse"):
                    search = beam_search if decoding.method == "beam" else diverse_beam_search
                    return search(reading, self._backend.endings, decoding, len(batch))
                draws = [list(_draws(histories[i], seed, decoding.count)) for i in batch]
                return sample(reading, self._backend.endings, decoding, draws)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise JobError(
                    "not enough memory for a single dialogue. Use a smaller model or fewer beams."
                ) from error
            self.tokens_per_batch = max(1, self.tokens_per_batch // 2)
            return None

    def _fitting(
        self, waiting: Sequence[int], prompts: Sequence[tuple[int, ...]], decoding: Decoding
    ) -> int:
        """Returns how many prompts, from the back and the longest first, fit into a batch."""
        searches = decoding.method in ("beam", "diverse")
        texts = decoding.beams if searches else decoding.count
        length = len(prompts[waiting[-1]]) + decoding.max_new_tokens
        return min(len(waiting), max(1, self.tokens_per_batch // (texts * length)))

    def _text(self, ids: Sequence[int]) -> str:
        return ROLE.sub("", self._backend.text(ids)).strip()


def load_generator(name: str, *, device: str = "auto", layout: Layout | None = None) -> Generator:
    """Returns a model that writes: a name of the catalogue, a directory, a hub id, an adapter, or
    what `dialeval train` made. `layout` overrides how it reads a dialogue."""
    from dialeval.model_store.locate import offline, ready

    found = locate(name)
    with offline():
        directory = ready(found.base or found)
        if found.base:
            ready(found)
        if found.role not in ("causal-lm", "seq2seq-lm", "generator"):
            raise UsageError(
                f"model {name!r} has the role {found.role} and cannot write. See: dialeval models,"
                " those that are causal-lm or seq2seq-lm"
            )
        from dialeval.generation.backends import load_causal, load_reply_network, load_seq2seq

        adapter = found.directory if found.base else None
        turns = learned_turns(found)
        backend: Backend
        if found.role == "causal-lm":
            chosen = layout or learned_layout(found) or "native"
            backend = load_causal(directory, device=device, adapter=adapter, layout=chosen)
            return Generator(backend, turns=turns)
        if found.role == "seq2seq-lm":
            backend = load_seq2seq(
                directory, device=device, adapter=adapter, layout=layout or "tabs"
            )
            return Generator(backend, turns=turns)
        if layout not in (None, "tabs"):
            raise UsageError(f"model {name!r} was trained with the layout 'tabs' and has no other")
        return Generator(load_reply_network(directory, device=device), turns=turns)


def learned_layout(found: Located) -> Layout | None:
    """Returns the layout that a causal model was trained with, where somebody wrote it down."""
    if found.entry:
        name, where = found.entry.facts.get("layout"), f"the catalogue on {found.name}"
    else:
        # A GGUF file is fingerprinted alone, so nothing beside it counts.
        path = found.directory / LAYOUT
        name, where = None if found.gguf else read_json(path).get("layout"), str(path)
    if name is not None and name not in get_args(Layout):
        raise UsageError(f"{where}: layout: {name!r} is none of {', '.join(get_args(Layout))}")
    return cast("Layout | None", name)


def learned_turns(found: Located) -> int:
    """Returns how many of the last turns a model was trained to read; 0: all."""
    if found.entry or found.gguf:
        return 0
    path = found.directory / LAYOUT
    turns = read_json(path).get("turns", 0)
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 0:
        raise UsageError(f"{path}: turns: expected a number from 0, got {turns!r}")
    return turns


def _draws(history: Sequence[Turn], seed: int, count: int) -> Iterator[np.random.Generator]:
    """Yields a generator for each of the texts that follow a history."""
    import numpy as np

    said = json.dumps([[turn.speaker, turn.text] for turn in history])
    digest = hashlib.sha256(said.encode("ascii")).digest()
    for number in range(count):
        yield np.random.default_rng([abs(seed), seed < 0, number, *digest])
