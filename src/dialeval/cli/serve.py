"""`dialeval serve`: the local page over runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import HostNames, Port, Quiet, argument, option


def serve(
    directories: Annotated[
        list[Path] | None,
        argument(
            metavar="DIR",
            help="Show these runs, or the runs in these directories. Default: runs/ and the"
            " current directory.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Listen on this address. Other machines can reach any address but loopback, and"
            " then need a token."
        ),
    ] = "127.0.0.1",
    port: Port = 8000,
    token: Annotated[
        str | None,
        option(
            help="Require this token in the address of the first visit. Default: none on loopback,"
            " else a random one, which is printed."
        ),
    ] = None,
    name: HostNames = None,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as one line of JSON.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Show runs in the browser: filter, sort, search, read dialogues, edit a response.

    Nothing leaves the machine. Ctrl-C stops the server.
    """
    from dialeval.cli.terminal import say
    from dialeval.web.serving import Serving, prepare

    def tell(serving: Serving) -> None:
        if as_json:
            typer.echo(json.dumps(serving.to_record()))
        elif quiet:
            typer.echo(serving.address)
        else:
            say(f"{serving.found}. Open:\n\n    {serving.address}\n")
            if serving.elsewhere:
                say(f"From other machines:\n\n    {serving.elsewhere}\n")
            say("Ctrl-C stops it.")
        if open_browser:
            typer.launch(serving.address)

    serving = prepare(
        directories or [], host=host, port=port, token=token or "", names=tuple(name or ())
    )
    serving.run(tell)
