"""`dialeval train` as a person types it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra 'train'")

from dialeval.datasets import DATASETS


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    rows = [
        {
            "id": f"c{i}",
            "messages": [
                {"role": "user", "content": f"hello {i}"},
                {"role": "assistant", "content": "how are you ?"},
            ],
        }
        for i in range(24)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("verb", ["seq2seq", "generator"])
def test_a_model_is_trained_and_used(dialeval, tmp_path, chats, verb):
    out = str(tmp_path / "model")
    size = ("--units", "16", "--vocabulary", "300", "--pairs", "16", "--epochs", "2")
    done = dialeval("train", verb, "--data", chats, "-o", out, *size, "--json")
    assert done.code == 0, done.err
    (measured,) = json.loads(done.out)["scores"]
    assert measured == "test perplexity per token (4 replies)"
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["data"]["pairs per epoch"] == 16
    assert (card["settings"]["units"], card["settings"]["epochs"]) == (16, 2)
    again = dialeval("train", verb, "--data", chats, "-o", out)
    assert again.code == 2
    assert "already holds a trained model" in again.err
    queries = tmp_path / "queries.txt"
    queries.write_text("hello\n")
    augmented = str(tmp_path / "augmented.jsonl")
    spec = f"ctg:model={out},variants=2,tokens=5"
    assert dialeval("augment", str(queries), "--with", spec, "-o", augmented).code == 0


def test_a_generator_answers_questions_and_an_lstm_does_not(dialeval, tmp_path, chats):
    size = ("--units", "16", "--vocabulary", "300", "--pairs", "8", "--quiet")
    for verb in ("seq2seq", "generator"):
        dialeval("train", verb, "--data", chats, "-o", str(tmp_path / verb), *size)
    scored = dialeval("score", chats, "-m", f"full:model={tmp_path / 'generator'}", "--limit", "2")
    assert scored.code == 0, scored.err
    refused = dialeval("score", chats, "-m", f"full:model={tmp_path / 'seq2seq'}", "--limit", "2")
    assert refused.code == 2
    assert "is a generator: it answers no questions" in refused.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--units", "33"), "take a multiple of 8"),
        (("--preset", "large"), "Invalid value for '--preset'"),
        (("--vocabulary", "5"), "Invalid value for '--vocabulary'"),
        (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
    ],
)
def test_what_makes_no_sense_is_refused(dialeval, tmp_path, chats, arguments, problem):
    given = ("--data", chats, "-o", str(tmp_path / "model"), *arguments)
    done = dialeval("train", "generator", *given)
    assert done.code == 2
    assert problem in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mme-relevance", "--negatives", "bm25"), "are drawn with --architecture cross-encoder"),
        (("nli", "--start", "adapters", "--rank", "8"), "leave --rank out"),
    ],
)
def test_options_that_would_change_nothing_are_refused(dialeval, tmp_path, arguments, message):
    verb, *options = arguments
    done = dialeval("train", verb, "--data", "x", "-o", str(tmp_path / "out"), *options)
    assert (done.code, message in done.err) == (2, True)


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Data sets that are known by name, with what it takes to learn from them, and tiny models."""
    from models import tiny_encoders, tiny_language_models, tiny_scorers

    data = tmp_path / "data"
    monkeypatch.setenv("DIALEVAL_DATA", str(data))
    for split, count in (("train", 30), ("validation", 4), ("test", 4)):
        folder = data / "dailydialog" / split
        folder.mkdir(parents=True)
        lines = [
            f"hello {split} {i} __eou__ the cat likes food {i} __eou__ hello {i} there __eou__"
            for i in range(count)
        ]
        (folder / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n")
    (data / "nli").mkdir()
    labels = ("neutral", "entailment", "contradiction")
    rows = [f"the cat {i}\tit {label}\t{label}" for i in range(60) for label in labels]
    table = "sentence1\tsentence2\tlabel\n" + "\n".join(rows) + "\n"
    (data / "nli" / "mnli_train.tsv").write_text(table)
    model = tiny_language_models.llama()
    tiny_language_models.save(tmp_path / "llama", model, tiny_language_models.tokenizer())
    return {
        "encoder": str(tiny_encoders.save_bert(tmp_path / "bert")),
        "vectors": str(tiny_scorers.save_word_vectors(tmp_path / "vectors")),
        "lm": str(tmp_path / "llama"),
    }


SMALL = ("--units", "16", "--vocabulary", "300", "--pairs", "16")
JUDGE = ("--model", "{encoder}", "--held-out", "10", "--response-tokens", "10")


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("seq2seq", SMALL),
        ("generator", SMALL),
        ("lm", ("--model", "{lm}", "--dialogue-tokens", "16", "--tokens", "1000")),
        ("nli", ("--model", "{encoder}", "--pairs", "20", "--pair-tokens", "16")),
        ("ruber", ("--model", "{vectors}")),
        ("bert-ruber", ("--model", "{encoder}", "--pairs", "40")),
        ("mme-fluency", JUDGE),
        ("mme-relevance", (*JUDGE, "--vectors", "{vectors}", "--context-tokens", "10")),
        ("mme-topic", ("--model", "{vectors}")),
        ("mme-specificity", ("--model", "{encoder}", "--held-out", "10", "--response-tokens", "8")),
    ],
)
def test_the_licence_of_a_data_set_by_name_is_known(dialeval, tmp_path, named, verb, options):
    data = "nli" if verb == "nli" else "dailydialog"
    given = [option.format(**named) for option in options]
    out = ("-o", str(tmp_path / "out"), "--epochs", "1", "--json")
    done = dialeval("train", verb, "--data", data, *given, *out)
    assert done.code == 0, done.err
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["licence"] == DATASETS[data].licence


