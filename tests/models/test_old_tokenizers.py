"""Models that were published with a vocabulary and merges, without a `tokenizer.json`."""

from __future__ import annotations

import json
import random

import pytest
import torch
from transformers import BlenderbotSmallTokenizer

from dialeval.errors import UsageError
from dialeval.model_store.catalogue import Hub, find_entry
from dialeval.models.layout import Segmenter
from dialeval.models.loading import load_tokenizer
from dialeval.models.source import Models
from dialeval.question import Likelihood, TokenLogProbs
from dialeval.sample import Turn

from . import tiny_language_models as tiny

LETTERS = "abcdehilnopstu.,!?()'_"
MERGES = ["h e", "l l", "he ll", "hell o</w>", "t h", "th e</w>", "u n", "i t</w>", "un he"]
SPECIAL = ["__null__", "__start__", "__end__", "__unk__"]
PIECES = ["he@@", "ll@@", "hello", "th@@", "the", "un@@", "it", "__newln__"]
"""Neither "hell@@" nor "unhe@@": merges lead there, but no text that was counted ended there."""

VOCABULARY = [*SPECIAL, *LETTERS, *(f"{letter}@@" for letter in LETTERS if letter != "b"), *PIECES]
TURNS = (Turn("Hello, it's the unhe"), Turn("The\nhello."))


@pytest.fixture
def small(tmp_path):
    """A random BlenderbotSmall, and the tokenizer in Python that transformers has for it."""
    model = tiny.blenderbot_small(
        vocab_size=len(VOCABULARY), pad_token_id=0, bos_token_id=1, eos_token_id=2,
        forced_eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model.save_pretrained(tmp_path)
    numbers = {piece: number for number, piece in enumerate(VOCABULARY)}
    (tmp_path / "vocab.json").write_text(json.dumps(numbers))
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES, ""]))
    files = (str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    return tmp_path, model, BlenderbotSmallTokenizer(*files)


def test_blenderbot_small_gets_the_tokens_of_transformers(small):
    directory, _, slow = small
    ours = Segmenter(load_tokenizer(directory))
    draw = random.Random(0)
    drawn = ["".join(draw.choices("hellotheunit  .,'\n\tXé", k=12)) for _ in range(400)]
    texts = ["Hello, it's the hello.", "hells", "unhe", "UNHELL!", "a.b", "''", "", " \n ", "(it)"]
    texts += ["the\nhe", "the \nhe", "the\n\nhe", "it'\nhe", "é 🙂 zzz", "b bab", *drawn]
    assert {text: list(ours.text(text).ids) for text in texts} == {
        text: slow(text).input_ids for text in texts
    }
    unknown = slow.convert_tokens_to_ids("__unk__")
    assert unknown in slow("hells").input_ids


def test_blenderbot_small_knows_where_a_token_stands(small):
    ours = Segmenter(load_tokenizer(small[0]))
    text = "Hello, it's the\nhe"
    spans = ours.text(text).spans
    assert [text[start:end] for start, end in spans][:6] == ["Hello", ",", "it", "'", "s", "the"]
    assert text[slice(*spans[-1])] == "e"


def test_blenderbot_small_gives_the_loss_of_transformers(small):
    directory, model, slow = small
    found = Models(device="cpu").load(str(directory))
    question = Likelihood("small", "Hello. You're it!", TURNS, "user", "tabs", end=True)
    mean = TokenLogProbs.read(dict(found.answer([question]))[0]).mean
    ids = slow("\t" + "\t".join(turn.text for turn in TURNS)).input_ids
    labels = [*slow(question.text).input_ids, slow.eos_token_id]
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels]))
    assert mean == pytest.approx(-out.loss.item(), abs=2e-5)


def test_blenderbot_small_writes_words_again(small):
    tokenizer = load_tokenizer(small[0])
    ids = small[2]("hello, the hells").input_ids
    assert tokenizer.decode(ids[:3]) == "hello , the"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("merges.txt", "#version: 0.2\nh e\nl l l\n", r"merges.txt:3: expected two pieces"),
        ("vocab.json", '{"__null__": "x"}', r"vocab.json: '__null__': expected the number"),
        ("vocab.json", '{"a": 0}', r"vocab.json: the token '__start__' is missing"),
    ],
)
def test_a_damaged_vocabulary_is_said(small, file, content, message):
    (small[0] / file).write_text(content)
    with pytest.raises(UsageError, match=message):
        load_tokenizer(small[0])


@pytest.mark.parametrize(
    ("make", "closes", "layout"), [(tiny.gpt2, False, "eos"), (tiny.blenderbot, True, "tabs")]
)
def test_vocabulary_and_merges_answer_as_tokenizer_json_does(tmp_path, make, closes, layout):
    tokenizer = tiny.tokenizer(None, closes=closes)
    old = tiny.save_as_before_tokenizer_json(tmp_path / "old", make(), tokenizer)
    new = tiny.save(tmp_path / "new", make(), tokenizer)
    question = Likelihood("m", "What are you trying to say?", TURNS, "user", layout)
    one, other = (
        TokenLogProbs.read(dict(Models(device="cpu").load(str(place)).answer([question]))[0])
        for place in (old, new)
    )
    assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)


FIGURE_2 = [
    "facebook/blenderbot-400M-distill", "facebook/blenderbot-3B",
    "microsoft/DialoGPT-small", "microsoft/DialoGPT-medium", "microsoft/DialoGPT-large",
    "openai-community/gpt2", "openai-community/gpt2-medium", "openai-community/gpt2-large",
    "openai-community/gpt2-xl",
]  # fmt: skip


@pytest.mark.parametrize("hub_id", [*FIGURE_2, "facebook/blenderbot_small-90M"])
def test_the_catalogue_has_the_language_models_of_figure_2_by_their_hub_ids(hub_id):
    entry = find_entry(hub_id)
    assert entry is not None
    assert isinstance(entry.source, Hub)
    assert entry.source.repo == hub_id
    assert entry.role == ("seq2seq-lm" if "blenderbot" in hub_id else "causal-lm")
