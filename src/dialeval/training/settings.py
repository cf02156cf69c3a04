"""What the training loop can be told, and how the learning rate rises and falls.

linear    rises over the share `warmup` of all steps, then falls to 0
noam      min(step ** -0.5, step * warmup_steps ** -1.5) (Vaswani et al., 2017); the learning rate
          that it is a share of contains their factor d_model ** -0.5
halving   full for `halve_after` epochs, then half the previous rate in each further one (OpenNMT)
constant  always full
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Schedule = Literal["linear", "noam", "halving", "constant"]


@dataclass(frozen=True)
class Settings:
    """What the loop itself can be told.

    schedule      how the learning rate rises and falls; see above
    warmup        `linear`: share of all steps over which the learning rate rises
    warmup_steps  `noam`: the same, in steps
    halve_after   `halving`: epochs with the full learning rate
    clip          the largest norm of a gradient; 0: any
    steps         the training ends after so many steps, whatever `epochs` says; 0: `epochs` decides
    patience      epochs without a better validation loss after which training stops; 0: never
    keep          the final parameters: those of the best epoch (which may be the start) or of the
                  last one
    """

    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    warmup: float = 0.05
    clip: float = 1.0
    patience: int = 0
    seed: int = 0
    checkpoint_seconds: float = 60.0
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    beta2: float = 0.999
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    halve_after: int = 0
    steps: int = 0
    keep: Literal["best", "last"] = "best"

    def share_of_rate(self, step: int, steps: int, per_epoch: int) -> float:
        """The share of the learning rate for step number `step`, from 0, of `steps` in all."""
        if self.schedule == "constant":
            return 1.0
        if self.schedule == "noam":
            return float(min((step + 1) ** -0.5, (step + 1) * max(1, self.warmup_steps) ** -1.5))
        if self.schedule == "halving":
            return float(0.5 ** max(0, 1 + step // per_epoch - self.halve_after))
        rising = max(1, round(steps * self.warmup))
        if step < rising:
            return (step + 1) / rising
        return max(0.0, (steps - step) / max(1, steps - rising))
