"""`train judge-corpus` and `train judge` with a tiny random BERT."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from models import tiny_encoders, tiny_scorers
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError
from training.test_by_source import measure_script

import dialeval
from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.models.source import Models
from dialeval.question import ASPECTS, Assess, Assessment
from dialeval.sample import Turn
from dialeval.training.examples.judge import (
    Answered,
    Group,
    contradicting_pairs,
    graded_groups,
    split_by_turns,
)
from dialeval.training.examples.model_ratings import reference
from dialeval.training.learners import judge_corpus
from dialeval.training.run import train

ANIMALS = ["the cat", "a dog", "cats", "dogs", "the dog", "a cat"]
ACTS = ["sat on a mat", "do like it", "do n ' t like you", "sat and sat", "like the mat so"]
DIALOGUES = [
    (f"do you like {animal} ?", f"i do like {animal}", f"{animal} {act} .", f"so {animal} {act} ?")
    for animal in ANIMALS
    for act in ACTS
]


@pytest.fixture
def base(tmp_path):
    return str(tiny_encoders.save_bert(tmp_path / "bert"))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    return write_dialogues(tmp_path / "chats.jsonl", DIALOGUES)


def learn(corpus, out, base, **options):
    given = {"model": base, "start": "", "groups": 20, "graded": 4, "batch": 12}
    given |= {"learning_rate": 0.003}
    given |= {"context_tokens": 12, "response_tokens": 9}  # the tiny one has 24 positions
    return train("judge-corpus", corpus, out, **(given | {"epochs": 2} | options))


@pytest.fixture
def relevance(tmp_path, corpus, base):
    vectors = str(tiny_scorers.save_word_vectors(tmp_path / "vectors"))
    small = {"model": base, "vectors": vectors, "examples": 20, "held_out": 10, "epochs": 1}
    train("mme-relevance", corpus, tmp_path / "relevance", **small)
    return str(tmp_path / "relevance")


def scorers(judge):
    """One judge for all: whoever is asked, it answers."""
    return dict.fromkeys(("relevance", "pone", "engagement"), judge)


def assess(model, response="i do like cats"):
    question = Assess(str(model), (Turn("do you like cats ?", "you"),), response)
    return Assessment.read(Answerer(Models("cpu"), None).answer([question])[question])


def test_what_was_learned_rates_every_aspect_from_1_to_5(tmp_path, corpus, base):
    card = learn(corpus, tmp_path / "out", base)
    assert 0.0 <= card.scores["right_answer_preferred"] <= 1.0
    found = assess(tmp_path / "out")
    assert all(1.0 < rating < 5.0 for rating in found.ratings)
    assert found != assess(tmp_path / "out", "mat mat mat")


@pytest.fixture
def rated_by_a_model(monkeypatch):
    """Long answers that are rated high, against short ones."""
    records = [
        {
            "turns": [reference(dialogue[2])],
            "answers": [reference(dialogue[3]), "=no"],
            "ratings": ["555", "111"],
        }
        for dialogue in DIALOGUES
    ]
    monkeypatch.setattr(judge_corpus, "shipped_records", lambda: records)


def test_it_learns_what_a_language_model_rated(tmp_path, corpus, base, rated_by_a_model):
    card = learn(corpus, tmp_path / "out", base, model_rated=30, epochs=6)
    assert 20 <= card.data["groups that a language model rated"] < 30  # some are held out
    assert card.scores["better_of_rated_answers_preferred"] == 1.0
    assert card.scores["correlation_with_ratings_of_the_language_model"] > 0.5


def test_the_card_says_what_is_known_beyond_source_and_length(
    tmp_path, corpus, base, rated_by_a_model
):
    """Half of the answers of a corpus are right. What the language model rated high is what is
    long, so that less is left to correlate where length is held constant."""
    card = learn(corpus, tmp_path / "out", base, model_rated=30, epochs=6)
    own, rated = card.by_source
    assert (own["source"], own["majority"]) == ("chats.jsonl", 0.5)
    assert own["partial"] is not None
    assert (rated["source"], rated["majority"], rated["accuracy"]) == ("model-ratings", 0.5, 1.0)
    assert rated["spearman"] > 0.8
    assert rated["length"] > 0.5
    assert rated["partial"] < rated["spearman"]
    script = measure_script()
    held_out = script.measure_part(str(tmp_path / "out"), [corpus])[0]
    assert held_out.to_record() == pytest.approx(own, abs=1e-5)


def test_what_is_held_out_stays_so_if_groups_are_added():
    turns = [f"do you like the number {number} ?" for number in range(200)]
    groups = [Group((Answered((said,), "yes", {}),), ()) for said in turns]
    learned, held_out = split_by_turns(groups)
    assert 5 <= len(held_out) <= 40
    fewer = split_by_turns(groups[:100])
    assert all(group in learned for group in fewer[0])
    assert all(group in held_out for group in fewer[1])


def test_the_cross_encoder_does_not_learn_from_contradictions_that_the_weights_learn_from():
    learned, _ = split_by_turns(graded_groups())
    seen = {answer.response for group in learned for answer in group.answers}
    pairs = contradicting_pairs()
    assert len(pairs) >= 100
    assert all(pair.good != pair.bad and pair.bad not in seen for pair in pairs)


def test_it_learns_with_products_in_16_bits_too(tmp_path, corpus, base, rated_by_a_model):
    options = {"model_rated": 30, "epochs": 6, "precision": "bfloat16"}
    card = learn(corpus, tmp_path / "out", base, **options)
    assert card.scores["better_of_rated_answers_preferred"] == 1.0


def test_a_killed_training_ends_with_the_same_weights(tmp_path, corpus, base):
    learn(corpus, tmp_path / "whole", base)
    for step in (2, 5):
        with pytest.raises(KilledError):
            learn(corpus, tmp_path / "killed", base, progress=Deadly(step), checkpoint_seconds=0)
    learn(corpus, tmp_path / "killed", base, checkpoint_seconds=0)
    assert assess(tmp_path / "whole") == assess(tmp_path / "killed")


def test_every_epoch_has_as_many_batches(tmp_path, corpus, base):
    """Groups of later epochs may be smaller: an epoch that ends early would never end."""
    for seed in range(4):
        card = learn(corpus, tmp_path / str(seed), base, seed=seed, groups=21, epochs=3)
        assert len(card.curve) == 4


def test_adapters_learn_in_place_of_all_layers(tmp_path, corpus, base, rated_by_a_model):
    """They are smaller than the layers, and the judge that is loaded says what was learned."""
    options = {"model_rated": 30, "rank": 2, "epochs": 6, "learning_rate": 0.02}
    card = learn(corpus, tmp_path / "out", base, **options)
    assert card.scores["better_of_rated_answers_preferred"] == 1.0
    overall = ASPECTS.index("overall")
    good, bad = (
        assess(tmp_path / "out", text).ratings for text in ("the cat sat on a mat .", "no")
    )
    assert good[overall] > bad[overall] + 0.5
    learn(corpus, tmp_path / "whole", base, epochs=1)
    sizes = [(tmp_path / one / "scorer.safetensors").stat().st_size for one in ("out", "whole")]
    assert sizes[0] < sizes[1]


def test_an_encoder_without_segments_can_be_adapted(tmp_path, corpus):
    mpnet = str(tiny_encoders.save_roberta(tmp_path / "mpnet", kind="mpnet"))
    learn(corpus, tmp_path / "out", mpnet, rank=2, epochs=1)
    assert all(1.0 < rating < 5.0 for rating in assess(tmp_path / "out").ratings)


def test_adapters_go_on_where_others_stopped(tmp_path, corpus, base):
    first = str(tmp_path / "first")
    learn(corpus, first, base, rank=2, learning_rate=0.02)
    second = learn(
        corpus, tmp_path / "second", base, start=first, rank=2, epochs=1, learning_rate=1e-9
    )
    assert second.curve[0]["validation_loss"] == pytest.approx(second.curve[-1]["validation_loss"])
    assert assess(tmp_path / "second").ratings == pytest.approx(assess(first).ratings, abs=1e-3)


def test_adapters_begin_with_the_encoder_or_with_adapters_of_their_rank(tmp_path, corpus, base):
    for out, rank in (("adapters", 2), ("layers", 0)):
        learn(corpus, tmp_path / out, base, rank=rank, epochs=1)
    for start, rank, wanted in (("adapters", 3, 2), ("adapters", 0, 2), ("layers", 2, 0)):
        with pytest.raises(UsageError, match=f"use it with --rank {wanted}"):
            learn(corpus, tmp_path / "second", base, start=str(tmp_path / start), rank=rank)
    with pytest.raises(UsageError, match="use it with --start ''"):
        learn(corpus, tmp_path / "second", base, start=base, rank=2)


def test_an_adapter_of_another_encoder_is_no_start(tmp_path, corpus, base):
    with pytest.raises(UsageError, match="is no adapter of"):
        learn(corpus, tmp_path / "out", base, start=base)


def test_a_judge_can_be_the_start_of_the_next_one(tmp_path, corpus, base):
    learn(corpus, tmp_path / "first", base)
    first = str(tmp_path / "first")
    second = learn(corpus, tmp_path / "second", base, start=first, epochs=1, learning_rate=1e-9)
    assert second.curve[0]["validation_loss"] == pytest.approx(second.curve[-1]["validation_loss"])
    found, before = assess(tmp_path / "second").ratings, assess(first).ratings
    assert found == pytest.approx(before, abs=1e-3)  # 16 bits
    other = str(tiny_encoders.save_bert(tmp_path / "other"))
    with pytest.raises(UsageError, match="reads with"):
        learn(corpus, tmp_path / "third", other, start=first)


def rated_file(path, words):
    """Answers whose rating is how much they speak of cats."""
    rows = [
        {
            "id": f"{path.stem} {n} {animal} {act}",
            "context": [f"do you like {animal} {path.stem} {n} {act} ?"],
            "response": f"{'the cat ' * n}{act}",
            "system": f"bot {n}",
            "ratings": {"Overall": {"values": [1 + n, 1 + n], "scale": [1, 5]}},
        }
        for n in range(words)
        for animal in ANIMALS
        for act in ACTS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_ratings_of_two_sets_make_a_judge_and_ones_own_adapt_it(tmp_path, corpus, base, relevance):
    learn(corpus, tmp_path / "corpus", base)
    one, two = (rated_file(tmp_path / f"{name}.jsonl", 4) for name in ("one", "two"))
    card = train(
        "judge",
        [one, two],
        tmp_path / "judge",
        start="",
        base=str(tmp_path / "corpus"),
        encoder=base,
        **scorers(relevance),
    )
    assert card.scores["mean over sets, left out: Spearman of overall"] > 0.5
    run = dialeval.score(dialeval.load(one), [f"judge:model={tmp_path / 'judge'}"])
    by_system = {system["name"]: system for system in run.manifest["systems"]}
    means = [next(iter(by_system[f"bot {n}"]["scores"].values()))["mean"] for n in range(4)]
    assert means == sorted(means)
    own = train("judge", one, tmp_path / "ours", start=str(tmp_path / "judge"))
    before, after = list(own.scores.values())[:2]
    assert after >= before


def test_a_judge_whose_readers_have_changed_is_refused(tmp_path, corpus, base, relevance):
    learn(corpus, tmp_path / "corpus", base)
    one, two = (rated_file(tmp_path / f"{name}.jsonl", 3) for name in ("one", "two"))
    readers = {"base": str(tmp_path / "corpus"), "encoder": base, **scorers(relevance)}
    train("judge", [one, two], tmp_path / "judge", start="", **readers)
    record = json.loads((tmp_path / "judge" / "scorer.json").read_text("utf-8"))
    record["fingerprints"][base] = "0" * 64
    (tmp_path / "judge" / "scorer.json").write_text(json.dumps(record), "utf-8")
    (tmp_path / "judge" / "dialeval-model.json").unlink()
    with pytest.raises(UsageError, match="Fit it again"):
        assess(tmp_path / "judge")


@pytest.mark.parametrize("option", ["base", "encoder", "relevance", "pone", "engagement"])
def test_a_reader_is_not_named_in_vain(tmp_path, option):
    """A judge to start from has readers of its own."""
    with pytest.raises(UsageError, match=f"--{option} is for a judge from nothing"):
        train("judge", tmp_path / "ratings.jsonl", tmp_path / "out", **{option: "other"})
