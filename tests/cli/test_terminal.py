from __future__ import annotations

import re
import unicodedata

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dialeval.cli import terminal
from dialeval.cli.app import app
from dialeval.cli.terminal import print_table, say
from dialeval.text import clean

ATTACKS = [
    "\x1b[2J",
    "\x9b31m",
    "\x07",
    "\u202e",
    "\u2066",
    "\u200f",
    "\x08",
    "\r",
    "\x00",
    "\u2028",
]


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    for char in clean(text):
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_is_shown_harmless(attack, capsys):
    say(f"before{attack}after")
    print_table(["system"], [[f"x{attack}y"]])
    shown = capsys.readouterr().out
    assert attack not in shown.replace("\n", "")
    assert "before" in shown


def test_markup_in_text_is_not_interpreted(capsys):
    say("[red]not red[/red] [link=http://x]y[/link]")
    print_table(["[bold]h"], [["[/]"]])
    shown = capsys.readouterr().out
    assert "[red]not red[/red] [link=http://x]y[/link]" in shown
    assert "[bold]h" in shown
    assert "[/]" in shown


def test_ordinary_writing_is_left_alone():
    text = "Grüße, 你好, مرحبا, 👍 naïve"
    assert clean(text) == text


def test_the_words_of_people_are_not_turned_into_pictures(capsys):
    say("r/:boom: is not a run")
    assert capsys.readouterr().out == "r/:boom: is not a run\n"


def test_a_share_that_was_too_high_is_put_right(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "PLAIN_PROGRESS_SECONDS", 0.0)
    with terminal.progress_bar("scoring") as update:
        update(10, 0.62)
        update(20, 0.22)
    assert [line.split("(")[1][:3] for line in capsys.readouterr().err.splitlines()] == [
        "62%",
        "22%",
    ]


def test_a_training_says_what_its_validation_belongs_to(capsys):
    loop = pytest.importorskip("dialeval.training.loop", reason="needs the extra 'train'")
    curve = [{"epoch": -1, "step": 0, "validation_accuracy": 0.25}]
    with terminal.training_bar() as report:
        report(loop.State(step=1, curve=curve, losses=[1.0]), 1)
        report(loop.State(step=2, curve=[*curve, {"epoch": 0, "validation_accuracy": 0.75}]), 2)
    first, second = capsys.readouterr().err.splitlines()
    assert "validation accuracy 0.250 before training" in first
    assert "validation accuracy 0.750 after epoch 1" in second


def test_the_time_left_is_that_of_the_seed_at_work(monkeypatch, capsys):
    loop = pytest.importorskip("dialeval.training.loop", reason="needs the extra 'train'")
    clock = iter([0.0, 0.0, 60.0, 6000.0, 6060.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    with terminal.training_bar() as report:
        for step in (1, 2, 1, 2):  # a second seed begins much later
            report(loop.State(step=step), 11)
    assert capsys.readouterr().err.splitlines() == [
        "training: step 2 of 11, at most about 9 min left",
        "training: step 1 of 11",
        "training: step 2 of 11, at most about 9 min left",
    ]


FRAGMENT = re.compile(r"(Of|Whose|What|Which|How|Where|A|An|The|No) ")


def verbs(command, path=()):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, (*path, name))


VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_help_text_is_a_sentence_that_tells_what_to_do(path):
    command = VERBS[path]
    texts = {"the verb": command.help.split("\n\n")[0]}
    texts |= {parameter.opts[0]: parameter.help for parameter in command.params}
    for name, text in texts.items():
        assert text, f"{name} has no help"
        assert not FRAGMENT.match(text), f"{name}: {text}"
        assert text.rstrip().endswith((".", ")", "?")), f"{name}: {text}"


@pytest.mark.parametrize("path", [(), ("score",), ("compose", "fit"), ("train", "pone")])
def test_flags_show_no_type_and_options_that_repeat_show_that_of_one_value(path):
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "160"}).output
    assert "Usage" in shown
    assert not re.search(r"bool\b|list\[| range>", shown)
