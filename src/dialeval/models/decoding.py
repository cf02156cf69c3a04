"""How a model is to write: greedy, beam search or sampling, and how many texts.

greedy  the likeliest token, again and again
beam    the `beams` likeliest beginnings are kept; a finished text is ranked by
        log P / length ** length_penalty, as transformers' `generate` does (its end counts as a
        token; 0 ranks by log P alone, as OpenNMT does)
sample  a token is drawn among the `top_k` likeliest (0: all), of these among the fewest that
        have the mass `top_p`, after the log-probabilities were divided by `temperature`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dialeval.errors import UsageError


@dataclass(frozen=True, slots=True)
class Decoding:
    """How texts are written; `count` of them, best first (samples: in the order drawn)."""

    method: Literal["greedy", "beam", "sample"] = "greedy"
    beams: int = 5
    top_k: int = 0
    top_p: float = 1.0
    temperature: float = 1.0
    max_new_tokens: int = 64
    count: int = 1
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.method not in ("greedy", "beam", "sample"):
            raise UsageError(f"no decoding {self.method!r}. There are: greedy, beam, sample")
        for name, least in (("beams", 1), ("top_k", 0), ("max_new_tokens", 1), ("count", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p must be more than 0 and at most 1, not {self.top_p}")
        if not 0 < self.temperature < float("inf"):
            raise UsageError(f"temperature must be more than 0, not {self.temperature}")
        if self.method == "greedy" and self.count > 1:
            raise UsageError(
                f"greedy decoding finds one text, not {self.count}: use beam or sample"
            )
        if self.method == "beam" and self.count > self.beams:
            raise UsageError(f"{self.beams} beams cannot give {self.count} texts: raise beams")
