"""`MaskedLikelihood` against transformers' own models, asked one mask at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models.tiny_encoders import WINDOW, save_bert
from models.tiny_masked_models import save_masked_model
from transformers import AutoModelForMaskedLM, AutoTokenizer

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models import masked_lm
from dialeval.models.masked_lm import passes
from dialeval.models.source import Models
from dialeval.question import Embed, Judge, MaskedLikelihood, TokenLogProbs

TEXTS = [
    "The cat sat on a mat.",
    "do you like dogs ?",
    "a",
    "so very , very , very zebra !",
    "  it isn't\u00e9 \U0001f600 ",
]


def ask(*questions):
    found = Answerer(Models("cpu"), None).answer(questions)
    return [TokenLogProbs.read(found[question]) for question in questions]


@torch.no_grad()
def one_mask_at_a_time(directory, text, together=lambda place, other: place == other):
    """By transformers alone: hide the pieces that go together with one, read off that one."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForMaskedLM.from_pretrained(directory).eval()
    ids = tokenizer(text, return_tensors="pt").input_ids
    found = []
    for place in range(1, ids.shape[1] - 1):
        hidden = ids.clone()
        for other in range(1, ids.shape[1] - 1):
            if together(place, other):
                hidden[0, other] = tokenizer.mask_token_id
        found.append(model(hidden).logits[0, place].log_softmax(0)[ids[0, place]].item())
    return found


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_hidden_one_by_one_it_is_what_transformers_says(tmp_path, kind):
    name = str(save_masked_model(tmp_path / kind, kind))
    answers = ask(*(MaskedLikelihood(name, text) for text in TEXTS))
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = one_mask_at_a_time(name, text)
        assert len(answer) == len(expected)
        assert answer.log_probs == pytest.approx(expected, abs=1e-5)
        assert answer.cut == 0
    assert np.ptp(answers[0].log_probs) > 0.1


@pytest.mark.parametrize("masks", [2, 3])
def test_hidden_together_it_is_what_transformers_says(tmp_path, masks):
    name = str(save_masked_model(tmp_path / "bert"))
    answers = ask(*(MaskedLikelihood(name, text, masks) for text in TEXTS))
    exact = ask(MaskedLikelihood(name, TEXTS[0]))[0]
    assert answers[0].log_probs != pytest.approx(exact.log_probs, abs=1e-3)
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = one_mask_at_a_time(name, text, lambda one, other: (one - other) % masks == 0)
        assert answer.log_probs == pytest.approx(expected, abs=1e-5)


