"""Classifiers of sentence pairs: tiny random models of the real classes, saved as the hub does."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from dialeval.errors import UsageError
from dialeval.models import classifier
from dialeval.models.source import Models
from dialeval.question import NLI_LABELS, Embed, Inference

PAIRS = [
    ("the cat sat on a mat", "the dog sat"),
    ("do you like it", "i do not"),
    ("so", "so" + 30 * " very"),
    ("", "."),
]


def save(directory, kind="bert", labels=NLI_LABELS):
    encoder = tiny_encoders.save_bert if kind == "bert" else tiny_encoders.save_roberta
    encoder(directory)
    config_class, model_class = {
        "bert": (BertConfig, BertForSequenceClassification),
        "roberta": (RobertaConfig, RobertaForSequenceClassification),
    }[kind]
    config = config_class.from_pretrained(directory, num_labels=len(labels))
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: i for i, name in enumerate(labels)}
    torch.manual_seed(3)
    model = model_class(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8)
    model.save_pretrained(directory)
    return model.eval()


def ask(directory, pairs=PAIRS):
    questions = [Inference(str(directory), *pair) for pair in pairs]
    answers = dict(Models(device="cpu").load(str(directory)).answer(questions))
    return np.array([answers[i][:3] for i in range(len(questions))])


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_answers_equal_transformers_one_by_one(tmp_path, kind):
    model = save(tmp_path, kind)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    found = ask(tmp_path)
    for row, pair in zip(found, PAIRS, strict=True):
        inputs = tokenizer(
            *pair, return_tensors="pt", truncation=True, max_length=tiny_encoders.WINDOW
        )
        with torch.no_grad():
            expected = model(**inputs).logits.softmax(-1)[0]
        assert row == pytest.approx(expected.numpy(), abs=1e-5)
        assert row.sum() == pytest.approx(1)


def test_the_order_of_labels_is_read_from_the_configuration(tmp_path):
    """The same weights under other names: the same probabilities in other places."""
    save(tmp_path / "ours")
    save(tmp_path / "theirs", labels=("ENTAILMENT", "NEUTRAL", "CONTRADICTION"))
    assert ask(tmp_path / "theirs") == pytest.approx(ask(tmp_path / "ours")[:, ::-1], abs=1e-6)


def test_a_classifier_of_something_else_is_refused(tmp_path):
    save(tmp_path, labels=("joy", "anger", "fear"))
    with pytest.raises(UsageError, match=r"joy, anger, fear.*contradiction, neutral, entailment"):
        Models(device="cpu").load(str(tmp_path))


def test_it_answers_nothing_but_inference(tmp_path):
    save(tmp_path)
    model = Models(device="cpu").load(str(tmp_path))
    with pytest.raises(UsageError, match="cannot answer Embed"):
        list(model.answer([Embed("x", "hello")]))
    assert list(model.answer([])) == []


def test_an_answer_says_where_a_text_was_cut(tmp_path):
    save(tmp_path)
    model = classifier.load(tmp_path, device="cpu")
    answers = dict(model.answer([Inference("m", *pair) for pair in PAIRS]))
    cut = [number for number, answer in answers.items() if len(answer) == 4]
    assert len(cut) == 1
    assert len(" ".join(PAIRS[cut[0]])) == max(len(" ".join(pair)) for pair in PAIRS)
    assert answers[cut[0]][3] == 1


def test_half_a_character_does_no_harm(tmp_path):
    save(tmp_path)
    assert np.isfinite(ask(tmp_path, [("the \ud800 cat", "\udfff")])).all()
