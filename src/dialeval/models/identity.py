"""What identifies weights: sha256 digests, and a fingerprint made of them.

A fingerprint is `LEAD-REST`. The rest is a digest of everything that can change an answer. The lead
is what signatures show, so that people can compare it with something: for a catalogue model the
sha256 of its main weight file, for a hub model the commit, for a local directory the rest itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from dialeval.models.catalogue import Entry, Wheel
from dialeval.places import cache_directory
from dialeval.storage import write_json

CONVERSION = "gguf-1"
"""Part of the fingerprint of a converted GGUF: raise it when the conversion changes an answer."""

_LEAD = 16
_CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fingerprint_of(digests: Mapping[str, str], lead: str = "", extra: str = "") -> str:
    """The fingerprint of named parts; the order in which they are given does not matter."""
    text = json.dumps([sorted(digests.items()), extra])
    rest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{(lead or rest)[:_LEAD]}-{rest[:32]}"


def wheel_fingerprint(entry: Entry) -> str:
    """Known before anything is fetched: the catalogue holds all the hashes."""
    assert isinstance(entry.source, Wheel)
    files = entry.source.files
    main = max(files, key=lambda file: file.size)
    extra = CONVERSION if main.name.endswith(".gguf") else ""
    return fingerprint_of({file.name: file.sha256 for file in files}, main.sha256, extra)


class KnownDigests:
    """sha256 by path, remembered in the cache directory while size and time stay the same.

    A gigabyte takes seconds to hash; the second run on the same directory takes none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_directory() / "digests.json"
        self._known = self._read()

    def of(self, path: Path) -> str:
        status = path.stat()
        key, stamp = str(path.resolve()), [status.st_size, status.st_mtime_ns]
        row = self._known.get(key)
        if row is None or row[:2] != stamp:
            row = [*stamp, sha256_of(path)]
            self._known = {**self._read(), key: row}
            write_json(self.path, self._known)
        return str(row[2])

    def _read(self) -> dict[str, list[object]]:
        """A damaged file costs time, nothing else."""
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8"))
            return {key: row for key, row in rows.items() if len(row) == 3}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}
