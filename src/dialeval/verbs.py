"""Verbs that are made of several rooms, as functions with the words of the command line.

`score`, `compare`, `agree`, `raters`, `train` and `compose.fit` stand in their own rooms. An option
that can be repeated (`--metric`) is a sequence with the name in the plural (`metrics`); how files
are read (`format`, `columns`, ...) is said as in `dialeval.load`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.limits import USUAL
from dialeval.progress import Progress, usual_progress
from dialeval.rating.job import DEFAULT_SHARE, job_as_asked
from dialeval.remote import located

if TYPE_CHECKING:
    from dialeval.augment import Query, Tally
    from dialeval.doctor import Finding
    from dialeval.probe import ProbeSummary
    from dialeval.probe.plan import Protocol
    from dialeval.probe.probing import Watch
    from dialeval.probe.report import Order, ProbedQuery
    from dialeval.rating.design import RatingMaterial
    from dialeval.rating.opening import Started
    from dialeval.readers import Samples
    from dialeval.readers.load import Bad
    from dialeval.readers.reader import Problems, SystemPrompt
    from dialeval.report.build import Stage, Written
    from dialeval.runs.run import Run
    from dialeval.studies.result import StudyResult
    from dialeval.systems.system import System
    from dialeval.web.serving import Links, Serving

PathLike = str | Path


@dataclass(frozen=True)
class Augmented:
    """What `augment` made. `queries` is empty if they were written to a file."""

    queries: tuple[Query, ...]
    tally: Tally
    problems: Problems


def augment(
    *files: PathLike,
    with_: Sequence[str],
    out: PathLike | None = None,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    bad: Bad = "raise",
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    progress: Progress | None = None,
) -> Augmented:
    """Asks the same thing in other words: each query gets variants.

    with_  how: `ws`, `eda`, `ctg`, with options if need be (`ws:mode=released`)
    out    the file to write, as JSON Lines
    """
    from dialeval.augment import Tally, augment_file, augment_queries, make_augmenters, read_queries
    from dialeval.augment.augmenter import watched

    specs = [with_] if isinstance(with_, str) else with_
    queries = read_queries(
        *files,
        format=format,
        columns=columns,
        system_prompt=system_prompt,
        largest_record=largest_record,
        bad=bad,
        limit=limit,
    )
    told = progress or usual_progress("augmenting")

    def report(done: int, total: int) -> None:
        share = queries.fraction()
        told(done, limit or (round(done / share) if share else 0))

    if out is not None:
        return Augmented(
            (), augment_file(queries, specs, out, seed=seed, progress=report), queries.counts
        )
    tally = Tally()
    made = augment_queries(queries, make_augmenters(specs, seed), tally)
    return Augmented(tuple(watched(made, report)), tally, queries.counts)


def probe(
    system: str | System,
    queries: PathLike | Sequence[PathLike] | Iterable[Query],
    out: PathLike,
    *,
    with_: Sequence[str] | None = None,
    protocol: Protocol = "both",
    paraphrases: int = 1,
    set: Mapping[str, object] | None = None,
    name: str = "",
    concurrency: int | None = None,
    timeout: float = 60.0,
    retries: int | None = None,
    rate: float | None = None,
    key_env: str | None = None,
    seed: int | None = None,
    limit: int | None = None,
    format: str | None = None,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> ProbeSummary:
    """Asks a chatbot the same things in other words, and keeps its answers in `out`.

    system   an address (`openai:URL#MODEL`, `python:MODULE:FUNCTION`, ...), or an open system
    queries  files, or queries
    set      options of the system, such as `{"temperature": 0.7}`
    watch    hears how far it is

    `dialeval.score(dialeval.load(out), ["diversity", "consistency"])` judges the answers.
    """
    from dialeval.augment.queries import given_or_read
    from dialeval.probe.probing import probe as ask
    from dialeval.systems import Asking, open_system

    given = given_or_read(
        queries,
        format=format,
        system_prompt=system_prompt,
        largest_record=largest_record,
        limit=limit,
    )
    asking = Asking(concurrency, timeout, retries, rate, key_env, seed or 0, largest_record)
    opened = open_system(system, set, asking) if isinstance(system, str) else system
    bar = usual_progress("asking")
    try:
        return ask(
            opened,
            given,
            out,
            protocol=protocol,
            paraphrases=paraphrases,
            augment=[with_] if isinstance(with_, str) else with_,
            seed=seed,
            name=name,
            overwrite=overwrite,
            watch=watch or (lambda now: bar(now.done, now.total)),
        )
    finally:
        if isinstance(system, str):
            opened.close()


def show(run: PathLike, *, order: Order = "worst") -> list[ProbedQuery]:
    """Returns the queries of a probe, scored or not: variants, answers, contradictions; worst
    first."""
    from dialeval.probe.report import probe_report

    return probe_report(run, order)


def report(
    *runs: Run | PathLike,
    out: PathLike = "report.html",
    metrics: Sequence[str] = (),
    title: str = "",
    sample: int = 1000,
    seed: int = 0,
    rounds: int = 1999,
    overwrite: bool = False,
    workers: int = 1,
    stage: Stage | None = None,
) -> Written:
    """Writes one self-contained page: scores, tests, plots and dialogues.

    stage  hears the name of the work that begins, and returns who hears how far it is
    """
    from dialeval.report.build import write_report

    return write_report(
        [one if isinstance(one, str | Path) else one.directory for one in runs],
        out,
        metrics=metrics,
        title=title,
        sample=sample,
        seed=seed,
        rounds=rounds,
        overwrite=overwrite,
        workers=workers,
        stage=stage or usual_progress,
    )


def doctor(
    *runs: PathLike, judge: str | None = None, samples: int = 0, key_env: str | None = None
) -> list[Finding]:
    """Checks the installation; or, if runs are named, every byte of them.

    judge    a language model: does it rate ten answers as it did before?
    samples  replies to count for each answer, if its server gives no log-probabilities
    key_env  the environment variable that holds the key of its server
    """
    from dialeval.doctor import examine
    from dialeval.doctor.run import examine_run

    if judge is not None:
        from dialeval.chat_http import Asking
        from dialeval.doctor.judge import examine_judge
        from dialeval.models.chat_judge import Servers

        if runs:
            raise UsageError("runs or a judge, not both")
        return examine_judge(judge, Servers(Asking(key_env=key_env)), samples=samples)
    if samples:
        raise UsageError("samples are for a judge: name one")
    return [found for run in runs for found in examine_run(located(run))] if runs else examine()


def study(
    name: str,
    *,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    sets: Sequence[str] = (),
    positives: Sequence[str] = (),
    limit: int = 0,
    pairs: int = 0,
    seeds: int = 0,
    corpus: PathLike | None = None,
    systems: Sequence[str] = (),
    raters: Sequence[str] = (),
    sweep: bool = False,
    price_in: float | None = None,
    price_out: float | None = None,
    data: PathLike | None = None,
    out: PathLike | None = None,
    plot: PathLike | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Repeats a paper's experiment: published, ours, difference.

    limit  samples of each set, where a study takes fewer; 0: all
    corpus, pairs, seeds  where a study trains scorers: what to learn from (a file, a folder, or a
          data set by name), how many pairs of it, and trainings of each
    systems, raters  where a study asks chatbots: their addresses, and files with ratings of what
          they answered
    sweep  whether such a study also trains scorers with other values of their options
    price_in, price_out  of a million tokens, where a study counts them
    data  the directory of data sets, in place of `DIALEVAL_DATA`
    out   also save the result: .json, .csv, .tex, or else Markdown. Of a study that asks chatbots,
          a folder
    plot  also save the study's picture, .svg or .png; a directory gets a file for each figure
    """
    from dialeval.studies.result import run_study, save_drawings, save_folder, save_result
    from dialeval.studies.study import find_study

    found = find_study(name)
    if found.takes_systems and out is not None and Path(out).suffix:
        raise UsageError(f"the study {name!r} writes several files: -o {out} must be a folder")
    if systems and not raters and out is None:
        raise UsageError(
            "without --raters the study writes the answers that are to be rated: name a folder, -o"
        )
    with data_directory(data):
        result = run_study(
            found,
            models=models,
            metrics=metrics,
            sets=sets,
            positives=positives,
            limit=limit,
            pairs=pairs,
            seeds=seeds,
            corpus=None if corpus is None else Path(corpus),
            systems=systems,
            raters=raters,
            sweep=sweep,
            prices=(price_in, price_out),
            draw=plot is not None,
            progress=progress or usual_progress(name),
        )
    if out is not None:
        (save_folder if found.takes_systems else save_result)(result, Path(out))
    if plot is not None:
        save_drawings(result, Path(plot))
    return result


