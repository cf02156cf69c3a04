"""Arguments that several verbs share, with one name and one help text for each.

The options of verbs that ask a language model on a server come last, with the functions that print
its cost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.errors import UsageError
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.models.chat_judge import Budget, Servers
    from dialeval.readers import Samples
    from dialeval.sample import Sample


def argument(**about: Any) -> Any:
    """Returns an argument whose help shows no default: there is none, or the text names it."""
    return typer.Argument(show_default=False, **about)


def option(*names: str, **about: Any) -> Any:
    """Returns an option whose help shows no default: there is none, or the text names it."""
    return typer.Option(*names, show_default=False, **about)


Files = Annotated[
    list[str],
    argument(
        metavar="FILE",
        help="Read these files or folders of dialogues, or data sets by name (see: dialeval data);"
        " - is standard input.",
    ),
]
Format = Annotated[
    str | None,
    option(
        "--format",
        "-f",
        help="Read files as this format instead of detecting it (see: dialeval data formats).",
    ),
]
Columns = Annotated[
    list[str] | None,
    option(
        "--map",
        help="Read a field from this column or path, given as FIELD=PATH, such as"
        " response=output.content, prompt=question or messages=conversation. Repeat for several.",
    ),
]
RatingColumns = Annotated[
    list[str] | None, option("--rating", help="Read ratings from this column. Repeat for several.")
]
Scales = Annotated[
    list[str] | None,
    option(
        "--scale",
        help="Set the rating scale, given as QUALITY=LOW..HIGH, such as overall=1..5. Repeat for"
        " several.",
    ),
]
Limit = Annotated[int | None, option("--limit", min=1, help="Take at most this many samples.")]
Seed = Annotated[
    int | None,
    option(
        "--seed",
        help="Select the samples of --limit at random; the same seed selects the same samples.",
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
        help="Refuse records of more than this many million characters. The limits for the columns"
        " and cells of tables change in proportion.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more details.")]
Metrics = Annotated[
    list[str] | None, option("--metric", "-m", help="Use only this metric. Repeat for several.")
]
Plot = Annotated[Path | None, option("--plot", help="Draw a picture into this .svg or .png file.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Listen on this port; 0 chooses a free one.")
]
HostNames = Annotated[
    list[str] | None,
    option("--name", help="Also accept this host name in addresses. Repeat for several."),
]
Workers = Annotated[
    int | None,
    option(
        "--workers",
        min=1,
        help="Use this many threads for resampling. The number does not change the result. Default:"
        " one per core, at most four.",
    ),
]


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
        raise UsageError("--seed selects samples at random: add --limit N to set their number")
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


def usual_workers() -> int:
    return min(4, os.cpu_count() or 1)


def check_picture(path: Path | None) -> None:
    """Raises an error before the work starts if the name of the file is wrong."""
    if path and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"--plot {path}: a picture ends in .svg or .png")


def save_picture(drawing: Any, path: Path, quiet: bool) -> None:
    from dialeval.cli.terminal import say
    from dialeval.pictures import save

    save(drawing, path)
    if not quiet:
        say(f"picture: {path}", stderr=True, style="dim")


EstimateOnly = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Print how many requests and tokens openai: models would need, and send nothing.",
    ),
]
CountedReplies = Annotated[
    int | None,
    option(
        "--samples",
        min=1,
        help="Ask each question this many times and count the replies, for a server without"
        " log-probabilities.",
    ),
]
MaxRequests = Annotated[
    int | None,
    option(
        min=0, help="Stop after this many requests to openai: models. Repeat the command to resume."
    ),
]
MaxTokens = Annotated[
    int | None, option(min=0, help="Send no request after this many tokens of openai: models.")
]
PriceIn = Annotated[
    float | None, option(min=0.0, help="Price of a million tokens sent, to show costs.")
]
PriceOut = Annotated[
    float | None, option(min=0.0, help="Price of a million tokens received, to show costs.")
]
Concurrency = Annotated[
    int | None, option(min=1, help="Ask openai: models at most this many questions at once.")
]
KeyEnv = Annotated[
    str | None, option(help="Read the API key for openai: models from this environment variable.")
]

# How `probe` and `holistic` ask a chatbot.

Queries = Annotated[
    list[str],
    option(
        "--queries",
        help="Ask the queries of this file. It holds one query per line, or dialogues (the query"
        " is the last user turn; in chat logs, every user turn), or the output of `dialeval"
        " augment`. Repeat for several.",
    ),
]
AskedAtOnce = Annotated[
    int | None,
    option(
        min=1,
        max=1000,
        help="Ask at most this many questions at once. Default: 16 for a server, an async"
        " function or a model; 1 for a command or a plain function.",
    ),
]
Timeout = Annotated[
    float, typer.Option(min=0.01, help="Wait for a reply at most this many seconds.")
]
Retries = Annotated[
    int | None,
    option(min=0, help="For openai, retry this many times after a temporary failure. Default: 3."),
]
Rate = Annotated[
    float | None, option(min=0.01, help="For openai, send at most this many requests per minute.")
]
SystemKeyEnv = Annotated[
    str | None,
    option(
        "--key-env",
        help="For openai, read the API key from this environment variable. Default:"
        " OPENAI_API_KEY, if it is set.",
    ),
]
AugmenterSeed = Annotated[int | None, option(help="Seed of the augmenters.")]
QueryLimit = Annotated[int | None, option("--limit", min=1, help="Take at most this many queries.")]
QuerySystemPrompt = Annotated[
    Literal["leave-out", "facts"],
    typer.Option(
        help="Leave out the system prompts of chat logs in --queries, or keep them as facts, which"
        " the system then gets as its prompt."
    ),
]


def servers_of(
    max_requests: int | None,
    max_tokens: int | None,
    price_in: float | None,
    price_out: float | None,
    concurrency: int | None = None,
    key_env: str | None = None,
) -> Servers:
    """Returns how to ask servers, as the options say."""
    from dialeval.chat_http import Asking
    from dialeval.models.chat_judge import Budget, Servers

    asking = Asking(concurrency=concurrency, key_env=key_env)
    return Servers(asking, Budget(max_requests, max_tokens, price_in, price_out))


def show_estimate(
    samples: Iterable[Sample], metrics: Sequence[Metric], budget: Budget, as_json: bool
) -> None:
    """Prints a line for each server that these metrics would ask."""
    import json

    from dialeval.cli.terminal import say
    from dialeval.models.chat_judge import estimate

    asked = [
        question
        for sample in samples
        for metric in metrics
        if not metric.obstacle(sample)
        for question in metric.ask(sample)
    ]
    found = estimate(asked)
    if as_json:
        records = [{"model": one.model, **one.usage().to_record(budget)} for one in found]
        typer.echo(json.dumps(records, indent=2))
        return
    for one in found:
        cost = one.usage().cost(budget)
        price = "" if cost is None else f", cost {cost:.4g}"
        say(
            f"{one.model}: {one.questions:,} questions, {one.requests:,} requests, about"
            f" {one.tokens_in:,} tokens to send and {one.tokens_out:,} to receive{price}"
        )
    if not found:
        say("No metric asks an openai: model: nothing would be sent.")


def show_spent(spent: Mapping[str, Any]) -> None:
    """Prints below a table how many requests and tokens servers received."""
    from dialeval.cli.terminal import say

    if not spent:
        return
    cost = f", cost {spent['cost']:.4g}" if "cost" in spent else ""
    say(
        f"{spent['requests']:,} requests, {spent['tokens_in']:,} tokens sent,"
        f" {spent['tokens_out']:,} received{cost}; {spent['kept']:,} stored responses reused"
    )
