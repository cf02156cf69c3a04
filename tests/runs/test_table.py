from dialeval.runs.table import Column, ScoreTable, format_column


def table(columns: int, systems: int) -> ScoreTable:
    return ScoreTable(
        columns=tuple(Column(f"metric{i}") for i in range(columns)),
        systems=tuple(f"bot{i}" for i in range(systems)),
        samples=(7,) * systems,
        cells=tuple(tuple(float(i + j) for i in range(columns)) for j in range(systems)),
        notes=("a note",),
        signatures=("metric0|v1",),
    )


def test_systems_go_down_where_there_is_room():
    rows = table(columns=2, systems=3).text(width=80)
    assert [row[0] for row in rows] == ["system", "bot0", "bot1", "bot2"]


def test_metrics_go_down_where_they_would_be_too_wide():
    rows = table(columns=20, systems=2).text(width=80)
    assert rows[0] == ["system", "bot0", "bot1"]
    assert rows[2] == ["metric0 ↑", "0.000", "1.000"]


def test_both_ways_hold_the_same_cells():
    wide, narrow = table(3, 2).text(width=500), table(3, 2).text(width=10)
    assert [list(column) for column in zip(*wide, strict=True)] == narrow


def test_a_column_has_the_same_number_of_decimals_throughout():
    assert format_column([1.0, None, 0.25]) == ["1.000", "-", "0.250"]
    assert format_column([35.0, 7.0667]) == ["35.00", "7.07"]
    assert format_column([12345.6, 1.0]) == ["12,346", "1"]


def test_the_text_of_a_table_ends_with_what_is_needed_to_trust_it():
    assert str(table(1, 1)).splitlines()[-2:] == ["a note", "metric0|v1"]


def test_the_direction_is_shown_by_an_arrow():
    titles = [Column("x", direction=d).title for d in ("higher", "lower", "neither")]
    assert titles == ["x ↑", "x ↓", "x"]
