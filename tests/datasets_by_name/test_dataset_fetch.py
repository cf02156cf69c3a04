"""Data sets from a public source and from a copy: whole, checked, or not at all."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from datasets_by_name.file_server import Served, serving

from dialeval.datasets import fetch as fetching
from dialeval.datasets.entries import Dataset, File, Part
from dialeval.datasets.fetch import copy_from, download, fetch
from dialeval.datasets.locate import find_folder
from dialeval.errors import JobError, UsageError
from dialeval.progress import Step

A, B = b"alpha\n" * 2000, b"beta\n" * 3000


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(
        fetching, "download", lambda *a, **k: download(*a, **k, pause=0.0, attempts=2)
    )
    return tmp_path / "data"


def file(name: str, content: bytes, url: str = "") -> File:
    return File(name, len(content), hashlib.sha256(content).hexdigest(), url)


def made(*files: File, **options) -> Dataset:
    about = {
        "name": "tiny",
        "kind": "rated",
        "place": "rated/tiny",
        "summary": "two files",
        "items": "2",
        "citation": "Nobody 2020",
        "source": "https://example.org/tiny",
        "licence": "MIT",
    }
    return Dataset(**about | options, files=files)


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def test_all_files_arrive_in_the_layout_of_the_catalogue(root: Path) -> None:
    steps = []
    with serving(Served({"/a": A, "/b": B})) as served:
        tiny = made(file("a.txt", A, f"{served.base}/a"), file("deep/b.txt", B, f"{served.base}/b"))
        done = fetch(tiny, progress=steps.append)
    assert tree(root) == {"rated/tiny/a.txt": A, "rated/tiny/deep/b.txt": B}
    assert done.folder == find_folder(tiny) == root / "rated/tiny"
    assert (done.added, done.changed, done.absent) == (("a.txt", "deep/b.txt"), (), ())
    assert steps[-1].stage == "ready"
    assert max(s.done for s in steps) == len(A) + len(B) == steps[0].total


def test_what_is_here_is_not_fetched_again(root: Path) -> None:
    with serving(Served({"/b": B})) as served:
        tiny = made(file("a.txt", A, f"{served.base}/a"), file("b.txt", B, f"{served.base}/b"))
        (root / "rated/tiny").mkdir(parents=True)
        (root / "rated/tiny/a.txt").write_bytes(b"mine")
        assert fetch(tiny).added == ("b.txt",)
        assert fetch(tiny).added == ()
    assert [path for path, _ in served.asked] == ["/b"]
    assert tree(root)["rated/tiny/a.txt"] == b"mine"


def test_an_interrupted_set_is_no_data_set_and_is_gone_on_with(root: Path) -> None:
    served = Served({"/a": A, "/b": B}, status={"/b": 404})
    with serving(served):
        tiny = made(file("a.txt", A, f"{served.base}/a"), file("b.txt", B, f"{served.base}/b"))
        with pytest.raises(JobError) as failed:
            fetch(tiny)
        assert find_folder(tiny) is None
        served.status.clear()
        fetch(tiny)
    assert [path for path, _ in served.asked] == ["/a", "/b", "/b"]
    assert tree(root) == {"rated/tiny/a.txt": A, "rated/tiny/b.txt": B}
    assert "404 Not Found (it is no longer there)" in str(failed.value)
    assert f"put a copy into {root / 'rated/tiny'} (as b.txt)" in str(failed.value)
    assert "https://example.org/tiny" in str(failed.value)
    assert "dialeval data get tiny --from DIR" in str(failed.value)


def test_a_broken_connection_is_resumed_by_the_next_fetch(root: Path) -> None:
    with serving(Served({"/a": A}, drops=2, drop_after=5000)) as served:
        tiny = made(file("a.txt", A, f"{served.base}/a"))
        with pytest.raises(JobError, match="10,000 bytes are kept"):
            fetch(tiny)
        fetch(tiny)
    assert [wanted for _, wanted in served.asked] == [None, "bytes=5000-", "bytes=10000-"]
    assert tree(root) == {"rated/tiny/a.txt": A}


def test_a_fetch_that_the_user_interrupts_goes_on_where_it_stopped(root: Path) -> None:
    large = A * 20

    def stop_midway(step: Step) -> None:
        if 0 < step.done < step.total:
            raise KeyboardInterrupt

    with serving(Served({"/a": large})) as served:
        tiny = made(file("a.txt", large, f"{served.base}/a"))
        with pytest.raises(KeyboardInterrupt):
            fetch(tiny, progress=stop_midway)
        assert find_folder(tiny) is None
        fetch(tiny)
    assert served.asked[1] == ("/a", "bytes=65536-")
    assert tree(root) == {"rated/tiny/a.txt": large}


def test_two_who_fetch_at_once_do_the_work_once(root: Path) -> None:
    waits = []
    with serving(Served({"/a": A}, delay=0.3)) as served:
        tiny = made(file("a.txt", A, f"{served.base}/a"))
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(fetch, tiny, progress=waits.append) for _ in range(2)]
            folders = {one.result().folder for one in both}
    assert len(served.asked) == 1
    assert folders == {root / "rated/tiny"}
    assert [step.stage for step in waits].count("wait") == 1


def test_other_bytes_than_the_listed_ones_are_deleted(root: Path) -> None:
    with serving(Served({"/a": B})) as served:
        tiny = made(file("a.txt", A, f"{served.base}/a"))
        with pytest.raises(JobError, match="add --accept-changed") as failed:
            fetch(tiny)
    assert tree(root) == {}
    for content in (A, B):
        assert hashlib.sha256(content).hexdigest() in str(failed.value)


def test_other_bytes_are_kept_where_the_user_accepts_them(root: Path) -> None:
    with serving(Served({"/a": B})) as served:
        done = fetch(made(file("a.txt", A, f"{served.base}/a")), accept_changed=True)
    assert tree(root) == {"rated/tiny/a.txt": B}
    (changed,) = done.changed
    assert changed.found == hashlib.sha256(B).hexdigest()
    assert changed.expected == hashlib.sha256(A).hexdigest()


def test_a_file_far_larger_than_listed_is_refused(root: Path) -> None:
    with (
        serving(Served({"/a": b"x" * 3_000_000})) as served,
        pytest.raises(JobError, match="larger than the 1,072,576 bytes"),
    ):
        fetch(made(file("a.txt", A, f"{served.base}/a")), accept_changed=True)
    assert tree(root) == {}


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return packed.getvalue()


def test_files_are_taken_out_of_an_archive_that_is_fetched_once(root: Path) -> None:
    packed = zipped(**{"train__a.txt": A, "train__b.txt": B, "train__c.txt": b"other"})
    with serving(Served({"/all.zip": packed})) as served:
        url = f"{served.base}/all.zip"
        fetch(made(file("train/a.txt", A, f"{url}#a.txt"), file("train/b.txt", B, f"{url}#b.txt")))
    assert tree(root) == {"rated/tiny/train/a.txt": A, "rated/tiny/train/b.txt": B}
    assert len(served.asked) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<html>This page has moved</html>", "not the expected archive"),
        (zipped(b=B), "it holds 0 files called a.txt"),
        (zipped(**{"x__a.txt": A, "y__a.txt": A}), "it holds 2 files called a.txt"),
        (zipped(**{"a.txt": b"0" * 9_000_000}), "larger than 1,072,576 bytes"),
    ],
    ids=["html", "absent", "twice", "bomb"],
)
def test_an_archive_that_is_something_else_is_refused(
    root: Path, content: bytes, problem: str
) -> None:
    with serving(Served({"/all.zip": content})) as served, pytest.raises(JobError, match=problem):
        fetch(made(file("a.txt", A, f"{served.base}/all.zip#a.txt")))
    assert not any(name.startswith("rated/") for name in tree(root))


def test_an_archive_with_other_bytes_is_fetched_anew_the_next_time(root: Path) -> None:
    with serving(Served({"/all.zip": zipped(**{"a.txt": B})})) as served:
        tiny = made(file("a.txt", A, f"{served.base}/all.zip#a.txt"))
        with pytest.raises(JobError, match="It was deleted"):
            fetch(tiny)
        assert tree(root) == {}
        served.files["/all.zip"] = zipped(**{"a.txt": A})
        fetch(tiny)
    assert tree(root) == {"rated/tiny/a.txt": A}


def test_a_set_without_any_address_must_be_fetched_by_hand(root: Path) -> None:
    tiny = made(file("a.txt", A), by_hand="register first")
    with pytest.raises(UsageError, match=r"no public address .* a.txt \(register first\)") as told:
        fetch(tiny)
    assert str(root / "rated/tiny") in str(told.value)


def test_files_without_an_address_are_named_after_the_others_came(root: Path) -> None:
    with serving(Served({"/a": A})) as served:
        done = fetch(made(file("a.txt", A, f"{served.base}/a"), file("b.txt", B)))
    assert (done.added, done.absent) == (("a.txt",), ("b.txt",))


def test_only_the_files_of_a_part_are_fetched(root: Path) -> None:
    with serving(Served({"/a": A, "/b": B})) as served:
        tiny = made(
            file("one/a.txt", A, f"{served.base}/a"), file("one-more/b.txt", B, f"{served.base}/b")
        )
        fetch(tiny, Part("one", "one", "csv", 1))
    assert tree(root) == {"rated/tiny/one/a.txt": A}


def test_a_disk_without_room_is_told_before_anything_is_fetched(root: Path, monkeypatch) -> None:
    class Usage:
        free = 5

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage)
    with (
        serving(Served({"/a": A})) as served,
        pytest.raises(JobError, match="12,000 bytes are needed and 5 are free"),
    ):
        fetch(made(file("a.txt", A, f"{served.base}/a")))
    assert served.asked == []


def test_a_data_directory_that_cannot_be_written_is_named(root: Path) -> None:
    root.write_text("a file, not a directory")
    with pytest.raises(JobError, match="point DIALEVAL_DATA elsewhere"):
        fetch(made(file("a.txt", A, "http://127.0.0.1:9/a")))


@pytest.mark.parametrize("where", ["a.txt deep/b.txt", "rated/tiny/a.txt rated/tiny/deep/b.txt"])
def test_a_copy_is_taken_in_our_layout_or_below_a_root(
    root: Path, tmp_path: Path, where: str
) -> None:
    copy = tmp_path / "copy"
    for name, content in zip(where.split(), (A, B), strict=True):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    done = copy_from(made(file("a.txt", A), file("deep/b.txt", B)), copy)
    assert tree(root) == {"rated/tiny/a.txt": A, "rated/tiny/deep/b.txt": B}
    assert (done.changed, done.absent) == ((), ())


def test_a_flat_copy_with_other_bytes_is_taken_and_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(A)
    done = copy_from(made(file("a.txt", A), file("deep/b.txt", B)), tmp_path)
    assert tree(root) == {"rated/tiny/deep/b.txt": A}
    assert [changed.name for changed in done.changed] == ["deep/b.txt"]
    assert done.absent == ("a.txt",)


def test_a_single_file_is_taken_whatever_its_name_if_the_set_is_one_file(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "download (1).txt").write_bytes(A)
    copy_from(made(file("a.txt", A)), tmp_path / "download (1).txt")
    assert tree(root) == {"rated/tiny/a.txt": A}


def test_a_bare_name_that_two_files_share_is_taken_for_neither(root: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(A)
    tiny = made(file("one/a.txt", A), file("two/a.txt", B))
    for copy in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(UsageError, match="holds no file"):
            copy_from(tiny, copy)


def test_a_copy_without_the_files_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no file of 'tiny': looked for a.txt"):
        copy_from(made(file("a.txt", A)), tmp_path)
    with pytest.raises(UsageError, match="no such file or folder"):
        copy_from(made(file("a.txt", A)), tmp_path / "nothing")
