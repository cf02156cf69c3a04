"""`train mme-specificity` with a tiny encoder: learning, a kill, a card, the verb."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models.tiny_encoders import save_bert
from models.tiny_masked_models import save_masked_model
from models.tiny_scorers import save_word_vectors
from safetensors.torch import load_file
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError
from typer.testing import CliRunner

from dialeval.cli.app import app
from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.question import MaskedLikelihood, TokenLogProbs
from dialeval.registry import make_metric
from dialeval.sample import Sample
from dialeval.training.examples.pair_corpus import load_pairs
from dialeval.training.learners.language_models import MaskedLMLearner
from dialeval.training.recipe import Progress
from dialeval.training.recipes.mme_judges import MmeSpecificity
from dialeval.training.run import train

RESPONSES = ("do you like the cat ?", "i do like it .", "the dog sat on a mat .")


@pytest.fixture(autouse=True)
def _no_rated_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))


@pytest.fixture
def corpus(tmp_path):
    """Three kinds of answers, each with a letter of its own."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    dialogues = [
        (f"hello {letters[n % 26]} {n}", f"{RESPONSES[n % 3]} {letters[n // 26]}{letters[n % 26]}")
        for n in range(150)
    ]
    return write_dialogues(tmp_path / "chats.jsonl", dialogues)


@pytest.fixture
def encoder(tmp_path):
    return str(save_bert(tmp_path / "bert"))


def learn(corpus, out, encoder, progress=None, **more):
    shared = {"rank": 2, "batch": 16, "response_tokens": 12, "epochs": 4, "learning_rate": 0.02}
    recipe = MmeSpecificity(model=encoder, **{**shared, **more})
    return train(recipe, corpus, out, checkpoint_seconds=0, progress=progress)


def log_probs(model, text):
    question = MaskedLikelihood(str(model), text)
    return TokenLogProbs.read(Answerer(Models("cpu"), None).answer([question])[question])


@pytest.mark.parametrize("rank", [2, 0])
def test_what_was_learned_is_what_the_metric_asks(tmp_path, corpus, encoder, rank):
    out = tmp_path / "mine"
    card = learn(corpus, out, encoder, full=not rank, rank=rank or None)
    before, after = card.curve[0], card.curve[-1]
    assert after["validation_perplexity"] < 0.6 * before["validation_perplexity"]
    usual, odd = log_probs(out, "do you like the cat ?"), log_probs(out, "zq xj vk ww")
    assert usual.mean > odd.mean + 1
    record = json.loads((out / "scorer.json").read_text())
    assert (record["kind"], record["rank"], record["tokens"]) == ("masked-lm", rank, 12)
    tensors = load_file(out / "scorer.safetensors")
    assert ("encoder.embeddings.word_embeddings.weight" in tensors) is (rank == 0)


def test_what_is_measured_as_the_metric_asks_is_what_the_metric_hears(tmp_path, corpus, encoder):
    card = learn(corpus, tmp_path / "mine", encoder, epochs=1)
    metric = make_metric("mme-specificity", model=str(tmp_path / "mine"), tokens=12)
    pairs = load_pairs([corpus], "last")
    texts = dict.fromkeys(pairs.responses(pairs.test))
    questions = [one for text in texts for one in metric.questions(Sample("s", (), text))]
    found = Answerer(Models("cpu"), None).answer(questions)
    log_probs = [p for question in questions for p in TokenLogProbs.read(found[question]).log_probs]
    assert card.scores["perplexity on test, as the metric asks"] == pytest.approx(
        math.exp(-np.mean(log_probs)), rel=1e-3
    )


def test_measuring_is_bounded_and_tells_how_far_it_is(tmp_path, corpus, encoder):
    told = {}

    class Bars(Progress):
        @contextmanager
        def counting(self, what):
            yield lambda done, total: told.setdefault(what, []).append((done, total))

    card = learn(corpus, tmp_path / "mine", encoder, Bars(), epochs=1, held_out=3)
    assert card.data["responses for validation"] == card.data["responses for test"] == 3
    assert list(told) == [
        f"measuring on {name}, {how}"
        for name in ("validation", "test")
        for how in ("one piece at a time", "as the metric asks")
    ]
    assert all(steps[-1][0] == steps[-1][1] > 0 for steps in told.values())


