"""A trained scorer on disk: `scorer.json` says what it is, `scorer.safetensors` holds the weights.

    {"format": 1, "kind": "pair-scorer", "metric": "pone", "encoder": "minilm-l6", ...}
    {"format": 1, "kind": "ruber", "metric": "ruber", "vectors": "glove-50d", ...}
    {"format": 1, "kind": "text-judge", "metric": "mme-fluency", "encoder": "minilm-l6", ...}

A scorer reads vectors of another model. Its base is that model, by a name that `dialeval models`
knows or by path, and nothing of it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.models.weights import read_json, read_tensors
from dialeval.storage import atomic_path, write_json

if TYPE_CHECKING:
    import torch

DESCRIPTION, WEIGHTS = "scorer.json", "scorer.safetensors"
FORMAT = 1
BASES = {
    "pair-scorer": "encoder",
    "ruber": "vectors",
    "text-judge": "encoder",
    "twin-judge": "encoder",
    "masked-lm": "encoder",
    "topic-graph": "vectors",
}
"""Kind of scorer -> the field that names the model whose vectors it reads."""


def read_scorer(directory: Path) -> dict[str, Any]:
    """What `scorer.json` says; empty where there is none."""
    path = directory / DESCRIPTION
    record = read_json(path)
    if not record:
        return {}
    if record.get("format") != FORMAT:
        raise UsageError(
            f"{path}: format: {record.get('format')!r}; this dialeval reads format {FORMAT}."
        )
    kind = record.get("kind")
    if kind not in BASES:
        raise UsageError(f"{path}: kind: {kind!r} is none of {', '.join(BASES)}.")
    if not isinstance(base := record.get(BASES[kind]), str) or not base:
        raise UsageError(f"{path}: {BASES[kind]}: names no model.")
    return record


def field(directory: Path, record: Mapping[str, Any], name: str, kind: type) -> Any:
    """One value of `scorer.json`, of the type that it must have."""
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{directory / DESCRIPTION}: {name}: expected {kind.__name__}.")
    return value


def choice(directory: Path, record: Mapping[str, Any], name: str, choices: Sequence[Any]) -> Any:
    """One value of `scorer.json` that must be one of these."""
    if record.get(name) not in choices:
        known = ", ".join(choices)
        raise UsageError(
            f"{directory / DESCRIPTION}: {name}: {record.get(name)!r} is none of {known}."
        )
    return record[name]


def load_network(network: torch.nn.Module, directory: Path) -> None:
    """Fills the network with the saved weights, as 32-bit floats, and puts it into eval mode."""
    weights = load_tensors(directory)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise not_these(directory, error) from error
    network.eval()


def load_tensors(directory: Path) -> dict[str, torch.Tensor]:
    """The saved weights, as 32-bit floats."""
    from safetensors import SafetensorError

    try:
        return read_tensors(directory / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise not_these(directory, error) from error


def not_these(directory: Path, error: Exception) -> UsageError:
    return UsageError(
        f"{directory / WEIGHTS}: not the weights of {DESCRIPTION} beside it ({error})"
    )


def save_scorer(directory: Path, record: Mapping[str, Any], network: torch.nn.Module) -> None:
    """All weights of the network."""
    save_tensors(directory, record, network.state_dict())


def save_tensors(
    directory: Path, record: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> None:
    """Weights are saved as 16-bit floats; what is measured should be measured with those."""
    from safetensors.torch import save_file

    weights = {name: t.detach().cpu().half().contiguous() for name, t in tensors.items()}
    with atomic_path(directory / WEIGHTS) as temporary:
        save_file(weights, temporary)
    write_json(directory / DESCRIPTION, {"format": FORMAT, **record})
