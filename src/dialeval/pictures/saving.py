"""Drawings to files, by their suffix."""

from __future__ import annotations

from pathlib import Path

from dialeval.errors import UsageError
from dialeval.pictures.drawing import Drawing
from dialeval.storage import atomic_path, write_text


def save(drawing: Drawing, path: str | Path) -> None:
    """Writes `.svg` or `.png`; the file appears whole or not at all."""
    path = Path(path)
    match path.suffix.lower():
        case ".svg":
            write_text(path, drawing.svg())
        case ".png":
            data = drawing.png()
            with atomic_path(path) as temporary:
                temporary.write_bytes(data)
        case other:
            found = f"not {other!r}" if other else "but it has no suffix"
            raise UsageError(f"{path}: a picture's name ends in .svg or .png, {found}")
