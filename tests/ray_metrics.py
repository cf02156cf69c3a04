"""Metrics that make trouble on a worker. In a file of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsspec import register_implementation
from fsspec.implementations.local import LocalFileSystem
from made_up import Floored, LengthModels

from dialeval.errors import JobError
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score


class Shelf(LocalFileSystem):
    """A store with URLs (`shelf://tmp/run`) that all processes of this machine see."""

    protocol = "shelf"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("shelf://").strip("/")


register_implementation("shelf", Shelf, clobber=True)


@dataclass(frozen=True)
class Shelved(Floored):
    """A metric by which workers come to know the store."""

    name = "shelved"


@dataclass(frozen=True)
class Deadly(Floored):
    """Kills its worker at one sample, as often as there are marks left in a directory."""

    name = "deadly"
    marks: str = option("", "directory of files, of which each death takes one")
    at: str = option("s30", "id of the sample")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if sample.id == self.at:
            for mark in Path(self.marks).iterdir():
                mark.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().score(sample, answers)


@dataclass(frozen=True)
class Slow(Floored):
    """Writes down which process scores, and takes its time."""

    name = "slow"
    pids: str = option("", "directory for a file for each process")
    seconds: float = option(0.01, "for each sample")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        (Path(self.pids) / str(os.getpid())).touch()
        time.sleep(self.seconds)
        return super().score(sample, answers)


class OtherWeightsElsewhere(LengthModels):
    """Models whose weights differ between the process of the test and every other one."""

    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()

    def fingerprint(self, name: str) -> str:
        return ("here" if os.getpid() == self.home else "away") * 16


class MissingElsewhere(OtherWeightsElsewhere):
    def fingerprint(self, name: str) -> str:
        if os.getpid() != self.home:
            raise JobError(f"{name!r} is not here")
        return super().fingerprint(name)
