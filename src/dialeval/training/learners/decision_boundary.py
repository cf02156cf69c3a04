"""The decision boundary of a scorer, as a picture (appendix of the PONE paper).

Held-out pairs lie in a plane, once with the true response, once with a random one and once with one
by the weighted sampler. The plane knows nothing of any scorer, so every panel shows the same points
and only the line differs. Its axes are made of the products, number by number, of the vectors of
query and response, each of length 1 (their sum is the cosine):

    across   the direction from the mean of random negatives to that of true responses
    up       what is left of the direction from weighted negatives to true responses

both found on validation pairs, shown on test pairs. The line is where the scorer's logit is 0, as
far as the plane tells: the least-squares fit of the logits by the two coordinates. How many pairs
lie on the side of it where the scorer puts them is written below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from dialeval.models.pair_scorer import PairScorerNetwork
from dialeval.pictures import small_multiples
from dialeval.pictures.drawing import Circle, Drawing, Polyline, Shape
from dialeval.pictures.frame import WIDTH, Key, data_range, plane, sentences
from dialeval.training.examples.pair_vectors import PairData
from dialeval.training.examples.sampling import NegativeSampler, SamplerName, SamplerOptions

Floats = npt.NDArray[np.float64]

SHOWN = 200
"""Held-out pairs, three points each."""

TRUE, RANDOM, WEIGHTED = "true responses", "random negatives", "weighted negatives"
KINDS = {TRUE: "series1", RANDOM: "series2", WEIGHTED: "series3"}


@dataclass(frozen=True)
class ShownPairs:
    """The same queries with responses of each kind."""

    queries: torch.Tensor
    responses: Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class View:
    """Two directions (rows) in which pairs are looked at, in units of their spread."""

    directions: Floats

    def at(self, queries: torch.Tensor, responses: torch.Tensor) -> Floats:
        """Returns two coordinates of each pair."""
        seen: Floats = products(queries, responses) @ self.directions.T
        return seen


@dataclass(frozen=True)
class Boundary:
    """The line a * x + b * y + c = 0 of a scorer.

    follows  share of the pairs that lie on the side of the line where the scorer puts them
    correct  by kind, share of the pairs that the scorer itself tells right
    """

    line: tuple[float, float, float]
    follows: float
    correct: Mapping[str, float]


def draw_boundaries(
    networks: Mapping[str, PairScorerNetwork], data: PairData, generator: np.random.Generator
) -> Drawing:
    """Draws one panel per scorer, on the test pairs of the data."""
    view = find_view(_pairs(data, "validation", generator))
    pairs = _pairs(data, "test", generator)
    points = {kind: view.at(pairs.queries, rows) for kind, rows in pairs.responses.items()}
    rows = generator.permutation(len(pairs.queries))[:SHOWN]
    shown = {kind: found[rows] for kind, found in points.items()}
    panels = [
        _panel(title, shown, find_boundary(network, pairs, points), generator)
        for title, network in networks.items()
    ]
    return small_multiples(panels, columns=2) if len(panels) > 1 else panels[0]


def products(queries: torch.Tensor, responses: torch.Tensor) -> Floats:
    """Returns the products number by number, of vectors of length 1: they add up to the cosine."""
    unit = torch.nn.functional.normalize
    found: Floats = (unit(queries.double()) * unit(responses.double())).numpy()
    return found


def find_view(pairs: ShownPairs) -> View:
    """Finds the directions in which true responses differ most from either kind of negatives."""
    found = {kind: products(pairs.queries, rows) for kind, rows in pairs.responses.items()}
    means = {kind: rows.mean(axis=0) for kind, rows in found.items()}
    across = _unit(means[TRUE] - means[RANDOM])
    rest = means[TRUE] - means[WEIGHTED]
    directions = np.stack([across, _unit(rest - across * (across @ rest))])
    spread = (np.concatenate(list(found.values())) @ directions.T).std(axis=0)
    return View(directions / np.where(spread > 0, spread, 1.0)[:, None])


@torch.no_grad()
def find_boundary(
    network: PairScorerNetwork, pairs: ShownPairs, points: Mapping[str, Floats]
) -> Boundary:
    """Finds the line that follows the scorer's logits best."""
    network.eval()
    logits = {
        kind: network(pairs.queries, rows).double().numpy()
        for kind, rows in pairs.responses.items()
    }
    places = np.concatenate([points[kind] for kind in logits])
    given = np.concatenate(list(logits.values()))
    with_constant = np.column_stack([places, np.ones(len(places))])
    line = np.linalg.lstsq(with_constant, given, rcond=None)[0]
    a, b, c = line.tolist()
    return Boundary(
        (a, b, c),
        float(((with_constant @ line > 0) == (given > 0)).mean()),
        {kind: float(((rows > 0) == (kind == TRUE)).mean()) for kind, rows in logits.items()},
    )


def _pairs(
    data: PairData, split: Literal["validation", "test"], generator: np.random.Generator
) -> ShownPairs:
    answers = [data.corpus.texts[pair.response] for pair in getattr(data.corpus, split)]
    vectors = getattr(data, split)
    sampler = NegativeSampler(
        SamplerOptions(), answers, lambda rows: vectors.responses[rows].numpy()
    )
    negatives: dict[str, SamplerName] = {RANDOM: "random", WEIGHTED: "weighted"}
    chosen = {kind: sampler.sample(generator, name) for kind, name in negatives.items()}
    responses = {kind: vectors.responses[rows] for kind, rows in chosen.items()}
    return ShownPairs(vectors.queries, {TRUE: vectors.responses, **responses})


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _panel(
    title: str, points: Mapping[str, Floats], found: Boundary, generator: np.random.Generator
) -> Drawing:
    told = ", ".join(f"{share:.0%} of {kind}" for kind, share in found.correct.items())
    note = sentences(
        f"Told right: {told}", f"The line follows the scorer on {found.follows:.0%} of the pairs"
    )
    everything = np.concatenate(list(points.values()))
    frame = plane(
        data_range(everything[:, 0].tolist()),
        data_range(everything[:, 1].tolist()),
        title=title,
        x_label="nearer to true responses than to random negatives",
        y_label="than to weighted negatives",
        note=note,
        keys=[
            *(Key(kind, role) for kind, role in KINDS.items()),
            Key("score 0.5", "ink", line=True),
        ],
    )
    dots = [(kind, x, y) for kind, rows in points.items() for x, y in rows.tolist()]
    shapes: list[Shape] = list(frame.shapes)
    # Points are drawn in random order: the kind that is drawn last would hide the others.
    for number in generator.permutation(len(dots)).tolist():
        kind, x, y = dots[number]
        shapes.append(Circle(frame.x(x), frame.y(y), 3.0, KINDS[kind], 0.6))
    ends = crossing(found.line, (frame.x.low, frame.x.high), (frame.y.low, frame.y.high))
    if ends:
        path = tuple((frame.x(x), frame.y(y)) for x, y in ends)
        shapes.append(Polyline(path, "ink", 2.5, tip="score 0.5"))
    return Drawing(WIDTH, frame.height, tuple(shapes), title, note)


def crossing(
    line: tuple[float, float, float], across: tuple[float, float], up: tuple[float, float]
) -> list[tuple[float, float]]:
    """Returns where a * x + b * y + c = 0 enters and leaves a rectangle; nothing where it misses
    it."""
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