def test_as_many_masks_as_pieces_are_one_by_one(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    many, exact = ask(
        MaskedLikelihood(name, "the cat sat", masks=9), MaskedLikelihood(name, "the cat sat")
    )
    assert many.log_probs == pytest.approx(exact.log_probs, abs=1e-6)


@pytest.mark.parametrize("pieces", range(7))
@pytest.mark.parametrize("masks", range(6))
def test_every_piece_is_hidden_once(pieces, masks):
    hidden = [place for one in passes(pieces, masks) for place in one]
    assert sorted(hidden) == list(range(pieces))
    assert len(passes(pieces, masks)) == min(masks or pieces, pieces)


def test_an_answer_does_not_depend_on_its_neighbours(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    questions = [MaskedLikelihood(name, text, masks) for text in TEXTS for masks in (0, 2)]
    together = ask(*questions, *(MaskedLikelihood(name, "cat " * n) for n in range(1, 30)))
    for question, answer in zip(questions, together, strict=False):
        alone = ask(question)[0]
        assert alone.spans == answer.spans
        assert alone.log_probs == pytest.approx(answer.log_probs, abs=1e-5)


def test_more_than_is_held_at_once(tmp_path, monkeypatch):
    name = str(save_masked_model(tmp_path / "bert"))
    questions = [MaskedLikelihood(name, text) for text in TEXTS]
    whole = ask(*questions)
    monkeypatch.setattr(masked_lm, "READ_AT_ONCE", 10)
    monkeypatch.setattr(masked_lm, "PROJECTED_AT_ONCE", 2)
    for answer, expected in zip(ask(*questions), whole, strict=True):
        assert answer.log_probs == pytest.approx(expected.log_probs, abs=1e-5)


def test_spans_point_into_the_text_as_it_was_given(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    text = "  the cats \ud83d sat"
    (answer,) = ask(MaskedLikelihood(name, text))
    assert [text[start:end] for start, end in answer.spans][:3] == ["the", "cat", "s"]
    assert text[slice(*answer.spans[-1])] == "sat"


def test_long_texts_are_cut_at_the_end_and_counted(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    text = "the cat sat on a mat . " * 2000
    long, short, same = ask(
        MaskedLikelihood(name, text, masks=4),
        MaskedLikelihood(name, text, tokens=3),
        MaskedLikelihood(name, "the cat sat"),
    )
    assert (len(long), long.cut) == (WINDOW - 2, 14_000 - WINDOW + 2)
    assert (len(short), short.cut) == (3, 13_997)
    assert short.log_probs == pytest.approx(same.log_probs, abs=1e-5)


@pytest.mark.parametrize("text", ["", "  \t\n", "\x00", "\u200b"])
def test_a_text_without_pieces_has_an_empty_answer(tmp_path, text):
    name = str(save_masked_model(tmp_path / "bert"))
    (answer,) = ask(MaskedLikelihood(name, text))
    assert (len(answer), answer.cut) == (0, 0)


def test_a_mask_that_somebody_wrote_is_not_one(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    (answer,) = ask(MaskedLikelihood(name, "[MASK]"))
    assert len(answer) > 1


def test_an_encoder_answers_its_other_questions_beside(tmp_path):
    name = str(save_masked_model(tmp_path / "bert"))
    vector, likelihood = Embed(name, "the cat"), MaskedLikelihood(name, "the cat")
    found = Answerer(Models("cpu"), None).answer([vector, likelihood])
    assert found[vector].shape == (16,)
    assert found[likelihood].shape == (3, 3)


def test_an_encoder_without_a_head_says_how_to_teach_it(tmp_path):
    name = str(save_bert(tmp_path / "bert"))
    with pytest.raises(UsageError, match="train mme-specificity"):
        ask(MaskedLikelihood(name, "the cat"))


def save_trained(directory, encoder, rank=2):
    """A directory as training leaves it, with random weights; rank 0: all of the encoder's."""
    from dialeval.model_store.scorer_directory import save_tensors
    from dialeval.training.recipes.mme_judges import MmeSpecificity

    network, _ = MmeSpecificity(model=encoder, full=not rank, rank=rank or None).new_network()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter).half())
    config = masked_lm.MaskedLMConfig(encoder, rank, 4.0, 25)
    directory.mkdir()
    save_tensors(directory, config.to_record(), network.trained_tensors())
    return network


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_trained_directory_is_the_network_that_was_trained(tmp_path, kind, rank):
    encoder = save_bert(tmp_path / "bert", kind=kind)
    network = save_trained(tmp_path / "trained", str(encoder), rank).eval()
    (answer,) = ask(MaskedLikelihood(str(tmp_path / "trained"), "the cat sat"))
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    ids = tokenizer("the cat sat", return_tensors="pt").input_ids
    for place in range(3):
        hidden = ids.clone()
        hidden[0, place + 1] = tokenizer.mask_token_id
        state = network.encoder(hidden).last_hidden_state[:, place + 1]
        expected = network.head(state)[0].log_softmax(0)[ids[0, place + 1]].item()
        assert answer.log_probs[place] == pytest.approx(expected, abs=1e-4)


def test_word_embeddings_are_not_copied(tmp_path):
    encoder = save_bert(tmp_path / "bert")
    network = save_trained(tmp_path / "trained", str(encoder))
    words = network.encoder.get_input_embeddings().weight.shape
    assert all(tensor.shape != words for tensor in network.trained_tensors().values())


def test_a_trained_directory_of_another_encoder_is_refused(tmp_path):
    save_trained(tmp_path / "trained", str(save_bert(tmp_path / "bert")))
    path = tmp_path / "trained" / "scorer.json"
    record = json.loads(path.read_text())
    save_bert(tmp_path / "other", kind="distilbert")
    path.write_text(json.dumps({**record, "encoder": str(tmp_path / "other")}))
    with pytest.raises(UsageError, match="not the weights"):
        ask(MaskedLikelihood(str(tmp_path / "trained"), "the cat"))


def test_it_refuses_what_it_cannot_answer(tmp_path):
    save_trained(tmp_path / "trained", str(save_bert(tmp_path / "bert")))
    question = Judge(str(tmp_path / "trained"), (), "the cat")
    with pytest.raises(UsageError, match="cannot answer Judge"):
        Answerer(Models("cpu"), None).answer([question])
