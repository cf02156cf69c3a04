"""Weights are data: whatever could run a program is refused, and never runs."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import UsageError
from dialeval.model_store.weights import check_directory, weight_files
from dialeval.models.source import Models

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model directory without weights."""
    directory = tmp_path / "model"
    directory.mkdir()
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def plain_pickle(bomb: Bomb, path: Path) -> None:
    path.write_bytes(pickle.dumps({"weight": bomb}))


def torch_archive(bomb: Bomb, path: Path) -> None:
    torch.save({"weight": torch.zeros(2), "bomb": bomb}, path)


@pytest.mark.parametrize("write", [plain_pickle, torch_archive])
@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pkl", "model.pt", "model.ckpt", "model.joblib", "x.bin"]
)
def test_a_malicious_pickle_is_refused_and_never_runs(model, tmp_path, write, name) -> None:
    marker = tmp_path / "owned"
    write(Bomb(marker), model / name)
    with pytest.raises(UsageError, match=r"(could|can) run any program"):
        Models("cpu").load(str(model))
    assert not marker.exists()


def test_the_bomb_of_these_tests_is_real(tmp_path) -> None:
    plain_pickle(Bomb(tmp_path / "owned"), tmp_path / "model.pkl")
    pickle.loads((tmp_path / "model.pkl").read_bytes())
    assert (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "other.safetensors"])
def test_a_pickle_beside_safetensors_stays_closed(model, tmp_path, name) -> None:
    safetensors.save_file({"weight": np.zeros(3, np.float32)}, model / name)
    plain_pickle(Bomb(tmp_path / "owned"), model / "training_args.bin")
    plain_pickle(Bomb(tmp_path / "owned"), model / "optimizer.pt")
    assert [path.name for path in weight_files(model)] == [name]
    check_directory(model)
    assert not (tmp_path / "owned").exists()


def test_safetensors_of_another_name_do_not_hide_a_bad_bin(model, tmp_path) -> None:
    safetensors.save_file({"weight": np.zeros(3, np.float32)}, model / "other.safetensors")
    plain_pickle(Bomb(tmp_path / "owned"), model / "pytorch_model.bin")
    with pytest.raises(UsageError, match="weights_only"):
        check_directory(model)
    assert not (tmp_path / "owned").exists()


def test_a_harmless_bin_passes_with_a_notice(model, caplog) -> None:
    torch.save({"weight": torch.ones(3)}, model / "pytorch_model.bin")
    check_directory(model)
    assert "weights_only" in caplog.text


@pytest.mark.parametrize("kept", [0, 5, 20, -1])
def test_safetensors_that_are_cut_short_are_refused(model, kept) -> None:
    path = model / "model.safetensors"
    safetensors.save_file({"weight": np.zeros(300, np.float32)}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UsageError, match=r"model\.safetensors: damaged"):
        check_directory(model)


def test_a_missing_shard_is_named(model) -> None:
    safetensors.save_file({"a": np.zeros(3)}, model / "model-00001-of-00002.safetensors")
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    with pytest.raises(UsageError, match=r"00002-of-00002.* is not here"):
        check_directory(model)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_a_model_that_brings_its_own_code_is_refused(model, tmp_path, file) -> None:
    pytest.importorskip("transformers")
    safetensors.save_file({"weight": np.zeros(3, np.float32)}, model / "model.safetensors")
    (model / "evil.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')")
    own = {"architectures": ["EvilForCausalLM"], "model_type": "evil"}
    (model / "config.json").write_text(json.dumps(own))
    changed = own | {"auto_map": {"AutoConfig": "evil.Config", "AutoTokenizer": "evil.T"}}
    (model / file).write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="brings its own Python code"):
        Models("cpu").load(str(model))
    assert not (tmp_path / "owned").exists()


def test_a_directory_without_weights_says_so(model) -> None:
    with pytest.raises(UsageError, match="no weights here"):
        Models("cpu").load(str(model))


def test_a_broken_config_names_the_file(model) -> None:
    (model / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"config\.json: not valid JSON"):
        Models("cpu").load(str(model))
