"""PONE's experiments, from chatbots to its tables: answers, ratings, correlations.

    dialeval study pone --systems bots/* -o tables/                      1. asks, draws the answers
    dialeval rate tables/answers.jsonl --qualities ...                   2. people rate them, 1 to 6
    dialeval study pone --systems bots/* --raters ratings.db -o tables/  3. makes the tables

Systems answer the queries of DailyDialog's test dialogues (`--corpus`: of others, which scorers
learn from too); 100 answers of each are drawn, 300 where a system reads more than one turn. Where
there are no such ratings, `--set` makes the same tables of any rated set: each set is a column
then, as each system is otherwise.

    Table 1   do the raters agree? kappa          Table 6   four answers with all scores
    Table 2   every metric, overall quality       Table 7   what the components of PONE add
    Table 3   every metric, single qualities      Table 8   the same where there are several turns
    Table 4   weighted and random negatives       Table 9   positives by EDA and by a generator

Tables 7 to 9 train scorers, which are kept (`pone_scorers.py`). `--sweep` trains more of them, for
tables and pictures of t and k.

`pone-bleu` repeats what the paper calls BLEU for its four case studies, to six digits. Table 6
prints four digits and shortened texts; the notebook that the authors released has the texts that
were scored, and six digits. `bleu:mode=released` says what is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.registry import make_metric
from dialeval.sample import Sample
from dialeval.studies import pone_scorers
from dialeval.studies.comparison import SHOWN
from dialeval.studies.pone_scorers import (
    BASELINE,
    CORPUS,
    FULL,
    Sizes,
    all_trained,
    all_variants,
    answers_to_rate,
    check_positives,
    scores_of,
    suffix,
)
from dialeval.studies.pone_tables import (
    RULES,
    SWEEPS,
    TABLE_2,
    TABLE_3,
    TABLE_7,
    TABLE_8,
    TABLE_9,
    Column,
    PrintedTable,
    Scores,
    aspects_of,
    average_gain,
    cases_table,
    cell_of,
    columns_by_system,
    columns_of,
    complete_table,
    correlation_table,
    kappa_table,
    mean_over,
    negatives_table,
    sweep_table,
    undefined,
)
from dialeval.studies.rated_runs import load_rated_sets, sampling_notes, unusable
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.models.pair_scorer import ContextRule
    from dialeval.pictures.drawing import Drawing
    from dialeval.training.recipes.ruber import BertRuber

ROWS = {
    "ROUGE": "rouge:mode=released",
    "BLEU-1": "bleu:mode=released,n=1",
    "BLEU-2": "bleu:mode=released,n=2",
    "BLEU-3": "bleu:mode=released,n=3",
    "BLEU-4": "bleu:mode=released",
    "METEOR": "meteor",
    "EA": "embedding-average:mode=released",
    "VX": "vector-extrema:mode=released",
    "GM": "greedy-matching:mode=released",
    "BERTScore": "bertscore",
    "RUBER": "ruber:blend=unreferenced",
}
"""Rows of Tables 2 and 3 -> the metric as the authors' code computes it."""

BY_EDA = "PONE EDA"
"""The row of Table 9 whose positives EDA makes."""

PRINTED_SYSTEM = "Seq2Seq-attn Dailydialog"
"""The only one of which Table 3 is printed."""

TEMPERATURES = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0)
NUMBERS_OF_POSITIVES = (1, 3, 5, 7, 9)


def measure(setting: Setting) -> Findings:
    if bool(setting.sets) == bool(setting.systems or setting.raters):
        raise UsageError(
            "say whose answers are judged: --systems bots/* (and --raters FILE once people have"
            " rated them), or --set with a rated set"
        )
    if setting.systems and not setting.raters:
        return answers_to_rate(setting)
    check_positives(setting.positives)
    columns, notes = _columns(setting)
    return _tables(columns, notes, setting)


def _columns(setting: Setting) -> tuple[list[Column], list[str]]:
    import dialeval

    if setting.sets:
        sets = load_rated_sets(setting.sets, setting.limit)
        return columns_of(sets), sampling_notes(sets)
    samples = [
        sample
        for path in setting.raters
        for sample in dialeval.load(path)
        if any(rating.mean is not None for rating in sample.ratings.values())
    ]
    where = ", ".join(setting.raters)
    if not samples:
        raise UsageError(f"--raters {where}: nobody has rated anything yet")
    wanted = [Path(address).name for address in setting.systems]
    known = {sample.system for sample in samples}
    if missing := [name for name in wanted if name not in known]:
        there = ", ".join(sorted(name or "(no name)" for name in known))
        raise UsageError(
            f"--raters {where}: no rated answers of {', '.join(missing)}. It has those of: {there}"
        )
    chosen = [sample for sample in samples if not wanted or sample.system in wanted]
    return columns_by_system(chosen, where), []


