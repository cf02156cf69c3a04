"""Compositions and trials for people: tables (header and rows of text), a picture, and a card.

A card says what the weights were fitted on, and how they do on data that they were not fitted on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.agreement.coefficient import Coefficient
from dialeval.compose.fitting import fit_warnings
from dialeval.compose.leave_one_out import AVERAGE, CRS, LeaveOneOut
from dialeval.metrics.composition import Composition
from dialeval.pictures import Bar, Drawing, bar_chart, matrix_plot
from dialeval.scores import Calibration

Lines = tuple[list[str], list[list[str]]]
"""Header and rows."""


def weight_lines(composition: Composition, qualities: Sequence[str]) -> Lines:
    """Returns a row for each quality: its number of data sets, and the weight of each term."""
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
    """Returns the number of data sets with a quality, by its name in the composition; copies count
    once."""
    found: dict[str, set[str]] = {}
    for one in composition.provenance.get("sets", []):
        for fitted in one["fitted"]:
            name = composition.names.get(fitted["quality"], fitted["quality"])
            found.setdefault(name, set()).add(one["counts as"])
    return {quality: len(names) for quality, names in found.items()}


def term_lines(composition: Composition) -> Lines:
    """Returns a row for each term: direction, scale, signature."""
    rows = [
        [term.spec, term.direction, "; ".join(_scales(term.scales)) or "0 to 1", term.signature]
        for term in composition.terms
    ]
    return ["metric", "better", "scale", "fitted with"], rows


def source_lines(composition: Composition) -> Lines:
    """Returns a row for each data set that the composition was fitted on."""
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
    """Returns the correlations behind the weights: Spearman's rho by data set and quality."""
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


def method_lines(found: LeaveOneOut) -> Lines:
    """Returns a row for each method, best first; on the right its means where the composition is
    defined, too, and those of the composition."""
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
    compared = [f"with {CRS}", *(f"{mean}: it, {CRS}" for mean in means)]
    return ["", *means, "defined", *compared], rows


def trial_lines(found: LeaveOneOut) -> Lines:
    """Returns a row for each quality of each left-out set, with the weights that were used."""
    rows = [
        [
            trial.dataset,
            trial.quality,
            trial.weights,
            *(rho_text(trial.found[method].value) for method in found.methods),
        ]
        for trial in found.trials
    ]
    return ["left out", "quality", "weights of", *found.methods], rows


def rho_text(value: float | None) -> str:
    """`.342`, `-.084`, or `-` if it is undefined."""
    return "-" if value is None else f"{value:.3f}".replace("0.", ".", 1)


def _scales(scales: Mapping[str, Calibration]) -> list[str]:
    def text(part: str, scale: Calibration) -> str:
        return f"{part} {scale.kind} {scale.low:.4g} to {scale.high:.4g}".strip()

    return [text(part, scale) for part, scale in scales.items()]


def draw_weights(composition: Composition, qualities: Sequence[str]) -> Drawing:
    note = "Weights of the sub-metrics; those of a quality sum to 1."
    if len(qualities) == 1:
        weights = composition.weights[qualities[0]]
        bars = [Bar(spec, weight) for spec, weight in zip(composition.specs, weights, strict=True)]
        return bar_chart(bars, title=f"Weights for {qualities[0]}", x_label="weight", note=note)
    values = [composition.weights[quality] for quality in qualities]
    return matrix_plot(
        list(qualities), composition.specs, values, title="Weights", note=note, low=0.0, high=1.0
    )


