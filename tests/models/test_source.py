"""Names become directories, fingerprints and loaded models, without the network."""

from __future__ import annotations

import json
import os
import socket
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import UsageError
from dialeval.model_store import catalogue
from dialeval.model_store.catalogue import Entry, Package
from dialeval.model_store.locate import locate
from dialeval.model_store.store import KnownDigests, write_record
from dialeval.models import source
from dialeval.models.source import Models
from dialeval.storage import cache_directory, models_directory

USERS_MODELS = models_directory()
"""Where the user's own models lie; taken before the tests get a cache of their own."""

safetensors = pytest.importorskip("safetensors.numpy")
constants = pytest.importorskip("huggingface_hub.constants")


def make_model(directory: Path, value: float = 0.0, architecture: str = "GPT2LMHeadModel") -> Path:
    directory.mkdir(parents=True)
    safetensors.save_file({"w": np.full(4, value, np.float32)}, directory / "model.safetensors")
    config = {"architectures": [architecture], "model_type": "gpt2"}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, dict[str, object]]]:
    """What the loader of language models was called with."""
    calls: list[tuple[Path, dict[str, object]]] = []
    module = types.ModuleType("recording_loader")
    module.load = lambda directory, **options: calls.append((directory, options))
    monkeypatch.setitem(sys.modules, "recording_loader", module)
    monkeypatch.setitem(source.LOADERS, "causal-lm", "recording_loader:load")
    return calls


def test_a_local_directory_is_loaded_by_its_path(tmp_path, loaded) -> None:
    directory = make_model(tmp_path / "mine")
    Models("cpu").load(str(directory))
    assert loaded == [(directory, {"device": "cpu"})]


@pytest.mark.parametrize(
    ("architecture", "role"),
    [
        ("LlamaForCausalLM", "causal-lm"),
        ("GPT2LMHeadModel", "causal-lm"),
        ("BlenderbotForConditionalGeneration", "seq2seq-lm"),
        ("RobertaForSequenceClassification", "classifier"),
        ("BertForMaskedLM", "encoder"),
        ("BertModel", "encoder"),
    ],
)
def test_the_architecture_says_what_a_model_can_be_asked(tmp_path, architecture, role) -> None:
    directory = make_model(tmp_path / "mine", architecture=architecture)
    assert locate(str(directory)).role == role


def test_a_model_that_is_not_here_says_how_to_get_it() -> None:
    for name in ("smollm2-135m", "gpt2", "nobody/nothing"):
        with pytest.raises(UsageError, match=f"dialeval models get {name}"):
            Models().fingerprint(name)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'smollm2-135m'"):
        Models().load("smollm2-135")


