"""Which token means "here a text begins".

`<|endoftext|>` where the vocabulary has it: GPT-2, DialoGPT and SmolLM2 were all pretrained on
documents separated by it (SmolLM2's declared start token, `<|im_start|>`, opens a chat turn). Else
the declared start token, else the end token; None if the tokenizer has none of them.
"""

from __future__ import annotations

from typing import Any


def start_token(tokenizer: Any) -> int | None:
    document = tokenizer.get_vocab().get("<|endoftext|>")
    for token in (document, tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return None
