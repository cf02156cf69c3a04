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


def data_directory() -> Path:
    """`$DIALEVAL_DATA`, else `dialeval/datasets/` in the user's data directory.

    Not the cache: a data set that was put here by hand must survive whoever empties caches.
    """
    if own := os.environ.get("DIALEVAL_DATA"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "dialeval" / "datasets"
