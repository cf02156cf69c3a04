"""Models of the Hugging Face hub. They live in the hub's own cache, shared with other tools.

Only what is needed comes down: safetensors if there are any, else `pytorch_model.bin`, and the
small text files beside them. Never code, never another framework's copy of the weights.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.model_store.catalogue import Hub
from dialeval.model_store.store import KnownDigests
from dialeval.model_store.weights import check_directory, side_files, weight_files
from dialeval.progress import FetchProgress, Step, silent_fetch, watch_bytes
from dialeval.storage import sha256_of

_NAME = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(@(?P<revision>[\w./-]+))?")
_SMALL = ("*.json", "*.txt", "*.model", "*.jinja", "1_Pooling/config.json")
_SAFE = ("model.safetensors", "model-*-of-*.safetensors", "adapter_model.safetensors")
_TORCH = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def parse_hub(name: str) -> Hub | None:
    """`org/name` or `org/name@revision`; None for anything else."""
    match = _NAME.fullmatch(name)
    return Hub(match["repo"], match["revision"] or "main") if match else None


def find_snapshot(hub: Hub) -> Path | None:
    """Returns where the hub's cache holds this model with its weights. Never asks the network."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        return None
    try:
        path = Path(snapshot_download(hub.repo, revision=hub.revision, local_files_only=True))
        weight_files(path)
    except (OSError, ValueError, UsageError):
        return None
    return path


def damaged(snapshot: Path, digest: Callable[[Path], str]) -> list[Path]:
    """Returns the files of a snapshot that are not what they were when they were fetched.

    The files of a snapshot are links. What they point to is named after its own hash: sha256 for
    large files, git's sha1 for small ones. So no network is needed. (Where the hub's cache holds no
    links, as on Windows, there is nothing to compare with.)
    """

    def has_changed(path: Path) -> bool:
        name = path.resolve().name
        if _SHA256.fullmatch(name):
            return digest(path) != name
        return bool(_COMMIT.fullmatch(name)) and _git_sha1(path) != name

    return [path for path in (*weight_files(snapshot), *side_files(snapshot)) if has_changed(path)]


def _git_sha1(path: Path) -> str:
    content = path.read_bytes()
    start = f"blob {len(content)}\0".encode()
    return hashlib.sha1(start + content, usedforsecurity=False).hexdigest()


def commit_of(snapshot: Path) -> str:
    """The hub names a snapshot's directory after its commit."""
    return snapshot.name if _COMMIT.fullmatch(snapshot.name) else ""


def choose_files(names: Sequence[str]) -> list[str]:
    """Returns the files to fetch out of all the files of a repository."""

    def matching(patterns: Sequence[str]) -> list[str]:
        return [
            name
            for name in names
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            and name.count("/") == ("1_Pooling/" in name)
        ]

    weights = matching(_SAFE) or matching(_TORCH)
    return weights and [*weights, *matching(_SMALL)]


def fetch_hub(hub: Hub, *, model: str, progress: FetchProgress = silent_fetch) -> Path:
    """Downloads what is missing, compares the hashes that the hub lists, checks the weights."""
    if (here := find_snapshot(hub)) is not None:
        changed = damaged(here, KnownDigests().again)
        for file in changed:
            _remove(file)
        if not changed:
            return here
    try:
        from huggingface_hub import HfApi, constants, snapshot_download
    except ImportError as error:
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error

    with _clear_errors(hub, model):
        info = HfApi().model_info(hub.repo, revision=hub.revision, files_metadata=True)
        files = {file.rfilename: file for file in info.siblings or ()}
        chosen = choose_files(list(files))
        if not chosen:
            raise UsageError(
                f"{model}: this repository holds neither safetensors nor pytorch_model.bin."
                " Look on the hub for a copy that does."
            )
        if not any(name.endswith(".safetensors") for name in chosen):
            text = "no safetensors: its pytorch_model.bin goes through torch's weights_only loader"
            progress(Step(model, "notice", text=text))
        total = sum(files[name].size or 0 for name in chosen)
        store = Path(constants.HF_HUB_CACHE) / ("models--" + hub.repo.replace("/", "--"))
        with watch_bytes(store, model, total, progress), _no_bars():
            path = snapshot_download(hub.repo, revision=hub.revision, allow_patterns=chosen)
    snapshot = Path(path)
    progress(Step(model, "check"))
    for name in chosen:
        _compare(snapshot / name, files[name], model)
    check_directory(snapshot)
    return snapshot


def _compare(path: Path, listed: Any, model: str) -> None:
    """Large files are listed with their sha256; for small ones git's own hash was enough."""
    expected = listed.lfs.sha256 if listed.lfs else None
    if expected and sha256_of(path) != expected:
        _remove(path)
        raise JobError(
            f"{model}: {path.name} is not the file that the hub lists (expected sha256"
            f" {expected}); it was deleted. Run the command again."
        )


def _remove(path: Path) -> None:
    """Removes the link and what it points to, so that the hub's library fetches it again."""
    real = path.resolve()
    path.unlink()
    real.unlink(missing_ok=True)


@contextmanager
def _no_bars() -> Iterator[None]:
    from huggingface_hub import utils as hub_utils

    utils: Any = hub_utils
    hidden = utils.are_progress_bars_disabled()
    utils.disable_progress_bars()
    try:
        yield
    finally:
        if not hidden:
            utils.enable_progress_bars()


@contextmanager
def _clear_errors(hub: Hub, model: str) -> Iterator[None]:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        yield
    except GatedRepoError as error:
        raise UsageError(
            f"{model}: its authors want you to accept their terms on the hub and to log in first."
        ) from error
    except RepositoryNotFoundError as error:
        raise UsageError(
            f"the hub has no public model {hub.repo!r}. See: dialeval models"
        ) from error
    except DialevalError:
        raise
    except Exception as error:  # whatever the HTTP library of the day raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise JobError(
            f"{model}: cannot be fetched from the hub ({reason})."
            " Without network, copy the model's directory here and name its path instead."
        ) from error
