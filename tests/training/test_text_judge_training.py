"""`train mme-fluency`, `mme-relevance`, `mme-engagement` with a tiny random BERT."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders, tiny_scorers
from training.chat_files import write_dialogues

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
from dialeval.question import Judge
from dialeval.training.learners.judge_recipe import Example
from dialeval.training.loop import Settings
from dialeval.training.mme_engagement import engagement_lesson
from dialeval.training.mme_fluency import fluency_lesson
from dialeval.training.mme_relevance import mean_vectors, relevance_lesson
from dialeval.training.train_ruber import load_table
from dialeval.training.train_text_judge import Lesson, make_recipe, train_text_judge

ANIMALS = ["the cat", "a dog", "cats", "dogs", "the dog", "a cat"]
ACTS = ["sat on a mat", "do like it", "do n ' t like you", "sat and sat", "like the mat so"]
DIALOGUES = [
    (f"do you like {animal} ?", f"i do like {animal}", f"{animal} {act} .", f"so {animal} {act} ?")
    for animal in ANIMALS
    for act in ACTS
]
SETTINGS = Settings(epochs=2, learning_rate=0.02, seed=0)


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


def text_config(base, rank=2):
    return TextJudgeConfig("mme-fluency", base, "response", "max", rank=rank, alpha=2.0 * rank)


def cats_are_good():
    """A lesson that the tiny encoder can learn: what speaks of cats is good."""
    right = [Example((), f"the cat {act}", 1.0) for act in ACTS]
    wrong = [Example((), f"a dog {act}", 0.0) for act in ACTS]
    examples = [*right, *wrong] * 4
    return Lesson("cats", lambda epoch: examples, examples, {"test": examples}, "d", {}, "none")


@pytest.mark.parametrize("rank", [2, 0])
def test_what_was_learned_is_what_the_engine_hears(tmp_path, base, rank):
    settings = Settings(epochs=6, learning_rate=0.02 if rank else 0.005, seed=0)
    config = text_config(base, rank)
    card = train_text_judge(
        cats_are_good(), tmp_path / "out", config=config, settings=settings, batch=8
    )
    assert card.scores["accuracy on test (40 examples)"] == 1.0
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()
    questions = [Judge(str(tmp_path / "out"), (), text) for text in ("the cat sat", "a dog sat")]
    found = Answerer(Models("cpu"), None).answer(questions)
    good, bad = (float(found[question][0]) for question in questions)
    assert good > 0.5 > bad


class KilledError(Exception):
    pass


def lesson_and_config(way, corpus, vectors, base):
    options = {"examples": 30, "held_out": 10, "seed": 0, "licence": "none"}
    if way == "fluency":
        return fluency_lesson([corpus], **options), text_config(base)
    if way == "pair":
        config = TextJudgeConfig("mme-relevance", base, "pair", "max", 10, 10, rank=2, alpha=4.0)
        return relevance_lesson([corpus], vectors=vectors, **options), config
    config = TwinJudgeConfig("mme-relevance", base, 10, 10, rank=2, alpha=4.0)
    return relevance_lesson([corpus], vectors=vectors, negatives="batch", **options), config


@pytest.mark.parametrize("way", ["fluency", "pair", "twin"])
def test_a_killed_training_ends_with_the_same_judge(tmp_path, corpus, vectors, base, way):
    lesson, config = lesson_and_config(way, corpus, vectors, base)
    settings = Settings(epochs=3, learning_rate=0.01, seed=0, checkpoint_seconds=0.0)

    def die(state, steps):
        if state.step == steps // 2:
            raise KilledError

    def learn(out, **more):
        return train_text_judge(lesson, out, config=config, settings=settings, batch=6, **more)

    learn(tmp_path / "whole")
    with pytest.raises(KilledError):
        learn(tmp_path / "killed", report=die)
    learn(tmp_path / "killed")
    one, other = (tmp_path / name / "scorer.safetensors" for name in ("whole", "killed"))
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(UsageError, match="already holds a trained model"):
        learn(tmp_path / "whole")


def test_a_training_on_other_examples_is_not_continued(tmp_path, corpus, vectors, base):
    _, config = lesson_and_config("pair", corpus, vectors, base)
    settings = Settings(epochs=3, learning_rate=0.01, seed=0, checkpoint_seconds=0.0)

    def learn(negatives, report=lambda state, steps: None):
        lesson = relevance_lesson(
            [corpus],
            examples=30,
            held_out=10,
            seed=0,
            licence="",
            vectors=vectors,
            negatives=negatives,
        )
        train_text_judge(
            lesson, tmp_path / "out", config=config, settings=settings, batch=6, report=report
        )

    def die(state, steps):
        if state.step == 3:
            raise KilledError

    with pytest.raises(KilledError):
        learn("middle", die)
    with pytest.raises(UsageError, match="another training"):
        learn("random")


def test_examples_differ_by_epoch_and_not_by_chance(corpus, vectors):
    for lesson in (
        fluency_lesson([corpus], examples=30, held_out=10, seed=0, licence=""),
        relevance_lesson([corpus], examples=30, held_out=10, seed=0, licence="", vectors=vectors),
    ):
        assert lesson.examples(1) == lesson.examples(1)
        assert lesson.examples(1) != lesson.examples(2)
        assert len(lesson.examples(1)) == len(lesson.examples(2)) == 30
        assert {example.target for example in lesson.examples(1)} == {0.0, 1.0}


def test_a_wrong_response_was_given_elsewhere_and_a_right_one_here(corpus, vectors):
    lesson = relevance_lesson(
        [corpus], examples=None, held_out=10, seed=0, licence="", vectors=vectors
    )
    given = {(turns[:place], turns[place]) for turns in DIALOGUES for place in range(1, 4)}
    said = {response for _, response in given}
    for example in lesson.examples(0):
        if example.target == 0.0:
            assert example.response in said
            assert (example.turns, example.response) not in given
        else:
            whole = [response for turns, response in given if turns == example.turns]
            assert any(set(example.response.split()) <= set(text.split()) for text in whole)


def test_in_a_batch_the_same_words_are_no_wrong_response(base, monkeypatch):
    """Two dialogues with the same response: the pairs across are left out of the loss."""
    config = TwinJudgeConfig("m", base, rank=2, alpha=4.0)
    examples = [Example(("a",), "it", 1.0), Example(("the dog",), "it", 1.0)]
    lesson = Lesson("s", lambda epoch: examples, examples, {}, "d", {}, "none")
    recipe = make_recipe(lesson, config, batch=2, seed=0)
    (batch,) = recipe.batches(0)
    cosines = torch.tensor([[0.5, 0.9], [0.2, 0.4]])
    unit = torch.eye(2)
    sides = iter([cosines, unit])
    monkeypatch.setattr(recipe.network, "vectors", lambda texts, tokenizer: next(sides))
    scale, bias = (
        float(recipe.network.log_scale.detach().exp()),
        float(recipe.network.bias.detach()),
    )
    right = [-np.log(1 / (1 + np.exp(-(scale * c + bias)))) for c in (0.5, 0.4)]
    assert float(recipe.loss(batch).detach()) == pytest.approx(sum(right) / 4, rel=1e-5)


def test_mean_vectors_are_means_of_known_words(vectors):
    table = load_table(vectors)
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
    lesson = engagement_lesson(engaging, per_source=20, seed=0, licence="")
    examples = lesson.examples(0)
    pairs = list(zip(examples[::2], examples[1::2], strict=True))
    assert len(pairs) == 40
    for better, worse in pairs:
        assert better.target > worse.target
        assert ("big" in better.response) == ("big" in worse.response)
        lengths = sorted(len(one.response.split()) for one in (better, worse))
        assert lengths[1] <= 1.1 * lengths[0]
    assert sum("big" in better.response for better, _ in pairs) == 20
    held = {example.response for example in lesson.validation}
    assert not held & {example.response for example in examples}


def test_an_order_is_learned_within_a_source_and_the_card_says_how_well(tmp_path, base, engaging):
    lesson = engagement_lesson(engaging, per_source=40, seed=0, licence="")
    config = TextJudgeConfig(
        "mme-engagement", base, "response", "mean", context_tokens=0, rank=2, alpha=4.0
    )
    settings = Settings(epochs=4, learning_rate=0.05, seed=0)
    train_text_judge(lesson, tmp_path / "out", config=config, settings=settings, batch=8)
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
    logits = judged(tmp_path / "out", lesson.validation)
    assert (logits.mean(), logits.std(ddof=1)) == pytest.approx((0, 1), abs=0.02)


def test_a_judge_of_an_order_that_learned_nothing_is_not_saved(tmp_path, base, engaging):
    lesson = engagement_lesson(engaging, per_source=40, seed=0, licence="")
    config = TextJudgeConfig("mme-engagement", base, "response", "mean", context_tokens=0, rank=2)
    with pytest.raises(UsageError, match="nothing was learned"):
        train_text_judge(
            lesson,
            tmp_path / "out",
            config=config,
            settings=Settings(epochs=1, learning_rate=0.0, seed=0),
            batch=8,
        )
    assert not (tmp_path / "out" / "scorer.json").exists()


def judged(directory, examples):
    """What the engine hears, as logits."""
    questions = [Judge(str(directory), example.turns, example.response) for example in examples]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([float(found[question][0]) for question in questions])
    return np.log(scores / (1 - scores))


def test_the_card_tells_how_it_was_made(tmp_path, corpus, base):
    lesson = fluency_lesson([corpus], examples=20, held_out=10, seed=0, licence="CC0")
    out = tmp_path / "out"
    train_text_judge(
        lesson, out, config=text_config(base), settings=SETTINGS, batch=8, command="dialeval x"
    )
    card = json.loads((out / "card.json").read_text())
    assert card["command"] == "dialeval x"
    assert card["licence"] == "CC0"
    assert card["data"]["sha256"] == lesson.digest
    assert card["settings"]["kind"] == "text-judge"
    assert Path(out / "curve.svg").read_text().startswith("<svg")
