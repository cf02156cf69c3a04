"""Example data that comes with the package: something to score before you have data of your own."""

from __future__ import annotations

from pathlib import Path


def three_bots() -> Path:
    """Fifteen everyday conversations, each answered by a good, a bland and a broken chatbot."""
    return Path(__file__).with_name("three-bots.jsonl")
