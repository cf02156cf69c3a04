"""Random encoders of the real classes, small enough for a test, saved as the hub does."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

WORDS = "the cat sat on a mat and dog ##s ##ting do you like it i ' t n . , ! ? so very"
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [mark + letter for letter in "abcdefghijklmnopqrstuvwxyz" for mark in ("", "##")]
LAYERS = 3
WINDOW = 24
SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": WINDOW,
}


def save_bert(directory: Path, *, kind: str = "bert") -> Path:
    """BERT or DistilBERT with 3 layers of width 16 that read at most 24 tokens."""
    vocabulary = {
        token: n for n, token in enumerate(dict.fromkeys(MARKS + WORDS.split() + LETTERS))
    }
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=WINDOW,
        **{f"{mark[1:-1].lower()}_token": mark for mark in MARKS},
    )
    torch.manual_seed(7)
    if kind == "bert":
        model = BertModel(BertConfig(vocab_size=len(vocabulary), **SHAPE))
    else:
        model = DistilBertModel(DistilBertConfig(vocab_size=len(vocabulary), **SHAPE))
    return _save(directory, _spread(model), tokenizer)


def save_roberta(directory: Path, *, kind: str = "roberta") -> Path:
    """RoBERTa or MPNet likewise; its tokenizer does not say how much the model can read."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["the cat sat on the mat", "do you like the dog"], trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )
    torch.manual_seed(8)
    shape = {**SHAPE, "max_position_embeddings": WINDOW + 2}
    config_of, model_of = (
        (RobertaConfig, RobertaModel) if kind == "roberta" else (MPNetConfig, MPNetModel)
    )
    config = config_of(vocab_size=len(tokenizer), pad_token_id=1, **shape)
    return _save(directory, _spread(model_of(config)), tokenizer)


def _spread(model: torch.nn.Module) -> torch.nn.Module:
    """Larger weights than a fresh model has: its layers do something, and its tokens differ."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(10)
    return model


def _save(directory: Path, model, tokenizer) -> Path:
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory
