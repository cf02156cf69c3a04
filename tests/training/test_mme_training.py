"""`train mme`: five tiny judges and weights by CRS, from made-up dialogues and ratings."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from models import tiny_encoders, tiny_scorers
from safetensors.torch import load_file
from training.chat_files import write_dialogues
from typer.testing import CliRunner

import dialeval as library
from dialeval.cli.app import app
from dialeval.errors import UsageError
from dialeval.metrics.composition import read_composition
from dialeval.training.examples.faults import STOPWORDS
from dialeval.training.recipes.mme import Mme, kind_of
from dialeval.training.recipes.mme_judges import MmeEngagement, MmeRelevance

ANIMALS = ["the cat", "a dog", "cats", "dogs", "the dog", "a cat"]
ACTS = ["sat on a mat", "do like it", "do n ' t like you", "sat and sat", "like the mat so"]
DIALOGUES = [
    (f"do you like {animal} ?", f"i do like {animal}", f"{animal} {act} .", f"so {animal} {act} ?")
    for animal in ANIMALS
    for act in ACTS
]
PARTS = ["fluency", "relevance", "topic", "engagement", "specificity"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Dialogues, replies with labels of engagement, and three rated files of the track's form."""
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    chats = write_dialogues(tmp_path / "chats.jsonl", DIALOGUES)
    replies = [f"{n},hello,the cat {'so ' * (n % 4)}sat {n},{n % 2}" for n in range(60)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["id,query,reply,label", *replies]))
    generator = np.random.default_rng(5)
    rated = tmp_path / "rated"
    rated.mkdir()
    for name in ("one", "two", "three"):
        records = [
            {
                "dialogue_id": f"{name}-{n}",
                "model": "A",
                "context": f"do you like {name} {n} ?\n{ANIMALS[n % 6]} sat .",
                "response": f"{ANIMALS[(n + 1) % 6]} {ACTS[n % 5]} {'very ' * (n % 3)}{name} {n}",
                "annotations": {"overall": [int(generator.integers(1, 6))]},
            }
            for n in range(30)
        ]
        (rated / f"{name}_eval.json").write_text(json.dumps(records))
    return [chats, labels, rated]


@pytest.fixture
def small(tmp_path):
    vectors = tiny_scorers.save_word_vectors(tmp_path / "vectors")
    return {
        "backbone": str(tiny_encoders.save_bert(tmp_path / "bert")),
        "vectors": str(vectors),
        "examples": 24,
        "held_out": 8,
        "epochs": 1,
    }


def test_one_command_trains_all_judges_as_published_and_fits_crs(tmp_path, data, small):
    out = tmp_path / "mme"
    options = [word for name, value in small.items()
               for word in (f"--{name.replace('_', '-')}", str(value))]  # fmt: skip
    given = [word for path in data for word in ("--data", str(path))]
    command = ("train", "mme", "--as-published", *options, *given, "-o", str(out))
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    cards = {part: json.loads((out / part / "card.json").read_text()) for part in PARTS}
    for part in ("fluency", "relevance", "engagement", "specificity"):
        settings = cards[part]["settings"]
        assert (settings["full"], settings["learning_rate"]) == (True, 1e-5)
        assert (settings["schedule"], settings["batch"]) == ("constant", 16)
        names = load_file(out / part / "scorer.safetensors")
        assert any(name.endswith("layer.2.output.dense.weight") for name in names)  # a whole copy
    assert cards["relevance"]["settings"]["architecture"] == "cross-encoder"
    assert cards["relevance"]["settings"]["stop_words"] == "removed"
    assert cards["engagement"]["settings"]["target"] == "label"
    topic = cards["topic"]["settings"]
    assert (topic["layers"], topic["heads"], topic["units"]) == (3, 4, 300)
    composition = read_composition(out / "crs.json")
    assert [term.metric.name for term in composition.terms] == [
        "mme-fluency", "mme-relevance", "mme-topic", "mme-engagement", *["mme-specificity"] * 3,
    ]  # fmt: skip
    assert {term.metric.masks for term in composition.terms[4:]} == {0}
    how = composition.provenance
    assert (how["power"], how["prior"], how["even"], how["scale"]) == (2.0, 0, False, "quartile")
    assert len(how["sets"]) == 3
    whole = json.loads((out / "card.json").read_text())
    assert "mean by set where each is left out: crs" in whole["scores"]
    assert "Leave one rated set out" in whole["tables"]
    sample = next(iter(library.load(data[2] / "one_eval.json")))
    run = library.score([sample], [f"mme-crs:weights={out / 'crs.json'}"])
    (value,) = run.scores(run.metrics[0])
    assert 0 <= value <= 1
    # A finished judge is kept where the training goes on, and one of another command is refused.
    (out / "card.json").unlink()
    with pytest.raises(UsageError, match="was trained by another command"):
        CliRunner().invoke(app, [*command, "--seed", "3"], catch_exceptions=False)


def test_the_kinds_of_data_are_told_apart_and_a_missing_kind_is_named(tmp_path, data, small):
    assert [kind_of(path) for path in data] == ["dialogues", "engagement", "rated"]
    with pytest.raises(UsageError, match=r"rated for engagement.*rated sets to fit"):
        library.train("mme", data[0], tmp_path / "mme", **small)
    assert not (tmp_path / "mme").exists()


def test_without_as_published_the_judges_have_the_defaults_of_their_recipes():
    parts = Mme().parts()
    assert parts["relevance"] == MmeRelevance()
    assert parts["engagement"] == MmeEngagement()


def test_stop_words_are_all_removed_or_not_at_all_as_in_the_paper(data, small):
    recipe = MmeRelevance(
        architecture="cross-encoder", stop_words="removed", vectors=small["vectors"]
    )
    right = [one for one in recipe.example_sets(data[:1]).examples(0) if one.target == 1]
    said = {turn for dialogue in DIALOGUES for turn in dialogue}
    changed = [one.response for one in right if one.response not in said]
    assert 0 < len(changed) < len(right)
    for text in changed:
        assert not set(text.lower().split()) & STOPWORDS


def test_engagement_as_labels_takes_each_response_once_with_its_rating(tmp_path, data):
    sets = MmeEngagement(target="label", per_source=0).example_sets(data[1:2])
    examples = sets.examples(0)
    assert len({one.response for one in examples}) == len(examples)
    assert len(examples) + len(sets.validation) == 60
    for one in examples:
        assert one.target == int(one.response.split()[-1]) % 2
    assert len(MmeEngagement(target="label", per_source=7).example_sets(data[1:2]).examples(0)) == 7
    with pytest.raises(UsageError, match="for --target label"):
        MmeEngagement(per_source=0)
