"""What every chart owes its reader, whatever the numbers and the names are."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pictures.picture_text import (
    HOSTILE,
    SVG,
    assert_inside,
    assert_texts_apart,
    parsed,
    texts,
)

from dialeval.errors import UsageError
from dialeval.pictures import (
    Bar,
    bar_chart,
    line_chart,
    matrix_plot,
    save,
    scatter_plot,
    small_multiples,
)
from dialeval.pictures.charts import STRONG, strength
from dialeval.pictures.drawing import (
    DARK,
    LIGHT,
    SERIES,
    Circle,
    Line,
    Polyline,
    Rect,
    colour_groups,
)
from dialeval.pictures.scatter import fit_line, spread_ties
from dialeval.training.card import draw_curve

NAN, INFINITE = float("nan"), float("inf")
anything = st.floats(allow_nan=True, allow_infinity=True)
names = st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE))
few = settings(max_examples=40, deadline=None)


def every_chart(label="label", count=12):
    """One of each kind, with `label` in every place that takes text."""
    random = np.random.default_rng(3)
    x = random.integers(1, 6, count).astype(float)
    y = x + random.normal(size=count)
    labels = [f"{label}{i}" for i in range(count)]
    words = {"title": label, "note": label}
    square = np.clip(random.normal(size=(count, count)), -1, 1).tolist()
    charts = {
        "scatter": scatter_plot(x, y, groups=labels, x_label=label, y_label=label, **words),
        "bars": bar_chart(
            [Bar(name, v, v - 0.5, v + 0.5, name) for name, v in zip(labels, y, strict=True)],
            x_label=label,
            **words,
        ),
        "matrix": matrix_plot(labels, labels, square, **words),
        "lines": line_chart(
            {name: list(zip(x, y, strict=True)) for name in labels},
            x_label=label,
            y_label=label,
            **words,
        ),
    }
    return {**charts, "multiples": small_multiples(list(charts.values()), 2, title=label)}


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_text_stays_text(label):
    for drawing in every_chart(label).values():
        root = parsed(drawing)
        allowed = {"title", "desc", "style", "g", "text", "line", "polyline", "rect", "circle"}
        assert {node.tag.removeprefix(SVG) for node in root.iter()} <= {*allowed, "svg"}
        assert len(drawing.svg()) < 400_000
        assert_inside(drawing)


@given(names, names, names)
@few
def test_any_text_gives_well_formed_xml(title, label, note):
    bars = [Bar(label, 0.5, group=title), Bar(note, None)]
    parsed(bar_chart(bars, title=title, x_label=label, note=note))


@pytest.mark.parametrize("label", ["short", "a name of some length", "W" * 300, "many words " * 40])
@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_texts_do_not_overlap_or_leave_the_frame(label, count):
    for drawing in every_chart(label, count).values():
        assert_texts_apart(drawing)


@given(st.lists(st.tuples(anything, anything), max_size=30))
@example([(0.0, 0.0)])
@example([(3e-305, 0.0)])
@example([(0.0, 0.0), (4e-107, 7e201)])
@example([(1e308, -1e308), (-1e308, 1e308)])
@example([(5e-324, -5e-324), (0.0, 0.0)])
@example([(1e16, 1.0), (1e16 + 2, 1.0 + 2**-52)])
@few
def test_any_numbers_are_drawn_within_the_frame_or_counted(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    bars = [Bar(f"b{i}", a, b, a) for i, (a, b) in enumerate(pairs)]
    for drawing in (
        scatter_plot(x, y),
        line_chart({"s": pairs}),
        line_chart({"s": pairs}, log_x=True),
        bar_chart(bars),
        matrix_plot(["x", "y"], [str(i) for i in range(len(x))], [x, y]),
    ):
        assert_inside(drawing)
        assert "nan" not in drawing.svg().replace("name", "")
        parsed(drawing)


def test_no_data_says_so():
    empty = [
        scatter_plot([], [], title="Empty"),
        scatter_plot([NAN], [1.0]),
        bar_chart([]),
        matrix_plot([], [], []),
        matrix_plot(["a"], [], [[]]),
        line_chart({}),
        line_chart({"a": []}),
        line_chart({"a": [(0.0, 1.0)]}, log_x=True),
        small_multiples([]),
    ]
    for drawing in empty:
        assert "no data" in [text.text for text in texts(drawing)]


def test_points_without_numbers_are_counted_in_the_note():
    drawing = scatter_plot([1, 2, NAN, 4], [1, 2, 3, -INFINITE], note="n = 2")
    said = [text.text for text in texts(drawing)]
    assert "n = 2. 2 of 4 points have no finite value." in said
    assert sum(isinstance(shape, Circle) for shape in drawing.shapes) == 2
    drawing = line_chart({"a": [(0, 1), (1, NAN), (2, 3), (3, 4)]})
    assert "1 of 4 points have no finite value." in [text.text for text in texts(drawing)]


def test_a_picture_speaks_to_screen_readers():
    root = parsed(scatter_plot([1, 2, 3], [2, 4, 6], title="FULL", x_label="people"))
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby") == title.get("id")
    assert root.get("aria-describedby") == description.get("id")
    assert title.text == "FULL"
    assert "3 points" in description.text
    assert "slope 2" in description.text
    assert "people from 1 to 3" in description.text


def test_points_bars_and_cells_have_tooltips():
    tips = {
        "circle": parsed(scatter_plot([1, 2], [3, 4], groups=["a", "b"], line=False)),
        "rect": parsed(bar_chart([Bar("full", 0.512345, 0.4, 0.6)])),
    }
    assert "a: (1, 3)" in [t.text for t in tips["circle"].iter(f"{SVG}title")]
    assert "full 0.5123 [0.4, 0.6]" in [t.text for t in tips["rect"].iter(f"{SVG}title")]
    cells = parsed(matrix_plot(["r"], ["c", "d"], [[0.25, None]]))
    said = [title.text for title in cells.iter(f"{SVG}title")]
    assert "r, c: 0.25" in said
    assert "r, d: undefined" in said


def test_colours_follow_the_screen_and_have_plain_attributes():
    drawing = scatter_plot([1, 2], [3, 4])
    style = parsed(drawing).find(f"{SVG}style").text
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert f"--dialeval-series1:{LIGHT['series1']}" in light
    assert f"--dialeval-series1:{DARK['series1']}" in dark
    for group in parsed(drawing).findall(f"{SVG}g"):
        assert group.get("fill").startswith("#") or group.get("stroke").startswith("#")


PRINT_ALL = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from pictures.test_picture_charts import every_chart
for drawing in every_chart(count=4).values():
    print(hashlib.sha256(drawing.svg().encode() + drawing.png(1)).hexdigest())
"""


