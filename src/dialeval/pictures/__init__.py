"""Pictures for reports and papers: SVG to look at in a browser, PNG to paste into a document.

A chart function turns numbers into a `Drawing`, a list of simple shapes; a drawing renders to
either format. The same numbers give the same bytes. Nothing is needed but Pillow, for PNG only.
"""

from __future__ import annotations

from dialeval.pictures.charts import Bar, bar_chart, histogram, line_chart, matrix_plot
from dialeval.pictures.drawing import Drawing, save
from dialeval.pictures.frame import small_multiples
from dialeval.pictures.scatter import scatter_plot

__all__ = [
    "Bar",
    "Drawing",
    "bar_chart",
    "histogram",
    "line_chart",
    "matrix_plot",
    "save",
    "scatter_plot",
    "small_multiples",
]
