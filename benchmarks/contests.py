"""Contests: dialeval and another package do the same work, timed in turns.

A busy machine gives a different time each minute, so a time by itself says little. Both sides take
turns (A, B, A, B, ...) within seconds of each other, and the report shows their ratio. The fastest
round of each side counts, because other load can only make a round slower. Processor time (of all
threads) stands beside the clock, because other load disturbs it less.

    bleu, chrf, rouge          single responses, against the packages that define the metrics
    bertscore, embeddings      same weights, against bert-score and sentence-transformers
    full_causal, full_seq2seq  FULL, against one forward pass per follow-up
    bootstrap_correlation      intervals of three coefficients, against a loop of scipy
    permutation_test           PERM-BOTH, against a loop as in nlpstats and mt-metrics-eval

Models are loaded before the clock starts. `peers.py` is the program that holds the contests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.metadata import version
from itertools import cycle, islice, product
from typing import Any

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap, Resampling
from dialeval.agreement.correlation import correlations
from dialeval.agreement.significance import perm_both
from dialeval.question import Answer, Embed, Likelihood, Question, TokenLogProbs
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

Floats = Any

Work = Callable[[], Any]
"""Does the whole job once and returns its numbers."""


@dataclass(frozen=True)
class Contest:
    """`difference` is the largest one between the results of both sides."""

    name: str
    peer: str
    ours: Work
    theirs: Work
    difference: Callable[[Any, Any], float]


@dataclass(frozen=True)
class Outcome:
    """Seconds of the fastest round of each side, by the clock and of the processor."""

    name: str
    peer: str
    our_seconds: float
    peer_seconds: float
    our_processor: float
    peer_processor: float
    rounds: int
    difference: float

    @property
    def times_faster(self) -> float:
        return self.peer_seconds / self.our_seconds

    @property
    def times_less_processor(self) -> float:
        return self.peer_processor / self.our_processor

    def to_record(self) -> dict[str, Any]:
        return asdict(self) | {
            "times_faster": self.times_faster,
            "times_less_processor": self.times_less_processor,
        }


@dataclass(frozen=True)
class Skipped:
    """A contest that cannot be held here."""

    name: str
    reason: str

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def hold(contest: Contest, rounds: int = 3) -> Outcome:
    """Ours, theirs, ours, theirs, ..."""
    ours: list[_Round] = []
    theirs: list[_Round] = []
    for _ in range(rounds):
        ours.append(_timed(contest.ours))
        theirs.append(_timed(contest.theirs))
    return Outcome(
        contest.name,
        contest.peer,
        min(one.seconds for one in ours),
        min(one.seconds for one in theirs),
        min(one.processor for one in ours),
        min(one.processor for one in theirs),
        rounds,
        contest.difference(ours[-1].result, theirs[-1].result),
    )


@dataclass(frozen=True)
class _Round:
    seconds: float
    processor: float
    result: Any


def _timed(work: Work) -> _Round:
    seconds, processor = time.perf_counter(), time.process_time()
    result = work()
    return _Round(time.perf_counter() - seconds, max(time.process_time() - processor, 1e-9), result)


def largest_difference(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Of two results that are lists of numbers, or of rows of numbers, of the same shape."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"results of different shapes: {one.shape} and {other.shape}")
    return float(np.abs(one - other).max(initial=0.0))


# Texts

Pair = tuple[str, str]
"""A response and its reference."""


def example_samples() -> list[Sample]:
    from dialeval.examples import four_bots
    from dialeval.readers import load

    return list(load(str(four_bots())))


def example_pairs(count: int) -> list[Pair]:
    samples = example_samples()
    responses = [sample.response or "" for sample in samples]
    others = list(
        dict.fromkeys(
            [reference for sample in samples for reference in sample.references] + responses
        )
    )
    # Diagonals of the square of all pairs: neighbours share no text.
    pairs = sorted(
        product(range(len(responses)), range(len(others))),
        key=lambda at: (at[1] - at[0]) % len(others),
    )
    return [(responses[i], others[j]) for i, j in islice(cycle(pairs), count)]


def example_dialogues(count: int) -> list[Sample]:
    """Dialogues to be judged, all different."""
    samples = example_samples()
    return [
        numbered(sample, number)
        for number, sample in enumerate(islice(cycle(samples), count), start=1)
    ]


def numbered(sample: Sample, number: int) -> Sample:
    first, *rest = sample.context
    return replace(
        sample,
        id=f"{number}/{sample.id}",
        context=(Turn(f"{number}. {first.text}", first.speaker), *rest),
    )


def as_samples(pairs: list[Pair]) -> list[Sample]:
    """Pairs as something that metrics with references can score."""
    context = (Turn("", "user"),)
    return [
        Sample(id=str(number), context=context, response=response, references=(reference,))
        for number, (response, reference) in enumerate(pairs)
    ]


# String metrics

ROUGE_PARTS = {"rouge-1": "rouge1", "rouge-2": "rouge2", "rouge-L": "rougeL"}


def bleu(pairs: list[Pair]) -> Contest:
    """Sentence BLEU-4 as sacreBLEU gives it. Ours has BLEU-1 to 3 besides."""
    from sacrebleu.metrics.bleu import BLEU

    peer = BLEU(effective_order=True)
    metric, samples = make_metric("bleu"), as_samples(pairs)
    return Contest(
        "bleu",
        f"sacrebleu {version('sacrebleu')}",
        lambda: [metric.score(sample, ()).value for sample in samples],
        lambda: [peer.sentence_score(one, [other]).score for one, other in pairs],
        largest_difference,
    )


def chrf(pairs: list[Pair]) -> Contest:
    from sacrebleu.metrics.chrf import CHRF

    peer = CHRF()
    metric, samples = make_metric("chrf"), as_samples(pairs)
    return Contest(
        "chrf",
        f"sacrebleu {version('sacrebleu')}",
        lambda: [metric.score(sample, ()).value for sample in samples],
        lambda: [peer.sentence_score(one, [other]).score for one, other in pairs],
        largest_difference,
    )


def rouge(pairs: list[Pair]) -> Contest:
    """F1 of ROUGE-1, 2 and L."""
    from rouge_score.rouge_scorer import RougeScorer

    peer = RougeScorer(list(ROUGE_PARTS.values()))
    metric, samples = make_metric("rouge"), as_samples(pairs)

    def ours() -> list[list[float]]:
        found = [metric.score(sample, ()).parts for sample in samples]
        return [[parts[name] for name in ROUGE_PARTS] for parts in found]

    def theirs() -> list[list[float]]:
        found = [peer.score(other, one) for one, other in pairs]
        return [[row[name].fmeasure for name in ROUGE_PARTS.values()] for row in found]

    return Contest(
        "rouge", f"rouge-score {version('rouge-score')}", ours, theirs, largest_difference
    )


# Encoders

MODEL = "minilm-l6"


def bertscore(pairs: list[Pair]) -> Contest:
    """P, R and F1 of each pair; the peer batches 64 texts, its default."""
    from transformers import AutoConfig

    from dialeval.model_store.locate import locate
    from dialeval.models.encoder import load

    directory = locate(MODEL).directory
    layers = AutoConfig.from_pretrained(directory).num_hidden_layers
    peer = import_module("bert_score").BERTScorer(
        model_type=str(directory), num_layers=layers, device="cpu"
    )
    encoder = load(directory, device="cpu")
    metric, samples = make_metric("bertscore"), as_samples(pairs)
    questions = [question for sample in samples for question in metric.ask(sample)]
    distinct = list(dict.fromkeys(questions))

    def ours() -> list[list[Any]]:
        answers = dict(encoder.answer(distinct))
        by_question = {question: answers[n] for n, question in enumerate(distinct)}
        found = [
            metric.score(sample, [by_question[question]]).parts
            for sample, question in zip(samples, questions, strict=True)
        ]
        return [[parts["precision"], parts["recall"], parts["f1"]] for parts in found]

    def theirs() -> Any:
        found = peer.score([one for one, _ in pairs], [[other] for _, other in pairs])
        return [list(row) for row in zip(*(column.tolist() for column in found), strict=True)]

    return Contest(
        "bertscore", f"bert-score {version('bert-score')}", ours, theirs, largest_difference
    )


def embeddings(texts: list[str]) -> Contest:
    """Mean-pooled vectors, not normalised; the peer batches 32 texts, its default."""
    from sentence_transformers import SentenceTransformer

    from dialeval.model_store.locate import locate
    from dialeval.models.encoder import load

    directory = locate(MODEL).directory
    encoder = load(directory, device="cpu")
    peer = SentenceTransformer(str(directory), device="cpu", local_files_only=True)
    peer.max_seq_length = encoder.sentence_limit
    questions = [Embed(MODEL, text) for text in texts]

    def ours() -> Any:
        answers = dict(encoder.answer(questions))
        return [answers[n] for n in range(len(questions))]

    return Contest(
        "sentence vectors",
        f"sentence-transformers {version('sentence-transformers')}",
        ours,
        lambda: peer.encode(texts, show_progress_bar=False),
        largest_difference,
    )


# Language models


def full_causal(samples: Sequence[Sample], model: str = "smollm2-135m") -> Contest:
    """A causal language model by a name that `dialeval models` knows."""
    from dialeval.model_store.locate import locate
    from dialeval.models.causal_lm import load, plain_log_probs
    from dialeval.models.loading import load_language_model

    directory = locate(model).directory
    lm = load(directory, device="cpu")
    plain, _ = load_language_model("AutoModelForCausalLM", directory, device="cpu")
    plain.eval()
    questions = _questions(samples, mode="paper")

    def theirs() -> list[float]:
        found = (plain_log_probs(plain, lm.writer.write(question)) for question in questions)
        return [float(log_probs.sum()) for log_probs in found]

    return Contest(
        f"full, {model}",
        "one pass per follow-up",
        lambda: _totals(lm, questions),
        theirs,
        largest_difference,
    )


def full_seq2seq(samples: Sequence[Sample], model: Any, tokenizer: Any) -> Contest:
    """An encoder-decoder, as in the paper."""
    import torch

    from dialeval.models.loading import window_of
    from dialeval.models.seq2seq_lm import Seq2SeqLM

    lm, window = Seq2SeqLM(model, tokenizer), window_of(model, tokenizer)
    questions = _questions(samples, mode="released")

    def theirs() -> list[float]:
        """Ends in `</s>`; the loss is the mean over the tokens of the follow-up."""
        found = []
        for question in questions:
            dialogue = "".join(f"\t{turn.text}" for turn in question.turns)
            source = tokenizer(
                dialogue, return_tensors="pt", truncation=True, max_length=window
            ).input_ids
            target = tokenizer(question.text, return_tensors="pt").input_ids
            with torch.inference_mode():
                loss = model(input_ids=source, labels=target).loss
            found.append(-float(loss) * target.shape[1])
        return found

    return Contest(
        "full, encoder-decoder",
        "one pass per follow-up",
        lambda: _totals(lm, questions),
        theirs,
        largest_difference,
    )


def _questions(samples: Sequence[Sample], mode: str) -> list[Likelihood]:
    metric = make_metric("full", mode=mode)
    asked = [question for sample in samples for question in metric.ask(sample)]
    return [question for question in asked if isinstance(question, Likelihood)]


def _totals(model: Any, questions: Sequence[Question]) -> list[float]:
    """log P of each follow-up."""
    answers: dict[int, Answer] = dict(model.answer(questions))
    return [sum(TokenLogProbs.read(answers[n]).log_probs) for n in range(len(questions))]


# Statistics

SEED = 0


def bootstrap_correlation(items: int, rounds: int, workers: int = 1) -> Contest:
    """95 % intervals of Pearson, Spearman and tau-b of scores against means of three grades."""
    stats = import_module("scipy.stats")

    scores, _, people = made_up(items)

    def ours() -> list[float]:
        how = Bootstrap(np.random.default_rng(SEED), rounds, workers=workers)
        found = correlations(scores, people, how).values()
        return [_width(one.low, one.high) for one in found]

    def theirs() -> list[float]:
        rng = np.random.default_rng(SEED)
        coefficients = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
        drawn = []
        for _ in range(rounds):
            chosen = rng.integers(0, items, size=items)
            drawn.append([one(scores[chosen], people[chosen])[0] for one in coefficients])
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        return [float(width) for width in high - low]

    name = f"bootstrap, {items:,} items, {rounds:,} rounds"
    return Contest(name, f"a loop of scipy {version('scipy')}", ours, theirs, _relative)


def permutation_test(items: int, rounds: int, coefficient: str = "pearson") -> Contest:
    """p of one metric over another."""
    stats = import_module("scipy.stats")

    first, second, people = made_up(items)
    correlate = stats.pearsonr if coefficient == "pearson" else stats.spearmanr

    def ours() -> float:
        how = Resampling(np.random.default_rng(SEED), rounds)
        found = perm_both(first, second, people, how, coefficient=coefficient)
        assert found.p is not None
        return found.p

    def theirs() -> float:
        rng = np.random.default_rng(SEED)
        one, other = ((side - side.mean()) / side.std() for side in (first, second))

        def delta(x: Floats, y: Floats) -> float:
            return float(correlate(x, people)[0] - correlate(y, people)[0])

        observed, extreme = abs(delta(one, other)), 0
        for _ in range(rounds):
            swap = rng.random(items) < 0.5
            extreme += abs(delta(np.where(swap, other, one), np.where(swap, one, other))) >= (
                observed
            )
        return (extreme + 1) / (rounds + 1)

    name = f"permutation test, {coefficient}, {items:,} items, {rounds:,} rounds"
    peer = f"a loop of scipy {version('scipy')}"
    return Contest(name, peer, ours, theirs, lambda one, other: abs(one - other))


def made_up(items: int) -> tuple[Floats, Floats, Floats]:
    """Scores of two metrics, and the mean of three people's grades from 1 to 5."""
    rng = np.random.default_rng(SEED)
    quality = rng.normal(size=items)
    first, second = quality + rng.normal(size=items), quality + 1.05 * rng.normal(size=items)
    grades = [np.clip(np.round(quality + rng.normal(size=items) + 3), 1, 5) for _ in range(3)]
    return first, second, np.round(np.stack(grades).mean(axis=0), 9)


def _width(low: float | None, high: float | None) -> float:
    assert low is not None
    assert high is not None
    return high - low


def _relative(ours: list[float], theirs: list[float]) -> float:
    """Both draw at random, so widths of intervals agree as far as the rounds allow."""
    return max(abs(one - other) / other for one, other in zip(ours, theirs, strict=True))
