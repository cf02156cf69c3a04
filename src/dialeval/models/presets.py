"""Two presets choose the models of all metrics: what is embedded, and what the papers used.

A preset maps a *use* to a model. A use is narrower than a role: two papers may both want a language
model and not the same one.
"""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.errors import UsageError, did_you_mean

PRESETS: Mapping[str, Mapping[str, str]] = {
    "default": {
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
        "tagger": "spacy-en-sm",
    },
    "paper": {
        "lm": "gpt2",
        "follow-ups": "facebook/blenderbot-400M-distill",
        "dialogue-lm": "microsoft/DialoGPT-large",
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
follow-ups        FULL
dialogue-lm       FED
nli               contradictions between answers: consistency
encoder           mean-pooled states: PONE, BERT-RUBER
ruber, bert-ruber, pone, mme-*   the scorers of these metrics; those of the papers are not public
mme-specificity   the masked language model of specificity: BERT brings its own head
sentence-encoder  MME-CRS
token-encoder     BERTScore
"""


TRAINED: Mapping[str, Mapping[str, str]] = {
    "paper": {
        scorer: f"dialeval train {scorer} --data dailydialog --model bert-base-uncased -o DIR"
        for scorer in ("bert-ruber", "pone")
    },
}
"""What a preset has no model for, but the command that makes one of what the paper used."""


def preset_models(preset: str) -> list[str]:
    """The models of a preset, each once, in the order of their first use."""
    if preset not in PRESETS:
        raise UsageError(
            f"no preset {preset!r}.{did_you_mean(preset, PRESETS)} There are: {', '.join(PRESETS)}"
        )
    return list(dict.fromkeys(PRESETS[preset].values()))


def preset_model(preset: str, use: str) -> str:
    """The model that a preset has for a use: `preset_model("default", "lm")`."""
    preset_models(preset)
    if use not in PRESETS[preset]:
        command = TRAINED.get(preset, {}).get(use)
        raise UsageError(
            f"the preset {preset!r} has no model for {use!r}."
            + (
                f" Train one: {command}, then name it: -m {use}:model=DIR"
                if command
                else " Name one yourself: -m METRIC:model=NAME. See: dialeval models"
            )
        )
    return PRESETS[preset][use]
