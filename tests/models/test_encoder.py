"""Encoders against plain transformers, one text at a time."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from dialeval.errors import JobError, UsageError
from dialeval.models import encoder
from dialeval.models.encoder import load
from dialeval.question import BestMatches, DocumentFrequency, Embed, TokenMatch, WordVectors

from .tiny_encoders import LAYERS, WINDOW, save_bert, save_roberta

TEXTS = [
    "the cat sat on a mat.",
    "do you like dogs?",
    "",
    "so",
    "  I don't!  ",
    "the dog and the cat and the dog and the cat sat",
    "é 😀 你好",
    "very " * 60,
]
MAKERS = {
    "bert": save_bert,
    "distilbert": lambda directory: save_bert(directory, kind="distilbert"),
    "roberta": save_roberta,
    "mpnet": lambda directory: save_roberta(directory, kind="mpnet"),
}


@pytest.fixture(scope="module", params=MAKERS)
def directory(request, tmp_path_factory):
    return MAKERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


def answers(model, questions):
    found = dict(model.answer(questions))
    assert sorted(found) == list(range(len(questions)))
    return [found[n] for n in range(len(questions))]


@cache
def plain(directory):
    return AutoTokenizer.from_pretrained(directory), AutoModel.from_pretrained(directory).eval()


@cache
def plain_states(directory, text, layer=-1):
    """What transformers says of one text alone: its tokens and their states."""
    tokenizer, model = plain(directory)
    inputs = tokenizer(text, truncation=True, max_length=WINDOW, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True)
    return inputs.input_ids[0].numpy(), out.hidden_states[layer][0].numpy()


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ("mean", lambda states: states.mean(0)),
        ("cls", lambda states: states[0]),
        ("max", lambda states: states.max(0)),
    ],
)
def test_an_embedding_is_the_pooled_last_layer(directory, pooling, pooled):
    found = answers(load(directory), [Embed("tiny", text, pooling) for text in TEXTS])
    for text, vector in zip(TEXTS, found, strict=True):
        _, states = plain_states(directory, text.strip())
        np.testing.assert_allclose(vector, pooled(states), atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_pooler_is_the_layer_that_transformers_has_on_top(kind, tmp_path):
    directory = MAKERS[kind](tmp_path)
    tokenizer, model = plain(directory)
    found = answers(load(directory), [Embed("tiny", text, "pooler") for text in TEXTS[:3]])
    for text, vector in zip(TEXTS, found, strict=False):
        inputs = tokenizer(text, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        with torch.no_grad():
            wanted = model(**inputs).pooler_output[0].numpy()
        np.testing.assert_allclose(vector, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_an_encoder_without_a_pooler_is_refused_and_none_is_made_up(kind, tmp_path):
    directory = MAKERS[kind](tmp_path)
    file = directory / "model.safetensors"
    kept = {name: t for name, t in load_file(file).items() if "pooler" not in name}
    save_file(kept, file, metadata={"format": "pt"})
    with pytest.raises(UsageError, match="has no pooler"):
        answers(load(directory), [Embed("tiny", "so", "pooler")])


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(len(TEXTS))), tokens=st.sampled_from([1, 30, 100, 4096]))
def test_an_answer_does_not_depend_on_its_batch(bert, order, tokens):
    model = load(bert)
    expected = [answers(model, [Embed("tiny", text)])[0] for text in TEXTS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "TOKENS_PER_BATCH", tokens)
        found = answers(model, [Embed("tiny", TEXTS[n]) for n in order])
    np.testing.assert_allclose(found, [expected[n] for n in order], atol=1e-5)


def test_memory_is_given_back_after_many_tokens_and_not_after_a_few(bert, monkeypatch):
    given = []
    monkeypatch.setattr(encoder, "give_back", lambda: given.append(True))
    monkeypatch.setattr(encoder, "GIVE_BACK_AFTER", 20)
    answers(load(bert), [Embed("tiny", "so")])
    assert not given
    answers(load(bert), [Embed("tiny", text) for text in TEXTS])
    assert given == [True]


@pytest.mark.parametrize("layer", [*range(LAYERS + 1), -1])
def test_token_matches_are_the_best_cosines_of_a_layer(directory, layer):
    pairs = [(first, second) for first in TEXTS for second in TEXTS[:4]]
    found = answers(load(directory), [TokenMatch("tiny", *pair, layer) for pair in pairs])
    space = " " if directory.name.startswith(("roberta", "mpnet")) else ""
    for pair, answer in zip(pairs, found, strict=True):
        (first, x), (second, y) = (
            plain_states(directory, space * bool(text.strip()) + text.strip(), layer)
            for text in pair
        )
        cosines = (x / np.linalg.norm(x, axis=1)[:, None]) @ (
            y / np.linalg.norm(y, axis=1)[:, None]
        ).T
        match = BestMatches.read(answer)
        # The first and the last token are the marks around the text.
        assert match.candidate_tokens.tolist() == first[1:-1].tolist()
        assert match.reference_tokens.tolist() == second[1:-1].tolist()
        np.testing.assert_allclose(match.candidate_cosines, cosines.max(1)[1:-1], atol=1e-5)
        np.testing.assert_allclose(match.reference_cosines, cosines.max(0)[1:-1], atol=1e-5)


def test_token_matches_do_not_depend_on_how_many_states_are_held(bert, monkeypatch):
    questions = [TokenMatch("tiny", first, second) for first in TEXTS for second in TEXTS]
    expected = answers(load(bert), questions)
    monkeypatch.setattr(encoder, "STATES_HELD", 1000)
    for one, other in zip(answers(load(bert), questions), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_each_distinct_text_is_read_once(bert):
    model = load(bert)
    read = []
    states = model._states
    model._states = lambda batch, layer: read.extend(batch) or states(batch, layer)
    responses, references = TEXTS[:4], TEXTS[4:]
    answers(model, [TokenMatch("tiny", a, b) for a in responses for b in references])
    assert len(read) == len(TEXTS)


def test_document_frequency_counts_texts_not_occurrences(bert):
    tokenizer = AutoTokenizer.from_pretrained(bert)
    [counts] = answers(load(bert), [DocumentFrequency("tiny", ("the cat the", "the dog", "so"))])
    the, cat, mat, start = tokenizer.convert_tokens_to_ids(["the", "cat", "mat", "[CLS]"])
    assert counts[[the, cat, mat, start]].tolist() == [2, 1, 0, 3]
    assert len(counts) == len(tokenizer)


def test_what_does_not_fit_is_cut_on_the_right_and_counted(bert):
    model = load(bert)
    [long, short] = answers(model, [TokenMatch("tiny", "the " * n, "so") for n in (30, 3)])
    # 22 words fit between the marks.
    assert BestMatches.read(long).cut == 8
    assert len(BestMatches.read(long).candidate_tokens) == WINDOW - 2
    assert BestMatches.read(short).cut == 0


def test_a_sentence_encoder_is_cut_where_its_authors_cut_it(tmp_path):
    save_bert(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6}))
    model = load(tmp_path)
    same, other = answers(model, [Embed("tiny", f"the cat sat on {end}") for end in ("a", "it")])
    np.testing.assert_array_equal(same, other)
    [match] = answers(model, [TokenMatch("tiny", "the cat sat on a mat", "so")])
    assert BestMatches.read(match).cut == 0


def test_half_a_character_is_read_as_a_replacement_character(bert):
    broken, replaced = answers(
        load(bert), [Embed("tiny", "a \ud83d b"), Embed("tiny", "a \ufffd b")]
    )
    np.testing.assert_array_equal(broken, replaced)


def test_a_batch_that_does_not_fit_into_memory_is_halved(bert):
    model = load(bert)
    expected = answers(model, [Embed("tiny", text) for text in TEXTS])
    forward, sizes = model._model.forward, []

    def small(**inputs):
        sizes.append(len(inputs["input_ids"]))
        if sizes[-1] > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return forward(**inputs)

    model._model.forward = small
    np.testing.assert_allclose(
        answers(model, [Embed("tiny", text) for text in TEXTS]), expected, atol=1e-5
    )
    assert sizes[:3] == [8, 4, 2]


def test_a_single_text_that_does_not_fit_into_memory_is_a_clear_error(bert):
    model = load(bert)

    def none(**inputs):
        raise RuntimeError("CUDA out of memory")

    model._model.forward = none
    with pytest.raises(JobError, match=r"single text of 4 tokens"):
        answers(model, [Embed("tiny", "the cat")])


def test_a_layer_that_is_not_there_is_a_clear_error(bert):
    with pytest.raises(UsageError, match=r"layer 4 asked for, .* layers 0 to 3"):
        answers(load(bert), [TokenMatch("tiny", "a", "b", 4)])


def test_other_questions_are_refused(bert):
    with pytest.raises(UsageError, match=r"is an encoder and cannot answer WordVectors"):
        answers(load(bert), [WordVectors("tiny", ("a",))])
