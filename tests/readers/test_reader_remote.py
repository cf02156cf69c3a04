"""Files at a URL are read like files on the disk. fsspec's `memory://` stands for all protocols."""

import gzip

import pytest

import dialeval
from dialeval.readers import convert

fsspec = pytest.importorskip("fsspec", reason="files at a URL need fsspec")

RECORD = '{{"id": "{0}", "context": ["hi"], "response": "number {0}"}}\n'


@pytest.fixture
def bucket():
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/a.jsonl", "".join(RECORD.format(i) for i in (1, 2)).encode())
    files.pipe("/bucket/b.jsonl.gz", gzip.compress(RECORD.format(3).encode()))
    yield files
    files.rm("/bucket", recursive=True)


def responses(*paths):
    return [sample.response for sample in dialeval.load(*paths)]


def test_a_url_is_read_as_if_it_were_a_file(bucket):
    assert responses("memory://bucket/a.jsonl") == ["number 1", "number 2"]
    assert responses("memory://bucket/b.jsonl.gz") == ["number 3"]


def test_a_pattern_stands_for_all_that_fit_it_in_order(bucket):
    assert responses("memory://bucket/*") == ["number 1", "number 2", "number 3"]
    with pytest.raises(dialeval.UsageError, match="no file fits"):
        dialeval.load("memory://bucket/*.parquet")


def test_parquet_is_read_by_seeking(bucket, tmp_path):
    convert(dialeval.load("memory://bucket/a.jsonl"), tmp_path / "a.parquet")
    bucket.pipe("/bucket/a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert responses("memory://bucket/a.parquet") == ["number 1", "number 2"]


def test_errors_name_the_url_and_the_line(bucket):
    bucket.pipe("/bucket/bad.jsonl", (RECORD.format(1) + '{"response": 1}\n').encode())
    with pytest.raises(dialeval.InputError, match=r"memory://bucket/bad\.jsonl:2: response:"):
        responses("memory://bucket/bad.jsonl")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://bucket/none.jsonl", "memory://bucket/none.jsonl: .*no such file"),
        ("nonsense://bucket/a.jsonl", "cannot be opened: .*nonsense"),
    ],
)
def test_a_url_that_leads_nowhere_is_bad_input(bucket, url, message):
    with pytest.raises(dialeval.InputError, match=message):
        dialeval.load(url)


@pytest.mark.parametrize("url", ["https://host/a.jsonl", "https://host/*.jsonl"])
def test_a_missing_package_for_a_protocol_comes_with_a_line_to_install_it(monkeypatch, url):
    def lacking(url):
        raise ImportError("HTTPFileSystem requires more")

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    with pytest.raises(dialeval.DialevalError, match="pip install aiohttp requests") as caught:
        dialeval.load(url)
    assert caught.value.exit_code == 2
