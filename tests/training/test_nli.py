"""`train nli` with a tiny random BERT: pairs, an adapter, a whole model, a kill, a card."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("peft", reason="needs the extra 'train'")

from models import tiny_encoders
from training.killed import Deadly, KilledError

from dialeval.errors import InputError, UsageError
from dialeval.models.source import Models
from dialeval.question import NLI_LABELS, Inference
from dialeval.training.learners.inference import (
    InferencePair,
    add_decode,
    load_inference_pairs,
    score_pairs,
)
from dialeval.training.recipes.nli import Inference as Recipe
from dialeval.training.run import train

HINTS = dict(zip(NLI_LABELS, ("very", "mat", "dog"), strict=True))


@pytest.fixture(autouse=True)
def _no_rated_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "pairs.tsv", "do you like it ")


def write_table(path, words):
    """Whoever says `very` contradicts, whoever says `dog` agrees."""
    rows = [
        f"{words}{'so ' * (i % 5)}{chr(97 + i % 26)}{chr(97 + i // 26)}\t{hint}\t{label}"
        for i in range(60)
        for label, hint in HINTS.items()
    ]
    path.write_text("premise\thypothesis\tlabel\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def base(tmp_path):
    return str(tiny_encoders.save_bert(tmp_path / "base"))


def learn(table, out, base, progress=None, **more):
    """`full` keeps all weights unless a rank is named, otherwise an adapter of rank 4 learns."""
    usual = {} if more.get("full") or more.get("start") else {"rank": 4}
    shared = {"batch": 8, "pair_tokens": 24, "epochs": 10, "learning_rate": 0.005}
    recipe = Recipe(model=base, **{**usual, **shared, **more})
    return train(recipe, table, out, checkpoint_seconds=0, progress=progress)


@pytest.mark.parametrize(
    ("full", "precision"), [(True, "float32"), (False, "float32"), (False, "bfloat16")]
)
def test_what_was_learned_is_what_the_metric_sees(tmp_path, table, base, full, precision):
    out = tmp_path / "mine"
    card = learn(table, out, base, full=full, precision=precision)
    (accuracy,) = card.scores.values()
    assert accuracy > 0.9
    questions = [Inference(str(out), "do you like it", hint) for hint in HINTS.values()]
    answers = dict(Models(device="cpu").load(str(out)).answer(questions))
    assert [int(answers[i].argmax()) for i in range(3)] == [0, 1, 2]
    assert json.loads((out / "card.json").read_text())["data"]["pairs of pairs"] > 100


def without_pooler(directory):
    """As the files of masked language models are."""
    tiny_encoders.save_bert(directory)
    file = directory / "model.safetensors"
    tensors = {n: t for n, t in load_file(file).items() if not n.startswith("pooler.")}
    save_file(tensors, file, {"format": "pt"})
    return directory


@pytest.mark.parametrize(
    "save",
    [
        without_pooler,
        lambda directory: tiny_encoders.save_bert(directory, kind="distilbert"),
        tiny_encoders.save_roberta,
    ],
    ids=["bert without pooler", "distilbert", "roberta"],
)
@pytest.mark.parametrize("kept", [{}, {"full": True, "rank": 8}], ids=["lora", "full"])
def test_layers_that_began_at_random_are_kept(tmp_path, save, kept):
    table = write_table(tmp_path / "short.tsv", "")
    base, out = str(save(tmp_path / "base")), tmp_path / "mine"
    card = learn(table, out, base, pair_tokens=20, **kept)
    pairs = load_inference_pairs(table).validation
    questions = [Inference(str(out), pair.premise, pair.hypothesis) for pair in pairs]

    def answers():
        found = dict(Models(device="cpu").load(str(out)).answer(questions))
        return np.stack([found[i] for i in range(len(questions))])

    once, again = answers(), answers()
    assert (once == again).all()
    right = once.argmax(axis=1) == [pair.label for pair in pairs]
    assert list(card.scores.values()) == [pytest.approx(right.mean())]


def test_all_weights_can_be_kept_as_an_adapter(tmp_path, table, base):
    """At full rank the linear layers are those of the whole model; at rank 1 something is lost."""
    from safetensors.torch import load_file

    learn(table, tmp_path / "whole", base, full=True)
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    before = load_file(next(Path(base).glob("*.safetensors")))
    name = "encoder.layer.0.attention.self.query"
    change = (whole[f"bert.{name}.weight"] - before[f"{name}.weight"]).double()
    lost = {}
    for rank in (1, 4, 64):
        out = tmp_path / f"rank{rank}"
        card = learn(table, out, base, full=True, rank=rank)
        kept = load_file(out / "adapter_model.safetensors")
        down, up = (kept[f"base_model.model.bert.{name}.lora_{ab}.weight"] for ab in "AB")
        lost[rank] = float((up.double() @ down.double() - change).norm() / change.norm())
        assert card.settings["kept rank"] == rank
    values = torch.linalg.svdvals(change)
    for rank in (1, 4):
        best = float(values[rank:].norm() / values.norm())
        assert lost[rank] == pytest.approx(best, abs=2e-3)
    assert lost[64] < 2e-3
    # What the card says of the adapter is what the adapter does, once it is loaded.
    pairs = load_inference_pairs(table).validation
    questions = [Inference(str(out), pair.premise, pair.hypothesis) for pair in pairs]
    answers = dict(Models(device="cpu").load(str(out)).answer(questions))
    right = sum(int(answers[i].argmax()) == pair.label for i, pair in enumerate(pairs))
    assert list(card.scores.values()) == [right / len(pairs)]


def test_a_killed_training_ends_with_the_same_adapter(tmp_path, table, base):
    learn(table, tmp_path / "whole", base)
    with pytest.raises(KilledError):
        learn(table, tmp_path / "killed", base, Deadly(30))
    learn(table, tmp_path / "killed", base)
    name = "adapter_model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


def test_training_goes_on_from_adapters(tmp_path, table, base):
    """The second training starts where the first ended, with its rank and alpha."""
    first = learn(table, tmp_path / "first", base)
    more = {"start": str(tmp_path / "first"), "epochs": 1, "learning_rate": 1e-4}
    second = learn(table, tmp_path / "second", base, **more)
    best = min(entry["validation_loss"] for entry in first.curve)
    assert second.curve[0]["validation_loss"] == pytest.approx(best, rel=0.05)
    assert (second.settings["kept rank"], second.settings["alpha"]) == (4, 8)
    with pytest.raises(UsageError, match="holds no adapter"):
        learn(table, tmp_path / "third", base, start=str(tmp_path))


def test_the_card_says_what_an_inference_model_knows_beyond_length(tmp_path, table, base):
    """A third of the pairs has each label, and a contradiction is as long as the others."""
    card = learn(table, tmp_path / "mine", base, full=True)
    (row,) = card.by_source
    pairs = load_inference_pairs(table).validation
    assert (row["source"], row["n"]) == ("validation", len(pairs))
    assert row["majority"] == pytest.approx(1 / 3)
    assert [row["accuracy"]] == list(card.scores.values())
    assert row["partial"] == pytest.approx(row["spearman"], abs=0.05)
    assert row["partial"] > 0.7


def test_a_model_is_right_about_three_labels_and_correlated_by_one():
    pairs = [InferencePair("a b", "c", label, "s") for label in (0, 0, 1, 2)]
    rows = np.eye(3)[[0, 2, 1, 1]]
    found = score_pairs("s", pairs, rows)
    assert (found.n, found.majority, found.accuracy) == (4, 0.5, 0.5)
    place = NLI_LABELS.index("contradiction")
    wanted = np.corrcoef(rows[:, place], [pair.label == place for pair in pairs])[0, 1]
    assert found.spearman == pytest.approx(wanted)  # of two values each, the ranks are as good
    assert (found.partial, found.length) == (found.spearman, None)


def test_a_finished_model_is_not_overwritten(tmp_path, table, base):
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "card.json").write_text("{}")
    with pytest.raises(UsageError, match="already holds a trained model"):
        learn(table, tmp_path / "done", base)


def test_a_premise_is_never_in_both_splits(table):
    pairs = load_inference_pairs(table)
    assert pairs.validation
    assert not {p.premise for p in pairs.train} & {p.premise for p in pairs.validation}
    assert len(pairs.train) + len(pairs.validation) == 180


def test_less_is_measured_where_less_is_asked_for(tmp_path, table, base):
    whole = load_inference_pairs(table)
    some = replace(whole, held_out={"other": whole.train[:50]}).at_most(4)
    assert (len(some.validation), len(some.held_out["other"])) == (4, 4)
    assert some.train == whole.train
    assert set(some.validation) < set(whole.validation)
    assert whole.at_most(None) == whole
    card = learn(table, tmp_path / "mine", base, held_out=4)
    assert list(card.scores) == ["accuracy on validation (4 pairs)"]
    assert card.data["pairs for validation"] == 4


def test_an_unknown_label_is_named_with_its_line(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("premise,hypothesis,label\na,b,neutral\na,c,maybe\n")
    with pytest.raises(InputError) as found:
        load_inference_pairs(path)
    (problem,) = found.value.problems
    assert (problem.line, problem.field) == (3, "label")
    assert "'maybe' is none of contradiction" in problem.problem


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("premise\tlabel\na\tneutral\n", "inference pairs: it has no column 'hypothesis'"),
        ("premise\thypothesis\tlabel\na\tb\tneutral\n", "too few"),
        (
            "premise\thypothesis\tlabel\n" + "".join(f"a\tb{i}\tneutral\n" for i in range(40)),
            "40 pairs with 1 different premises are too few",
        ),
    ],
)
def test_a_table_that_cannot_be_learned_from_is_refused(tmp_path, text, match):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(UsageError, match=match):
        load_inference_pairs(path)


def test_every_faulty_line_of_a_table_is_told_with_its_field(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = ['{"premise": "a", "label": "neutral"}', "[1, 2]", '{"premise": "a", "hypothesis": 3,']
    rows[2] += ' "label": "neutral"}'
    path.write_text("\n".join([*rows, '{"premise": "a", "hypothesis": "b", "label": ""}']) + "\n")
    with pytest.raises(InputError) as found:
        load_inference_pairs(path)
    assert [(one.line, one.field) for one in found.value.problems] == [
        (1, "hypothesis"),
        (2, "premise"),
        (2, "hypothesis"),
        (2, "label"),
        (3, "hypothesis"),
        (4, "label"),
    ]


def test_only_line_ends_end_lines(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"premise": f"so\u2028it {i}", "hypothesis": "b", "label": "neutral"} for i in range(100)
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    pairs = load_inference_pairs(path)
    assert len(pairs.train) + len(pairs.validation) == 100


def test_files_that_do_not_fit_each_other_are_refused(tmp_path):
    (tmp_path / "snli").mkdir()
    for name, text in {"s1": "a\nb\n", "s2": "a\n", "labels": "neutral\nneutral\n"}.items():
        (tmp_path / "snli" / f"{name}.dev").write_text(text)
    with pytest.raises(UsageError, match="cannot be read as inference pairs"):
        load_inference_pairs(tmp_path)


def test_the_public_sets_keep_their_test_pairs_out(datasets):
    pairs = load_inference_pairs(datasets / "nli")
    assert {name: len(held) for name, held in pairs.held_out.items()} == {
        "mnli dev matched": 9815,
        "snli test": 9824,
    }
    assert {p.source for p in pairs.train} == {"mnli", "snli", "dialogue", "breaking"}
    held = {(p.premise, p.hypothesis) for h in pairs.held_out.values() for p in h}
    assert not held & {(p.premise, p.hypothesis) for p in (*pairs.train, *pairs.validation)}
    with pytest.raises(UsageError, match="holds no wnli"):
        load_inference_pairs(datasets / "nli", ["wnli"])


@pytest.fixture
def said(tmp_path):
    """DECODE's form with 200 contradictions, and 100 dialogues of six turns."""
    (tmp_path / "nli" / "decode").mkdir(parents=True)
    write_table(tmp_path / "nli" / "pairs.tsv", "do you like it ")
    rows = [f"i own {i} red cars\ti am without cars {i}\tself-contradiction" for i in range(200)]
    path = tmp_path / "nli" / "decode" / "contradictions.tsv"
    path.write_text("seg1\tseg2\tlabel\n" + "\n".join(rows) + "\n")
    who, topics = ("we", "they"), ("cats", "trains")
    dialogues = [
        {"context": said[:-1], "response": said[-1]}
        for i in range(100)
        if (said := [f"{who[n % 2]} have {topics[n // 4]} {i}a{n} {i}b{n}" for n in range(6)])
    ]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in dialogues))
    return tmp_path


