"""Dependencies point downwards. The layers are those of docs/architecture.md, bottom first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dialeval"

LAYERS = (
    "callable_package errors version text",
    "lexicon limits options progress remote sample scores strict_json",
    "chat_http examples question storage",
    "datasets metric pictures tables",
    "model_store runs",
    "networks registry",
    "check engine metric_description metrics models readers",
    "agreement generation",
    "augment compose rating report scoring systems",
    "human_agreement preferences probe training watching web",
    "full dialeval",
    "doctor pytest_plugin studies",
    "verbs",
    "cli",
    "__main__",
)
"""Rooms (folders, or files beside them). A room imports from lower layers and from itself;
`dialeval` is the package's `__init__.py`, the public names."""

EXCEPTIONS = {
    ("registry", "readers"): "the registry lists readers and checks the type of a plugin's reader",
    ("dialeval", "verbs"): "the package names its verbs, and imports them on first use",
}


def imports() -> Iterator[tuple[str, str, str]]:
    """(room, room that it imports, where), of every import; those inside functions count, too."""
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        room = "dialeval" if room == "__init__" else room
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module == "dialeval":
                known = {f"dialeval.{name.name}" for name in node.names}
                modules = [one if (SOURCE / one[9:]).is_dir() else "dialeval" for one in known]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            elif isinstance(node, ast.Import):
                modules = [name.name for name in node.names]
            for module in modules:
                package, _, rest = module.partition(".")
                if package == "dialeval":
                    target = rest.partition(".")[0] or "dialeval"
                    if target != room:
                        yield (
                            room,
                            target,
                            f"{path.relative_to(ROOT)}:{node.lineno} imports {module}",
                        )


def test_every_import_points_to_a_lower_layer():
    level = {room: n for n, rooms in enumerate(LAYERS) for room in rooms.split()}
    found = list(imports())
    upward = {
        (room, target): where for room, target, where in found if level[target] >= level[room]
    }
    assert {pair: where for pair, where in upward.items() if pair not in EXCEPTIONS} == {}
    assert upward.keys() == EXCEPTIONS.keys(), "an exception that is not needed any more"


def test_every_room_has_a_layer_and_architecture_md_lists_the_same():
    there = {path.stem for path in SOURCE.glob("*.py")} | {
        path.parent.name for path in SOURCE.glob("*/__init__.py")
    }
    there = {"dialeval" if room == "__init__" else room for room in there}
    assert sorted(" ".join(LAYERS).split()) == sorted(there)
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| (.*?) \|", section, flags=re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [
        layer.split() for layer in reversed(LAYERS)
    ]


def test_the_walks_of_architecture_md_are_short_and_their_files_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Walks")[2].partition("\n## ")[0]
    walks = dict(re.findall(r"^\| `([\w ]+)` \| (.*?) \|", section, flags=re.MULTILINE))
    assert walks.keys() >= {"score", "train pone", "agree", "probe", "report"}
    for files in walks.values():
        found = re.findall(r"`([\w/]+\.py)`", files)
        assert len(found) <= 15
        assert [name for name in found if not (SOURCE / name).is_file()] == []
