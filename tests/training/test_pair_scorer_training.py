"""Training of BERT-RUBER and PONE, on made-up vectors whose topics have to match."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError, Told
from training.made_up_topics import TOPICS, Topics

from dialeval.errors import JobError, UsageError
from dialeval.training.examples.pair_vectors import PairVectors
from dialeval.training.examples.sampling import NegativeSampler, SamplerOptions
from dialeval.training.learners.decision_boundary import (
    RANDOM,
    TRUE,
    WEIGHTED,
    ShownPairs,
    crossing,
    find_boundary,
    find_view,
    products,
)
from dialeval.training.learners.pair_scorer import (
    FilterOptions,
    Labels,
    PairBatch,
    PairScorerLearner,
    make_network,
    released_filter,
)
from dialeval.training.recipes.ruber import BertRuber, Pone, load_scorer
from dialeval.training.run import train as run


@pytest.fixture
def chats(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "no data"))
    generator = np.random.default_rng(0)
    dialogues = []
    for number in range(400):
        topic = TOPICS[generator.integers(4)]
        dialogues.append([f"do you like {topic} {number}", f"well {topic} are nice, said {number}"])
    return write_dialogues(tmp_path / "chats.jsonl", dialogues)


SHARED = {
    "model": "topics",
    "pairs": 0,
    "hidden": (16, 8),
    "dropout": 0.1,
    "batch": 32,
    "epochs": 6,
    "rate": 0.02,
    "source": Topics(),
}
BERT_RUBER = BertRuber(**SHARED)
PONE = Pone(
    **SHARED,
    variants=2,
    candidates=20,
    temperature=0.5,
    rounds=2,
    threshold=0.3,
    filter_epochs=1,
    filter_rate=1e-3,
)


def train(chats, out, recipe=PONE, **more):
    return run(recipe, chats, out, checkpoint_seconds=0, **more)


def test_bert_ruber_learns_that_topics_match(chats, tmp_path):
    card = train(chats, tmp_path / "out", BERT_RUBER)
    # A quarter of random negatives has the right topic and cannot be told: 7/8 at best.
    assert card.scores["accuracy on test"] > 0.75
    described = json.loads((tmp_path / "out" / "scorer.json").read_text())
    assert described == {
        "format": 1,
        "kind": "pair-scorer",
        "metric": "bert-ruber",
        "encoder": "topics",
        "pooling": "mean",
        "context": "weighted",
        "dimensions": 8,
        "hidden": [16, 8],
        "truncate_words": 100,
    }
    assert card.data["variants of responses"] == 0


def test_a_saved_scorer_scores_matching_topics_higher(chats, tmp_path):
    train(chats, tmp_path / "out")
    _, network = load_scorer(tmp_path / "out")
    vectors = {topic: torch.zeros(1, 8) for topic in TOPICS}
    for place, topic in enumerate(TOPICS):
        vectors[topic][0, place] = 2.0
    with torch.no_grad():
        scores = np.array(
            [[float(network(vectors[q], vectors[r])) for r in TOPICS] for q in TOPICS]
        )
    assert (scores.argmax(axis=1) == np.arange(4)).all()


def test_pone_leaves_a_card_a_curve_a_picture_and_no_checkpoint(chats, tmp_path):
    told = Told()
    card = train(chats, tmp_path / "out", replace(PONE, seeds=2), progress=told)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "scorer.json",
        "scorer.safetensors",
        "seeds.json",
        "seeds",
        "card.json",
        "card.md",
        "curve.svg",
        "boundary.svg",
        "labels.svg",
        "dialeval-model.json",
    }
    kept = [load_scorer(tmp_path / "out" / "seeds" / str(seed))[1].state_dict() for seed in (0, 1)]
    best = load_scorer(tmp_path / "out")[1].state_dict()
    same = [all(torch.equal(one[name], best[name]) for name in best) for one in kept]
    assert sorted(same) == [False, True]
    seeds = json.loads((tmp_path / "out" / "seeds.json").read_text())
    assert [one["seed"] for one in seeds] == [0, 1]
    best = max(seeds, key=lambda one: one["accuracy"]["validation"])
    assert card.seed == best["seed"]
    assert card.scores["accuracy on validation"] == best["accuracy"]["validation"]
    assert any(re.search(r"label filter, round 1: [\d,]+ of", line) for line in told.lines)
    assert all(entry["step"] >= 0 for entry in card.curve)
    rounds = best["rounds"]
    assert card.tables["Label filter"] == [{"round": n + 1} | one for n, one in enumerate(rounds)]
    assert "| round | kept | wrong | changed |" in (tmp_path / "out" / "card.md").read_text()
    steps = [entry["step"] for entry in card.curve]
    assert steps == sorted(steps)


@pytest.mark.parametrize("step", [3, 40, 72])
def test_a_killed_training_ends_with_the_same_files(chats, tmp_path, step):
    train(chats, tmp_path / "pone")
    tmp_path.joinpath("pone").rename(tmp_path / "whole")
    with pytest.raises(KilledError):
        train(chats, tmp_path / "pone", progress=Deadly(step))
    train(chats, tmp_path / "pone")
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "pone" / path.name).read_bytes()


def test_a_training_does_not_go_on_with_another_encoder(chats, tmp_path):
    class Others(Topics):
        def fingerprint(self, name):
            return "others"

    with pytest.raises(KilledError):
        train(chats, tmp_path / "out", progress=Deadly(3))
    with pytest.raises(UsageError, match="belongs to another training"):
        train(chats, tmp_path / "out", replace(PONE, source=Others()))


def test_the_released_schedule_runs_all_its_rounds(chats, tmp_path):
    options = replace(PONE, filter="released", rounds=3)
    train(chats, tmp_path / "out", options)
    (seed,) = json.loads((tmp_path / "out" / "seeds.json").read_text())
    assert len(seed["rounds"]) == 3


@pytest.mark.parametrize(
    ("positives", "first", "mode"), [("none", "middle", "none"), ("eda", "random", "released")]
)
def test_only_before_released_rounds_are_negatives_random_whatever_was_asked_for(
    chats, tmp_path, monkeypatch, positives, first, mode
):
    drawn = []
    draw = NegativeSampler.sample

    def sample(self, generator, name=None):
        drawn.append(name or self._options.name)
        return draw(self, generator, name)

    monkeypatch.setattr(NegativeSampler, "sample", sample)
    options = replace(
        PONE, sampler="middle", positives=positives, random_every=0, filter="released"
    )
    card = train(chats, tmp_path / "out", options)
    assert card.settings["sampler of the first stage"] == first
    assert card.settings["sampler name"] == "middle"
    assert card.settings["filter mode"] == mode
    # The first draw is what is held out.
    assert drawn[0] == "random"
    assert drawn[1 : 1 + PONE.epochs] == [first] * PONE.epochs
    assert "middle" in drawn


def test_the_paper_s_filter_stops_when_no_label_changes(chats, tmp_path):
    # A learning rate of 0 changes nothing: the second labelling equals the first.
    options = replace(PONE, rounds=None, threshold=None, filter_epochs=None, filter_rate=0.0)
    card = train(chats, tmp_path / "out", options)
    (seed,) = json.loads((tmp_path / "out" / "seeds.json").read_text())
    assert [one["changed"] for one in seed["rounds"]][1:] == [0]
    assert {one["kept"] for one in seed["rounds"]} == {card.data["variants of responses"]}
    assert card.scores["label filter: labels that changed in the last round"] == 0


def test_labels_come_to_rest_because_the_learning_rate_falls(chats, tmp_path):
    options = replace(PONE, rounds=None, threshold=None, filter_rate=0.02, filter_decay=0.5)
    card = train(chats, tmp_path / "out", options)
    rounds = card.tables["Label filter"]
    assert rounds[-1]["changed"] == 0 < rounds[0]["changed"]
    assert len(rounds) < 30


def test_labels_that_still_change_when_the_rounds_are_used_up_are_told(chats, tmp_path):
    told = Told()
    recipe = replace(PONE, rounds=1, threshold=None, filter_rate=None)
    train(chats, tmp_path / "out", recipe, progress=told)
    wanted = r"label filter: round 1, the last one, still changed [1-9]\d* of"
    assert any(re.match(wanted, line) for line in told.lines)
    assert told.lines[-1].startswith("20 test pairs are few")


def test_a_filter_that_keeps_nothing_is_an_error_that_says_what_to_do(chats, tmp_path):
    # No score is exactly 0 or 1.
    options = replace(PONE, threshold=0.0)
    with pytest.raises(JobError, match=r"round 1: none of [\d,]+ variants .*--threshold"):
        train(chats, tmp_path / "out", options)
    assert not (tmp_path / "out" / "card.json").exists()


def marked(rows=2000, variants=5):
    """Pairs whose responses share a topic with their queries; edited text has a 1 at the end."""
    generator = np.random.default_rng(0)
    topics = torch.nn.functional.one_hot(torch.from_numpy(generator.integers(4, size=rows)), 5)
    topics = topics.float() * 2
    edited = topics.clone()
    edited[:, -1] = 1.0
    of_pair = np.arange(rows * variants).reshape(rows, variants).tolist()
    return PairVectors(topics, topics.clone(), edited.numpy().repeat(variants, axis=0), of_pair)


def recipe_of(pairs, **more):
    topics = pairs.responses.argmax(dim=1).tolist()
    texts = [f"{topic} {row}" for row, topic in enumerate(topics)]
    sampler = NegativeSampler(SamplerOptions("random"), texts, lambda rows: pairs.responses[rows])
    network = make_network(5, (8,), 0.0, 0, "identity")
    wrong = np.roll(np.arange(len(pairs)), 1)
    return PairScorerLearner(network, pairs, sampler, pairs, wrong, seed=0, **more)


@pytest.mark.parametrize(("labelled", "share"), [(False, 5 / 6), (True, 1 / 2)])
def test_wrong_responses_are_edited_as_often_as_right_ones(labelled, share):
    pairs = marked()
    every = np.arange(len(pairs.variants))
    labels = Labels(every, np.ones(len(every), dtype=np.int64)) if labelled else None
    batches = recipe_of(pairs, labels=labels).batches(0)
    wrong = np.concatenate([batch.wrong for batch in batches])
    negatives = np.concatenate([batch.negatives for batch in batches])
    right = np.concatenate([batch.variants for batch in batches])
    assert (wrong >= 0).mean() == pytest.approx(share, abs=0.03)
    edited = (right >= 0).sum() + sum(len(batch.labelled) for batch in batches)
    assert edited / (len(right) * (1 + labelled)) == pytest.approx(share, abs=0.03)
    # What stands for a wrong response is a variant of that very response.
    assert (wrong[wrong >= 0] // 5 == negatives[wrong >= 0]).all()


@pytest.mark.parametrize("edit_negatives", [True, False])
def test_a_scorer_takes_edited_text_for_right_only_if_wrong_responses_are_never_edited(
    edit_negatives,
):
    pairs = marked()
    recipe = recipe_of(pairs, edit_negatives=edit_negatives, batch=64)
    adam = torch.optim.Adam(recipe.network.parameters(), lr=0.01)
    for epoch in range(4):
        for batch in recipe.batches(epoch):
            adam.zero_grad()
            recipe.loss(batch).backward()
            adam.step()
    # Of the responses on the topic, a sixth of the right ones and every fourth wrong one are as
    # they were: 0.4 of them are right, and of the edited ones all, if no wrong one is ever edited.
    plain = pairs.responses
    edited = plain.clone()
    edited[:, -1] = 1.0
    with torch.no_grad():
        before, after = (torch.sigmoid(recipe.network(pairs.queries, r)) for r in (plain, edited))
    gain = float((after - before).mean())
    assert (abs(gain) < 0.05) if edit_negatives else (gain > 0.3)


def test_a_round_of_the_filter_is_not_undone_where_validation_gains_nothing(chats, tmp_path):
    """Labels that stay the same would otherwise look as if they had converged."""
    options = replace(PONE, filter_rate=0.05, filter_decay=1.0, rounds=4)
    card = train(chats, tmp_path / "out", options)
    (seed,) = json.loads((tmp_path / "out" / "seeds.json").read_text())
    accuracies = [entry["validation_accuracy"] for entry in card.curve]
    assert any(later <= max(accuracies[:-3]) for later in accuracies[-3:])
    assert all(one["changed"] for one in seed["rounds"])
    assert len(seed["rounds"]) == 4


def test_random_epochs_are_counted_through_all_stages():
    def negatives(before, epoch):
        drawn = []
        recipe = PairScorerLearner.__new__(PairScorerLearner)
        recipe._seed, recipe._batch, recipe._labels = 0, 4, None
        recipe._edit_negatives = True
        recipe._random_every, recipe._epochs_before, recipe._sampler_name = 5, before, None
        recipe._pairs = PairVectors(torch.zeros(4, 1), torch.zeros(4, 1))

        class Sampler:
            def sample(self, generator, name):
                drawn.append(name)
                return np.zeros(4, dtype=np.int64)

        recipe._sampler = Sampler()
        recipe.batches(epoch)
        return drawn[0]

    assert [negatives(0, epoch) for epoch in (0, 1, 5)] == ["random", None, "random"]
    assert [negatives(7, epoch) for epoch in (0, 1, 3)] == [None, None, "random"]


def test_pone_draws_random_responses_in_every_second_epoch_as_released_and_edits_them_all():
    assert (Pone().random_every, Pone().edit_negatives) == (2, True)
    assert (BertRuber().random_every, BertRuber().edit_negatives) == (0, True)


def test_the_released_filter_has_the_numbers_of_the_released_recipes():
    assert released_filter("eda", 0.05, None) == FilterOptions(
        "released", 0.05, rounds=37, epochs=2, learning_rate=1e-7, decay=1.0
    )
    beams = released_filter("ctg:model=s2s", 0.05, 3)
    assert (beams.rounds, beams.epochs, beams.learning_rate) == (3, 5, 1e-6)
    assert released_filter("eda", 0.05, None, "change").doubtful == "change"


def test_a_finished_directory_and_a_directory_without_scorer_are_refused(chats, tmp_path):
    train(chats, tmp_path / "out", BERT_RUBER)
    with pytest.raises(UsageError, match="already holds"):
        train(chats, tmp_path / "out", BERT_RUBER)
    with pytest.raises(UsageError, match=r"no trained pair scorer"):
        train(chats, tmp_path / "new", replace(PONE, compare_with=str(tmp_path)))


def test_a_scorer_of_other_vectors_is_not_compared_with(chats, tmp_path):
    train(chats, tmp_path / "out", BERT_RUBER)
    described = tmp_path / "out" / "scorer.json"
    record = json.loads(described.read_text())
    described.write_text(json.dumps(record | {"encoder": "bert-base-uncased"}))
    with pytest.raises(UsageError, match="vectors of 'bert-base-uncased', not"):
        train(chats, tmp_path / "new", replace(PONE, compare_with=str(tmp_path / "out")))


def test_the_loss_is_binary_cross_entropy(golden):
    class Fixed(torch.nn.Module):
        def forward(self, query, response):
            return torch.logit(response[:, 0])

    # The golden labels 1, 0, 1: two right responses and, for the first, a wrong one.
    case = golden["bce"]
    assert case["y"] == [1, 0, 1]
    right, wrong, labelled = case["p"][0], case["p"][1], case["p"][2]
    pairs = PairVectors(
        torch.zeros(2, 1), torch.tensor([[right], [wrong]]), np.array([[labelled]]), [[0], []]
    )
    recipe = PairScorerLearner.__new__(PairScorerLearner)
    recipe.network, recipe._pairs = Fixed(), pairs
    batch = PairBatch(
        np.array([0]), np.array([-1]), np.array([1]), np.array([-1]), np.array([[0, 0, 1]])
    )
    assert float(recipe.loss(batch)) == pytest.approx(case["loss"], abs=1e-6)


def topical_pairs(count=60):
    """Vectors of four numbers: true responses share the first with their query, weighted ones the
    second, random ones none."""
    generator = np.random.default_rng(0)

    def noisy(*rows):
        return torch.from_numpy(np.tile(rows, (count, 1)) + generator.normal(0, 0.01, (count, 4)))

    responses = {
        TRUE: noisy(1, 1, 0, 0),
        RANDOM: noisy(0, 0, 1, 0),
        WEIGHTED: noisy(0, 1, 0, 1),
    }
    return ShownPairs(noisy(1, 1, 0, 0).float(), {kind: r.float() for kind, r in responses.items()})


def test_the_view_puts_true_responses_on_one_side_of_both_kinds_of_negatives():
    pairs = topical_pairs()
    view = find_view(pairs)
    means = {k: view.at(pairs.queries, r).mean(axis=0) for k, r in pairs.responses.items()}
    assert means[TRUE][0] > means[RANDOM][0]
    assert means[TRUE][1] > means[WEIGHTED][1]
    # What tells them from random ones is used up: no difference is left in the other direction.
    assert means[TRUE][1] == pytest.approx(means[RANDOM][1])


def test_products_of_vectors_add_up_to_their_cosine():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(5, 7, generator=generator), torch.randn(5, 7, generator=generator)
    expected = torch.nn.functional.cosine_similarity(x.double(), y.double())
    np.testing.assert_allclose(products(x, y).sum(axis=1), expected)


def test_the_boundary_of_a_scorer_that_is_linear_in_the_picture_is_exact():
    pairs = topical_pairs()
    view = find_view(pairs)
    points = {kind: view.at(pairs.queries, rows) for kind, rows in pairs.responses.items()}

    class Linear(torch.nn.Module):
        def forward(self, queries, responses):
            return torch.from_numpy(view.at(queries, responses) @ np.array([3.0, -2.0]) - 0.25)

    found = find_boundary(Linear(), pairs, points)
    assert found.line == pytest.approx((3.0, -2.0, -0.25))
    assert found.follows == 1.0
    told = {kind: float((rows @ [3.0, -2.0] > 0.25).mean()) for kind, rows in points.items()}
    assert found.correct[TRUE] == pytest.approx(told[TRUE])
    assert found.correct[RANDOM] == pytest.approx(1 - told[RANDOM])


def test_a_line_is_cut_at_the_edges_of_the_picture():
    assert crossing((1, -1, 0), (0, 2), (0, 1)) == [(0, 0), (1, 1)]
    assert crossing((0, 1, -5), (0, 2), (0, 1)) == []