def test_engagement_knows_the_licence_of_a_data_set_by_name_too(tmp_path, monkeypatch):
    from dialeval.training.card import licence_of

    place = tmp_path / "data" / "engage"
    place.mkdir(parents=True)
    rows = ["id,query,reply,label", *(f"{n},hello,reply number {n},{n % 2}" for n in range(40))]
    (place / DATASETS["engage"].files[0].name).write_text("\n".join(rows))
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))
    assert licence_of([Path("engage")]) == DATASETS["engage"].licence


def test_what_is_no_data_set_by_name_has_no_known_licence(tmp_path, monkeypatch):
    from dialeval.training.card import licence_of

    known = DATASETS["dailydialog"].licence
    assert licence_of([Path("dailydialog")]) == licence_of([Path("dailydialog")] * 2) == known
    assert licence_of([Path("dailydialog"), Path("chats.jsonl")]) == "unknown"
    both = licence_of([Path("dailydialog"), Path("topical-chat")])
    assert both == f"{known}; {DATASETS['topical-chat'].licence}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dailydialog").mkdir()
    assert licence_of([Path("dailydialog")]) == "unknown"


@pytest.mark.parametrize("doubtful", ["drop", "change"])
def test_what_happens_to_doubtful_labels_can_be_chosen(dialeval, tmp_path, named, doubtful):
    out = ("-o", str(tmp_path / "out"), "--epochs", "1", "--rounds", "1", "--json")
    options = ("--model", named["encoder"], "--pairs", "40", "--doubtful", doubtful)
    done = dialeval("train", "pone", "--data", "dailydialog", "--threshold", "0.49", *options, *out)
    assert done.code == 0, done.err
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["settings"]["filter doubtful"] == doubtful
    (seed,) = json.loads((tmp_path / "out" / "seeds.json").read_text())
    all_kept = seed["rounds"][0]["kept"] == card["data"]["variants of responses"]
    assert all_kept is (doubtful == "change")


def test_a_label_filter_that_keeps_nothing_fails_and_names_the_option(dialeval, tmp_path, named):
    out = ("-o", str(tmp_path / "out"), "--epochs", "1", "--threshold", "0")
    options = ("--model", named["encoder"], "--pairs", "40")
    done = dialeval("train", "pone", "--data", "dailydialog", *options, *out)
    assert done.code == 1
    assert "so nothing is left of them to learn from. Give a larger --threshold" in done.err


@pytest.mark.parametrize(
    ("mode", "threshold", "rounds"), [("paper", 0.5, 100), ("released", 0.05, 37)]
)
def test_each_label_filter_has_the_threshold_of_its_source(mode, threshold, rounds):
    """The paper labels every variant; the released recipes have theta .05 and 75 epochs. Both draw
    random negatives in every second epoch."""
    from dialeval.training.recipes.ruber import Pone

    recipe = Pone(filter=mode)
    assert recipe.filter_options.threshold == threshold
    assert recipe.filter_options.rounds == rounds
    assert (recipe.random_every, recipe.edit_negatives) == (2, True)


def test_the_options_of_a_verb_are_the_fields_of_its_recipe(dialeval):
    """One name for one thing: what is read or started from is always --model."""
    import typer

    from dialeval.cli.app import app
    from dialeval.training.recipe import option_fields
    from dialeval.training.recipes import RECIPES, find_recipe

    verbs = typer.main.get_command(app).commands["train"].commands
    for name in RECIPES:
        flags = {flag for one in verbs[name].params for flag in one.opts}
        fields = {f"--{one.name.replace('_', '-')}" for one in option_fields(find_recipe(name))}
        shared = {"--data", "--out", "-o", "--licence", "--json", "--quiet", "-q"}
        assert flags - {"--help", "-h"} == fields | shared
        # `mme` trains five judges on one backbone: none of them is *the* model.
        former = {"--way", "--beside", "--evaluate-on", *(() if name == "mme" else ("--backbone",))}
        assert not former & flags


def test_python_trains_with_the_words_of_the_command_line(tmp_path, named):
    import dialeval as library

    options = {"held_out": 10, "response_tokens": 10, "epochs": 1, "rank": 2}
    out = tmp_path / "out"
    card = library.train("mme-fluency", "dailydialog", out, model=named["encoder"], **options)
    assert json.loads((out / "card.json").read_text())["scores"] == dict(card.scores)
    with pytest.raises(library.UsageError, match=r"no option 'backbone'"):
        library.train("mme-fluency", "dailydialog", tmp_path / "other", backbone="x")
    with pytest.raises(library.UsageError, match=r"no recipe 'mme-fluenci'. Did you mean"):
        library.train("mme-fluenci", "dailydialog", tmp_path / "other")
    assert not (tmp_path / "other").exists()
