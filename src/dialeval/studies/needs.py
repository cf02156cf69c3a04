"""What a study needs to be on this machine, and how to get what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dialeval.datasets import find_dataset
from dialeval.errors import UsageError


@dataclass(frozen=True)
class Data:
    """A data set by name, and the files or folders of it that are read."""

    name: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """One thing that is not here, and the command that changes that."""

    what: str
    command: str

    def __str__(self) -> str:
        return f"{self.what}: {self.command}"


def find_data(wanted: Sequence[Data]) -> dict[str, Path]:
    """The folders of those data sets that are here with all files that are read."""
    found = {data.name: find_dataset(data.name) for data in wanted if not _missing_data(data)}
    return {name: folder for name, folder in found.items() if folder is not None}


def find_missing(data: Sequence[Data], models: Sequence[str]) -> list[Missing]:
    """Everything that has to be fetched or installed first."""
    missing = [lack for wanted in data for lack in _missing_data(wanted)]
    if models and find_spec("torch") is None:
        missing.append(Missing("the libraries for models", "pip install 'dialeval[models]'"))
    return missing + [lack for model in models for lack in _missing_model(model)]


def _missing_data(data: Data) -> list[Missing]:
    command = f"dialeval data get {data.name}, or DIALEVAL_DATA=DIR where it lies already"
    folder = find_dataset(data.name)
    if folder is None:
        return [Missing(f"the data set {data.name!r} is not here", command)]
    return [
        Missing(f"the data set {data.name!r} in {folder} has no {file}", command)
        for file in data.files
        if not (folder / file).exists()
    ]


def _missing_model(name: str) -> list[Missing]:
    from dialeval.model_store.locate import locate

    try:
        locate(name)
    except UsageError as error:
        # "model 'x' is not here yet. Fetch it: dialeval models get x"
        what, _, command = str(error).rpartition(". ")
        command = command.removeprefix("Fetch it: ").partition(" (")[0]
        return [Missing(what or str(error), command)]
    return []
