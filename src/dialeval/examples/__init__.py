"""Example data that comes with the package: something to score before you have data of your own."""

from __future__ import annotations

from pathlib import Path


def four_bots() -> Path:
    """Fifteen everyday conversations, each answered by an attentive, a bland, a broken and a
    parroting chatbot."""
    return Path(__file__).with_name("four-bots.jsonl")
