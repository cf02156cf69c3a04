"""Language models in 4 bits: `Choose` by llama.cpp from the file as it is (extra `gguf`), and
`Likelihood` by torch from the same weights in 32 bits.

`xllamacpp` brings llama.cpp in a wheel. Its server runs inside this process and listens on a random
port of this machine only; it is asked for token numbers there, because only that interface can say
that a text holds no marks of the chat template. Prompts go to it as numbers.

Where llama.cpp remembers the beginning of a prompt, an answer depends on what was asked before. It
therefore reads every prompt anew, and the same question gets the same answer. That is slower for a
rubric of many qualities: `benchmarks/llama_cpp.py` says how much, and how far ratings would move.

The server tells the probabilities of the next token only, so a follow-up of ten words would take
ten readings of its dialogue. Likelihoods therefore come from a conversion of the file (`gguf`),
which is made once and reads a dialogue once for all of its follow-ups. It takes four to six times
the size of the file on the disk, and as much memory while it is asked.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from dialeval.errors import JobError, UsageError
from dialeval.model_store.store import converted
from dialeval.models import causal_lm
from dialeval.models.causal_lm import CausalLM, exact
from dialeval.models.layout import choice_tokens
from dialeval.question import Answer, Choose, Chosen, Likelihood, Model, Question, cannot_answer

WINDOW = 4096
"""Tokens that a prompt may have, or fewer where the model was trained with fewer; llama.cpp sets
memory aside for all of them."""

LISTED = 200
"""Most probable tokens that are looked at: the others have no probability to speak of."""

WHOLE_LETTER = 8
"""Tokens that are written where the likeliest one is the beginning of a letter that has several
bytes: before the letter is whole, llama.cpp does not tell any probability."""

USER, BOT = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"


def load(gguf: Path, *, device: str = "auto") -> Quantised:
    """Returns the model in a GGUF file, for questions of both kinds."""
    return Quantised(gguf, device)


class Quantised:
    """A GGUF file. What answers is started with the first question that needs it."""

    def __init__(self, gguf: Path, device: str) -> None:
        self._gguf = gguf
        self._device = device

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        kinds = (Choose, Likelihood)
        if strange := [question for question in questions if not isinstance(question, kinds)]:
            raise cannot_answer(strange[0], "a language model")
        for kind in kinds:
            places = [n for n, question in enumerate(questions) if isinstance(question, kind)]
            if places:
                model: Model = self._chooser if kind is Choose else self._reader
                for place, answer in model.answer([questions[n] for n in places]):
                    yield places[place], answer

    @property
    def tokens_read(self) -> int:
        """Tokens of the prompts that llama.cpp has read so far."""
        return self._chooser.tokens_read

    @cached_property
    def _chooser(self) -> LlamaCpp:
        return serve(self._gguf)

    @cached_property
    def _reader(self) -> CausalLM:
        return causal_lm.load(converted(self._gguf), device=self._device)


def serve(gguf: Path, *, threads: int = 0, remember: bool = False) -> LlamaCpp:
    """llama.cpp with this file. `threads`: OMP_NUM_THREADS, or as many as there are cores.
    `remember`: keep the beginning of prompts, at the price of answers that depend on the order."""
    try:
        import xllamacpp
    except ImportError as error:
        raise UsageError(f"{error}. Install: pip install 'dialeval[gguf]'") from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(gguf)
    parameters.n_ctx = parameters.n_batch = WINDOW
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.verbosity = -1
    count = threads or int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count() or 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = count
    try:
        return LlamaCpp(xllamacpp.Server(parameters), gguf.name, remember)
    except RuntimeError as error:
        raise JobError(f"{gguf}: llama.cpp cannot load this file ({error})") from error


class LlamaCpp:
    """One model, asked one question after the other."""

    def __init__(self, server: Any, name: str, remember: bool = False) -> None:
        self._server = server
        self._remember = remember
        self._name = name
        self._opener = build_opener(ProxyHandler({}))  # never past this machine
        self._text = lru_cache(1 << 12)(self._tokenise)
        self._window = min(WINDOW, self._told("props")["default_generation_settings"]["n_ctx"])
        self._is_chat = len(self._tokenise("<|im_start|>", True)) == 1
        self.tokens_read = 0

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        for position, question in enumerate(questions):
            if not isinstance(question, Choose):
                raise cannot_answer(question, "llama.cpp")
            yield position, self._choose(exact(question)).answer()

    def _choose(self, question: Choose) -> Chosen:
        start, end = (USER, BOT) if self._is_chat else ("", "\nAnswer:")
        before = (*self._text(start, True), *self._text(question.instruction))
        after = (*self._text(question.wanted), *self._text(end, True))
        material = self._text(question.material)
        room = self._window - len(before) - len(after) - WHOLE_LETTER
        if room < 0:
            raise UsageError(
                f"the rubric alone is longer than {self._name} can read ({self._window})"
            )
        cut = max(0, len(material) - room)
        prompt = [*before, *material[cut:], *after]
        listed = self._next_token(prompt)
        tokens = choice_tokens(question.choices, self._text)
        return Chosen(
            tuple(math.fsum(listed.get(token, 0.0) for token in own) for own in tokens), cut
        )

    def _next_token(self, prompt: list[int]) -> dict[int, float]:
        """Token -> probability, of the most probable ones; the tokens of one prompt add up to 1."""
        self.tokens_read += len(prompt)
        record: Any = None
        for tokens in (1, WHOLE_LETTER):
            said = self._server.handle_completions(
                {
                    "prompt": prompt,
                    "n_predict": tokens,
                    "temperature": -1,  # the probabilities are those of the model, not of a sampler
                    "n_probs": LISTED,
                    "cache_prompt": self._remember,
                }
            )
            record = json.loads(said) if isinstance(said, str | bytes) else said
            try:
                rows = record["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
                break
            except (KeyError, IndexError, TypeError):
                continue
        else:
            raise JobError(f"{self._name}: llama.cpp says {json.dumps(record)[:300]}")
        return {row["id"]: math.exp(row["logprob"]) for row in rows}

    def _tokenise(self, text: str, marks: bool = False) -> tuple[int, ...]:
        clean = text.encode("utf-8", "replace").decode()
        body = {"content": clean, "add_special": False, "parse_special": marks}
        return tuple(self._told("tokenize", body)["tokens"])

    def _told(self, page: str, body: Mapping[str, object] | None = None) -> Any:
        """What the server says on a page of its own, on this machine."""
        request = Request(
            f"{self._server.listening_address}/{page}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with self._opener.open(request, timeout=60) as reply:
            return json.load(reply)
