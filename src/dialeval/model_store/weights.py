"""Weights are data. Which files of a directory are weights, which are refused, how they are read.

safetensors and GGUF hold numbers and nothing else. A `pytorch_model.bin` is a pickle, and a pickle
is a program: it is only opened by torch's `weights_only` loader, which builds tensors and refuses
the rest. Every other pickle stays closed. So does code that a model brings along.
"""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dialeval.errors import UsageError

if TYPE_CHECKING:
    import torch

Network = TypeVar("Network", bound="torch.nn.Module")
Read = TypeVar("Read")

ONE_FILE = "model.safetensors"
"""A model whose weights were not split over several files."""

LAYOUT = "dialogue.json"
"""How a model that was trained on dialogues reads them: `{"layout": "plain"}`, or `{"turns": 1}` if
it reads the last turn alone. A side file."""

_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".bin", ".dill"}
_ADVICE = (
    "Ask its author for safetensors, or convert it on a machine that may run its code:"
    " safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'model.safetensors')"
)
_LARGEST_HEADER = 100_000_000
"""The limit of the safetensors library itself."""

logger = logging.getLogger("dialeval.models")


def weight_files(directory: Path) -> list[Path]:
    """Returns the files that hold the weights: safetensors, else GGUF, else torch's .bin.

    Word vectors have no configuration; theirs are an array, or lines of text.
    """
    network = ("*.safetensors", "*.gguf", "pytorch_model*.bin")
    table = ("*.npy", "*.vec", "*.txt")
    for pattern in network if (directory / "config.json").is_file() else (*network, *table):
        if found := sorted(path for path in directory.glob(pattern) if path.is_file()):
            return found
    if pickles := sorted(p.name for p in directory.glob("*") if p.suffix.lower() in _PICKLES):
        raise UsageError(
            f"{directory}: {pickles[0]} is a pickle, which can run any program when opened;"
            f" dialeval does not open it. {_ADVICE}"
        )
    raise UsageError(
        f"{directory}: no weights here (model.safetensors, *.gguf or pytorch_model.bin)."
    )


def side_files(directory: Path) -> list[Path]:
    """Returns the small files that decide how the weights are used: configuration, vocabulary,
    template."""
    unrelated = {"card.json", "dialeval-model.json", "trainer_state.json"}
    patterns = ("*.json", "*.txt", "*.model", "*.jinja", "*.parquet", "1_Pooling/config.json")
    found = {path for pattern in patterns for path in directory.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.name not in unrelated)


def check_directory(directory: Path) -> None:
    """Refuses foreign code, closed pickles and files that are cut short. Reads headers only."""
    refuse_foreign_code(directory)
    files = weight_files(directory)
    _check_shards(directory, {path.name for path in files})
    if not any(path.name.startswith(("model", "adapter_model")) for path in files):
        # Safetensors of another name do not keep transformers from opening the .bin beside them.
        files = sorted({*files, *directory.glob("pytorch_model*.bin")})
    for path in files:
        if path.suffix == ".safetensors":
            _check_safetensors(path)
        elif path.suffix == ".bin":
            _check_torch_bin(path)


def refuse_foreign_code(directory: Path) -> None:
    """Refuses a model that needs `trust_remote_code`, which would run its author's code."""
    config = read_json(directory / "config.json")
    tokenizer = read_json(directory / "tokenizer_config.json")
    if not ("auto_map" in config or "auto_map" in tokenizer):
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if config.get("model_type") not in CONFIG_MAPPING:
        raise UsageError(
            f"{directory}: this model brings its own Python code (auto_map in its configuration)"
            " and cannot be used without running it; dialeval never does."
            " Use a model whose architecture is part of the transformers library."
        )


