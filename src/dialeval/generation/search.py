"""Writes whole texts from probabilities of a next token: greedy, beams, diverse beams, sampling.

One decoder serves every model that can write, so that they differ in their weights only. A model
gives a `Reading`: one row of log-probabilities per text that is being written. `Endings` says where
a text may stop. The rest is here: `beam_search`, and `sample`, of which greedy decoding is a case.
transformers' `generate` does the same for its own models (tests compare the two), but it draws for
a whole batch at once and knows no end but a token.

Every text has a generator of its own: what is drawn for it does not depend on what is written
beside it.

`Decoding` says how a model is to write:

greedy  the likeliest token, again and again
beam    the `beams` likeliest beginnings are kept; a finished text is ranked by
        log P / length ** length_penalty, as transformers' `generate` does (its end counts as a
        token; 0 ranks by log P alone, as OpenNMT does)
diverse each beam is a search of its own, one after the other: a token that those before it chose
        at the same place costs it `diversity` each time (Vijayakumar et al., 2018, Hamming
        diversity, as many groups as beams). Texts are ranked without these costs
sample  a token is drawn among the `top_k` likeliest (0: all), of these among the fewest that
        have the mass `top_p`, after the log-probabilities were divided by `temperature`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch

from dialeval.errors import UsageError


@dataclass(frozen=True, slots=True)
class Decoding:
    """The options of a search for `count` texts, best first (samples: in the order drawn)."""

    method: Literal["greedy", "beam", "diverse", "sample"] = "greedy"
    beams: int = 5
    top_k: int = 0
    top_p: float = 1.0
    temperature: float = 1.0
    max_new_tokens: int = 64
    count: int = 1
    length_penalty: float = 1.0
    diversity: float = 0.5

    def __post_init__(self) -> None:
        methods = ("greedy", "beam", "diverse", "sample")
        if self.method not in methods:
            raise UsageError(f"no decoding {self.method!r}. There are: {', '.join(methods)}")
        if self.diversity < 0:
            raise UsageError(f"diversity must be at least 0, not {self.diversity}")
        for name, least in (("beams", 1), ("top_k", 0), ("max_new_tokens", 1), ("count", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p must be more than 0 and at most 1, not {self.top_p}")
        if not 0 < self.temperature < float("inf"):
            raise UsageError(f"temperature must be more than 0, not {self.temperature}")
        if self.method == "greedy" and self.count > 1:
            raise UsageError(
                f"greedy decoding finds one text, not {self.count}: use beam or sample"
            )
        if self.method in ("beam", "diverse") and self.count > self.beams:
            raise UsageError(f"{self.beams} beams cannot give {self.count} texts: raise beams")


class Reading(Protocol):
    """Texts being written, as a model sees them: a row each, at first one per prompt."""

    log_probs: torch.Tensor
    """(rows, vocabulary): of the token that comes next."""

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes what row `rows[i]` was."""
        ...

    def write(self, tokens: Sequence[int]) -> None:
        """Row i goes on with `tokens[i]`."""
        ...


def _never(ids: Sequence[int]) -> bool:
    return False


