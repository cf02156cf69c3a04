"""Parts of other packages that `dialeval score` does not import, because their import takes longer
than scoring ten dialogues.

pandas   pyarrow imports it when it makes its first array, and again when a frame is wanted.
torch    `torch._meta_registrations` has kernels for the device "meta", for tensors that have a size
         and no numbers, and takes a quarter of `import torch`. The networks of this package are
         made without numbers, too, and torch's C++ kernels are enough for that. What needs more
         (transformers, torch's compiler) gets the real module just before it is imported itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

META_KERNELS = "torch._meta_registrations"
NEED_META_KERNELS = {"accelerate", "peft", "sentence_transformers", "torch._dynamo", "transformers"}


def leave_out_pandas() -> None:
    """Hides pandas while pyarrow makes its first array. It tries again when a frame is wanted."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ImportError(fullname)


def put_off_meta_kernels() -> None:
    """Delays the import of torch's meta kernels until something needs them, unless torch is already
    imported."""
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _MetaKernelsLater())


class _MetaKernelsLater(MetaPathFinder, Loader):
    """Finds an empty module in place of the kernels, and the kernels before what needs them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname == META_KERNELS:
            return ModuleSpec(fullname, self)
        if fullname in NEED_META_KERNELS:
            self._load()
        return None

    def exec_module(self, module: ModuleType) -> None:
        def load_and_find(name: str) -> Any:
            # Python itself looks for __path__ and the like in every module.
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(self._load(), name)

        setattr(module, "__getattr__", load_and_find)  # noqa: B010

    def _load(self) -> ModuleType | None:
        """Puts the real module in place, once; if torch is not imported yet, torch will do it."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            sys.modules.pop(META_KERNELS, None)
        return importlib.import_module(META_KERNELS) if "torch" in sys.modules else None
