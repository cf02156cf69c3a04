"""The command line: all verbs in one application."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core

from dialeval.cli import (
    agree,
    answers,
    augment,
    compare,
    compose,
    data,
    doctor,
    export,
    holistic,
    metrics,
    models,
    probe,
    rate,
    report,
    score,
    serve,
    study,
    train,
    trend,
    watch,
)
from dialeval.version import __version__

RESUMED_BY = {
    "score": " With -o, repeat the command to resume.",
    "train": " Repeat the command to resume.",
}
"""Verb -> how to resume it, for the message after Ctrl-C; `probe`, `holistic` print their own."""


class Verbs(typer.core.TyperGroup):
    """Handles what typer would hide: Ctrl-C, and a pipe that was closed by its reader."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from dialeval.cli.terminal import say

            say(f"\nInterrupted.{RESUMED_BY.get(ctx.invoked_subcommand, '')}", stderr=True)
            sys.exit(130)
        except BrokenPipeError:
            # `| head` has seen enough: silence the flush at exit, too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)


_PLAIN = {"bool": "", "str": "TEXT", "path": "FILE", "file": "FILE", "directory": "FOLDER"}
_PLAIN |= dict.fromkeys(("int", "float", "int range", "float range"), "NUMBER")


def _plain_type(parameter: Any, ctx: Any) -> str:
    """Returns the type column of a help text: nothing for flags and arguments, FILE, TEXT or
    NUMBER."""
    if parameter.param_type_name == "argument":
        return ""
    if parameter.metavar is not None:
        return str(parameter.metavar)
    name: str = parameter.display_type(ctx).strip("<>").removeprefix("list[").removesuffix("]")
    return _PLAIN.get(name.lower(), name)


for _kind in (typer.core.TyperOption, typer.core.TyperArgument):
    if hasattr(
        _kind, "display_type_rich"
    ):  # typer 0.29 shows types of Python, such as <list[Path]>
        setattr(_kind, "display_type_rich", _plain_type)  # noqa: B010


app = typer.Typer(
    name="dialeval",
    cls=Verbs,
    help="Score open-domain dialogue, and measure how well metrics agree with people.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dialeval {__version__}")
        raise typer.Exit


@app.callback()
def dialeval(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Score open-domain dialogue, and measure how well metrics agree with people."""


app.command("score")(score.score)
app.command("compare", cls=compare.Compare)(compare.compare)
app.command("worst")(answers.worst)
app.command("best")(answers.best)
app.command("watch")(watch.watch)
app.command("trend")(trend.trend)
app.command("agree")(agree.agree)
app.command("raters")(agree.raters)
app.command("study")(study.study)
app.command("holistic")(holistic.holistic)
app.command("probe")(probe.probe)
app.command("show")(probe.show)
app.command("augment")(augment.augment)
app.command("report")(report.report)
app.command("export")(export.export)
app.command("serve")(serve.serve)
app.command("rate")(rate.rate)
app.command("metrics")(metrics.metrics)
app.add_typer(models.app, name="models")
app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")
app.add_typer(compose.app, name="compose")
app.command("doctor")(doctor.doctor)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Returns an application with only the verb of these arguments, or the whole application.
    typer builds every command before it runs one, which takes a tenth of a second."""
    kept = [command for command in app.registered_commands if command.name in arguments[:1]]
    if not kept:
        return app
    one = copy.copy(app)
    one.registered_commands, one.registered_groups = kept, []
    return one
