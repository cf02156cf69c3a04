"""The interface of a study: published numbers, a way to measure them, and a rule for "the same".

A study is one file that reads like the section of the paper it repeats: the numbers as they are
printed, with their source; the data and models that it needs; what is known to differ; and a
function `measure`. `result.py` runs it and lays what was measured beside what was published.

A published number is met if ours agrees with it to the printed digits: 0.61 is met by everything
that rounds to 0.61. Where a number was published for another model, or cannot be had from what the
authors released, it stands beside ours for comparison and nothing depends on it.

`STUDIES` lists the studies by name; `Missing` is what a study needs and this machine lacks, with
the way to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dialeval.datasets import find_dataset
from dialeval.errors import UsageError, did_you_mean
from dialeval.progress import Progress, silent

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.pictures.drawing import Drawing
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Sample


@dataclass(frozen=True)
class Data:
    """A data set by name, and the files or folders of it that are read."""

    name: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """One thing that is not here, and the command that changes that."""

    what: str
    command: str

    def __str__(self) -> str:
        return f"{self.what}: {self.command}"


def find_data(wanted: Sequence[Data]) -> dict[str, Path]:
    """Finds the folders of those data sets that are here with all files that are read."""
    found = {data.name: find_dataset(data.name) for data in wanted if not _missing_data(data)}
    return {name: folder for name, folder in found.items() if folder is not None}


def find_missing(data: Sequence[Data], models: Sequence[str]) -> list[Missing]:
    """Everything that has to be fetched or installed first."""
    missing = [lack for wanted in data for lack in _missing_data(wanted)]
    if models and find_spec("torch") is None:
        missing.append(Missing("the libraries for models", "pip install 'dialeval[models]'"))
    return missing + [lack for model in models for lack in _missing_model(model)]


def _missing_data(data: Data) -> list[Missing]:
    command = f"dialeval data get {data.name}, or DIALEVAL_DATA=DIR where it lies already"
    folder = find_dataset(data.name)
    if folder is None:
        return [Missing(f"the data set {data.name!r} is not here", command)]
    return [
        Missing(f"the data set {data.name!r} in {folder} has no {file}", command)
        for file in data.files
        if not (folder / file).exists()
    ]


def _missing_model(name: str) -> list[Missing]:
    from dialeval.model_store.locate import locate

    try:
        locate(name)
    except UsageError as error:
        # "model 'x' is not here yet. Fetch it: dialeval models get x"
        what, _, command = str(error).rpartition(". ")
        command = command.removeprefix("Fetch it: ").partition(" (")[0]
        return [Missing(what or str(error), command)]
    return []


ROUNDING = 1e-9
"""A number on the edge of the printed digits is met, whichever way the last bit fell."""


@dataclass(frozen=True)
class Published:
    """A number as it is printed, such as `0.61`, and where.

    what        what was measured; `measure` returns its number under the same words
    must_match  whether the study fails where ours differs
    tolerance   how far ours may be; None: to the printed digits
    """

    what: str
    printed: str
    source: str
    must_match: bool = True
    tolerance: float | None = None

    @property
    def value(self) -> float:
        return float(self.printed)

    @property
    def decimals(self) -> int:
        return max(0, -int(Decimal(self.printed).as_tuple().exponent))

    def is_met_by(self, ours: float) -> bool:
        half_a_digit = 0.5 * 10.0**-self.decimals
        allowed = half_a_digit if self.tolerance is None else self.tolerance
        return abs(ours - self.value) <= allowed + ROUNDING


@dataclass(frozen=True)
class Measured:
    """A number of ours.

    by          the metric, model or rule that gave it, where there are several
    value       None where it is not defined, and `reason` says why
    n           how many items it rests on
    comparable  False: not made as the published number was (another model), so it may differ
    in_table    whether people find it in a table of the study: its row is then for programs, and
                is shown only where it fails
    ran         False: nothing was run, and the published number is only quoted; `reason` says why
    """

    what: str
    value: float | None
    by: str = ""
    n: int | None = None
    reason: str = ""
    comparable: bool = True
    in_table: bool = False
    ran: bool = True


@dataclass(frozen=True)
class Table:
    """More results, where they do not fit beside published numbers. None is an undefined number.

    for_programs  everything, one number per cell: in CSV and JSON, not for people to read
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    decimals: int = 3
    for_programs: bool = False


