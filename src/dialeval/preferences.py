"""Which of two answers does a language model prefer? `dialeval compare RUN... --judge MODEL`.

Language models prefer what stands in a certain place. So every pair of answers is put to the model
in both orders. It prefers an answer if it does so in both; where the orders disagree, the pair is a
tie, and the share of such pairs is the position bias. Answers that are equal are ties, too, and
nobody is asked. Pairs to which the model replies with neither 1 nor 2 are left out.

    share     of the pairs that a side won, a tie counting half, with its 95 % interval (Wilson)
    strength  Bradley-Terry over all pairs of sides, as in `dialeval rate --compare`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.chat_http import Asking
from dialeval.errors import JobError, UsageError
from dialeval.metrics.llm_judge import DATA, NAMED, escaped, speakers, tagged
from dialeval.progress import Progress, silent
from dialeval.question import Answer, Choose, Chosen, Question
from dialeval.rating.bradley_terry import Outcome, Ranking, bradley_terry
from dialeval.runs.run import Run, open_run
from dialeval.sample import Sample

if TYPE_CHECKING:
    from dialeval.question import ModelSource

JoinBy = Literal["id", "item", "context"]
INSTRUCTION = "You judge chatbots. Below are a conversation and two answers to it." + DATA + "\n\n"
WANTED = (
    "Which answer is better, overall? A good answer fits what was said, makes sense, and is"
    " interesting.\nReply with 1 or 2 and nothing else."
)
Z = 1.959964
"""The normal quantile of 97.5 %."""


@dataclass(frozen=True)
class Pair:
    """Two answers to the same turns, and what was preferred: 1 the first side, 0 the second, 0.5 a
    tie. `bias`: the answer that stood first (1) or second (-1) was preferred in both orders."""

    item: str
    first: str
    second: str
    share: float
    bias: int = 0


@dataclass(frozen=True)
class Preference:
    """How two sides compare."""

    first: str
    second: str
    pairs: int
    wins: int
    losses: int
    ties: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Preferences:
    """What a model prefers. `bias` is the share of the pairs that were asked in which the orders
    disagreed, `prefers_first` how many of those favoured what stood first. `unanswered` pairs are
    left out: the model named no answer."""

    model: str
    preferences: tuple[Preference, ...]
    ranking: Ranking
    asked: int
    unanswered: int
    bias: float
    prefers_first: int
    pairs: tuple[Pair, ...]
    spent: Mapping[str, Any]

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def prefer(
    *runs: Run | str | Path,
    judge: str,
    join_by: JoinBy | None = None,
    systems: Sequence[str] = (),
    samples: int = 0,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    concurrency: int | None = None,
    key_env: str | None = None,
    models: ModelSource | None = None,
    cache: str | Path | None = None,
    progress: Progress = silent,
) -> Preferences:
    """Asks a language model which answers it prefers: those of several runs, or of the systems of
    one. It is `dialeval compare RUN... --judge MODEL`.

    judge          a model by name, or `openai:URL#NAME`
    join_by        what answers to the same turns share: id, item or context
    samples        replies to count, for a server without log-probabilities
    max_requests   stop after so many requests to a server, max_tokens: after so many tokens
    price_in, ...  of a million tokens that are sent and that come back; `spent` has the cost
    concurrency    questions to a server at once
    key_env        environment variable that holds the key of the server
    models         who answers instead of the models of `dialeval models`
    """
    from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
    from dialeval.models.chat_judge import Budget, Servers
    from dialeval.models.source import Models

    asked_so = Asking(concurrency=concurrency, key_env=key_env)
    budget = Budget(max_requests, max_tokens, price_in, price_out)
    source = models or Models(servers=Servers(asked_so, budget))
    sides = _sides(runs, systems)
    joined = [
        (first, second, item, one, other)
        for first, second in combinations(sides, 2)
        for item, one, other in _joined(sides[first], sides[second], join_by)
    ]
    if not joined:
        raise UsageError(
            "no two answers to the same turns: samples share no id, item or context. See --join"
        )
    questions = {
        place: both_orders(judge, one, other, samples)
        for place, (_, _, _, one, other) in enumerate(joined)
        if one.response != other.response
    }
    with AnswerCache(Path(cache) if cache else default_cache_path()) as kept:
        asked: list[Question] = [one for both in questions.values() for one in both]
        answers = Answerer(source, kept).answer(asked, progress)
    pairs = []
    for place, (first, second, item, _, _) in enumerate(joined):
        share, bias = 0.5, 0
        if place in questions:
            forward, backward = (answers[question] for question in questions[place])
            if not all(Chosen.read(answer).mass for answer in (forward, backward)):
                continue
            share, bias = decide(forward, backward)
        pairs.append(Pair(item, first, second, share, bias))
    unanswered = len(joined) - len(pairs)
    if questions and unanswered == len(questions):
        raise JobError(
            f"{judge} replied with neither 1 nor 2 to any of {unanswered} pairs: it cannot judge"
        )
    torn = [pair.bias for pair in pairs if pair.bias]
    return Preferences(
        judge,
        tuple(_preference(a, b, pairs) for a, b in combinations(sides, 2)),
        bradley_terry([Outcome(one.first, one.second, one.share, one.item) for one in pairs]),
        len(questions),
        unanswered,
        len(torn) / (len(questions) - unanswered) if questions else 0.0,
        torn.count(1),
        tuple(pairs),
        getattr(source, "spent", dict)(),
    )


def both_orders(model: str, one: Sample, other: Sample, samples: int = 0) -> tuple[Choose, Choose]:
    """Returns the question with the first answer first, and with the second answer first."""
    named = zip(speakers(one.context, "the answer"), one.context, strict=True)
    lines = [f"{escaped(who)[:NAMED]}: {escaped(turn.text)}" for who, turn in named]

    def question(first: Sample, second: Sample) -> Choose:
        blocks = [
            tagged("conversation", lines),
            tagged("answer_1", [escaped(first.response or "")]),
            tagged("answer_2", [escaped(second.response or "")]),
        ]
        material = "\n".join(blocks) + "\n\n"
        return Choose(model, INSTRUCTION, material, WANTED, ("1", "2"), samples)

    return question(one, other), question(other, one)


def decide(forward: Answer, backward: Answer) -> tuple[float, int]:
    """Returns the share of the first answer, and the bias where the orders disagree. An order in
    which neither is likelier decides nothing, and is no sign of bias."""
    one, two = (Chosen.read(answer).probabilities for answer in (forward, backward))
    stood_first = _sign(one[0] - one[1]), _sign(two[0] - two[1])
    if stood_first[0] == -stood_first[1]:
        return (1.0 + stood_first[0]) / 2, 0
    return 0.5, stood_first[0] if stood_first[0] == stood_first[1] else 0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _sides(runs: Sequence[Run | str | Path], systems: Sequence[str]) -> dict[str, list[Sample]]:
    """Name of a side -> its answers: a run, or a system of the only run."""
    sides: dict[str, list[Sample]] = {}
    for place in runs:
        run = place if isinstance(place, Run) else open_run(place)
        for sample in run.samples():
            if sample.response is None or (systems and sample.system not in systems):
                continue
            name = sample.system if len(runs) == 1 else _name(place)
            sides.setdefault(name, []).append(sample)
    if len(sides) < 2:
        raise UsageError("a preference needs two runs with answers, or a run of several systems")
    return sides


def _name(place: Run | str | Path) -> str:
    return str(place.directory if isinstance(place, Run) else place)


def _joined(
    ones: Sequence[Sample], others: Sequence[Sample], join_by: JoinBy | None
) -> list[tuple[str, Sample, Sample]]:
    keys: dict[JoinBy, Callable[[Sample], str]] = {
        "id": lambda sample: sample.id,
        "item": lambda sample: sample.item,
        "context": lambda sample: "\n".join(turn.text for turn in sample.context),
    }
    for name in (join_by,) if join_by else tuple(keys):
        there = {key: sample for sample in others if (key := keys[name](sample))}
        found = [
            (key, sample, there[key])
            for sample in ones
            if (key := keys[name](sample)) in there and sample.context == there[key].context
        ]
        if found:
            return found
    return []


def _preference(first: str, second: str, pairs: Sequence[Pair]) -> Preference:
    own = [pair.share for pair in pairs if (pair.first, pair.second) == (first, second)]
    share = math.fsum(own) / len(own) if own else 0.5
    low, high = wilson(share, len(own))
    wins, losses = own.count(1.0), own.count(0.0)
    return Preference(
        first, second, len(own), wins, losses, len(own) - wins - losses, share, low, high
    )


def wilson(share: float, n: int) -> tuple[float, float]:
    """Returns the 95 % interval of a share (Wilson 1927, equation 4)."""
    if not n:
        return 0.0, 1.0
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return max(0.0, middle - half), min(1.0, middle + half)
