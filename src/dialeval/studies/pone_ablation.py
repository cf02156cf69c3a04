"""PONE's ablation (Tables 7 and 8): what does each component add to BERT-RUBER?

Five scorers are trained on DailyDialog, each with seeds 0 to 4, and held against people on the
rated sets that are here. Nothing is chosen by them. The comparison is between seeds: a component
helps if it does so by more than the seeds differ.

Augmented positives are made by EDA. The paper's own are the beams of a Seq2Seq model, which has to
be trained first: `--positives ctg:model=DIR` adds the three scorers that learn from positives once
more, with those (`dialeval train seq2seq`).

What was trained is kept in the cache: a second run only reads it, a killed one goes on.

The scorers of PONE's ablation: what each learns from, trained once and kept, and their picture.

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
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.options import split_spec
from dialeval.storage import cache_directory
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

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
    from dialeval.training.examples.sampling import generator_of, make_positives

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
        """Reports the trainings that are finished."""

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
    from dialeval.training.examples.sampling import generator_of

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


COEFFICIENTS = ("pearson", "spearman")

PRINTED = {
    BASELINE: ("0.400", "0.426"),
    "PONE-Po-LF": ("0.417", "0.429"),
    "PONE-Ne-LF": ("0.504", "0.513"),
    "PONE-Ne": ("0.511", "0.508"),
    FULL: ("0.513", "0.505"),
}
"""Pearson and Spearman, overall quality of Seq2Seq-attn on DailyDialog (Table 7)."""

PARTS = {
    "weighted negatives": (BASELINE, "PONE-Po-LF"),
    "augmented positives": (BASELINE, "PONE-Ne-LF"),
    "label filter": ("PONE-Ne-LF", "PONE-Ne"),
    "weighted negatives, given the rest": ("PONE-Ne", FULL),
    "all of PONE": (BASELINE, FULL),
}
"""Component -> without it, with it."""


def measure(setting: Setting) -> Findings:
    from dialeval.training.recipe import RATED

    if not any(name.partition("/")[0] in setting.data for name in RATED):
        raise UsageError(f"the study needs at least one rated set: {', '.join(RATED)}")
    check_positives(setting.positives)
    measured: list[Measured] = []
    tables: list[Table] = []
    notes: list[str] = []
    drawing = None
    chosen = [(model, all_variants(model, setting.positives)) for model in setting.models]
    total = sum(len(options) for _, options in chosen) * SEEDS
    done = 0
    for model, options in chosen:
        places: dict[str, Path] = {}
        for name, one in options.items():
            places[name] = trained(name, one, setting.after(done, total))
            done += SEEDS
            setting.progress(done, total)
        found = {name: records(place) for name, place in places.items()}
        suffixes = ("", *map(suffix, setting.positives))
        measured += [row for name in found for row in _measured(name, found[name], model)]
        tables += [_by_set(found, model), _components(found, model, suffixes)]
        notes += [_verdict(found, model, FULL + end) for end in suffixes]
        if setting.draw and drawing is None:
            shown = {name: places[name] for name in (BASELINE, FULL)}
            drawing = draw(shown, model, setting)
    return Findings(measured, notes, tables, drawing)


def averages(records: Sequence[Record], coefficient: str) -> list[float]:
    """Per seed the mean correlation over the rated sets; an undefined one counts as 0."""
    return [
        fmean(found[coefficient] or 0.0 for found in record["agreement"].values())
        for record in records
    ]


def _what(name: str, coefficient: str) -> str:
    return f"{name}: {coefficient.capitalize()}"


def _measured(name: str, records: Sequence[Record], model: str) -> list[Measured]:
    items = sum(found["n"] for found in records[0]["agreement"].values())
    return [
        Measured(
            _what(name, coefficient),
            fmean(averages(records, coefficient)),
            f"{model}, mean over {len(records)} seeds and {len(records[0]['agreement'])} sets",
            items,
            comparable=False,
        )
        for coefficient in COEFFICIENTS
    ]


def _by_set(found: Mapping[str, Sequence[Record]], model: str) -> Table:
    sets = list(found[BASELINE][0]["agreement"])

    def cells(records: Sequence[Record], name: str) -> tuple[float, float]:
        values = [record["agreement"][name]["spearman"] or 0.0 for record in records]
        return fmean(values), stdev(values)

    rows: list[tuple[str | float | None, ...]] = [
        (
            name,
            *(value for rated in sets for value in cells(records, rated)),
            fmean(averages(records, "spearman")),
            stdev(averages(records, "spearman")),
            fmean(record["accuracy"]["validation"] for record in records),
        )
        for name, records in found.items()
    ]
    header = [word for rated in sets for word in (rated, "sd")]
    return Table(
        f"Spearman with people, mean and standard deviation over the seeds, {model}",
        ("scorer", *header, "average", "sd", "validation accuracy"),
        tuple(rows),
    )


def _components(
    found: Mapping[str, Sequence[Record]], model: str, suffixes: Sequence[str]
) -> Table:
    """Differences seed by seed: the same seed starts from the same weights."""
    rows: list[tuple[str | float | None, ...]] = []
    for part, without, using in _parts(suffixes):
        differences = _differences(found, without, using)
        better = sum(difference > 0 for difference in differences)
        rows.append(
            (
                part,
                f"{without} -> {using}",
                f"{better} of {len(differences)}",
                fmean(differences),
                stdev(differences),
            )
        )
    return Table(
        f"What each component adds to the average Spearman, {model}",
        ("component", "from -> to", "seeds that gain", "gain", "sd"),
        tuple(rows),
    )


def _parts(suffixes: Sequence[str]) -> list[tuple[str, str, str]]:
    """(component, without it, with it), for each way to make positives."""

    def own(name: str, end: str) -> str:
        return name + end if name in AUGMENTED else name

    return [
        (part + end, own(without, end), own(using, end))
        for end in suffixes
        for part, (without, using) in PARTS.items()
        if not end or using in AUGMENTED
    ]


def _differences(found: Mapping[str, Sequence[Record]], without: str, using: str) -> list[float]:
    pairs = zip(
        averages(found[without], "spearman"), averages(found[using], "spearman"), strict=True
    )
    return [after - before for before, after in pairs]


def _verdict(found: Mapping[str, Sequence[Record]], model: str, name: str) -> str:
    differences = _differences(found, BASELINE, name)
    gain, spread = fmean(differences), stdev(differences)
    better = sum(difference > 0 for difference in differences)
    says = "is worse than" if gain < -spread else "is about as good as"
    if gain > spread:
        says = "beats"
    return (
        f"{model}: {name} {says} BERT-RUBER on average over the rated sets: {gain:+.3f} Spearman,"
        f" standard deviation {spread:.3f}, higher with {better} of {len(differences)} seeds."
    )


STUDY = Study(
    name="pone-ablation",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="PONE, Table 7: BERT-RUBER, and PONE without some of its components",
    needs=(Data(CORPUS, ("train", "validation", "test")),),
    may_use=(
        Data("usr-topical"),
        Data("grade-dailydialog"),
        Data("fed"),
        Data("engage"),
        Data("holistic"),
    ),
    models=("minilm-l6",),
    takes_positives=True,
    draws=True,
    published=tuple(
        Published(_what(name, coefficient), printed, "Table 7, Seq2Seq-attn on DailyDialog", False)
        for name, both in PRINTED.items()
        for coefficient, printed in zip(COEFFICIENTS, both, strict=True)
    ),
    differs=(
        "The authors' 100 rated answers were not released: ours are the mean over other rated sets,"
        " of the correlation with the mean rating. Theirs is the maximum over three raters.",
        f"{PAIRS:,} pairs to learn from instead of 45 000, an encoder of 384 dimensions instead of"
        " BERT, and variants by EDA instead of Seq2Seq. --model takes any encoder, --positives"
        " ctg:model=DIR the beams of a generator.",
    ),
    cost="30 minutes",
    measure=measure,
)