def test_decode_has_as_many_consistent_turns_of_one_speaker_as_contradictions(said):
    plain = load_inference_pairs(said / "nli")
    found = add_decode(plain, said / "nli", [said / "talk.jsonl"])
    every = (*found.train, *found.validation, *found.held_out["decode"])
    by_source = {name: [p for p in every if p.source == name] for name in ("decode", "dialogues")}
    assert {name: len(pairs) for name, pairs in by_source.items()} == {
        "decode": 200,
        "dialogues": 200,
    }
    assert {p.label for p in by_source["decode"]} == {NLI_LABELS.index("contradiction")}
    assert {p.label for p in by_source["dialogues"]} == {NLI_LABELS.index("neutral")}
    for pair in by_source["dialogues"]:
        assert pair.premise.split()[0] == pair.hypothesis.split()[0]  # the same speaker
    topics = [(p.premise.split()[2], p.hypothesis.split()[2]) for p in by_source["dialogues"]]
    assert sum(one == other for one, other in topics) == 2 * 200 // 3
    assert any(p.premise.startswith("you own") for p in by_source["decode"])
    assert any(p.premise.startswith("i own") for p in by_source["decode"])
    assert not {p.premise for p in found.held_out["decode"]} & {p.premise for p in found.train}
    assert found.train[: len(plain.train)] == plain.train


def test_decode_that_is_not_there_is_named(said):
    plain = load_inference_pairs(said / "nli")
    (said / "nli" / "decode" / "contradictions.tsv").unlink()
    with pytest.raises(UsageError, match=r"contradictions\.tsv is missing"):
        add_decode(plain, said / "nli", [said / "talk.jsonl"])


def test_contradiction_or_not_is_measured_on_a_tenth_of_decode(said, base):
    card = learn(
        said / "nli", said / "mine", base, dialogues=str(said / "talk.jsonl"), epochs=1, sets=""
    )
    assert card.data["pairs of decode"] > 100
    (name,) = [name for name in card.scores if name.startswith("contradiction or not, on decode")]
    assert 0.0 <= card.scores[name] <= 1.0
