"""FULL's choice of follow-ups on FED, reported where nothing was chosen (COLING 2022, section 5.2).

The 63 follow-ups of FED are ranked by how well each alone agrees with `Overall` there, near-
duplicates are dropped, five are kept. Then these and the authors' five are reported on FED, as the
authors did, and on data sets that had no part in the choice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import dialeval
from dialeval.agreement.correlation import Correlation
from dialeval.metrics.follow_ups import fed_qualities, load_follow_ups
from dialeval.registry import make_metric
from dialeval.run import Run
from dialeval.sample import Level, Sample
from dialeval.studies.follow_up_selection import (
    RankedFollowUp,
    agreement_of,
    rank_follow_ups,
    select_follow_ups,
)
from dialeval.studies.full_fed import CITED, MODEL_OF_THE_PAPER, PAPER
from dialeval.studies.needs import Data
from dialeval.studies.study import Findings, Measured, Published, Setting, Study, Table

LEVELS: tuple[Level, ...] = ("turn", "dialogue")
CHOSEN = 5
SHOWN = 10
HELD_OUT = {"usr-topical": "Overall", "grade-dailydialog": "coherence"}
"""Data set -> the quality to report on."""

PRINTED = {
    "Not really relevant here.": ("0.48", "0.65"),
    "You're really confusing.": ("0.46", "0.67"),
    "You're really boring.": ("0.44", "0.65"),
    "What are you trying to say?": ("0.42", "0.68"),
    "You don't seem interested.": ("0.43", "0.61"),
}
"""Follow-up -> Spearman with Overall on the turns and on the dialogues of FED (Table 3)."""


def measure(setting: Setting) -> Findings:
    fed = list(dialeval.load(setting.data["fed"] / "fed_data.json"))
    held_out = {
        name: list(dialeval.load(_place(setting.data[name])))
        for name in HELD_OUT
        if name in setting.data
    }
    measured: list[Measured] = []
    notes: list[str] = []
    tables: list[Table] = []
    of_a_model = len(fed) + sum(map(len, held_out.values()))
    total = of_a_model * len(setting.models)
    for place, model in enumerate(setting.models):
        done = place * of_a_model
        run = _score(fed, _candidates(), model, setting.after(done, total))
        ranked = rank_follow_ups(run, "Overall")
        sets = {"chosen here": select_follow_ups(ranked, CHOSEN), "FULL's five": _of_the_paper()}
        measured += [*_of_each(ranked, model), *_of_sets(run, sets, "fed", "Overall", model)]
        done += len(fed)
        for name, samples in held_out.items():
            both = list(dict.fromkeys(chain(*sets.values())))
            run = _score(samples, both, model, setting.after(done, total))
            measured += _of_sets(run, sets, name, HELD_OUT[name], model)
            done += len(samples)
        tables.append(_best(ranked, model))
        shared = len({*sets["chosen here"]} & {*sets["FULL's five"]})
        chosen = " ".join(sets["chosen here"])
        notes.append(f"{model}, chosen on FED, with {shared} of FULL's five: {chosen}")
    return Findings(measured, notes, tables)


def _place(folder: Path) -> Path:
    """USR is a file in its folder, GRADE the folder itself."""
    file = folder / "tc_usr_data.json"
    return file if file.exists() else folder


def _candidates() -> list[str]:
    """The 63 follow-ups of FED, each once."""
    both = ((*quality.positive, *quality.negative) for quality in fed_qualities())
    return list(dict.fromkeys(chain(*both)))


def _score(samples: list[Sample], texts: Sequence[str], model: str, setting: Setting) -> Run:
    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        path = Path(folder) / "follow-ups.txt"
        path.write_text("\n".join(texts), encoding="utf-8")
        return setting.score(samples, [make_metric("full", model=model, follow_ups=str(path))])


def _of_each(ranked: Sequence[RankedFollowUp], model: str) -> list[Measured]:
    """How well each follow-up of the paper's five agrees with people, alone."""
    alone = {one.text: one.agreement for one in ranked}
    return [
        _measured(_alone(text, level), found, model)
        for text in PRINTED
        for level, found in alone[text].items()
    ]


def _of_sets(
    run: Run, sets: Mapping[str, Sequence[str]], name: str, quality: str, model: str
) -> list[Measured]:
    """How well FULL with each set of follow-ups agrees with people on one data set."""
    return [
        _measured(f"{name}, {level}s: {title}", found, model)
        for title, chosen in sets.items()
        for level, found in agreement_of(run, chosen, quality).items()
    ]


def _best(ranked: Sequence[RankedFollowUp], model: str) -> Table:
    levels = tuple(level for level in LEVELS if level in ranked[0].agreement)
    rows = tuple(
        (one.text, *(one.agreement[level].value for level in levels)) for one in ranked[:SHOWN]
    )
    return Table(f"Best follow-ups on FED, {model}", ("follow-up", *levels), rows)


def _of_the_paper() -> tuple[str, ...]:
    return load_follow_ups("full").negative


def _alone(text: str, level: Level) -> str:
    return f"fed, {level}s: {text}"


def _measured(what: str, found: Correlation, model: str) -> Measured:
    comparable = model == MODEL_OF_THE_PAPER
    return Measured(what, found.value, model, found.n, found.reason, comparable)


STUDY = Study(
    name="follow-up-selection",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, section 5.2: which follow-ups tell most, and do they on other data?",
    needs=(Data("fed", ("fed_data.json",)),),
    may_use=tuple(Data(name) for name in HELD_OUT),
    models=("smollm2-135m",),
    published=tuple(
        Published(_alone(text, level), printed, "Table 3, BlenderBot", must_match=False)
        for text, numbers in PRINTED.items()
        for level, printed in zip(LEVELS, numbers, strict=True)
    ),
    differs=(
        "The authors ask BlenderBot-400M and take perplexities with the end token; here it is the"
        " total log-likelihood without one, so the numbers need not match even with that model.",
        "The authors report on FED what they chose on FED.",
    ),
    cost="15 minutes",
    measure=measure,
)
