"""From numbers to pixels: the range of an axis, round numbers to mark on it, and their labels.

Ticks follow the 1-2-5 rule: their distance is 1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

LARGEST = 1e300
"""Larger numbers cannot be subtracted from each other without overflow; they count as infinite."""

Range = tuple[float, float]


def drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def drawable_on_log(value: float) -> bool:
    """Positive, and far enough from the ends of the floating point numbers for a margin."""
    return 1e-250 <= value <= 1e250


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to the pixel `start` and `high` to `end`, evenly or by the logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.end - self.start) * ((value - low) / (high - low))


def data_range(values: Iterable[float], *, margin: float = 0.04) -> Range:
    """From the least to the greatest value with a margin; never empty, also for equal values."""
    found = [value for value in values if drawable(value)]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    size = max(abs(low), abs(high))
    if high - low <= 1e-9 * size or high - low < 1e-290:
        half = 0.1 * size if size > 1e-290 else 0.5
        return low - half, high + half
    extra = (high - low) * margin
    return low - extra, high + extra


def log_range(values: Iterable[float], *, margin: float = 0.04) -> Range:
    """Returns the same for positive values on a logarithmic axis."""
    exponents = [math.log10(value) for value in values if drawable_on_log(value)]
    if not exponents:
        return 1.0, 10.0
    low, high = min(exponents), max(exponents)
    extra = (high - low) * margin if high - low > 0.01 else 0.15
    return 10.0 ** (low - extra), 10.0 ** (high + extra)


def nice_ticks(low: float, high: float, about: int = 6) -> tuple[float, ...]:
    """Round numbers within [low, high], at most about + 1 of them and at least about / 2.5 - 1."""
    least_step = (high - low) / about
    exponent = math.floor(math.log10(least_step))
    factor = next((f for f in (1, 2, 5) if _decimal(f, exponent) >= least_step * (1 - 1e-9)), None)
    if factor is None:
        factor, exponent = 1, exponent + 1
    step = _decimal(factor, exponent)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(_decimal(i * factor, exponent) for i in range(first, last + 1))


def _decimal(count: int, exponent: int) -> float:
    """count * 10^exponent, rounded once: 3 * 10^-1 is 0.3, not 0.30000000000000004."""
    return count / 10.0**-exponent if exponent < 0 else count * 10.0**exponent


def log_ticks(low: float, high: float, about: int = 6) -> tuple[float, ...]:
    """Powers of ten, with their doubles and halves between them where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    dense = [
        tick
        for exponent in range(first, last + 1)
        for factor in (1, 2, 5)
        if low <= (tick := _decimal(factor, exponent)) <= high
    ]
    if len(dense) < 2:
        return nice_ticks(low, high, about)
    if len(dense) <= about + 1:
        return tuple(dense)
    powers = [tick for tick in dense if f"{tick:e}".startswith("1.0")]
    chosen = powers if len(powers) >= 2 else dense
    return tuple(chosen[:: math.ceil(len(chosen) / (about + 1))])


def fitting_ticks(
    scale: Scale, measure: Callable[[str], float], *, gap: float, about: int
) -> list[tuple[float, str]]:
    """Returns as many labelled ticks as fit on the axis without touching."""
    choose = log_ticks if scale.log else nice_ticks
    while True:
        ticks = choose(scale.low, scale.high, about)
        labels = [_plain(tick) for tick in ticks] if scale.log else tick_labels(ticks)
        places = [scale(tick) for tick in ticks]
        widths = [measure(label) for label in labels]
        if about <= 1 or all(
            abs(places[i + 1] - places[i]) >= (widths[i] + widths[i + 1]) / 2 + gap
            for i in range(len(ticks) - 1)
        ):
            return list(zip(ticks, labels, strict=True))
        about -= 1


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels of even ticks, all with the same number of decimals, different ticks different."""
    if len(ticks) < 2:
        return [_plain(tick) for tick in ticks]
    largest = _exponent(max(map(abs, ticks)))
    smallest = _exponent(min(b - a for a, b in pairwise(ticks)))
    if largest >= 6 or smallest < -5:
        digits = max(0, largest - smallest)
        return [_scientific(tick, digits) for tick in ticks]
    return [_minus(f"{tick:,.{max(0, -smallest)}f}") for tick in ticks]


def _exponent(value: float) -> int:
    """Returns the exponent of the first digit. Ticks begin with 1, 2 or 5, up to rounding, hence
    the slack."""
    return math.floor(math.log10(value) + 0.001)


def _plain(tick: float) -> str:
    """Returns the label of a tick that has no even neighbours."""
    in_full = tick == 0 or 1e-4 <= abs(tick) < 1e6
    return _minus(f"{tick:,.10g}") if in_full else _scientific(tick, 9)


def _scientific(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return _minus(f"{mantissa}e{int(exponent)}")


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def short_number(value: float) -> str:
    """Returns a number to read in passing, with four significant digits."""
    return _minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}")


def two_decimals(value: float) -> str:
    """Returns a number as papers print correlations."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else _minus(text)
