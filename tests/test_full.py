"""FULL end to end, with tiny random models, against the loop of the authors' package."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

from models import tiny_language_models as tiny  # noqa: E402

from dialeval import full  # noqa: E402

FOUR = [
    "Not really relevant here.",
    "You're really confusing.You're really boring.",
    "What are you trying to say?",
    "You don't seem interested.",
]
CONVERSATION = ["Hi!", "Hello. How are you?", "Fine, thanks."]


@pytest.fixture
def blenderbot(tmp_path):
    return tiny.save(tmp_path / "tiny", tiny.blenderbot(window=128), tiny.tokenizer(closes=True))


def package_score(directory, turns):
    """One forward pass per follow-up: mean of exp(loss), as maximedb/full 0.0.3 computes it."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(directory).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    source = tokenizer("\t" + "\t".join(turns), return_tensors="pt")
    perplexities = []
    for follow_up in FOUR:
        labels = tokenizer(follow_up, return_tensors="pt").input_ids
        with torch.no_grad():
            loss = model(
                input_ids=source.input_ids, attention_mask=source.attention_mask, labels=labels
            ).loss
        perplexities.append(math.exp(float(loss)))
    return sum(perplexities) / len(perplexities)


def test_a_turn_gets_the_score_of_the_authors_package(blenderbot):
    found = full.evaluate_turn(
        CONVERSATION, "Good to hear.", mode="released", model=str(blenderbot)
    )
    assert found == pytest.approx(
        package_score(blenderbot, [*CONVERSATION, "Good to hear."]), rel=1e-4
    )


def test_a_dialogue_gets_the_score_of_the_authors_package(blenderbot):
    found = full.evaluate_dialog(CONVERSATION, mode="released", model=str(blenderbot))
    assert found == pytest.approx(package_score(blenderbot, CONVERSATION), rel=1e-4)


def test_any_causal_model_will_do(tmp_path):
    llama = tiny.save(tmp_path / "llama", tiny.llama(window=256), tiny.tokenizer())
    assert full.evaluate_turn(CONVERSATION, "Good.", model=str(llama)) > 0
