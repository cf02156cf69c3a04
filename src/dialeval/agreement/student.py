"""Tails and quantiles of Student's t and of the normal distribution.

With df degrees of freedom and I the regularised incomplete beta function,

    P(|T| >= t) = I_x(df / 2, 1 / 2),    x = df / (df + t^2)
    P(|Z| >= z) = erfc(z / sqrt 2)

I is computed by its continued fraction (Abramowitz and Stegun 26.5.8; the modified method of Lentz
as in Press et al., Numerical Recipes, section 6.4), on the side where it converges fast. scipy has
all of this; it would add 143 MB to the base install and double the time of the first import.

A correlation r of n pairs has t = r sqrt((n - 2) / (1 - r^2)), so that x = 1 - r^2.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

TINY = 1e-300
"""Replaces a zero denominator in Lentz's method."""
MOST_TERMS = 100_000
"""The fraction needs about sqrt(max(a, b)) terms: this is enough for 10^9 degrees of freedom."""


def normal_two_sided_p(z: float) -> float:
    """P(|Z| >= |z|)."""
    return math.erfc(abs(z) / math.sqrt(2))


def student_two_sided_p(t: float, df: float) -> float:
    """P(|T| >= |t|) with `df` degrees of freedom."""
    if math.isinf(t):
        return 0.0
    square = t * t
    return incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))


def correlation_two_sided_p(r: float, n: int) -> float:
    """p of a Pearson correlation of n pairs; also used for Spearman's rho."""
    return incomplete_beta((n - 2) / 2, 0.5, (1 - r) * (1 + r), r * r)


@cache
def student_quantile(probability: float, df: float) -> float:
    """Returns the t below which `probability` of the distribution lies, by bisection."""
    tail = 2 * min(probability, 1 - probability)
    low, high = 0.0, 1.0
    while student_two_sided_p(high, df) > tail:
        high *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return math.copysign(middle, probability - 0.5)
        if student_two_sided_p(middle, df) > tail:
            low = middle
        else:
            high = middle


def normal_quantile(probability: float) -> float:
    """Returns the z below which `probability` of the normal distribution lies."""
    return NormalDist().inv_cdf(probability)


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b). `rest` is 1 - x, which the caller knows without cancellation."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    # log1p of the smaller side keeps digits that log of a number near 1 has lost
    log_x = math.log(x) if x < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-x)
    front = math.exp(a * log_x + b * log_rest - log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def log_beta(a: float, b: float) -> float:
    """ln B(a, b). For a large a, ln gamma(a + b) - ln gamma(a) comes from Stirling's series: the
    difference of two numbers near 10^7 would leave nine digits."""
    a, b = max(a, b), min(a, b)
    if a < 100:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    difference = (a - 0.5) * math.log1p(b / a) + b * math.log(a + b) - b
    return math.lgamma(b) - difference - (_stirling_rest(a + b) - _stirling_rest(a))


def _stirling_rest(a: float) -> float:
    """ln gamma(a) - ((a - 1/2) ln a - a + ln(2 pi) / 2), for a large a."""
    return 1 / (12 * a) - 1 / (360 * a**3) + 1 / (1260 * a**5)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
