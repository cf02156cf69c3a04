"""A package that is also the verb of its name: `dialeval.probe(...)` beside `dialeval.probe.plan`.

A room and a verb may share a name. Importing the room puts it where the function would stand, so
the room itself can be called: it hands the call to the function, which it imports only then.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package that hands a call of itself to a function."""

    verb: str
    """Where the function is: `module:name`."""

    def function(self) -> Any:
        module, _, name = self.verb.partition(":")
        return getattr(importlib.import_module(module), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function()(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        """What `inspect.signature` and the help of a notebook show."""
        import inspect

        return inspect.signature(self.function())


def make_callable(package: str, verb: str) -> None:
    """Lets a package be called. Its `__init__.py` does this last."""
    module: Any = sys.modules[package]
    module.__class__ = CallablePackage
    module.verb = verb
