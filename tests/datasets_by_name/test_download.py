"""A file over HTTP, against servers that behave and servers that do not."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from datasets_by_name.file_server import Served, serving

from dialeval.datasets.fetch import DownloadError, _CarefulRedirects, download

TEXT = bytes(range(256)) * 1000
LIMIT = 2 * len(TEXT)


def fetch(served: Served, path: Path, **options) -> None:
    download(f"{served.base}/file", path, **{"limit": LIMIT, "pause": 0.0} | options)


def left_over(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.iterdir())


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    heard: list[int] = []
    with serving(Served({"/file": TEXT})) as served:
        fetch(served, tmp_path / "file", report=heard.append)
    assert (tmp_path / "file").read_bytes() == TEXT
    assert left_over(tmp_path / "file") == ["file"]
    assert heard == sorted(heard)
    assert (heard[0], heard[-1]) == (0, len(TEXT))


def test_a_connection_that_breaks_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    with serving(Served({"/file": TEXT}, drops=2, drop_after=100_000)) as served:
        fetch(served, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT
    assert served.asked == [
        ("/file", None),
        ("/file", "bytes=100000-"),
        ("/file", "bytes=200000-"),
    ]


def test_after_too_many_breaks_the_part_is_kept_for_the_next_call(tmp_path: Path) -> None:
    with serving(Served({"/file": TEXT}, drops=1, drop_after=70_000)) as served:
        with pytest.raises(DownloadError, match=r"70,000 of 256,000 bytes.*70,000 bytes are kept"):
            fetch(served, tmp_path / "file", attempts=1)
        assert left_over(tmp_path / "file") == ["file.mark", "file.part"]
        assert (tmp_path / "file.part").read_bytes() == TEXT[:70_000]
        fetch(served, tmp_path / "file", attempts=1)
    assert served.asked[-1] == ("/file", "bytes=70000-")
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_server_without_ranges_starts_again(tmp_path: Path) -> None:
    with serving(Served({"/file": TEXT}, ranges=False, drops=1, drop_after=9)) as served:
        fetch(served, tmp_path / "file")
    assert served.asked[-1] == ("/file", "bytes=9-")
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_file_that_changed_meanwhile_is_not_mixed_with_its_old_beginning(tmp_path: Path) -> None:
    with serving(Served({"/file": TEXT}, drops=1, drop_after=9)) as served:
        with pytest.raises(DownloadError):
            fetch(served, tmp_path / "file", attempts=1)
        served.files["/file"], served.etag = TEXT[::-1], '"v2"'
        fetch(served, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT[::-1]


@pytest.mark.parametrize("etag", ["", 'W/"v1"'])
def test_without_a_strong_mark_of_the_version_nothing_is_resumed(tmp_path: Path, etag: str) -> None:
    with serving(Served({"/file": TEXT}, etag=etag, drops=1, drop_after=9)) as served:
        fetch(served, tmp_path / "file")
    assert [wanted for _, wanted in served.asked] == [None, None]
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_server_that_sends_another_range_is_asked_again_from_the_start(tmp_path: Path) -> None:
    served = Served({"/file": TEXT}, drops=1, drop_after=9, wrong_range=True)
    with serving(served):
        fetch(served, tmp_path / "file")
    assert [wanted for _, wanted in served.asked] == [None, "bytes=9-", None]
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_part_that_is_longer_than_the_file_starts_again(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(TEXT + b"more")
    (tmp_path / "file.mark").write_text('"v1"')
    with serving(Served({"/file": TEXT})) as served:
        fetch(served, tmp_path / "file")
    assert [wanted for _, wanted in served.asked] == [f"bytes={len(TEXT) + 4}-", None]
    assert (tmp_path / "file").read_bytes() == TEXT


@pytest.mark.parametrize(("status", "words"), [(404, "no longer there"), (403, "403 Forbidden")])
def test_a_refusal_is_told_at_once(tmp_path: Path, status: int, words: str) -> None:
    with (
        serving(Served({"/file": TEXT}, status={"/file": status})) as served,
        pytest.raises(DownloadError, match=words),
    ):
        fetch(served, tmp_path / "file")
    assert len(served.asked) == 1


def test_a_server_in_trouble_is_asked_again(tmp_path: Path) -> None:
    with (
        serving(Served({"/file": TEXT}, status={"/file": 503})) as served,
        pytest.raises(DownloadError, match="503 Service Unavailable, 3 times"),
    ):
        fetch(served, tmp_path / "file", attempts=3)
    assert len(served.asked) == 3


def test_a_file_that_says_it_is_too_large_is_not_fetched(tmp_path: Path) -> None:
    with (
        serving(Served({"/file": TEXT})) as served,
        pytest.raises(DownloadError, match="larger than the 1,000 bytes"),
    ):
        fetch(served, tmp_path / "file", limit=1000)
    assert left_over(tmp_path / "file") == []


def test_a_file_that_grows_on_a_resumed_connection_is_cut_off(tmp_path: Path) -> None:
    with (
        serving(Served({"/file": TEXT}, drops=1, drop_after=900)) as served,
        pytest.raises(DownloadError, match="larger than"),
    ):
        fetch(served, tmp_path / "file", limit=255_999)
    assert left_over(tmp_path / "file") == []


def test_a_slow_server_is_waited_for_only_so_long(tmp_path: Path) -> None:
    with serving(Served({"/file": TEXT}, delay=0.6)) as served:
        with pytest.raises(DownloadError, match="timed out"):
            fetch(served, tmp_path / "file", timeout=0.1, attempts=2)
        fetch(served, tmp_path / "file", timeout=5)
    assert (tmp_path / "file").read_bytes() == TEXT


def test_where_nobody_listens_there_is_no_connection(tmp_path: Path) -> None:
    with serving(Served({})) as served:
        pass
    with pytest.raises(DownloadError, match=r"no connection \(Connection refused\)"):
        fetch(served, tmp_path / "file")


def test_redirects_are_followed_but_not_for_ever(tmp_path: Path) -> None:
    served = Served({"/there": TEXT}, redirect={"/file": "/there", "/loop": "/loop"})
    with serving(served):
        fetch(served, tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == TEXT
        with pytest.raises(DownloadError, match="302"):
            download(f"{served.base}/loop", tmp_path / "other", limit=LIMIT)


@pytest.mark.parametrize("target", ["http://example.org/x", "ftp://example.org/x"])
def test_an_https_address_never_leads_elsewhere(target: str) -> None:
    import urllib.request
    from email.message import Message

    request = urllib.request.Request("https://example.org/file")
    with pytest.raises(DownloadError, match="which is not https: refused"):
        _CarefulRedirects().redirect_request(request, None, 302, "Found", Message(), target)
    followed = _CarefulRedirects().redirect_request(
        request, None, 302, "Found", Message(), "https://example.org/x"
    )
    assert followed.full_url == "https://example.org/x"


def test_a_full_disk_is_named_as_such(tmp_path: Path, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dialeval.datasets.fetch.os.fsync", full)
    with (
        serving(Served({"/file": TEXT})) as served,
        pytest.raises(DownloadError, match="the disk is full"),
    ):
        fetch(served, tmp_path / "file")
