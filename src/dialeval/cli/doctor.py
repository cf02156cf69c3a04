"""`dialeval doctor [RUN...]`: check the installation, or every byte of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import CountedReplies, Json, KeyEnv, argument, option


def doctor(
    runs: Annotated[
        list[Path] | None,
        argument(
            metavar="RUN",
            help="Check every byte of these runs. Without any, check the installation.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        option(
            metavar="MODEL",
            help="Ask this language model to rate ten bundled answers. Check that its ratings are"
            " the same as before, the same twice in a row, and similar with other wordings.",
        ),
    ] = None,
    samples: CountedReplies = None,
    key_env: KeyEnv = None,
    as_json: Json = False,
) -> None:
    """Check the installation, or every byte of runs.

    The installation passes if all parts are present and undamaged, and if the bundled example gets
    the stored scores. A run passes if its files match the digests in its manifest, and if its means
    match its scores.
    """
    import dialeval
    from dialeval.cli.terminal import print_table, say

    findings = dialeval.doctor(*runs or (), judge=judge, samples=samples or 0, key_env=key_env)
    failed = [finding for finding in findings if finding.status == "failed"]
    if as_json:
        typer.echo(json.dumps([f.to_record() for f in findings], indent=2))
    else:
        marks = {"ok": "✓", "absent": "-", "failed": "✗"}
        print_table(
            ["", "what", "finding"], [[marks[f.status], f.what, f.finding] for f in findings]
        )
        say()
        say("Something is wrong: see ✗ above." if failed else "All is well.")
    if failed:
        raise typer.Exit(1)
