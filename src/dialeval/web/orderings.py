"""Orderings that were found, kept up to a number of bytes: the next page costs only its rows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dialeval.web.query import Query
    from dialeval.web.rows import Mask, Numbers, RunRows


class Kept:
    """Arrays by key, the latest used, up to a number of bytes together."""

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self._most_bytes = most_bytes
        self._arrays: OrderedDict[tuple[object, ...], npt.NDArray[Any]] = OrderedDict()
        self.bytes = 0

    def get(self, key: tuple[object, ...]) -> npt.NDArray[Any] | None:
        if key in self._arrays:
            self._arrays.move_to_end(key)
        return self._arrays.get(key)

    def put(self, key: tuple[object, ...], array: npt.NDArray[Any]) -> None:
        self._arrays[key] = array
        self.bytes += array.nbytes
        while self.bytes > self._most_bytes and len(self._arrays) > 1:
            _, oldest = self._arrays.popitem(last=False)
            self.bytes -= oldest.nbytes


class Orderings:
    """Finds which rows match, and in which order. One search at a time: memory stays bounded."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._kept = kept or Kept()
        self._lock = threading.Lock()

    def of(self, rows: RunRows, query: Query) -> Numbers:
        with self._lock:
            key = (rows.version, query)
            found = self._kept.get(key)
            if found is None:
                found = rows.ordering(query, self._matches(rows, query.text))
                self._kept.put(key, found)
            return found

    def _matches(self, rows: RunRows, text: str) -> Mask | None:
        """Which rows hold the text; kept apart, for it is what takes longest."""
        if not text:
            return None
        key = (rows.version, text)
        packed = self._kept.get(key)
        if packed is None:
            packed = np.packbits(rows.holding(text))
            self._kept.put(key, packed)
        return np.unpackbits(packed, count=len(rows)).astype(np.bool_)
