"""PONE's ablation (Tables 7 and 8): what does each component add to BERT-RUBER?

Five scorers are trained on DailyDialog, each with seeds 0 to 4, and held against people on the
rated sets that are here. Nothing is chosen by them. The comparison is between seeds: a component
helps if it does so by more than the seeds differ.

What was trained is kept in the cache: a second run only reads it, a killed one goes on.
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
from dialeval.places import cache_directory
from dialeval.studies.needs import Data
from dialeval.studies.study import Findings, Measured, Published, Setting, Study, Table

if TYPE_CHECKING:
    from dialeval.training.fit_pair_scorer import PairScorerOptions
    from dialeval.training.loop import Settings

PAIRS, SEEDS = 15_000, 5
CORPUS = "dailydialog"
BASELINE, FULL = "BERT-RUBER", "PONE"
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

Record = Mapping[str, Any]
"""A seed as `train_pair_scorer` reports it in seeds.json."""


def variants(encoder: str) -> dict[str, PairScorerOptions]:
    """The five scorers, by the paper's names."""
    from dialeval.training.fit_pair_scorer import PairScorerOptions

    full = PairScorerOptions(encoder=encoder, pairs=PAIRS)
    random, unfiltered = replace(full.sampler, name="random"), replace(full.filter, mode="none")
    return {
        BASELINE: full.as_bert_ruber(),
        "PONE-Po-LF": replace(full, positives="none", filter=unfiltered),
        "PONE-Ne-LF": replace(full, sampler=random, filter=unfiltered),
        "PONE-Ne": replace(full, sampler=random),
        FULL: full,
    }


def scorer_settings_of(epochs: int = 100) -> Settings:
    """How each of them is trained."""
    from dialeval.training.train_pair_scorer import scorer_settings

    return scorer_settings(epochs)


def measure(setting: Setting) -> Findings:
    from dialeval.training.rated_agreement import RATED

    if not any(name.partition("/")[0] in setting.data for name in RATED):
        raise UsageError(f"the study needs at least one rated set: {', '.join(RATED)}")
    measured: list[Measured] = []
    tables: list[Table] = []
    notes: list[str] = []
    chosen = [(model, variants(model)) for model in setting.models]
    total = sum(len(options) for _, options in chosen) * SEEDS
    done = 0
    for model, options in chosen:
        found: dict[str, list[Record]] = {}
        for name, one in options.items():
            found[name] = _trained(name, one, setting.after(done, total))
            done += SEEDS
            setting.progress(done, total)
        measured += [row for name in found for row in _measured(name, found[name], model)]
        tables += [_by_set(found, model), _components(found, model)]
        notes.append(_verdict(found, model))
    return Findings(measured, notes, tables)


def _trained(name: str, options: PairScorerOptions, setting: Setting) -> list[Record]:
    """What the seeds of one scorer gave: from the cache, or trained now."""
    from dialeval.training.train_pair_scorer import train_pair_scorer

    out = _place(options, setting) / name.lower()
    if not (out / "card.json").exists():
        train_pair_scorer(
            [setting.data[CORPUS]],
            out,
            options=options,
            settings=scorer_settings_of(),
            seeds=SEEDS,
            licence="CC BY-NC-SA 4.0",
            source=setting.source,
            finished=lambda seeds: setting.progress(seeds, SEEDS),
        )
    records: list[Record] = json.loads((out / "seeds.json").read_text(encoding="utf-8"))
    return records


def _place(options: PairScorerOptions, setting: Setting) -> Path:
    """A folder for everything that is trained alike on the same data."""
    from dialeval.models.source import Models
    from dialeval.training.pair_corpus import load_pairs, rated_sets_here

    rated = rated_sets_here()
    corpus = load_pairs([setting.data[CORPUS]], options.context, most=options.pairs, rated=rated)
    full = variants(options.encoder)[FULL]
    facts = {
        "options": asdict(full),
        "settings": asdict(scorer_settings_of()),
        "seeds": SEEDS,
        "model": (setting.source or Models()).fingerprint(options.encoder),
        "corpus": corpus.digest(),
        "rated": rated,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return cache_directory() / "studies" / "pone-ablation" / digest[:16]


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


def _components(found: Mapping[str, Sequence[Record]], model: str) -> Table:
    """Differences seed by seed: the same seed starts from the same weights."""
    rows: list[tuple[str | float | None, ...]] = []
    for part, (without, using) in PARTS.items():
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


def _differences(found: Mapping[str, Sequence[Record]], without: str, using: str) -> list[float]:
    pairs = zip(
        averages(found[without], "spearman"), averages(found[using], "spearman"), strict=True
    )
    return [after - before for before, after in pairs]


def _verdict(found: Mapping[str, Sequence[Record]], model: str) -> str:
    differences = _differences(found, BASELINE, FULL)
    gain, spread = fmean(differences), stdev(differences)
    better = sum(difference > 0 for difference in differences)
    says = "beats" if gain > 0 else "does not beat"
    return (
        f"{model}: PONE {says} BERT-RUBER on average over the rated sets: {gain:+.3f} Spearman,"
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
    published=tuple(
        Published(_what(name, coefficient), printed, "Table 7, Seq2Seq-attn on DailyDialog", False)
        for name, both in PRINTED.items()
        for coefficient, printed in zip(COEFFICIENTS, both, strict=True)
    ),
    differs=(
        "The authors' 100 rated answers were not released: ours are the mean over other rated sets,"
        " of the correlation with the mean rating. Theirs is the maximum over three raters.",
        f"{PAIRS:,} pairs to learn from instead of 45 000, an encoder of 384 dimensions instead of"
        " BERT, and variants by EDA instead of Seq2Seq. --model takes any encoder.",
    ),
    cost="30 minutes",
    measure=measure,
)
