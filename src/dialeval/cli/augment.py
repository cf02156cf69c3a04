"""`dialeval augment FILE... --with ws|eda|ctg|random [-o FILE]`: queries in other words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import (
    Columns,
    LargestRecord,
    QueryLimit,
    Quiet,
    SkipBad,
    SystemPrompt,
    Verbose,
    argument,
    option,
    parse_pairs,
)
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.augment import Query, Tally


def augment(
    files: Annotated[
        list[str],
        argument(
            metavar="FILE",
            help="Read these files of queries or dialogues, or a text file with a query per line;"
            " - is standard input.",
        ),
    ],
    with_: Annotated[
        list[str],
        option(
            "--with",
            "-w",
            help="Make variants by ws (synonyms from WordNet), eda (random edits), ctg (a"
            " generator), or random (other queries of the file, a baseline). Options follow a"
            " colon: ws:mode=released, eda:variants=4, ctg:method=sample,top_k=10. Repeat for"
            " several.",
        ),
    ],
    out: Annotated[
        Path | None,
        option(
            "--out", "-o", help="Write the queries to this file as JSON Lines. Default: print them."
        ),
    ] = None,
    format: Annotated[
        str | None,
        option(
            "--format",
            "-f",
            help="Read files as queries, as text, or as a format that `dialeval data formats`"
            " lists.",
        ),
    ] = None,
    map: Columns = None,
    limit: QueryLimit = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the variants: the same seed gives the same ones.")
    ] = 0,
    skip_bad: SkipBad = False,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: LargestRecord = USUAL,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the counts with -o, the queries without.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write variants of queries in other words.

    The query of a dialogue is the last turn of the user. `dialeval probe` asks a chatbot the
    variants, to see how its answers vary. Variants that equal the query or another variant are left
    out and counted.
    """
    import dialeval
    from dialeval.cli.show import show_warnings
    from dialeval.cli.terminal import harmless_output, progress_bar

    with progress_bar("augmenting", quiet=quiet or as_json, noun="queries") as update:
        found = dialeval.augment(
            *files,
            with_=with_,
            out=out,
            format=format,
            columns=parse_pairs(map, "--map"),
            limit=limit,
            seed=seed,
            bad="skip" if skip_bad else "raise",
            system_prompt=system_prompt,
            largest_record=largest_record,
            progress=lambda done, total: update(done, done / total if total else None),
        )
    made, tally = found.queries, found.tally
    if as_json:
        for record in [query.to_record() for query in made] if out is None else [tally.to_record()]:
            print(json.dumps(record, ensure_ascii=False), file=harmless_output())
        return
    for query in made:
        _show(query)
    if not quiet:
        show_warnings(found.problems, verbose)
        _show_tally(tally, out)


def _show(query: Query) -> None:
    """Prints the query, and its variants with what is new in them marked."""
    from rich.text import Text

    from dialeval.augment.queries import changed_pieces
    from dialeval.cli.terminal import console, say
    from dialeval.text import clean

    say(query.query, style="bold")
    width = max((len(variant.how) for variant in query.variants), default=0)
    for variant in query.variants:
        line = Text(f"  {clean(variant.how):{width}}  ", style="dim")
        for piece, is_new in changed_pieces(query.query, variant.query):
            line.append(clean(piece), style="not dim green bold" if is_new else "not dim")
        console().print(line)
    if not query.variants:
        say("  no variant was found", style="dim")
    say()


def _show_tally(tally: Tally, out: Path | None) -> None:
    from dialeval.cli.terminal import say

    where = f" in {out}" if out else ""
    say(f"queries {tally.queries:,}, variants {tally.variants:,}{where}")
    for how, dropped in (tally.unchanged + tally.repeated).items():
        why = {"same as the query": tally.unchanged, "same as another variant": tally.repeated}
        told = ", ".join(f"{counts[how]:,} {words}" for words, counts in why.items() if counts[how])
        tries = dropped + tally.kept[how]
        say(f"{how}: no new variant in {dropped:,} of {tries:,} tries ({told})", style="dim")
    if tally.bare:
        say(
            f"queries without a variant: {tally.bare:,}. Another augmenter may find some:"
            " --with ws, --with eda, or both",
            style="yellow",
        )