def test_same_input_same_bytes_in_any_process():
    here = str(Path(__file__).parents[1])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PRINT_ALL, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 5


def ticks_of(drawing, axis):
    """(value, pixel) of the labelled ticks, read from the picture alone."""
    grid = [s for s in drawing.shapes if isinstance(s, Line) and s.role == "grid"]
    places = sorted({line.x1 if axis == "x" else line.y1 for line in grid if _along(line, axis)})
    found = []
    for text in texts(drawing):
        place = text.x if axis == "x" else text.y - 4
        wanted = "middle" if axis == "x" else "end"
        if (
            text.role == "muted"
            and text.anchor == wanted
            and any(abs(place - p) < 0.01 for p in places)
        ):
            found.append((float(text.text.replace("−", "-").replace(",", "")), place))
    return found


def _along(line, axis):
    return line.x1 == line.x2 if axis == "x" else line.y1 == line.y2


@given(st.integers(0, 10_000))
@few
def test_the_fitted_line_is_the_one_of_numpy(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=25) * 10.0 ** random.integers(-3, 4)
    y = x * random.normal() + random.normal(size=25)
    slope, intercept = np.polyfit(x, y, 1)
    fit = fit_line(x, y)
    assert fit.slope == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert fit.intercept == pytest.approx(intercept, rel=1e-6, abs=1e-9)


def test_the_drawn_line_lies_where_the_axes_say():
    random = np.random.default_rng(0)
    x = random.integers(1, 6, 80).astype(float)
    y = 2 * x + random.normal(size=80)
    slope, intercept = np.polyfit(x, y, 1)
    drawing = scatter_plot(x, y)
    line = next(s for s in drawing.shapes if isinstance(s, Line) and s.role == "ink")
    to_x = np.poly1d(np.polyfit(*zip(*ticks_of(drawing, "x"), strict=True), 1))
    to_y = np.poly1d(np.polyfit(*zip(*ticks_of(drawing, "y"), strict=True), 1))
    assert (line.x1, line.x2) == pytest.approx((to_x(1), to_x(5)))
    expected = (to_y(intercept + slope), to_y(intercept + 5 * slope))
    assert (line.y1, line.y2) == pytest.approx(expected)


