"""Where a scorer draws the line between good and bad, as a picture (appendix of the PONE paper).

The last layer reads a vector of 128 numbers for each pair, and is linear: a pair is good on one
side of a plane, bad on the other. The picture shows held-out pairs in the two directions in which
those vectors differ most (principal components), with the true response, with a random one and with
one by the weighted sampler, and the line in which the 0.5 plane cuts through the middle of them.
The pairs are the same in each panel; the directions are those of its own scorer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from dialeval.models.pair_scorer_network import PairScorerNetwork
from dialeval.pictures import small_multiples
from dialeval.pictures.drawing import Circle, Drawing, Polyline, Shape
from dialeval.pictures.frame import WIDTH, Key, plane, sentences
from dialeval.pictures.scale import data_range
from dialeval.training.fit_pair_scorer import PairData
from dialeval.training.negative_sampling import NegativeSampler, SamplerOptions

Floats = npt.NDArray[np.float64]

SHOWN = 250
"""Held-out pairs, three points each."""

KINDS = {
    "true responses": "series1",
    "random negatives": "series2",
    "weighted negatives": "series5",
}


@dataclass(frozen=True)
class Projection:
    """Points of each kind in two dimensions, and the line a * x + b * y + c = 0 between them.

    share  of the variance of the pair vectors that the two dimensions hold
    """

    points: Mapping[str, Floats]
    line: tuple[float, float, float]
    share: float
    correct: Mapping[str, float]


def draw_boundaries(
    networks: Mapping[str, PairScorerNetwork], data: PairData, generator: np.random.Generator
) -> Drawing:
    """One panel per scorer, on the test pairs of the data."""
    answers = [data.corpus.texts[pair.response] for pair in data.corpus.test]
    vectors = data.test.responses
    sampler = NegativeSampler(SamplerOptions(), answers, lambda rows: vectors[rows].numpy())
    rows = generator.permutation(len(answers))[:SHOWN]
    responses = {
        kind: vectors[chosen[rows]]
        for kind, chosen in zip(
            KINDS,
            (
                np.arange(len(answers)),
                sampler.sample(generator, "random"),
                sampler.sample(generator, "weighted"),
            ),
            strict=True,
        )
    }
    queries = data.test.queries[rows]
    panels = [
        _panel(title, project(network, queries, responses)) for title, network in networks.items()
    ]
    return small_multiples(panels, columns=2) if len(panels) > 1 else panels[0]


@torch.no_grad()
def project(
    network: PairScorerNetwork, queries: torch.Tensor, responses: Mapping[str, torch.Tensor]
) -> Projection:
    """Pair vectors on their first two principal components."""
    network.eval()
    found = {
        kind: network.pair_vectors(queries, rows).double().numpy()
        for kind, rows in responses.items()
    }
    everything = np.concatenate(list(found.values()))
    middle = everything.mean(axis=0)
    _, spread, directions = np.linalg.svd(everything - middle, full_matrices=False)
    two = directions[:2] * np.sign(directions[:2].sum(axis=1, keepdims=True) + 1e-12)
    weight = network.out.weight[0].double().numpy()
    constant = float(network.out.bias[0]) + float(weight @ middle)
    a, b = (float(value) for value in two @ weight)
    bias = float(network.out.bias[0])
    return Projection(
        {kind: (rows - middle) @ two.T for kind, rows in found.items()},
        (a, b, constant),
        float((spread[:2] ** 2).sum() / max(float((spread**2).sum()), 1e-12)),
        {
            kind: float(((rows @ weight + bias > 0) == (kind == "true responses")).mean())
            for kind, rows in found.items()
        },
    )


def _panel(title: str, found: Projection) -> Drawing:
    everything = np.concatenate(list(found.points.values()))
    note = "; ".join(f"{kind} told right: {share:.0%}" for kind, share in found.correct.items())
    note = sentences(note, f"The two dimensions hold {found.share:.0%} of the variance")
    keys = [Key(kind, role) for kind, role in KINDS.items()]
    frame = plane(
        data_range(everything[:, 0].tolist()),
        data_range(everything[:, 1].tolist()),
        title=title,
        x_label="first component",
        y_label="second component",
        note=note,
        keys=[*keys, Key("score 0.5", "ink", line=True)],
    )
    shapes: list[Shape] = list(frame.shapes)
    for kind, role in KINDS.items():
        shapes += [
            Circle(frame.x(float(x)), frame.y(float(y)), 3.0, role, 0.55)
            for x, y in found.points[kind]
        ]
    ends = crossing(found.line, (frame.x.low, frame.x.high), (frame.y.low, frame.y.high))
    if ends:
        path = tuple((frame.x(x), frame.y(y)) for x, y in ends)
        shapes.append(Polyline(path, "ink", 2, tip="score 0.5"))
    return Drawing(WIDTH, frame.height, tuple(shapes), title, note)


def crossing(
    line: tuple[float, float, float], across: tuple[float, float], up: tuple[float, float]
) -> list[tuple[float, float]]:
    """Where a * x + b * y + c = 0 enters and leaves a rectangle; nothing where it misses it."""
    a, b, c = line
    points = []
    if b:
        points += [(x, -(a * x + c) / b) for x in across]
    if a:
        points += [(-(b * y + c) / a, y) for y in up]
    inside = sorted(
        {
            (round(x, 12), round(y, 12))
            for x, y in points
            if across[0] - 1e-9 <= x <= across[1] + 1e-9 and up[0] - 1e-9 <= y <= up[1] + 1e-9
        }
    )
    return [inside[0], inside[-1]] if len(inside) > 1 else []