def _tables(columns: Sequence[Column], notes: list[str], setting: Setting) -> Findings:
    rows, left_out = _metrics(setting)
    scorers = _Scorers(setting, any(column.is_multi_turn for column in columns))
    by_column: dict[str, dict[str, Sequence[float | None]]] = {}
    for column in columns:
        found: dict[str, Sequence[float | None]] = {}
        if rows:
            run = setting.after(0, 0).score(column.samples, list(rows.values()))
            found = {name: list(run.scores(metric.label)) for name, metric in rows.items()}
        for name, directory in scorers.directories.items():
            found[name] = scores_of(directory, column.samples, setting)
        by_column[column.name] = found
    tables = [kappa_table(columns)]

    def add(title: str, names: Sequence[str], printed: PrintedTable, multi: bool = False) -> None:
        for column in columns:
            if column.is_multi_turn or not multi:
                scores = by_column[column.name]
                tables.append(correlation_table(title, column, column.main, names, scores, printed))

    single = [*rows, BASELINE]
    add("Table 2", single, TABLE_2)
    for column in columns:
        for quality in aspects_of(column):
            beside = {PRINTED_SYSTEM: TABLE_3.get(quality.lower(), {})}
            scores = by_column[column.name]
            tables.append(correlation_table("Table 3", column, quality, single, scores, beside))
    tables.append(negatives_table(setting))
    tables.append(cases_table(columns[0], by_column[columns[0].name]))
    add("Table 7", ["BERTScore", *scorers.single], TABLE_7)
    by_rule = [name for name in scorers.directories if name.endswith(RULES)]
    add("Table 8", ["BERTScore", *by_rule], TABLE_8, multi=True)
    add("Table 9", ["BERTScore", BASELINE, BY_EDA, *scorers.full[1:]], TABLE_9)
    measured = [_gain(name, columns, by_column) for name in scorers.full]
    pictures: dict[str, Drawing] = {}
    if setting.sweep:
        for name, lines in _sweeps(columns, setting, notes).items():
            tables.append(sweep_table(name, lines, SWEEPS[name]))
            pictures[f"sweep-{name}.svg"] = _draw_sweep(name, lines)
    if not setting.positives:
        notes.append(
            "Positives are those of EDA; in the paper, Tables 7 and 8 and the average gain have"
            " those of Seq2Seq. Train a generator (dialeval train seq2seq --turns 1 ...) and add"
            " --positives ctg:model=DIR for such rows"
        )
    notes += [
        "largest: over the raters, with the smallest p, as in the paper; mean: with the mean"
        " rating",
        *left_out,
    ]
    return Findings(measured, notes, [*tables, complete_table(tables)], pictures=pictures)


class _Scorers:
    """What was trained for Tables 7 to 9, by the names of their rows.

    single  rows of Table 7, whose query is the turn before
    full    those with all components, by what makes the positives: EDA first
    """

    def __init__(self, setting: Setting, multi_turn: bool) -> None:
        encoder, sizes = setting.models[0], Sizes.of(setting, seeds=1)
        recipes = all_variants(encoder, setting.positives, sizes)
        self.single = list(recipes)
        self.full = [FULL, *(FULL + suffix(spec) for spec in setting.positives)]
        rules: tuple[ContextRule, ...] = ("sum", "weighted") if multi_turn else ()
        for rule in rules:
            others = all_variants(encoder, setting.positives, sizes, rule)
            recipes |= {f"{name}, {rule}": recipe for name, recipe in others.items()}
        self.directories = all_trained(recipes, setting)
        self.directories[BY_EDA] = self.directories[FULL]


def _metrics(setting: Setting) -> tuple[dict[str, Metric], list[str]]:
    """Returns the metrics by their rows, and why some are left out."""
    specs = {name: spec for name, spec in ROWS.items() if spec in setting.metrics}
    specs |= {spec: spec for spec in setting.metrics if spec not in specs.values()}
    metrics = {name: make_metric(spec) for name, spec in specs.items()}
    left_out = {} if setting.source else unusable(list(metrics.values()))
    usable = {name: one for name, one in metrics.items() if one.label not in left_out}
    return usable, list(left_out.values())


GAIN = "average gain of PONE over BERT-RUBER"


def _gain(name: str, columns: Sequence[Column], by_column: Mapping[str, Scores]) -> Measured:
    """Returns what a scorer gains, on average over Pearson and Spearman by the paper's rule."""
    found: list[tuple[float, float]] = []
    for column in columns:
        before, after = (
            cell_of(by_column[column.name][one], column, column.main).largest
            for one in (BASELINE, name)
        )
        both = [(before[one].value, after[one].value) for one in SHOWN]
        found += [(one, other) for one, other in both if one is not None and other is not None]
    value = average_gain(found) if found else None
    by = f"{BY_EDA if name == FULL else name}; Pearson and Spearman, largest over the raters"
    reason = "" if found else "no correlation is defined"
    return Measured(GAIN, value, by, len(found), reason, comparable=False)


