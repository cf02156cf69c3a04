"""`dialeval train` as a person types it."""

import json

import pytest

pytest.importorskip("torch", reason="needs the extra 'train'")


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
        (("mme-relevance", "--negatives", "bm25"), "--negatives are drawn with --way pair"),
        (("nli", "--from", "adapters", "--rank", "8"), "leave --rank out"),
    ],
)
def test_options_that_would_change_nothing_are_refused(dialeval, tmp_path, arguments, message):
    verb, *options = arguments
    done = dialeval("train", verb, "--data", "x", "-o", str(tmp_path / "out"), *options)
    assert (done.code, message in done.err) == (2, True)
