"""FULL against the loop of the package that its authors released.

Their package asks for one follow-up at a time: dialogue and follow-up go through the whole model,
batch 1, logits at every position, once per follow-up. Here the same questions with the same
weights and the same tokens go to both sides; ours read a dialogue once (`models.tree`,
`models.seq2seq_lm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dialeval.question import Answer, Likelihood, Question, TokenLogProbs
from dialeval.registry import make_metric
from dialeval.sample import Sample
from dialeval.speed.contest import Contest, largest_difference


class Answering(Protocol):
    def answer(self, questions: Sequence[Question]) -> Any: ...


def full_causal(samples: Sequence[Sample], model: str = "smollm2-135m") -> Contest:
    """A causal language model by a name that `dialeval models` knows."""
    from dialeval.models.causal_lm import load, plain_log_probs
    from dialeval.models.loading import load_language_model
    from dialeval.models.locate import locate

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


def _totals(model: Answering, questions: Sequence[Question]) -> list[float]:
    """log P of each follow-up."""
    answers: dict[int, Answer] = dict(model.answer(questions))
    return [sum(TokenLogProbs.read(answers[n]).log_probs) for n in range(len(questions))]
