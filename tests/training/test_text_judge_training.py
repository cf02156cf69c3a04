"""`train mme-fluency`, `mme-relevance`, `mme-engagement` with a tiny random BERT."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders, tiny_scorers
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.question import Judge
from dialeval.training.examples.pair_corpus import Example, ExampleSets
from dialeval.training.examples.pair_vectors import load_word_vectors, mean_vectors
from dialeval.training.recipes.mme_judges import MmeEngagement, MmeFluency, MmeRelevance
from dialeval.training.run import train

ANIMALS = ["the cat", "a dog", "cats", "dogs", "the dog", "a cat"]
ACTS = ["sat on a mat", "do like it", "do n ' t like you", "sat and sat", "like the mat so"]
DIALOGUES = [
    (f"do you like {animal} ?", f"i do like {animal}", f"{animal} {act} .", f"so {animal} {act} ?")
    for animal in ANIMALS
    for act in ACTS
]


@pytest.fixture
def base(tmp_path):
    return str(tiny_encoders.save_bert(tmp_path / "bert"))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    return write_dialogues(tmp_path / "chats.jsonl", DIALOGUES)


@pytest.fixture
def vectors(tmp_path):
    return str(tiny_scorers.save_word_vectors(tmp_path / "vectors"))


@dataclass(frozen=True, kw_only=True)
class Cats(MmeFluency):
    """What speaks of cats is good, which the tiny encoder can learn."""

    def example_sets(self, data):
        right = [Example((), f"the cat {act}", 1.0) for act in ACTS]
        wrong = [Example((), f"a dog {act}", 0.0) for act in ACTS]
        examples = [*right, *wrong] * 4
        return ExampleSets(lambda epoch: examples, examples, "d", {}, measured={"test": examples})


@pytest.mark.parametrize("full", [False, True])
def test_what_was_learned_is_what_the_engine_hears(tmp_path, base, full):
    recipe = Cats(
        model=base,
        epochs=6,
        patience=0,
        learning_rate=0.005 if full else 0.02,
        full=full,
        rank=None if full else 2,
        batch=8,
    )
    card = train(recipe, "x", tmp_path / "out")
    assert card.scores["accuracy on test (40 examples)"] == 1.0
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()
    questions = [Judge(str(tmp_path / "out"), (), text) for text in ("the cat sat", "a dog sat")]
    found = Answerer(Models("cpu"), None).answer(questions)
    good, bad = (float(found[question][0]) for question in questions)
    assert good > 0.5 > bad


def recipe_of(kind, vectors, base, **more):
    shared = {"model": base, "rank": 2, "examples": 30, "held_out": 10, "epochs": 3, "batch": 6}
    shared |= {"learning_rate": 0.01, "patience": 0} | more
    if kind == "fluency":
        return MmeFluency(**shared)
    read = {"vectors": vectors, "context_tokens": 10, "response_tokens": 10}
    return MmeRelevance(architecture=kind, **read, **shared)


@pytest.mark.parametrize("kind", ["fluency", "cross-encoder", "bi-encoder"])
def test_a_killed_training_ends_with_the_same_judge(tmp_path, corpus, vectors, base, kind):
    recipe = recipe_of(kind, vectors, base)

    def learn(out, **more):
        return train(recipe, corpus, out, checkpoint_seconds=0.0, **more)

    learn(tmp_path / "whole")
    with pytest.raises(KilledError):
        learn(tmp_path / "killed", progress=Deadly())
    assert (tmp_path / "killed" / "checkpoint.safetensors").exists()
    learn(tmp_path / "killed")
    one, other = (tmp_path / name / "scorer.safetensors" for name in ("whole", "killed"))
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(UsageError, match="already holds a trained model"):
        learn(tmp_path / "whole")


def test_a_training_on_other_examples_is_not_continued(tmp_path, corpus, vectors, base):
    recipe = recipe_of("cross-encoder", vectors, base)
    with pytest.raises(KilledError):
        train(recipe, corpus, tmp_path / "out", checkpoint_seconds=0.0, progress=Deadly(3))
    with pytest.raises(UsageError, match="another training"):
        train(replace(recipe, negatives="random"), corpus, tmp_path / "out")


def test_examples_differ_by_epoch_and_not_by_chance(corpus, vectors):
    for kind in ("fluency", "cross-encoder"):
        sets = recipe_of(kind, vectors, "").example_sets([corpus])
        assert sets.examples(1) == sets.examples(1)
        assert sets.examples(1) != sets.examples(2)
        assert len(sets.examples(1)) == len(sets.examples(2)) == 30
        assert {example.target for example in sets.examples(1)} == {0.0, 1.0}


def test_a_wrong_response_was_given_elsewhere_and_a_right_one_here(corpus, vectors):
    sets = recipe_of("cross-encoder", vectors, "", examples=None).example_sets([corpus])
    given = {(turns[:place], turns[place]) for turns in DIALOGUES for place in range(1, 4)}
    said = {response for _, response in given}
    for example in sets.examples(0):
        if example.target == 0.0:
            assert example.response in said
            assert (example.turns, example.response) not in given
        else:
            whole = [response for turns, response in given if turns == example.turns]
            assert any(set(example.response.split()) <= set(text.split()) for text in whole)


def test_in_a_batch_the_same_words_are_no_wrong_response(base, monkeypatch):
    """Two dialogues with the same response: the pairs across are left out of the loss."""
    examples = [Example(("a",), "it", 1.0), Example(("the dog",), "it", 1.0)]
    recipe = MmeRelevance(model=base, rank=2, batch=2)
    sets = ExampleSets(lambda epoch: examples, examples, "d", {})
    learner = recipe.make_learner(sets, recipe.judge_config())
    (batch,) = learner.batches(0)
    cosines = torch.tensor([[0.5, 0.9], [0.2, 0.4]])
    unit = torch.eye(2)
    sides = iter([cosines, unit])
    monkeypatch.setattr(learner.network, "vectors", lambda texts, tokenizer: next(sides))
    scale, bias = (
        float(learner.network.log_scale.detach().exp()),
        float(learner.network.bias.detach()),
    )
    right = [-np.log(1 / (1 + np.exp(-(scale * c + bias)))) for c in (0.5, 0.4)]
    assert float(learner.loss(batch).detach()) == pytest.approx(sum(right) / 4, rel=1e-5)


def test_mean_vectors_are_means_of_known_words(vectors):
    table = load_word_vectors(vectors, "mme-relevance")
    rows = mean_vectors(["the cat", "zzzz qqqq", ""], table)
    words = table.look_up(["the", "cat"])
    known = words[~np.isnan(words[:, 0])]
    assert len(known)
    np.testing.assert_allclose(rows[0], known.mean(axis=0), rtol=1e-5)
    assert not rows[1:].any()


@pytest.fixture
def engaging(tmp_path, monkeypatch):
    """Two sources: people like replies that end in `like it`, and one source more than the other.
    Longer replies are liked, too."""
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    for name, count, likes in (("big", 90, 3), ("small", 45, 2)):
        lines = []
        for n in range(count):
            liked = n % 4 < likes
            end = "do like it" if liked else "do n t"
            words = " so" * (n % 3 + liked)
            lines.append(f"{n},hello,the{words} cat {n} {name} {end},{int(liked)}")
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,query,reply,label", *lines]))
    return [tmp_path / "big.csv", tmp_path / "small.csv"]


def test_engagement_is_taught_by_pairs_of_one_source_that_are_equally_long(engaging):
    sets = MmeEngagement(per_source=20).example_sets(engaging)
    examples = sets.examples(0)
    pairs = list(zip(examples[::2], examples[1::2], strict=True))
    assert len(pairs) == 40
    for better, worse in pairs:
        assert better.target > worse.target
        assert ("big" in better.response) == ("big" in worse.response)
        lengths = sorted(len(one.response.split()) for one in (better, worse))
        assert lengths[1] <= 1.1 * lengths[0]
    assert sum("big" in better.response for better, _ in pairs) == 20
    held = {example.response for example in sets.validation}
    assert not held & {example.response for example in examples}


def order_of(base, **more):
    shared = {"model": base, "rank": 2, "per_source": 40, "epochs": 4, "patience": 0, "batch": 8}
    return MmeEngagement(**{**shared, "learning_rate": 0.05, **more})


def test_an_order_is_learned_within_a_source_and_the_card_says_how_well(tmp_path, base, engaging):
    recipe = order_of(base)
    train(recipe, engaging, tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    (name,) = card["scores"]
    assert name.startswith("pairs in order on validation")
    assert card["scores"][name] > 0.9
    by_source = {row["source"]: row for row in card["by_source"]}
    assert by_source["big"]["majority"] == pytest.approx(7 / 9, abs=0.15)
    assert by_source["big"]["accuracy"] is None
    assert by_source["big"]["partial"] > 0.5
    text = (tmp_path / "out" / "card.md").read_text()
    assert "| source | n | majority | accuracy | Spearman | given length |" in text
    logits = judged(tmp_path / "out", recipe.example_sets(engaging).validation)
    assert (logits.mean(), logits.std(ddof=1)) == pytest.approx((0, 1), abs=0.02)


def test_a_judge_of_an_order_that_learned_nothing_is_not_saved(tmp_path, base, engaging):
    with pytest.raises(UsageError, match="nothing was learned"):
        train(order_of(base, epochs=1, learning_rate=0.0), engaging, tmp_path / "out")
    assert not (tmp_path / "out" / "scorer.json").exists()


def judged(directory, examples):
    """What the engine hears, as logits."""
    questions = [Judge(str(directory), example.turns, example.response) for example in examples]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([float(found[question][0]) for question in questions])
    return np.log(scores / (1 - scores))


def test_the_card_tells_how_it_was_made(tmp_path, corpus, base):
    recipe = MmeFluency(model=base, rank=2, examples=20, held_out=10, epochs=2, batch=8)
    out = tmp_path / "out"
    train(recipe, corpus, out, licence="CC0")
    card = json.loads((out / "card.json").read_text())
    options = f"--model {base} --epochs 2 --batch 8 --examples 20 --held-out 10"
    command = (
        f"dialeval train mme-fluency --data {corpus} --rank 2 {options} --licence CC0 -o {out}"
    )
    assert card["command"] == command
    assert card["licence"] == "CC0"
    assert card["data"]["sha256"] == recipe.example_sets([corpus]).digest
    assert card["settings"]["kind"] == "text-judge"
    assert Path(out / "curve.svg").read_text().startswith("<svg")


def test_every_recipe_with_a_metric_is_compared_with_people(tmp_path, base, corpus, monkeypatch):
    """The correlation on the card is that of the metric with the part, on the rated set here."""
    import dialeval
    from dialeval.training import card

    rows = [
        {"id": str(n), "context": [{"text": "do you like it ?"}], "response": text}
        | {"ratings": {"Overall": {"values": [rating]}}}
        for n, (text, rating) in enumerate(
            [("the cat sat", 5), ("dog a cats", 1), ("it sat sat on", 2), ("i do like you", 4)]
        )
    ]
    rated = tmp_path / "rated.jsonl"
    rated.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(MmeFluency, "rated", {str(rated): "Overall"})
    monkeypatch.setattr(card, "find_dataset", lambda name: rated)
    out = tmp_path / "out"
    card = train(recipe_of("fluency", "", base, epochs=1), corpus, out)
    run = dialeval.score(dialeval.load(rated), [f"mme-fluency:model={out}"])
    scores, ratings = run.scores(run.metrics[0]), [5, 1, 2, 4]
    ranks = [np.argsort(np.argsort(values)) for values in (scores, ratings)]
    expected = float(np.corrcoef(ranks)[0, 1])
    assert card.scores[f"Spearman, {rated} Overall (4)"] == pytest.approx(expected)
