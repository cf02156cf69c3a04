"""The hub: its cache is used offline, and only what is needed comes down."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dialeval.errors import JobError, UsageError
from dialeval.model_store.catalogue import Hub
from dialeval.model_store.fetch import get
from dialeval.model_store.hub import choose_files, parse_hub
from dialeval.model_store.locate import locate
from dialeval.models.source import Models

huggingface_hub = pytest.importorskip("huggingface_hub")
safetensors = pytest.importorskip("safetensors.numpy")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def fill(cache: Path) -> Path:
    """Puts the model `org/name` into the hub's cache, in the hub's layout."""
    snapshot = cache / "models--org--name" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    safetensors.save_file({"w": np.zeros(4, np.float32)}, snapshot / "model.safetensors")
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}
    (snapshot / "config.json").write_text(json.dumps(config))
    refs = cache / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    return snapshot


@pytest.fixture
def online(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A hub that offers `org/name`; what was asked for is recorded."""
    record = SimpleNamespace(downloads=0, patterns=[], sha256=None)
    offline_download = huggingface_hub.snapshot_download

    def model_info(_self, repo, revision, files_metadata):
        names = ["model.safetensors", "config.json", "modeling_evil.py", "pytorch_model.bin"]
        lfs = SimpleNamespace(sha256=record.sha256) if record.sha256 else None
        siblings = [SimpleNamespace(rfilename=name, size=9, lfs=None) for name in names]
        siblings[0].lfs = lfs
        return SimpleNamespace(siblings=siblings)

    def download(repo, revision=None, local_files_only=False, allow_patterns=None):
        if local_files_only:
            return offline_download(repo, revision=revision, local_files_only=True)
        record.downloads += 1
        record.patterns = allow_patterns
        return str(fill(hub_cache))

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return record


def test_a_name_with_a_slash_is_a_repository_and_may_carry_a_revision() -> None:
    assert parse_hub("org/name") == Hub("org/name", "main")
    assert parse_hub("org/name@v1") == Hub("org/name", "v1")
    for name in ("name", "a/b/c", "../name", "/org/name", "org/..", "org/name@"):
        assert parse_hub(name) is None


def test_what_lies_in_the_cache_is_used_without_asking(hub_cache) -> None:
    snapshot = fill(hub_cache)
    found = locate("org/name")
    assert (found.directory, found.role) == (snapshot, "causal-lm")
    assert Models().fingerprint("org/name").startswith(COMMIT[:16] + "-")


def test_a_cache_without_weights_counts_as_not_here(hub_cache) -> None:
    (fill(hub_cache) / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="dialeval models get org/name"):
        locate("org/name")


def test_get_fetches_once_and_neither_code_nor_a_second_copy(online) -> None:
    assert get("org/name").directory.name == COMMIT
    get("org/name")
    assert online.downloads == 1
    assert online.patterns == ["model.safetensors", "config.json"]


def test_a_file_that_differs_from_the_hubs_list_is_deleted(online, hub_cache) -> None:
    online.sha256 = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(JobError, match="not the file that the hub lists"):
        get("org/name")
    assert not list(hub_cache.rglob("*.safetensors"))


def test_without_safetensors_the_bin_is_chosen_and_nothing_else() -> None:
    names = ["tf_model.h5", "pytorch_model.bin", "flax_model.msgpack", "vocab.json", "x/y.json"]
    assert choose_files(names) == ["pytorch_model.bin", "vocab.json"]
    assert choose_files(["model.pkl", "config.json"]) == []


def test_an_unreachable_hub_is_a_clear_error(hub_cache, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", fail)
    with pytest.raises(JobError, match=r"org/name: cannot be fetched .*no route to host"):
        get("org/name")
