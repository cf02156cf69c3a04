"""A few end-to-end tests with the real embedded models, against plain transformers."""

import json
import math

import pytest

import dialeval
from dialeval.examples import four_bots


@pytest.fixture
def few():
    return [s for s in dialeval.load(four_bots()) if s.item == "bike"]


def naive_log_probs(text: str, context: str) -> list[float]:
    """One forward pass over one sequence, the head on every position, no tricks."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from dialeval.model_store.locate import locate
    from dialeval.models.loading import silence

    directory = locate("smollm2-135m").directory
    with silence():
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    start = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    before = [start, *(tokenizer.encode(context) if context else [])]
    after = tokenizer.encode((" " if context else "") + text)
    with torch.no_grad():
        logits = model(torch.tensor([before + after])).logits[0].float()
    log_probs = logits.log_softmax(-1)
    return [float(log_probs[len(before) + i - 1, token]) for i, token in enumerate(after)]


def test_coherence_and_fluency_are_what_plain_transformers_computes(embedded_models, few):
    names = ["coherence", "fluency", "pmi"]
    run = dialeval.score(few, [f"{name}:model=smollm2-135m" for name in names])
    rows = [
        {column.replace(":model=smollm2-135m", ""): value for column, value in row.items()}
        for batch in run.batches()
        for row in batch.to_pylist()
    ]
    for sample, row in zip(few, rows, strict=True):
        context = " ".join(turn.text for turn in sample.context)
        after = naive_log_probs(sample.response, context)
        alone = naive_log_probs(sample.response, "")
        assert row["coherence.log_probs"] == pytest.approx(after, abs=1e-3)
        assert row["coherence.raw"] == pytest.approx(math.fsum(after) / len(after), abs=1e-4)
        assert row["fluency.raw"] == pytest.approx(math.fsum(alone) / len(alone), abs=1e-4)
        assert row["pmi"] == pytest.approx(row["coherence.raw"] - row["fluency.raw"], abs=1e-9)


def test_the_spans_of_the_tokens_spell_the_response(embedded_models, few):
    run = dialeval.score(few, ["coherence"])
    for sample, batch in zip(few, [r for b in run.batches() for r in b.to_pylist()], strict=True):
        ends = batch["coherence.ends"]
        pieces = [
            sample.response[int(start) : int(end)]
            for start, end in zip(batch["coherence.starts"], ends, strict=True)
        ]
        assert "".join(pieces) == sample.response


def test_a_second_run_is_answered_from_the_cache_without_torch(embedded_models, tmp_path, few):
    import os
    import subprocess
    import sys

    cache = tmp_path / "answers.sqlite"
    first = dialeval.score(few, ["full"], cache=cache)
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(s.to_record()) + "\n" for s in few))
    code = (
        "import sys, dialeval\n"
        f"run = dialeval.score(dialeval.load({str(path)!r}), ['full'], cache={str(cache)!r})\n"
        "print(run.scores('full') , 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ
    )
    assert done.stdout.strip() == f"{first.scores('full')} False", done.stderr


def test_a_response_like_its_reference_has_a_bertscore_of_one(embedded_models):
    sample = dialeval.Sample(id="x", response="The cat sat.", references=("The cat sat.",))
    (value,) = dialeval.score([sample], ["bertscore"]).scores("bertscore")
    assert value == pytest.approx(1.0, abs=1e-5)


def test_the_judge_puts_the_attentive_bot_first_and_the_parrot_and_the_broken_one_last(
    embedded_models, tmp_path
):
    run = dialeval.score(dialeval.load(four_bots()), out=tmp_path / "run")
    means = {
        system["name"]: system["scores"]["judge"]["mean"] for system in run.manifest["systems"]
    }
    assert means["attentive"] > means["bland"] > max(means["broken"], means["parrot"])
    (best, *_) = dialeval.compare(run, rounds=999).preferences
    assert (best.first, best.second) == ("attentive", "bland")
    assert best.probability > 0.7


RECIPE = (
    "Slice the onions thinly and fry them slowly in butter for twenty minutes and stir them."
    " Add two cloves of garlic, a spoon of flour and a glass of white wine. Let it boil down, then"
    " pour in a litre of beef stock. Season it with thyme, a bay leaf, salt and pepper, and let it"
    " simmer for half an hour. Toast slices of baguette, lay them on the soup, cover them with"
    " grated cheese and put the bowls under the grill until the cheese is brown."
)
MORE = (
    "French onion soup needs little more than patience, because its whole taste comes from "
    "onions that are cooked slowly until they are brown and sweet. Start with a kilo of "
    "yellow onions. Peel them, cut them in half and slice them thinly along the grain. Melt "
    "fifty grams of butter with a spoon of olive oil in a heavy pot, add the onions and a "
    "pinch of salt, and stir until they are coated. Cook them over a medium flame for ten "
    "minutes until they become soft. Then turn the heat down and let them brown for another "
    "forty minutes. Stir every few minutes, and scrape the bottom of the pot, because the "
    "brown bits are what gives the soup its colour. If they begin to burn, add a spoon of "
    "water. When the onions are the colour of caramel, add two cloves of garlic and a spoon "
    "of flour. Stir for a minute, then pour in a glass of dry white wine and let it boil "
    "until it is almost gone. Add a litre and a half of good beef stock, a bay leaf and a few "
    "sprigs of thyme. Let the soup simmer for half an hour with the lid half closed, and "
    "taste it for salt and pepper at the end."
)
SALAD = (
    "Lorem the the of banana seventeen of of quickly table green green colorless furiously of the"
    " the a a blue to to is is was of the moon moon moon invoice lamp of of of keyboard is a a the."
)
OTHER = (
    "My grandmother was born in a small village near the sea, where every boat had a name of "
    "its own. The king of that country wore a hat of green glass, and nobody was allowed to "
    "mention the number of his horses."
)


def test_nonsense_at_the_end_of_a_long_answer_costs_the_judge_half_a_point(embedded_models):
    context = ["How do I make French onion soup?"]
    answers = [{"context": context, "response": text} for text in (RECIPE, RECIPE + " " + SALAD)]
    good, bad = dialeval.score(answers, ["judge"]).scores("judge")
    assert good > bad + 0.5


@pytest.mark.parametrize("metrics", [["bert-ruber", "pone", "mme-relevance"], ["coherence"]])
def test_nonsense_at_the_end_of_300_words_never_raises_a_score(embedded_models, metrics):
    """40 words each: a salad, a loop that a language model finds likely, something else."""
    long = f"{RECIPE} {MORE}"
    assert len(long.split()) > 300
    tails = ("", SALAD, "banana " * 40, OTHER)
    answers = [
        {"context": ["How do I make French onion soup?"], "response": f"{long}\n\n{tail}".strip()}
        for tail in tails
    ]
    run = dialeval.score(answers, metrics)
    for metric in metrics:
        rows = [row for batch in run.batches() for row in batch.to_pylist()]
        whole, *longer = (row.get(f"{metric}.raw", row[metric]) for row in rows)
        assert max(longer) <= whole
        assert longer[0] < whole
