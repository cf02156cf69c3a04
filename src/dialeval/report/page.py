"""The page itself: style sheet, script, the policy that allows these two, and as many dialogues as
there is room for.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.pictures.drawing import to_svg
from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.report.look import STATIC, aligned, environment, stylesheet
from dialeval.report.material import Extremes, ReportData, Selection, read_rows

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing

# The dialogues of a report: which sample of which run, its scores, and where it is linked from.


@dataclass(frozen=True)
class DialogueCard:
    """One entry: a view for each run that has the sample. `key` is its level and number.

    `values` are, run by run, the scores of all metrics: what the page sorts by.
    """

    key: tuple[int, int]
    anchor: str
    names: tuple[str, ...]
    views: tuple[DialogueView, ...]
    values: tuple[tuple[float | None, ...], ...]

    @property
    def view(self) -> DialogueView:
        """The view of the last run that has it, which is the newest."""
        return self.views[-1]

    @property
    def same_context(self) -> bool:
        contexts = {tuple(turn.text for turn in view.turns) for view in self.views}
        return len(contexts) == 1

    @property
    def sort_values(self) -> str:
        """`0.31,2;0.45,3`: metrics apart by commas, runs by semicolons; nothing where none is."""
        return ";".join(
            ",".join("" if value is None else f"{value:.4g}" for value in of_run)
            for of_run in self.values
        )


@dataclass(frozen=True)
class ExtremeLine:
    """A link to a card from the list of the best and the worst; `scores` as they are read."""

    anchor: str
    system: str
    id: str
    snippet: str
    scores: tuple[str, ...]


def cards(material: ReportData, selection: Selection) -> list[DialogueCard]:
    """Returns the chosen dialogues with their texts, in the order of the file."""
    chosen = [(number, entry) for number, own in enumerate(selection.shown) for entry in own]
    wanted = np.array(
        [material.levels[number].rows[entry] for number, entry in chosen], dtype=np.int64
    ).reshape(len(chosen), len(material.runs))
    texts = [
        read_rows(run, [row for row in wanted[:, place].tolist() if row >= 0], material.labels)
        for place, run in enumerate(material.runs)
    ]
    found = []
    for count, (key, rows) in enumerate(zip(chosen, wanted.tolist(), strict=True), 1):
        there = [(place, row) for place, row in enumerate(rows) if row >= 0]
        level = material.levels[key[0]]
        found.append(
            DialogueCard(
                key,
                f"d{count}",
                tuple(material.names[place] for place, _ in there),
                tuple(
                    dialogue_view(texts[place][row], _metrics_of(material, place))
                    for place, row in there
                ),
                tuple(
                    tuple(_number(level.scores[label][key[1], place]) for label in material.labels)
                    for place in range(len(material.runs))
                ),
            )
        )
    return found


def _metrics_of(material: ReportData, run: int) -> list[dict[str, object]]:
    """Returns the records of one run: options and parts may differ between runs."""
    records = {metric["label"]: metric for metric in material.runs[run].manifest["metrics"]}
    return [records[label] for label in material.labels]


def extreme_lines(
    material: ReportData, every: Sequence[DialogueCard], ends: Extremes
) -> tuple[tuple[ExtremeLine, ...], tuple[ExtremeLine, ...]]:
    """Returns the best and the worst of those that are shown, their scores with the same
    decimals."""
    by_key = {card.key: card for card in every}
    best, worst = (
        [by_key[key] for entry in entries if (key := (ends.level, entry)) in by_key]
        for entries in (ends.best, ends.worst)
    )
    shown = [*best, *worst]
    label = material.labels.index(ends.label)
    runs = (0, ends.run) if material.several else (0,)
    texts = iter(aligned([card.values[run][label] for card in shown for run in runs]))
    lines = [
        ExtremeLine(
            card.anchor,
            card.view.system,
            card.view.id,
            card.view.snippet,
            tuple(next(texts) for _ in runs),
        )
        for card in shown
    ]
    return tuple(lines[: len(best)]), tuple(lines[len(best) :])


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


LARGEST = 4_900_000
"""Bytes of a report: under 5 MB."""

Key = tuple[int, int]


def render_page(
    values: Mapping[str, Any], every: Sequence[DialogueCard], selection: Selection, several: bool
) -> tuple[str, int, int]:
    """Returns the page, how many dialogues it shows, and how many of them without their
    evidence."""
    from markupsafe import Markup

    made = environment()
    template, card_template = made.get_template("report.html"), made.get_template("card.html")
    frame = {**_fixed(), **values}
    empty = template.render(frame, cards=[], shown=len(every), brief=selection.size)
    room = LARGEST - len(empty.encode("utf-8"))

    def render(card: DialogueCard, brief: bool) -> str:
        return card_template.render(
            card=card, brief=brief, several=several, shows_system=values["shows_system"]
        )

    texts, n_brief = _within(every, selection, room, render)
    kept = [Markup(texts[card.key]) for card in every if card.key in texts]
    page = template.render(frame, cards=kept, shown=len(kept), brief=n_brief)
    return page, len(kept), n_brief


def _within(
    every: Sequence[DialogueCard],
    selection: Selection,
    room: int,
    render: Callable[[DialogueCard, bool], str],
) -> tuple[dict[Key, str], int]:
    """As many dialogues as there is room for, those that matter most first: with all that stands
    behind their scores while a short form of the others still fits."""
    by_key = {card.key: card for card in every}
    first = [key for key in selection.first if key in by_key]
    order = [*first, *(key for key in by_key if key not in set(first))]
    short = {key: render(by_key[key], True) for key in order}
    sizes = {key: len(text.encode("utf-8")) for key, text in short.items()}
    kept: dict[Key, str] = {}
    used = 0
    for key in order:
        if used + sizes[key] <= room:
            kept[key] = short[key]
            used += sizes[key]
    n_brief = len(kept)
    for key in kept:
        full = render(by_key[key], False)
        extra = len(full.encode("utf-8")) - sizes[key]
        if used + extra <= room:
            kept[key] = full
            used += extra
            n_brief -= 1
    return kept, n_brief


def _fixed() -> dict[str, Any]:
    """Style sheet, script, and the policy that allows these two and nothing else."""
    from markupsafe import Markup

    style = stylesheet("report.css")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {source_hash(style)}; script-src {source_hash(script)};"
        " base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}


def source_hash(text: str) -> str:
    """Returns the name by which a policy allows a style sheet or a script."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def inline_svg(drawing: Drawing) -> Any:
    """Pictures escape their own texts (`pictures/drawing.py`)."""
    from markupsafe import Markup

    return Markup(to_svg(drawing, styled=False))
