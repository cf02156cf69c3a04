"""A GGUF file becomes safetensors that give the very same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import JobError, UsageError
from dialeval.model_store.locate import locate
from dialeval.model_store.store import converted, gguf_fingerprint
from dialeval.models.source import Models
from dialeval.question import Choose, Embed, Likelihood

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
llama_cpp = pytest.importorskip("dialeval.models.llama_cpp")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from models.tiny_gguf import write_gguf

    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_the_conversion_changes_no_number_and_happens_once(tiny, capfd, monkeypatch) -> None:
    directory = converted(tiny)
    assert capfd.readouterr() == ("", "")
    place = {"gguf_file": tiny.name, "dtype": torch.float32}
    before = transformers.AutoModelForCausalLM.from_pretrained(tiny.parent, **place).eval()
    after = transformers.AutoModelForCausalLM.from_pretrained(directory).eval()
    ids = torch.arange(3, 60)[None]
    with torch.no_grad():
        assert torch.equal(before(ids).logits, after(ids).logits)
    assert after.lm_head.weight is after.model.embed_tokens.weight

    monkeypatch.setattr("dialeval.model_store.store.convert_gguf", None)
    assert converted(tiny) == directory


def test_the_tokenizer_splits_digits_first_and_keeps_its_template(tiny) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(converted(tiny))
    assert tokenizer.tokenize("ab\n\n12") == ["ab", "ĊĊ", "1", "2"]
    assert tokenizer.decode(tokenizer("ab\n\n12").input_ids) == "ab\n\n12"
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert tokenizer.model_max_length == 128
    message = [{"role": "user", "content": "hello"}]
    assert tokenizer.apply_chat_template(message, tokenize=False) == "hello"


def test_a_quantised_model_answers_both_kinds_of_question(tiny, monkeypatch) -> None:
    asked = []

    class Server:
        def answer(self, questions):
            asked.extend(questions)
            yield from ((n, np.array([n])) for n in range(len(questions)))

    monkeypatch.setattr(llama_cpp, "serve", lambda gguf: Server())
    likely, choice = (
        Likelihood("m", "ab ab", layout="plain"),
        Choose("m", "rate", "x", "", ("1", "2")),
    )
    found = dict(llama_cpp.load(tiny, device="cpu").answer([choice, likely, choice]))
    expected = dict(Models(device="cpu").load(str(tiny)).answer([likely]))[0]
    np.testing.assert_allclose(found[1], expected, atol=1e-5)
    assert asked == [choice, choice]
    assert (found[0][0], found[2][0]) == (0, 1)
    with pytest.raises(UsageError, match="a language model"):
        dict(llama_cpp.load(tiny, device="cpu").answer([Embed("m", "text")]))


def test_a_gguf_is_a_model_by_its_path_or_its_directory(tiny) -> None:
    assert locate(str(tiny)).role == "causal-lm"
    assert locate(str(tiny.parent)).gguf == tiny
    assert Models().fingerprint(str(tiny)) == gguf_fingerprint(tiny)


def test_a_gguf_that_is_cut_short_is_a_clear_error(tiny, tmp_path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:2000])
    with pytest.raises(JobError, match=r"cut\.gguf: this GGUF cannot be read"):
        converted(cut)
