"""Compositions and trials as tables: header and rows of text, for the screen and for cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialeval.compose.composition import Composition
from dialeval.compose.leave_one_out import CRS, LeaveOneOut
from dialeval.scores import Calibration

Lines = tuple[list[str], list[list[str]]]
"""Header and rows."""


def weight_lines(composition: Composition, qualities: Sequence[str]) -> Lines:
    """Qualities down, terms across; how many data sets each rests on."""
    counts = sets_by_quality(composition)
    rows = [
        [
            quality,
            str(counts.get(quality, "")),
            *(f"{weight:.3f}" for weight in composition.weights[quality]),
        ]
        for quality in qualities
    ]
    return ["quality", "sets", *composition.specs], rows


def sets_by_quality(composition: Composition) -> dict[str, int]:
    """How many data sets have a quality, by its name in the composition; copies count once."""
    found: dict[str, set[str]] = {}
    for one in composition.provenance.get("sets", []):
        for fitted in one["fitted"]:
            name = composition.names.get(fitted["quality"], fitted["quality"])
            found.setdefault(name, set()).add(one["counts as"])
    return {quality: len(names) for quality, names in found.items()}


def term_lines(composition: Composition) -> Lines:
    """What each term is: direction, scale, signature."""
    rows = [
        [term.spec, term.direction, "; ".join(_scales(term.scales)) or "0 to 1", term.signature]
        for term in composition.terms
    ]
    return ["metric", "better", "scale", "fitted with"], rows


def source_lines(composition: Composition) -> Lines:
    """The data sets that it was fitted on."""
    rows = [
        [
            one["name"],
            f"{one['samples']:,}",
            f"{min(one['samples'], composition.provenance['sample']):,}",
            ", ".join(fitted["quality"] for fitted in one["fitted"]),
        ]
        for one in composition.provenance.get("sets", [])
    ]
    return ["data set", "rated", "drawn", "qualities"], rows


def correlation_lines(composition: Composition, qualities: Sequence[str]) -> Lines:
    """What the weights are made of: Spearman's rho by data set and quality."""
    rows = [
        [
            one["name"],
            fitted["quality"],
            str(fitted["n"]),
            f"{fitted['power']:g}",
            *(rho_text(rho) for rho in fitted["correlations"]),
        ]
        for one in composition.provenance.get("sets", [])
        for fitted in one["fitted"]
        if composition.names.get(fitted["quality"], fitted["quality"]) in qualities
    ]
    return ["data set", "quality", "n", "power", *composition.specs], rows


def standing_lines(found: LeaveOneOut) -> Lines:
    """All that was tried, best first; at the right beside the composition, where both are
    defined."""
    rows = [
        [
            one.name,
            rho_text(one.all.by_set.value),
            rho_text(one.all.by_quality.value),
            f"{one.all.by_quality.n} of {len(found.trials)}",
            f"{one.crs.by_quality.n}",
            f"{rho_text(one.shared.by_set.value)} {rho_text(one.crs.by_set.value)}",
            f"{rho_text(one.shared.by_quality.value)} {rho_text(one.crs.by_quality.value)}",
        ]
        for one in found.summary()
    ]
    means = ["mean by set", "mean by quality"]
    beside = [f"with {CRS}", *(f"{mean}: it, {CRS}" for mean in means)]
    return ["", *means, "defined", *beside], rows


def trial_lines(found: LeaveOneOut) -> Lines:
    """Each quality of each left-out set, with the weights that were used."""
    rows = [
        [
            trial.dataset,
            trial.quality,
            trial.weights,
            *(rho_text(trial.found[rival].value) for rival in found.rivals),
        ]
        for trial in found.trials
    ]
    return ["left out", "quality", "weights of", *found.rivals], rows


def rho_text(value: float | None) -> str:
    """`.342`, `-.084`, `-` where it is not defined."""
    return "-" if value is None else f"{value:.3f}".replace("0.", ".", 1)


def _scales(scales: Mapping[str, Calibration]) -> list[str]:
    def text(part: str, scale: Calibration) -> str:
        return f"{part} {scale.kind} {scale.low:.4g} to {scale.high:.4g}".strip()

    return [text(part, scale) for part, scale in scales.items()]
