"""FULL's Table 3 and Figure 2: how much does each of the 63 follow-ups tell, with which model?

Table 3 has how well each follow-up of FED, alone, agrees with the `Overall` rating there, on turns
and on dialogues (De Bruyn et al., COLING 2022). Section 5.2 draws on it: complaints tell more than
praise (.39 and .24 on average), and five together more than each alone (.51 and .45). Figure 2 has
the mean size of the 63 correlations for each language model.

`full` is asked as the paper has it (mode=paper, total log-likelihoods) and as the authors computed
their tables (mode=released, perplexities with the end token). Only mode=released with BlenderBot-
400M has to give the printed numbers. The means over the printed table have to come out anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from dialeval.agreement.coefficient import Coefficient
from dialeval.model_store.catalogue import find_entry
from dialeval.model_store.locate import list_models
from dialeval.sample import Level
from dialeval.studies.follow_up_selection import (
    CITED,
    FIVE,
    LEVELS,
    MODEL_OF_THE_PAPER,
    PAPER,
    PRAISE,
    QUALITY,
    TABLE_3,
    Variant,
    agreement_of,
    agreement_of_each,
    score_follow_ups,
    the_five,
    variants_of,
)
from dialeval.studies.rated_runs import by_lot_at_each_level, load_rated_sets, sampling_notes
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.runs.run import Run

AS_PRINTED = "Table 3, as printed"
"""Who "measures" a mean over the authors' own numbers."""

FIGURE_2 = {
    "facebook/blenderbot-400M-distill": "BLD S",
    "facebook/blenderbot-3B": "BLD L",
    "microsoft/DialoGPT-small": "DGPT S",
    "microsoft/DialoGPT-medium": "DGPT M",
    "microsoft/DialoGPT-large": "DGPT L",
    "gpt2": "GPT2 S",
    "gpt2-medium": "GPT2 M",
    "gpt2-large": "GPT2 L",
    "gpt2-xl": "GPT2 XL",
}
"""Model -> its name under the bars."""

Agreement = Mapping[str, Mapping[Level, Coefficient]]
"""Follow-up -> level -> how well it agrees with people, alone."""


def measure_table_3(setting: Setting) -> Findings:
    variants = variants_of(setting, "full-follow-ups", takes_candidates=False)
    fed = by_lot_at_each_level(load_rated_sets(["fed"])[0], setting.limit)
    whole = not fed.whole
    printed = {
        text: {level: Coefficient(float(r), 0) for level, r in zip(LEVELS, both, strict=True)}
        for text, both in TABLE_3.items()
    }
    measured = [*_means(printed, AS_PRINTED, comparable=True)]
    sizes = {(FIGURE_2[MODEL_OF_THE_PAPER] + ", " + AS_PRINTED): _mean_sizes(printed)}
    notes = sampling_notes([fed])
    tables = []
    for place, variant in enumerate(variants):
        asked = list(dict.fromkeys([*TABLE_3, *variant.score]))
        done, total = place * len(fed.samples), len(variants) * len(fed.samples)
        run = score_follow_ups(fed.samples, asked, variant, setting.after(done, total))
        found = agreement_of_each(run, QUALITY, list(TABLE_3))
        comparable = variant.is_as_published and whole
        measured += _of_each(found, variant, comparable)
        measured += _means(found, variant.by, comparable)
        measured += _together(run, variant, comparable)
        tables.append(_table_3(found, variant, comparable))
        sizes[variant.by] = _mean_sizes(found)
        notes += run.table().signatures
    counts = {level: sum(s.level == level for s in fed.samples) for level in LEVELS}
    notes.append(_chance(counts))
    entries = [find_entry(variant.model) for variant in variants]  # by name or by hub id
    tables.append(_figure_2_table(sizes, {entry.name for entry in entries if entry}))
    drawing = _figure_2(sizes, counts) if setting.draw else None
    return Findings(measured, list(dict.fromkeys(notes)), tables, drawing)


def _of_each(found: Agreement, variant: Variant, comparable: bool) -> Iterator[Measured]:
    few = Coefficient(None, 0, reason="fewer than three rated samples")
    for text, own in found.items():
        for level in LEVELS:
            r = own.get(level, few)
            what = f"{level}s: {text}"
            yield Measured(what, r.value, variant.by, r.n, r.reason, comparable, in_table=True)


def _means(found: Agreement, by: str, comparable: bool) -> Iterator[Measured]:
    """What section 5.2 and 5.3 say about the follow-ups as a whole."""
    complaints = [text for text in found if text not in PRAISE]
    groups = {
        _mean_of("negative"): complaints,
        _mean_of("positive"): [text for text in found if text in PRAISE],
        _mean_of(FIVE): list(the_five()),
    }
    for level in LEVELS:
        for what, texts in groups.items():
            values = _values(found, texts, level)
            mean = fmean(values) if values else None
            yield Measured(f"{level}s: {what}", mean, by, comparable=comparable)
        values = _values(found, list(found), level)
        best = max(values, key=abs, default=None)
        yield Measured(f"{level}s: {BEST}", best, by, comparable=comparable)


BEST = "the best single follow-up"


def _mean_of(which: str) -> str:
    return f"mean of {which}" if which == FIVE else f"mean of the {which} follow-ups"


def _together(run: Run, variant: Variant, comparable: bool) -> Iterator[Measured]:
    """FULL itself: what its follow-ups tell together."""
    for level, r in agreement_of(run, variant.score, QUALITY).items():
        yield Measured(f"{level}s: {TOGETHER}", r.value, variant.by, r.n, r.reason, comparable)


