"""`train ruber` with a table of made-up word vectors: learning, a kill, a card, the verb."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models.tiny_scorers import save_word_vectors
from training.killed import Deadly, KilledError, Told

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.models.word_vectors import WordVectorTable
from dialeval.question import Judge
from dialeval.training.examples.pair_corpus import Pair
from dialeval.training.learners.ruber import RuberLearner, Scored, WordNumbers, measures
from dialeval.training.recipes.ruber import Ruber
from dialeval.training.run import train

TOPICS = ("cat", "dog", "food", "likes")


@pytest.fixture(autouse=True)
def _no_rated_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))


@pytest.fixture
def corpus(tmp_path):
    """Whoever hears of a thing answers about the same thing."""
    path = tmp_path / "chats.jsonl"
    records = [
        {
            "id": str(number),
            "context": [{"text": f"hello the {TOPICS[number % 4]} {number}"}],
            "response": f"there {TOPICS[number % 4]} ?",
        }
        for number in range(80)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def vectors(tmp_path):
    return str(save_word_vectors(tmp_path / "vectors"))


def learn(corpus, out, vectors, progress=None, **more):
    shared = {"epochs": 14, "learning_rate": 0.03, "patience": 0, "batch": 16, "units": 8}
    recipe = Ruber(model=vectors, words=10, **shared, **more)
    return train(recipe, corpus, out, checkpoint_seconds=1, progress=progress)


@pytest.mark.parametrize("loss", ["margin", "cross-entropy"])
def test_what_was_learned_is_what_the_metric_sees(tmp_path, corpus, vectors, loss):
    out = tmp_path / "mine"
    card = learn(corpus, out, vectors, loss=loss)
    assert card.curve[-1]["train_loss"] < 0.8 * card.curve[1]["train_loss"]
    questions = [
        Judge(str(out), (f"hello the {said} 7",), f"there {answered} ?")
        for said in TOPICS
        for answered in TOPICS
    ]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([found[question][0] for question in questions]).reshape(4, 4)
    on_topic = np.eye(4, dtype=bool)
    assert scores[on_topic].mean() > scores[~on_topic].mean() + 0.3


def test_a_killed_training_ends_with_the_same_weights(tmp_path, corpus, vectors):
    learn(corpus, tmp_path / "whole", vectors)
    with pytest.raises(KilledError):
        learn(corpus, tmp_path / "killed", vectors, Deadly(33))
    learn(corpus, tmp_path / "killed", vectors)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    name = "scorer.safetensors"
    assert (whole / name).read_bytes() == (killed / name).read_bytes()
    assert not (killed / "checkpoint.safetensors").exists()


def test_the_card_says_what_it_learned_from(tmp_path, corpus, vectors):
    learn(corpus, tmp_path / "mine", vectors)
    card = json.loads((tmp_path / "mine" / "card.json").read_text())
    assert card["data"]["pairs to learn from"] == 72
    assert card["base"] == vectors
    assert set(card["scores"]) == {
        f"{split}_{what}" for split in ("validation", "test") for what in ("accuracy", "ranking")
    }


def test_words_without_a_vector_are_counted_and_most_of_them_are_a_warning(
    tmp_path, corpus, vectors
):
    """Numbers and marks are no words: of `there cat ?` there are two, of `你好 ?` there is one."""
    told = Told()
    learn(corpus, tmp_path / "english", vectors, told)
    assert not any("no vector" in line for line in told.lines)
    chinese = tmp_path / "zh.jsonl"
    answers = ("你好", "好的", "谢谢", "再见")
    rows = [
        {"id": str(n), "context": [{"text": f"早上 {n}"}], "response": f"{answers[n % 4]} ?"}
        for n in range(80)
    ]
    chinese.write_text("".join(json.dumps(row) + "\n" for row in rows))
    card = learn(chinese, tmp_path / "chinese", vectors, told)
    # 80 queries, and 4 answers: each text is read once.
    assert card.data["words without a vector"] == "84 of 84"
    (warning,) = (line for line in told.lines if "no vector" in line)
    assert "84 of 84 words" in warning
    assert "--model" in warning


def test_a_wrong_response_is_never_the_right_one():
    """Two of three pairs share a response: only pairs whose wrong response differs are learned
    from, and their loss is that of the logits, worked out with the logistic function."""
    table = WordVectorTable({"a": 0, "b": 1}, np.eye(2, dtype=np.float32))
    words = WordNumbers(["a", "b"], table, 5)
    from dialeval.models.pair_scorer import RuberNetwork

    pairs = [Pair((0,), 1), Pair((1,), 1), Pair((1,), 0)]
    learner = RuberLearner(RuberNetwork(2, 3, 3), words, pairs, pairs, Ruber())
    scored = learner.score(pairs)
    assert int(scored.different.sum()) == 2
    kept = scored.different
    expected = torch.cat(
        [-scored.right[kept].sigmoid().log(), -(1 - scored.wrong[kept].sigmoid()).log()]
    ).mean()
    assert learner.validate().loss == pytest.approx(float(expected), rel=1e-5)


def test_accuracy_and_ranking_are_counted_by_hand():
    scored = Scored(
        right=torch.tensor([2.0, -1.0, 0.5, 9.0]),
        wrong=torch.tensor([-1.0, -2.0, 1.0, -9.0]),
        different=torch.tensor([True, True, True, False]),
    )
    assert measures(scored, "test") == pytest.approx(
        {"test_accuracy": 4 / 6, "test_ranking": 2 / 3}
    )


def test_only_word_vectors_can_be_read(tmp_path, corpus):
    from models import tiny_encoders

    encoder = str(tiny_encoders.save_bert(tmp_path / "encoder"))
    with pytest.raises(UsageError, match="has the role encoder: `train ruber` takes word vectors"):
        learn(corpus, tmp_path / "mine", encoder)


def test_a_finished_scorer_is_not_overwritten(tmp_path, corpus, vectors):
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "card.json").write_text("{}")
    with pytest.raises(UsageError, match="already holds a trained model"):
        learn(corpus, tmp_path / "done", vectors)