def test_no_line_where_none_is_defined():
    assert fit_line(np.array([2.0, 2.0]), np.array([1.0, 3.0])) is None
    drawing = scatter_plot([2, 2], [1, 3])
    assert not [s for s in drawing.shapes if isinstance(s, Line) and s.role == "ink"]


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=50))
def test_jitter_moves_only_ties_and_never_towards_another_value(levels):
    values = np.array(levels, dtype=float) / 3
    moved = spread_ties(values, np.random.default_rng(1))
    for before, after in zip(values, moved, strict=True):
        if (values == before).sum() == 1 or np.ptp(values) == 0:
            assert after == before
        else:
            nearest = min(set(values), key=lambda v: abs(v - after))
            assert nearest == before


def test_jitter_can_be_turned_off():
    def places(drawing):
        return {(s.x, s.y) for s in drawing.shapes if isinstance(s, Circle)}

    x, y = [1, 1, 2, 2], [1, 1, 2, 2]
    assert len(places(scatter_plot(x, y, jitter=False))) == 2
    assert len(places(scatter_plot(x, y))) == 4


def test_many_points_stay_a_small_file():
    random = np.random.default_rng(0)
    x = random.normal(size=200_000)
    drawing = scatter_plot(x, x + random.normal(size=200_000))
    assert len(drawing.svg()) < 300_000
    assert "200,000 points" in drawing.description
    assert_inside(drawing)
    walk = list(enumerate(random.normal(size=50_000).cumsum().tolist()))
    assert len(line_chart({"walk": walk}).svg()) < 50_000


def test_thinning_a_line_keeps_its_extremes():
    points = [(float(i), math.sin(i)) for i in range(20_000)]
    points[7777] = (7777.0, 40.0)
    drawing = line_chart({"s": points})
    line = next(s for s in drawing.shapes if isinstance(s, Polyline) and len(s.points) > 2)
    to_y = np.poly1d(np.polyfit(*zip(*ticks_of(drawing, "y"), strict=True), 1))
    assert min(y for _, y in line.points) == pytest.approx(to_y(40.0))


def test_each_group_has_its_own_colour_until_they_run_out():
    drawing = scatter_plot(range(3), range(3), groups=["a", "b", "c"], line=False)
    points = [s for s in drawing.shapes if isinstance(s, Circle) and s.tip]
    assert len({point.role for point in points}) == 3
    many = [f"g{i}" for i in range(20) for _ in range(i + 1)]
    colours = colour_groups(many)
    own = {group for group, role in colours.items() if role in SERIES}
    assert own == {f"g{i}" for i in range(13, 20)}
    drawing = scatter_plot(range(len(many)), range(len(many)), groups=many)
    assert "13 others" in [text.text for text in texts(drawing)]


def test_bars_start_at_zero_and_end_at_their_value():
    drawing = bar_chart([Bar("up", 0.6), Bar("down", -0.4, -0.6, -0.2)])
    to_x = np.poly1d(np.polyfit(*zip(*ticks_of(drawing, "x"), strict=True), 1))
    up, down = (s for s in drawing.shapes if isinstance(s, Rect))
    assert (up.x, up.x + up.width) == pytest.approx((to_x(0), to_x(0.6)))
    assert (down.x, down.x + down.width) == pytest.approx((to_x(-0.4), to_x(0)))
    whisker = next(s for s in drawing.shapes if isinstance(s, Line) and s.tip)
    assert (whisker.x1, whisker.x2) == pytest.approx((to_x(-0.6), to_x(-0.2)))
    zero = next(s for s in drawing.shapes if isinstance(s, Line) and s.role == "axis")
    assert zero.x1 == zero.x2 == pytest.approx(to_x(0))


def test_an_undefined_bar_says_undefined():
    for value in (None, NAN, INFINITE):
        drawing = bar_chart([Bar("a", 0.5), Bar("b", value, 0.1, 0.2)])
        assert "undefined" in [text.text for text in texts(drawing)]
        assert sum(isinstance(s, Rect) for s in drawing.shapes) == 1


