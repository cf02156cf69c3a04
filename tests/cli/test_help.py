"""Help texts read like help texts: sentences, imperatives, no types of the language."""

import re

import pytest
import typer
from typer.testing import CliRunner

from dialeval.cli.app import app

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
