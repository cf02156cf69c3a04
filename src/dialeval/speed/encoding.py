"""BERTScore and sentence vectors, against `bert-score` and `sentence-transformers`.

Same weights, same texts, models loaded beforehand on both sides.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

from dialeval.question import Embed
from dialeval.registry import make_metric
from dialeval.speed.contest import Contest, largest_difference
from dialeval.speed.texts import Pair, as_samples

MODEL = "minilm-l6"


def bertscore(pairs: list[Pair]) -> Contest:
    """P, R and F1 of each pair; the peer batches 64 texts, its default."""
    from transformers import AutoConfig

    from dialeval.models.encoder import load
    from dialeval.models.locate import locate

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

    from dialeval.models.encoder import load
    from dialeval.models.locate import locate

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
