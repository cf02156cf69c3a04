"""llama.cpp answers as transformers does, on a tiny random Llama of two layers."""

from __future__ import annotations

import math

import pytest

from dialeval.errors import JobError
from dialeval.models import llama_cpp
from dialeval.models.llama_cpp import BOT, USER
from dialeval.question import Choose, Chosen

pytest.importorskip("xllamacpp", reason="needs the extra 'gguf'")
pytest.importorskip("gguf", reason="needs the package gguf, to write a file")
torch = pytest.importorskip("torch", reason="needs the extra 'models'")
transformers = pytest.importorskip("transformers", reason="needs the extra 'models'")

CHOICES = ("1", "2", "3", "4", "5")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    from models.tiny_gguf import write_gguf

    return write_gguf(
        tmp_path_factory.mktemp("gguf") / "tiny.gguf", layers=2, context=512, spread=0.1
    )


@pytest.fixture(scope="module")
def model(tiny):
    return llama_cpp.serve(tiny, threads=1)


def question(number: int, material: str = "Bot: Hello.") -> Choose:
    return Choose("tiny", f"Judge {number}. ", f"{material} ", "Rate it.", CHOICES)


def asked(model, questions):
    found = dict(model.answer(questions))
    return [Chosen.read(found[place]) for place in range(len(questions))]


def test_probabilities_are_those_of_the_same_weights_in_transformers(model, tiny):
    """The weights have 8 bits in both; llama.cpp also rounds what it computes."""
    place = {"gguf_file": tiny.name, "dtype": torch.float32}
    there = transformers.AutoModelForCausalLM.from_pretrained(tiny.parent, **place).eval()
    one = question(1)
    text = USER + one.instruction + one.material + one.wanted + BOT
    ids = _byte_ids(tiny, text)
    with torch.no_grad():
        wanted = there(torch.tensor([ids])).logits[0, -1].softmax(-1)
    (chosen,) = asked(model, [one])
    digits = [float(wanted[_byte_ids(tiny, digit)[0]]) for digit in CHOICES]
    listed = [pair for pair in zip(chosen.probabilities, digits, strict=True) if pair[0]]
    assert len(listed) >= 2  # the others are none of the 200 likeliest
    for found, expected in listed:
        assert found == pytest.approx(expected, rel=0.02)


def _byte_ids(path, text):
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers

    names = GGUFReader(path).fields["tokenizer.ggml.tokens"].contents()
    place = {name: number for number, name in enumerate(names)}
    ids: list[int] = []
    for part in text.replace("<|im_start|>", "\0s\0").replace("<|im_end|>", "\0e\0").split("\0"):
        if part in ("s", "e"):
            ids.append(place["<|im_start|>" if part == "s" else "<|im_end|>"])
        elif part:
            level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            written = level.pre_tokenize_str(part)[0][0]
            assert "ab" not in written
            assert "ĊĊ" not in written
            ids += [place[letter] for letter in written]
    return ids


def test_the_same_question_gets_the_same_answer_in_any_order(model):
    questions = [question(number) for number in range(3)]
    there, back = asked(model, questions), asked(model, questions[::-1])
    for one, other in zip(there, back[::-1], strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)


def test_tokens_are_counted_and_what_does_not_fit_is_cut(model):
    before = model.tokens_read
    (chosen,) = asked(model, [question(1, "Hello. " * 700)])
    assert chosen.cut > 4000
    assert model.tokens_read - before == 504  # trained with 512, and a letter takes up to 8


def test_a_reply_that_begins_with_half_a_letter_is_read(model, monkeypatch):
    """llama.cpp keeps a byte that is no letter, and its probabilities, until the letter is
    whole: it says `"logprobs": null` where one token is asked for."""
    asked_for = []

    class HalfLetters:
        listening_address = model._server.listening_address

        def handle_completions(self, body):
            asked_for.append(body["n_predict"])
            rows = [{"id": model._text("4")[0], "logprob": math.log(0.25)}]
            told = {"content": [{"top_logprobs": rows}]} if body["n_predict"] > 1 else None
            return {"choices": [{"text": "\ufffd", "logprobs": told}]}

    monkeypatch.setattr(model, "_server", HalfLetters())
    (chosen,) = asked(model, [question(18)])
    assert asked_for == [1, llama_cpp.WHOLE_LETTER]
    assert chosen.probabilities == pytest.approx((0, 0, 0, 0.25, 0))


def test_a_quantised_file_chooses_by_llama_cpp_and_counts_its_tokens(model, tiny):
    whole = llama_cpp.load(tiny)
    (chosen,) = asked(whole, [question(1)])
    assert chosen.probabilities == pytest.approx(asked(model, [question(1)])[0].probabilities)
    assert whole.tokens_read > 40


def test_a_file_that_is_no_model_is_said(tmp_path):
    path = tmp_path / "no.gguf"
    path.write_bytes(b"GGUF nothing")
    with pytest.raises(JobError, match=r"no\.gguf: llama\.cpp cannot load this file"):
        llama_cpp.serve(path, threads=1)
