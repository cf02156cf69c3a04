"""`dialeval data`: data sets by name, as a person would use them."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from datasets_by_name.file_server import Served, serving

from dialeval.datasets import DATASETS, File
from dialeval.datasets import entries as listing

RECORD = b'[{"context": "User: Hi", "response": "System: Hello", "system": "A", "annotations": {}}]'


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def fed(data, monkeypatch):
    """FED, as far as the catalogue is concerned: one tiny file on a server of our own."""
    with serving(Served({"/fed": RECORD})) as served:
        digest = hashlib.sha256(RECORD).hexdigest()
        file = File("fed_data.json", len(RECORD), digest, f"{served.base}/fed")
        entry = replace(DATASETS["fed"], files=(file,))
        monkeypatch.setattr(listing, "DATASETS", {**DATASETS, "fed": entry})
        yield served


def test_the_list_names_every_data_set_with_its_licence(dialeval, data):
    done = dialeval("data")
    assert done.code == 0
    for dataset in DATASETS.values():
        assert dataset.name in done.out
        assert dataset.licence in done.out
    assert str(data) in done.out


def test_the_list_as_json_holds_source_licence_items_qualities_raters_and_place(dialeval, data):
    records = {record["name"]: record for record in json.loads(dialeval("data", "--json").out)}
    assert list(records) == list(DATASETS)
    engage = records["engage"]
    assert engage["qualities"] == {"engagement": [[1, 5]]}
    assert (engage["raters"], engage["licence"], engage["items"]) == ("3", "MIT", "600 turns")
    assert engage["source"] == "https://github.com/PlusLabNLP/PredictiveEngagement"
    assert (engage["here"], engage["folder"]) == (False, None)


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_data_set_can_be_shown(dialeval, data, name):
    done = dialeval("data", "show", name)
    assert (done.code, DATASETS[name].source in done.out) == (0, True)
    record = json.loads(dialeval("data", "show", name, "--json").out)
    assert record["missing"] == [file.name for file in DATASETS[name].files]


def test_an_unknown_name_is_put_right(dialeval, data):
    for verb in ("show", "get"):
        done = dialeval("data", verb, "fde")
        assert (done.code, "Did you mean 'fed'?" in done.err) == (2, True)


def test_get_shows_size_and_licence_and_then_fetches(dialeval, data, fed):
    done = dialeval("data", "get", "fed")
    assert done.code == 0
    assert "1 file, 0.0 MB, from 127.0.0.1" in done.err
    assert "licence: not stated (Mehri & Eskenazi 2020a; https://github.com" in done.err
    assert "not asking, because standard input is not a terminal" in done.err
    assert done.out == f"fed: {data / 'rated' / 'fed'}\n"
    assert (data / "rated/fed/fed_data.json").read_bytes() == RECORD
    assert dialeval("data", "get", "fed").out.endswith("(already installed)\n")
    assert len(fed.asked) == 1


def test_a_fetched_set_can_be_scored_by_name(dialeval, data, fed, tmp_path):
    assert "dialeval data get fed" in dialeval("score", "fed", "-m", "length").err
    dialeval("data", "get", "fed", "--quiet")
    done = dialeval("score", "fed", "-m", "length", "-o", str(tmp_path / "run"))
    assert done.code == 0, done.err
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_on_a_terminal_no_means_no(data):
    """The real catalogue and a real terminal: the network is not touched before the answer."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"n\n")
    command = [sys.executable, "-m", "dialeval", "data", "get", "usr-topical"]
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=300)
    os.close(keyboard)
    os.close(terminal)
    assert done.returncode == 1
    assert "licence: not stated" in done.stderr
    assert "Fetch it? [y/N]" in done.stderr
    assert "Traceback" not in done.stderr
    assert not data.exists()


def test_changed_files_are_refused_unless_accepted(dialeval, data, fed):
    fed.files["/fed"] = b"[]"
    done = dialeval("data", "get", "fed", "--yes")
    assert done.code == 1
    assert hashlib.sha256(b"[]").hexdigest() in done.err
    assert hashlib.sha256(RECORD).hexdigest() in done.err
    assert not (data / "rated").exists()
    done = dialeval("data", "get", "fed", "--yes", "--accept-changed", "--json")
    assert done.code == 0
    assert json.loads(done.out)["changed"][0]["found"] == hashlib.sha256(b"[]").hexdigest()


