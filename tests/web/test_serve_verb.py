"""`dialeval serve`: what it prints, how it stops, and what it says when something is wrong."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec

import pytest

from dialeval.errors import JobError, UsageError
from dialeval.web import serving
from dialeval.web.serving import prepare

from .asking import ask


@pytest.fixture
def prepared():
    made = []

    def make(*arguments, **options):
        made.append(prepare(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.listening.close()


def test_the_address_comes_first_and_ctrl_c_stops_it_in_good_order(runs):
    command = [sys.executable, "-m", "dialeval", "serve", str(runs), "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        record = json.loads(server.stdout.readline())
        answer = ask(record["address"].rstrip("/"))
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=300)
    assert record["runs"] == 1
    assert answer.status == 200
    assert (server.returncode, out, err) == (0, "", "")


def test_loopback_needs_no_token_and_other_addresses_get_one(runs, prepared):
    assert "token" not in prepared([runs], port=0).address
    beyond = prepared([runs], host="0.0.0.0", port=0)
    token = beyond.address.partition("?token=")[2]
    assert len(token) >= 32
    assert beyond.address == f"http://127.0.0.1:{beyond.port}/?token={token}"
    assert beyond.elsewhere == f"http://{socket.gethostname()}:{beyond.port}/?token={token}"
    assert prepared([runs], host="0.0.0.0", port=0).address != beyond.address


def test_a_token_can_be_asked_for_on_loopback_too(runs, prepared):
    assert prepared([runs], port=0, token="a" * 16).address.endswith(f"?token={'a' * 16}")


def test_a_port_that_is_taken_is_named_with_the_way_out(runs, prepared):
    taken = prepared([runs], port=0).port
    with pytest.raises(JobError, match=rf"127\.0\.0\.1:{taken} .*0 takes any free one"):
        prepare([runs], port=taken)


def test_an_address_of_another_machine_is_no_matter_of_the_port(runs):
    with pytest.raises(UsageError, match=r"192\.0\.2\.1: this machine has no such address"):
        prepare([runs], host="192.0.2.1", port=0)


def test_places_without_runs_are_named(tmp_path):
    with pytest.raises(UsageError, match="is not a directory"):
        prepare([tmp_path / "nothing"], port=0)
    with pytest.raises(UsageError, match="dialeval score FILE -o"):
        prepare([tmp_path], port=0)


def test_runs_and_the_current_directory_are_the_default(tmp_path, runs, prepared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert prepared([], port=0).runs == 1
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    found = prepared([], port=0)
    assert (found.runs, found.found) == (0, "No run found yet")


def test_an_address_that_is_not_ours_is_refused():
    with pytest.raises(UsageError, match="no such address"):
        prepare([], host="no such host.invalid", port=0)


def test_a_missing_package_is_named_with_the_command_that_installs_it(runs, monkeypatch):
    monkeypatch.setattr(
        serving, "find_spec", lambda name: None if name == "uvicorn" else find_spec(name)
    )
    with pytest.raises(JobError, match=r"uvicorn: pip install 'dialeval\[web\]'"):
        prepare([runs], port=0)


def test_the_help_of_dialeval_does_not_import_the_page():
    code = (
        "import dialeval.cli.app, sys; print({'starlette', 'uvicorn', 'jinja2'} & {*sys.modules})"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
