"""Writes the record of each part that ships: the sha256 of its files, compared when it is used.

    python scripts/record_adapters.py

`dialeval train` writes it itself; this is for a directory that was changed or copied by hand.
"""

from __future__ import annotations

from pathlib import Path

from dialeval.model_store.catalogue import CATALOGUE, Package
from dialeval.model_store.store import write_record
from dialeval.model_store.weights import side_files, weight_files

PACKAGE = Path(__file__).parents[1] / "src" / "dialeval"

if __name__ == "__main__":
    for entry in CATALOGUE.values():
        if isinstance(entry.source, Package):
            directory = PACKAGE / entry.source.path
            write_record(directory, {}, [*weight_files(directory), *side_files(directory)])
            print(directory)
