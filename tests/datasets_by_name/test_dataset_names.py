"""The catalogue, and what a name stands for."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import dialeval
from dialeval.datasets import DATASETS, find_dataset, resolve
from dialeval.datasets.locate import inspect_dataset, list_datasets
from dialeval.errors import InputError, UsageError
from dialeval.readers import check
from dialeval.registry import READERS
from dialeval.training.examples.corpora import load_corpus

PARTS = [f"{d.name}/{p.name}" for d in DATASETS.values() for p in d.parts]


@pytest.fixture
def here(datasets: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    return datasets


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_entry_is_complete() -> None:
    assert len({d.place for d in DATASETS.values()}) == len(DATASETS)
    for dataset in DATASETS.values():
        assert dataset.files, dataset.name
        assert urlsplit(dataset.source).scheme in ("http", "https")
        without = [file.name for file in dataset.files if not file.url]
        assert bool(without) == bool(dataset.by_hand), dataset.name
        for file in dataset.files:
            assert len(file.sha256) == 64
            assert file.size > 0
            assert not Path(file.name).is_absolute()
            assert ".." not in Path(file.name).parts
        for part in dataset.parts:
            assert part.format in READERS.names()


def test_no_address_serves_two_files() -> None:
    urls = Counter(file.url for d in DATASETS.values() for file in d.files if file.url)
    assert [url for url, count in urls.items() if count > 1] == []


def test_addresses_in_repositories_name_a_commit() -> None:
    """A branch moves, and the hashes with it."""
    for dataset in DATASETS.values():
        for file in dataset.files:
            if "raw.githubusercontent.com" in file.url:
                commit = urlsplit(file.url).path.split("/")[3]
                assert len(commit) == 40, file.url


@pytest.mark.parametrize("name", list(DATASETS))
def test_the_files_here_are_the_listed_ones(here: Path, name: str) -> None:
    listed = inspect_dataset(DATASETS[name])
    assert listed.folder == here / DATASETS[name].place
    assert listed.missing == ()
    for file in DATASETS[name].files:
        content = (listed.folder / file.name).read_bytes()
        assert len(content) == file.size
        assert hashlib.sha256(content).hexdigest() == file.sha256


@pytest.mark.parametrize("name", PARTS)
def test_every_part_holds_what_the_catalogue_says(here: Path, name: str) -> None:
    dataset, _, inner = name.partition("/")
    part = DATASETS[dataset].part(inner)
    assert part is not None
    report = check([name])
    assert set(report.formats.values()) == {part.format}
    assert report.samples == part.items
    scales = {quality: found.scale for quality, found in report.qualities.items()}
    if part.format == "jsonl":  # which states no scale: the catalogue does
        assert set(scales.values()) == {None}
        scales = {quality: part.qualities[quality] for quality in scales}
    assert scales == {q: tuple(map(float, scale)) for q, scale in part.qualities.items()}


def test_a_name_is_the_same_as_its_path(here: Path) -> None:
    assert list(dialeval.load("fed")) == list(dialeval.load(here / "rated/fed/fed_data.json"))


def test_find_dataset_gives_folders_of_sets_and_files_of_parts(here: Path) -> None:
    assert find_dataset("fed") == here / "rated/fed"
    assert find_dataset("nli") == here / "nli"
    assert find_dataset("conceptnet") == here / "lexical/conceptnet"
    assert find_dataset("holistic/coherence") == here / "rated/holistic/context_data_release.csv"


def test_a_flat_root_is_understood(nothing_here: Path) -> None:
    folder = nothing_here / "data/fed"
    folder.mkdir(parents=True)
    (folder / "fed_data.json").write_text("[]")
    assert find_dataset("fed") == folder


def test_a_set_that_is_not_here_is_none_and_says_how_to_get_it(nothing_here: Path) -> None:
    assert find_dataset("fed") is None
    with pytest.raises(UsageError, match="dialeval data get fed"):
        dialeval.load("fed")


def test_a_part_that_is_missing_from_its_set_is_named(nothing_here: Path) -> None:
    folder = nothing_here / "data/rated/holistic"
    folder.mkdir(parents=True)
    (folder / "fluency_data_release.csv").write_text("1,Hi," + ",".join("3" * 10))
    assert find_dataset("holistic/coherence") is None
    with pytest.raises(UsageError, match=r"has no context_data_release.csv"):
        dialeval.load("holistic/coherence")
    assert len(list(dialeval.load("holistic/fluency"))) == 1


def test_an_existing_path_always_wins(nothing_here: Path) -> None:
    (nothing_here / "fed").write_text('{"context": "Hi", "response": "Hello"}\n')
    assert [sample.response for sample in dialeval.load("fed")] == ["Hello"]


def test_a_format_that_the_user_names_wins_over_that_of_the_set(here: Path) -> None:
    samples = dialeval.load("holistic/coherence", format="csv", bad="skip")
    assert set(samples.formats.values()) == {"csv"}


@pytest.mark.parametrize(
    ("given", "meant"), [("fedd", "fed"), ("holistc/fluency", "holistic/fluency")]
)
def test_a_name_that_is_nearly_one_is_put_right(nothing_here: Path, given: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"no data set of that name. Did you mean '{meant}'"):
        dialeval.load(given)


@pytest.mark.parametrize("given", ["chats.jsonl", "./fedd", "a/b/c", "/fedd"])
def test_what_is_clearly_a_path_is_only_a_missing_file(nothing_here: Path, given: str) -> None:
    with pytest.raises(InputError, match=r"there is no such file$"):
        dialeval.load(given)


@pytest.mark.parametrize("name", ["holistic", "dstc10"])
def test_a_set_of_several_kinds_wants_one_of_them(here: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"Name one of them: {name}/"):
        dialeval.load(name)


def test_an_unknown_name_is_an_error_for_those_who_ask_for_a_data_set() -> None:
    with pytest.raises(UsageError, match=r"no data set 'engagement'. Did you mean 'engage'"):
        find_dataset("engagement")
    with pytest.raises(UsageError, match=r"has no part 'fluenc'. Did you mean 'fluency'"):
        find_dataset("holistic/fluenc")


def test_several_files_of_a_set_are_read_as_one(here: Path) -> None:
    assert [Path(target.path).name for target in resolve("convai2-human")] == [
        "data_volunteers.json",
        "data_intermediate.json",
        *(f"export_2018-07-0{day}_train.json" for day in (4, 5, 6, 7)),
    ]


def test_a_corpus_to_train_on_goes_by_its_name(here: Path) -> None:
    named = load_corpus(Path("dailydialog"))
    assert named.digest() == load_corpus(here / "corpora/dailydialog").digest()
    assert named.name == "dailydialog"


def test_the_list_says_what_is_here(nothing_here: Path) -> None:
    folder = nothing_here / "data/rated/engage"
    folder.mkdir(parents=True)
    (folder / "humanAMT_engscores_utt.csv").write_text("id,query,reply,label\n")
    states = {one.dataset.name: one.state for one in list_datasets()}
    assert states["engage"] == "1 of 4 files"
    assert (states["fed"], states["dstc10"]) == ("no", "no, by hand")
