"""Random masked language models of the real classes, saved as the hub does."""

from __future__ import annotations

from pathlib import Path

import torch
from models.tiny_encoders import SHAPE, WINDOW, save_bert
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    DistilBertConfig,
    RobertaConfig,
)

CONFIGS = {
    "bert": BertConfig,
    "distilbert": DistilBertConfig,
    "roberta": RobertaConfig,
}


def save_masked_model(directory: Path, kind: str = "bert") -> Path:
    """3 layers of width 16 that read at most 24 tokens; all have the tokenizer of the tiny BERT."""
    save_bert(directory)
    words = len(AutoTokenizer.from_pretrained(directory))
    shape = {**SHAPE, "max_position_embeddings": WINDOW + (kind == "roberta")}
    torch.manual_seed(9)
    model = AutoModelForMaskedLM.from_config(
        CONFIGS[kind](vocab_size=words, pad_token_id=0, **shape)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(10)
            else:
                parameter.add_(0.5 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    return directory
