"""May scores of two runs be compared? Only where nothing that moves a number differs.

The signature of a metric names all of that. Versions of libraries and of dialeval itself are no
obstacle (a changed definition has a new version of the metric); another model, mode, option or
scale is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.agreement.joining import Side
    from dialeval.scores import Signature


def incomparable(sides: Sequence[Side], labels: Sequence[str]) -> dict[str, str]:
    """Label -> why its scores cannot be compared, naming the fields that differ."""
    found = {}
    for label in labels:
        signatures = {side.name: side.run.signatures[label] for side in sides}
        if len({one.short() for one in signatures.values()}) > 1:
            found[label] = _explain(label, signatures, sides)
    return found


def differing_fields(signatures: Sequence[Signature]) -> list[str]:
    """The fields that are not the same in all signatures, in their order."""
    tables = [
        {"metric": one.name, "version": str(one.version), **dict(one.fields)} for one in signatures
    ]
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if len({table.get(name) for table in tables}) > 1]


def _explain(label: str, signatures: dict[str, Signature], sides: Sequence[Side]) -> str:
    different = differing_fields(list(signatures.values()))
    if different == ["calibration"]:
        first, *others = sides
        return (
            f"{label}: not comparable, the runs have different scales. Score"
            f" {' and '.join(side.name for side in others)} again with --calibration"
            f" {first.run.directory}"
        )
    shown = "; ".join(
        f"{field} is "
        + ", ".join(
            f"{_value(signature, field)} in {name}" for name, signature in signatures.items()
        )
        for field in different
    )
    return f"{label}: not comparable, the runs measured it differently: {shown}"


def _value(signature: Signature, field: str) -> str:
    own = {"metric": signature.name, "version": f"v{signature.version}"}
    return {**own, **dict(signature.fields)}.get(field, "(none)")
