"""Which follow-ups tell most? FULL's experiment (De Bruyn et al., COLING 2022, section 5.2).

The authors ranked the 63 follow-ups of FED by the absolute correlation of each alone with people,
added the ranks of turns and dialogues, removed close duplicates, kept five, and reported on the
data that they had chosen them on. Here choosing and reporting take a run each:

    candidates = "all.txt"                                   # one follow-up per line
    fit = dialeval.score(dialeval.load("set-a.json"), [f"full:follow_ups={candidates}"])
    report = dialeval.score(dialeval.load("set-b.json"), [f"full:follow_ups={candidates}"])
    ranked = rank_follow_ups(fit, "Overall")
    chosen = select_follow_ups(ranked, 5, closeness([one.text for one in ranked]))
    agreement_of(report, chosen, "Overall")

A run of `full` holds the likelihood of every follow-up as a part, so nothing is asked again.

A follow-up may rank high because people like what it is likely after ("I like you!"). It then
counts with a minus, so that a chosen set always points upwards on the data it was chosen on.

The study follow-up-selection does so with any candidates and any sets: the first set is the one to
choose on, the authors' five stand beside the chosen ones, on it and on the other sets. `Variant` is
what its numbers are made with: `full` as the paper has it (mode=paper, total log-likelihoods) or as
the authors computed their tables (mode=released, perplexities with the end token).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.errors import UsageError
from dialeval.metrics.follow_ups import load_follow_ups
from dialeval.options import split_spec
from dialeval.registry import make_metric
from dialeval.studies.rated_runs import (
    LoadedSet,
    by_lot_at_each_level,
    load_rated_sets,
    main_quality,
    sampling_notes,
)
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

if TYPE_CHECKING:
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Level, Sample

PAPER = (
    "De Bruyn, Lotfi, Buhmann, Daelemans: Open-Domain Dialog Evaluation using Follow-Ups"
    " Likelihood. COLING 2022"
)
CITED = "De Bruyn et al., COLING 2022"
MODEL_OF_THE_PAPER = "facebook/blenderbot-400M-distill"
QUALITY = "Overall"

FIVE = "FULL's five"
"""The follow-ups that the authors kept."""


def _read_table_3() -> dict[str, tuple[str, str, str]]:
    """Follow-up -> turn, dialogue, type."""
    place = resources.files("dialeval.studies").joinpath("full_table_3.tsv")
    rows = (line.split("\t") for line in place.read_text("utf-8").splitlines()[1:])
    return {text: (turn, dialogue, kind) for turn, dialogue, kind, text in rows}


TABLE_3 = {text: (turn, dialogue) for text, (turn, dialogue, _) in _read_table_3().items()}
"""Follow-up -> Spearman with Overall on the turns and on the dialogues of FED, as printed."""

PRAISE = frozenset(text for text, row in _read_table_3().items() if row[2] == "pos")
"""21 of the 63; the others are complaints."""

ENCODER = "minilm-l6"
"""The model whose vectors say which follow-ups mean the same."""

NEAR_DUPLICATE = 0.6
"""Two follow-ups whose vectors have this cosine say the same. The pair that the authors name as
duplicates ("Not really relevant here.", "That's not really relevant here.") has .90; no two of the
five that they kept have more than .47. On their Table 3 every bound from .48 to .67 gives the same
choice."""

LEVELS: tuple[Level, ...] = ("turn", "dialogue")

Closeness = Callable[[str, str], float]
"""How near two follow-ups are in meaning, up to 1."""


@dataclass(frozen=True)
class RankedFollowUp:
    """A follow-up and how well its unlikelihood agrees with people, by level of the samples."""

    text: str
    agreement: Mapping[Level, float | None]
    rank: int
    """Sum of its places over the levels: 2 is best of both turns and dialogues."""

    @property
    def sign(self) -> int:
        """-1 where people rate higher what makes this follow-up likely."""
        return -1 if math.fsum(value or 0.0 for value in self.agreement.values()) < 0 else 1


def rank_follow_ups(run: Run, quality: str, among: Sequence[str] = ()) -> list[RankedFollowUp]:
    """Returns the follow-ups of a run (or those `among` them), best first.

    A level counts where at least three samples of it have ratings.
    """
    found = agreement_of_each(run, quality, among)
    if not any(found.values()):
        raise UsageError(f"no sample of {run.directory} has a rating of {quality!r}")
    return rank_by_agreement(
        {text: {level: r.value for level, r in own.items()} for text, own in found.items()}
    )


def agreement_of_each(
    run: Run, quality: str, among: Sequence[str] = ()
) -> dict[str, dict[Level, Coefficient]]:
    """Returns how well each follow-up of a run (or of those `among` them), alone, agrees with
    people; only levels of which at least three samples have ratings."""
    texts = list(among) or _follow_ups(run)
    rows = _rows(run, texts, quality)
    agreement: dict[str, dict[Level, Coefficient]] = {text: {} for text in texts}
    for level in LEVELS:
        ratings = [rating for found, rating, _ in rows if found == level]
        if sum(rating is not None for rating in ratings) < 3:
            continue
        for i, text in enumerate(texts):
            values = [parts[i] for found, _, parts in rows if found == level]
            agreement[text][level] = spearman(values, ratings)
    return agreement


def rank_by_agreement(
    agreement: Mapping[str, Mapping[Level, float | None]],
) -> list[RankedFollowUp]:
    """Best first: by the sum of places over the levels, each by absolute correlation.

    Equal correlations share the better place (1, 2, 2, 4). Of two follow-ups with the same sum the
    one that is better on turns comes first, as in the tables of the paper; FED has three times as
    many turns as dialogues, so that is also the better estimate.
    """
    sizes = {
        text: tuple(_size(found.get(level)) for level in LEVELS)
        for text, found in agreement.items()
    }
    ranked = [
        RankedFollowUp(text, found, sum(_places(sizes, text))) for text, found in agreement.items()
    ]
    return sorted(ranked, key=lambda one: (one.rank, *(-size for size in sizes[one.text])))


def closeness(texts: Iterable[str], source: ModelSource | None = None) -> Closeness:
    """Cosines between the vectors of these texts, by the embedded sentence encoder."""
    import numpy as np

    from dialeval.models.source import Models
    from dialeval.question import Embed

    distinct = list(dict.fromkeys(texts))
    model = (source or Models()).load(ENCODER)
    answers = dict(model.answer([Embed(ENCODER, text) for text in distinct]))
    vectors = np.array([answers[i] for i in range(len(distinct))], dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = dict(zip(distinct, vectors, strict=True))
    return lambda one, other: float(found[one] @ found[other])


def select_follow_ups(
    ranked: Sequence[RankedFollowUp], k: int, closeness: Closeness, near: float = NEAR_DUPLICATE
) -> dict[str, int]:
    """Returns the k best that are not near-duplicates of a better one, each with its sign."""
    chosen: dict[str, int] = {}
    for candidate in ranked:
        if len(chosen) == k:
            break
        if all(closeness(candidate.text, other) < near for other in chosen):
            chosen[candidate.text] = candidate.sign
    return chosen


def agreement_of(run: Run, follow_ups: Mapping[str, int], quality: str) -> dict[Level, Coefficient]:
    """Returns how well FULL with these follow-ups alone, each with its sign, agrees with people."""
    if unknown := set(follow_ups) - set(_follow_ups(run)):
        raise UsageError(f"the run {run.directory} did not ask about {sorted(unknown)[0]!r}")
    rows = _rows(run, list(follow_ups), quality)
    signs = list(follow_ups.values())
    found: dict[Level, Coefficient] = {}
    for level in dict.fromkeys(row[0] for row in rows):
        of_level = [(rating, parts) for found_level, rating, parts in rows if found_level == level]
        totals = [
            None
            if None in parts
            else math.fsum(sign * (part or 0.0) for sign, part in zip(signs, parts, strict=True))
            for _, parts in of_level
        ]
        found[level] = spearman(totals, [rating for rating, _ in of_level])
    return found


def _size(value: float | None) -> float:
    """Returns the key of an order in which undefined correlations come last."""
    return -1.0 if value is None else abs(value)


def _places(sizes: Mapping[str, Sequence[float]], text: str) -> list[int]:
    """Its place on each level, from 1: one more than the number of follow-ups that are better."""
    return [
        1 + sum(others[level] > own for others in sizes.values())
        for level, own in enumerate(sizes[text])
    ]


def _full_label(run: Run) -> str:
    labels = [metric["label"] for metric in run.manifest["metrics"] if metric["name"] == "full"]
    if len(labels) != 1:
        raise UsageError(f"the run {run.directory} must hold the metric 'full' once")
    return str(labels[0])


def _follow_ups(run: Run) -> list[str]:
    label = _full_label(run)
    (metric,) = [metric for metric in run.manifest["metrics"] if metric["label"] == label]
    return [part["name"] for part in metric["parts"]]


def _rows(
    run: Run, texts: Sequence[str], quality: str
) -> list[tuple[Level, float | None, list[float | None]]]:
    """Level, mean rating and the value of each follow-up, for every sample."""
    label = _full_label(run)
    columns = [f"{label}.{text}" for text in texts]
    rows: list[tuple[Level, float | None, list[float | None]]] = []
    for batch in run.batches(["response", "ratings", *columns]):
        for row in batch.to_pylist():
            values = dict(row["ratings"]).get(quality, _SILENCE)["values"]
            given = [value for value in values if value is not None]
            rating = math.fsum(given) / len(given) if given else None
            level: Level = "dialogue" if row["response"] is None else "turn"
            rows.append((level, rating, [row[column] for column in columns]))
    return rows


_SILENCE: dict[str, list[float]] = {"values": []}


# Section 5.2 as a study.


def the_five() -> tuple[str, ...]:
    return load_follow_ups("full").negative


@dataclass(frozen=True)
class Variant:
    """`full` in one mode with one model.

    texts  the follow-ups that the user brings as candidates; empty: the 63 of FED
    """

    by: str
    mode: str
    model: str
    options: Mapping[str, Any]
    texts: tuple[str, ...] = ()

    @property
    def is_as_published(self) -> bool:
        return (self.mode, self.model) == ("released", MODEL_OF_THE_PAPER)

    @property
    def of_the_paper(self) -> dict[str, dict[str, int]]:
        """In released mode also the four of the package, two of which a missing comma joined."""
        sets = {FIVE: dict.fromkeys(the_five(), 1)}
        if self.mode == "released":
            sets["FULL's package"] = dict.fromkeys(load_follow_ups("full-released").negative, 1)
        return sets

    @property
    def score(self) -> dict[str, int]:
        """The follow-ups that give the score of FULL in this mode."""
        return list(self.of_the_paper.values())[-1]


def variants_of(setting: Setting, study: str, takes_candidates: bool) -> list[Variant]:
    """Each metric with its own model, or with all of the setting."""
    found = []
    for spec in setting.metrics:
        name, options = split_spec(spec)
        if name != "full" or ("follow_ups" in options and not takes_candidates):
            raise UsageError(
                f"the study {study!r} looks at the follow-ups of the metric 'full': {spec!r} cannot"
                " take its place. Give full or full:mode=released"
            )
        texts = load_follow_ups(str(options["follow_ups"])).all if "follow_ups" in options else ()
        models = [str(options["model"])] if "model" in options else setting.models
        kept: dict[str, Any] = {
            key: value for key, value in options.items() if key not in ("model", "follow_ups")
        }
        told = ",".join(f"{key}={value}" for key, value in kept.items())
        for model in models:
            mode = str(make_metric("full", model=model, **kept).mode)  # type: ignore[attr-defined]
            by = f"full:{told}, {model}" if told else f"full, {model}"
            found.append(Variant(by, mode, model, kept, texts))
    return found


def score_follow_ups(
    samples: Sequence[Sample], texts: Sequence[str], variant: Variant, setting: Setting
) -> Run:
    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        path = Path(folder) / "follow-ups.txt"
        path.write_text("\n".join(texts), encoding="utf-8")
        options = {**variant.options, "model": variant.model, "follow_ups": str(path)}
        return setting.score(samples, [make_metric("full", **options)])


CHOSEN = 5
SHOWN = 10
SETS = ("fed", "usr-topical", "grade-dailydialog")
"""The first is the one to choose on."""

FROM_TABLE_3 = "FULL's five among those that the rule chooses from Table 3"


def measure_selection(setting: Setting) -> Findings:
    variants = variants_of(setting, "follow-up-selection", takes_candidates=True)
    sets = _sets(setting)
    first = sets[0]
    near = closeness(chain(TABLE_3, *(variant.texts for variant in variants)), setting.source)
    measured = [_on_table_3(near)]
    notes = [*sampling_notes(sets)]
    tables = []
    of_one = sum(len(rated.samples) for rated in sets)
    for place, variant in enumerate(variants):
        done, total = place * of_one, of_one * len(variants)
        candidates = variant.texts or tuple(TABLE_3)
        asked = list(dict.fromkeys([*candidates, *chain(*variant.of_the_paper.values())]))
        run = score_follow_ups(first.samples, asked, variant, setting.after(done, total))
        ranked = rank_follow_ups(run, main_quality(first.samples), list(candidates))
        chosen = select_follow_ups(ranked, CHOSEN, near)
        compared = {"chosen here": chosen, **variant.of_the_paper}
        measured += _of_each_of_the_five(run, first, variant)
        measured += _of_sets(run, compared, first, variant)
        done += len(first.samples)
        for rated in sets[1:]:
            texts = list(dict.fromkeys(chain(*compared.values())))
            run = score_follow_ups(rated.samples, texts, variant, setting.after(done, total))
            measured += _of_sets(run, compared, rated, variant)
            done += len(rated.samples)
        tables.append(_best(ranked, first, variant))
        shared = len({*chosen} & {*the_five()})
        told = " ".join(text if sign > 0 else f"(-) {text}" for text, sign in chosen.items())
        notes.append(f"{variant.by}, chosen on {first.name}, with {shared} of FULL's five: {told}")
    return Findings(measured, notes, tables)


def _sets(setting: Setting) -> list[LoadedSet]:
    """The user's sets, the first to choose on; or FED, and what is here of the others."""
    names = setting.sets or [name for name in SETS if name in setting.data]
    return [by_lot_at_each_level(rated, setting.limit) for rated in load_rated_sets(names)]