@dataclass(frozen=True)
class Findings:
    """What `measure` returns: numbers, remarks for the reader, tables, a picture if asked for.

    published  more published numbers, where it depends on the user's sets which ones there are
    pictures  more of them, by the name of their file
    files     texts for the reader to go on with, by the name of their file
    """

    measured: Sequence[Measured]
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    drawing: Drawing | None = None
    published: Sequence[Published] = ()
    pictures: Mapping[str, Drawing] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """What a study is run with.

    data       the folders of the data sets that were found, by name
    models     the models to ask, metrics the metrics to score with: the study's own, or the user's
    source     who answers for the models; None: the models on this machine
    sets       the rated sets that the user chose among, where a study takes any
    positives  more ways to make right responses to learn from, where a study learns
    pairs, seeds  how much is learned from and how often, where a study learns; 0: its own
    corpus     the dialogues that are learned from, where a study learns; None: its own
    systems    chatbots whose answers are judged: addresses, as for `dialeval probe`
    raters     files with what people said of these answers
    sweep      whether scorers are also trained with other values of their options
    draw       whether a picture is wanted
    limit      answers of each set, drawn at random, where a study takes a part; 0: its own
    prices     of a million tokens that are sent and that come back, where a study counts tokens
    """

    data: Mapping[str, Path] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    source: ModelSource | None = None
    progress: Progress = silent
    sets: tuple[str, ...] = ()
    positives: tuple[str, ...] = ()
    draw: bool = False
    limit: int = 0
    pairs: int = 0
    seeds: int = 0
    corpus: Path | None = None
    systems: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    sweep: bool = False
    prices: tuple[float | None, float | None] = (None, None)

    def score(
        self,
        samples: Sequence[Sample],
        metrics: Sequence[str | Metric],
        out: Path | None = None,
    ) -> Run:
        """Scores samples into a run, with answers from the user's cache; kept in `out`, and taken
        from there if it was kept before."""
        import dialeval

        return dialeval.score(
            samples,
            metrics,
            out=out,
            models=self.source,
            progress=lambda done, read: self.progress(done, len(samples)),
        )

    def after(self, before: int, total: int) -> Setting:
        """Returns the setting of a later part: `before` of `total` samples were scored earlier."""
        return replace(self, progress=lambda done, _: self.progress(before + done, total))


@dataclass(frozen=True)
class Study:
    """A paper's experiment.

    paper      in full; `cited` as a text would cite it
    repeats    what is repeated, in one line
    needs      data sets without which it cannot be run
    may_use    data sets that it uses where they are here
    models     the models that it asks if nobody names others; empty: it takes none
    metrics    the metrics that it scores with if nobody names others; empty: it takes none
    asks       the models that these metrics ask
    takes_sets whether it runs on any rated set, and `--set` chooses among them
    takes_positives  whether it learns from right responses that may be made in several ways
    takes_limit  whether `--limit` says how many answers of each set are drawn
    takes_systems  whether it asks chatbots, and `-o` names a folder for all that it writes
    trains     whether it trains scorers, on what `--corpus`, `--pairs` and `--seeds` say
    takes_prices  whether it counts tokens, and `--price-in` and `--price-out` say what they cost
    draws      whether it has a picture
    differs    what is known to differ from the paper, and why
    cost       how long it takes on a CPU the first time, where that is more than seconds
    """

    name: str
    paper: str
    cited: str
    repeats: str
    measure: Callable[[Setting], Findings]
    published: tuple[Published, ...] = ()
    needs: tuple[Data, ...] = ()
    may_use: tuple[Data, ...] = ()
    models: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    takes_sets: bool = False
    takes_positives: bool = False
    takes_limit: bool = False
    takes_systems: bool = False
    trains: bool = False
    takes_prices: bool = False
    draws: bool = False
    differs: tuple[str, ...] = ()
    cost: str = ""


STUDIES = {
    "holistic-raters": "holistic_released:RATERS",
    "holistic-consistency-ws": "holistic_released:RELEASED",
    "holistic-consistency": "holistic_released",
    "holistic-tables": "holistic_tables",
    "holistic-figures": "holistic_tables:FIGURES",
    "holistic-length": "holistic_released:LENGTH",
    "ngram-entropy": "holistic_released:ENTROPY",
    "ws-substitutions": "ws_substitutions",
    "ws-consistency": "ws_substitutions:CONSISTENCY",
    "pone-bleu": "pone:BLEU",
    "pone": "pone",
    "pone-ablation": "pone_ablation",
    "comparison": "comparison",
    "dstc10-table": "mme_published:TABLE",
    "dstc10": "dstc10",
    "mme-ablation": "mme_ablation",
    "full-fed": "full:FED",
    "full-table": "full:TABLE",
    "full-follow-ups": "full:FOLLOW_UPS",
    "follow-up-selection": "follow_up_selection:SELECTION",
    "judge": "judge",
    "llm-judge": "llm_judge",
    "llm-judge-injections": "llm_judge:INJECTIONS",
    "behaviour": "behaviour",
}
"""Name -> module of this package that holds it, as `STUDY` or under the name behind the colon."""


def find_study(name: str) -> Study:
    if name not in STUDIES:
        raise UsageError(f"no study {name!r}.{did_you_mean(name, STUDIES)} See: dialeval study")
    module, _, constant = STUDIES[name].partition(":")
    found = importlib.import_module(f"dialeval.studies.{module}")
    return cast(Study, getattr(found, constant or "STUDY"))


def list_studies() -> list[Study]:
    return [find_study(name) for name in STUDIES]
