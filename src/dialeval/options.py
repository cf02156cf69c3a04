"""Options: how a field is declared as one, and `bleu:n=2,mode=released` as a checked value.

The grammar: a name, then after a colon `key=value` pairs with commas between. A value that holds a
comma stands in double quotes, where `""` is a quote. Types are those of the metric's fields.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from dialeval.errors import UsageError, did_you_mean

T = TypeVar("T")


def option(
    default: Any,
    summary: str,
    *,
    low: float | None = None,
    high: float | None = None,
    moves_score: bool = True,
    use: str = "",
) -> Any:
    """Returns a field of a metric that can be set from outside: `-m bleu:n=2`.

    Its type comes from the annotation (int, float, bool, str, Literal); `low` and `high` are
    inclusive bounds. An option that cannot change the number sets `moves_score=False` and stays
    out of the signature. One that names a model is declared with `presets.model_option` of
    `model_store`, which knows its default; `use` is what presets call the purpose of the model.
    """
    metadata = {"summary": summary, "low": low, "high": high, "moves_score": moves_score}
    return dataclasses.field(default=default, metadata={**metadata, "use": use})


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """`bleu:n=2,mode=paper` -> ("bleu", {"n": "2", "mode": "paper"})."""
    name, _, rest = spec.strip().partition(":")
    pairs: dict[str, str] = {}
    for item in _split_commas(rest, spec):
        key, equals, value = item.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f"{spec!r}: {item!r} is not of the form option=value")
        if key in pairs:
            raise UsageError(f"{spec!r}: option {key!r} is given twice")
        pairs[key] = _unquote(value.strip())
    return name, pairs


def _split_commas(text: str, spec: str) -> list[str]:
    items, current, quoted = [], "", False
    for char in text:
        quoted ^= char == '"'
        if char == "," and not quoted:
            items.append(current)
            current = ""
        else:
            current += char
    if quoted:
        raise UsageError(f"{spec!r}: a quote is opened but not closed")
    return [item for item in (*items, current) if item.strip()]


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('""', '"')
    return value


def build(cls: type[T], given: Mapping[str, object], what: str) -> T:
    """Returns an instance of the dataclass `cls` with checked options; `what` names it in
    messages."""
    hints = typing.get_type_hints(cls)
    settable = (field for field in dataclasses.fields(cls) if field.init)  # type: ignore[arg-type]
    fields = {field.name: field for field in settable}
    values: dict[str, Any] = {}
    for key, raw in given.items():
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise UsageError(
                f"{what} has no option {key!r}.{did_you_mean(key, fields)} Its options: {known}"
            )
        value = _convert(raw, hints[key], f"{what}: option {key!r}")
        _check_bounds(value, fields[key].metadata, f"{what}: option {key!r}")
        values[key] = value
    return cls(**values)


def type_name(hint: object) -> str:
    """Returns how help texts call the type of an option: `integer`, `paper|released`."""
    hint, _ = without_none(hint)
    if typing.get_origin(hint) is Literal:
        return "|".join(str(choice) for choice in typing.get_args(hint))
    names = {int: "integer", float: "number", bool: "true|false", str: "text"}
    return names[hint] if isinstance(hint, type) and hint in names else str(hint)


def without_none(hint: object) -> tuple[object, bool]:
    """`int | None` -> (int, True): the type of an option, and whether it may be left open."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
        if len(kinds) == 1:
            return kinds[0], True
    return hint, False


def _convert(raw: object, hint: object, where: str) -> object:
    hint, may_be_none = without_none(hint)
    if raw is None and may_be_none:
        return None
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        for choice in choices:
            if raw == choice or (isinstance(raw, str) and raw == str(choice)):
                return choice
        hint_text = did_you_mean(str(raw), [str(choice) for choice in choices])
        raise UsageError(f"{where} must be one of {type_name(hint)}, not {raw!r}.{hint_text}")
    try:
        if hint is bool:
            return _boolean(raw)
        if hint is int and not isinstance(raw, bool) and isinstance(raw, int | str):
            return int(raw)
        if hint is float and not isinstance(raw, bool) and isinstance(raw, int | float | str):
            number = float(raw)
            if math.isfinite(number):
                return number
        if hint is str and isinstance(raw, str):
            return raw
    except ValueError:
        pass
    raise UsageError(f"{where} must be of type {type_name(hint)}, not {raw!r}")


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(raw, str) and raw.lower() in words:
        return words[raw.lower()]
    raise ValueError


def _check_bounds(value: object, metadata: Mapping[str, Any], where: str) -> None:
    low, high = metadata.get("low"), metadata.get("high")
    if not isinstance(value, int | float):
        return
    if low is not None and value < low:
        raise UsageError(f"{where} must be at least {low}, not {value}")
    if high is not None and value > high:
        raise UsageError(f"{where} must be at most {high}, not {value}")
