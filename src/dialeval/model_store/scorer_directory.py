"""A trained scorer on disk: `scorer.json` says what it is, `scorer.safetensors` holds the weights.

    {"format": 1, "kind": "pair-scorer", "metric": "pone", "encoder": "minilm-l6", ...}
    {"format": 1, "kind": "ruber", "metric": "ruber", "vectors": "glove-50d", ...}
    {"format": 1, "kind": "text-judge", "metric": "mme-fluency", "encoder": "minilm-l6", ...}

A scorer reads vectors of another model. Its base is that model, by a name that `dialeval models`
knows or by path, and nothing of it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json, read_tensors
from dialeval.storage import atomic_path, write_json

if TYPE_CHECKING:
    import torch

DESCRIPTION, WEIGHTS = "scorer.json", "scorer.safetensors"
FORMAT = 1


@dataclass(frozen=True)
class JudgeKind:
    """What a judge of one kind is.

    loader   the function that loads its directory
    base     the field of `scorer.json` that names the model whose vectors it reads
    metrics  what judges of this kind are trained for
    alike    those of the metrics whose judges answer the same question, from other examples
    """

    loader: str
    base: str
    metrics: tuple[str, ...]
    alike: frozenset[str] = frozenset()


JUDGE_KINDS: Mapping[str, JudgeKind] = {
    "pair-scorer": JudgeKind(
        "dialeval.models.pair_scorer:load",
        base="encoder",
        metrics=("pone", "bert-ruber"),
        alike=frozenset({"pone", "bert-ruber"}),
    ),
    "ruber": JudgeKind(
        "dialeval.models.pair_scorer:load_ruber", base="vectors", metrics=("ruber",)
    ),
    "text-judge": JudgeKind(
        "dialeval.models.text_judge:load",
        base="encoder",
        metrics=("mme-fluency", "mme-relevance", "mme-engagement"),
    ),
    "twin-judge": JudgeKind(
        "dialeval.models.text_judge:load_twin", base="encoder", metrics=("mme-relevance",)
    ),
    "masked-lm": JudgeKind(
        "dialeval.models.masked_lm:load", base="encoder", metrics=("mme-specificity",)
    ),
    "topic-graph": JudgeKind(
        "dialeval.models.topic_graph:load", base="vectors", metrics=("mme-topic",)
    ),
    "grade": JudgeKind(
        "dialeval.models.topic_graph:load_grade", base="encoder", metrics=("grade",)
    ),
    "sentence-head": JudgeKind(
        "dialeval.models.sentence_head:load",
        base="encoder",
        metrics=(
            "deb",
            "maude",
            "dyna-eval",
            "flow-score",
            "predictive-engage",
            "usr-context",
            "usr-fact",
        ),
    ),
    "quality-judge": JudgeKind(
        "dialeval.models.quality_judge:load", base="encoder", metrics=("judge",)
    ),
    "quality-stack": JudgeKind(
        "dialeval.models.quality_stack:load", base="judge", metrics=("judge",)
    ),
}
"""Every kind of trained scorer, by the name that `scorer.json` gives it."""


def read_scorer(directory: Path) -> dict[str, Any]:
    """Reads what `scorer.json` says; empty where there is none."""
    path = directory / DESCRIPTION
    record = read_json(path)
    if not record:
        return {}
    if record.get("format") != FORMAT:
        raise UsageError(
            f"{path}: format: {record.get('format')!r}; this dialeval reads format {FORMAT}."
        )
    name = record.get("kind")
    kind = JUDGE_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UsageError(f"{path}: kind: {name!r} is none of {', '.join(JUDGE_KINDS)}.")
    if not isinstance(base := record.get(kind.base), str) or not base:
        raise UsageError(f"{path}: {kind.base}: names no model.")
    return record


def scorer_base(record: Mapping[str, Any]) -> str:
    """Returns the model that a scorer asks, from what `read_scorer` gave."""
    return str(record[JUDGE_KINDS[record["kind"]].base])


def field(directory: Path, record: Mapping[str, Any], name: str, kind: type) -> Any:
    """Returns one value of `scorer.json`, of the type that it must have."""
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{directory / DESCRIPTION}: {name}: expected {kind.__name__}.")
    return value


def choice(directory: Path, record: Mapping[str, Any], name: str, choices: Sequence[Any]) -> Any:
    """Returns one value of `scorer.json` that must be one of these."""
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
    """Loads the saved weights, as 32-bit floats."""
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
    """Saves all weights of the network."""
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
