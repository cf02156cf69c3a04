"""The result of a metric (`Score`), its conditions (`Signature`) and its scale (`Calibration`)."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import quote, unquote

from dialeval.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PartValue = float | tuple[float, ...]

NO_SPREAD = 1e-300
"""A scale that is no wider tells nothing apart, and dividing by it would overflow."""


@dataclass(frozen=True, slots=True)
class Score:
    """A value and its parts, or the reason why there is none.

    `note` is that reason where `value` is None. Beside a value it is a remark worth counting, such
    as `turns truncated`. Keep notes short and few: tables count samples by note,
    without a number in brackets at its end, such as `repeats (turn 3)`.
    """

    value: float | None
    parts: Mapping[str, PartValue] = field(default_factory=dict, hash=False)
    note: str = ""
    counts: Any = field(default=None, repr=False, compare=False)
    """What a pool adds up over a system (see `metric.Pool`). It is not kept in a run."""

    def __post_init__(self) -> None:
        if self.value is None and not self.note:
            raise ValueError("a score without a value needs a note that says why")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a score must be finite, not {self.value}")
        for name, part in self.parts.items():
            if not isinstance(part, tuple) and not math.isfinite(part):
                raise ValueError(
                    f"the part {name!r} is {part}; leave out a part that is not a number"
                )

    @classmethod
    def missing(cls, why: str, counts: Any = None) -> Score:
        return cls(None, note=why, counts=counts)


@dataclass(frozen=True)
class Signature:
    """All that can move a number, in one line that fits under a table.

    `bleu|v1|n:4|mode:paper|sacrebleu:2.6.0|dialeval:0.1.0`: name, version of the metric's
    definition, then fields in a fixed order. Values are percent-encoded where they hold `|`, `%`
    or control characters, so that `Signature.parse(str(s)) == s`.
    """

    name: str
    version: int
    fields: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        parts = [_encode(self.name, colon=True), f"v{self.version}"]
        parts += [f"{_encode(key, colon=True)}:{_encode(value)}" for key, value in self.fields]
        return "|".join(parts)

    def short(self) -> str:
        """Returns the form for papers, without the versions of libraries and of dialeval itself."""
        kept = tuple((k, v) for k, v in self.fields if not _RELEASE.fullmatch(v))
        return str(Signature(self.name, self.version, kept))

    @classmethod
    def parse(cls, text: str) -> Signature:
        name, _, rest = text.partition("|")
        version, *fields = rest.split("|")
        if not name or not version.startswith("v") or not version[1:].isdecimal():
            raise UsageError(f"not a signature: {text!r} (expected name|v1|key:value|...)")
        pairs = []
        for item in fields:
            key, colon, value = item.partition(":")
            if not colon:
                raise UsageError(f"not a signature: {text!r} ({item!r} lacks a colon)")
            pairs.append((unquote(key), unquote(value)))
        return cls(unquote(name), int(version[1:]), tuple(pairs))


_RELEASE = re.compile(r"\d+\.\d+\.\d+\S*")
"""A version of some software. Numbers that are options have one dot at most."""


def _encode(text: str, colon: bool = False) -> str:
    special = "|%:" if colon else "|%"
    return "".join(
        quote(char, safe="") if char in special or not char.isprintable() else char for char in text
    )


CalibrationKind = Literal["floor", "quartile", "percentile", "minmax", "standard", "unit"]


@dataclass(frozen=True)
class Calibration:
    """A map from raw values to a common scale, fitted on a corpus and kept with the run.

    Every kind is the line that sends `low` to 0 and `high` to 1, clipped on the sides named:

    floor     low = 5th percentile, high = low + |low|, clipped below. HolisticEval Eq. 2:
              (max(x, low) - low) / |low|, which equals the paper's -(...)/low where low < 0.
    quartile  low, high = 25th and 75th percentile, clipped on both sides (USL-H, MME-CRS).
    percentile  low, high = 1st and 99th percentile, clipped on both sides.
    minmax    low, high = smallest and largest value, not clipped (RUBER).
    standard  low = mean, high = mean + standard deviation (of the corpus, ddof 0), not clipped: how
              many standard deviations a value lies above the mean (USR).
    unit      low, high = 0 and 1, not clipped: a part that is combined as it is.

    Where low = high nothing can be told apart, and every value becomes 0.

    `identity` says what the scale was fitted on: a digest of the samples, the metric's signature
    and the kind. Processors differ in the last digits of raw values, and so in the ends of a scale,
    and rounded ends would still differ near a boundary. What they were fitted on is the same
    everywhere. A scale that somebody wrote down has no identity, and its ends stand for it.
    """

    kind: CalibrationKind
    low: float
    high: float
    n: int
    identity: str = ""

    @classmethod
    def fit(cls, kind: CalibrationKind, values: Iterable[float]) -> Calibration:
        import numpy as np

        array = np.fromiter(values, dtype=np.float64)
        if array.size == 0:
            raise ValueError("a calibration needs at least one value")
        if kind == "floor":
            low = float(np.quantile(array, 0.05))
            high = low + abs(low)
        elif kind == "quartile":
            low, high = (float(q) for q in np.quantile(array, [0.25, 0.75]))
        elif kind == "percentile":
            low, high = (float(q) for q in np.quantile(array, [0.01, 0.99]))
        elif kind == "standard":
            low = math.fsum(array) / array.size
            high = low + math.sqrt(math.fsum((array - low) ** 2) / array.size)
        elif kind == "unit":
            low, high = 0.0, 1.0
        else:
            low, high = float(array.min()), float(array.max())
        return cls(kind, low, high, int(array.size))

    def apply(self, value: float) -> float:
        if self.kind in ("floor", "quartile", "percentile"):
            value = max(value, self.low)
        if self.kind in ("quartile", "percentile"):
            value = min(value, self.high)
        spread = self.high - self.low
        return (value - self.low) / spread if spread > NO_SPREAD else 0.0

    def apply_all(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns what `apply` returns for each value of an array."""
        import numpy as np

        low = self.low if self.kind in ("floor", "quartile", "percentile") else -np.inf
        high = self.high if self.kind in ("quartile", "percentile") else np.inf
        spread = self.high - self.low
        clipped = np.clip(values, low, high)
        return (clipped - self.low) / spread if spread > NO_SPREAD else np.zeros_like(clipped)

    def digest(self) -> str:
        """Returns what signatures show: equal where values on this scale can be compared."""
        return digest_of([self.identity] if self.identity else [self.kind, self.low, self.high])

    def to_record(self) -> dict[str, Any]:
        record = asdict(self)
        return record if self.identity else {k: v for k, v in record.items() if k != "identity"}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Calibration:
        kind = record["kind"]
        if kind not in get_args(CalibrationKind):
            raise UsageError(f"unknown calibration kind {kind!r}")
        low, high, n = float(record["low"]), float(record["high"]), int(record["n"])
        return cls(kind, low, high, n, str(record.get("identity", "")))


def digest_of(value: object) -> str:
    """Eight digits that stand for a value of lists, texts and numbers in a signature."""
    text = json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
