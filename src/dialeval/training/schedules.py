"""How the learning rate goes up and down: the share of it that a step gets.

linear   rises over the share `warmup` of all steps, then falls to 0
noam     min(step ** -0.5, step * warmup_steps ** -1.5) (Vaswani et al., 2017); the learning
         rate that it is a share of has their factor d_model ** -0.5 in it
halving  full for `halve_after` epochs, then half of what it was in each further one (OpenNMT)
constant always full
"""

from __future__ import annotations

from typing import Literal, Protocol

Schedule = Literal["linear", "noam", "halving", "constant"]


class _Settings(Protocol):
    @property
    def schedule(self) -> Schedule: ...
    @property
    def warmup(self) -> float: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def halve_after(self) -> int: ...


def share_of_rate(settings: _Settings, step: int, steps: int, per_epoch: int) -> float:
    """The share for step number `step`, counted from 0, of `steps` in all."""
    if settings.schedule == "constant":
        return 1.0
    if settings.schedule == "noam":
        return float(min((step + 1) ** -0.5, (step + 1) * max(1, settings.warmup_steps) ** -1.5))
    if settings.schedule == "halving":
        return float(0.5 ** max(0, 1 + step // per_epoch - settings.halve_after))
    rising = max(1, round(steps * settings.warmup))
    if step < rising:
        return (step + 1) / rising
    return max(0.0, (steps - step) / max(1, steps - rising))
