"""The dialogues of a report: which sample of which run, its scores, and where it is linked from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.report.look import aligned
from dialeval.report.material import Material, read_rows
from dialeval.report.selection import Extremes, Selection


@dataclass(frozen=True)
class Card:
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
        """Of the last run that has it: the newest."""
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
class Line:
    """A link to a card from the list of the best and the worst; `scores` as they are read."""

    anchor: str
    system: str
    id: str
    snippet: str
    scores: tuple[str, ...]


def cards(material: Material, selection: Selection) -> list[Card]:
    """The chosen dialogues with their texts, in the order of the file."""
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
            Card(
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


def _metrics_of(material: Material, run: int) -> list[dict[str, object]]:
    """The records of one run: options and parts may differ between runs."""
    records = {metric["label"]: metric for metric in material.runs[run].manifest["metrics"]}
    return [records[label] for label in material.labels]


def extreme_lines(
    material: Material, every: Sequence[Card], ends: Extremes
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """The best and the worst of those that are shown, their scores with the same decimals."""
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
        Line(
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
