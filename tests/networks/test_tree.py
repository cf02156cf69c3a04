"""Prefix trees and how they are packed: laws that hold for any sequences."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.networks.tree import attend, grow, plan_passes, views

sequences = st.lists(st.lists(st.integers(0, 2), max_size=9).map(tuple), min_size=1, max_size=12)


def prefixes(batch):
    return {sequence[: n + 1] for sequence in batch for n in range(len(sequence))}


def test_three_sequences_by_hand():
    # 7 - 8 - 9        preorder: 7 8 9 5 6
    #   \ 5
    # 6
    forest = grow([(6,), (7, 5), (7, 8, 9)])
    assert forest.tokens.tolist() == [6, 7, 5, 8, 9]
    assert forest.depths.tolist() == [0, 0, 1, 1, 2]
    assert forest.ends.tolist() == [1, 5, 3, 5, 5]
    assert [path.tolist() for path in forest.paths] == [[0], [1, 2], [1, 3, 4]]


@given(sequences)
def test_each_distinct_prefix_is_one_node(batch):
    forest = grow(sorted(batch))
    assert len(forest.tokens) == len(prefixes(batch))
    for sequence, path in zip(sorted(batch), forest.paths, strict=True):
        assert tuple(forest.tokens[path]) == sequence
        assert forest.depths[path].tolist() == list(range(len(sequence)))


@given(sequences)
def test_a_node_sees_the_path_that_leads_to_it_and_nothing_else(batch):
    forest = grow(sorted(batch))
    expected = {}
    for path in forest.paths:
        for depth, node in enumerate(path.tolist()):
            expected[node] = path[: depth + 1].tolist()
    numbers = np.arange(len(forest.tokens))
    for view in views(forest):
        keys = numbers[view.keys] if isinstance(view.keys, slice) else view.keys.numpy()
        for node, row in zip(numbers[view.rows].tolist(), view.mask, strict=True):
            assert keys[(row == 0).numpy()].tolist() == expected[node]


@settings(max_examples=30, deadline=None)
@given(sequences, st.integers(1, 6))
def test_attention_equals_attention_over_each_path_alone(batch, rows_per_view):
    forest = grow(sorted(batch))
    nodes, generator = len(forest.tokens), torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, nodes, 8, generator=generator)
    key, value = torch.randn(2, 1, 2, nodes, 8, generator=generator)
    tree = views(forest, rows_per_view=rows_per_view)
    mixed, _ = attend(torch.nn.Identity(), query, key, value, None, tree=tree)
    for path in forest.paths:
        for depth, node in enumerate(path.tolist()):
            for head in range(4):
                over = path[: depth + 1]
                weights = (key[0, head // 2, over] @ query[0, head, node] / 8**0.5).softmax(0)
                expected = weights @ value[0, head // 2, over]
                torch.testing.assert_close(mixed[0, node, head], expected, atol=1e-5, rtol=1e-5)


@given(sequences, st.integers(1, 30))
def test_packs_hold_every_sequence_once_within_the_budget(batch, budget):
    order = plan_passes(sorted(batch))
    start = 0
    while start < len(batch):
        stop = order.next_stop(start, budget)
        assert stop > start
        tokens = order.tokens(start, stop)
        assert tokens == len(prefixes(order.sequences[start:stop]))
        assert tokens <= budget or stop == start + 1
        start = stop
    assert start == len(batch)
    assert order.minimum == len(prefixes(batch))


def test_a_pack_ends_between_dialogues_rather_than_within_one():
    first = [(1, *range(10, 20), n) for n in range(5)]
    second = [(2, *range(10, 20), n) for n in range(5)]
    order = plan_passes([*first, *second])
    assert order.next_stop(0, budget=30) == 5
