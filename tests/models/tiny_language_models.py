"""Random language models of the real classes, small enough for a test, and their tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BlenderbotConfig,
    BlenderbotForConditionalGeneration,
    BlenderbotSmallConfig,
    BlenderbotSmallForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

torch.set_num_threads(1)  # threads would wait for each other longer than they compute

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<pad>"]
VOCABULARY = 300
WORDS = ["the cat sat on the mat", "User: hello how are you", "System: what are you trying to say"]


def tokenizer(chat_template: str | None = CHATML, *, closes: bool = False):
    """A byte-level BPE. `closes`: as BlenderBot's, it adds `</s>` and a space in front."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=closes)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        WORDS,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=SPECIAL,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    if closes:
        backend.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", backend.token_to_id("</s>"))]
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>" if closes else "<|im_start|>",
        eos_token="</s>" if closes else "<|im_end|>",
        pad_token="<pad>",
    )
    fast.chat_template = chat_template
    return fast


def save(directory: Path, model, its_tokenizer) -> Path:
    model.save_pretrained(directory)
    its_tokenizer.save_pretrained(directory)
    return directory


def save_as_before_tokenizer_json(directory: Path, model, its_tokenizer) -> Path:
    """As DialoGPT and BlenderBot were published: `vocab.json` and `merges.txt`, and no class."""
    model.save_pretrained(directory)
    its_tokenizer.backend_tokenizer.model.save(str(directory))
    (directory / "tokenizer_config.json").write_text('{"model_max_length": 1024}')
    return directory


def llama(window: int = 64):
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


def gpt2(window: int = 64):
    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=window,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config).eval()


def gpt_j():
    """Computes its attention itself, whatever it is told."""
    config = GPTJConfig(
        vocab_size=VOCABULARY, n_embd=32, n_layer=1, n_head=4, n_positions=32, rotary_dim=8
    )
    return GPTJForCausalLM(config).eval()


def blenderbot(window: int = 32):
    torch.manual_seed(3)
    return BlenderbotForConditionalGeneration(_bart_like(BlenderbotConfig, window)).eval()


def blenderbot_small(window: int = 32, **sizes):
    torch.manual_seed(6)
    config = _bart_like(BlenderbotSmallConfig, window, **sizes)
    return BlenderbotSmallForConditionalGeneration(config).eval()


def bart(window: int = 32):
    torch.manual_seed(4)
    return BartForConditionalGeneration(_bart_like(BartConfig, window)).eval()


def t5(window: int = 32):
    torch.manual_seed(5)
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        n_positions=window,
        decoder_start_token_id=5,
        pad_token_id=5,
        eos_token_id=4,
    )
    return T5ForConditionalGeneration(config).eval()


def _bart_like(config, window: int, **changed):
    options = {
        "vocab_size": VOCABULARY,
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": window,
        "init_std": 0.3,
        "bos_token_id": 3,
        "eos_token_id": 4,
        "pad_token_id": 5,
        "decoder_start_token_id": 3,
        "forced_eos_token_id": 4,
    }
    return config(**(options | changed))
