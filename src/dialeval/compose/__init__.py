"""Several metrics as one, weighted by their agreement with people (MME-CRS).

found = dialeval.compose.fit(["runs/a", "runs/b"], leave_one_out=True)
dialeval.compose.save(found.composition, Path("crs.json"))
scores = dialeval.compose.apply(found.composition, dialeval.open_run("runs/c"), "overall")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialeval.compose.evidence import apply_composition as apply
    from dialeval.compose.leave_one_out import fit_runs as fit
    from dialeval.metrics.composition import find_composition as find
    from dialeval.metrics.composition import save_composition as save

_HOMES = {
    "apply": ("dialeval.compose.evidence", "apply_composition"),
    "find": ("dialeval.metrics.composition", "find_composition"),
    "fit": ("dialeval.compose.leave_one_out", "fit_runs"),
    "save": ("dialeval.metrics.composition", "save_composition"),
}

__all__ = ["apply", "find", "fit", "save"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialeval.compose' has no attribute {name!r}")
    module, function = _HOMES[name]
    return getattr(importlib.import_module(module), function)
