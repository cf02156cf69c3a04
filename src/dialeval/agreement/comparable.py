"""May scores of two runs be compared? Only where nothing that moves a number differs.

The signature of a metric names all of that. Versions of libraries and of dialeval itself are no
obstacle (a changed definition has a new version of the metric); another model, mode, option or
scale is.

Where runs differ in nothing but a scale that each of them fitted on its own samples, the raw values
are compared. (On such scales a worse run can have the higher mean: its scale began lower.) All else
that differs leaves nothing to compare, and no number is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.scores import Signature

if TYPE_CHECKING:
    from dialeval.agreement.joining import Side


@dataclass(frozen=True)
class Grounds:
    """What metrics can be compared by. Both map a label to a sentence that says why.

    raw   the runs have scales of their own: their raw values can be compared
    none  the runs measured different things, or raw values mean nothing
    """

    raw: Mapping[str, str]
    none: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.raw.values(), *self.none.values())


def grounds(sides: Sequence[Side], labels: Sequence[str]) -> Grounds:
    """Of the metrics that cannot be compared by their scores."""
    raw, none = {}, {}
    for label in labels:
        signatures = {
            side.name: Signature.parse(side.run.signatures[label].short()) for side in sides
        }
        different = differing_fields(list(signatures.values()))
        if not different:
            continue
        if different != ["calibration"]:
            none[label] = _explain(label, signatures, different)
        elif all(label in side.raw for side in sides):
            raw[label] = (
                f"{label}: the runs have scales of their own, so raw values are compared"
                f" ({raw_name(label)}). {_same_scale(sides)} to compare on one scale"
            )
        else:
            none[label] = (
                f"{label}: not comparable, the runs have different scales. {_same_scale(sides)}"
            )
    return Grounds(raw, none)


def raw_name(label: str) -> str:
    """How tables call the raw values of a metric: as the column of a run that holds them."""
    return f"{label}.raw"


def differing_fields(signatures: Sequence[Signature]) -> list[str]:
    """The fields that are not the same in all signatures, in their order."""
    tables = [
        {"metric": one.name, "version": str(one.version), **dict(one.fields)} for one in signatures
    ]
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if len({table.get(name) for table in tables}) > 1]


def _same_scale(sides: Sequence[Side]) -> str:
    first, *others = sides
    return (
        f"Score {' and '.join(side.name for side in others)} again with --calibration"
        f" {first.run.directory}"
    )


def _explain(label: str, signatures: dict[str, Signature], different: Sequence[str]) -> str:
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
