"""The tutorial is run as written: every command in its order, from an empty cache."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval.cli import main

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.M | re.S)


def without_numbers(text: str) -> list[str]:
    """Lines whose numbers and widths do not count: another judge gives other ones."""
    kept = [re.sub(r"[-+]?\d[\d.]*", "0", line) for line in text.splitlines()]
    return [" ".join(line.split()) for line in kept if line.strip()]


def run_block(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs `dialeval` in this process, which imports torch once, and all else by a shell."""
    for ours, lines in itertools.groupby(
        block.splitlines(), key=lambda line: line.startswith("dialeval ")
    ):
        if not ours:
            subprocess.run(["bash", "-e", "-c", "\n".join(lines)], check=True)
            continue
        for line in lines:
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as stop:
                main()
            assert not stop.value.code, line


def test_the_commands_of_the_tutorial_print_what_it_shows(
    embedded_models, tmp_path, monkeypatch, capsys
):
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    install, *blocks = BLOCK.findall(text)
    assert install == ("sh", "make demo\nsource .venv/bin/activate\n")
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "four-bots.jsonl", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    printed: list[str] = []
    for language, block in blocks:
        if language == "sh":
            run_block(block, monkeypatch)
            printed = without_numbers(capsys.readouterr().out)
        else:
            missing = [line for line in without_numbers(block) if line not in printed]
            assert not missing, f"the tutorial shows what no command printed: {missing}"
    assert (tmp_path / "report.html").stat().st_size > 10_000