def card_text(
    name: str,
    command: str,
    composition: Composition,
    found: LeaveOneOut,
    reported: LeaveOneOut | None = None,
) -> str:
    """Returns a Markdown card. The same runs give the same card: it holds no time. `reported` are
    trials on sets that nothing was fitted on."""
    how = composition.provenance
    lines = [
        f"# {name}",
        "",
        "Weights over sub-metrics by correlation re-scaling (Zhang et al., MME-CRS, 2022), fitted"
        " on ratings of people.",
        "",
        "```",
        command,
        "```",
        "",
        f"Power {power_text(how['power'])}, a sample of {how['sample']} from each data set, seed"
        f" {how['seed']}, names of qualities: {how['map']}. {scale_text(how, found)} {_ours(how)}",
        *_table("Weights", weight_lines(composition, list(composition.weights))),
        *_table("Leave one data set out", method_lines(found)),
        "",
        "Spearman correlation with the mean rating. Each data set was left out once, with those"
        " that share conversations with it; scales and weights were fitted on the rest, and tried"
        f" on all of the left-out set. `{CRS}` is the composition by the weights of the quality,"
        f" `{AVERAGE}` the plain mean of the same terms, and `{CRS}, one score` the composition by"
        " the weights of overall, whatever is rated. `mean by set`: over the qualities of a set,"
        f" then over sets. `with {CRS}`: how many of the qualities both have a correlation for;"
        f" `it, {CRS}`: the means of both over these.",
        "",
        verdict(found),
        *_table("Left-out sets one by one", trial_lines(found)),
        *([] if reported is None else _reported(reported)),
        *_table("Terms", term_lines(composition)),
        *_table("Fitted on", source_lines(composition)),
    ]
    if warnings := fit_warnings(composition):
        lines += ["", "## Remarks", "", *(f"- {_escaped(warning)}" for warning in warnings)]
    return "\n".join(lines) + "\n"


def _reported(found: LeaveOneOut) -> list[str]:
    return [
        *_table("Data sets that nothing was fitted on", method_lines(found)),
        "",
        "The weights of this card, fitted on all of the data sets above, on others. "
        + verdict(found),
        *_table("These one by one", trial_lines(found)),
    ]


def _ours(how: Mapping[str, Any]) -> str:
    """Returns a sentence about what was not done as in the paper."""
    if not how["prior"] and not how["even"]:
        return "Otherwise as in the paper."
    changes = []
    if how["prior"]:
        changes.append(
            "the weights of a quality are drawn towards the mean over all qualities, which counts"
            f" as {how['prior']:g} more data sets"
        )
    if how["even"]:
        changes.append("weights are divided by the spread of their terms")
    return f"Not in the paper: {' and '.join(changes)} (`--paper` leaves that out)."


def scale_text(how: Mapping[str, Any], found: LeaveOneOut) -> str:
    """Sentences about the scale of the terms and how it was chosen."""
    scale = how.get("scale", "quartile")
    text = f"Terms that do not range from 0 to 1 are on the scale `{scale}`"
    if not (means := how.get("scales tried")):
        return text + "."
    tried = ", ".join(f"{kind} {rho_text(mean)}" for kind, mean in means.items())
    taken = {trial.dataset: trial.scale for trial in found.trials}
    counts = Counter(taken.values())
    return (
        f"{text}, which has the highest mean by set where each data set is left out ({tried}). In"
        " the tables below it was chosen anew for each left-out set, on the others alone:"
        f" {', '.join(f'{kind} {n} times' for kind, n in counts.most_common())}."
    )


def power_text(power: float | str) -> str:
    return power if isinstance(power, str) else f"{power:g}"


def verdict(found: LeaveOneOut) -> str:
    """Sentences that say whether the composition beats the others, by either mean."""
    others = [one for one in found.summary() if not one.name.startswith(CRS)]
    by_set = [one.name for one in others if _loses(one.crs.by_set, one.shared.by_set)]
    by_quality = [one.name for one in others if _loses(one.crs.by_quality, one.shared.by_quality)]
    return " ".join(
        _sentence(mean, better, len(others))
        for mean, better in (("by set", by_set), ("by quality", by_quality))
    )


def _loses(composition: Coefficient, method: Coefficient) -> bool:
    if composition.value is None or method.value is None:
        return False
    return method.value >= composition.value


def _sentence(mean: str, better: Sequence[str], others: int) -> str:
    if not better:
        return f"Mean {mean}: the composition agrees better with people than all {others} others."
    return (
        f"Mean {mean}: the composition does not agree better with people than {', '.join(better)}"
        f" ({len(better)} of {others} others)."
    )


def _table(title: str, lines: Lines) -> list[str]:
    header, rows = lines
    return ["", f"## {title}", "", _row(header), _row(["---"] * len(header)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
