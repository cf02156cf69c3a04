"""`dialeval doctor`: is everything here, and does it give the stored scores?"""

from __future__ import annotations

import json

import typer

from dialeval.cli.arguments import Json


def doctor(as_json: Json = False) -> None:
    """Check the installation, and that the bundled example gets the scores it should."""
    from dialeval.doctor import examine
    from dialeval.terminal import print_table, say

    findings = examine()
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
