"""A tiny Llama as a GGUF file: random weights, a byte-level tokenizer, 8 bits."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import tokenizers

WIDTH, INNER, HEADS = 64, 96, 4


def write_gguf(path: Path, layers: int = 1, context: int = 128, spread: float = 0.3) -> Path:
    """Embeddings are tied; the tokenizer knows the marks of a chat and two merges. A small `spread`
    of the weights makes all tokens about as likely."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet, "ĊĊ", "ab"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["Ċ Ċ", "a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    random = np.random.default_rng(7)
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH // 2, WIDTH),
        "attn_v": (WIDTH // 2, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    weights = {
        f"blk.{layer}.{name}.weight": shape
        for layer in range(layers)
        for name, shape in shapes.items()
    }
    for name, shape in {"token_embd.weight": (len(tokens), WIDTH), **weights}.items():
        values = random.normal(0, spread, shape).astype(np.float32)
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    norms = [f"blk.{n}.{which}_norm.weight" for n in range(layers) for which in ("attn", "ffn")]
    for name in (*norms, "output_norm.weight"):
        writer.add_tensor(name, random.normal(1, 0.1, WIDTH).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
