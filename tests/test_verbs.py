"""Every verb is one public function with the words of the command line."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import typer

import dialeval
from dialeval.cli.app import app

SCREEN = {"json", "quiet", "verbose", "open", "help", "markdown"}
"""Options that say what is printed."""

SERVERS = ("max_requests", "max_tokens", "concurrency", "key_env", "price_in", "price_out")

ELSEWHERE = {
    "agree": {"out": "Agreement.save", "plot": "Agreement.plot"},
    "compare": {
        "plot": "Comparison.plot",
        "pairs": "Comparison.rows",
        "junit": "Comparison.decisions",
        "github_summary": "Comparison.decisions",
    },
    "score": {"add": "add_metrics", "parts": "Run.table", "calibration": "Run.calibrations"}
    | dict.fromkeys((*SERVERS, "estimate"), "score(servers=...)"),
    "show": {"top": "a slice", "full": "the whole answers"},
    "compose fit": {"out": "compose.save", "card": "FittedRuns.trials"},
    "compose apply": {"out": "the returned scores"},
}
"""Options whose work is done by what the function returns."""

WORDS = {"map": "columns", "skip_bad": "bad", "with": "with_", "join": "join_by"}
"""Options that are Python words, or that `dialeval.load` calls otherwise."""

FUNCTIONS = {
    "score": [dialeval.load, dialeval.score],
    "compare": [dialeval.compare, dialeval.prefer],
    "compose fit": [dialeval.compose.fit],
    "compose apply": [dialeval.compose.apply],
} | {
    verb: [getattr(dialeval, verb)]
    for verb in (
        *("agree", "augment", "doctor", "export", "probe", "raters", "rate", "report"),
        *("holistic", "show", "study"),
    )
}


def command(verb: str):
    found = typer.main.get_command(app)
    for word in verb.split():
        found = found.commands[word]
    return found


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_the_options_of_a_verb_are_the_parameters_of_its_function(verb):
    known = {name for one in FUNCTIONS[verb] for name in inspect.signature(one).parameters}
    missing = []
    for parameter in command(verb).params:
        if parameter.param_type_name == "argument":
            continue
        long = max(parameter.opts, key=len)
        name = long.removeprefix("--").replace("-", "_")
        if name in SCREEN or name in ELSEWHERE.get(verb, {}):
            continue
        plural = name[:-1] + "ies" if name.endswith("y") else f"{name}s"
        if not known & {name, plural, WORDS.get(name, name)}:
            missing.append(long)
    assert missing == []


def test_what_is_done_elsewhere_is_an_option():
    for verb, options in ELSEWHERE.items():
        there = {
            long.removeprefix("--").replace("-", "_")
            for parameter in command(verb).params
            for long in parameter.opts
        }
        assert set(options) <= there, verb


def test_every_verb_has_a_function():
    """`serve` shows pages until it is stopped; the groups list and fetch."""
    verbs = set(typer.main.get_command(app).commands)
    functions = {verb.split()[0] for verb in FUNCTIONS} | {"train"}
    assert verbs - functions <= {"serve", "metrics", "models", "data"} | LATER
    assert all(name in dialeval.__all__ for name in functions)


LATER = {"worst", "best", "watch", "trend", "holistic"}


def commands(found):
    yield found
    for one in getattr(found, "commands", {}).values():
        yield from commands(one)


def test_help_texts_show_plain_words_and_no_types_of_python():
    shown = set()
    for one in commands(typer.main.get_command(app)):
        context = one.context_class(one)
        plain = [p for p in one.get_params(context) if p.metavar is None]
        shown |= {p.display_type_rich(ctx=context) for p in plain}
    assert shown >= {"", "FILE", "TEXT", "NUMBER"}
    assert not shown & {"bool", "str", "int", "float", "path", "file", "directory"}
    assert not any("<" in name or "list[" in name for name in shown)


def test_a_room_that_is_a_verb_can_be_called_and_still_be_imported_from():
    code = (
        "import dialeval, dialeval.probe.plan, dialeval.doctor as doctor;"
        "assert callable(dialeval.probe) and callable(doctor);"
        "from dialeval.augment import Tally;"
        "made = dialeval.augment('-', with_=['eda'], format='text');"
        "print(len(made.queries), made.tally.queries)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="do you like tea\n", capture_output=True, text=True
    )
    assert (done.stderr, done.stdout) == ("", "1 1\n")


def test_export_writes_what_the_name_says(tmp_path, capsys):
    run = dialeval.score([dialeval.Sample("s", response="a b")], ["length"])
    dialeval.export(run, out=tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text().startswith("id,dialogue,item,system,")
    dialeval.export(run, to="jsonl")
    assert '"length": 2.0' in capsys.readouterr().out
    with pytest.raises(dialeval.UsageError, match="cannot tell what to write"):
        dialeval.export(run, out=tmp_path / "scores.doc")


def test_report_takes_open_runs(tmp_path):
    run = dialeval.score([dialeval.Sample("s", response="a b")], ["length"], out=tmp_path / "run")
    written = dialeval.report(run, out=tmp_path / "page.html", rounds=99)
    assert written.shown == 1
    assert (tmp_path / "page.html").stat().st_size == written.bytes


def test_probe_takes_an_address_and_files(tmp_path):
    queries = tmp_path / "queries.txt"
    queries.write_text("do you like big dogs?\n")
    bot = "python:random_replies:reply"
    (tmp_path / "random_replies.py").write_text("def reply(messages):\n    return 'yes'\n")
    sys.path.insert(0, str(tmp_path))
    try:
        summary = dialeval.probe(bot, queries, tmp_path / "probe", with_=["eda"], seed=1)
    finally:
        sys.path.remove(str(tmp_path))
    assert summary.queries == 1
    assert len(dialeval.show(tmp_path / "probe")) == 1
