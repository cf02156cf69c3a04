"""Heads on our BERT against transformers, which defines them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from models.test_classifier import save as save_classifier
from models.tiny_masked_models import save_masked_model
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining

from dialeval.networks import bert

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 8, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
KINDS = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 1, 1, 0]])


@torch.no_grad()
def test_logits_of_classes_are_those_of_transformers(tmp_path):
    theirs = save_classifier(tmp_path)
    ours = bert.load_classifier(tmp_path)
    assert ours is not None
    inputs = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": KINDS}
    assert torch.allclose(ours(**inputs).logits, theirs(**inputs).logits, atol=1e-5)


@pytest.mark.parametrize("labels", [("yes", "no"), ()])
def test_a_head_without_names_for_all_outputs_is_left_to_transformers(tmp_path, labels):
    save_classifier(tmp_path)
    settings = {"id2label": dict(enumerate(labels))}
    assert bert.load_classifier(tmp_path, settings=settings) is None


@torch.no_grad()
def test_logits_of_pieces_are_those_of_transformers(tmp_path):
    save_masked_model(tmp_path)
    ours, theirs = bert.load_masked(tmp_path), BertForMaskedLM.from_pretrained(tmp_path)
    assert ours is not None
    assert not ours.is_new
    states = ours.bert(IDS, MASK).last_hidden_state
    expected = theirs.eval()(input_ids=IDS, attention_mask=MASK).logits
    real = MASK.bool()
    assert torch.allclose(ours.cls(states)[real], expected[real], atol=1e-4)


@torch.no_grad()
def test_a_head_that_was_trained_with_another_beside_it_is_found(tmp_path):
    torch.manual_seed(6)
    BertForPreTraining(BertConfig(vocab_size=30, **tiny_encoders.SHAPE)).save_pretrained(tmp_path)
    ours, theirs = bert.load_masked(tmp_path), BertForMaskedLM.from_pretrained(tmp_path)
    assert ours is not None
    assert not ours.is_new
    states = torch.randn(3, tiny_encoders.SHAPE["hidden_size"])
    assert torch.allclose(ours.cls(states), theirs.eval().cls(states), atol=1e-5)


def test_an_encoder_without_a_head_gets_a_new_one_on_its_own_words(tmp_path):
    ours = bert.load_masked(tiny_encoders.save_bert(tmp_path))
    assert ours is not None
    assert ours.is_new
    assert ours.cls.predictions.words.weight is ours.bert.embeddings.word_embeddings.weight


def test_other_networks_and_heads_with_words_of_their_own_are_left_to_transformers(tmp_path):
    save_masked_model(tmp_path / "roberta", "roberta")
    assert bert.load_masked(tmp_path / "roberta") is None
    assert bert.load_classifier(tmp_path / "roberta") is None
    config = BertConfig(vocab_size=30, tie_word_embeddings=False, **tiny_encoders.SHAPE)
    BertForMaskedLM(config).save_pretrained(tmp_path / "untied")
    assert bert.load_masked(tmp_path / "untied") is None
