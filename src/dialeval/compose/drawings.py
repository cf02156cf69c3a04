"""Weights as a picture: a matrix of qualities and metrics, or bars for a single quality."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.compose.composition import Composition
from dialeval.pictures import Bar, Drawing, bar_chart, matrix_plot


def draw_weights(composition: Composition, qualities: Sequence[str]) -> Drawing:
    note = "Weights of the sub-metrics; those of a quality sum to 1."
    if len(qualities) == 1:
        weights = composition.weights[qualities[0]]
        bars = [Bar(spec, weight) for spec, weight in zip(composition.specs, weights, strict=True)]
        return bar_chart(bars, title=f"Weights for {qualities[0]}", x_label="weight", note=note)
    values = [composition.weights[quality] for quality in qualities]
    return matrix_plot(
        list(qualities), composition.specs, values, title="Weights", note=note, low=0.0, high=1.0
    )
