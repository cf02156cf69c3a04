"""Topic graphs: keywords, edges, the network against a slow one, and the judge as a model."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models.tiny_topic_graphs import save_topic_graph, save_word_vectors

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import load_conceptnet
from dialeval.models.source import Models
from dialeval.models.tagger import (
    THRESHOLD,
    WEIGHTS,
    Candidate,
    Frequencies,
    keyword_score,
    keywords,
    tag_by_lexicon,
)
from dialeval.models.topic_graph import (
    GraphAttention,
    TopicGraphNetwork,
    Topics,
    edge_weight,
    normalised,
    topic_edges,
    word_features,
)
from dialeval.question import Judge, Likelihood


def test_keywords_score_as_in_grade(golden):
    idf, score = golden["grade"]["idf"], golden["grade"]["keyword_score"]
    frequencies = Frequencies(int(idf["total_utterances"]), {"dog": idf["doc_freq"]})
    assert frequencies.idf("dog") == pytest.approx(idf["idf=log10(total/(df+1))"])
    assert keyword_score("NN", score["tf"], score["len"], frequencies.idf("dog")) == pytest.approx(
        score["score"]
    )
    assert golden["grade"]["pos_weights"] == WEIGHTS
    assert score["threshold"] == THRESHOLD
    ten_words = [Candidate("dog", "NN"), *[None] * 9]
    assert keywords(ten_words, frequencies) == ("dog",)


def test_keywords_keep_their_order_and_their_repeats():
    frequencies = Frequencies(1000, {"dog": 9, "be": 999, "big": 99})
    said = [Candidate(w, p) for w, p in [("dog", "NN"), ("be", "VB"), ("big", "JJ"), ("dog", "NN")]]
    # big: .5 * 1/4 * 1 = .125, which is not above .15; be: idf 0.
    assert keywords(said, frequencies) == ("dog", "dog")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He went to the dogs in June", [None, ("go", "VB"), None, None, ("dog", "NN"), None,
                                         ("june", "NN")]),
        ("It isn't beautiful!", [None, None, None, ("beautiful", "JJ"), None]),
        ("", []),
        ("42 \N{SNOWMAN} \u200b", [None, None, None]),
    ],
)  # fmt: skip
def test_the_lexicon_knows_parts_of_speech(text, expected):
    found = [word and (word.lemma, word.part) for word in tag_by_lexicon([text])[0]]
    assert found == expected


def test_adjacency_is_the_golden_one(golden):
    """Hops in the golden numbers count 1 for the same word, so 2 is an edge of ConceptNet."""
    wanted = golden["grade"]["adjacency"]

    class Concepts:
        def hops(self, one, other, limit):
            return wanted["hops"][f"{one}-{other}"] - 1

    edges = topic_edges(Concepts(), Topics(("0", "1"), ("2",)))
    np.testing.assert_allclose(edges, wanted["A"])
    np.testing.assert_allclose(
        normalised(torch.tensor(wanted["A"], dtype=torch.float64)), wanted["AugNormAdj"], rtol=1e-9
    )
    assert edge_weight(None) == 1 / wanted["hops"]["unreachable"]
    assert edge_weight(0) == 1.0


def slow_layer(layer: GraphAttention, nodes: np.ndarray, adjacency: np.ndarray) -> np.ndarray:
    """The equations, one node, one head and one neighbour at a time."""
    own, bias = layer.own.weight.double().numpy(), layer.own.bias.double().numpy()
    message = layer.message.weight.double().numpy()
    constant = layer.message.bias.double().numpy().reshape(layer.heads, -1)
    receiver, sender = layer.receiver.double().numpy(), layer.sender.double().numpy()
    size = receiver.shape[1]
    out = []
    for i, node in enumerate(nodes):
        heads = []
        for head in range(layer.heads):
            rows = message[head * size : (head + 1) * size]
            sent = [rows @ other + constant[head] for other in nodes]
            shares = {}
            for j in range(len(nodes)):
                if adjacency[i, j]:
                    e = receiver[head] @ sent[i] + sender[head] @ sent[j]
                    shares[j] = math.exp(e if e > 0 else 0.2 * e)
            total = math.fsum(shares.values())
            heads.append(sum(adjacency[i, j] * a / total * sent[j] for j, a in shares.items()))
        x = own @ node + bias + np.concatenate(heads)
        out.append(np.where(x > 0, x, np.expm1(x)))
    return np.array(out)


def some_graph(seed: int, size: int, dimensions: int = 6):
    """Words with holes, and edges between a first and a second part."""
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((size, 3, dimensions)).astype(np.float32)
    words[rng.random((size, 3)) < 0.2] = np.nan
    first = int(rng.integers(0, size + 1))
    edges = np.zeros((size, size), np.float32)
    edges[:first, first:] = 1 / rng.integers(1, 6, size=(first, size - first))
    return torch.from_numpy(words), torch.from_numpy(edges + edges.T)


def network(seed: int = 0) -> TopicGraphNetwork:
    torch.manual_seed(seed)
    return TopicGraphNetwork(6, 8, heads=4, layers=3).eval()


def batch(graphs, size):
    words = torch.full((len(graphs), size, 3, 6), 7.0)  # padding that would show
    edges, real = torch.zeros(len(graphs), size, size), torch.zeros(len(graphs), size).bool()
    for row, (own, weights) in enumerate(graphs):
        n = len(own)
        words[row, :n], edges[row, :n, :n], real[row, :n] = own, weights, True
    return words, edges, real


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7))
@torch.no_grad()
def test_the_network_is_the_equations(seed, size):
    net, (words, edges) = network(seed), some_graph(seed, size)
    found = float(net(*batch([(words, edges)], size)))
    known = torch.where(words[:, 0].isnan(), net.unknown, words[:, 0])
    around = net.near(words[:, 1].nan_to_num()) + net.beyond(words[:, 2].nan_to_num())
    nodes = np.concatenate([net.ends.numpy(), (known + around).numpy()]).astype(float)
    looped = np.zeros((size + 2, size + 2))
    looped[2:, 2:] = edges.numpy()
    looped += np.eye(size + 2)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    for layer in net.layers:
        nodes = slow_layer(layer, nodes, looped * scale[:, None] * scale[None, :])
    x = torch.from_numpy(nodes.mean(axis=0)).float()
    for layer in net.hidden:
        x = torch.nn.functional.elu(layer(x))
    assert found == pytest.approx(float(net.out(x)), abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 99))
@torch.no_grad()
def test_padding_and_company_change_nothing(sizes, padding, seed):
    graphs = [some_graph(seed + number, size) for number, size in enumerate(sizes)]
    net = network()
    together = net(*batch(graphs, max(sizes) + padding))
    alone = torch.cat([net(*batch([graph], len(graph[0]))) for graph in graphs])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(0, 99))
@torch.no_grad()
def test_the_order_of_nodes_is_none_of_its_business(size, seed):
    words, edges = some_graph(seed, size)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(size))
    net = network()
    moved = (words[order], edges[order][:, order])
    torch.testing.assert_close(
        net(*batch([(words, edges)], size)), net(*batch([moved], size)), atol=1e-6, rtol=0
    )


@torch.no_grad()
def test_an_edge_changes_the_score_and_repeating_the_question_does_not():
    words, edges = some_graph(3, 5)
    net = network()
    first = net(*batch([(words, edges)], 5))
    assert torch.equal(first, net(*batch([(words, edges)], 5))), "nothing is drawn by lot"
    assert not torch.allclose(first, net(*batch([(words, 0 * edges)], 5)), atol=1e-4)


def test_features_are_means_of_what_has_a_vector():
    concepts = load_conceptnet()
    near, beyond = len(concepts.nearest("dog")), len(concepts.nearest_beyond("dog"))
    rows = np.full((1 + near + beyond, 2), np.nan)
    rows[0], rows[1], rows[2], rows[1 + near] = [1, 2], [3, 5], [5, 9], [8, 8]
    found = word_features(concepts, "dog", rows)
    np.testing.assert_array_equal(found, [[1, 2], [4, 7], [8, 8]])
    lonely = word_features(concepts, "zzzz", np.array([[1.0, 1.0]]))
    assert np.isnan(lonely[1:]).all()


DIALOGUES = [
    (("Do you like coffee?", "I love tea and milk."), "Sugar in my tea, please."),
    (("The dog barks at the cat.",), "My car needs fuel."),
    (("The dog barks at the cat.",), "Cats are afraid of a dog."),
    (("",), ""),
    (("so it is",), "and you?"),
]
HOSTILE = [
    (("\x00\x1b[31m" * 50,), "\ud800 <script>"),
    (("dog " * 5000,), "cat " * 5000),
    (("\N{PILE OF POO}" * 100, "\u202edog"), "\n\t\r"),
    ((), "dog"),
]


@pytest.fixture
def judge(tmp_path):
    return str(save_topic_graph(tmp_path / "judge", str(save_word_vectors(tmp_path / "vectors"))))


def ask(*questions):
    found = Answerer(Models("cpu"), None).answer(questions)
    return [found[question] for question in questions]


def test_an_answer_does_not_depend_on_the_questions_beside_it(judge):
    questions = [Judge(judge, turns, response) for turns, response in DIALOGUES + HOSTILE]
    together = np.concatenate(ask(*questions))
    alone = np.concatenate([ask(question)[0] for question in questions])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert ((together > 0) & (together < 1)).all()
    assert together[1] != together[2], "the response counts"


def test_only_the_last_turns_are_read(judge):
    last = ("I like coffee.", "The dog barks.")
    short, long = ask(Judge(judge, last, "A cat!"), Judge(judge, ("My car.", *last), "A cat!"))
    assert short == long


def test_what_is_wrong_with_a_directory_is_said(judge, tmp_path):
    from pathlib import Path

    path = Path(judge) / "scorer.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"graph": "another"}))
    with pytest.raises(UsageError, match="another ConceptNet"):
        ask(Judge(judge, ("dog",), "cat"))
    path.write_text(json.dumps(record))
    (Path(judge) / "idf.json").write_text("[]")
    with pytest.raises(UsageError, match=r"idf\.json"):
        ask(Judge(judge, ("dog",), "cat"))


def test_a_judge_of_topics_answers_nothing_else(judge):
    with pytest.raises(UsageError, match="cannot answer Likelihood"):
        ask(Likelihood(judge, (), "text"))


def test_vectors_of_another_size_are_refused(judge, tmp_path):
    from pathlib import Path

    path = Path(judge) / "scorer.json"
    other = save_word_vectors(tmp_path / "other", size=9)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vectors": str(other)}))
    with pytest.raises(UsageError, match="not those that it was"):
        ask(Judge(judge, ("dog",), "cat"))
