"""What `dialeval data` shows: each data set, and whether it is here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.datasets.catalogue import DATASETS
from dialeval.datasets.dataset import Dataset, Scale
from dialeval.datasets.locate import find_folder, missing_files

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
