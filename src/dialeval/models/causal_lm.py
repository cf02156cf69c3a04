"""Causal language models, GPT-2, Llama and their relatives, answer `Likelihood` and `Choose`.

The questions of a call become token sequences (`layout`). Sorted, they form prefix trees, which are
packed into forward passes (`packing`) and read with tree attention (`tree`): what several questions
have in common is computed once. Hidden states go through the head of the model only where a token
has to be predicted, a slice at a time, because one row of it is as long as the vocabulary.

An answer differs from that of one plain forward pass per question by rounding only (at most 1e-4,
32-bit floats), whatever is asked beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import JobError, UsageError
from dialeval.models.layout import Writer, Written
from dialeval.models.loading import (
    GIVE_BACK_AFTER,
    choose_device,
    give_back,
    give_back_weights,
    is_out_of_memory,
    light_tokenizer,
    load_language_model,
    silence,
    window_of,
)
from dialeval.networks import llama
from dialeval.networks.tree import Passes, attend, grow, plan_passes, views
from dialeval.question import Answer, Choose, Chosen, Likelihood, Question, cannot_answer

TOKENS_PER_PASS = 2048
"""Measured with SmolLM2-135M on two cores: 1024 to 4096 tokens reach about the same share of the
matmul peak, over 60 %; below, dialogues with many follow-ups are torn apart and read again."""

LOGITS_PER_SLICE = 1 << 23
"""Numbers that the head may write at once: 32 MB."""

ATTENTION = "dialeval_tree"


def load(directory: Path, *, device: str = "auto", adapter: Path | None = None) -> CausalLM:
    """Loads the model in a directory of the Hugging Face layout; an adapter (LoRA) is merged into
    it."""
    if ours := llama.load(directory, adapter):
        return CausalLM(ours.to(choose_device(device)), light_tokenizer(directory))
    model, tokenizer = load_language_model(
        "AutoModelForCausalLM", directory, device=device, adapter=adapter
    )
    return CausalLM(model, tokenizer)


@dataclass(slots=True)
class TokenCounts:
    """Work, in tokens that went through the model.

    computed   what was read
    predicted  rows of logits: states that went through the head
    naive      what one pass per question would have read
    minimum    the distinct prefixes of the questions: no exact computation reads less
    """

    computed: int = 0
    predicted: int = 0
    naive: int = 0
    minimum: int = 0


class _Open:
    """A `Choose` whose spellings are not all known yet; `tokens` says which choice each is of."""

    def __init__(self, tokens: dict[Written, int], choices: int) -> None:
        self.tokens = tokens
        self._missing = len(tokens)
        self._sums = [0.0] * choices

    @classmethod
    def of(cls, written: Sequence[Sequence[Written]]) -> _Open:
        tokens = {one: choice for choice, own in enumerate(written) for one in own}
        return cls(tokens, len(written))

    def add(self, written: Written, log_prob: float) -> Chosen | None:
        """The answer, with the last spelling."""
        self._sums[self.tokens[written]] += math.exp(log_prob)
        self._missing -= 1
        return None if self._missing else Chosen(tuple(self._sums), written.cut)


def exact(question: Choose) -> Choose:
    """Refuses to count replies where the probabilities are known."""
    if question.samples:
        raise UsageError(
            f"model {question.model!r} knows the probabilities of its replies: samples is for"
            " servers that do not give them. Leave it out."
        )
    return question


class CausalLM:
    """A tokenizer and a model. `counts` says how much work was done and saved so far."""

    def __init__(self, model: Any, tokenizer: Any, tokens_per_pass: int = TOKENS_PER_PASS) -> None:
        self.counts = TokenCounts()
        self.tokens_per_pass = tokens_per_pass
        self.writer = Writer(tokenizer, window_of(model, tokenizer))
        self._model = model.eval()
        self._head = model.get_output_embeddings()
        self._device = model.device
        if not isinstance(model, llama.Llama):
            self._read_trees()

    @property
    def tokens_read(self) -> int:
        """Tokens that went through the model so far."""
        return self.counts.computed

    @property
    def head_weights(self) -> int:
        """Numbers that each predicted state is multiplied with."""
        return int(self._head.weight.numel())

    @property
    def weights(self) -> int:
        """Numbers that each token is multiplied with: all but what is looked up."""
        tables = {id(m.weight) for m in self._model.modules() if isinstance(m, torch.nn.Embedding)}
        kept = (p for p in self._model.base_model.parameters() if id(p) not in tables)
        return sum(p.numel() for p in kept)

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        asked: list[tuple[tuple[int, ...], int, Written]] = []
        choices: dict[int, _Open] = {}
        for position, question in enumerate(questions):
            if isinstance(question, Choose):
                choices[position] = _Open.of(self.writer.write_choices(exact(question)))
                own = choices[position].tokens
            elif isinstance(question, Likelihood):
                own = {self.writer.write(question): 0}
            else:
                raise cannot_answer(question, "a language model")
            asked += [(_read(written), position, written) for written in own]
        asked.sort(key=lambda one: one[0])
        self.counts.naive += sum(len(written.ids) for _, _, written in asked)
        order = plan_passes([read for read, _, _ in asked])
        self.counts.minimum += order.minimum
        start = 0
        while start < len(asked):
            stop = order.next_stop(start, self.tokens_per_pass)
            try:
                found = self.log_probs([written for _, _, written in asked[start:stop]])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(order, start, stop, error)
                continue
            if order.tokens(start, stop) > GIVE_BACK_AFTER:
                give_back()
            for (_, position, written), log_probs in zip(asked[start:stop], found, strict=True):
                if position not in choices:
                    yield position, to_answer(written, log_probs)
                elif chosen := choices[position].add(written, float(log_probs[0])):
                    yield position, chosen.answer()
            start = stop
        if order.minimum > GIVE_BACK_AFTER:
            give_back_weights(self._model)

    def log_probs(self, batch: Sequence[Written]) -> list[npt.NDArray[np.float32]]:
        """Computes one pass over sequences in sorted order: what each answers for, token by
        token."""
        forest = grow([_read(written) for written in batch])
        # Token i is predicted by the node of token i - 1. Nothing predicts token 0.
        targets = [np.array(written.ids[max(1, written.first) :], np.int64) for written in batch]
        nodes = [
            path[len(path) - len(wanted) :]
            for path, wanted in zip(forest.paths, targets, strict=True)
        ]
        found = np.empty(0, np.float32)
        if len(forest.tokens):
            with torch.inference_mode():
                states = self._states(forest.tokens, forest.depths, views(forest, self._device))
                found = self._predict(states, np.concatenate(nodes), np.concatenate(targets))
        self.counts.computed += len(forest.tokens)
        parts = np.split(found, np.cumsum([len(wanted) for wanted in targets])[:-1])
        return [
            _behind_nan(part, len(written.ids) - written.first)
            for part, written in zip(parts, batch, strict=True)
        ]

    def _states(self, tokens: Any, depths: Any, tree: Any) -> torch.Tensor:
        """Returns the state of each node, ready for the head."""
        out = self._model.base_model(
            input_ids=torch.from_numpy(tokens)[None].to(self._device),
            position_ids=torch.from_numpy(depths)[None].to(self._device),
            use_cache=False,
            tree=tree,
        )
        states: torch.Tensor = out.last_hidden_state[0]
        return states

    def _predict(
        self,
        states: torch.Tensor,
        nodes: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float32]:
        """log P(target | path to node), each node through the head once."""
        distinct, row_of = np.unique(nodes, return_inverse=True)
        by_row = np.argsort(row_of, kind="stable")
        found = np.empty(len(nodes), np.float32)
        step = max(1, LOGITS_PER_SLICE // self._head.weight.shape[0])
        for first in range(0, len(distinct), step):
            rows = torch.from_numpy(distinct[first : first + step]).to(self._device)
            logits = self._head(states[rows]).float()
            low, high = np.searchsorted(row_of[by_row], [first, first + step])
            pairs = by_row[low:high]
            row = torch.from_numpy(row_of[pairs] - first).to(self._device)
            target = torch.from_numpy(targets[pairs]).to(self._device)
            chosen = logits[row, target]
            norm = log_sum_exp_(logits)
            del logits, rows  # before the next slice is made
            found[pairs] = (chosen - norm[row]).cpu().numpy()
        self.counts.predicted += len(distinct)
        return found

    def _halve(self, order: Passes, start: int, stop: int, error: Exception) -> None:
        """After a pass that did not fit into memory: the next ones get half as many tokens."""
        tokens = order.tokens(start, stop)
        self.tokens_per_pass = max(1, min(self.tokens_per_pass, tokens) // 2)
        if order.next_stop(start, self.tokens_per_pass) == stop:
            raise JobError(
                f"not enough memory for a single dialogue of {tokens} tokens."
                " Close other programs, use a smaller model, or shorten the dialogue."
            ) from error
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _read_trees(self) -> None:
        """Switches to tree attention, and makes sure that this kind of model follows it.

        Some compute attention in their own way, some do more with a state than the head does.
        """
        from transformers import AttentionInterface

        branches = [Written(ids, 1, (), 0) for ids in ((1, 2, 3, 4), (1, 2, 5))]
        expected = [plain_log_probs(self._model, written) for written in branches]
        layers = []

        def watched(module: torch.nn.Module, *tensors: Any, **options: Any) -> Any:
            layers.append(module)
            return attend(module, *tensors, **options)

        try:
            with silence():
                AttentionInterface.register(ATTENTION, watched)
                self._model.set_attn_implementation(ATTENTION)
            found = self.log_probs(branches)
            good = all(np.allclose(f, e, atol=1e-3) for f, e in zip(found, expected, strict=True))
        except (TypeError, ValueError):
            good = False
        if not good or len(layers) < self._model.config.num_hidden_layers:
            raise UsageError(
                f"a {type(self._model).__name__} cannot read several questions in one pass."
                " Models of the Llama and GPT-2 families can."
            )
        AttentionInterface.register(ATTENTION, attend)
        self.counts = TokenCounts()


def log_sum_exp_(logits: torch.Tensor) -> torch.Tensor:
    """Returns the log-sum-exp of each row, by the steps of torch's `logsumexp`, but written over
    the logits: a copy of them would be the largest thing that a pass needs."""
    largest = logits.amax(dim=-1, keepdim=True)
    return logits.sub_(largest).exp_().sum(dim=-1).log_().add_(largest[:, 0])


def plain_log_probs(model: Any, written: Written) -> npt.NDArray[np.float32]:
    """Returns the same by one forward pass over one plain sequence, which `CausalLM` is measured
    by."""
    with torch.inference_mode():
        ids = torch.tensor([written.ids], device=model.device)
        log_probs = model(input_ids=ids, use_cache=False).logits[0, :-1].float().log_softmax(-1)
        found = log_probs.gather(1, ids[0, 1:, None])[:, 0].cpu().numpy()
    return _behind_nan(found[max(1, written.first) - 1 :], len(written.ids) - written.first)


def to_answer(written: Written, log_probs: npt.NDArray[np.float32]) -> Answer:
    """Returns the answer in the form that `Likelihood` promises and `TokenLogProbs` reads."""
    answer = np.full((1 + len(log_probs), 3), -1.0)
    answer[0, 0] = written.cut
    answer[1:, 0] = log_probs
    answer[1:, 1:] = np.array(written.spans, np.float64).reshape(-1, 2)
    return answer


def _read(written: Written) -> tuple[int, ...]:
    """Reads what the model has to read: all but the last token, or nothing if nothing is asked."""
    return written.ids[:-1] if written.first < len(written.ids) else ()


def _behind_nan(found: npt.NDArray[np.float32], length: int) -> npt.NDArray[np.float32]:
    """`found`, after a NaN for a first token that nothing predicts."""
    return np.concatenate([np.full(length - len(found), np.nan, np.float32), found])