def read_json(path: Path) -> dict[str, Any]:
    """Reads the object in a JSON file; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}: expected a JSON object.")
    return value


class SharedWeights:
    """Files that several networks read, weights and tokenizers: each is read or mapped once.

    Five judges that stand on one encoder, and a language model with and without its adapter, take
    the memory of one. Nobody may write into a tensor that is shared: whoever trains reads files
    outside of `shared`, and has tensors of its own.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[str, Path, int, int, int], Any] = {}

    def read(self, kind: str, path: Path, how: Callable[[Path], Any]) -> Any:
        status = path.stat()
        key = (kind, path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._read:
            self._read[key] = how(path)
        return self._read[key]


_shared: ContextVar[SharedWeights | None] = ContextVar("shared", default=None)


@contextmanager
def shared(weights: SharedWeights) -> Iterator[None]:
    """While a network is loaded that only reads: its tensors may be those of others."""
    token = _shared.set(weights)
    try:
        yield
    finally:
        _shared.reset(token)


def read_once(kind: str, path: Path, how: Callable[[Path], Read]) -> Read:
    """Returns what `how` makes of a file; inside `shared`, the same object for all who ask for this
    kind of thing."""
    weights = _shared.get()
    found: Read = weights.read(kind, path, how) if weights else how(path)
    return found


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Reads a safetensors file, as 32-bit floats."""
    return dict(read_once("tensors", path, _read_tensors))


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {name: tensor.float() for name, tensor in load_file(path).items()}


def filled(make: Callable[[], Network], tensors: Mapping[str, torch.Tensor]) -> Network | None:
    """Returns a network with these weights, ready to read; None if some are missing or of another
    size.

    It is made without numbers: to draw random ones that are replaced at once takes longer than
    reading those of the file.
    """
    import torch

    with torch.device("meta"):
        network = make()
    own = network.state_dict()
    if any(n not in tensors or tensors[n].shape != blank.shape for n, blank in own.items()):
        return None
    network.load_state_dict({name: tensors[name] for name in own}, assign=True)
    return network.eval()


def replace_weights(network: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
    """Gives a network other weights, all of them. Those that it had are left as they are, for they
    may be shared; what is tied inside the network stays tied."""
    own = network.state_dict(keep_vars=True)
    if own.keys() != tensors.keys():
        raise RuntimeError(f"{sorted(own.keys() ^ tensors.keys())[0]} is on one side only")
    for name, parameter in own.items():
        if parameter.shape != tensors[name].shape:
            raise RuntimeError(f"{name} differs in size")
        parameter.data = tensors[name]


def _check_shards(directory: Path, present: set[str]) -> None:
    """Checks that the index of a model in several files names existing files, and no others."""
    for kind in ("model.safetensors", "pytorch_model.bin"):
        index = directory / f"{kind}.index.json"
        if not any(name.endswith(Path(kind).suffix) for name in present):
            continue
        named = set(read_json(index).get("weight_map", {}).values())
        if missing := sorted(named - present):
            raise _damaged(index, f"it names {missing[0]!r}, which is not here")


def _check_safetensors(path: Path) -> None:
    """Compares the size of a file with its header, which says where the last tensor ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LARGEST_HEADER):
            raise _damaged(path, "its header is cut off or is not a safetensors header")
        try:
            header = json.loads(file.read(length))
            ends = [row["data_offsets"][1] for name, row in header.items() if name[:2] != "__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise _damaged(path, "its header is not a safetensors header") from error
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise _damaged(path, f"it has {size} bytes and should have {expected}")


def _check_torch_bin(path: Path) -> None:
    import torch

    logger.warning("%s: no safetensors; opened with torch's weights_only loader", path)
    zipped = zipfile.is_zipfile(path)
    try:
        # Memory-mapped: this proves that the file holds tensors only, without reading them all.
        torch.load(path, weights_only=True, map_location="cpu", mmap=zipped)
    except Exception as error:
        raise UsageError(
            f"{path}: refused by torch's weights_only loader: it is damaged, or a pickle"
            f" that holds more than tensors and could run any program. {_ADVICE}"
        ) from error


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(f"{path}: damaged: {what}. Fetch or copy it again.")
