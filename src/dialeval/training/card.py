"""A card for everything that was trained: what it saw, how it was made, how good it is.

`card.json` for programs, `card.md` for people, `curve.svg` to look at. A card holds no clock time:
the same data, command and seed give the same card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from dialeval.storage import write_json, write_text


@dataclass(frozen=True)
class Card:
    """All that is known about a trained part.

    data    what it learned from: name, licence if known, digest, sizes
    scores  what was measured, by name, each with what it was measured on
    curve   one entry per validation, the first before any training
    """

    name: str
    summary: str
    command: str
    seed: int
    base: str
    licence: str
    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    curve: Sequence[Mapping[str, float]]

    def write(self, directory: Path) -> None:
        write_json(directory / "card.json", asdict(self))
        write_text(directory / "card.md", self.text())
        write_text(directory / "curve.svg", draw_curve(self.curve))

    def text(self) -> str:
        def table(title: str, rows: Mapping[str, Any]) -> list[str]:
            return ["", f"## {title}", "", "| | |", "|---|---|"] + [
                f"| {key} | {value:.4g} |" if isinstance(value, float) else f"| {key} | {value} |"
                for key, value in rows.items()
            ]

        lines = [f"# {self.name}", "", self.summary, "", "```", self.command, "```"]
        facts = {"base": self.base, "licence": self.licence, "seed": self.seed}
        lines += table("What it is", facts)
        lines += table("Data", self.data)
        lines += table("Settings", self.settings)
        lines += table("Scores", self.scores)
        return "\n".join([*lines, "", "![training curve](curve.svg)", ""])


WIDTH, HEIGHT, MARGIN = 480, 240, 48


def draw_curve(curve: Sequence[Mapping[str, float]]) -> str:
    """Training and validation loss over the steps, as a small SVG."""
    series = {
        name: [(entry["step"], entry[name]) for entry in curve if name in entry]
        for name in ("train_loss", "validation_loss")
    }
    points = [point for found in series.values() for point in found]
    last = max((step for step, _ in points), default=1) or 1
    low = min((loss for _, loss in points), default=0.0)
    high = max((loss for _, loss in points), default=1.0)
    span = (high - low) or 1.0

    def place(step: float, loss: float) -> str:
        x = MARGIN + (WIDTH - 2 * MARGIN) * step / last
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (loss - low) / span
        return f"{x:.1f},{y:.1f}"

    colours = {"train_loss": "#888", "validation_loss": "#0a6"}
    shapes = []
    for row, (name, found) in enumerate(series.items()):
        path = " ".join(place(step, loss) for step, loss in found)
        colour = colours[name]
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes.append(
            f'<text x="{WIDTH - MARGIN}" y="{16 + 14 * row}" fill="{colour}" text-anchor="end">'
            f"{escape(name.replace('_', ' '))}</text>"
        )
    bottom = HEIGHT - MARGIN
    shapes += [
        f'<line x1="{MARGIN}" y1="{bottom}" x2="{WIDTH - MARGIN}" y2="{bottom}" stroke="#888"/>',
        f'<text x="{MARGIN - 4}" y="{MARGIN}" fill="#888" text-anchor="end">{high:.2f}</text>',
        f'<text x="{MARGIN - 4}" y="{bottom}" fill="#888" text-anchor="end">{low:.2f}</text>',
        f'<text x="{WIDTH - MARGIN}" y="{bottom + 16}" fill="#888" text-anchor="end">'
        f"{last:.0f} steps</text>",
    ]
    body = "".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif" font-size="11">{body}</svg>\n'
    )
