"""A card for fitted weights: what they were fitted on, the weights, and what to expect of them on
data that nobody fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.agreement.coefficient import Agreement
from dialeval.compose.composition import Composition
from dialeval.compose.fit import fit_warnings
from dialeval.compose.leave_one_out import AVERAGE, CRS, LeaveOneOut
from dialeval.compose.tables import (
    Lines,
    rho_text,
    source_lines,
    standing_lines,
    term_lines,
    trial_lines,
    weight_lines,
)


def card_text(
    name: str,
    command: str,
    composition: Composition,
    found: LeaveOneOut,
    reported: LeaveOneOut | None = None,
) -> str:
    """As Markdown. It holds no clock time: the same runs give the same card. `reported` are trials
    on sets that nothing was fitted on."""
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
        *_table("Leave one data set out", standing_lines(found)),
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
        *_table("Data sets that nothing was fitted on", standing_lines(found)),
        "",
        "The weights of this card, fitted on all of the data sets above, on others. "
        + verdict(found),
        *_table("These one by one", trial_lines(found)),
    ]


def _ours(how: Mapping[str, Any]) -> str:
    """What was not done as in the paper."""
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
    """Which scale the terms are on, how it was chosen, and what the left-out trials took."""
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
    """Whether the composition is worth it, by either mean."""
    rivals = [one for one in found.summary() if not one.name.startswith(CRS)]
    by_set = [one.name for one in rivals if _loses(one.crs.by_set, one.shared.by_set)]
    by_quality = [one.name for one in rivals if _loses(one.crs.by_quality, one.shared.by_quality)]
    return " ".join(
        _sentence(mean, better, len(rivals))
        for mean, better in (("by set", by_set), ("by quality", by_quality))
    )


def _loses(composition: Agreement, rival: Agreement) -> bool:
    if composition.value is None or rival.value is None:
        return False
    return rival.value >= composition.value


def _sentence(mean: str, better: Sequence[str], rivals: int) -> str:
    if not better:
        return f"Mean {mean}: the composition agrees better with people than all {rivals} others."
    return (
        f"Mean {mean}: the composition does not agree better with people than {', '.join(better)}"
        f" ({len(better)} of {rivals} others)."
    )


def _table(title: str, lines: Lines) -> list[str]:
    header, rows = lines
    return ["", f"## {title}", "", _row(header), _row(["---"] * len(header)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
