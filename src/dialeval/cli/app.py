"""The command line: all verbs in one application."""

from __future__ import annotations

import os
import re
import sys
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

GOES_ON = {
    "score": " With -o, repeat the command to resume.",
    "train": " Repeat the command to resume.",
}
"""Verbs that resume; `probe` says so itself."""


def show_plain_types(command: Any, context: Any) -> None:
    """Shows no type beside a flag, and that of one value where several can be given."""
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif hasattr(parameter, "display_type_rich"):
            shown = parameter.display_type_rich(context) or ""
            plain = re.sub(r"list\[(.*)\]", r"\1", shown).replace(" range", "")
            parameter.display_type_rich = lambda ctx, plain=plain: plain


class Verbs(typer.core.TyperGroup):
    """Handles what typer would swallow: Ctrl-C and a reader of our output that went away."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        for one in (command, *getattr(command, "commands", {}).values()):
            if one is not None:
                show_plain_types(one, ctx)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_plain_types(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from dialeval.cli.terminal import say

            say(f"\nInterrupted.{GOES_ON.get(ctx.invoked_subcommand, '')}", stderr=True)
            sys.exit(130)
        except BrokenPipeError:
            # `| head` has seen enough: silence the flush at exit, too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)


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