def test_a_training_that_was_killed_ends_with_the_same_weights(tmp_path, corpus, encoder):
    learn(corpus, tmp_path / "whole", encoder, epochs=2)
    with pytest.raises(KilledError):
        learn(corpus, tmp_path / "killed", encoder, Deadly(11), epochs=2)
    assert list((tmp_path / "killed").glob("checkpoint*"))
    learn(corpus, tmp_path / "killed", encoder, epochs=2)
    for name in ("scorer.safetensors", "scorer.json"):
        whole, killed = ((tmp_path / run / name).read_bytes() for run in ("whole", "killed"))
        assert whole == killed
    assert not list((tmp_path / "killed").glob("checkpoint*"))


def test_a_checkpoint_of_another_training_is_refused(tmp_path, corpus, encoder):
    with pytest.raises(KilledError):
        learn(corpus, tmp_path / "mine", encoder, Deadly(3))
    with pytest.raises(UsageError, match="another training"):
        learn(corpus, tmp_path / "mine", encoder, rank=3)


def learner_of(encoder, texts):
    recipe = MmeSpecificity(model=encoder, rank=2)
    return MaskedLMLearner(*recipe.new_network(), texts, texts, recipe)


def test_a_quarter_of_the_pieces_is_hidden_and_never_none(encoder):
    found = learner_of(encoder, ["the cat sat on a mat . do you like it"])
    ids = found.encode(["the cat sat on a mat . do you like it", "cat"])
    generator = np.random.default_rng(0)
    hidden = [found._draw(ids[0], generator)[1] for _ in range(400)]
    assert np.mean([len(places) for places in hidden]) == pytest.approx(11 / 4, abs=0.1)
    assert {place for places in hidden for place in places} == set(range(1, 12))
    assert found._draw(ids[1], generator)[1] == [1]


def test_a_new_head_begins_with_frequencies(encoder):
    found = learner_of(encoder, ["the cat the dog the"] * 3)
    biases = [p for p in found.network.own_head().values() if p.dim() == 1 and len(p) > 50]
    tokenizer = found._tokenizer
    the, cat, zebra = tokenizer.convert_tokens_to_ids(["the", "cat", "z"])
    (bias,) = biases
    # 9 and 3 occurrences, and one more of each
    assert (bias[the] - bias[cat]).item() == pytest.approx(math.log(10 / 4), abs=1e-5)
    assert (bias[cat] - bias[zebra]).item() == pytest.approx(math.log(4), abs=1e-5)
    assert bias.exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_a_head_that_is_there_is_kept(tmp_path):
    name = str(save_masked_model(tmp_path / "masked"))
    network, _ = MmeSpecificity(model=name, rank=2).new_network()
    kept = {n: p.clone() for n, p in network.own_head().items()}
    found = learner_of(name, ["the cat sat"])
    for parameter, value in found.network.own_head().items():
        assert torch.equal(value, kept[parameter])


def test_the_verb(tmp_path, corpus, encoder):
    args = ["train", "mme-specificity", "--data", str(corpus), "--model", encoder]
    args += [
        "-o",
        str(tmp_path / "mine"),
        "--epochs",
        "1",
        "--response-tokens",
        "12",
        "--rank",
        "2",
    ]
    args += ["--held-out", "10"]
    result = CliRunner().invoke(app, [*args, "--json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["model"] == str(tmp_path / "mine")
    assert any("perplexity on test" in name for name in shown["scores"])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (["--full", "--rank", "4"], "no adapter"),
        (["--model", "nowhere"], "nowhere"),
    ],
)
def test_wrong_words_are_explained(tmp_path, corpus, wrong, complaint):
    args = ["train", "mme-specificity", "--data", str(corpus), "-o", str(tmp_path / "mine")]
    result = CliRunner().invoke(app, [*args, *wrong], catch_exceptions=True)
    assert result.exit_code != 0
    assert complaint in str(result.exception)
    assert not (tmp_path / "mine" / "card.json").exists()


def test_words_alone_cannot_learn_to_guess(tmp_path, corpus):
    vectors = str(save_word_vectors(tmp_path / "vectors"))
    with pytest.raises(UsageError, match="word-vectors: a masked language model stands on"):
        learn(corpus, tmp_path / "mine", vectors)