TOGETHER = "FULL's follow-ups together"


def _values(found: Agreement, texts: Sequence[str], level: Level) -> list[float]:
    numbers = (found[text][level].value for text in texts if level in found[text])
    return [number for number in numbers if number is not None]


def _mean_sizes(found: Agreement) -> dict[Level, float | None]:
    sizes = {level: [abs(r) for r in _values(found, list(found), level)] for level in LEVELS}
    return {level: fmean(values) if values else None for level, values in sizes.items()}


def _table_3(found: Agreement, variant: Variant, comparable: bool) -> Table:
    """All rows, as printed beside ours; in the order of the paper."""
    rows = []
    for text, printed in TABLE_3.items():
        cells: list[str | float | None] = [text, "pos" if text in PRAISE else "neg"]
        cells[1] = f"{cells[1]}, X" if text in the_five() else cells[1]
        for level, number in zip(LEVELS, printed, strict=True):
            r = found[text].get(level)
            cells += [float(number), r.value if r else None]
        rows.append(tuple(cells))
    binding = "must match" if comparable else "need not match"
    return Table(
        f"Table 3 (X: one of FULL's five), {variant.by}: ran; the numbers {binding}",
        ("follow-up", "type", "turn, published", "ours", "dialogue, published", "ours"),
        tuple(rows),
    )


def _chance(counts: Mapping[Level, int]) -> str:
    told = ", ".join(f"{_chance_size(n):.3f} on {n} {level}s" for level, n in counts.items() if n)
    return f"Unrelated numbers would have a mean size of about {told}: sqrt(2 / (pi (n - 1)))"


def _chance_size(n: int) -> float:
    """Returns the mean of |r| where nothing is related: r is about normal with variance 1 / (n -
    1)."""
    return math.sqrt(2 / (math.pi * (n - 1))) if n > 1 else 1.0


def _figure_2_table(sizes: Mapping[str, Mapping[Level, float | None]], asked: set[str]) -> Table:
    """Every bar; then the models of Figure 2 and other language models that were not asked."""
    rows: list[tuple[str | float | None, ...]] = [
        (
            by,
            "quoted: recomputed from Table 3" if by.endswith(AS_PRINTED) else "ran",
            *(own[level] for level in LEVELS),
        )
        for by, own in sizes.items()
    ]
    kinds = ("causal-lm", "seq2seq-lm")
    listed = {model.name: model for model in list_models() if model.role in kinds}
    others = [name for name, model in listed.items() if model.is_here and name not in FIGURE_2]
    for name in (*FIGURE_2, *others):
        if name not in asked:
            told = f"{FIGURE_2[name]}: {name}" if name in FIGURE_2 else name
            way = (
                f"here, not asked: --model {name}"
                if listed[name].is_here
                else f"not here: dialeval models get {name}; the paper has a bar and no number"
            )
            rows.append((told, way, None, None))
    header = ("language model", "state", "turns", "dialogues")
    return Table("Figure 2: mean size of the 63 correlations", header, tuple(rows))


def _figure_2(
    sizes: Mapping[str, Mapping[Level, float | None]], counts: Mapping[Level, int]
) -> Drawing:
    from dialeval.pictures.charts import Bar, bar_chart

    words = {"turn": "per turn", "dialogue": "entire dialogue"}
    bars = [
        Bar(by, own[level], group=words[level]) for by, own in sizes.items() for level in LEVELS
    ]
    return bar_chart(
        bars,
        title="Mean size of the correlations of 63 follow-ups with people (FULL, Figure 2)",
        x_label="mean |Spearman| with Overall, FED",
        note=_chance(counts),
    )


TABLE = Study(
    name="full-follow-ups",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, Table 3 and Figure 2: each of the 63 follow-ups alone, with any language models",
    needs=(Data("fed", ("fed_data.json",)),),
    models=("smollm2-135m",),
    metrics=("full:mode=released", "full"),
    takes_limit=True,
    draws=True,
    published=(
        Published(f"turns: {_mean_of('negative')}", "0.39", "section 5.2"),
        Published(f"turns: {_mean_of('positive')}", "0.24", "section 5.2"),
        Published(f"turns: {_mean_of(FIVE)}", "0.45", "section 5.3"),
        Published(f"turns: {BEST}", "0.48", "section 5.2"),
        Published(f"dialogues: {BEST}", "0.70", "section 5.2"),
        Published(f"turns: {TOGETHER}", "0.51", "Table 2"),
        Published(f"dialogues: {TOGETHER}", "0.69", "Table 2"),
        *(
            Published(f"{level}s: {text}", number, "Table 3")
            for text, both in TABLE_3.items()
            for level, number in zip(LEVELS, both, strict=True)
        ),
    ),
    differs=(
        f"Numbers of ours must match with --model {MODEL_OF_THE_PAPER}, mode released and without"
        " --limit only. The means over Table 3, as printed, must match in any case.",
        "FULL's follow-ups together are five in mode paper and, because a comma is missing in the"
        " package that made Table 2, four in mode released.",
        "The paper has the bars of Figure 2 and no numbers. Those of BlenderBot 400M (BLD S) follow"
        " from Table 3; the others can only be measured.",
        'Table 1 has .57 for the dialogues of "I am so confused right now."; Table 3, used here,'
        " has .60.",
    ),
    cost="half an hour a model; --limit 60: five minutes",
    measure=measure_table_3,
)
