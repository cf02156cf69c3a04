"""PONE's ablation (Tables 7 and 8): what does each component add to BERT-RUBER?

Five scorers are trained on DailyDialog, each with seeds 0 to 4, and held against people on the
rated sets that are here, or on those that `--set` names. Nothing is chosen by them. The comparison
is between seeds: a component helps if it does so by more than the seeds differ. People among each
other and BERTScore stand beside the scorers, as in the paper.

Augmented positives are made by EDA. The paper's own are the beams of a Seq2Seq model, which has to
be trained first: `--positives ctg:model=DIR` adds the three scorers that learn from positives once
more, with those (`dialeval train seq2seq`).

What was trained is kept in the cache: a second run only reads it, a killed one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from dialeval.errors import UsageError
from dialeval.runs.table import count
from dialeval.studies import pone_scorers
from dialeval.studies.comparison import SHOWN
from dialeval.studies.pone_scorers import (
    AUGMENTED,
    BASELINE,
    CORPUS,
    FULL,
    PAIRS,
    STEPS,
    Sizes,
    all_trained,
    all_variants,
    check_positives,
    scores_of,
    seed_directories,
    suffix,
    validation_accuracies,
)
from dialeval.studies.pone_tables import (
    HUMAN_MAX,
    TABLE_7,
    Cell,
    Column,
    cell_of,
    columns_of,
    mean_over,
    people_of,
    undefined,
)
from dialeval.studies.rated_runs import LoadedSet, load_rated_sets, unusable
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

COEFFICIENTS = SHOWN
PRINTED_COLUMN = "Seq2Seq-attn Dailydialog"
PRINTED_NAMES = {"bertscore": "BERTScore"}

PARTS = {
    "weighted negatives": (BASELINE, "PONE-Po-LF"),
    "augmented positives": (BASELINE, "PONE-Ne-LF"),
    "label filter": ("PONE-Ne-LF", "PONE-Ne"),
    "weighted negatives, given the rest": ("PONE-Ne", FULL),
    "all of PONE": (BASELINE, FULL),
}
"""Component -> without it, with it."""


@dataclass(frozen=True)
class Seed:
    """A trained scorer, on all columns."""

    accuracy: float
    cells: Mapping[str, Cell]

    def average(self, coefficient: str, largest: bool = False) -> float:
        """Returns the mean correlation over the columns; an undefined one counts as 0."""
        found = [cell.largest if largest else cell.mean for cell in self.cells.values()]
        return mean_over(found)[coefficient] or 0.0


def rated_columns(setting: Setting) -> list[Column]:
    """Returns the sets that `--set` names, or those whose exchanges no training learns from."""
    import dialeval
    from dialeval.training.card import rated_here
    from dialeval.training.recipe import RATED

    if setting.sets:
        return columns_of(load_rated_sets(setting.sets))
    found = []
    for name, quality in rated_here().items():
        samples = [one for one in dialeval.load(name) if quality in one.ratings]
        (column,) = columns_of([LoadedSet(name, tuple(samples))])
        found.append(Column(name, column.samples, (quality,), quality))
    if not found:
        raise UsageError(
            f"the study needs at least one rated set: {', '.join(RATED)}, or any by --set"
        )
    return found


def measure(setting: Setting) -> Findings:
    check_positives(setting.positives)
    columns = rated_columns(setting)
    sizes = Sizes.of(setting)
    measured = _people(columns)
    tables: list[Table] = []
    others, notes = _other_metrics(columns, setting)
    measured += others
    drawing = None
    chosen = [(model, all_variants(model, setting.positives, sizes)) for model in setting.models]
    total = STEPS * sizes.seeds * sum(len(options) for _, options in chosen)
    done = 0
    for model, options in chosen:
        places = all_trained(options, setting.after(done, total))
        done += STEPS * sizes.seeds * len(options)
        found = {name: _seeds(place, columns, setting) for name, place in places.items()}
        suffixes = ("", *map(suffix, setting.positives))
        measured += [row for name in found for row in _measured(name, found[name], model)]
        tables += [_by_set(found, model), _components(found, model, suffixes)]
        notes += [_verdict(found, model, FULL + end) for end in suffixes]
        notes += _collapsed(found)
        if setting.draw and drawing is None:
            shown = {name: places[name] for name in (BASELINE, FULL)}
            drawing = pone_scorers.draw(shown, options[BASELINE], setting)
    return Findings(measured, notes, [*tables, _printed(measured)], drawing)


def _collapsed(found: Mapping[str, Sequence[Seed]]) -> Iterator[str]:
    """Yields what counts as 0 because it is undefined."""
    for name, seeds in found.items():
        if count := undefined([cell.mean for seed in seeds for cell in seed.cells.values()]):
            yield (
                f"{name}: {count} correlations are undefined (the scorer gives all answers one"
                " score, or the raters do) and count as 0"
            )


def _seeds(directory: Path, columns: Sequence[Column], setting: Setting) -> list[Seed]:
    found = []
    scorers = seed_directories(directory)
    for scorer, accuracy in zip(scorers, validation_accuracies(directory), strict=True):
        cells = {
            column.name: cell_of(scores_of(scorer, column.samples, setting), column, column.main)
            for column in columns
        }
        found.append(Seed(accuracy, cells))
    return found


def _people(columns: Sequence[Column]) -> list[Measured]:
    found = [people_of(column, column.main)[1] for column in columns]
    return [
        Measured(
            _what(HUMAN_MAX, name),
            mean_over(found)[name],
            f"mean over {len(columns)} sets",
            sum(len(column.rated(column.main)) for column in columns),
            "" if mean_over(found)[name] is not None else "no two raters to compare",
            comparable=False,
        )
        for name in COEFFICIENTS
    ]


def _other_metrics(columns: Sequence[Column], setting: Setting) -> tuple[list[Measured], list[str]]:
    """Correlations of metrics that are not trained here, and why some are left out."""
    from dialeval.registry import make_metrics

    metrics = make_metrics(setting.metrics)
    left_out = {} if setting.source else unusable(metrics)
    usable = [metric for metric in metrics if metric.label not in left_out]
    if not usable:
        return [], list(left_out.values())
    by_metric: dict[str, list[Cell]] = {metric.label: [] for metric in usable}
    for column in columns:
        run = setting.after(0, 0).score(column.samples, usable)
        for metric in usable:
            scores = list(run.scores(metric.label))
            by_metric[metric.label].append(cell_of(scores, column, column.main))
    measured = []
    for label, cells in by_metric.items():
        scored = [cell.mean for cell in cells if cell.mean["spearman"].n]
        for name in COEFFICIENTS:
            measured.append(
                Measured(
                    _what(PRINTED_NAMES.get(label, label), name),
                    mean_over(scored)[name],
                    f"mean over {len(scored)} of {len(columns)} sets",
                    sum(one[name].n for one in scored),
                    "" if scored else "no set has what the metric needs",
                    comparable=False,
                )
            )
    return measured, list(left_out.values())


def _what(name: str, coefficient: str) -> str:
    return f"{name}: {coefficient.capitalize()}"


def _measured(name: str, seeds: Sequence[Seed], model: str) -> list[Measured]:
    cells = seeds[0].cells.values()
    return [
        Measured(
            _what(name, coefficient),
            fmean(seed.average(coefficient) for seed in seeds),
            f"{model}, mean over {count(len(seeds), 'seed')} and {count(len(cells), 'set')}",
            sum(cell.mean["spearman"].n for cell in cells),
            comparable=False,
        )
        for coefficient in COEFFICIENTS
    ]


def _by_set(found: Mapping[str, Sequence[Seed]], model: str) -> Table:
    sets = list(found[BASELINE][0].cells)

    def both(values: Sequence[float]) -> tuple[float, float | None]:
        return fmean(values), stdev(values) if len(values) > 1 else None

    def row(name: str, seeds: Sequence[Seed]) -> tuple[str | float | None, ...]:
        by_set = [
            both([seed.cells[rated].mean["spearman"].value or 0.0 for seed in seeds])
            for rated in sets
        ]
        return (
            name,
            *(value for pair in by_set for value in pair),
            *both([seed.average("spearman") for seed in seeds]),
            fmean(seed.average("spearman", largest=True) for seed in seeds),
            fmean(seed.accuracy for seed in seeds),
        )

    header = [word for rated in sets for word in (rated, "sd")]
    return Table(
        f"Spearman with people, mean and standard deviation over the seeds, {model}",
        ("scorer", *header, "average", "sd", "largest over raters", "validation accuracy"),
        tuple(row(name, seeds) for name, seeds in found.items()),
    )


def _components(found: Mapping[str, Sequence[Seed]], model: str, suffixes: Sequence[str]) -> Table:
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
                stdev(differences) if len(differences) > 1 else None,
            )
        )
    return Table(
        f"What each component adds to the average Spearman, {model}",
        ("component", "from -> to", "seeds that gain", "gain", "sd"),
        tuple(rows),
    )


def _printed(measured: Sequence[Measured]) -> Table:
    """All four columns of Table 7 as printed, after our mean over the sets."""
    ours: dict[str, Any] = {}
    for one in measured:
        ours.setdefault(one.what, one.value)
    rows: list[tuple[str | float | None, ...]] = []
    for name in TABLE_7[PRINTED_COLUMN]:
        cells = [TABLE_7[column][name] for column in TABLE_7]
        printed = [value for cell in cells for value in (cell.pearson, cell.spearman)]
        rows.append((name, *(ours.get(_what(name, one)) for one in COEFFICIENTS), *printed))
    header = [f"{column}, {letter}" for column in TABLE_7 for letter in ("P", "S")]
    return Table(
        "Table 7 as printed, after our mean over the rated sets (P: Pearson, S: Spearman)",
        ("scorer", "ours, P", "ours, S", *header),
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


def _differences(found: Mapping[str, Sequence[Seed]], without: str, using: str) -> list[float]:
    pairs = zip(found[without], found[using], strict=True)
    return [after.average("spearman") - before.average("spearman") for before, after in pairs]


def _verdict(found: Mapping[str, Sequence[Seed]], model: str, name: str) -> str:
    differences = _differences(found, BASELINE, name)
    gain, better = fmean(differences), sum(difference > 0 for difference in differences)
    if len(differences) < 2:
        return f"{model}: {name} against BERT-RUBER: {gain:+.3f} Spearman, of one seed."
    spread = stdev(differences)
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
    metrics=("bertscore",),
    takes_sets=True,
    takes_positives=True,
    trains=True,
    draws=True,
    published=tuple(
        Published(
            _what(name, coefficient),
            f"{getattr(cell, coefficient):.3f}",
            f"Table 7, {PRINTED_COLUMN}",
            False,
        )
        for name, cell in TABLE_7[PRINTED_COLUMN].items()
        for coefficient in SHOWN
    ),
    differs=(
        "The authors' 100 rated answers were not released: ours are the mean over other rated sets,"
        " of the correlation with the mean rating. Theirs is the maximum over three raters.",
        f"{PAIRS:,} pairs to learn from instead of 45 000, an encoder of 384 dimensions instead of"
        " BERT, and variants by EDA instead of Seq2Seq. --pairs and --seeds change the sizes,"
        " --model takes any encoder, --positives ctg:model=DIR what a generator writes.",
    ),
    cost="30 minutes",
    measure=measure,
)
