"""Damaged weights are noticed when they are loaded, wherever they come from."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import JobError, UsageError
from dialeval.model_store import catalogue
from dialeval.model_store import store as identity
from dialeval.model_store.catalogue import CATALOGUE, Entry, File, Package, Wheel
from dialeval.model_store.locate import Located, check_is_whole, entry_directory, ready, verify
from dialeval.model_store.store import RECORD, KnownDigests, write_record
from dialeval.models.source import Models
from dialeval.training.run import exclusive

safetensors = pytest.importorskip("safetensors.numpy")


def make_vectors(directory: Path) -> Path:
    """Word vectors: the smallest model that really loads."""
    directory.mkdir(parents=True)
    (directory / "vectors.txt").write_text("good 1.0 0.0\nbad 0.0 1.0\n")
    return directory


def flip(path: Path, place: int = 5) -> None:
    """Another digit in the same place, as a disk or a copy would have it."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(bytes(content))


def flip_unseen(path: Path, place: int = 5) -> None:
    """The same, with the time that the file had before."""
    status = path.stat()
    flip(path, place)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture
def fetched(tmp_path, monkeypatch) -> Path:
    """A catalogue model `tiny` that was fetched into the user's cache."""
    from dialeval.model_store.store import wheel_fingerprint
    from dialeval.storage import models_directory

    directory = make_vectors(models_directory() / "tiny")
    content = (directory / "vectors.txt").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    wheel = Wheel("p", "1", "0" * 64, 1, "", (File("vectors.txt", len(content), digest),))
    entry = Entry("tiny", "word-vectors", "MIT", "", wheel, 1)
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry)
    write_record(directory, {"fingerprint": wheel_fingerprint(entry)})
    return directory


def test_a_fetched_model_whose_bytes_changed_is_not_loaded(fetched) -> None:
    models = Models("cpu")
    models.load("tiny")
    flip_unseen(fetched / "vectors.txt")
    with pytest.raises(JobError, match=r"vectors\.txt has changed .*dialeval models get tiny"):
        models.load("tiny")


def test_a_record_that_agrees_with_damaged_weights_does_not_excuse_them(fetched) -> None:
    flip(fetched / "vectors.txt")
    record = json.loads((fetched / RECORD).read_text())
    write_record(fetched, {"fingerprint": record["fingerprint"]})
    with pytest.raises(JobError, match=r"vectors\.txt should have the sha256"):
        Models("cpu").load("tiny")


@pytest.mark.parametrize("files", [{}, [], {"vectors.txt": 3}, {"vectors.txt": {"size": 1}}])
def test_a_damaged_record_is_damage(fetched, files) -> None:
    record = json.loads((fetched / RECORD).read_text())
    (fetched / RECORD).write_text(json.dumps({**record, "files": files}))
    with pytest.raises(UsageError, match=RECORD):
        Models("cpu").load("tiny")


