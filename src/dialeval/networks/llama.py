"""Llama (Touvron et al., 2023) for reading prefix trees: one state per node (see `tree`).

    h = h + W_o attention(RMSNorm(h));   h = h + W_down (silu(W_gate n) * W_up n),  n = RMSNorm(h)

transformers has the same network, and takes some four seconds to import. This one needs torch and
safetensors only, so that ten dialogues are scored before transformers would have been loaded.
Modules are named as there. Other kinds of causal models are loaded by transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from dialeval.model_store.weights import ONE_FILE, filled, read_json, read_tensors
from dialeval.networks.low_rank import Linear, read_adapter
from dialeval.networks.tree import View, attend

DEFAULTS = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
}
"""Llama 7B, as transformers has it where a configuration is silent."""


def load(directory: Path, adapter: Path | None = None) -> Llama | None:
    """Returns the Llama of a directory in the Hugging Face layout, with an adapter (LoRA) merged
    into it; None if one of them is of another kind."""
    config: dict[str, Any] = DEFAULTS | read_json(directory / "config.json")
    rope = config.get("rope_parameters") or {}
    plain = (
        config.get("model_type") == "llama"
        and config["hidden_act"] == "silu"
        and not (config.get("attention_bias") or config.get("mlp_bias"))
        and not config.get("rope_scaling")
        and rope.get("rope_type", "default") == "default"
    )
    if not plain or not (directory / ONE_FILE).is_file():
        return None
    learned = read_adapter(adapter) if adapter else None
    # Where the head is the table of tokens, to adapt one is to change both.
    if adapter and (learned is None or learned.whole or "lm_head" in learned.targets):
        return None
    tensors = read_tensors(directory / ONE_FILE)
    table = tensors.get("model.embed_tokens.weight")
    if config.get("tie_word_embeddings") and table is not None:
        tensors.setdefault("lm_head.weight", table)
    theta = float(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))
    model = filled(lambda: Llama(config, theta), tensors)
    if model is None or model.state_dict().keys() != tensors.keys():
        return None
    return model if not learned or learned.merge_into(model) else None


class Llama(nn.Module):
    """The body, which reads trees and nothing else, and the head."""

    def __init__(self, config: dict[str, Any], theta: float) -> None:
        super().__init__()
        self.config = SimpleNamespace(**config)
        self.model = Body(self.config, theta)
        self.lm_head = nn.Linear(self.config.hidden_size, self.config.vocab_size, bias=False)

    @property
    def base_model(self) -> Body:
        return self.model

    @property
    def device(self) -> torch.device:
        return self.lm_head.weight.device

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head


class Body(nn.Module):
    """Embeddings, layers and the last norm, under the names of the weights in the file."""

    def __init__(self, config: Any, theta: float) -> None:
        super().__init__()
        rows, size = config.vocab_size, config.hidden_size
        # Not filled at random: torch would load its compiler for that, and weights come anyway.
        self.embed_tokens = nn.Embedding(rows, size, _weight=torch.empty(rows, size))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(size, eps=config.rms_norm_eps)
        self._width = getattr(config, "head_dim", None) or size // config.num_attention_heads
        self._theta = theta

    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        *,
        tree: Sequence[View],
        use_cache: bool = False,
    ) -> SimpleNamespace:
        """`last_hidden_state` of a forest that is written as a batch of one."""
        states = self.embed_tokens(input_ids)
        turned = self._rotation(position_ids)
        for layer in self.layers:
            states = layer(states, turned, tree)
        return SimpleNamespace(last_hidden_state=self.norm(states))

    def _rotation(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the angles by which a position turns queries and keys (RoPE)."""
        steps = torch.arange(0, self._width, 2, device=positions.device).float() / self._width
        angles = positions[:, None, :, None].float() * (1.0 / self._theta**steps)
        both = torch.cat([angles, angles], dim=-1)
        return both.cos(), both.sin()


class Layer(nn.Module):
    """Attention, then a gated linear layer; each reads normed states and is added to them."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = GatedLinear(config.hidden_size, config.intermediate_size)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, states: torch.Tensor, turned: Any, tree: Sequence[View]) -> torch.Tensor:
        states = states + self.self_attn(self.input_layernorm(states), turned, tree)
        added: torch.Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return added


class Attention(nn.Module):
    """Every node attends to the nodes on its way from the root; groups of heads share keys."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        size, heads = config.hidden_size, config.num_attention_heads
        groups = getattr(config, "num_key_value_heads", None) or heads
        self._width = getattr(config, "head_dim", None) or size // heads
        self.q_proj = Linear(size, heads * self._width, bias=False)
        self.k_proj = Linear(size, groups * self._width, bias=False)
        self.v_proj = Linear(size, groups * self._width, bias=False)
        self.o_proj = Linear(heads * self._width, size, bias=False)

    def forward(self, states: torch.Tensor, turned: Any, tree: Sequence[View]) -> torch.Tensor:
        query, key, value = (
            side(states).unflatten(-1, (-1, self._width)).transpose(1, 2)
            for side in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = _turn(query, *turned), _turn(key, *turned)
        mixed, _ = attend(self, query, key, value, None, tree=tree)
        out: torch.Tensor = self.o_proj(mixed.flatten(2))
        return out


class GatedLinear(nn.Module):
    """W_down (silu(W_gate n) * W_up n)."""

    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.gate_proj = Linear(size, wide, bias=False)
        self.up_proj = Linear(size, wide, bias=False)
        self.down_proj = Linear(wide, size, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        opened = nn.functional.silu(self.gate_proj(states)) * self.up_proj(states)
        out: torch.Tensor = self.down_proj(opened)
        return out


def _turn(side: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    half = side.shape[-1] // 2
    swapped = torch.cat([-side[..., half:], side[..., :half]], dim=-1)
    return side * cosines + swapped * sines
