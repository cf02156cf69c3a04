"""`holistic` and `dialogrpt`: means of several scores, with made-up answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.model_store.presets import preset_models
from dialeval.question import Inference, Judge, Likelihood
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn


@pytest.mark.parametrize(
    "spec", ["holistic", "holistic:mode=released", "dialogrpt", "dialogrpt:ensemble=true"]
)
def test_it_is_a_metric(spec):
    dialeval.check_metric(make_metric(spec))


class Three:
    """The response says its log-probability after the context, alone, and P(contradiction)."""

    def fingerprint(self, name):
        return name

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            if isinstance(question, Likelihood):
                after, alone, _ = map(float, question.text.split())
                value = after if question.turns else alone
                yield position, np.array([[0, 0, 0], [value, 0, 1]])
            else:
                assert isinstance(question, Inference)
                p = float(question.hypothesis.split()[2])
                yield position, np.array([p, 0.0, 1 - p])


def test_holistic_is_the_mean_of_the_three_on_their_scales(tmp_path):
    rows = [(-4.0, -2.0, 0.1), (-2.0, -4.0, 0.7), (-1.0, -3.0, 0.4)]
    said = (Turn("a", "user"), Turn("b", "system"), Turn("c", "user"))
    samples = [Sample(f"s{n}", said, " ".join(map(str, row))) for n, row in enumerate(rows)]
    alone = Sample("s3", said[:1], "-2.0 -3.0 0.9")  # nothing was said before: no contradiction
    run = dialeval.score(
        [*samples, alone], ["holistic"], models=Three(), cache=tmp_path / "answers.sqlite"
    )
    # 5th percentiles of -4, -2, -1, -2 and of -2, -4, -3, -3: 3.7 and 3.85 below 0.
    coherent = [(max(x, -3.7) + 3.7) / 3.7 for x in (-4.0, -2.0, -1.0, -2.0)]
    fluent = [(max(x, -3.85) + 3.85) / 3.85 for x in (-2.0, -4.0, -3.0, -3.0)]
    consistent = [0.9, 0.3, 0.6, 1.0]
    expected = [math.fsum(own) / 3 for own in zip(coherent, fluent, consistent, strict=True)]
    assert run.scores("holistic") == pytest.approx(expected, abs=1e-9)


def test_the_released_code_compares_the_last_earlier_turn_in_lower_case():
    said = (Turn("I am A"), Turn("b"), Turn("I am C"), Turn("d"))
    sample = Sample("s", said, "I am D")
    metric = make_metric("holistic:mode=released")
    asked = [one for one in metric.ask(sample) if isinstance(one, Inference)]
    assert [one.premise for one in asked][-1] == "i am c"
    assert {one.hypothesis for one in asked} == {"i am d"}


@pytest.mark.parametrize("preset", ["", "default", "large", "paper"])
def test_dialogrpt_asks_the_hub_whatever_the_preset(preset):
    assert make_metric("dialogrpt", preset).models() == {"model": "microsoft/DialogRPT-updown"}
    assert "microsoft/DialogRPT-updown" not in preset_models("default")


TOY = [
    # human-vs-rand, human-vs-machine, updown, depth, width, final: doc/toy.tsv.ensemble.jsonl of
    # the authors' repository.
    (0.875923216342926, 0.6866590976715088, 0.6128572225570679, 0.4968094825744629,
     0.3681032657623291, 0.5319748520851135),
    (0.7438808679580688, 0.6686411499977112, 0.29050877690315247, 0.10862986743450165,
     0.052612606436014175, 0.22798165678977966),
    (0.9802649021148682, 0.3306310772895813, 0.20513156056404114, 0.111829474568367,
     0.08141987770795822, 0.14587044715881348),
]  # fmt: skip


@pytest.mark.parametrize("row", TOY)
def test_the_ensemble_of_dialogrpt_gives_the_numbers_that_its_authors_released(row):
    *scores, final = row
    sample = Sample("s", (Turn("I love NLP!"),), "Me too!")
    metric = make_metric("dialogrpt:ensemble=true")
    asked = metric.ask(sample)
    assert asked[2] == Judge("microsoft/DialogRPT-updown", ("I love NLP!",), "Me too!")
    found = metric.score(sample, [np.array([score]) for score in scores])
    assert found.value == pytest.approx(final, abs=1e-6)