def test_what_was_verified_is_read_again_after_a_boot_only(fetched, monkeypatch) -> None:
    read: list[str] = []

    def counted(path: Path) -> str:
        read.append(path.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(identity, "sha256_of", counted)
    monkeypatch.setattr(identity, "boot_id", lambda: "monday")
    Models("cpu").load("tiny")
    Models("cpu").load("tiny")
    assert read == ["vectors.txt"]
    monkeypatch.setattr(identity, "boot_id", lambda: "tuesday")
    Models("cpu").load("tiny")
    assert read == ["vectors.txt"] * 2


def test_where_the_system_names_no_boot_nothing_is_taken_on_trust(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(identity, "boot_id", lambda: "")
    path = tmp_path / "file"
    path.write_bytes(b"a")
    KnownDigests(tmp_path / "digests.json").of(path)
    assert not (tmp_path / "digests.json").exists()


def test_a_remembered_digest_that_was_tampered_with_is_forgotten(tmp_path) -> None:
    path, memory = tmp_path / "file", tmp_path / "digests.json"
    path.write_bytes(b"a")
    right = KnownDigests(memory).of(path)
    memory.write_text(memory.read_text().replace(right, "0" * 64))
    assert KnownDigests(memory).of(path) == right == hashlib.sha256(b"a").hexdigest()


def test_a_cache_that_cannot_be_written_does_not_stop_the_work(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a")
    (tmp_path / "in the way").write_bytes(b"")
    known = KnownDigests(tmp_path / "in the way" / "digests.json")
    assert known.of(path) == hashlib.sha256(b"a").hexdigest()


def test_models_check_reads_what_the_clock_says_is_unchanged(fetched, monkeypatch) -> None:
    verify("tiny")
    before = identity.file_stamp(fetched / "vectors.txt")
    flip(fetched / "vectors.txt")
    monkeypatch.setattr(identity, "file_stamp", lambda path: before)
    with pytest.raises(JobError, match="has changed"):
        verify("tiny")
    with pytest.raises(JobError, match="has changed"):  # and loading knows it from now on
        Models("cpu").load("tiny")


def test_every_part_that_ships_is_recorded_and_whole() -> None:
    shipped = [entry for entry in CATALOGUE.values() if isinstance(entry.source, Package)]
    assert shipped
    for entry in shipped:
        directory = entry_directory(entry)
        assert directory is not None
        check_is_whole(Located(entry.name, entry.role, directory, entry), KnownDigests().again)


def test_a_shipped_part_that_changed_says_that_dialeval_must_be_installed_again(
    tmp_path, monkeypatch
) -> None:
    entry = CATALOGUE["ruber-glove"]
    directory = entry_directory(entry)
    assert directory is not None
    copy = shutil.copytree(directory, tmp_path / entry.source.path)
    found = Located(entry.name, entry.role, copy, entry)
    ready(found)
    flip(copy / "scorer.safetensors", 200_000)
    with pytest.raises(JobError, match=r"scorer\.safetensors has changed.*install dialeval again"):
        ready(found)
    (copy / RECORD).unlink()
    with pytest.raises(JobError, match="is missing"):
        ready(found)


def test_what_was_trained_is_recorded_and_may_be_released_from_it(tmp_path) -> None:
    trained = tmp_path / "trained"
    with exclusive(trained):
        (trained / "vectors.txt").write_text("good 1.0 0.0\nbad 0.0 1.0\n")
        (trained / "card.json").write_text("{}")
    Models("cpu").load(str(trained))
    (trained / "card.json").write_text('{"a": "remark"}')
    Models("cpu").load(str(trained))
    flip(trained / "vectors.txt")
    with pytest.raises(JobError, match=f"vectors.txt has changed.*delete .*{RECORD}"):
        Models("cpu").load(str(trained))
    (trained / RECORD).unlink()
    Models("cpu").load(str(trained))


def test_a_training_that_failed_leaves_no_record(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive(tmp_path / "trained"):
        raise ZeroDivisionError
    assert not (tmp_path / "trained" / RECORD).exists()


def hub_snapshot(cache: Path) -> Path:
    """As the hub's library lays it out: links to files that are named after their hashes."""
    commit, repository = "0123456789abcdef0123456789abcdef01234567", cache / "models--org--name"
    snapshot, blobs = repository / "snapshots" / commit, repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    made = blobs / "made"
    safetensors.save_file({"w": np.zeros(4, np.float32)}, made)
    large = blobs / hashlib.sha256(made.read_bytes()).hexdigest()
    made.rename(large)
    config = json.dumps({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}).encode()
    # git itself says what a small file is called
    git = ["git", "hash-object", "--stdin"]
    name = subprocess.run(git, input=config, capture_output=True, check=True).stdout.decode()
    small = blobs / name.strip()
    small.write_bytes(config)
    (snapshot / "model.safetensors").symlink_to(large)
    (snapshot / "config.json").symlink_to(small)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return snapshot


@pytest.mark.skipif(shutil.which("git") is None, reason="git names the small files")
@pytest.mark.parametrize(("name", "place"), [("model.safetensors", -1), ("config.json", 20)])
def test_a_snapshot_of_the_hub_is_compared_with_the_names_of_its_files(
    tmp_path, monkeypatch, name, place
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshot = hub_snapshot(tmp_path / "hub")
    assert verify("org/name")
    flip((snapshot / name).resolve(), place)
    with pytest.raises(JobError, match=rf"{name} has changed.*dialeval models get org/name"):
        verify("org/name")


def test_somebodys_own_model_has_nothing_to_compare_with(tmp_path) -> None:
    assert not verify(str(make_vectors(tmp_path / "mine")))


def test_a_model_that_is_written_while_it_is_used_is_refused(tmp_path) -> None:
    models, mine = Models("cpu"), make_vectors(tmp_path / "mine")
    models.fingerprint(str(mine))
    flip(mine / "vectors.txt")
    with pytest.raises(JobError, match="changed while it was used"):
        models.load(str(mine))


def test_files_that_no_library_can_read_end_in_a_message(tmp_path) -> None:
    directory = tmp_path / "mine"
    directory.mkdir()
    safetensors.save_file({"w": np.zeros(4, np.float32)}, directory / "model.safetensors")
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": "many"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(UsageError, match="mine"):
        Models("cpu").load(str(directory))
