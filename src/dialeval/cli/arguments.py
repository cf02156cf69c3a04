"""Arguments that several verbs share, so that they are spelled and explained in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.errors import UsageError
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.readers import Samples

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Read these files or folders of dialogues, or data sets by name (see: dialeval data);"
        " - is standard input.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help="Read files as this format instead of detecting it (see: dialeval data formats).",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="Say where a field is: FIELD=PATH, such as response=output.content, prompt=question or"
        " messages=conversation.",
        show_default=False,
    ),
]
RatingColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--rating", help="Read ratings from this column. Repeat for several.", show_default=False
    ),
]
Scales = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        help="Set the rating scale, given as QUALITY=LOW..HIGH, such as overall=1..5. Repeat for"
        " several.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Take at most this many samples.", show_default=False),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Select the samples of --limit at random; the same seed selects the same samples.",
        show_default=False,
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip records with errors instead of stopping.")
]
SystemPrompt = Annotated[
    Literal["leave-out", "facts"],
    typer.Option(
        help="Leave out the system prompt of a chat log, or keep it as facts, which metrics may"
        " read and raters see."
    ),
]
LargestRecord = Annotated[
    int,
    typer.Option(
        "--largest-record",
        min=1,
        help="Refuse records of more than this many million characters, and tables with columns"
        " or cells in proportion.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more details.")]


def load_samples(
    files: list[str],
    format: str | None,
    columns: list[str] | None,
    ratings: list[str] | None,
    scales: list[str] | None,
    limit: int | None,
    seed: int | None,
    skip_bad: bool,
    system_prompt: Literal["leave-out", "facts"] = "leave-out",
    largest_record: int = USUAL,
) -> Samples:
    """Loads what these arguments ask for."""
    from dialeval.readers import load

    if seed is not None and limit is None:
        raise UsageError("--seed chooses a random selection: say with --limit how large")
    return load(
        *files,
        format=format,
        columns=parse_pairs(columns, "--map"),
        ratings=tuple(ratings or ()),
        scales=parse_scales(scales),
        system_prompt=system_prompt,
        largest_record=largest_record,
        bad="skip" if skip_bad else "raise",
        limit=limit,
        seed=seed,
    )


def parse_pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """`["a=b", "c=d"]` -> {"a": "b", "c": "d"}."""
    pairs = {}
    for item in given or ():
        key, equals, value = item.partition("=")
        if not (key and equals and value):
            raise UsageError(f"{option} {item!r}: expected NAME=VALUE")
        pairs[key] = value
    return pairs


def parse_scales(given: list[str] | None) -> dict[str, tuple[float, float]]:
    """`["overall=1..5"]` -> {"overall": (1.0, 5.0)}."""
    scales = {}
    for quality, text in parse_pairs(given, "--scale").items():
        low, dots, high = text.partition("..")
        try:
            scales[quality] = (float(low), float(high))
        except ValueError:
            dots = ""
        if not dots or not scales[quality][0] < scales[quality][1]:
            raise UsageError(f"--scale {quality}={text}: expected LOW..HIGH, such as 1..5")
    return scales