def test_a_path_that_is_not_there_is_said(tmp_path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        locate(str(tmp_path / "nowhere"))


def test_the_fingerprint_follows_weights_and_configuration_only(tmp_path) -> None:
    models = Models()
    one, same = make_model(tmp_path / "one"), make_model(tmp_path / "same")
    other = make_model(tmp_path / "other", value=1.0)
    before = models.fingerprint(str(one))
    assert before == models.fingerprint(str(same))
    assert before != models.fingerprint(str(other))

    (one / "README.md").write_text("words")
    (one / "training_args.bin").write_bytes(b"x")
    assert before == models.fingerprint(str(one))
    (one / "tokenizer.json").write_text("{}")
    assert before != models.fingerprint(str(one))


def test_a_second_fingerprint_reads_no_weights(tmp_path, monkeypatch) -> None:
    directory = make_model(tmp_path / "mine")
    before = Models().fingerprint(str(directory))
    with monkeypatch.context() as patch:
        patch.setattr("dialeval.model_store.store.sha256_of", None)
        assert Models().fingerprint(str(directory)) == before

    (cache_directory() / "digests.json").write_text("damaged")
    assert Models().fingerprint(str(directory)) == before


def test_a_changed_file_is_hashed_again(tmp_path) -> None:
    path, known = tmp_path / "file", KnownDigests(tmp_path / "digests.json")
    path.write_bytes(b"a")
    os.utime(path, ns=(1, 1))
    before = known.of(path)
    path.write_bytes(b"b")
    os.utime(path, ns=(2, 2))
    assert known.of(path) != before


def make_adapter(directory: Path, base: str) -> Path:
    directory.mkdir(parents=True)
    safetensors.save_file({"a": np.ones(2)}, directory / "adapter_model.safetensors")
    (directory / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    return directory


def test_an_adapter_is_loaded_onto_its_base(tmp_path, loaded) -> None:
    base = make_model(tmp_path / "base")
    adapter = make_adapter(tmp_path / "adapter", str(base))
    Models("cpu").load(str(adapter))
    assert loaded == [(base, {"device": "cpu", "adapter": adapter})]


def test_the_fingerprint_of_an_adapter_holds_its_base(tmp_path) -> None:
    base = make_model(tmp_path / "base")
    adapter = make_adapter(tmp_path / "adapter", str(base))
    before = Models().fingerprint(str(adapter))
    make_model(tmp_path / "new", value=2.0).joinpath("model.safetensors").replace(
        base / "model.safetensors"
    )
    os.utime(base / "model.safetensors", ns=(1, 1))
    assert Models().fingerprint(str(adapter)) != before


def test_an_adapter_with_a_pickle_is_refused(tmp_path, loaded) -> None:
    adapter = make_adapter(tmp_path / "adapter", str(make_model(tmp_path / "base")))
    (adapter / "adapter_model.safetensors").replace(adapter / "adapter_model.bin")
    with pytest.raises(UsageError, match="is a pickle"):
        Models("cpu").load(str(adapter))
    assert loaded == []


def test_an_adapter_of_an_adapter_is_refused(tmp_path) -> None:
    inner = make_adapter(tmp_path / "inner", "smollm2-135m")
    outer = make_adapter(tmp_path / "outer", str(inner))
    with pytest.raises(UsageError, match="adapter of an adapter"):
        locate(str(outer))


def test_what_ships_inside_dialeval_is_always_here(tmp_path, monkeypatch, loaded) -> None:
    base = make_model(tmp_path / "base")
    adapter = make_adapter(tmp_path / "package" / "adapters" / "mine", str(base))
    write_record(adapter, {})
    monkeypatch.setattr("dialeval.model_store.locate.files", lambda _: tmp_path / "package")
    shipped = Entry("mine", "causal-lm", "MIT", "", Package("adapters/mine"), 0, base=str(base))
    monkeypatch.setitem(catalogue.CATALOGUE, "mine", shipped)
    Models("cpu").load("mine")
    assert loaded[0][1]["adapter"] == tmp_path / "package" / "adapters" / "mine"


def test_a_tagger_answers_no_questions(tmp_path, monkeypatch) -> None:
    (tmp_path / "package").mkdir()
    monkeypatch.setattr("dialeval.model_store.locate.files", lambda _: tmp_path)
    entry = Entry("tags", "tagger", "MIT", "", Package("package"), 0)
    monkeypatch.setitem(catalogue.CATALOGUE, "tags", entry)
    with pytest.raises(UsageError, match="answers no questions"):
        Models().load("tags")


def test_nothing_is_sent_while_a_model_loads(tmp_path, monkeypatch, loaded) -> None:
    seen: list[bool] = []
    sys.modules["recording_loader"].load = lambda *_, **__: seen.append(constants.HF_HUB_OFFLINE)

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = constants.HF_HUB_OFFLINE
    directory = make_model(tmp_path / "mine")
    Models("cpu").fingerprint(str(directory))
    Models("cpu").load(str(directory))
    assert seen == [True]
    assert before == constants.HF_HUB_OFFLINE


@pytest.mark.skipif(
    not (USERS_MODELS / "smollm2-135m" / "dialeval-model.json").is_file(),
    reason="run `dialeval models get --preset default` first",
)
def test_the_embedded_language_model_is_here_and_speaks_english(monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setenv("DIALEVAL_CACHE", str(USERS_MODELS.parent))
    found = locate("smollm2-135m")
    tokenizer = AutoTokenizer.from_pretrained(found.directory, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(found.directory, local_files_only=True)
    assert model.dtype == torch.float32
    # Digits apart, white space before them whole: as the model was trained, not as GPT-2 splits.
    assert tokenizer.tokenize("a\n\n12") == ["a", "ĊĊ", "1", "2"]
    ids = tokenizer("The capital of France is", return_tensors="pt").input_ids
    with torch.no_grad():
        best = model(ids).logits[0, -1].argmax()
    assert tokenizer.decode(best) == " Paris"
