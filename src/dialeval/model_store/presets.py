"""Presets choose the models of all metrics: what is embedded, what is larger and needs no hub
either, and what the papers used.

A preset maps a *use* to a model. A use is narrower than a role: two papers may both want a language
model and not the same one. The default of every option that names a model comes from here:

    model: str = model_option("lm", "the language model that is asked")

The preset `paper` also sets the options in which our defaults differ from the papers (`OPTIONS`).

A preset is obeyed whole or not at all: where it has no model for an option that nobody set, the
metric is refused, with the command that trains what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.model_store.catalogue import CATALOGUE
from dialeval.options import option

COMPOSITION = "composition"
"""The one use that no model serves: weights over metrics, by name or as a file."""

_DEFAULT: Mapping[str, str] = {
    "lm": "smollm2-135m-dialogue",
    "follow-ups": "smollm2-135m",
    "dialogue-lm": "smollm2-135m",
    "nli": "minilm-l6-nli",
    "encoder": "minilm-l6",
    "sentence-encoder": "minilm-l6",
    "token-encoder": "minilm-l6",
    "word-vectors": "glove-50d",
    "ruber": "ruber-glove",
    "bert-ruber": "bert-ruber-minilm-l6",
    "pone": "pone-minilm-l6",
    "mme-fluency": "mme-fluency-minilm-l6",
    "mme-relevance": "mme-relevance-minilm-l6",
    "mme-engagement": "mme-engagement-minilm-l6",
    "mme-topic": "mme-topic-glove",
    "mme-specificity": "mme-specificity-minilm-l6",
    "usr-context": "usr-context-minilm-l6",
    "usr-fact": "usr-fact-minilm-l6",
    "predictive-engage": "predictive-engage-minilm-l6",
    "grade": "grade-minilm-l6",
    "deb": "deb-minilm-l6",
    "maude": "maude-minilm-l6",
    "dyna-eval": "dyna-eval-minilm-l6",
    "flow-score": "flow-score-minilm-l6",
    "judge": "judge-minilm-l6",
    "tagger": "spacy-en-sm",
    COMPOSITION: "mme-crs",
}

FETCHED: Mapping[str, str] = {"dialogrpt": "microsoft/DialogRPT-updown"}
"""What nothing embedded serves, in no preset either: the metric asks this model of the hub, and
whoever lacks it is told how to fetch it. `models get --preset default` leaves it alone."""

PRESETS: Mapping[str, Mapping[str, str]] = {
    "default": _DEFAULT,
    "large": {
        **_DEFAULT,
        "encoder": "mpnet-base",
        "sentence-encoder": "mpnet-base",
        "token-encoder": "mpnet-base",
        "nli": "mpnet-nli",
        "llm-judge": "qwen2.5-coder-1.5b",
        "judge": "judge-mpnet",
    },
    "paper": {
        "lm": "gpt2",
        "follow-ups": "facebook/blenderbot-400M-distill",
        "dialogue-lm": "microsoft/DialoGPT-large",
        **FETCHED,
        "nli": "roberta-large-mnli",
        "encoder": "bert-base-uncased",
        "mme-specificity": "bert-base-uncased",
        "sentence-encoder": "princeton-nlp/sup-simcse-bert-base-uncased",
        "token-encoder": "roberta-large",
        "word-vectors": "glove-50d",
        "tagger": "spacy-en-sm",
    },
}
"""
lm                log P(response | context) and log P(response): coherence, fluency
follow-ups        FULL, follow-up-contrast
dialogue-lm       FED
nli               contradictions between answers: consistency
encoder           the states of an encoder: PONE, BERT-RUBER, Deep AM-FM
ruber, bert-ruber, pone, mme-*, grade, deb, maude, dyna-eval, flow-score, usr-*, predictive-engage
                  the scorers of these metrics; those of the papers are not public
