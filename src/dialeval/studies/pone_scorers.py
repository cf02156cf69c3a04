"""The scorers of PONE's ablation: what each learns from, trained once and kept, and their picture.

    CACHE/studies/pone-ablation/DIGEST/SCORER/    what `dialeval train pone` leaves, seeds 0 to 4

DIGEST is that of everything that decides what is learned: options, data, encoder and, where a
generator writes the positives, its weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.options import split_spec
from dialeval.places import cache_directory
from dialeval.studies.study import Setting

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.training.recipes.bert_ruber import BertRuber

PAIRS, SEEDS = 15_000, 5
CORPUS = "dailydialog"
BASELINE, FULL = "BERT-RUBER", "PONE"
AUGMENTED = ("PONE-Ne-LF", "PONE-Ne", FULL)
"""Those that learn from augmented positives."""

Record = Mapping[str, Any]
"""A seed as `dialeval train pone` reports it in seeds.json."""


def variants(encoder: str, positives: str = "eda") -> dict[str, BertRuber]:
    """Returns the five scorers, by the paper's names."""
    from dialeval.training.recipes.bert_ruber import BertRuber
    from dialeval.training.recipes.pone import Pone

    # The paper's tables are of single turns: the query is the turn before.
    full = Pone(model=encoder, context="last", pairs=PAIRS, positives=positives, seeds=SEEDS)
    return {
        BASELINE: BertRuber(model=encoder, context="last", pairs=PAIRS, seeds=SEEDS),
        "PONE-Po-LF": replace(full, positives="none", filter="none"),
        "PONE-Ne-LF": replace(full, sampler="random", filter="none"),
        "PONE-Ne": replace(full, sampler="random"),
        FULL: full,
    }


def all_variants(encoder: str, positives: Sequence[str]) -> dict[str, BertRuber]:
    """Returns the five and, for each other way to make positives, the three that learn from
    them."""
    found = variants(encoder)
    for spec in positives:
        others = variants(encoder, spec)
        found |= {f"{name}{suffix(spec)}": others[name] for name in AUGMENTED}
    return found


def suffix(spec: str) -> str:
    """Returns what tells a scorer from that of the same name with EDA: `ctg:model=a/b` -> `, ctg
    b`."""
    name, options = split_spec(spec)
    return f", {name} {Path(str(options['model'])).name}" if "model" in options else f", {name}"


def check_positives(positives: Sequence[str]) -> None:
    """Complains of what cannot be made, before anything is trained."""
    from dialeval.generation.generator import load_generator
    from dialeval.training.examples.positives import generator_of, make_positives

    for spec in positives:
        model = generator_of(spec)
        if not model:
            raise UsageError(
                f"--positives {spec}: eda is in the study anyway; others are made by a generator,"
                " such as ctg:model=DIR"
            )
        make_positives(spec, [], [])
        load_generator(model)
    if len({suffix(spec) for spec in positives}) < len(positives):
        raise UsageError("--positives: two of them have the same name")


def trained(name: str, recipe: BertRuber, setting: Setting) -> Path:
    """Returns the directory of one scorer: from the cache, or trained now."""
    from dialeval.training.recipe import Progress
    from dialeval.training.run import train

    class Seeds(Progress):
        def finished(self, done: int, total: int) -> None:
            setting.progress(done, total)

    out = _place(recipe, setting) / name.lower()
    if not (out / "card.json").exists():
        train(
            replace(recipe, source=setting.source),
            setting.data[CORPUS],
            out,
            licence="CC BY-NC-SA 4.0",
            progress=Seeds(),
        )
    return out


def records(directory: Path) -> list[Record]:
    """Returns what its seeds gave."""
    found: list[Record] = json.loads((directory / "seeds.json").read_text(encoding="utf-8"))
    return found


def draw(directories: Mapping[str, Path], encoder: str, setting: Setting) -> Drawing:
    """Returns where these scorers draw the line, on the same held-out pairs."""
    import numpy as np

    from dialeval.training.examples.pair_vectors import load_pair_data
    from dialeval.training.learners.decision_boundary import draw_boundaries
    from dialeval.training.recipe import Progress
    from dialeval.training.recipes.bert_ruber import load_scorer

    recipe = replace(variants(encoder)[BASELINE], source=setting.source)
    data = load_pair_data([setting.data[CORPUS]], recipe, Progress())
    networks = {title: load_scorer(directory)[1] for title, directory in directories.items()}
    return draw_boundaries(networks, data, np.random.default_rng(0))


def _place(recipe: BertRuber, setting: Setting) -> Path:
    """Returns a folder for everything that is trained alike on the same data."""
    from dialeval.models.source import Models
    from dialeval.training.card import rated_here
    from dialeval.training.examples.pair_corpus import load_pairs
    from dialeval.training.examples.positives import generator_of

    corpus = load_pairs([setting.data[CORPUS]], recipe.context, most=recipe.pairs)
    facts = {
        "options": variants(recipe.model)[FULL].options(),
        "settings": asdict(recipe.settings()),
        "model": (setting.source or Models()).fingerprint(recipe.model),
        "corpus": corpus.digest(),
        "rated": list(rated_here()),
    }
    if generator := generator_of(recipe.positives):
        facts["positives"] = f"{recipe.positives}@{Models().fingerprint(generator)}"
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return cache_directory() / "studies" / "pone-ablation" / digest[:16]
