"""What is painted: the right colour at the right pixel."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from dialeval.errors import UsageError
from dialeval.pictures import Bar, Drawing, bar_chart, scatter_plot
from dialeval.pictures.drawing import LIGHT, Circle, Line, Polyline, Rect, Text


def painted(*shapes, width=100, height=60, scale=2):
    return pixels(Drawing(width, height, shapes).png(scale))


def pixels(png):
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def colour(role):
    return tuple(bytes.fromhex(LIGHT[role][1:]))


def inked(image):
    """The box of everything that is not paper: left, top, right, bottom in pixels."""
    rows, columns = np.nonzero((image != 255).any(axis=2))
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_a_png_is_as_large_as_its_scale_says(scale):
    assert painted(scale=scale).shape == (60 * scale, 100 * scale, 3)


def test_shapes_are_painted_where_they_should_be():
    image = painted(
        Circle(20, 10, 5, "series1"),
        Rect(40, 20, 10, 5, "series2"),
        Line(0, 50, 100, 50, "series3", 2),
        Polyline(((60, 5), (80, 5), (80, 15)), "series4", 2),
    )
    assert tuple(image[20, 40]) == colour("series1")
    assert tuple(image[45, 90]) == colour("series2")
    assert tuple(image[100, 100]) == colour("series3")
    assert tuple(image[20, 160]) == colour("series4")
    assert tuple(image[110, 5]) == (255, 255, 255)
    assert tuple(image[8, 32]) == (255, 255, 255), "a corner of the circle's square"


def test_a_rectangle_covers_its_pixels_and_no_more():
    assert inked(painted(Rect(40, 20, 10, 5, "series2"))) == (80, 40, 99, 49)


def test_opacity_mixes_with_the_paper():
    image = painted(Rect(0, 0, 50, 50, "figure", 0.5))
    assert image[20, 20] == pytest.approx([128] * 3, abs=1)


def test_edges_are_smooth():
    image = painted(Line(0, 0, 100, 60, "figure", 1))
    assert len(np.unique(image)) > 8


def test_a_dashed_line_is_drawn_by_its_pattern():
    image = painted(Polyline(((0, 10), (100, 10)), "figure", 4, (10, 10)), scale=1)
    dark = image[10, :, 0] < 128
    assert [dark[5], dark[15], dark[25], dark[35]] == [True, False, True, False]
    assert dark.sum() == pytest.approx(50, abs=6)


def test_text_stands_at_its_anchor():
    start = inked(painted(Text(50, 40, "Hamlet", 12)))
    middle = inked(painted(Text(50, 40, "Hamlet", 12, anchor="middle")))
    end = inked(painted(Text(50, 40, "Hamlet", 12, anchor="end")))
    assert start[0] == pytest.approx(100, abs=4)
    assert (middle[0] + middle[2]) / 2 == pytest.approx(100, abs=4)
    assert end[2] == pytest.approx(100, abs=4)
    assert start[3] == pytest.approx(80, abs=2), "letters stand on the baseline"


def test_turned_text_rises_from_its_anchor():
    left, top, right, bottom = inked(painted(Text(50, 50, "Hamlet", 10, angle=-90)))
    assert bottom - top > 2 * (right - left)
    assert bottom == pytest.approx(100, abs=4)
    assert right == pytest.approx(100, abs=2)


def test_what_the_font_lacks_becomes_the_nearest_that_it_has():
    assert np.array_equal(
        painted(Text(5, 30, "caf\u00e9 −1", 12)), painted(Text(5, 30, "cafe -1", 12))
    )
    assert np.array_equal(painted(Text(5, 30, "e\u0301", 12)), painted(Text(5, 30, "e", 12)))
    assert not np.array_equal(painted(Text(5, 30, "中", 12)), painted())


def test_a_scatter_plot_has_points_of_each_colour():
    image = pixels(scatter_plot([1, 2, 3], [3, 1, 2], groups=["a", "b", "c"], line=False).png())
    for role in ("series1", "series2", "series3"):
        assert (image == colour(role)).all(axis=2).any()


def test_a_picture_too_large_for_png_says_what_to_do():
    with pytest.raises(UsageError, match=r"\.svg"):
        bar_chart([Bar(str(i), 1.0) for i in range(3000)]).png()


def test_without_pillow_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UsageError, match="pip install pillow"):
        Drawing(10, 10, ()).png()
