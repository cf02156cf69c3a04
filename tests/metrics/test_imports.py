"""Importing a metric costs nothing: what is heavy waits until something is scored."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"sacrebleu", "rouge_score", "nltk", "numpy", "torch", "pyarrow", "importlib.metadata"}


@pytest.mark.parametrize("name", ["length", "distinct", "bleu", "rouge", "meteor", "chrf"])
def test_importing_a_metric_imports_no_heavy_library(name):
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"import dialeval.metrics.{name}\n"
        f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
