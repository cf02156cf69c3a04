"""The driver of all recipes: `dialeval train RECIPE --data CORPUS -o DIR`, and `dialeval.train`.

    DIR/checkpoint.safetensors   while it learns; DIR/stages/NAME/ where there are several stages
    DIR/...                      what the recipe saves
    DIR/dialeval-model.json      hashes of the saved files, compared when they are used
    DIR/card.json, card.md, curve.svg

A training that was killed is resumed by the same call. `card.json` comes last: with it the training
is finished, and nothing overwrites it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dialeval.errors import DialevalError, UsageError
from dialeval.model_store.locate import offline
from dialeval.model_store.store import RECORD, write_record
from dialeval.model_store.weights import side_files, weight_files
from dialeval.storage import locked
from dialeval.training import loop
from dialeval.training.card import Card, licence_of
from dialeval.training.recipe import Progress, Recipe, Settings
from dialeval.training.recipes import make_recipe

STAGES = "stages"

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def train(
    recipe: str | Recipe[Any],
    data: Paths,
    out: str | PathLike[str],
    *,
    licence: str | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 60.0,
    **options: Any,
) -> Card:
    """Learns a part from data, saves and measures it, and returns its card.

        dialeval.train("mme-fluency", "dailydialog", "my-fluency", epochs=3)

    recipe    by name, with its options as further arguments, or made (see `training/recipe.py`)
    data      files, folders or data sets by name
    out       the directory of the result. An unfinished training there is resumed, a finished one
              is refused
    licence   of the data, for the card; that of a data set by name is known
    """
    made = make_recipe(recipe, options)
    paths = [Path(data)] if isinstance(data, str | PathLike) else [Path(path) for path in data]
    out, progress = Path(out), progress or Progress()
    refuse_finished(out)
    with exclusive(out), offline():
        prepared = made.prepare(paths, progress)
        identity = {"recipe": made.name, "options": made.options(), **prepared.identity}
        training = Training(out, identity, progress, checkpoint_seconds)
        curve = made.learn(prepared, training)
        if made.bits == 16 and prepared.learner is not None:
            loop.round_to_half(prepared.learner)
        made.save(prepared, out)
        measured = made.measure(prepared, progress)
        agreement = made.agreement(prepared, out, progress)
        settings = made.settings()
        card = Card(
            name=out.name,
            summary=prepared.summary,
            command=made.command(paths, out, licence),
            seed=made.seed if prepared.seed is None else prepared.seed,
            base=prepared.base,
            licence=licence or licence_of(paths),
            data=prepared.data,
            settings=(asdict(settings) if settings else {}) | made.options() | prepared.config,
            scores={**measured.scores, **agreement},
            curve=curve,
            tables=measured.tables,
            by_source=measured.by_source,
        )
        card.write(out)
        forget_checkpoints(out)
    return card


@dataclass(frozen=True)
class Training:
    """The place where a recipe learns: its directory of checkpoints, and what they must match."""

    out: Path
    identity: Mapping[str, Any]
    progress: Progress
    checkpoint_seconds: float

    def stage(self, learner: loop.Learner, settings: Settings, name: str = "") -> loop.State:
        """Trains a learner to the end, or goes on from its checkpoint.

        A recipe with several stages names them. Their checkpoints stay until all are done: after a
        kill each finished stage ends at once with the weights that it had.
        """
        directory = self.out / STAGES / name if name else self.out
        settings = replace(settings, checkpoint_seconds=self.checkpoint_seconds)
        with self.progress.training() as report:
            return loop.train(learner, settings, directory, self.identity, report)


def refuse_finished(out: Path) -> None:
    """What took hours is not overwritten. A training that was killed in its last moment is brought
    to its end: record, no checkpoint."""
    if (out / "card.json").exists():
        with suppress(OSError, DialevalError), exclusive(out):
            forget_checkpoints(out)
        raise UsageError(f"{out} already holds a trained model. Choose another -o.")


def forget_checkpoints(out: Path) -> None:
    loop.forget_checkpoint(out)
    shutil.rmtree(out / STAGES, ignore_errors=True)


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Makes the directory and locks it. A record of the files is left with them, so that damage is
    found when the part is used; a directory that stays empty is removed."""
    is_new = not out.exists()
    with locked(out):
        for leftover in out.glob(".*.*.*"):  # what a killed process was writing
            leftover.unlink()
        try:
            yield
            if (out / "card.json").exists() and not (out / RECORD).exists():
                write_record(out, {}, [*weight_files(out), *side_files(out)])
        finally:
            (out / ".lock").unlink(missing_ok=True)
            if is_new and not any(out.iterdir()):
                out.rmdir()
