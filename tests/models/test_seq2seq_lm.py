"""Encoder-decoder models against the loss that transformers computes, one question at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dialeval.errors import UsageError
from dialeval.models import seq2seq_lm
from dialeval.models.seq2seq_lm import Seq2SeqLM
from dialeval.question import Likelihood, TokenLogProbs
from dialeval.sample import Turn

from . import tiny_language_models as tiny

WINDOW = 32
TOKENIZER = tiny.tokenizer(None, closes=True)
MAKERS = {"blenderbot": tiny.blenderbot, "bart": tiny.bart, "t5": tiny.t5}
FOLLOW_UPS = ["You're boring.", "What are you trying to say?", "hello", "é🙂", "the cat sat"]
FOLLOW_UPS += ["the cat", "the cat sat on the mat", "the"]  # beginnings of each other
DIALOGUES = [
    (),
    (Turn("hello there"),),
    (Turn("how are you"), Turn("the cat sat on the mat")),
    (Turn("a"), Turn(""), Turn("b " * 40)),
]


def ask(text, turns, **options):
    return Likelihood("tiny", text, turns, "user", "tabs", **{"end": True, **options})


ASKED = [ask(text, turns) for turns in DIALOGUES for text in FOLLOW_UPS][3:]


def loss(plain, question, side="left"):
    """As FULL's package does: one string, one pass, the loss of transformers."""
    text = "\t" + "\t".join(turn.text for turn in question.turns) if question.turns else ""
    ids = TOKENIZER(text).input_ids
    if len(ids) > WINDOW:
        ids = [*(ids[:-1][: WINDOW - 1] if side == "right" else ids[-WINDOW:-1]), ids[-1]]
    labels = TOKENIZER(question.text).input_ids
    with torch.no_grad():
        out = plain(input_ids=torch.tensor([ids]), labels=torch.tensor([labels]))
    return out.loss.item()


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("budget", [1, 50, 4096])
def test_the_mean_is_the_loss_of_transformers(kind, budget):
    plain = MAKERS[kind](WINDOW)
    model = Seq2SeqLM(MAKERS[kind](WINDOW), TOKENIZER, tokens_per_batch=budget)
    for position, answer in model.answer(ASKED):
        mean = TokenLogProbs.read(answer).mean
        assert mean == pytest.approx(-loss(plain, ASKED[position]), abs=2e-5)
    assert model.encoded == len(DIALOGUES)


def test_what_texts_have_in_common_is_decoded_once():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    read = []
    model._model.get_decoder().register_forward_pre_hook(
        lambda module, args, named: read.append(named["input_ids"].shape[1]), with_kwargs=True
    )
    texts = ["the dog ran", "the cat sat"]
    dict(model.answer([ask(text, DIALOGUES[1]) for text in texts]))
    one, other = sorted(TOKENIZER(text).input_ids for text in texts)
    common = [a == b for a, b in zip(one, other, strict=False)].index(False)
    assert common > 0
    # the start token and all but the last are read, and of the second what is new
    assert read == [len(one), len(other) - 1 - common]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_long_dialogue_is_cut_on_the_side_asked_for_and_counted(side):
    plain, model = tiny.blenderbot(WINDOW), Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    question = ask("hello", DIALOGUES[-1], truncate=side)
    answer = TokenLogProbs.read(dict(model.answer([question]))[0])
    assert answer.mean == pytest.approx(-loss(plain, question, side), abs=2e-5)
    whole = TOKENIZER("\ta\t\t" + "b " * 40).input_ids
    assert answer.cut == len(whole) - WINDOW


def test_the_end_token_counts_only_if_asked_for():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    with_end, without = (ask("the cat", DIALOGUES[1], end=end) for end in (True, False))
    answers = dict(model.answer([with_end, without]))
    np.testing.assert_allclose(answers[0][:-1], answers[1], atol=1e-5)
    assert answers[0][-1, 1] == -1


def test_spans_cover_the_text():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    answer = TokenLogProbs.read(dict(model.answer([ask("the cat é", DIALOGUES[1])]))[0])
    covered = {place for start, end in answer.spans[:-1] for place in range(start, end)}
    assert covered == set(range(len("the cat é")))


def test_special_tokens_never_come_from_dialogue_text():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    answer = TokenLogProbs.read(dict(model.answer([ask("</s>", (Turn("</s>"),))]))[0])
    assert len(answer.log_probs) > 2


def test_a_text_longer_than_the_window_keeps_its_beginning():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    long, short = ask("z" * 50, DIALOGUES[1]), ask("z" * 20, DIALOGUES[1], end=False)
    answers = dict(model.answer([long, short]))
    assert answers[0][0, 0] > 0
    rows = min(len(answers[0]), len(answers[1]))
    np.testing.assert_allclose(answers[0][1:rows, 0], answers[1][1:rows, 0], atol=1e-5)


def test_an_empty_text_without_end_has_no_tokens():
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    assert dict(model.answer([ask("", DIALOGUES[1], end=False)]))[0].shape == (1, 3)


def test_memory_that_runs_out_halves_the_batches(monkeypatch):
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    expected = dict(model.answer(ASKED))
    whole, refused = model._log_probs, []

    def refuse_large(batch):
        if len(batch) > 2:
            refused.append(len(batch))
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return whole(batch)

    monkeypatch.setattr(model, "_log_probs", refuse_large)
    answers = dict(model.answer(ASKED))
    assert refused
    assert all(np.allclose(answers[n], expected[n], atol=1e-5) for n in expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "chat"}, r"no layout 'chat'. Its layouts: auto, native, tabs, plain"),
        ({"layout": "tabs", "whole": True}, "never the turns"),
    ],
)
def test_what_an_encoder_decoder_cannot_do_is_said(options, message):
    model = Seq2SeqLM(tiny.blenderbot(WINDOW), TOKENIZER)
    with pytest.raises(UsageError, match=message):
        dict(model.answer([Likelihood("tiny", "a", **options)]))


def test_a_saved_model_loads_and_answers(tmp_path):
    directory = tiny.save(tmp_path / "bot", tiny.blenderbot(WINDOW), TOKENIZER)
    model = seq2seq_lm.load(directory, device="cpu")
    found = TokenLogProbs.read(dict(model.answer([ASKED[-2]]))[0]).mean
    assert found == pytest.approx(-loss(tiny.blenderbot(WINDOW), ASKED[-2]), abs=2e-5)