@dataclass(frozen=True)
class Endings:
    """Where a text stops.

    marks     tokens that stand for the end and are no part of the text: end of text, end of turn
    last      tokens that end the text and belong to it: a full stop that holds a line break
    banned    tokens that are never written: padding, openings of a turn
    words     tokens that begin a word. In a layout without marks between turns, a text that
              `is_whole` has ended if a new word follows
    """

    marks: tuple[int, ...]
    last: frozenset[int] = frozenset()
    banned: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    is_whole: Callable[[Sequence[int]], bool] = _never

    def merge(self, log_probs: torch.Tensor, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Adds one column: the log-probability that the text ends here.

        It is the mass of all tokens that would end it, and an empty text cannot end.
        """
        merged = torch.cat([log_probs, log_probs[:, list(self.marks)].logsumexp(1)[:, None]], 1)
        merged[:, list(self.marks)] = -torch.inf
        merged[:, list(self.banned)] = -torch.inf
        whole = [row for row, text in enumerate(texts) if self.words and self.is_whole(text)]
        if whole:
            rows = torch.tensor(whole, device=merged.device)[:, None]
            ends = self._words_or_end.to(merged.device)[None]
            mass = merged[rows, ends].logsumexp(1)
            merged[rows, ends] = -torch.inf
            merged[rows[:, 0], -1] = mass
        merged[[row for row, text in enumerate(texts) if not text], -1] = -torch.inf
        return merged

    @cached_property
    def _words_or_end(self) -> torch.Tensor:
        return torch.tensor([*self.words, -1])


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text so far: its tokens, and log P of them (the end included, once it has one)."""

    ids: tuple[int, ...] = ()
    log_prob: float = 0.0


def sample(
    reading: Reading,
    endings: Endings,
    decoding: Decoding,
    draws: Sequence[Sequence[np.random.Generator]],
) -> list[list[Hypothesis]]:
    """Returns one text per generator in `draws` for each prompt; greedy decoding draws nothing."""
    drawing = [generator for generators in draws for generator in generators]
    texts = [Hypothesis() for _ in drawing]
    reading.select([row for row, generators in enumerate(draws) for _ in generators])
    open_texts = list(range(len(texts)))
    for length in range(1, decoding.max_new_tokens + 1):
        scores = endings.merge(reading.log_probs, [texts[i].ids for i in open_texts])
        chosen = _draw(scores, decoding, [drawing[i] for i in open_texts])
        rows, tokens = [], []
        for row, (i, token) in enumerate(zip(open_texts, chosen, strict=True)):
            ends = token == scores.shape[1] - 1
            ids = texts[i].ids if ends else (*texts[i].ids, token)
            texts[i] = Hypothesis(ids, texts[i].log_prob + float(scores[row, token]))
            if not ends and token not in endings.last:
                rows.append(row)
                tokens.append(token)
        open_texts = [open_texts[row] for row in rows]
        if not open_texts or length == decoding.max_new_tokens:
            break
        reading.select(rows)
        reading.write(tokens)
    found = iter(texts)
    return [[next(found) for _ in generators] for generators in draws]


def _draw(
    scores: torch.Tensor, decoding: Decoding, draws: Sequence[np.random.Generator]
) -> list[int]:
    if decoding.method == "greedy":
        return [int(token) for token in scores.argmax(1)]
    width = min(decoding.top_k or scores.shape[1], scores.shape[1])
    values, tokens = scores.topk(width, dim=1)
    shares = (values.double() / decoding.temperature).softmax(1).cpu().numpy()
    found = []
    for row, generator in enumerate(draws):
        mass = np.cumsum(shares[row])
        kept = 1 + int(np.searchsorted(mass, decoding.top_p)) if decoding.top_p < 1 else width
        kept = min(kept, int(np.count_nonzero(shares[row])))
        place = np.searchsorted(mass[:kept], generator.random() * mass[kept - 1], side="right")
        found.append(int(tokens[row, min(int(place), kept - 1)]))
    return found


@dataclass(slots=True)
class _Search:
    """The beams of one prompt, and what it has finished, best first, with its rank."""

    beams: list[Hypothesis]
    finished: list[tuple[float, Hypothesis]]


def beam_search(
    reading: Reading, endings: Endings, decoding: Decoding, prompts: int
) -> list[list[Hypothesis]]:
    """Returns the `count` best texts that the search found for each prompt."""
    searches = [_Search([Hypothesis()], []) for _ in range(prompts)]
    for length in range(1, decoding.max_new_tokens + 1):
        active = [search for search in searches if search.beams]
        if not active:
            break
        texts = [beam.ids for search in active for beam in search.beams]
        scores = endings.merge(reading.log_probs, texts)
        rows: list[int] = []
        first = 0
        for search in active:
            here = range(first, first + len(search.beams))
            first += len(search.beams)
            rows += _extend(search, scores[here.start : here.stop], endings, decoding, length, here)
        if rows:
            reading.select(rows)
            reading.write([beam.ids[-1] for search in active for beam in search.beams])
    return [[text for _, text in search.finished[: decoding.count]] for search in searches]


def diverse_beam_search(
    reading: Reading, endings: Endings, decoding: Decoding, prompts: int
) -> list[list[Hypothesis]]:
    """Returns the `count` best texts of the searches for each prompt, each text once."""
    groups, alone = decoding.beams, replace(decoding, beams=1, count=1)
    searches = [_Search([Hypothesis()], []) for _ in range(prompts * groups)]
    reading.select([prompt for prompt in range(prompts) for _ in range(groups)])
    for length in range(1, decoding.max_new_tokens + 1):
        active = [number for number, search in enumerate(searches) if search.beams]
        if not active:
            break
        texts = [searches[number].beams[0].ids for number in active]
        scores = endings.merge(reading.log_probs, texts)
        rows: list[int] = []
        chosen: dict[int, list[int]] = {}
        for row, number in enumerate(active):
            search, before = searches[number], chosen.setdefault(number // groups, [])
            costs = torch.zeros_like(scores[row : row + 1])
            for token in before:
                costs[0, token] += decoding.diversity
            here = range(row, row + 1)
            rows += _extend(search, scores[row : row + 1], endings, alone, length, here, costs)
            written = search.beams or [text for _, text in search.finished]
            before += [text.ids[-1] for text in written if len(text.ids) == length]
        if rows:
            reading.select(rows)
            reading.write([searches[n].beams[0].ids[-1] for n in active if searches[n].beams])
    found = []
    for prompt in range(prompts):
        own = searches[prompt * groups : (prompt + 1) * groups]
        ranked = sorted((one for search in own for one in search.finished), key=lambda one: -one[0])
        texts_once = {text.ids: text for _, text in reversed(ranked)}
        found.append(list(reversed(texts_once.values()))[: decoding.count])
    return found


def _extend(
    search: _Search,
    scores: torch.Tensor,
    endings: Endings,
    decoding: Decoding,
    length: int,
    rows: range,
    costs: torch.Tensor | None = None,
) -> list[int]:
    """Adds one token to the beams of a prompt; returns the row that each new beam continues.
    `costs` weigh in the choice of tokens alone."""
    known = torch.tensor([beam.log_prob for beam in search.beams], device=scores.device)
    totals = (known[:, None] + scores).flatten()
    # Half of the candidates may be ends, and as many beams as before have to remain.
    weighed = totals if costs is None else totals - costs.flatten()
    places = weighed.topk(min(2 * decoding.beams, len(totals))).indices
    values = totals[places]
    beams: list[Hypothesis] = []
    origins: list[int] = []
    at_the_limit = length == decoding.max_new_tokens
    for rank, (value, place) in enumerate(zip(values.tolist(), places.tolist(), strict=True)):
        if value == -float("inf"):
            break
        origin, token = divmod(place, scores.shape[1])
        ends = token == scores.shape[1] - 1
        before = search.beams[origin].ids
        text = Hypothesis(before if ends else (*before, token), value)
        if ends or at_the_limit or token in endings.last:
            # A text that ends is only worth keeping if it is among the best continuations.
            if rank < decoding.beams:
                search.finished.append((value / length**decoding.length_penalty, text))
        elif len(beams) < decoding.beams:
            beams.append(text)
            origins.append(rows[origin])
    search.finished.sort(key=lambda found: -found[0])
    del search.finished[decoding.beams :]
    if beams and len(search.finished) == decoding.beams:
        best_possible = beams[0].log_prob / length**decoding.length_penalty
        if best_possible <= search.finished[-1][0]:
            beams, origins = [], []
    search.beams = beams
    return origins
