"""The two networks that learn to say the next turn, with small and published sizes.

`LstmArchitecture` is the chatbot of the papers (`models.lstm_seq2seq`). `TransformerArchitecture`
is the encoder-decoder of Vaswani et al. (2017) as OpenNMT builds it: normalised before each block
and at the end, ReLU, sinusoidal positions, embeddings times sqrt(d). That is what the class
`Pegasus` of transformers computes, so what was trained is a directory of the Hugging Face layout
and answers questions like any other encoder-decoder. Input, output and head share their embeddings,
since both sides are dialogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dialeval.errors import UsageError
from dialeval.models.loading import silence
from dialeval.networks import lstm_seq2seq
from dialeval.networks.lstm_seq2seq import LstmConfig, LstmSeq2Seq

POSITIONS = 512
"""Sinusoidal positions are computed, not learned: a reply may be longer than any that was seen."""


@dataclass(frozen=True)
class LstmArchitecture:
    """Weights start between `-spread` and `spread`; 0.1 is OpenNMT's, for hundreds of units."""

    units: int = 192
    layers: int = 2
    dropout: float = 0.1
    spread: float = 0.1

    def build(self, tokenizer: Any, history_tokens: int, reply_tokens: int) -> nn.Module:
        model = LstmSeq2Seq(
            LstmConfig(
                vocabulary=len(tokenizer),
                start=tokenizer.bos_token_id,
                units=self.units,
                layers=self.layers,
                dropout=self.dropout,
                history_tokens=history_tokens,
            )
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.uniform_(-self.spread, self.spread)
        return model

    def logits(
        self, model: Any, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        found: torch.Tensor = model(sources, lengths, targets)
        return found

    def save(self, model: Any, out: Path) -> None:
        lstm_seq2seq.save(model, out)


@dataclass(frozen=True)
class TransformerArchitecture:
    """Weights start after Glorot and Bengio (2010)."""

    layers: int = 2
    units: int = 192
    feed_forward: int = 768
    heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.units % (2 * self.heads):
            raise UsageError(
                f"{self.units} units cannot be shared by {self.heads} heads: take a multiple of"
                f" {2 * self.heads}"
            )

    def build(self, tokenizer: Any, history_tokens: int, reply_tokens: int) -> nn.Module:
        from transformers import PegasusConfig, PegasusForConditionalGeneration

        config = PegasusConfig(
            vocab_size=len(tokenizer),
            d_model=self.units,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            encoder_ffn_dim=self.feed_forward,
            decoder_ffn_dim=self.feed_forward,
            encoder_attention_heads=self.heads,
            decoder_attention_heads=self.heads,
            dropout=self.dropout,
            attention_dropout=self.dropout,
            activation_dropout=self.dropout,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=max(POSITIONS, history_tokens, reply_tokens + 1),
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.bos_token_id,
            forced_eos_token_id=None,
        )
        model = PegasusForConditionalGeneration(config)
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        return model

    def logits(
        self, model: Any, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        mask = ~lstm_seq2seq.padding_of(lengths, sources.shape[1])
        found: torch.Tensor = model(
            input_ids=sources,
            attention_mask=mask.long(),
            decoder_input_ids=targets,
            use_cache=False,
        ).logits
        return found

    def save(self, model: Any, out: Path) -> None:
        with silence():
            model.save_pretrained(out)


Architecture = LstmArchitecture | TransformerArchitecture
