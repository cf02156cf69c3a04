"""`dialeval train RECIPE --data CORPUS -o DIR`: learn a metric, or a model for one.

One file per recipe.
"""

from __future__ import annotations

import typer

from dialeval.cli.train import (
    lm,
    mme_specificity,
    mme_topic,
    nli,
    ruber,
    seq2seq,
)
from dialeval.cli.train.generated import Recipes

app = typer.Typer(
    cls=Recipes,
    rich_markup_mode="markdown",
    help="Learn a model on dialogues of your own.",
    no_args_is_help=True,
)


@app.callback()
def train() -> None:
    """Learn a model on dialogues of your own."""


app.command("lm")(lm.lm)
app.command("nli")(nli.nli)
app.command("ruber")(ruber.ruber)
app.command("seq2seq")(seq2seq.seq2seq)
app.command("generator")(seq2seq.generator)
app.command("mme-topic")(mme_topic.mme_topic)
app.command("mme-specificity")(mme_specificity.mme_specificity)