def test_neighbouring_bars_of_one_label_share_it():
    bars = [Bar("full", 0.5, group="Pearson"), Bar("full", 0.4, group="Spearman"), Bar("fed", 0.1)]
    said = [text.text for text in texts(bar_chart(bars))]
    assert said.count("full") == 1
    assert said.count("fed") == 1


def test_a_matrix_shows_numbers_and_hatches_the_undefined():
    drawing = matrix_plot(["r"], ["a", "b", "c"], [[-0.5, None, 0.123]])
    said = [text.text for text in texts(drawing)]
    assert "−0.50" in said
    assert "0.12" in said
    assert [s for s in drawing.shapes if isinstance(s, Line)]
    assert [s.role for s in drawing.shapes if isinstance(s, Rect) and s.tip] == [
        "low",
        "void",
        "high",
    ]


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0, -1, 1, 0),
        (1, -1, 1, 1),
        (-0.5, -1, 1, -0.5),
        (-3, -1, 1, -1),
        (0.25, 0, 1, 0.25),
        (3, 1, 5, 0.5),
        (-3, -5, -1, -0.5),
        (-1, -2, 4, -0.5),
    ],
)
def test_strength_of_a_cell(value, low, high, expected):
    assert strength(value, low, high) == pytest.approx(expected)


def contrast(one, other):
    """WCAG 2.2, "contrast ratio"."""

    def luminance(colour):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def rgb(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@given(value=st.floats(-1, 1))
def test_numbers_in_cells_can_be_read(theme, value):
    drawing = matrix_plot(["r"], ["c"], [[value]])
    cell = next(s for s in drawing.shapes if isinstance(s, Rect) and s.tip)
    number = next(t for t in texts(drawing) if t.role in ("bright", "figure"))
    paper = rgb(theme["paper"])
    behind = [
        cell.opacity * c + (1 - cell.opacity) * p
        for c, p in zip(rgb(theme[cell.role]), paper, strict=True)
    ]
    assert contrast(rgb(theme[number.role]), behind) >= 4.5
    assert (number.role == "bright") == (abs(value) >= STRONG[cell.role])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_series_stand_out_from_the_paper(theme):
    for role, least in {"ink": 7, "muted": 4.5, **dict.fromkeys(SERIES, 2.0)}.items():
        assert contrast(rgb(theme[role]), rgb(theme["paper"])) >= least, role


def test_a_training_curve_shows_both_losses():
    curve = [
        {"step": 0, "validation_loss": 4.0},
        {"step": 10, "train_loss": 3.0, "validation_loss": 3.5},
        {"step": 20, "train_loss": 2.0, "validation_loss": 3.0},
    ]
    root = ElementTree.fromstring(draw_curve(curve))
    said = [title.text for title in root.iter(f"{SVG}title")]
    assert "validation loss: (0, 4)" in said
    assert "train loss: (20, 2)" in said
    assert len(list(root.iter(f"{SVG}circle"))) == 5


def test_small_multiples_hold_every_part_side_by_side():
    one = scatter_plot([1, 2], [1, 2], title="one")
    two = bar_chart([Bar("two", 1.0)])
    both = small_multiples([one, two, one], columns=2, title="both")
    assert both.width == one.width + two.width
    assert len(both.shapes) == 2 * len(one.shapes) + len(two.shapes) + 1
    assert both.height > 2 * one.height
    assert "one: Scatter plot" in both.description


def test_wrong_shapes_are_usage_errors():
    for wrong in (
        lambda: scatter_plot([1], [1, 2]),
        lambda: scatter_plot([1], [1], groups=["a", "b"]),
        lambda: matrix_plot(["a"], ["b"], [[1, 2]]),
        lambda: matrix_plot(["a"], ["b"], [[1]], low=1, high=1),
        lambda: small_multiples([scatter_plot([1], [1])], columns=0),
        lambda: scatter_plot([1], [1]).png(0),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_save_writes_by_suffix_and_whole(tmp_path):
    drawing = scatter_plot([1, 2], [3, 4])
    save(drawing, tmp_path / "deep" / "a.svg")
    save(drawing, str(tmp_path / "a.PNG"))
    assert (tmp_path / "deep" / "a.svg").read_text(encoding="utf-8") == drawing.svg()
    assert (tmp_path / "a.PNG").read_bytes() == drawing.png()
    for name in ("a.pdf", "a"):
        with pytest.raises(UsageError, match=r"\.svg or \.png"):
            save(drawing, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.PNG", "deep"]
