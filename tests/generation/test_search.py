"""Beam search and sampling against brute force, transformers, and arithmetic."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models import tiny_language_models as tiny

from dialeval.errors import UsageError
from dialeval.generation.backends import CausalReading, Seq2SeqReading
from dialeval.generation.search import (
    Decoding,
    Endings,
    beam_search,
    diverse_beam_search,
    sample,
)

VOCABULARY = 4
END = 0
ONE_END = Endings(marks=(END,))


class Table:
    """A made-up language: the next token depends on all before it, by a seeded draw."""

    def __init__(self, seeds):
        self._texts = [(seed,) for seed in seeds]
        self._look_up()

    def select(self, rows):
        self._texts = [self._texts[row] for row in rows]
        self._look_up()

    def write(self, tokens):
        self._texts = [(*text, token) for text, token in zip(self._texts, tokens, strict=True)]
        self._look_up()

    def _look_up(self):
        self.log_probs = torch.stack([next_token(text) for text in self._texts])


def next_token(text):
    logits = np.random.default_rng(text).normal(size=VOCABULARY) * 1.5
    return torch.tensor(logits, dtype=torch.float32).log_softmax(0)


def every_text(seed, length):
    """All texts of at most `length` tokens with log P and the number of predictions, at least one
    token long; one that reaches the limit has no end."""
    found = {}
    for size in range(1, length + 1):
        for ids in product(range(1, VOCABULARY), repeat=size):
            total = sum(float(next_token((seed, *ids[:i]))[token]) for i, token in enumerate(ids))
            if size < length:
                found[ids] = total + float(next_token((seed, *ids))[END]), size + 1
            else:
                found[ids] = total, size
    return found


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), penalty=st.sampled_from([0.0, 1.0]))
def test_a_wide_beam_finds_what_brute_force_finds(seed, penalty):
    known = every_text(seed, 3)
    best = sorted(known, key=lambda ids: -known[ids][0] / known[ids][1] ** penalty)
    decoding = Decoding("beam", beams=100, count=5, max_new_tokens=3, length_penalty=penalty)
    (found,) = beam_search(Table([seed]), ONE_END, decoding, 1)
    assert [text.ids for text in found] == best[:5]
    for text in found:
        assert text.log_prob == pytest.approx(known[text.ids][0], abs=1e-4)


def test_beams_that_avoid_each_other_begin_with_different_words():
    """Without a price for words of others they are all the greedy text, which counts once."""
    free = Decoding("diverse", beams=3, count=3, max_new_tokens=4, diversity=0.0)
    found = diverse_beam_search(Table([5, 6]), ONE_END, free, 2)
    for seed, texts in zip((5, 6), found, strict=True):
        greedy = sample(Table([seed]), ONE_END, Decoding(max_new_tokens=4), [[None]])
        assert [text.ids for text in texts] == [greedy[0][0].ids]
    dear = Decoding("diverse", beams=3, count=3, max_new_tokens=4, diversity=100.0)
    for seed, texts in zip(
        (5, 6), diverse_beam_search(Table([5, 6]), ONE_END, dear, 2), strict=True
    ):
        assert sorted(text.ids[0] for text in texts) == [1, 2, 3]
        known = every_text(seed, 4)
        for text in texts:  # the price weighs in the choice of words alone
            assert text.log_prob == pytest.approx(known[text.ids][0], abs=1e-4)
        ranks = [known[text.ids][0] / known[text.ids][1] for text in texts]
        assert ranks == sorted(ranks, reverse=True)


def test_a_price_below_zero_is_refused():
    with pytest.raises(UsageError, match="diversity must be at least 0"):
        Decoding("diverse", diversity=-1.0)


def test_no_more_texts_are_returned_than_there_are():
    decoding = Decoding("beam", beams=10, count=10, max_new_tokens=1)
    (found,) = beam_search(Table([1]), ONE_END, decoding, 1)
    assert sorted(text.ids for text in found) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("beams", [1, 3, 6])
@pytest.mark.parametrize("make", [tiny.llama, tiny.gpt2])
def test_beam_search_is_that_of_transformers(make, beams, penalty):
    model, prompts = make(), [(3, 50, 60, 70), (9, 8, 7, 6, 5, 4, 30), (250,)]
    likely_end = model.generate(
        torch.tensor([prompts[0]]), max_new_tokens=3, do_sample=False, pad_token_id=5
    )[0, -1]
    end = int(likely_end)  # a token that does come, so that texts of several lengths compete
    decoding = Decoding("beam", beams=beams, count=beams, max_new_tokens=8, length_penalty=penalty)
    with torch.inference_mode():
        found = beam_search(
            CausalReading(model, prompts), Endings(marks=(end,)), decoding, len(prompts)
        )
    for prompt, texts in zip(prompts, found, strict=True):
        expected = model.generate(
            torch.tensor([prompt]),
            num_beams=beams,
            num_return_sequences=beams,
            max_new_tokens=8,
            min_new_tokens=1,
            length_penalty=penalty,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=end,
        )
        wanted = [until(end, row[len(prompt) :]) for row in expected.tolist()]
        assert [text.ids for text in texts] == wanted


@pytest.mark.parametrize("make", [tiny.blenderbot, tiny.bart, tiny.t5])
def test_beam_search_of_encoder_decoders_is_that_of_transformers(make):
    model, prompts = make(), [(9, 50, 60, 4), (9, 8, 7, 6, 5, 30, 4)]
    start = model.config.decoder_start_token_id
    with torch.inference_mode():
        found = beam_search(
            Seq2SeqReading(model, prompts, (start,)),
            Endings(marks=(4,)),
            Decoding("beam", beams=4, count=4, max_new_tokens=6),
            len(prompts),
        )
    for prompt, texts in zip(prompts, found, strict=True):
        expected = model.generate(
            torch.tensor([prompt]),
            num_beams=4,
            num_return_sequences=4,
            max_new_tokens=6,
            min_new_tokens=1,
            do_sample=False,
            forced_eos_token_id=None,
            forced_bos_token_id=None,
            decoder_start_token_id=start,
            eos_token_id=4,
            pad_token_id=5,
        )
        assert [text.ids for text in texts] == [until(4, row[1:]) for row in expected.tolist()]


def until(end, ids):
    return tuple(ids[: ids.index(end)] if end in ids else ids)


def test_sampling_with_one_candidate_is_greedy_and_is_one_beam():
    seeds = list(range(30))
    draws = [[np.random.default_rng(seed)] for seed in seeds]
    greedy = sample(Table(seeds), ONE_END, Decoding(max_new_tokens=6), draws)
    one = sample(Table(seeds), ONE_END, Decoding("sample", top_k=1, max_new_tokens=6), draws)
    beam = beam_search(Table(seeds), ONE_END, Decoding("beam", beams=1, max_new_tokens=6), 30)
    assert [[text.ids for text in texts] for texts in greedy] == [
        [text.ids for text in texts] for texts in one
    ]
    assert [texts[0].ids for texts in greedy] == [texts[0].ids for texts in beam]


class Fixed:
    """The next token never depends on anything."""

    def __init__(self, shares):
        self.log_probs = torch.tensor([shares]).log()

    def select(self, rows):
        self.log_probs = self.log_probs[rows]

    def write(self, tokens):
        raise AssertionError("nobody is to write beyond the limit")


@pytest.mark.parametrize(
    ("decoding", "expected"),
    [
        (Decoding("sample", max_new_tokens=1), {1: 0.5, 2: 0.3, 3: 0.2}),
        (Decoding("sample", top_k=2, max_new_tokens=1), {1: 0.625, 2: 0.375}),
        (Decoding("sample", top_p=0.7, max_new_tokens=1), {1: 0.625, 2: 0.375}),
        (Decoding("sample", top_p=0.5, max_new_tokens=1), {1: 1.0}),
        (
            Decoding("sample", temperature=0.5, max_new_tokens=1),
            {1: 25 / 38, 2: 9 / 38, 3: 4 / 38},
        ),
    ],
)
def test_samples_have_the_shares_they_should(decoding, expected):
    """The first token cannot be the end, so 0.4, 0.24, 0.16 of the rest become 0.5, 0.3, 0.2."""
    table = Fixed([0.2, 0.4, 0.24, 0.16])
    draws = [[np.random.default_rng([7, i]) for i in range(4000)]]
    (texts,) = sample(table, ONE_END, decoding, draws)
    shares = {token: n / 4000 for token, n in Counter(text.ids[0] for text in texts).items()}
    assert shares == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))


def test_the_end_has_the_mass_of_all_tokens_that_end_a_text():
    endings = Endings(marks=(0,), banned=(1,), words=(2, 3), is_whole=lambda ids: ids[-1:] == (4,))
    log_probs = torch.tensor([[0.1, 0.3, 0.2, 0.15, 0.25]] * 3).log()
    merged = endings.merge(log_probs, [(), (2,), (2, 4)]).exp()
    expected = [
        [0, 0, 0.2, 0.15, 0.25, 0],  # nothing was said yet
        [0, 0, 0.2, 0.15, 0.25, 0.1],
        [0, 0, 0, 0, 0.25, 0.45],  # the sentence is over: a new word is a new turn
    ]
    assert torch.allclose(merged, torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "magic"},
        {"beams": 0},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"temperature": 0.0},
        {"max_new_tokens": 0},
        {"count": 0},
        {"count": 2},
        {"method": "beam", "beams": 3, "count": 4},
    ],
)
def test_a_decoding_that_makes_no_sense_is_refused(options):
    with pytest.raises(UsageError):
        Decoding(**options)
