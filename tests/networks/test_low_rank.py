"""Low-rank adapters: what is trained beside a layer is what is added to it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from transformers import AutoModel

from dialeval.errors import UsageError
from dialeval.networks.low_rank import (
    Linear,
    LowRankLinear,
    add_low_rank,
    load_low_rank,
    low_rank_tensors,
    merge_low_rank,
)

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 8, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])


@pytest.fixture
def directory(tmp_path):
    return tiny_encoders.save_bert(tmp_path / "bert")


def load(directory):
    return AutoModel.from_pretrained(directory).eval()


def states(model):
    with torch.no_grad():
        return model(input_ids=IDS, attention_mask=MASK).last_hidden_state


def trained(directory, rank=2, alpha=3.0):
    """Adapters with made-up weights, as if they had been trained."""
    model = load(directory)
    add_low_rank(model, rank, alpha, seed=1)
    torch.manual_seed(5)
    for module in model.modules():
        if isinstance(module, LowRankLinear):
            torch.nn.init.normal_(module.up, std=0.3)
    return model


def test_the_path_is_arithmetic():
    linear = torch.nn.Linear(2, 2, bias=False)
    linear.weight.data = torch.eye(2)
    layer = LowRankLinear(linear, rank=1, alpha=4.0)
    layer.down.data = torch.tensor([[1.0, 2.0]])
    layer.up.data = torch.tensor([[1.0], [-1.0]])
    # x + 4/1 * (1*3 + 2*5) * (1, -1)
    assert layer(torch.tensor([3.0, 5.0])).tolist() == [3 + 52, 5 - 52]


def test_untrained_adapters_change_nothing(directory):
    model = load(directory)
    before = states(model)
    add_low_rank(model, 4, 8.0, seed=0)
    assert torch.equal(states(model), before)


def test_merged_is_as_trained(directory):
    beside = trained(directory)
    merged = load(directory)
    merge_low_rank(merged, low_rank_tensors(beside), 3.0)
    assert not torch.allclose(states(beside), states(load(directory)), atol=1e-2)
    torch.testing.assert_close(states(merged), states(beside), atol=1e-5, rtol=1e-5)


def test_a_layer_of_ours_carries_its_path_to_the_last_bit_of_the_merged_weights():
    generator = torch.Generator().manual_seed(3)
    linear, x = Linear(6, 4), torch.randn(9, 6, generator=generator)
    down, up = (torch.randn(*size, generator=generator) for size in ((2, 6), (4, 2)))
    before = linear.weight.clone()
    merged = torch.nn.functional.linear(
        x, torch.addmm(linear.weight, up, down, alpha=1.5), linear.bias
    )
    merge_low_rank(torch.nn.Sequential(linear), {"0.down": down, "0.up": up}, 3.0)
    assert torch.equal(linear(x), merged)
    assert torch.equal(linear.weight, before)  # which others may read as well


def test_only_the_adapters_are_trained(directory):
    model = trained(directory)
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert names
    assert all(name.endswith((".up", ".down")) for name in names)
    assert not any(name.startswith("pooler") for name in names)


def test_the_seed_decides(directory):
    def downs(seed):
        model = load(directory)
        add_low_rank(model, 2, 4.0, seed)
        return [t for name, t in low_rank_tensors(model).items() if name.endswith("down")]

    assert all(torch.equal(one, other) for one, other in zip(downs(3), downs(3), strict=True))
    assert not torch.equal(downs(3)[0], downs(4)[0])


def test_adapters_of_another_model_are_refused(directory):
    tensors = low_rank_tensors(trained(directory))
    odd = next(iter(tensors))
    without = {name: tensor for name, tensor in tensors.items() if name != odd}
    with pytest.raises(UsageError, match="another model"):
        merge_low_rank(load(directory), without, 3.0)
    wide = {n: torch.cat([t, t], dim=1) if n == odd else t for n, t in tensors.items()}
    with pytest.raises(UsageError, match="differs in size"):
        merge_low_rank(load(directory), wide, 3.0)
    with pytest.raises(UsageError, match="another model"):
        load_low_rank(trained(directory), without)
    with pytest.raises(UsageError, match="differs in size"):
        load_low_rank(trained(directory), wide)
