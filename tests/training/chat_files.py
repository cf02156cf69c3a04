"""Dialogues as a file that every corpus reader takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def write_dialogues(path: Path, dialogues: Sequence[Sequence[str]]) -> Path:
    lines = [
        json.dumps(
            {
                "id": str(number),
                "context": [{"text": turn} for turn in turns[:-1]],
                "response": turns[-1],
            },
            ensure_ascii=False,
        )
        for number, turns in enumerate(dialogues)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
