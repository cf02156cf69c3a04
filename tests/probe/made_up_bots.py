"""Systems that are functions, and queries to ask them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dialeval.augment.queries import Query, QueryVariant
from dialeval.sample import Turn


class Bot:
    """Replies with a function of the history, and remembers what it was asked."""

    name = "bot"

    def __init__(
        self,
        function: Callable[[list[str]], str] = lambda said: f"re: {said[-1]}",
        at_once: int = 1,
    ) -> None:
        self.concurrency = at_once
        self.settings: dict[str, object] = {"kind": "made up"}
        self.asked: list[list[str]] = []
        self._function = function
        self._lock = threading.Lock()

    def reply(self, history) -> str:
        said = [turn.text for turn in history]
        with self._lock:
            self.asked.append(said)
        return self._function(said)

    def close(self) -> None:
        pass


def queries(count: int = 3, variants: int = 2) -> list[Query]:
    return [
        Query(
            f"q{i}",
            f"query {i}",
            (Turn("Hello!", "user"), Turn("Hi.", "system")),
            variants=tuple(QueryVariant(f"wording {j} of {i}") for j in range(1, variants + 1)),
        )
        for i in range(1, count + 1)
    ]
