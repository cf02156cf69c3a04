"""Runs the command in this process, as `dialeval ...` would be run."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dialeval.cli import main

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def dialeval(monkeypatch, capsys):
    def run(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["dialeval", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