@contextmanager
def data_directory(place: PathLike | None) -> Iterator[None]:
    """`data=DIR` is `DIALEVAL_DATA=DIR` while the block runs."""
    if place is None:
        yield
        return
    if not Path(place).is_dir():
        raise UsageError(f"--data {place}: there is no such directory")
    before = os.environ.get("DIALEVAL_DATA")
    os.environ["DIALEVAL_DATA"] = str(place)
    try:
        yield
    finally:
        del os.environ["DIALEVAL_DATA"]
        if before is not None:
            os.environ["DIALEVAL_DATA"] = before


EXPORT_SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
}


def export(
    source: Run | PathLike,
    *,
    to: str | None = None,
    out: PathLike | None = None,
    raw: bool = False,
    file: IO[str] | None = None,
) -> list[str]:
    """Writes the scores of a run, or what people rated, for other programs.

    source  a run; or the file or the URL that `dialeval rate --db` has
    to      the form; by default what the name of `out` says, else csv
    file    where to write text if `out` is not named; by default standard output

    Returns what is damaged in a database of ratings; of a run that is nothing.
    """
    from dialeval.readers.source import is_database
    from dialeval.runs.run import Run, is_run, open_run

    place = None if out is None else Path(out)
    if to is None and place is not None and place.suffix.lower() not in EXPORT_SUFFIXES:
        raise UsageError(
            f"{place}: cannot tell what to write from the name. Name it --to csv, jsonl, parquet,"
            " latex, markdown, dstc10, langfuse, argilla, mlflow or wandb, or let it end in"
            f" {', '.join(EXPORT_SUFFIXES)}"
        )
    to = to or ("csv" if place is None else EXPORT_SUFFIXES[place.suffix.lower()])
    if to == "parquet" and place is None:
        raise UsageError("Parquet cannot be printed: name a file with -o")
    if to in ("mlflow", "wandb") and place is None:
        raise UsageError(f"{to} has a folder of files: name a folder with -o")
    place_of_ratings = not isinstance(source, Run) and not is_run(source)
    if place_of_ratings and ("://" in str(source) or is_database(str(source))):
        return _export_ratings(str(source), to, place, raw, file or sys.stdout)
    from dialeval.runs.export import export as write
    from dialeval.runs.export import export_text

    run = source if isinstance(source, Run) else open_run(source)
    if place is not None:
        write(run, to, place, raw=raw)
    else:
        export_text(run, to, file or sys.stdout, raw=raw)
    return []


