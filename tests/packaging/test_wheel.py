"""The wheel works alone: installed into an empty environment, with nothing of this checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def pip(python: Path | str, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if "No matching distribution found for setuptools" in done.stderr or (
        "ConnectionError" in done.stderr or "Temporary failure" in done.stderr
    ):
        pytest.skip(f"packages cannot be fetched here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "source" / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source" / name)
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "-w", str(folder), str(folder / "source"))
    (found,) = folder.glob("dialeval-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """The python of an environment that holds the wheel and what it needs."""
    home = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    pip(python, "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return python


def run(python: Path, *arguments: str, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    command = [str(python.parent / "dialeval"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_small_enough_to_ship_what_it_holds(wheel):
    """The parts that learned are 59 MB of it, uncompressed."""
    assert wheel.stat().st_size < 64e6


def test_the_installed_wheel_scores_the_example(environment, tmp_path):
    code = "from dialeval.examples import four_bots; print(four_bots())"
    found = subprocess.run([environment, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    example = found.stdout.strip()
    out = run(environment, "score", example, "-m", "bleu", "-m", "meteor", "--json", cwd=tmp_path)
    assert [row["n"] for row in json.loads(out)["table"]] == [15, 15, 15, 15]


def test_the_doctor_is_content_with_the_wheel(environment, tmp_path):
    assert "All is well" in run(environment, "doctor", cwd=tmp_path)


def test_the_base_install_has_no_torch_and_is_no_larger_than_it_has_to_be(environment):
    """About 453 MB, of which 59 are the trained parts."""
    packages = next((environment.parent.parent / "lib").glob("python*")) / "site-packages"
    assert not (packages / "torch").exists()
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    assert size < 460e6


def test_the_example_plugin_brings_a_metric_and_a_reader(environment, tmp_path):
    plugin = tmp_path / "plugin"
    shutil.copytree(ROOT / "examples" / "plugin", plugin)
    pip(environment, "install", "--quiet", "--no-deps", str(plugin))
    described = json.loads(run(environment, "metrics", "question-rate", "--json", cwd=tmp_path))
    assert described["plugin"] is True
    log = tmp_path / "chat.log"
    log.write_text("<ann> hello\n<bot> how are you?\n<ann> fine\n<bot> good.\n")
    out = run(
        environment, "score", str(log), "--format", "irc-log", "-m", "question-rate", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(out)["manifest"]["metrics"][0]["name"] == "question-rate"