def _on_table_3(near: Closeness) -> Measured:
    """Returns what the rule makes of the numbers that the authors printed."""
    printed = {
        text: {level: float(number) for level, number in zip(LEVELS, numbers, strict=True)}
        for text, numbers in TABLE_3.items()
    }
    chosen = select_follow_ups(rank_by_agreement(printed), CHOSEN, near)
    return Measured(FROM_TABLE_3, len({*chosen} & {*the_five()}))


def _of_each_of_the_five(run: Run, rated: LoadedSet, variant: Variant) -> list[Measured]:
    found = agreement_of_each(run, main_quality(rated.samples), the_five())
    return [
        Measured(f"{rated.name}, {level}s: {text}", r.value, variant.by, r.n, r.reason, False)
        for text, own in found.items()
        for level, r in own.items()
    ]


def _of_sets(
    run: Run, compared: Mapping[str, Mapping[str, int]], rated: LoadedSet, variant: Variant
) -> list[Measured]:
    """Returns how well FULL with each set of follow-ups agrees with people on one data set."""
    return [
        Measured(f"{rated.name}, {level}s: {title}", r.value, variant.by, r.n, r.reason, False)
        for title, chosen in compared.items()
        for level, r in agreement_of(run, chosen, main_quality(rated.samples)).items()
    ]


