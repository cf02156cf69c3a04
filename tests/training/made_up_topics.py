"""An encoder that knows four topics and nothing else."""

from __future__ import annotations

import hashlib

import numpy as np

TOPICS = ("cats", "cars", "rain", "soup")


class Topics:
    """Vectors of 8 numbers: four say which topic a text names, four are noise of its own."""

    def __init__(self) -> None:
        self.loaded = 0

    def fingerprint(self, name):
        return "topics"

    def load(self, name):
        self.loaded += 1
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            seed = int.from_bytes(hashlib.sha256(question.text.encode()).digest()[:8])
            noise = np.random.default_rng(seed).normal(size=4) * 0.3
            named = [float(topic in question.text) * 2 for topic in TOPICS]
            yield position, np.array([*named, *noise])