def _export_ratings(address: str, to: str, out: Path | None, raw: bool, file: IO[str]) -> list[str]:
    needs_web()
    from dialeval.rating.database import parse_address
    from dialeval.rating.opening import open_store
    from dialeval.rating.results import export_ratings, export_text

    store = open_store(address, read_only=True)
    if store is None:
        raise UsageError(f"{parse_address(address).shown}: holds no ratings")
    if out is not None:
        export_ratings(store, to, out, raw=raw)
    else:
        export_text(store, to, file, raw=raw)
    damaged = list(store.damaged)
    store.close()
    return damaged


def needs_web() -> None:
    from importlib.util import find_spec

    needed = ("jinja2", "python_multipart", "sqlalchemy", "starlette", "uvicorn")
    if missing := [name.replace("_", "-") for name in needed if find_spec(name) is None]:
        raise UsageError(f"rating needs {', '.join(missing)}: pip install 'dialeval[web]'")


@dataclass(frozen=True)
class RatingPages:
    """A rating job whose pages are ready. `links` are for the organiser and each rater; `run`
    serves them until it is interrupted."""

    started: Started
    material: tuple[RatingMaterial, ...]
    serving: Serving

    @property
    def links(self) -> Links:
        from dialeval.web.serving import links

        return links(self.started.store, self.serving)

    def run(self, tell: Callable[[RatingPages], None] = lambda pages: None) -> None:
        """`tell` is called once, when visitors can come."""
        self.serving.run(lambda serving: tell(self))


def rate(
    *files: PathLike,
    qualities: str | None = None,
    describe: Mapping[str, str] | None = None,
    raters: int | None = None,
    per_item: int = 0,
    db: str = "ratings.db",
    compare: bool = False,
    checks: float = DEFAULT_SHARE,
    duplicates: float = DEFAULT_SHARE,
    title: str | None = None,
    instructions: PathLike | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    names: Sequence[str] = (),
    token: str = "",
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    spread: str = "",
    seed: int = 0,
    bad: Bad = "raise",
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    progress: Progress | None = None,
) -> RatingPages:
    """Makes pages on which people rate dialogues; `.links` are theirs, `.run()` serves them.

    qualities  as on the command line: `overall:1-5,natural:1-3`
    describe   quality -> the question about it
    db         the file (or address of PostgreSQL) that stores the job; a job there is resumed
    spread     a metric of the runs: `limit` samples are chosen evenly over its range
    """
    needs_web()
    from dialeval.rating.design import read_material
    from dialeval.rating.opening import start
    from dialeval.readers import load
    from dialeval.web.frame import check_token
    from dialeval.web.serving import prepare_rating

    if token:
        check_token(token)
    most = None if compare else limit  # of comparisons, pairs are counted

    def read(path: str) -> Samples:
        return load(
            path,
            format=format,
            columns=columns,
            system_prompt=system_prompt,
            largest_record=largest_record,
            bad=bad,
            limit=most,
            seed=seed if most else None,
        )

    if spread and compare:
        raise UsageError("--spread chooses samples to rate one by one: leave out --compare")
    paths = [str(path) for path in files]
    material = read_material(paths, read, limit=most, seed=seed, spread=spread) if paths else []
    job, given = job_as_asked(
        qualities, describe or {}, compare, title, instructions, per_item, checks, duplicates, seed
    )
    started = start(
        db,
        material,
        job,
        raters=raters,
        organiser=token,
        given=given,
        most_pairs=limit,
        progress=progress or usual_progress("making the job"),
    )
    serving = prepare_rating(started.store, host, port, tuple(names))
    return RatingPages(started, tuple(material), serving)