mme-specificity   the masked language model of specificity: BERT brings its own head
dialogrpt         feedback on Reddit: DialogRPT; nothing embedded takes its place
sentence-encoder  diversity; what the judges of MME-CRS start from
token-encoder     BERTScore
judge             what people would rate: judge
llm-judge         a language model that is asked for a rating: llm-judge. No embedded one can judge
composition       the weights of mme-crs and mme-avg, which hold for the models of their terms
"""

_SIMCSE = "--full --model princeton-nlp/sup-simcse-bert-base-uncased"
_BERT = "--full --model bert-base-uncased"
_PAIRS = (
    "dialeval train mme-relevance --architecture cross-encoder --stop-words removed"
    " --data dailydialog"
)
_FROZEN_BERT, _FROZEN_ROBERTA = "--model bert-base-uncased", "--model roberta-base"

_DEB = "dialeval train deb --data dailydialog++ --data dailydialog"

TRAINED: Mapping[str, Mapping[str, str]] = {
    "paper": {
        "ruber": "dialeval train ruber --data dailydialog -o DIR",
        "bert-ruber": "dialeval train bert-ruber --data dailydialog"
        " --model bert-base-uncased -o DIR",
        "pone": "dialeval train pone --data dailydialog --model bert-base-uncased -o DIR",
        "grade": "dialeval train grade --data dailydialog --model NUMBERBATCH --encoder"
        " bert-base-uncased -o DIR",
        "deb": f"{_DEB} {_FROZEN_BERT} -o DIR",
        "maude": f"dialeval train maude --data personachat {_FROZEN_BERT} -o DIR",
        "dyna-eval": f"dialeval train dyna-eval --data empathetic {_FROZEN_ROBERTA} -o DIR",
        "flow-score": "dialeval train flow-score --data dailydialog --data empathetic"
        f" {_FROZEN_BERT} -o DIR",
        "predictive-engage": "dialeval train predictive-engage --data CONVAI2017.json --data engage"
        f" {_FROZEN_BERT} -o DIR",
        "usr-context": f"dialeval train usr-context --data topical-chat {_FROZEN_ROBERTA} -o DIR",
        "usr-fact": f"dialeval train usr-fact --data personachat {_FROZEN_ROBERTA} -o DIR",
        "mme-fluency": f"dialeval train mme-fluency --data dailydialog {_SIMCSE} -o DIR",
        "mme-relevance": f"{_PAIRS} {_SIMCSE} -o DIR",
        "mme-topic": "dialeval train mme-topic --data dailydialog --model NUMBERBATCH -o DIR",
        "mme-engagement": "dialeval train mme-engagement --target label --per-source 0"
        f" --data CONVAI2017.json {_SIMCSE} -o DIR",
        COMPOSITION: "dialeval train mme --as-published"
        " --backbone princeton-nlp/sup-simcse-bert-base-uncased --vectors NUMBERBATCH"
        " --data dailydialog --data CONVAI2017.json --data dstc10 -o DIR",
        "usl-h:fluency": f"dialeval train mme-fluency --data dailydialog {_BERT} -o DIR",
        "usl-h:relevance": f"{_PAIRS} {_BERT} -o DIR",
    },
}
"""What a preset has no model for, but the command that makes one of what the paper used. A key is a
use, or `METRIC:OPTION` where the paper of that metric started from something else."""


OPTIONS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "paper": {
        "deep-am-fm": {"pooling": "pooler"},
        "mme-specificity": {"masks": "0", "scale": "quartile"},
        "usl-h": {"masks": "0"},
        "usr": {"masks": "0"},
    },
}
"""Preset -> metric -> options that it sets where nobody else did: the layer on top of BERT, words
hidden one by one, a scale from the 25th to the 75th percentile."""


def model_option(use: str, summary: str) -> Any:
    """Returns an option of a metric that names a model, by default the embedded one for this use.

    What no embedded model serves has to be fetched (`FETCHED`).
    """
    return option({**FETCHED, **PRESETS["default"]}[use], summary, use=use)


def preset_models(preset: str) -> list[str]:
    """Returns the models of a preset and those that they stand on, each once."""
    if preset not in PRESETS:
        raise UsageError(
            f"no preset {preset!r}.{did_you_mean(preset, PRESETS)} There are: {', '.join(PRESETS)}"
        )
    models = [model for use, model in PRESETS[preset].items() if use != COMPOSITION]
    bases = [entry.base for model in models if (entry := CATALOGUE.get(model)) and entry.base]
    return list(dict.fromkeys((*models, *bases)))


def preset_model(preset: str, use: str) -> str:
    """Returns the model that a preset has for a use: `preset_model("default", "lm")`."""
    preset_models(preset)
    if use not in PRESETS[preset]:
        raise UsageError(
            f"the preset {preset!r} has no model for {use!r}. It has one for:"
            f" {', '.join(PRESETS[preset])}"
        )
    return PRESETS[preset][use]


def preset_options(
    preset: str,
    metric: str,
    uses: Mapping[str, str],
    given: Mapping[str, object],
    without_model: str = "",
) -> dict[str, str]:
    """Returns the options of a metric that name models, and others in which the papers differ from
    our defaults (`OPTIONS`), as the preset sets them where nobody else did.

    `uses` are those of the metric: option -> use. `without_model` is what the metric has to say
    where a preset has none.
    """
    preset_models(preset)
    asked = {name: use for name, use in uses.items() if name not in given}
    known = {**FETCHED, **PRESETS[preset]}
    if lacking := {name: use for name, use in asked.items() if use not in known}:
        raise UsageError(
            without_model
            or f"the preset {preset!r} has no model for {metric!r} ({', '.join(lacking)})."
            + "".join(_way_out(preset, metric, name, use) for name, use in lacking.items())
            + "\nOr leave the metric out: name those that you want with -m."
        )
    others = OPTIONS.get(preset, {}).get(metric, {})
    return {
        **{name: known[use] for name, use in asked.items()},
        **{name: value for name, value in others.items() if name not in given},
    }


def _way_out(preset: str, metric: str, name: str, use: str) -> str:
    """Returns how to get what a preset lacks, and how to name it."""
    known = TRAINED.get(preset, {})
    if use == COMPOSITION:
        return (
            " The weights that come with dialeval hold for the embedded models. Train the five"
            f" judges and fit weights:\n  {known.get(use, 'dialeval train mme')}\nThen name those:"
            f" -m {metric}:{name}=DIR/crs.json"
        )
    command = known.get(f"{metric}:{name}") or known.get(use)
    if command is None:
        return f"\n  Name one yourself: -m {metric}:{name}=NAME. See: dialeval models"
    return f"\n  Train one: {command}, then name it: -m {metric}:{name}=DIR"
