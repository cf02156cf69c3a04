"""A GGUF file becomes safetensors that give the very same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import JobError, UsageError
from dialeval.model_store.gguf import converted, gguf_fingerprint
from dialeval.model_store.locate import locate
from dialeval.models.source import Models
from dialeval.question import Choose, Embed, Likelihood

gguf = pytest.importorskip("gguf")
tokenizers = pytest.importorskip("tokenizers")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
llama_cpp = pytest.importorskip("dialeval.models.llama_cpp")

WIDTH, INNER, HEADS = 64, 96, 4


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A one-layer Llama with tied embeddings and a byte-level tokenizer, quantised to 8 bits."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet, "ĊĊ", "ab"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["Ċ Ċ", "a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    random = np.random.default_rng(7)
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH // 2, WIDTH),
        "attn_v": (WIDTH // 2, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    weights = {f"blk.0.{name}.weight": shape for name, shape in shapes.items()}
    for name, shape in {"token_embd.weight": (len(tokens), WIDTH), **weights}.items():
        values = random.normal(0, 0.3, shape).astype(np.float32)
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    for name in ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"):
        writer.add_tensor(name, random.normal(1, 0.1, WIDTH).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


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

    monkeypatch.setattr("dialeval.model_store.gguf.convert_gguf", None)
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
