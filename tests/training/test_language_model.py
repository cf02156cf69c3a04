"""`train lm` with a tiny random Llama: an adapter, a whole model, a kill, a card."""

import json

import numpy as np
import pytest

pytest.importorskip("peft", reason="needs the extra 'train'")

from models import tiny_language_models as tiny
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError

from dialeval.errors import UsageError
from dialeval.generation.generator import load_generator
from dialeval.models.source import Models
from dialeval.question import Likelihood, TokenLogProbs
from dialeval.sample import Turn
from dialeval.training.examples import corpora
from dialeval.training.examples.corpora import RatedExchanges, exchanges_of, load_corpus
from dialeval.training.learners.language_models import LanguageModelLearner
from dialeval.training.recipes.lm import LanguageModel, disjoint_pairs, pair_corpus
from dialeval.training.run import train


def recipe_of(base, **more):
    shared = {"epochs": 3, "learning_rate": 0.02, "batch_tokens": 64, "dialogue_tokens": 48}
    return LanguageModel(model=base, **{"rank": 4, **shared, **more})


@pytest.fixture(autouse=True)
def _no_rated_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))


@pytest.fixture
def corpus(tmp_path):
    """A corpus in DailyDialog's form in which every question has the same answer."""
    for split, count in (("train", 24), ("validation", 4), ("test", 4)):
        folder = tmp_path / "corpus" / split
        folder.mkdir(parents=True)
        lines = [
            f"hello {split}{i} __eou__ what are you trying to say __eou__ the cat sat on the mat"
            for i in range(count)
        ]
        (folder / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "corpus"


@pytest.fixture
def base(tmp_path):
    return str(tiny.save(tmp_path / "base", tiny.llama(), tiny.tokenizer()))


def log_likelihood(model: str) -> float:
    question = Likelihood(
        model, text="the cat sat on the mat", turns=(Turn("what are you trying to say", "user"),)
    )
    ((_, answer),) = Models(device="cpu").load(model).answer([question])
    return sum(TokenLogProbs.read(answer).log_probs)


@pytest.mark.parametrize("full", [True, False])
def test_what_was_learned_is_what_the_metric_sees(tmp_path, corpus, base, full):
    recipe = recipe_of(base, full=full, rank=None if full else 4)
    card = train(recipe, corpus, tmp_path / "mine")
    before, after = card.scores.values()
    assert after < before / 2
    assert log_likelihood(str(tmp_path / "mine")) > log_likelihood(base) + 5
    assert Models().fingerprint(str(tmp_path / "mine")) != Models().fingerprint(base)
    assert json.loads((tmp_path / "mine" / "card.json").read_text())["seed"] == 0
    assert load_generator(str(tmp_path / "mine")).layout == "plain"
    assert "train" in (tmp_path / "mine" / "card.md").read_text()
    assert (tmp_path / "mine" / "curve.svg").read_text().startswith("<svg")


def test_a_dialogue_of_a_rated_set_is_not_learned_from(tmp_path, corpus, base, monkeypatch):
    shared = "I would like to see the manager about this.", "He is out until Monday, I am afraid."
    with (corpus / "train" / "dialogues_train.txt").open("a") as file:
        file.write(" __eou__ ".join(shared) + "\n")
    rated = RatedExchanges((exchanges_of("ours", 1, [shared]),))
    monkeypatch.setattr(corpora, "known_exchanges", lambda: rated)
    card = train(recipe_of(base, epochs=1, learning_rate=0.0), corpus, tmp_path / "mine")
    assert card.data["train dialogues"] == 24
    assert card.data["dialogues left out because rated sets share them"] == 1
    assert card.data["dialogues left out, by rated set"] == "ours 1"


def test_a_killed_training_ends_with_the_same_adapter(tmp_path, corpus, base):
    def learn(out, **more):
        return train(recipe_of(base), corpus, out, checkpoint_seconds=0, **more)

    learn(tmp_path / "whole")
    with pytest.raises(KilledError):
        learn(tmp_path / "killed", progress=Deadly(7))
    learn(tmp_path / "killed")
    for name in ("adapter_model.safetensors", "curve.svg"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_finished_model_is_not_trained_over(tmp_path, corpus, base):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "card.json").write_text("{}")
    with pytest.raises(UsageError, match="already holds a trained model"):
        train(recipe_of(base), corpus, tmp_path / "mine")


def test_dailydialog_is_read_with_its_splits(datasets):
    corpus = load_corpus(datasets / "corpora" / "dailydialog")
    sizes = [len(corpus.train), len(corpus.validation), len(corpus.test)]
    # 11118, 1000 and 1000 are released; each dialogue counts once.
    assert [size <= released for size, released in zip(sizes, (11118, 1000, 1000), strict=True)]
    assert corpus.train[0][0].startswith("Say , Jim , how about going for a few beers")


def test_a_file_of_chats_is_split_by_dialogue(tmp_path):
    path = tmp_path / "chats.jsonl"
    rows = [
        {
            "id": f"c{i}",
            "messages": [
                {"role": "user", "content": f"hello {i}"},
                {"role": "assistant", "content": "hi"},
                {"role": "user", "content": "bye"},
                {"role": "assistant", "content": "bye bye"},
            ],
        }
        for i in range(200)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = load_corpus(path)
    splits = [set(corpus.train), set(corpus.validation), set(corpus.test)]
    assert sum(map(len, splits)) == len(set.union(*splits)) == 200
    assert all(len(dialogue) == 4 for dialogue in corpus.train)
    assert len(corpus.validation) > 0


def test_every_epoch_has_as_many_batches_and_every_dialogue(base):
    """Lengths at random: who shares a batch of 64 tokens changes from epoch to epoch."""
    model, tokenizer = tiny.llama(), tiny.tokenizer()
    random = np.random.default_rng(5)
    dialogues = [("the " * n, "cat") for n in random.integers(1, 20, 60)]
    recipe = recipe_of(base, seed=3)
    learner = LanguageModelLearner(model, tokenizer, dialogues, dialogues[:2], recipe)
    epochs = [learner.batches(epoch) for epoch in range(12)]
    assert len({len(batches) for batches in epochs}) == 1
    assert {sum(len(batch) for batch in batches) for batches in epochs} == {60}
    assert epochs[0] != epochs[1]


def test_several_corpora_are_learned_from_as_one(tmp_path):
    paths = []
    for name in "ab":
        rows = [[f"hello {name} {i}", f"the cat {i} of {name}"] for i in range(40)]
        paths.append(write_dialogues(tmp_path / f"{name}.jsonl", rows))
    both, _ = corpora.load_unrated(paths)
    one, other = (load_corpus(path) for path in paths)
    assert both.name == "a.jsonl+b.jsonl"
    assert both.train == one.train + other.train
    assert both.test == one.test + other.test


def test_pairs_are_a_query_and_its_response_of_train_and_validation_together(tmp_path, base):
    for split, count in (("train", 20), ("validation", 6), ("test", 3)):
        folder = tmp_path / "corpus" / split
        folder.mkdir(parents=True)
        lines = [f"{split} {i} __eou__ yes __eou__ what {i} __eou__ no __eou__ end" for i in
                 range(count)]  # fmt: skip
        (folder / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n")
    card = train(
        recipe_of(base, epochs=1, learning_rate=0.0, pairs=True, held_out=4),
        tmp_path / "corpus",
        tmp_path / "mine",
    )
    # five turns are two pairs; of the twelve pairs of the validation split four are held out
    assert card.data["train pairs"] == 20 * 2 + 6 * 2 - 4
    before, after = card.scores
    assert before == "test perplexity before (4 pairs)"
    assert after == "test perplexity after (4 pairs; HolisticEval's GPT-2: 16.5)"
    (first, *_) = pair_corpus(load_corpus(tmp_path / "corpus"), 4).train
    assert first == ("train 0", "yes")


def test_the_pairs_of_dailydialog_are_as_many_as_the_paper_counts(datasets):
    """Section 4.1: 42,000 / 3,700 / 3,900, rounded; each dialogue of the release, repeats too."""
    counts = []
    for split in ("train", "test", "validation"):
        path = datasets / "corpora" / "dailydialog" / split / f"dialogues_{split}.txt"
        turns = [
            tuple(turn for turn in line.split("__eou__") if turn.strip())
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        counts.append(len(disjoint_pairs(turns)))
    assert counts == [41637, 3700, 3851]
    rounded = [round(counts[0], -3), *(round(count, -2) for count in counts[1:])]
    assert rounded == [42000, 3700, 3900]
