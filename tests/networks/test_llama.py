"""Our Llama against transformers, which defines it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from models.tiny_language_models import VOCABULARY, tokenizer
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from dialeval.models.causal_lm import CausalLM, plain_log_probs
from dialeval.models.layout import Written
from dialeval.networks import llama


@pytest.mark.parametrize("tied", [True, False])
def test_a_tree_gets_the_log_probabilities_of_plain_sequences(tmp_path, tied):
    torch.manual_seed(0)
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=24,
            intermediate_size=40,
            num_hidden_layers=3,
            num_attention_heads=6,
            num_key_value_heads=2,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0},
            tie_word_embeddings=tied,
        )
    ).eval()
    theirs.save_pretrained(tmp_path)
    ours = llama.load(tmp_path)
    assert ours is not None
    sequences = [(1, 2, 3, 4), (1, 2, 3, 9, 8), (1, 2, 7), (5, 6)]
    written = [Written(ids, 1, (), 0) for ids in sequences]
    found = CausalLM(ours, tokenizer()).log_probs(written)
    for one, expected in zip(found, (plain_log_probs(theirs, w) for w in written), strict=True):
        assert np.allclose(one, expected, atol=1e-5)


def test_what_is_not_a_plain_llama_is_left_to_transformers(tmp_path):
    GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20)).save_pretrained(
        tmp_path / "gpt2"
    )
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
    biased = LlamaConfig(**sizes, intermediate_size=8, attention_bias=True)
    LlamaForCausalLM(biased).save_pretrained(tmp_path / "biased")
    assert llama.load(tmp_path / "gpt2") is None
    assert llama.load(tmp_path / "biased") is None


def test_tied_weights_of_other_names_are_left_to_transformers(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
    tied = LlamaConfig(**sizes, intermediate_size=8, tie_word_embeddings=True)
    LlamaForCausalLM(tied).save_pretrained(tmp_path)
    assert llama.load(tmp_path) is not None
    file = tmp_path / "model.safetensors"
    bare = {name.removeprefix("model."): tensor for name, tensor in load_file(file).items()}
    save_file(bare, file, {"format": "pt"})
    assert llama.load(tmp_path) is None


def test_defaults_are_those_of_transformers():
    theirs = LlamaConfig().to_dict()
    assert {name: theirs[name] for name in llama.DEFAULTS} == llama.DEFAULTS
