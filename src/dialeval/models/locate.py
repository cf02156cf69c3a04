"""A name -> the directory that holds the model's weights.

A name is one of the catalogue, the path of a directory or a GGUF file, or a hub id `org/name`.
Nothing is fetched here: what is missing is an error that says how to get it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast, get_args

from dialeval.errors import UsageError, did_you_mean
from dialeval.models.catalogue import CATALOGUE, Entry, Hub, Package, Role, Wheel, find_entry
from dialeval.models.hub import find_snapshot, parse_hub
from dialeval.models.identity import wheel_fingerprint
from dialeval.models.presets import PRESETS
from dialeval.models.scorer_directory import BASES, read_scorer
from dialeval.models.store import damage, read_record
from dialeval.models.weights import read_json
from dialeval.places import models_directory


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
    """Where the model is; an error that names the next step if it is not here."""
    if entry := find_entry(name):
        directory = entry_directory(entry)
        if directory is None:
            embedded = name in PRESETS["default"].values()
            all_of_them = " (all embedded ones: dialeval models get --preset default)"
            raise UsageError(
                f"model {name!r} is not here yet. Fetch it: dialeval models get {name}"
                f"{all_of_them if embedded else ''}"
            )
        if isinstance(entry.source, Wheel) and (problem := damage(directory)):
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
    raise UsageError(f"no model {name!r}.{did_you_mean(name, CATALOGUE)} See: dialeval models")


def entry_directory(entry: Entry) -> Path | None:
    """Where a catalogue model lies, or None if it has not been fetched."""
    match entry.source:
        case Wheel():
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
        return Located(name, "judge", directory, entry, base=locate(scorer[BASES[scorer["kind"]]]))
    if entry:
        return Located(name, entry.role, directory, entry)
    config = read_json(directory / "config.json")
    gguf = sorted(directory.glob("*.gguf"))
    if gguf and not any(directory.glob("*.safetensors")):
        return Located(name, "causal-lm", directory, gguf=gguf[0])
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
    """What the model can be asked, by its class: `GPT2LMHeadModel`, `BertForMaskedLM`, ..."""
    recorded = read_record(directory).get("role")
    if recorded in get_args(Role):
        return cast("Role", recorded)
    if not config:
        if any(any(directory.glob(pattern)) for pattern in ("*.npy", "*.vec", "*.txt")):
            return "word-vectors"
        raise UsageError(f"{directory}: not a model: there is no config.json.")
    if config.get("model_type") == "dialeval-lstm":  # made by `dialeval train seq2seq`
        return "generator"
    names = config.get("architectures") or [""]
    name = str(names[0])
    if config.get("is_encoder_decoder") or name.endswith("ForConditionalGeneration"):
        return "seq2seq-lm"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal-lm"
    if name.endswith("ForSequenceClassification"):
        return "classifier"
    if name.endswith(("ForMaskedLM", "ForPreTraining", "Model")):
        return "encoder"
    raise UsageError(
        f"{directory / 'config.json'}: architectures: dialeval has no use for {name!r}."
    )
