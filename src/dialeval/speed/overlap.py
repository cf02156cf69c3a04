"""BLEU, chrF and ROUGE of single responses, against the packages that define them."""

from __future__ import annotations

from importlib.metadata import version

from dialeval.registry import make_metric
from dialeval.speed.contest import Contest, largest_difference
from dialeval.speed.texts import Pair, as_samples

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
        return [[parts[name] for name in ROUGE_PARTS] for parts in found]  # type: ignore[misc]

    def theirs() -> list[list[float]]:
        found = [peer.score(other, one) for one, other in pairs]
        return [[row[name].fmeasure for name in ROUGE_PARTS.values()] for row in found]

    return Contest(
        "rouge", f"rouge-score {version('rouge-score')}", ours, theirs, largest_difference
    )
