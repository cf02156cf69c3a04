"""Where dialeval keeps what it fetched or computed once."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """`$DIALEVAL_CACHE`, else `dialeval/` in the user's cache directory."""
    if own := os.environ.get("DIALEVAL_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dialeval"


def models_directory() -> Path:
    """`$DIALEVAL_MODELS`, else `models/` in the cache: one directory per fetched model."""
    if own := os.environ.get("DIALEVAL_MODELS"):
        return Path(own).expanduser()
    return cache_directory() / "models"
