"""Heads on sentence vectors, against sums on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch

from dialeval.errors import UsageError
from dialeval.models.sentence_head import (
    FlowHead,
    GraphHead,
    MeanHead,
    PairHead,
    SentenceHead,
    SentenceHeadConfig,
    TurnsHead,
    weighted_context,
)
from dialeval.question import Embed, Judge, Judgement


def filled(network: torch.nn.Module, **values) -> torch.nn.Module:
    """A network whose parameters are all 0, but for these."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.zero_()
            if name.replace(".", "_") in values:
                parameter.copy_(torch.tensor(values[name.replace(".", "_")]))
    return network.eval()


def test_each_turn_of_a_context_has_half_the_weight_of_the_next():
    turns = torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [9.0], [100.0]]])
    found = weighted_context(turns, torch.tensor([3, 2]))
    assert found[:, 0].tolist() == pytest.approx([(1 + 2 * 2 + 4 * 4) / 7, (3 + 2 * 9) / 3])


def test_a_pair_is_read_as_both_their_distance_and_their_product():
    # c = 2, r = 5: [2 ; 5 ; 3 ; 10], and weights 1, 10, 100, 1000 in one hidden unit.
    head = filled(
        PairHead(1, (1,)),
        layers_0_weight=[[1.0, 10.0, 100.0, 1000.0]],
        layers_1_weight=[[0.5]],
        layers_1_bias=[1.0],
    )
    logit = head(torch.tensor([[[2.0]]]), torch.tensor([1]), torch.tensor([[5.0]]))
    assert logit.item() == pytest.approx(0.5 * (2 + 50 + 300 + 10000) + 1)


def test_predictive_engagement_reads_the_mean_of_the_last_turn_and_the_response():
    head = filled(
        MeanHead(1, (1,)), layers_0_weight=[[1.0]], layers_1_weight=[[2.0]], layers_1_bias=[0.5]
    )
    turns = torch.tensor([[[9.0], [0.2], [77.0]]])  # the third one is padding
    logit = head(turns, torch.tensor([2]), torch.tensor([[0.6]]))
    assert logit.item() == pytest.approx(2 * math.tanh((0.2 + 0.6) / 2) + 0.5)


def test_maude_takes_the_largest_state_over_the_turns():
    # Only the last layer of the LSTM speaks: all its gates are half open, its cell is tanh(k p),
    # p being the projected turn. Two states of each turn: forward 0 for the first layer is silent.
    head = filled(TurnsHead(1, (1, 1)), project_weight=[[1.0]])
    with torch.no_grad():
        head.lstm.bias_ih_l1.copy_(torch.tensor([0.0, 0.0, 2.0, 0.0]))  # cell candidate: tanh(2)
        head.context.weight.copy_(torch.tensor([[1.0, 0.0]]))
        head.layers[0].weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
        head.layers[1].weight.fill_(1.0)
    cell = h = 0.0
    states = []
    for _ in range(3):  # by hand: input, forget and output gate are sigmoid(0)
        cell = 0.5 * cell + 0.5 * math.tanh(2.0)
        h = 0.5 * math.tanh(cell)
        states.append(h)
    turns, response = torch.zeros(1, 3, 1), torch.zeros(1, 1)
    assert head(turns, torch.tensor([3]), response).item() == pytest.approx(max(states))
    assert head(turns, torch.tensor([1]), response).item() == pytest.approx(states[0])


def by_hand(head: GraphHead, nodes: np.ndarray) -> float:
    """DynaEval's graph, turn by turn: what each one hears from the turns around it."""
    named = {name: value.detach().numpy() for name, value in head.named_parameters()}
    h = head.lstm(torch.tensor(nodes)[None])[0][0].detach().numpy()
    count, width = h.shape
    relu = lambda x: np.maximum(x, 0)  # noqa: E731
    by_relation = named["relations.weight"].reshape(8, width, width)
    first, joined = [], []
    for i in range(count):
        around = [j for j in range(count) if abs(i - j) <= 4]
        attention = np.exp([h[i] @ named["edges.weight"] @ h[j] for j in around])
        attention /= attention.sum()
        speaks = [(count - 1 - j) % 2 for j in range(count)]
        kinds = [4 * speaks[i] + 2 * speaks[j] + (j > i) for j in around]
        heard = attention[around.index(i)] * (named["itself.weight"] @ h[i] + named["itself.bias"])
        for a, j, kind in zip(attention, around, kinds, strict=True):
            heard = heard + a / kinds.count(kind) * by_relation[kind] @ h[j]
        first.append(relu(heard))
        joined.append(around)
    states = []
    for i in range(count):
        mean = np.mean([first[j] for j in joined[i]], axis=0)
        second = named["neighbours.weight"] @ mean + named["again.weight"] @ first[i]
        states.append(np.concatenate([h[i], relu(second + named["again.bias"])]))
    return float(named["layers.0.weight"][0] @ np.mean(states, axis=0) + named["layers.0.bias"][0])


