"""`dialeval.agree` and `dialeval.raters`: metrics against people, people against each other.

dialeval.agree("runs/a")                                # a run keeps the ratings of its data
dialeval.agree("ratings.csv", scores=["scores.csv"])    # scores are joined to ratings by id
dialeval.agree("ratings.db")                            # what `dialeval rate` collected on runs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.metric_ranking import MetricRanking, TestName, rank_metrics
from dialeval.agreement.rated import RatedLevel, Target, rated_run, rated_samples
from dialeval.agreement.raters import QualityRaters, rater_reports
from dialeval.agreement.relations import Relations
from dialeval.agreement.relations import relations as relate
from dialeval.agreement.significance import CoefficientName
from dialeval.agreement.sources import (
    known_directions,
    load_ratings,
    read_all_scores,
    remarks,
    some_rated,
)
from dialeval.agreement.table import AgreementRow, By, agreement_rows
from dialeval.agreement.text_tables import (
    agreement_csv,
    agreement_table,
    paper_tables,
    ranking_notes,
    ranking_tables,
    rater_remarks,
    rater_table,
    relations_table,
)
from dialeval.errors import UsageError
from dialeval.limits import USUAL
from dialeval.metric import Direction
from dialeval.progress import Progress, usual_progress
from dialeval.readers.source import is_database
from dialeval.remote import located
from dialeval.runs.run import Run, is_run, open_run
from dialeval.tables import TextTable, html_of, write_tables

if TYPE_CHECKING:
    from dialeval.pictures import Drawing

INTERVAL_ROUNDS, TEST_ROUNDS = 1000, 9999
"""The default numbers of resampling rounds, for intervals and for PERM-BOTH."""


@dataclass(frozen=True)
class Agreement:
    """The result of `agree`. Iterating over it gives the rows.

    rows       one for each metric, quality and level
    rankings   with `test`: the metrics of each quality in order, and the tests of all pairs
    relations  with `relations`, in place of rows: metrics and qualities among themselves
    remarks    the first warning about the file of ratings, if there is one
    signatures  of the metrics that runs measured
    """

    rows: tuple[AgreementRow, ...] = ()
    rankings: tuple[MetricRanking, ...] | None = None
    relations: tuple[Relations, ...] | None = None
    remarks: str = ""
    levels: tuple[RatedLevel, ...] = field(default=(), repr=False)
    metrics: tuple[str, ...] = field(default=(), repr=False)
    signatures: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[AgreementRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> AgreementRow:
        return self.rows[place]

    def to_record(self) -> Any:
        """Returns what `dialeval agree --json` prints."""
        if self.relations is not None:
            return [one.to_record() for one in self.relations]
        rows = [row.to_record() for row in self.rows]
        if self.rankings is None:
            return rows
        return {"rows": rows, "tests": [ranking.to_record() for ranking in self.rankings]}

    def tables(self) -> list[TextTable]:
        """Returns what the screen shows: rows, or relations; then rankings and the tests of all
        pairs."""
        if self.relations is not None:
            return [relations_table(one) for one in self.relations]
        ranked = [table for one in self.rankings or () for table in ranking_tables(one)]
        if self.rankings:
            ranked[-1] = replace(ranked[-1], notes=ranking_notes(self.rankings[0]))
        return [agreement_table(self.rows), *ranked]

    def save(self, path: str | Path) -> None:
        """Writes the table of a paper (.tex, .md, .html), or all numbers (.csv)."""
        place = Path(path)
        if place.suffix.lower() == ".csv" and self.relations is None:
            write_tables([agreement_csv(self.rows)], place)
        elif self.relations is not None:
            write_tables(self.tables(), place)
        else:
            write_tables([*paper_tables(self.rows, self.signatures), *self.tables()[1:]], place)

    def _repr_html_(self) -> str:
        return html_of(self.tables())

    def plot(self, scatter: bool = False) -> Drawing:
        """Matrices of relations; a scatter plot of one row, or with `scatter` of each row; bars."""
        from dialeval.agreement.drawings import draw_agreement, draw_relations

        if self.relations is not None:
            return draw_relations(self.relations)
        return draw_agreement(self.levels, self.rows, self.metrics, scatter)


def agree(
    *sources: Run | str | Path,
    scores: Sequence[str | Path] = (),
    lower_is_better: Sequence[str] = (),
    qualities: Sequence[str] = (),
    metrics: Sequence[str] = (),
    by: By = "turn",
    target: str = "mean",
    test: TestName | None = None,
    coefficient: CoefficientName | None = None,
    relations: bool = False,
    rounds: int | None = None,
    seed: int = 0,
    workers: int = 1,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    largest_record: int = USUAL,
    progress: Progress | None = None,
) -> Agreement:
    """Measures how well metrics agree with the qualities that people rated.

    sources     runs, databases of `dialeval rate`, or with `scores` one file of ratings (or a run)
    scores      runs or tables whose scores are joined to the ratings by id
    target      "mean", "rater:NAME", "rater:2" or "max-over-raters"
    test        test each pair of metrics on the same samples, "williams" or "perm-both"
    coefficient  of `test` and `relations`: "pearson" (default of "williams") or "spearman"
    relations   correlate metrics with each other and qualities with each other instead
    rounds      number of resampling rounds; 1000 for intervals (0 disables them), 9999 for a test
    format, columns, ratings, scales, largest_record    how to read the file of ratings, as in
                `dialeval.load`

    `lower_is_better` and the options of the file need `scores`. Neither `workers` nor `progress`
    changes a number.
    """
    options = {
        "--lower-is-better": lower_is_better,
        "--format": format,
        "--map": columns,
        "--rating": ratings,
        "--scale": scales,
        "--largest-record": largest_record != USUAL,
    }
    chosen, remark = Target.parse(target), ""
    progress = progress or usual_progress("relating" if relations else "correlating")
    if not scores:
        _refuse_options(options)
        levels = [
            one
            for source in sources
            for one in _rated_levels(source, chosen, qualities, needs_scores=not relations)
        ]
    else:
        if len(sources) != 1:
            raise UsageError("--scores takes one file of ratings; name the scores of each in turn")
        files = [Path(path) for path in scores]
        (rated,) = (one.directory if isinstance(one, Run) else one for one in sources)
        samples = load_ratings(
            [rated],
            format=format,
            columns=columns,
            ratings=ratings,
            scales=scales,
            largest_record=largest_record,
        )
        lower: dict[str, Direction] = dict.fromkeys(lower_is_better, "lower")
        values = read_all_scores(files, largest_record)
        levels = rated_samples(
            some_rated(samples),
            values,
            chosen,
            qualities,
            dataset=", ".join(samples.formats),
            directions=known_directions(files, values) | lower,
        )
        remark = remarks(samples)
    if relations:
        related = relate(
            levels, coefficient or "spearman", metrics=metrics, by=by, progress=progress
        )
        return Agreement(relations=tuple(related), remarks=remark, levels=tuple(levels))
    shared: dict[str, Any] = {"metrics": metrics, "by": by, "seed": seed, "workers": workers}
    shared |= {"progress": progress}
    rows = agreement_rows(levels, rounds=INTERVAL_ROUNDS if rounds is None else rounds, **shared)
    rankings = None
    if test:
        how: dict[str, Any] = {"coefficient": coefficient, "rounds": rounds or TEST_ROUNDS}
        rankings = tuple(rank_metrics(levels, test, **how, **shared))
    return Agreement(
        tuple(rows),
        rankings,
        None,
        remark,
        tuple(levels),
        tuple(metrics),
        _signatures(scores or sources),
    )


@dataclass(frozen=True)
class RaterAgreement:
    """The result of `raters`: a report for each level and quality. Iterating gives the reports."""

    reports: tuple[QualityRaters, ...]
    remarks: str = ""

    def __iter__(self) -> Iterator[QualityRaters]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def __getitem__(self, place: int) -> QualityRaters:
        return self.reports[place]

    def tables(self) -> list[TextTable]:
        """Returns a table for each level; remarks on single raters stand below it."""
        found = []
        for level in dict.fromkeys(one.level for one in self.reports):
            here = [one for one in self.reports if one.level == level]
            remarks = tuple(text for text, _ in rater_remarks(here))
            found.append(replace(rater_table(here, f"{level}s"), notes=remarks))
        return found

    def _repr_html_(self) -> str:
        return html_of(self.tables())

    def to_record(self) -> list[dict[str, Any]]:
        """Returns what `dialeval raters --json` prints."""
        return [one.to_record() for one in self.reports]


def raters(
    *files: str | Path,
    qualities: Sequence[str] = (),
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    largest_record: int = USUAL,
) -> RaterAgreement:
    """Measures how well the raters of each quality agree with each other.

    The files are read as in `dialeval.load`; a record may consist of an id and ratings only.
    """
    samples = load_ratings(
        files,
        format=format,
        columns=columns,
        ratings=ratings,
        scales=scales,
        largest_record=largest_record,
    )
    reports = rater_reports(some_rated(samples), qualities)
    return RaterAgreement(tuple(reports), remarks(samples))


def _refuse_options(options: Mapping[str, object]) -> None:
    for option, given in options.items():
        if given:
            raise UsageError(
                f"{option} goes with --scores: a run knows its metrics and ratings as they were"
                " given to dialeval score"
            )


def _signatures(sources: Sequence[Run | str | Path]) -> dict[str, str]:
    """Metric -> its signature, of the runs among these; that of the first, in its short form."""
    found: dict[str, str] = {}
    for source in sources:
        if isinstance(source, Run) or is_run(source):
            run = source if isinstance(source, Run) else open_run(source)
            for label, signature in run.signatures.items():
                found.setdefault(label, str(signature))
    return found


def _rated_levels(
    source: Run | str | Path, target: Target, qualities: Sequence[str], needs_scores: bool
) -> list[RatedLevel]:
    """Returns the rated samples of a run or of a database of `dialeval rate`."""
    if isinstance(source, Run):
        return rated_run(source, target, qualities)
    if not is_database(str(source)):
        return rated_run(_open(located(source)), target, qualities)
    from dialeval.rating.results import judged_samples

    judged = judged_samples(str(source), needs_scores)
    return rated_samples(
        judged.samples,
        judged.scores,
        target,
        qualities,
        dataset=str(source),
        directions=judged.directions,
    )


def _open(path: Path) -> Run:
    """Opens a run. The likeliest slip is a file of ratings, or a folder of such files."""
    try:
        return open_run(path)
    except UsageError as error:
        holds = ("manifest.json", "job.json", "probe.json", "*/manifest.json")
        if not path.exists() or any(True for name in holds for _ in path.glob(name)):
            raise
        raise UsageError(
            f"{error}; or compare scores that you have with its ratings: dialeval agree {path}"
            " --scores SCORES.csv"
        ) from None
