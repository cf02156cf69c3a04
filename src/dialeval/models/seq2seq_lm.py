"""Encoder-decoder language models: BlenderBot, BART and T5 answer `Likelihood`, many at once.

The encoder reads the turns, the decoder predicts the text. FULL (section 3, released package) asks
for five follow-ups and reads the dialogue five times; here it is encoded once. The keys and values
that the decoder derives from the encoder's states are kept too: they cost more than the decoding of
a short follow-up. So several dialogues form a batch, the first text of each is decoded together,
then the second of each, and so on. What a text has in common with the one before it, at least the
start token, is not read again.

Encoder input: see `layout`. What does not fit (BlenderBot reads 128 tokens) is cut from the
turns; the text only if it is too long by itself.

The decoder begins with the model's start token, with or without `start`. `end` is the mark that
closes a target, `</s>`. The tokens of the turns are never predicted, so `whole` is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import JobError, UsageError
from dialeval.models.causal_lm import to_answer
from dialeval.models.layout import OUTSIDE, SEPARATORS, EncoderInput, Written
from dialeval.models.loading import is_out_of_memory, load_language_model, window_of
from dialeval.question import Answer, Likelihood, Question, cannot_answer

TOKENS_PER_BATCH = 2048
"""Dialogues times tokens of the longest."""


def load(directory: Path, *, device: str = "auto", adapter: Path | None = None) -> Seq2SeqLM:
    """Loads the model in a directory of the Hugging Face layout; an adapter (LoRA) is merged into
    it."""
    model, tokenizer = load_language_model(
        "AutoModelForSeq2SeqLM", directory, device=device, adapter=adapter
    )
    return Seq2SeqLM(model, tokenizer)


@dataclass(slots=True)
class Dialogue:
    """What the encoder reads, and the targets asked for, with the positions of their questions."""

    source: tuple[int, ...]
    targets: list[tuple[int, Written]]


class Seq2SeqLM:
    """A tokenizer and a model. `encoded` counts the dialogues that were read so far."""

    def __init__(
        self, model: Any, tokenizer: Any, tokens_per_batch: int = TOKENS_PER_BATCH
    ) -> None:
        self.encoded = 0
        self.tokens_per_batch = tokens_per_batch
        self._model = model.eval()
        self._window = window_of(model, tokenizer)
        self._input = EncoderInput(tokenizer, self._window)
        self._padding = model.config.pad_token_id or 0
        self._start = model.config.decoder_start_token_id
        if self._start is None:
            self._start = model.generation_config.decoder_start_token_id

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        dialogues: dict[tuple[int, ...], Dialogue] = {}
        for position, question in enumerate(questions):
            asked = _checked(question)
            source, cut = self._input.write(asked.turns, asked.layout, asked.truncate)
            written = self._target(asked, cut)
            dialogue = dialogues.setdefault(source, Dialogue(source, []))
            dialogue.targets.append((position, written))
        for dialogue in dialogues.values():
            dialogue.targets.sort(key=lambda target: target[1].ids)
        # Alike in length and in the number of targets, so that little is padding.
        waiting = sorted(dialogues.values(), key=lambda one: (len(one.targets), len(one.source)))
        while waiting:
            count = self._fitting(waiting)
            try:
                found = self._log_probs(waiting[-count:])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if count == 1:
                    raise JobError(
                        "not enough memory for a single dialogue. Use a smaller model."
                    ) from error
                self.tokens_per_batch = max(1, self.tokens_per_batch // 2)
                continue
            for dialogue, rows in zip(waiting[-count:], found, strict=True):
                for (position, written), log_probs in zip(dialogue.targets, rows, strict=True):
                    yield position, to_answer(written, log_probs)
            del waiting[-count:]

    def _target(self, question: Likelihood, cut: int) -> Written:
        """Returns the decoder's ids: the start token, then what is to be predicted."""
        segment = self._input.segments.text(question.text)
        ids = (self._start, *self._input.before, *segment.ids)
        first = len(ids) - len(segment.ids)
        spans = segment.spans
        if question.end:
            after = self._input.after
            ids, spans = (*ids, *after), (*spans, *(OUTSIDE for _ in after))
        # The last token is predicted but never read.
        room = self._window + 1
        return Written(ids[:room], first, spans[: room - first], cut + max(0, len(ids) - room))

    def _fitting(self, waiting: Sequence[Dialogue]) -> int:
        """Returns how many dialogues, from the back, fit into a batch; at least one."""
        longest = 1
        for count, dialogue in enumerate(reversed(waiting), start=1):
            target = max(len(written.ids) for _, written in dialogue.targets)
            longest = max(longest, len(dialogue.source), target)
            if count > 1 and count * longest > self.tokens_per_batch:
                return count - 1
        return len(waiting)

    def _log_probs(self, batch: Sequence[Dialogue]) -> list[list[npt.NDArray[np.float32]]]:
        """Returns the log-probabilities of the tokens of each target of each dialogue."""
        from transformers import DynamicCache, EncoderDecoderCache

        sources, mask = self._padded([dialogue.source for dialogue in batch])
        found: list[list[npt.NDArray[np.float32]]] = [[] for _ in batch]
        with torch.inference_mode():
            encoded = self._model.get_encoder()(input_ids=sources, attention_mask=mask)
            derived = DynamicCache()
            own = DynamicCache()
            before, logits = sources[:, :0], None
            for turn in range(max(len(dialogue.targets) for dialogue in batch)):
                # A dialogue with fewer targets repeats its last one; the result is not used.
                targets = [d.targets[min(turn, len(d.targets) - 1)][1] for d in batch]
                ids, _ = self._padded([written.ids for written in targets])
                read = ids[:, :-1]
                shared = _common_prefix(before, read)
                if shared < before.shape[1]:
                    own.crop(shared - before.shape[1])
                out = self._model(
                    encoder_outputs=encoded,
                    attention_mask=mask,
                    decoder_input_ids=read[:, shared:],
                    past_key_values=EncoderDecoderCache(own, derived),
                    use_cache=True,
                )
                before = read
                logits = (
                    out.logits if logits is None else torch.cat([logits[:, :shared], out.logits], 1)
                )
                values = _chosen(logits, ids[:, 1:]).cpu().numpy()
                for row, written in enumerate(targets):
                    if turn < len(batch[row].targets):
                        found[row].append(values[row, written.first - 1 : len(written.ids) - 1])
        self.encoded += len(batch)
        return found

    def _padded(self, sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        # A target without tokens is its start token alone, and still something has to be read.
        longest = max(2, *map(len, sequences))
        ids = torch.full((len(sequences), longest), self._padding)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
        return ids.to(self._model.device), mask.to(self._model.device)


def _checked(question: Question) -> Likelihood:
    if not isinstance(question, Likelihood):
        raise cannot_answer(question, "a language model")
    if question.layout not in SEPARATORS:
        raise UsageError(
            f"model {question.model!r} is an encoder-decoder and has no layout"
            f" {question.layout!r}. Its layouts: {', '.join(SEPARATORS)}."
        )
    if question.whole:
        raise UsageError(
            f"model {question.model!r} is an encoder-decoder: it predicts the text and never the"
            " turns. Ask without whole, or use a causal language model."
        )
    return question


def _common_prefix(before: torch.Tensor, read: torch.Tensor) -> int:
    """Returns how many tokens all rows have in common with what was read before; one at least is
    new."""
    length = min(before.shape[1], read.shape[1] - 1)
    differs = (before[:, :length] != read[:, :length]).any(0).nonzero()
    return int(differs[0]) if len(differs) else length


def _chosen(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """log P(target) at each place, in 32-bit floats."""
    return logits.float().log_softmax(-1).gather(-1, targets[:, :, None])[:, :, 0]