@pytest.mark.parametrize("count", [2, 3, 9])
def test_dyna_eval_passes_messages_between_turns_as_the_formula_says(count):
    torch.manual_seed(count)
    head = GraphHead(3, (2,)).eval()
    nodes = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    turns = torch.zeros(1, 11, 3)  # padded behind the last turn
    turns[0, : count - 1] = torch.tensor(nodes[:-1])
    turns[0, count:] = 7.0
    logit = head(turns, torch.tensor([count - 1]), torch.tensor(nodes[-1:]))
    assert logit.item() == pytest.approx(by_hand(head, nodes), abs=1e-5)


def test_flow_counts_how_near_the_own_turns_of_the_speaker_come_to_what_was_foretold():
    head = FlowHead(2, (2,)).eval()
    foretold = [(9, 9), (9, 9), (1, 0), (9, 9), (3, 4)]  # after the first, second, ... turn
    del head.lstm
    head.lstm = lambda nodes: (torch.tensor([foretold], dtype=torch.float32), None)
    head.foretell = torch.nn.Identity()
    turns = torch.zeros(1, 5, 2)
    turns[0, 3] = torch.tensor([0.0, 2.0])
    logit = head(turns, torch.tensor([5]), torch.tensor([[6.0, 8.0]]))
    # The second answer is at a right angle to what was foretold: x = 0. The third has its
    # direction and twice its length: x = 1 * 5^2 / (10 * 5) = 1/2. The geometric mean of
    # (x + 1) / 2 is sqrt(1/2 * 3/4) = .6124.
    assert logit.sigmoid().item() == pytest.approx(0.6124, abs=1e-4)


def test_flow_hears_nothing_of_a_turn_before_it_has_foretold_it():
    torch.manual_seed(0)
    head = FlowHead(3, (4,)).eval()
    turns, response = torch.randn(1, 4, 3), torch.randn(1, 3)
    distances = head.distances(turns, torch.tensor([4]), response)
    changed = torch.cat([turns[:, :3], torch.randn(1, 1, 3)], dim=1)
    after = head.distances(changed, torch.tensor([4]), torch.randn(1, 3))
    assert distances.shape == (4,)
    assert after[:2].tolist() == pytest.approx(distances[:2].tolist(), abs=1e-6)
    assert abs(after[2].item() - distances[2].item()) > 1e-3


@pytest.mark.parametrize("name", ["pair", "turns", "graph", "mean", "flow"])
def test_a_score_does_not_depend_on_what_is_scored_beside_it(name):
    torch.manual_seed(0)
    units = {"pair": (3,), "turns": (3, 4), "graph": (3,), "mean": (4, 2), "flow": (3,)}[name]
    config = SentenceHeadConfig("deb", "encoder", name, 5, units, 4)
    model = SentenceHead(config.network(), config)
    generator = np.random.default_rng(0)
    asked = [("a",), ("a", "b", "c", "d", "e"), (), ("b", "c")]
    questions = [Judge("m", turns, "r") for turns in asked]
    vectors = {text: generator.normal(size=5) for text in ("a", "b", "c", "d", "e", "r", "[UNK]")}
    answers = [[vectors[embed.text] for embed in own] for own in model.asks(questions)]
    assert [len(own) for own in answers] == [2, 5, 2, 3]  # at most four turns are read
    together = dict(model.answer(questions, answers))
    for place, question in enumerate(questions):
        [(_, alone)] = model.answer([question], [answers[place]])
        assert together[place] == pytest.approx(alone, abs=1e-6)


def test_what_is_cut_is_said_and_other_encoders_are_refused():
    config = SentenceHeadConfig("deb", "encoder", "pair", 2, (2,), 1, truncate_words=3)
    model = SentenceHead(config.network(), config)
    question = Judge("m", ("never read at all by it", "one two three four"), "fine")
    [asked] = model.asks([question])
    assert asked == [Embed("encoder", "two three four"), Embed("encoder", "fine")]
    [(_, answer)] = model.answer([question], [[np.ones(2), np.ones(2)]])
    assert Judgement.read(answer).note == "turns truncated to 3 tokens"
    with pytest.raises(UsageError, match="not the encoder that it was trained with"):
        list(model.answer([question], [[np.ones(3), np.ones(3)]]))