def test_a_source_that_is_gone_says_where_to_put_a_copy(dialeval, data, fed):
    fed.files.clear()
    done = dialeval("data", "get", "fed", "--yes")
    assert done.code == 1
    assert "404" in done.err
    assert str(data / "rated" / "fed") in done.err
    assert "Traceback" not in done.err


def test_a_set_without_an_address_says_what_to_do(dialeval, data):
    done = dialeval("data", "get", "dstc10", "--yes")
    assert done.code == 2
    assert "register at https://chateval.org/dstc10" in done.err
    assert str(data / "rated" / "dstc10") in done.err


def test_a_copy_is_taken_with_a_warning_about_other_bytes(dialeval, data, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/fed_data.json").write_bytes(RECORD)
    done = dialeval("data", "get", "fed", "--from", str(tmp_path / "copy"))
    assert done.code == 0
    assert "differs from the file that dialeval knows: fed_data.json: sha256" in done.err
    assert (data / "rated/fed/fed_data.json").read_bytes() == RECORD


def test_a_copy_that_is_not_there_is_bad_usage(dialeval, data):
    done = dialeval("data", "get", "fed", "--from", "/nowhere")
    assert (done.code, "/nowhere: there is no such file" in done.err) == (2, True)


def test_real_copies_of_every_set_are_the_listed_bytes(dialeval, data, datasets):
    done = dialeval("data", "get", "engage", "--from", str(datasets), "--json")
    assert json.loads(done.out)["changed"] == []
    assert "600 samples" in dialeval("data", "check", "engage", "-q").out


def test_the_other_verbs_of_data_are_still_there(dialeval, data):
    assert "topical-chat" in dialeval("data", "formats").out
    done = dialeval("data", "check", "examples/four-bots.jsonl", "-q")
    assert "samples" in done.out


@pytest.fixture
def long_records(tmp_path):
    """Files of every kind with one record of more than 2^20 characters."""
    long = "a " * 600_000
    files = {
        "answers.jsonl": {
            "id": "1",
            "context": ["Who?"],
            "response": long,
            "ratings": {"o": [1, 2]},
        },
        "scores.jsonl": {"id": "1", "mine": 1, "note": long},
        "queries.jsonl": {"id": "1", "query": "What?", "variants": ["Who?"], "note": long},
        "short.jsonl": {"id": "1", "query": "What?", "variants": ["Who?"]},
        "replies.jsonl": {"messages": [{"role": "user", "content": "What?"}], "reply": long},
    }
    for name, record in files.items():
        (tmp_path / name).write_text(json.dumps(record) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("score @/answers.jsonl -m length", "answers"),
        ("data check @/answers.jsonl", "answers"),
        ("data convert @/answers.jsonl -o @/made.jsonl", "answers"),
        ("raters @/answers.jsonl", "answers"),
        ("agree @/answers.jsonl --scores @/scores.jsonl", "scores"),
        ("augment @/queries.jsonl --with eda:variants=1 -o @/made.jsonl", "queries"),
        ("probe replay:@/replies.jsonl --queries @/queries.jsonl -o @/probe", "queries"),
        ("probe replay:@/replies.jsonl --queries @/short.jsonl -o @/probe", "replies"),
        ("rate @/answers.jsonl --host 192.0.2.1 --db @/ratings.db", "answers"),
    ],
)
def test_every_verb_that_reads_files_can_be_told_that_a_record_is_large(
    dialeval, long_records, words, file
):
    arguments = words.replace("@", str(long_records)).split()
    refused = dialeval(*arguments, "--largest-record", "1")
    told = " ".join((refused.out + refused.err).split())
    assert refused.code == 2
    assert f"{file}.jsonl:1: the line is longer than 1,048,576 characters" in told
    assert "raise --largest-record (now 1)" in told
    taken = dialeval(*arguments, "--largest-record", "2")
    assert "--largest-record" not in taken.out + taken.err
