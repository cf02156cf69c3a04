"""Chatbots under test: what each kind of address leads to, behind one small protocol.

An address is `openai:URL#MODEL`, `python:...`, `hf:...`, `cmd:...` or `replay:...`. Without such a
prefix it names a model: one of the catalogue, or a directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dialeval.chat_http import Asking, ReplyError
from dialeval.errors import UsageError, did_you_mean
from dialeval.options import build
from dialeval.systems.system import BatchedSystem, System

__all__ = ["Asking", "BatchedSystem", "ReplyError", "System", "open_system"]


KINDS = ("openai", "python", "hf", "cmd", "replay")


@dataclass(frozen=True)
class _NoOptions:
    """Commands and recordings are asked as they are."""


def open_system(
    address: str, options: Mapping[str, object] | None = None, asking: Asking | None = None
) -> System:
    """Opens the system at this address. `options` are those of its kind, `asking` says how to
    ask."""
    kind, place = split_address(address)
    asking = asking or Asking()
    if kind != "openai" and (asking.key_env or asking.rate or asking.retries is not None):
        raise UsageError("an API key, a rate and retries are of use for an openai: system only")
    return _OPENERS[kind](place, options or {}, asking)


def split_address(address: str) -> tuple[str, str]:
    """`cmd:./bot` -> ("cmd", "./bot"); a bare name is a model: ("hf", name)."""
    kind, colon, place = address.partition(":")
    if colon and kind in KINDS:
        if not place.strip():
            raise UsageError(f"{kind}: expected something after the colon")
        return kind, place
    if colon and not Path(address).exists():
        raise UsageError(
            f"no kind of system {kind!r}.{did_you_mean(kind, KINDS)} An address starts with"
            f" {', '.join(f'{known}:' for known in KINDS)} or is the name of a model"
        )
    return "hf", address


def _openai(place: str, options: Mapping[str, object], asking: Asking) -> System:
    from dialeval.systems.language_models import OpenAiOptions, OpenAiServer

    return OpenAiServer(place, build(OpenAiOptions, options, "an openai: system"), asking)


def _python(place: str, options: Mapping[str, object], asking: Asking) -> System:
    from dialeval.systems.python_callable import PythonCallable, PythonOptions

    return PythonCallable(place, build(PythonOptions, options, "a python: system"), asking)


def _hf(place: str, options: Mapping[str, object], asking: Asking) -> System:
    from dialeval.systems.language_models import GeneratorOptions, LocalModel, check_method

    built = build(GeneratorOptions, options, "a model")
    check_method(options, built.method)
    return LocalModel(place, built, asking)


def _cmd(place: str, options: Mapping[str, object], asking: Asking) -> System:
    from dialeval.systems.command import Command

    build(_NoOptions, options, "a cmd: system")
    return Command(place, asking)


def _replay(place: str, options: Mapping[str, object], asking: Asking) -> System:
    from dialeval.systems.system import Replay

    build(_NoOptions, options, "a replay: system")
    return Replay(place, asking)


_OPENERS: Mapping[str, Callable[[str, Mapping[str, object], Asking], System]] = {
    "openai": _openai,
    "python": _python,
    "hf": _hf,
    "cmd": _cmd,
    "replay": _replay,
}
