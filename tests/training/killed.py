"""A training that dies in the middle, as if its process had been killed."""

from __future__ import annotations

from contextlib import contextmanager

from dialeval.training.recipe import Progress


class KilledError(Exception):
    pass


class Deadly(Progress):
    """Raises after so many steps of all stages together; None: after half of the first stage."""

    def __init__(self, step: int | None = None) -> None:
        self._step = step
        self._calls = 0

    @contextmanager
    def training(self):
        def report(state, steps):
            self._calls += 1
            if self._calls == (steps // 2 if self._step is None else self._step):
                raise KilledError

        yield report


class Told(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)
