"""`dialeval train RECIPE --data CORPUS -o DIR`: learn a metric, or a model for one.

One file per recipe.
"""

from __future__ import annotations

import typer

from dialeval.cli.train import (
    bert_ruber,
    lm,
    mme_specificity,
    mme_topic,
    nli,
    pone,
    ruber,
    seq2seq,
    text_judges,
)

app = typer.Typer(
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
app.command("bert-ruber")(bert_ruber.bert_ruber)
app.command("pone")(pone.pone)
app.command("seq2seq")(seq2seq.seq2seq)
app.command("generator")(seq2seq.generator)
app.command("mme-fluency")(text_judges.mme_fluency)
app.command("mme-relevance")(text_judges.mme_relevance)
app.command("mme-engagement")(text_judges.mme_engagement)
app.command("mme-topic")(mme_topic.mme_topic)
app.command("mme-specificity")(mme_specificity.mme_specificity)
