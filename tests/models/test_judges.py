"""Trained scorers as models: a directory in, answers to `Judge` out."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders, tiny_scorers
from safetensors.torch import save_file

import dialeval
from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.model_store.catalogue import CATALOGUE
from dialeval.model_store.locate import entry_directory, locate
from dialeval.model_store.scorer_directory import read_scorer, scorer_base
from dialeval.models import pair_scorer
from dialeval.models.source import Models, check_trained_for
from dialeval.question import Embed, Judge, Judgement, Likelihood, WordVectors
from dialeval.sample import Sample, Turn

JUDGES = [entry for entry in CATALOGUE.values() if entry.role == "judge"]
DIALOGUES = [
    (("hello there", "the cat sat"), "do you like it ?"),
    (("so very",), "i do"),
    (("the dog sat on a mat . " * 3, "it", "no"), "a"),
    (("", "like"), "cat"),
]


@pytest.fixture
def encoder(tmp_path):
    return str(tiny_encoders.save_bert(tmp_path / "encoder"))


@pytest.fixture
def vectors(tmp_path):
    return str(tiny_scorers.save_word_vectors(tmp_path / "vectors"))


def ask(*questions):
    found = Answerer(Models("cpu"), None).answer(questions)
    return [found[question] for question in questions]


def test_a_judge_that_learned_something_else_is_refused(tmp_path, encoder, vectors):
    sample = Sample("1", (Turn("hello"),), "hi")
    pairs = tiny_scorers.save_pair_scorer(tmp_path / "pairs", encoder)
    words = tiny_scorers.save_ruber(tmp_path / "words", vectors)
    for spec in (
        f"mme-fluency:model={pairs}",
        f"pone:model={words}",
        f"coherence:model={pairs}",
        f"usl-h:model={encoder},fluency={pairs}",
        f"usl-h:model={encoder},fluency={encoder},relevance={words}",
    ):
        with pytest.raises(UsageError, match=r"was trained for .*, and is asked for"):
            dialeval.score([sample], [spec])
    check_trained_for(str(pairs), "bert-ruber")
    check_trained_for(str(pairs), "pone")


def test_the_scorer_of_pone_gives_the_golden_score(tmp_path, golden):
    toy = golden["scorer_forward"]["toy"]
    weights = {"bilinear": toy["M"], "out.weight": toy["Wo"], "out.bias": toy["bo"]}
    for place in range(3):
        weights[f"hidden.{place}.weight"] = toy[f"W{place + 1}"]
        weights[f"hidden.{place}.bias"] = toy[f"b{place + 1}"]
    save_file(
        {name: torch.tensor(value, dtype=torch.float32) for name, value in weights.items()},
        tmp_path / "scorer.safetensors",
    )
    config = pair_scorer.PairScorerConfig("pone", "any", "mean", "sum", 3, (4, 5, 2), 100)
    (tmp_path / "scorer.json").write_text(json.dumps({"format": 1, **config.to_record()}))
    scorer = pair_scorer.load(tmp_path, device="cpu")
    question = Judge("scorer", ("the query",), "the response")
    assert [text.text for text in scorer.asks([question])[0]] == ["the query", "the response"]
    ((_, score),) = scorer.answer([question], [[np.array(toy["q"]), np.array(toy["r"])]])
    assert score.shape == (1,)
    assert score[0] == pytest.approx(toy["score"], abs=1e-6)


@pytest.mark.parametrize("context", ["sum", "weighted", "last"])
def test_turns_become_a_query_by_the_rule_of_the_scorer(tmp_path, encoder, context):
    name = str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder, context=context))
    turns, response = ("the cat sat", "do you like it ?", "so very"), "i do"
    (score,) = ask(Judge(name, turns, response))
    rows = np.array(ask(*(Embed(encoder, text) for text in (*turns, response))), np.float32)
    shares = {"sum": [1, 1, 1], "weighted": [1 / 7, 2 / 7, 4 / 7], "last": [0, 0, 1]}[context]
    query = torch.from_numpy(np.array(shares, np.float32) @ rows[:3])
    network = pair_scorer.load(tmp_path / "scorer", device="cpu")._network
    with torch.no_grad():
        expected = network(query[None], torch.from_numpy(rows[3:])).sigmoid().item()
    assert float(score[0]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["pair-scorer", "ruber"])
def test_a_score_depends_neither_on_its_neighbours_nor_on_its_place(
    tmp_path, encoder, vectors, kind
):
    if kind == "ruber":
        name = str(tiny_scorers.save_ruber(tmp_path / "scorer", vectors))
    else:
        name = str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder))
    questions = [Judge(name, *dialogue) for dialogue in DIALOGUES]
    together = [float(score[0]) for score in ask(*questions)]
    alone = [float(ask(question)[0][0]) for question in questions]
    backwards = [float(score[0]) for score in ask(*reversed(questions))][::-1]
    assert together == pytest.approx(alone, abs=1e-6)
    assert together == pytest.approx(backwards, abs=1e-6)
    assert len(set(together)) == len(together)
    assert all(0 < score < 1 for score in together)


def test_only_the_last_words_of_a_text_are_read(tmp_path, encoder):
    name = str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder))
    long = " ".join(f"w{n}" for n in range(150))
    scorer = pair_scorer.load(tmp_path / "scorer", device="cpu")
    ((turn, response),) = scorer.asks([Judge(name, (long,), " \n")])
    assert turn.text == " ".join(f"w{n}" for n in range(50, 150))
    assert response.text == "[UNK]"
    questions = [Judge(name, (said,), "yes") for said in (long, "no")]
    vectors = [[np.zeros(scorer._config.dimensions)] * 2] * 2
    found = dict(scorer.answer(questions, vectors))
    assert Judgement.read(found[0]).note == "turns truncated to 100 tokens"
    assert Judgement.read(found[1]).note == ""


def test_ruber_reads_the_last_turn_word_by_word(tmp_path, vectors):
    name = str(tiny_scorers.save_ruber(tmp_path / "scorer", vectors))
    scorer = pair_scorer.load_ruber(tmp_path / "scorer", device="cpu")
    ((query, response),) = scorer.asks([Judge(name, ("ignored", "Don't " * 9), "A, b! " * 9)])
    assert query == WordVectors(vectors, ("do", "n't") * 4)
    assert response == WordVectors(vectors, ("a", ",", "b", "!") * 2)
    assert scorer.asks([Judge(name, (), "")])[0][0].words == ("",)


def test_unknown_words_share_one_learned_vector(tmp_path, vectors):
    name = str(tiny_scorers.save_ruber(tmp_path / "scorer", vectors))
    one, other, known = (Judge(name, ("hello",), f"the {word}") for word in ("xyz", "qrs", "cat"))
    first, second, third = (float(score[0]) for score in ask(one, other, known))
    assert first == second != third


def test_a_scorer_passes_on_what_its_base_can_answer(tmp_path, encoder, vectors):
    pone = str(tiny_scorers.save_pair_scorer(tmp_path / "pone", encoder))
    own = str(tiny_scorers.save_ruber(tmp_path / "ruber", vectors))
    mine, of_encoder = ask(Embed(pone, "the cat"), Embed(encoder, "the cat"))
    assert np.array_equal(mine, of_encoder)
    mine, of_table = ask(WordVectors(own, ("cat", "?!")), WordVectors(vectors, ("cat", "?!")))
    assert np.array_equal(mine, of_table, equal_nan=True)
    for name in (pone, own):
        with pytest.raises(UsageError, match="cannot answer Likelihood"):
            ask(Likelihood(name, "the cat"))


def test_a_directory_with_a_scorer_is_a_judge_whose_base_is_the_encoder(tmp_path, encoder):
    found = locate(str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder)))
    assert (found.role, found.base.role, found.base.name) == ("judge", "encoder", encoder)


def test_the_fingerprint_changes_with_the_scorer_and_with_its_encoder(tmp_path, encoder):
    name = str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder))
    before = Models("cpu").fingerprint(name)
    assert before != Models("cpu").fingerprint(
        str(tiny_scorers.save_pair_scorer(tmp_path / "other", encoder, seed=1))
    )
    other = tiny_encoders.save_bert(tmp_path / "encoder2")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.5}))
    other.rename(tmp_path / "swap")
    (tmp_path / "encoder").rename(tmp_path / "encoder2")
    (tmp_path / "swap").rename(tmp_path / "encoder")
    assert Models("cpu").fingerprint(name) != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "reads format 1"),
        ({"kind": "oracle"}, "kind: 'oracle' is none of pair-scorer, ruber"),
        ({"encoder": ""}, "encoder: names no model"),
        ({"encoder": "no-such-encoder"}, "no model 'no-such-encoder'"),
        ({"hidden": [8, 5]}, "not the weights of scorer.json"),
        ({"hidden": "8"}, "hidden: expected list"),
        ({"context": "first"}, "context: 'first' is none of sum, weighted, last"),
        ({"dimensions": True}, "dimensions: expected int"),
    ],
)
def test_a_damaged_description_is_refused_with_the_field(tmp_path, encoder, change, message):
    directory = tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder)
    record = json.loads((directory / "scorer.json").read_text())
    (directory / "scorer.json").write_text(json.dumps(record | change))
    with pytest.raises(UsageError, match=message):
        ask(Judge(str(directory), ("a",), "b"))


def test_the_wrong_encoder_is_noticed(tmp_path, encoder):
    name = str(tiny_scorers.save_pair_scorer(tmp_path / "scorer", encoder, size=12))
    with pytest.raises(UsageError, match=r"reads vectors of 12 numbers, but those of .* have 16"):
        ask(Judge(name, ("a",), "b"))


LARGEST = {
    "judge-corpus-minilm-l6": 22_000_000,  # all layers, not an adapter
    "judge-corpus-mpnet": 6_000_000,  # adapters of rank 16 on twelve layers
}


@pytest.mark.parametrize("entry", JUDGES, ids=lambda entry: entry.name)
def test_a_shipped_scorer_is_small_whole_and_has_a_card(entry):
    directory = entry_directory(entry)
    weights = directory / "scorer.safetensors"
    assert weights.stat().st_size < LARGEST.get(entry.name, 1_500_000)
    assert scorer_base(read_scorer(directory)) == entry.base
    card = json.loads((directory / "card.json").read_text())
    assert card["licence"] == entry.licence
    named = ("corpora/", "models/", "dstc10/", "holistic/")  # data sets by name, no paths
    assert "/" not in re.sub("|".join(named), "", card["command"])
