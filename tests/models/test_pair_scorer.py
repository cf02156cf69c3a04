"""The scorer of BERT-RUBER and PONE, against numbers worked out outside dialeval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

from dialeval.models.pair_scorer import (  # noqa: E402
    UNKNOWN,
    PairScorerNetwork,
    context_vector,
    last_words,
)


def test_the_forward_pass_is_that_of_the_released_code(golden):
    toy = golden["scorer_forward"]["toy"]
    network = PairScorerNetwork(3, (4, 5, 2)).eval()
    weights = {"bilinear": toy["M"], "out.weight": toy["Wo"], "out.bias": toy["bo"]}
    for number in range(3):
        weights[f"hidden.{number}.weight"] = toy[f"W{number + 1}"]
        weights[f"hidden.{number}.bias"] = toy[f"b{number + 1}"]
    network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    query, response = torch.tensor([toy["q"]]), torch.tensor([toy["r"]])
    with torch.no_grad():
        score = torch.sigmoid(network(query, response))
        match = (query @ network.bilinear) @ response.T
    assert float(score) == pytest.approx(toy["score"], abs=1e-6)
    assert float(match) == pytest.approx(toy["bilinear"], abs=1e-7)


def test_a_pair_is_scored_alike_alone_and_in_a_batch():
    torch.manual_seed(0)
    network = PairScorerNetwork(6, (8, 4)).eval()
    query, response = torch.randn(10, 6), torch.randn(10, 6)
    alone = torch.cat([network(query[i : i + 1], response[i : i + 1]) for i in range(10)])
    assert torch.allclose(network(query, response), alone, atol=1e-5)


def test_the_paper_s_scorer_has_so_many_weights():
    network = PairScorerNetwork(768)
    layers = [(1537, 256), (256, 512), (512, 128), (128, 1)]
    expected = 768 * 768 + sum(inside * out + out for inside, out in layers)
    assert sum(parameter.numel() for parameter in network.parameters()) == expected


def test_a_new_matrix_lies_between_0_and_1():
    matrix = PairScorerNetwork(64).bilinear.detach()
    assert 0 <= float(matrix.min()) < 0.05
    assert 0.95 < float(matrix.max()) <= 1


def test_turns_become_a_query():
    turns = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    assert context_vector(turns, "sum").tolist() == [5, 6]
    assert context_vector(turns, "last").tolist() == [4, 4]
    # (1 * 1/4 + 0 + 4) / (1/4 + 1/2 + 1) and (0 + 2 * 1/2 + 4) / 1.75
    assert context_vector(turns, "weighted").tolist() == pytest.approx([4.25 / 1.75, 5 / 1.75])


@pytest.mark.parametrize("rule", ["sum", "weighted", "last"])
def test_a_single_turn_is_itself_and_none_is_zero(rule):
    assert context_vector(torch.tensor([[3.0, -1.0]]), rule).tolist() == [3, -1]
    assert context_vector(torch.empty(0, 2), rule).tolist() == [0, 0]


def test_the_end_of_a_text_is_kept():
    assert last_words("one two  three four", 2) == "three four"
    assert last_words("  one two ", 5) == "one two"
    assert last_words(" \t", 5) == UNKNOWN


def test_chinese_counts_characters():
    assert last_words("今天天气很好", 3) == "气很好"
    assert last_words("我喜欢 Python 语言", 3) == "Python 语言"


@given(st.text(alphabet="ab \n好字", max_size=40), st.integers(1, 12))
def test_a_cut_text_ends_like_the_whole_and_cutting_twice_is_cutting_once(text, words):
    cut = last_words(text, words)
    assert cut == UNKNOWN or text.rstrip().endswith(cut)
    assert last_words(cut, words) == cut or cut == UNKNOWN


def test_dropout_is_off_in_evaluation_and_on_in_training():
    network = PairScorerNetwork(4)
    query, response = torch.randn(3, 4), torch.randn(3, 4)
    network.eval()
    assert torch.equal(network(query, response), network(query, response))
    network.train()
    drawn = {tuple(np.round(network(query, response).tolist(), 6)) for _ in range(5)}
    assert len(drawn) > 1
