"""`train` of heads on sentence vectors (deb, maude, dyna-eval, flow-score,
usr-context, usr-fact, predictive-engage), with a tiny random BERT."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from models import tiny_encoders
from training.chat_files import write_dialogues
from training.killed import Deadly, KilledError

from dialeval.engine.answers import Answerer
from dialeval.errors import InputError, UsageError
from dialeval.models.source import Models
from dialeval.question import Judge
from dialeval.training.examples.corpora import (
    RatedExchanges,
    exchanges_of,
    read_written_answers,
    without_rated_contexts,
)
from dialeval.training.examples.pair_corpus import Pair, with_random_responses
from dialeval.training.learners.sentence_head import accuracy, area_under_curve, head_loss
from dialeval.training.recipes import corpus_judges
from dialeval.training.recipes.usr import load_told
from dialeval.training.run import train

ANIMALS = ["the cat", "a dog", "cats", "dogs", "the dog", "a cat"]
ACTS = ["sat on a mat", "do like it", "do n ' t like you", "sat and sat", "like the mat so"]
DIALOGUES = [
    (f"do you like {animal} ?", f"i do like {animal}", f"{animal} {act} .", f"so {animal} {act} ?")
    for animal in ANIMALS
    for act in ACTS
]
FAST = {"epochs": 3, "patience": 0, "batch": 8}


@pytest.fixture
def base(tmp_path):
    return str(tiny_encoders.save_bert(tmp_path / "bert"))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    return write_dialogues(tmp_path / "chats.jsonl", DIALOGUES)


def written(animal: str, act: str) -> dict:
    """Right answers speak of cats, and wrong ones of dogs, which the head can learn."""
    return {
        "context": [f"do you like {animal} ?"],
        "positive_responses": [f"the cat {act}", f"cat {act} cat"],
        "adversarial_negative_responses": [f"a dog {act}", f"dog {act} dog"],
        "random_negative_responses": [f"dogs {act}", f"dog dog {act}"],
    }


@pytest.fixture
def plus(tmp_path):
    folder = tmp_path / "plus"
    folder.mkdir()
    lines = [json.dumps(written(animal, act)) for animal in ANIMALS for act in ACTS]
    (folder / "dev.json").write_text("\n".join(lines))
    (folder / "test.json").write_text("\n".join(lines[::3]))
    return folder


def test_deb_learns_what_the_engine_hears_and_says_so_on_its_card(tmp_path, base, corpus, plus):
    options = {"model": base, "pairs": 10, "dropout": 0.0, "learning_rate": 0.02}
    card = train("deb", [plus, corpus], tmp_path / "out", **options, **FAST | {"epochs": 12})
    assert card.scores["accuracy on test, adversarial answers (40 examples)"] > 0.9
    assert card.data["contexts of DailyDialog++ to learn from"] == 27
    assert card.data["corpora"] == "chats.jsonl"
    assert [row["source"] for row in card.by_source] == [
        "test, adversarial answers", "test, random answers",
    ]  # fmt: skip
    assert all(row["majority"] == 0.5 and row["accuracy"] is not None for row in card.by_source)
    turns = ("do you like the cat ?",)
    questions = [
        Judge(str(tmp_path / "out"), turns, t) for t in ("the cat sat and sat", "a dog sat on")
    ]
    found = Answerer(Models("cpu"), None).answer(questions)
    right, wrong = (float(found[question][0]) for question in questions)
    assert right > 0.5 > wrong


def test_a_killed_training_of_maude_ends_with_the_same_head(tmp_path, base, corpus):
    def learn(out, **more):
        options = {"model": base, "pairs": 24, "edits": 12, "held_out": 6} | FAST
        return train("maude", corpus, out, checkpoint_seconds=0.0, **options, **more)

    card = learn(tmp_path / "whole")
    assert card.data["edited responses"] == 12
    with pytest.raises(KilledError):
        learn(tmp_path / "killed", progress=Deadly())
    learn(tmp_path / "killed")
    one, other = (tmp_path / name / "scorer.safetensors" for name in ("whole", "killed"))
    assert one.read_bytes() == other.read_bytes()


def test_dyna_eval_learns_whole_dialogues_against_those_out_of_joint(tmp_path, base, corpus):
    options = {"model": base, "dropout": 0.0, "learning_rate": 0.02} | FAST | {"epochs": 20}
    card = train("dyna-eval", corpus, tmp_path / "out", **options)
    assert card.data["dialogues to learn from"] > 20
    assert card.scores["AUC on test, shuffled speakers"] is not None
    shuffled = [(c, b, a, d) for a, b, c, d in DIALOGUES]
    questions = [Judge(str(tmp_path / "out"), one[:-1], one[-1]) for one in (*DIALOGUES, *shuffled)]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([float(found[question][0]) for question in questions]).reshape(2, -1)
    assert (scores[0] > scores[1]).mean() > 0.9


def test_dyna_eval_puts_dialogues_out_of_joint_in_two_ways():
    dialogue, other = ("a", "b", "c", "d", "e"), ("x", "y", "x", "y")
    examples = corpus_judges.dialogues_and_wrong_ones([dialogue, other], np.random.default_rng(0))
    whole = [(*one.turns, one.response) for one in examples]
    assert [one.target for one in examples] == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert (whole[0], whole[3]) == (dialogue, other)
    assert sum(one != two for one, two in zip(whole[1], dialogue, strict=True)) == 1
    assert {*whole[1]} - {*dialogue} <= {"x", "y"}
    moved = [place for place, turn in enumerate(whole[2]) if turn != dialogue[place]]
    assert sorted(whole[2]) == sorted(dialogue)
    assert len({place % 2 for place in moved}) == 1
    assert whole[5] == other  # nobody says two things: another order is no wrong one


def test_of_a_long_dialogue_dyna_eval_reads_the_end_in_every_epoch(tmp_path, base, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    long = [(*one, *two) for one, two in zip(DIALOGUES, DIALOGUES[7:], strict=False)]
    file = write_dialogues(tmp_path / "long.jsonl", long)
    options = {"model": base, "turns": 3} | FAST
    card = train("dyna-eval", file, tmp_path / "out", **options)
    assert len(card.curve) == 4
    recipe = corpus_judges.DynaEval(model=base, turns=3)
    examples = recipe.examples_of([file]).sets.examples(0)
    assert {len(one.turns) for one in examples} == {3}
    said = {turn for dialogue in long for turn in dialogue[-4:]}
    assert {text for one in examples for text in (*one.turns, one.response)} <= said


def test_dialogues_that_are_too_short_for_dyna_eval_are_refused(tmp_path, base, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    short = write_dialogues(tmp_path / "short.jsonl", [dialogue[:3] for dialogue in DIALOGUES])
    with pytest.raises(UsageError, match="two dialogues of 4 turns"):
        train("dyna-eval", short, tmp_path / "out", model=base)


def test_flow_score_learns_what_is_said_next_from_dialogues_alone(tmp_path, base, corpus):
    options = {"model": base, "dropout": 0.0, "learning_rate": 0.02} | FAST | {"epochs": 30}
    card = train("flow-score", corpus, tmp_path / "out", **options)
    own = card.scores["squared distance from what was foretold, test"]
    assert own < card.scores["squared distance from the mean vector, test"]
    assert {row["accuracy"] for row in card.by_source} == {None}  # it says an order, no border
    wrong = [(d, c, b, a) for a, b, c, d in DIALOGUES]
    questions = [Judge(str(tmp_path / "out"), one[:-1], one[-1]) for one in (*DIALOGUES, *wrong)]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([float(found[question][0]) for question in questions]).reshape(2, -1)
    assert (scores[0] > scores[1]).mean() > 0.9
    assert ((scores > 0) & (scores < 1)).all()


def test_usr_learns_from_turns_and_from_facts(tmp_path, base, corpus):
    about = train("usr-context", corpus, tmp_path / "context", model=base, held_out=8, **FAST)
    assert "AUC on test, random responses" in about.scores
    persona = tmp_path / "personas.txt"
    lines = []
    for animal in ANIMALS * 4:
        lines += [f"1 your persona: i like {animal} {len(lines)}."]
        lines += [f"2 do you like it ?\ti like {animal}", f"3 so ?\t{animal} sat"]
    persona.write_text("\n".join(lines))
    card = train("usr-fact", persona, tmp_path / "fact", model=base, **FAST)
    assert card.data["dialogues to learn from"] == 20
    assert card.data["responses to learn from"] == 40
    record = json.loads((tmp_path / "fact" / "scorer.json").read_text())
    assert (record["metric"], record["turns"]) == ("usr-fact", 1)


def test_only_what_the_one_who_knew_the_facts_said_is_learned(tmp_path):
    path = tmp_path / "persona.txt"
    path.write_text("1 your persona: i ski.\n2 hello\tgoodbye\n3 what now\tthe end\n")
    [told], left_out = load_told([path], RatedExchanges(()))
    assert (told.fact, told.responses, left_out.count) == ("i ski.", ("goodbye", "the end"), 0)
    shared = exchanges_of("set", 1, [("goodbye", "what now " * 10)])
    path.write_text(f"1 your persona: i ski.\n2 hello\tgoodbye\n3 {'what now ' * 10}\tthe end\n")
    told, left_out = load_told([path], RatedExchanges((shared,)))
    assert (told, left_out.count) == ([], 1)


def test_conversations_rated_three_of_five_count_as_engaging(tmp_path, base, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    rows = ["id,query,reply,label"]
    rows += [f"{n},do you like it ?,{ANIMALS[n % 6]} {ACTS[n % 5]},{n % 2}" for n in range(30)]
    file = tmp_path / "replies.csv"
    file.write_text("\n".join(rows))
    card = train("predictive-engage", file, tmp_path / "out", model=base, **FAST)
    assert card.data["replies to learn from"] + card.data["replies to validate on"] == 30
    from dialeval.training.examples.engagement import Engaging
    from dialeval.training.recipes.corpus_judges import _engaging_examples

    found = _engaging_examples(
        [Engaging("r", ("p", "q"), (n - 1) / 4, "s", "d") for n in (2, 2.9, 3, 5)]
    )
    assert [one.target for one in found] == [0.0, 0.0, 1.0, 1.0]
    assert found[0].turns == ("q",)


def test_contexts_of_rated_sets_are_left_out(plus):
    every = list(read_written_answers(plus / "dev.json"))
    long = every[3].turns[0] + " and so on " * 5
    shared = [every[0], type(every[0])((long,), *(every[3].right, every[3].adversarial, ("r",)))]
    rated = RatedExchanges((exchanges_of("set", 1, [(long, every[3].right[1])]),))
    kept, left_out = without_rated_contexts(shared, rated)
    assert kept == [every[0]]
    assert left_out.by_set == {"set": 1}


def test_what_is_wrong_with_written_answers_is_said_with_its_line(tmp_path, plus, base):
    path = tmp_path / "dev.json"
    path.write_text('{"context": ["a"]}\n["b"]\n')
    with pytest.raises(InputError, match=r"dev.json:2"):
        list(read_written_answers(path))
    with pytest.raises(UsageError, match=r"DailyDialog\+\+"):
        train("deb", plus / "dev.json", tmp_path / "out", model=base)


def test_maude_edits_words_by_the_rules_of_the_paper():
    words = ["one", "two", "three", "four", "five"]
    seen = set()
    for seed in range(20):
        generator = np.random.default_rng(seed)
        kept = corpus_judges.drop_words(words, generator)
        assert kept == [word for word in words if word in kept] != []
        assert sorted(corpus_judges.shuffle_words(words, generator)) == sorted(words)
        seen.add(" ".join(corpus_judges.repeat_words(words, generator)))
    assert seen == {"one one one one one", "one two two two two"}


def test_a_random_response_is_never_the_one_that_was_given():
    texts = ["q", "a", "b"]
    pairs = [Pair((0,), 1)] * 5 + [Pair((0,), 2)]
    found = with_random_responses(texts, pairs, np.random.default_rng(0))
    assert [one.response for one in found] == ["a", "b"] * 5 + ["b", "a"]
    assert [one.target for one in found] == [1.0, 0.0] * 6


def test_losses_accuracy_and_area_are_those_of_a_calculation_on_paper():
    logits, targets = torch.tensor([2.0, -1.0, 0.5, 0.5]), torch.tensor([1.0, 1.0, 1.0, 0.0])
    losses = [np.log1p(np.exp(x)) for x in (-2.0, 1.0, -0.5, 0.5)]
    assert float(head_loss(logits, targets, False)) == pytest.approx(np.mean(losses))
    # Three good ones of weight 4 / (2 * 3), and a bad one of weight 4 / (2 * 1).
    balanced = (sum(losses[:3]) * 2 / 3 + losses[3] * 2) / 4
    assert float(head_loss(logits, targets, True)) == pytest.approx(balanced)
    assert accuracy(logits, targets) == 0.5
    assert area_under_curve(logits, targets) == pytest.approx((1 + 0 + 0.5) / 3)
