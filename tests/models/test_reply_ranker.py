"""A ranker of replies against plain transformers, with a tiny random GPT-2."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_language_models
from transformers import AutoModelForSequenceClassification, GPT2ForSequenceClassification

from dialeval.engine.answers import Answerer
from dialeval.model_store.locate import locate
from dialeval.models.loading import load_tokenizer
from dialeval.models.source import Models
from dialeval.question import Judge, Judgement


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    """DialogRPT's class, with one label and no padding token, as on the hub."""
    place = tmp_path_factory.mktemp("models") / "gpt2"
    tiny_language_models.save(place, tiny_language_models.gpt2(), tiny_language_models.tokenizer())
    torch.manual_seed(3)
    model = GPT2ForSequenceClassification.from_pretrained(place, num_labels=1)
    torch.nn.init.normal_(model.score.weight)
    model.save_pretrained(place)
    return place


def naive(place, turns, response) -> float:
    """One pass over one sequence."""
    model = AutoModelForSequenceClassification.from_pretrained(place).eval()
    tokenizer = load_tokenizer(place)
    ids = [token for turn in turns for token in (*tokenizer.encode(turn), tokenizer.eos_token_id)]
    with torch.no_grad():
        logits = model(torch.tensor([[*ids, *tokenizer.encode(response)]])).logits
    return float(torch.sigmoid(logits)[0, 0])


def test_scores_are_those_of_plain_transformers_whatever_is_asked_beside_them(ranker):
    assert locate(str(ranker)).role == "reply-ranker"
    asked = [(("the cat",), "a dog sat"), (("a", "the mat", "so ?"), "i do"), ((), "the cat sat")]
    questions = [Judge(str(ranker), turns, response) for turns, response in asked]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = [float(found[question][0]) for question in questions]
    assert scores == pytest.approx([naive(ranker, *own) for own in asked], abs=1e-5)
    assert len({round(score, 4) for score in scores}) == 3


def test_long_dialogues_lose_their_beginning_and_say_so(ranker):
    long = Judge(str(ranker), ("the cat sat on a mat " * 100, "so ?"), "i do")
    found = Answerer(Models("cpu"), None).answer([long])
    assert "turns truncated to" in Judgement.read(found[long]).note
