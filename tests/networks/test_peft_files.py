"""Adapters read without peft, against peft, which defines their files."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")
pytest.importorskip("peft", reason="needs the extra 'train'")

import peft
import torch
from models import tiny_encoders
from models import tiny_language_models as tiny
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from dialeval.errors import UsageError
from dialeval.models import causal_lm, classifier
from dialeval.models.causal_lm import CausalLM, plain_log_probs
from dialeval.models.layout import Written
from dialeval.models.loading import merged_by_peft
from dialeval.networks import bert, llama
from dialeval.networks.low_rank import read_adapter
from dialeval.question import Likelihood, TokenLogProbs

LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
SEQUENCES = [Written(ids, 1, (), 0) for ids in ((1, 2, 3, 4), (1, 2, 3, 9, 8), (1, 2, 7), (5, 6))]
IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 8, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
KINDS = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 1, 1, 0]])
INPUTS = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": KINDS}


def save_adapter(directory, model, **options):
    """A LoRA of random weights, large enough to matter, by peft."""
    torch.manual_seed(4)
    settings = {"r": 2, "lora_alpha": 6, "target_modules": LAYERS, "init_lora_weights": False}
    adapted = peft.get_peft_model(model, peft.LoraConfig(**settings | options))
    adapted.save_pretrained(directory)
    return adapted.eval()


@pytest.fixture
def base(tmp_path):
    return tiny.save(tmp_path / "llama", tiny.llama(), tiny.tokenizer())


@pytest.mark.parametrize("targets", [LAYERS, ["v_proj", "mlp.up_proj"]])
def test_a_llama_with_an_adapter_is_that_of_peft(tmp_path, base, targets):
    theirs = save_adapter(tmp_path / "adapter", tiny.llama(), target_modules=targets)
    ours = llama.load(base, tmp_path / "adapter")
    assert ours is not None
    found = CausalLM(ours, tiny.tokenizer()).log_probs(SEQUENCES)
    bare = tiny.llama()
    for one, written in zip(found, SEQUENCES, strict=True):
        assert np.allclose(one, plain_log_probs(theirs, written), atol=1e-5)
        assert not np.allclose(one, plain_log_probs(bare, written), atol=1e-2)


def test_merging_leaves_the_file_of_the_base_alone(tmp_path, base):
    before = (base / "model.safetensors").read_bytes()
    save_adapter(tmp_path / "adapter", tiny.llama())
    assert llama.load(base, tmp_path / "adapter") is not None
    assert (base / "model.safetensors").read_bytes() == before


def save_classifier_adapter(directory, base, **options):
    model = AutoModelForSequenceClassification.from_pretrained(
        base, num_labels=3, **classifier.label_names()
    )
    settings = {
        "task_type": "SEQ_CLS",
        "target_modules": ["query", "key", "value", "dense"],
        "modules_to_save": ["classifier"],
    }
    return save_adapter(directory, model, **settings | options)


def load_classifier(base, adapter):
    return bert.load_classifier(base, adapter, {"num_labels": 3} | classifier.label_names())


@torch.no_grad()
def test_a_classifier_with_an_adapter_is_that_of_peft(tmp_path):
    base = tiny_encoders.save_bert(tmp_path / "bert")
    theirs = save_classifier_adapter(tmp_path / "adapter", base)
    ours = load_classifier(base, tmp_path / "adapter")
    assert ours is not None
    assert torch.allclose(ours(**INPUTS).logits, theirs(**INPUTS).logits, atol=1e-5)
    assert ours.bert.pooler.dense.up is not None  # what has learned is not in the blocks only


def test_a_classifier_that_learned_more_than_its_head_is_left_to_peft(tmp_path):
    base = tiny_encoders.save_bert(tmp_path / "bert")
    save_classifier_adapter(tmp_path / "whole", base, modules_to_save=["classifier", "LayerNorm"])
    assert read_adapter(tmp_path / "whole") is not None
    assert load_classifier(base, tmp_path / "whole") is None


@pytest.mark.parametrize(
    "options",
    [
        {"use_rslora": True},
        {"use_dora": True},
        {"rank_pattern": {"v_proj": 3}},
        {"alpha_pattern": {"v_proj": 3}},
        {"layers_to_transform": [1]},
        {"exclude_modules": ["v_proj"]},
        {"target_modules": r".*_proj"},
        {"target_modules": ["q_proj", "lm_head"]},
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"modules_to_save": ["norm"]},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers`")
def test_what_is_unusual_is_left_to_peft_and_gives_what_peft_says(tmp_path, base, options):
    theirs = save_adapter(tmp_path / "adapter", tiny.llama(), **options)
    assert llama.load(base, tmp_path / "adapter") is None
    model = causal_lm.load(base, device="cpu", adapter=tmp_path / "adapter")
    question = Likelihood("tiny", "the cat sat on", layout="plain")
    written = model.writer.write(question)
    found = TokenLogProbs.read(dict(model.answer([question]))[0]).log_probs
    assert np.allclose(found, plain_log_probs(theirs, written), atol=1e-4)


def test_an_option_that_is_not_known_yet_is_left_to_peft(tmp_path):
    save_adapter(tmp_path, tiny.llama())
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text())
    assert read_adapter(tmp_path) is not None
    path.write_text(json.dumps(config | {"use_tomorrow": False}))
    assert read_adapter(tmp_path) is not None
    path.write_text(json.dumps(config | {"use_tomorrow": True}))
    assert read_adapter(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"bias": "all"},
        {"init_lora_weights": "pissa"},
        {"peft_type": "IA3"},
        {"r": 4},
        {"modules_to_save": None},
    ],
    ids=str,
)
def test_files_that_say_something_else_are_left_to_peft(tmp_path, change):
    base = tiny_encoders.save_bert(tmp_path / "bert")
    save_classifier_adapter(tmp_path / "adapter", base)
    path = tmp_path / "adapter" / "adapter_config.json"
    assert read_adapter(tmp_path / "adapter") is not None
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert read_adapter(tmp_path / "adapter") is None


def test_a_layer_that_is_missing_is_left_to_peft(tmp_path, base):
    save_adapter(tmp_path, tiny.llama())
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "layers.1.mlp.up" not in name}
    save_file(kept, tmp_path / "adapter_model.safetensors")
    assert llama.load(base, tmp_path) is None


def test_an_adapter_of_a_model_of_another_size_is_refused(tmp_path, base):
    save_adapter(tmp_path, tiny.llama())
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    wide = {n: torch.cat([t, t], dim=1) if "lora_A" in n else t for n, t in tensors.items()}
    save_file(wide, tmp_path / "adapter_model.safetensors")
    with pytest.raises(UsageError, match=r"another model: model\.layers.*differs in size"):
        llama.load(base, tmp_path)


def test_peft_merges_what_is_left_to_it(tmp_path):
    theirs = save_adapter(tmp_path, tiny.llama(), use_rslora=True)
    merged = merged_by_peft(tiny.llama(), tmp_path)
    for written in SEQUENCES:
        expected = plain_log_probs(theirs, written)
        assert np.allclose(plain_log_probs(merged, written), expected, atol=1e-5)
