"""`train mme-topic` with made-up word vectors: learning, a kill, a card, the verb."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from models.tiny_scorers import save_word_vectors
from training.killed import Deadly, KilledError
from typer.testing import CliRunner

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import load_conceptnet
from dialeval.models.source import Models
from dialeval.models.tagger import Frequencies
from dialeval.models.topic_graph import Topics, topic_edges, word_weight
from dialeval.models.word_vectors import load
from dialeval.question import Judge
from dialeval.training.learners.topic_graph import (
    MARGIN,
    Scored,
    TopicTables,
    margin_loss,
    ranking,
    sharing_a_keyword,
)
from dialeval.training.recipes.topic_graph import MmeTopic
from dialeval.training.run import train

PAIRS = (("dog", "kennel"), ("coffee", "cup"), ("car", "engine"), ("rain", "umbrella"))


@pytest.fixture(autouse=True)
def _no_rated_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))


def answer(thing, belonging):
    return f"and at a {belonging} for the {thing}"


@pytest.fixture
def corpus(tmp_path):
    """Whoever hears of a thing answers with what belongs to it, and names it again."""
    path = tmp_path / "chats.jsonl"
    records = [
        {
            "id": str(number),
            "context": [{"text": f"look at the {PAIRS[number % 4][0]} number {number}"}],
            "response": answer(*PAIRS[number % 4]),
        }
        for number in range(120)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def vectors(tmp_path):
    words = [word for pair in PAIRS for word in pair]
    return str(save_word_vectors(tmp_path / "vectors", words, 8))


def learn(corpus, out, vectors, progress=None, **more):
    shared = {"loss": "cross-entropy", "batch": 16, "units": 16, "epochs": 3, "patience": 0}
    recipe = MmeTopic(model=vectors, learning_rate=0.01, **{**shared, **more})
    return train(recipe, corpus, out, checkpoint_seconds=1, progress=progress)


@pytest.mark.parametrize("loss", ["margin", "cross-entropy"])
def test_what_was_learned_is_what_the_metric_sees(tmp_path, corpus, vectors, loss):
    out = tmp_path / "mine"
    learn(corpus, out, vectors, loss=loss, dropout=0.0, epochs=30)
    questions = [
        Judge(str(out), (f"look at the {said} number 7",), answer(*answered))
        for said, _ in PAIRS
        for answered in PAIRS
    ]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([found[question][0] for question in questions]).reshape(4, 4)
    right = np.eye(4, dtype=bool)
    assert scores[right].mean() > scores[~right].mean() + MARGIN
    assert (np.diag(scores)[:, None] > scores)[~right].mean() >= 0.75


def test_a_killed_training_ends_with_the_same_weights(tmp_path, corpus, vectors):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    learn(corpus, whole, vectors)
    with pytest.raises(KilledError):
        learn(corpus, killed, vectors, Deadly(17))
    learn(corpus, killed, vectors)
    for name in ("scorer.safetensors", "scorer.json", "idf.json"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
    assert not (killed / "checkpoint.safetensors").exists()


def test_frequencies_are_counted_in_what_was_learned_from(tmp_path, corpus, vectors):
    """108 of 120 dialogues: each context reads differently, and there are four responses."""
    learn(corpus, tmp_path / "mine", vectors)
    record = json.loads((tmp_path / "mine" / "idf.json").read_text())
    assert record["utterances"] == 108 + 4
    assert record["lemmas"]["kennel"] == 1
    assert record["lemmas"]["number"] == 108
    card = json.loads((tmp_path / "mine" / "card.json").read_text())
    assert card["data"]["pairs to learn from"] == 108
    assert set(card["scores"]) == {
        f"{split}_ranking_{what}" for split in ("validation", "test") for what in ("random", "hard")
    }


@pytest.mark.parametrize(("furthest", "edges"), [(4, "hops"), (1, "hops"), (4, "idf")])
def test_graphs_of_a_training_are_those_of_a_judge(vectors, furthest, edges):
    """Edges from the table of all hops against one lookup for each two words."""
    from pathlib import Path

    concepts = load_conceptnet()
    words = ["dog", "kennel", "coffee", "cup", "zzzz", "umbrella"]
    frequencies = Frequencies(100, {"dog": 9, "coffee": 99, "cup": 0})

    def weight(word):
        return word_weight(edges, frequencies, word)

    tables = TopicTables(words, concepts, load(Path(vectors)), furthest, weight)
    topics = [
        Topics(("dog", "zzzz", "coffee"), ("cup", "dog", "zzzz")),
        Topics((), ("umbrella",)),
        Topics((), ()),
    ]
    _, weights, real = tables.graphs(topics)
    for row, found in enumerate(topics):
        size = len(found.words)
        wanted = topic_edges(concepts, found, furthest, weight)
        np.testing.assert_allclose(weights[row, :size, :size], wanted, rtol=1e-6)
        assert real[row].sum() == size
        assert not weights[row, size:].any()
        assert not weights[row, :, size:].any()


def test_an_edge_of_words_that_everybody_says_weighs_little():
    """idf of dog, in 9 of 100 turns, is half of the highest, log10(100); coffee is in all."""
    frequencies = Frequencies(100, {"dog": 9, "coffee": 99})
    concepts = load_conceptnet()
    topics = Topics(("dog", "coffee"), ("dog", "coffee"))
    found = topic_edges(concepts, topics, 4, lambda word: word_weight("idf", frequencies, word))
    assert found[0, 2] == pytest.approx(0.5)
    assert found[1, 3] == 0.0
    assert topic_edges(concepts, topics)[1, 3] == 1.0
    hops = concepts.hops("coffee", "kennel")
    assert hops is not None
    assert hops > 1
    far = Topics(("coffee",), ("kennel",))
    assert topic_edges(concepts, far, hops)[0, 1] == pytest.approx(1 / (1 + hops))
    assert topic_edges(concepts, far, 1)[0, 1] == pytest.approx(1 / 20)


def test_the_margin_is_the_golden_one(golden):
    worked = golden["grade"]["margin_ranking"]
    right, wrong = torch.tensor([worked["s_pos"]]), torch.tensor([worked["s_neg"]])
    assert float(margin_loss(right, wrong)) == pytest.approx(worked["loss"], abs=1e-6)
    assert float(margin_loss(right, right - 0.2)) == 0.0
    peer = torch.nn.MarginRankingLoss(margin=worked["margin"])
    assert float(margin_loss(right, wrong)) == pytest.approx(
        float(peer(right, wrong, torch.ones(1))), abs=1e-7
    )


def test_a_response_that_is_wrong_by_its_words_shares_one_and_is_another():
    responses = [("dog", "cat"), ("dog",), ("cat", "car"), ("car",), (), ("dog", "cat")]
    rows, wrong = np.arange(5), np.array([4, 4, 4, 4, 0, 0])
    drawn = [
        sharing_a_keyword(responses, rows, wrong, np.random.default_rng(seed)) for seed in range(50)
    ]
    found = [{int(other[row]) for other in drawn} for row in range(6)]
    assert found[0] == {1, 2, 4}, "5 has the same keywords, and 4 stays where it was drawn"
    assert found[1] == {0, 4, 5}
    assert found[3] == {2, 4}
    assert found[4] == {0}, "a response without keywords shares none"
    assert found[5] == {0}, "it was not asked for"


def test_a_tie_counts_half():
    scored = Scored(torch.tensor([1.0, 0.0, 2.0, 2.0]), torch.tensor([0.0, 0.0, 3.0, 1.0]))
    assert ranking(scored) == (1 + 0.5 + 0 + 1) / 4


def test_bad_requests_are_refused_before_anything_is_read(tmp_path, corpus, vectors):
    with pytest.raises(UsageError, match="16 units cannot be shared among 3 heads"):
        learn(corpus, tmp_path / "mine", vectors, heads=3)
    with pytest.raises(UsageError, match="no such file"):
        learn(corpus, tmp_path / "mine", vectors, graph=str(tmp_path / "none.npz"))
    with pytest.raises(UsageError, match="not a graph of concepts"):
        learn(corpus, tmp_path / "mine", vectors, graph=str(corpus))
    with pytest.raises(UsageError, match="no model 'lexikon'"):
        learn(corpus, tmp_path / "mine", vectors, tagger="lexikon")


def test_the_verb_trains_with_another_graph(tmp_path, corpus, vectors):
    from importlib.resources import files

    from dialeval.cli.app import app

    graph = tmp_path / "graph.npz"
    graph.write_bytes(files("dialeval.lexicon").joinpath("conceptnet.npz").read_bytes())
    command = ["train", "mme-topic", "--data", str(corpus), "-o", str(tmp_path / "mine")]
    more = ["--model", vectors, "--units", "8", "--epochs", "1", "--negatives", "random"]
    result = CliRunner().invoke(app, [*command, *more, "--graph", str(graph), "--json"])
    assert result.exit_code == 0, result.output
    assert "test_ranking_random" in json.loads(result.stdout)["scores"]
    assert (tmp_path / "mine" / "conceptnet.npz").exists()


def test_keywords_may_be_read_by_a_sentence_encoder(tmp_path, corpus):
    """A word has the mean state that transformers gives a sentence of this one word."""
    transformers = pytest.importorskip("transformers")
    base = str(tiny_encoders.save_bert(tmp_path / "bert"))
    path = Path(__file__).parents[2] / "scripts" / "embed_words.py"
    spec = importlib.util.spec_from_file_location("embed_words", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    words = script.words_of([corpus])
    assert {"kennel", "look", "120", "119"} - {*words} == {"120"}
    few = ["cat", "dog", "kennel", "cup"]
    script.write_table(base, few, tmp_path / "words")
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    network = transformers.AutoModel.from_pretrained(base).eval()
    with torch.no_grad():
        state = network(**tokenizer("dog", return_tensors="pt")).last_hidden_state[0].mean(0)
    table = load(tmp_path / "words")
    assert table.look_up(["dog"])[0] == pytest.approx(state.numpy(), abs=1e-3)  # kept in 16 bits
    card = learn(corpus, tmp_path / "out", str(tmp_path / "words"), epochs=1)
    assert card.settings["dimensions"] == len(state)
