"""The shipped scorers do not take edited text for right (the embedded models are needed)."""

from dataclasses import replace
from statistics import fmean

import pytest

import dialeval
from dialeval.augment.augmenter import make_augmenter
from dialeval.augment.queries import Query
from dialeval.examples import four_bots


def logits(samples, metric):
    import numpy as np

    scores = np.array(dialeval.score(samples, [metric]).scores(metric))
    return np.log(scores / (1 - scores)).reshape(-1, 3).mean(axis=1)


@pytest.mark.parametrize("metric", ["pone", "bert-ruber"])
def test_editing_an_answer_does_not_raise_its_score_on_average(embedded_models, metric):
    """Of answers to other questions, too: words swapped, dropped, put in or replaced by EDA make
    nothing fit better. A logit of .2 is .05 of a score at most."""
    given = list(dialeval.load(four_bots()))
    answers = [sample.response for sample in given]
    eda = make_augmenter("eda:variants=3", seed=0)
    rises = []
    for shift in (0, 7):  # the answer itself, and that to another question
        plain, edited = [], []
        for place, sample in enumerate(given):
            answer = answers[(place + shift) % len(given)]
            for number, variant in enumerate(eda.augment([Query("", answer)])[0]):
                name = f"{sample.id}/{number}"
                plain.append(replace(sample, id=name, response=answer))
                edited.append(replace(sample, id=name, response=variant.query))
        rises.append(float((logits(edited, metric) - logits(plain, metric)).mean()))
    assert max(rises) < 0.2, rises
    assert fmean(rises) < 0.1