def _best(ranked: Sequence[RankedFollowUp], rated: LoadedSet, variant: Variant) -> Table:
    levels = tuple(level for level in LEVELS if level in ranked[0].agreement)
    rows = tuple((one.text, *(one.agreement[level] for level in levels)) for one in ranked[:SHOWN])
    return Table(f"Best follow-ups on {rated.name}, {variant.by}", ("follow-up", *levels), rows)


SELECTION = Study(
    name="follow-up-selection",
    paper=PAPER,
    cited=CITED,
    repeats="FULL, section 5.2: which follow-ups tell most, and do they on other data?",
    needs=(Data("fed", ("fed_data.json",)),),
    may_use=tuple(Data(name) for name in SETS[1:]),
    models=("smollm2-135m",),
    metrics=("full", "full:mode=released"),
    asks=(ENCODER,),
    takes_sets=True,
    takes_limit=True,
    published=(
        Published(FROM_TABLE_3, "5", "section 5.2", tolerance=1),
        *(
            Published(f"fed, {level}s: {text}", printed, "Table 3, BlenderBot", must_match=False)
            for text in the_five()
            for level, printed in zip(LEVELS, TABLE_3[text], strict=True)
        ),
    ),
    differs=(
        'From Table 3 the rule of the paper gives four of its five: "I want to talk about something'
        ' else." ranks before "You don\'t seem interested." and is nobody\'s duplicate. The authors'
        ' kept follow-ups "making intuitive sense", a choice that no rule repeats.',
        "The authors ask BlenderBot-400M and take perplexities with the end token: mode=released."
        " By default the total log-likelihood without one stands beside it.",
        "The authors report on FED what they chose on FED. The first --set is the one to choose on,"
        " the others report; candidates of your own: -m full:follow_ups=FILE.",
    ),
    cost="half an hour; --limit 60: ten minutes",
    measure=measure_selection,
)