def _sweeps(
    columns: Sequence[Column], setting: Setting, notes: list[str]
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Returns how well PONE agrees with people, over t and over k: the mean over the columns, of
    correlations with the mean rating. What is undefined counts as 0, and a note says so."""
    from dialeval.training.recipes.ruber import Pone

    full = pone_scorers.variants(setting.models[0], sizes=Sizes.of(setting, seeds=1))[FULL]
    assert isinstance(full, Pone)
    # As the authors did: t with the negatives alone, k with everything.
    sampled = replace(full, positives="none", filter="none")
    steps: dict[str, list[tuple[float, BertRuber]]] = {
        "t": [(t, replace(sampled, temperature=t)) for t in TEMPERATURES],
        "k": [(float(k), replace(full, variants=k)) for k in NUMBERS_OF_POSITIVES],
    }
    found = {}
    for name, points in steps.items():
        lines: dict[str, list[tuple[float, float]]] = {_line(one): [] for one in SHOWN}
        recipes = {f"{name}={value:g}": recipe for value, recipe in points}
        directories = all_trained(recipes, setting)
        for (value, _), directory in zip(points, directories.values(), strict=True):
            cells = [
                cell_of(scores_of(directory, column.samples, setting), column, column.main).mean
                for column in columns
            ]
            if count := undefined(cells):
                notes.append(
                    f"sweep, {name} = {value:g}: {count} correlations are undefined (the scorer"
                    " gives all answers one score, or the raters do) and count as 0"
                )
            for one, mean in mean_over(cells).items():
                if mean is not None:
                    lines[_line(one)].append((value, mean))
        found[name] = lines
    return found


def _line(coefficient: str) -> str:
    return f"ours, {coefficient[0].upper()}"


def _draw_sweep(name: str, ours: Mapping[str, list[tuple[float, float]]]) -> Drawing:
    from dialeval.pictures import line_chart

    title = {"t": "Temperature of the sampler", "k": "Positives for each query"}[name]
    return line_chart(
        {**ours, **SWEEPS[name]},
        title=title,
        x_label=name,
        y_label="correlation with people",
        note="P: Pearson, S: Spearman. Released: Xiaohuangji with EDA, DailyDialog with Seq2Seq.",
        log_x=name == "t",
    )


STUDY = Study(
    name="pone",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="PONE, Tables 1 to 9, on answers of your chatbots and ratings of your raters",
    needs=(Data(CORPUS, ("train", "validation", "test")),),
    models=("minilm-l6",),
    metrics=tuple(ROWS.values()),
    takes_sets=True,
    takes_positives=True,
    takes_limit=True,
    takes_systems=True,
    trains=True,
    published=(Published(GAIN, "0.1318", "section 3.4.5, from Table 7", False),),
    differs=(
        "Ratings, answers and systems of the authors were not released: chatbots are trained again"
        " (dialeval train seq2seq), on DailyDialog unless --corpus names another corpus.",
        "Scorers learn from 15,000 pairs instead of 45 000 (--pairs) and read an encoder of 384"
        " dimensions instead of BERT (--model); one seed (--seeds).",
        "Positives in Tables 7 and 8 are those of EDA. In the paper they are those of Seq2Seq,"
        " which --positives ctg:model=DIR adds.",
        "The rows of BLEU, ROUGE, EA, VX and GM are what the authors' code computes; METEOR is ours"
        " in place of METEOR 1.5.",
    ),
    cost="80 minutes of one core, the first time; --pairs 150: 3 minutes",
    measure=measure,
)


BLEU_SOURCE = "released notebook; Table 6 prints four digits"
BLEU_CASES = {
    "0.255528": (
        "Let's line up . The steak is very inviting . I'll have it .",
        "I didn \N{RIGHT SINGLE QUOTATION MARK} t know that . That sounds pretty good ."
        " Can you come here for a few minutes ?",
    ),
    "0.232523": (
        "Can you operate computers skillfully ?",
        "So you don't have a printer in the box ?",
    ),
    "0.198792": (
        "My name is Dunlin and I live in Beijing . I was born in 1980 . I will graduate from"
        " Peking University this July . I have majored in accounting .",
        "Thank you very much .",
    ),
    "0.192591": (
        "You should go get yours .",
        "Yes , it is . Let's go and have a drink .",
    ),
}
"""Published BLEU-4 -> reference, response."""


def measure_bleu(setting: Setting) -> Findings:
    measured = []
    for mode in ("released", "paper"):
        metric = make_metric("bleu", mode=mode)
        for number, (reference, response) in enumerate(BLEU_CASES.values(), 1):
            sample = Sample(id=str(number), response=response, references=(reference,))
            score = metric.score(sample, ())
            released = mode == "released"
            value = None if score.value is None else score.value / (1 if released else 100)
            ours = Measured(_bleu_case(number), value, f"bleu, {mode}", comparable=released)
            measured.append(ours)
    return Findings(measured)


def _bleu_case(number: int) -> str:
    return f"case {number}: BLEU-4"


BLEU = Study(
    name="pone-bleu",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="PONE, Table 6: BLEU of four responses",
    published=tuple(
        Published(_bleu_case(number), printed, BLEU_SOURCE)
        for number, printed in enumerate(BLEU_CASES, 1)
    ),
    differs=(
        "The released code passes the words of the reference where references are expected, so"
        " letters are matched with words. BLEU as it is defined is shown beside it, from 0 to 1.",
    ),
    measure=measure_bleu,
)
