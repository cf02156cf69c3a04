"""What is here, what can be fetched: the rows behind `dialeval models`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialeval.models.catalogue import CATALOGUE, Entry, Hub, Package, Role, Wheel
from dialeval.models.hub import commit_of
from dialeval.models.identity import KnownDigests
from dialeval.models.locate import entry_directory, locate
from dialeval.models.presets import PRESETS
from dialeval.models.source import check_is_whole
from dialeval.models.store import damage, read_record


@dataclass(frozen=True)
class Listed:
    """One model. `size` is what a fetch downloads, `on_disk` what it takes here (0 if absent);
    `lacks` names the model that it stands on, where that is not here."""

    name: str
    role: Role
    licence: str
    description: str
    source: str
    size: int
    presets: tuple[str, ...]
    path: Path | None
    on_disk: int
    damage: str
    lacks: str = ""

    @property
    def is_here(self) -> bool:
        """Whether it can be asked."""
        return self.path is not None and not self.damage and not self.lacks

    def to_record(self) -> dict[str, Any]:
        """JSON-ready values."""
        path = str(self.path) if self.path else None
        return asdict(self) | {"path": path, "is_here": self.is_here}


def list_models() -> list[Listed]:
    """Every model of the catalogue, in its order."""
    return [_listed(entry) for entry in CATALOGUE.values()]


def verify(name: str) -> bool:
    """Reads every byte of a model that is here and compares its hashes; False: none are known."""
    found = locate(name)
    again = KnownDigests().again
    check_is_whole(found, again)
    if found.gguf:
        again(found.gguf)
    return bool(read_record(found.directory) or commit_of(found.directory))


def _listed(entry: Entry) -> Listed:
    path = entry_directory(entry)
    return Listed(
        name=entry.name,
        role=entry.role,
        licence=entry.licence,
        description=entry.description,
        source=_origin(entry),
        size=entry.size,
        presets=tuple(name for name, uses in PRESETS.items() if entry.name in uses.values()),
        path=path,
        on_disk=_size(path) if path else 0,
        damage=damage(path) if path else "",
        lacks=_lacks(entry),
    )


def _lacks(entry: Entry) -> str:
    """The base of an adapter or judge, if it is not here."""
    if entry.base is None:
        return ""
    path = entry_directory(CATALOGUE[entry.base])
    return "" if path and not damage(path) else entry.base


def _size(directory: Path) -> int:
    """Bytes of all files below; the hub's snapshots are links, and what they point to counts."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _origin(entry: Entry) -> str:
    match entry.source:
        case Wheel() as wheel:
            return f"wheel {wheel.package}=={wheel.version}"
        case Hub() as hub:
            return f"hub {hub.repo}@{hub.revision[:8]}"
        case Package():
            return "part of dialeval"
