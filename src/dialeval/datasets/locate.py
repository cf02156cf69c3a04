"""Finds data sets on this machine, and resolves names.

The data directory is a root with `rated/`, `corpora/`, `nli/` and `lexical/` in it, or a flat
folder with one folder per data set. A data set is here if any of its files is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.datasets.entries import DATASETS, Dataset, Scale, find_entry
from dialeval.errors import UsageError, did_you_mean
from dialeval.remote import expand, is_url
from dialeval.storage import data_directory


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to read: a file or folder, and the reader it is made for ("": look at it)."""

    path: str | os.PathLike[str]
    format: str = ""


def find_dataset(name: str) -> Path | None:
    """Returns the folder of a data set, or the file or folder of a part (`holistic/coherence`).

    None where it is not here. An unknown name is a `UsageError`.
    """
    dataset, part = find_entry(name)
    folder = find_folder(dataset)
    if folder is None or part is None:
        return folder
    return path if (path := folder / part.path).exists() else None


def find_folder(dataset: Dataset) -> Path | None:
    """Returns the first of the places where the data set may lie that holds a file of it."""
    for folder in (data_directory() / dataset.place, data_directory() / dataset.name):
        if any((folder / file.name).is_file() for file in dataset.files):
            return folder
    return None


def missing_files(dataset: Dataset, folder: Path) -> list[str]:
    return [file.name for file in dataset.files if not (folder / file.name).is_file()]


def require_dataset(name: str) -> Path:
    """Like `find_dataset`, but a data set that is not here is an error that says how to get it."""
    if (found := find_dataset(name)) is not None:
        return found
    dataset, part = find_entry(name)
    if (folder := find_folder(dataset)) is not None and part is not None:
        raise UsageError(
            f"the data set {dataset.name!r} in {folder} has no {part.path}."
            f" Fetch it again: dialeval data get {dataset.name}"
        )
    raise UsageError(
        f"the data set {dataset.name!r} is not here: dialeval data get {dataset.name}"
        " (or, from a copy of your own: --from DIR)"
    )


def resolve(path: str | os.PathLike[str]) -> tuple[Target, ...]:
    """Returns what to read for something that a user named: a path, or the name of a data set.

    Whatever exists is itself, whatever it is called. A name that is neither stays as it is, for the
    reader to say that there is no such file; `name_hint` says what may have been meant.
    """
    given = os.fspath(path)
    if is_url(given):
        return tuple(Target(url) for url in expand(given))
    if given == "-" or os.path.lexists(given) or not is_dataset(given):
        return (Target(path),)
    dataset, part = find_entry(given)
    if part is not None:
        return (Target(require_dataset(given), part.format),)
    if not dataset.parts:
        raise UsageError(
            f"{dataset.name} is no data set that can be judged ({dataset.summary}): it is there to"
            " train with"
        )
    if _is_mixed(dataset):
        choices = ", ".join(f"{dataset.name}/{part.name}" for part in dataset.parts)
        raise UsageError(f"{dataset.name} holds several kinds of data. Name one of them: {choices}")
    return tuple(
        Target(require_dataset(f"{dataset.name}/{part.name}"), part.format)
        for part in dataset.parts
    )


def _is_mixed(dataset: Dataset) -> bool:
    """Returns whether the parts differ in their form, or use one name for qualities of two
    scales."""
    formats = {part.format for part in dataset.parts}
    return len(formats) > 1 or any(len(scales) > 1 for scales in dataset.qualities.values())


def resolve_folder(path: Path) -> Path:
    """Returns a path that exists, or the folder of the data set of this name, for code that reads
    folders."""
    if os.path.lexists(path) or not is_dataset(os.fspath(path)):
        return path
    return require_dataset(os.fspath(path))


def is_dataset(name: str) -> bool:
    try:
        find_entry(name)
    except UsageError:
        return False
    return True


def name_hint(given: str) -> str:
    """Returns what to add to `there is no such file` for something that may have been meant as a
    name."""
    if given.startswith((".", "/", "~")) or given.count("/") > 1 or Path(given).suffix:
        return ""
    names = [*DATASETS, *(f"{d.name}/{p.name}" for d in DATASETS.values() for p in d.parts)]
    return f", and no data set of that name.{did_you_mean(given, names)} See: dialeval data"


# What `dialeval data` shows: each data set, and whether it is here.

SHOWN_QUALITIES = 3


@dataclass(frozen=True, slots=True)
class Listed:
    """A data set and the state of its folder. `folder` is None where no file of it is here."""

    dataset: Dataset
    folder: Path | None
    missing: tuple[str, ...]

    @property
    def state(self) -> str:
        """In words, for a table."""
        if self.folder is None:
            by_hand = all(not file.url for file in self.dataset.files)
            return "no, by hand" if by_hand else "no"
        if self.missing:
            count = len(self.dataset.files)
            return f"{count - len(self.missing)} of {count} files"
        return "yes"

    def to_record(self) -> dict[str, Any]:
        """JSON-ready values."""
        dataset = self.dataset
        return {
            "name": dataset.name,
            "kind": dataset.kind,
            "summary": dataset.summary,
            "items": dataset.items,
            "qualities": dataset.qualities,
            "raters": dataset.raters,
            "citation": dataset.citation,
            "source": dataset.source,
            "licence": dataset.licence,
            "bytes": dataset.size,
            "parts": [
                {"name": f"{dataset.name}/{part.name}", "format": part.format, "items": part.items}
                for part in dataset.parts
            ],
            "files": [
                {
                    "name": file.name,
                    "bytes": file.size,
                    "sha256": file.sha256,
                    "url": file.url or None,
                    "here": self.folder is not None and file.name not in self.missing,
                }
                for file in dataset.files
            ],
            "here": self.folder is not None and not self.missing,
            "folder": None if self.folder is None else str(self.folder),
            "missing": list(self.missing),
            "by_hand": dataset.by_hand,
        }


def list_datasets() -> list[Listed]:
    return [inspect_dataset(dataset) for dataset in DATASETS.values()]


def inspect_dataset(dataset: Dataset) -> Listed:
    folder = find_folder(dataset)
    names = [file.name for file in dataset.files]
    return Listed(
        dataset, folder, tuple(missing_files(dataset, folder) if folder is not None else names)
    )


def quality_words(dataset: Dataset) -> str:
    """`coherence, fluency (1-5)`, or where there are many `19 qualities (0-1, 0-2, 0-4)`."""
    qualities = dataset.qualities
    if not qualities:
        return ""
    many = len(qualities) > SHOWN_QUALITIES
    names = f"{len(qualities)} qualities" if many else ", ".join(qualities)
    used = sorted({scale for scales in qualities.values() for scale in scales})
    return f"{names} ({', '.join(map(scale_words, used))})"


def scale_words(scale: Scale) -> str:
    return f"{scale[0]}-{scale[1]}"
