"""`train grade` with made-up word vectors and a tiny BERT, and the judge that it makes."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from models.tiny_scorers import save_word_vectors

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.models.topic_graph import GradeNetwork
from dialeval.question import Judge
from dialeval.training.recipes.topic_graph import Grade
from dialeval.training.run import train

PAIRS = (("dog", "kennel"), ("coffee", "cup"), ("car", "engine"), ("rain", "umbrella"))
WORDS = [word for pair in PAIRS for word in pair]


def elu(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, x.exp() - 1)


def test_both_branches_are_joined_as_in_the_paper():
    """Against the formula, with the mean over the nodes taken from the graph itself."""
    torch.manual_seed(0)
    network = GradeNetwork(3, 4, 2, 2, text_dimensions=2, width=5).eval()
    words, edges = torch.randn(1, 2, 3, 3), torch.tensor([[[0.0, 0.5], [0.5, 0.0]]])
    real = torch.ones(1, 2, dtype=torch.bool)
    c, r = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.5, 3.0]])
    features = torch.tensor([[1.0, -2.0, 0.5, 3.0, 0.5, 5.0, 0.5, -6.0]])
    topic = elu(network.pooled(words, edges, real) @ network.topic.weight.T + network.topic.bias)
    text = elu(features @ network.text.weight.T + network.text.bias)
    x = torch.cat([text, topic], dim=1)
    for layer in network.hidden:
        x = elu(x @ layer.weight.T + layer.bias)
    wanted = (x @ network.out.weight.T + network.out.bias)[:, 0]
    assert torch.allclose(network(words, edges, real, c, r), wanted, atol=1e-6)


def test_a_trained_grade_answers_alike_whatever_is_asked_beside_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))
    corpus = tmp_path / "chats.jsonl"
    records = [
        {
            "id": str(number),
            "context": [{"text": f"look at the {PAIRS[number % 4][0]} number {number}"}],
            "response": "and at a {1} for the {0}".format(*PAIRS[number % 4]),
        }
        for number in range(60)
    ]
    corpus.write_text("".join(json.dumps(record) + "\n" for record in records))
    vectors = str(save_word_vectors(tmp_path / "vectors", WORDS, 6))
    encoder = str(tiny_encoders.save_bert(tmp_path / "bert"))
    recipe = Grade(model=vectors, encoder=encoder, units=8, width=6, epochs=2, patience=0, batch=16)
    out = tmp_path / "out"
    card = train(recipe, corpus, out)
    assert card.base == encoder
    turns = ("look at the dog number 7",)
    questions = [
        Judge(str(out), turns, "and at a kennel for the dog"),
        Judge(str(out), turns, "and at a cup for the coffee"),
        Judge(str(out), (), "fine"),
    ]
    together = Answerer(Models("cpu"), None).answer(questions)
    assert len({float(answer[0]) for answer in together.values()}) == 3
    for question in questions:
        [alone] = Answerer(Models("cpu"), None).answer([question]).values()
        assert together[question] == pytest.approx(alone, abs=1e-6)
    record = json.loads((out / "scorer.json").read_text())
    (out / "scorer.json").write_text(json.dumps(record | {"vectors_are": "others"}))
    (out / "dialeval-model.json").unlink()
    with pytest.raises(UsageError, match="other word vectors"):
        Models("cpu").load(str(out))
