"""Options of verbs that ask a language model behind a server, and what they print of its cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.models.chat_judge import Budget, Servers
    from dialeval.sample import Sample

EstimateOnly = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Print how many requests and tokens openai: models would take, and ask nothing.",
    ),
]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Stop after this many requests to openai: models. Run the command again to go on.",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=0, help="Start no request after this many tokens, likewise.", show_default=False
    ),
]
PriceIn = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="Price of a million tokens that are sent, to show costs.", show_default=False
    ),
]
PriceOut = Annotated[
    float | None,
    typer.Option(min=0.0, help="Price of a million tokens that come back.", show_default=False),
]
Concurrency = Annotated[
    int | None,
    typer.Option(min=1, help="Ask openai: models this many questions at once.", show_default=False),
]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Take the API key for openai: models from this environment variable.",
        show_default=False,
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
    """How servers are to be asked, as the options say."""
    from dialeval.chat_http.asking import Asking
    from dialeval.models.chat_judge import Budget, Servers

    asking = Asking(concurrency=concurrency, key_env=key_env)
    return Servers(asking, Budget(max_requests, max_tokens, price_in, price_out))


def show_estimate(
    samples: Iterable[Sample], metrics: Sequence[Metric], budget: Budget, as_json: bool
) -> None:
    """A line for each server that these metrics would ask."""
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
    """The foot of a table: what servers were asked."""
    from dialeval.cli.terminal import say

    if not spent:
        return
    cost = f", cost {spent['cost']:.4g}" if "cost" in spent else ""
    say(
        f"{spent['requests']:,} requests, {spent['tokens_in']:,} tokens sent,"
        f" {spent['tokens_out']:,} received{cost}; {spent['kept']:,} responses kept from before"
    )
