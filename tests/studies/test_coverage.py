"""The list of all tables of the papers: nothing is forgotten, every command exists."""

from __future__ import annotations

import shlex
from collections import Counter

import pytest
import typer

from dialeval.cli.app import app
from dialeval.studies.coverage import TABLES, TABLES_OF, table_cells, tables_here
from dialeval.studies.study import STUDIES, Missing


def test_every_table_of_the_four_papers_stands_in_the_list_once():
    """The numbers of tables are those of the papers."""
    found = Counter((one.paper, one.table) for one in TABLES)
    assert max(found.values()) == 1
    assert TABLES_OF == {"HolisticEval": 9, "PONE": 9, "FULL": 3, "MME-CRS": 6}
    for paper, count in TABLES_OF.items():
        for number in range(1, count + 1):
            assert (paper, f"Table {number}") in found


@pytest.mark.parametrize("table", TABLES, ids=lambda one: f"{one.paper} {one.table}")
def test_the_command_of_a_table_exists_and_what_is_not_complete_says_why(table):
    verb = typer.main.get_command(app)
    words = shlex.split(table.command)
    while words and isinstance(getattr(verb, "commands", None), dict) and words[0] in verb.commands:
        verb = verb.commands[words.pop(0)]
    flags = {flag for parameter in verb.params for flag in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("-")} <= flags
    if table.command.startswith("study "):
        assert table.study in STUDIES
    assert table.missing or table.state == "complete"


def test_where_the_data_of_a_study_are_absent_its_tables_need_data():
    lack = Missing("the data set 'holistic' is not here", "dialeval data get holistic")
    found = tables_here(lambda study: [lack] if study.startswith("holistic") else [])
    by_table = {(one.paper, one.table): one for one in found}
    assert by_table["HolisticEval", "Table 9"].state == "needs data"
    assert "dialeval data get holistic" in by_table["HolisticEval", "Table 9"].missing
    assert by_table["MME-CRS", "Table 5"].state == "partial"
    header, rows = table_cells(found)
    assert header[:3] == ["paper", "table", "state"]
    assert len(rows) == len(TABLES)
