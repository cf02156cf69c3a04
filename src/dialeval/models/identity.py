"""What identifies weights: sha256 digests, and a fingerprint made of them.

A fingerprint is `LEAD-REST`. The rest is a digest of everything that can change an answer. The lead
is what signatures show, so that people can compare it with something: for a catalogue model the
sha256 of its main weight file, for a hub model the commit, for a local directory the rest itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dialeval.errors import DialevalError
from dialeval.models.catalogue import Entry, Wheel
from dialeval.places import cache_directory
from dialeval.storage import file_stamp, sha256_of, write_json

CONVERSION = "gguf-1"
"""Part of the fingerprint of a converted GGUF: raise it when the conversion changes an answer."""

_LEAD = 16


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
    """sha256 by path, remembered in the cache directory until the file changes or until a reboot.

    A gigabyte takes a second to hash; the second run on the same directory takes none. A file has
    changed if its size, its inode or one of its times has (nobody can set the second one, of the
    inode). A disk that loses bits changes none of them: so every file is read anew once per boot,
    and by `again`, which is what `dialeval models check` uses.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_directory() / "digests.json"
        self._boot = boot_id()
        self._known = self._read()

    def of(self, path: Path) -> str:
        row = self._known.get(str(path.resolve()))
        stamp = [*file_stamp(path), self._boot]
        return row[-1] if row and row[:-1] == stamp else self.again(path)

    def again(self, path: Path) -> str:
        """Reads every byte, whatever is remembered."""
        stamp = [*file_stamp(path), self._boot]
        row = [*stamp, sha256_of(path)]
        self._known = {**self._read(), str(path.resolve()): row}
        # Without a name of the boot nothing is remembered for longer than this object.
        if self._boot:
            with suppress(
                OSError, DialevalError
            ):  # a cache that cannot be written costs time, nothing else
                rows = {key: [*row, _checksum(key, row)] for key, row in self._known.items()}
                write_json(self.path, rows)
        return str(row[-1])

    def _read(self) -> dict[str, list[Any]]:
        """The rows of this boot. A damaged file or row costs time, nothing else."""
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8")).items()
            return {
                key: row[:-1]
                for key, row in rows
                if row[-3] == self._boot and row[-1] == _checksum(key, row[:-1])
            }
        except (OSError, ValueError, AttributeError, TypeError, LookupError, RecursionError):
            return {}


def boot_id() -> str:
    """A name for the time since this machine was started; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _checksum(key: str, row: Sequence[Any]) -> str:
    text = json.dumps([key, *row])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
