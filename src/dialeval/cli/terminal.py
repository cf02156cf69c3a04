"""Output to the screen. Dialogue text is hostile, and must not control the terminal.

Results go to standard output, everything else (progress, warnings, errors) to standard error.
Colours and moving bars appear on a terminal only, and never with NO_COLOR.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from dialeval.errors import DialevalError
from dialeval.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from dialeval.progress import FetchProgress, Progress, Step
    from dialeval.tables import TextTable
    from dialeval.training.loop import State

LONGEST_PASSAGE = 400
"""Largest number of characters of an answer on a screen; files contain the whole answer."""
PLAIN_PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress in a log file, which cannot show a moving bar."""


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    class PipeConsole(Console):
        """rich would exit with 1 when `| head` has seen enough; the command exits with 0."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipeConsole(stderr=stderr, highlight=False, soft_wrap=True, emoji=False)


def screen_width() -> int:
    """Returns the number of characters in a line: that of the terminal, or 100."""
    screen = console()
    return screen.width if screen.is_terminal else 100


def say(text: str = "", *, stderr: bool = False, style: str | None = None) -> None:
    """Prints lines of text without control characters."""
    for line in text.split("\n"):
        console(stderr).print(clean(line), style=style, markup=False)


def passage(text: str) -> str:
    """Returns an utterance on one line, so that it cannot imitate other output, and without the end
    of a long text."""
    line = " ".join(text.split())
    if len(line) <= LONGEST_PASSAGE:
        return line
    return f"{line[:LONGEST_PASSAGE].rstrip()} ... ({len(text):,} characters)"


def harmless_output() -> IO[str]:
    """Returns standard output for untrusted text: unchanged in a pipe, cleaned on a terminal."""
    return cast("IO[str]", _CleanOutput()) if sys.stdout.isatty() else sys.stdout


class _CleanOutput:
    """Standard output that removes characters that could control the terminal."""

    def write(self, text: str) -> int:
        return sys.stdout.write("".join(c if c in "\n\r" else clean(c) for c in text))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()
) -> None:
    """Prints a table as wide as its content; columns in `right` are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, title in enumerate(header):
        justify = "right" if i in right else "left"
        table.add_column(Text(clean(title)), justify=justify, no_wrap=i in right)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    screen = console()
    if screen.is_terminal:
        screen.print(table)
        return
    # A pipe has no width: the table is as wide as it needs to be, and no wider.
    screen.width = 10_000
    with screen.capture() as captured:
        screen.print(table)
    for line in captured.get().splitlines():
        screen.print(line.rstrip(), markup=False)


def show_table(table: TextTable) -> None:
    """Prints the cells of a table; the caller prints its title and its notes."""
    print_table(table.header, table.rows, right=range(table.texts, len(table.header)))


Update = Callable[[int, "float | None"], None]
"""Takes the number of finished samples and the finished share of the input (None: unknown)."""


def share_done(read_share: float | None, done: int, read: int) -> float | None:
    """Returns the finished share of the input, if only a part was read, and a part of that is
    finished."""
    return None if read_share is None else min(1.0, read_share * done / read)


@contextmanager
def progress_bar(what: str, *, quiet: bool = False, noun: str = "samples") -> Iterator[Update]:
    """Shows the progress of a job: a moving bar on a terminal, a line every few seconds elsewhere.

    A share is an estimate. A later share may be lower, and the bar then moves back.
    """
    if quiet:
        yield lambda done, share: None
        return
    shown = _moving_bar(what, noun) if sys.stderr.isatty() else _plain_lines(what, noun)
    with shown as update:
        yield update


@contextmanager
def counting_bar(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Shows work with a known number of steps: the yielded function takes the finished steps and
    the total."""
    with progress_bar(what, quiet=quiet, noun="steps") as update:
        yield lambda done, total: update(done, done / total if total else None)


def run_script(main: Callable[[], int]) -> NoReturn:
    """Ends a script with what its main function returns; prints a mistake of its user in a line."""
    try:
        sys.exit(main())
    except DialevalError as error:
        say(str(error), stderr=True, style="red")
        sys.exit(error.exit_code)


@contextmanager
def stage_bars(*, quiet: bool = False) -> Iterator[Callable[[str], Progress]]:
    """Shows work in stages, one counting bar after the other: the yielded function takes the name
    of the stage that begins and returns the update of its bar."""
    with ExitStack() as bars:

        def stage(what: str) -> Progress:
            bars.close()
            return bars.enter_context(counting_bar(what, quiet=quiet))

        yield stage


@contextmanager
def training_bar(*, quiet: bool = False) -> Iterator[Callable[[State, int], None]]:
    """Shows a training: the steps, the loss of the last steps, and the last validation."""
    last = time.monotonic()
    begun = (0.0, sys.maxsize)
    """When the first step ended, and its number: a resumed training does not start at 1, and after
    one seed comes the next."""
    before = sys.maxsize
    """The step that was told last."""

    def describe(state: State) -> str:
        recent = state.losses[-20:]
        loss = f"loss {sum(recent) / len(recent):.3f}" if recent else ""
        shown = ("validation_perplexity", "validation_accuracy", "validation_loss")
        checked = next((n for n in shown if state.curve and n in state.curve[-1]), None)
        if not checked:
            return loss
        epoch = int(state.curve[-1].get("epoch", -1))
        when = f"after epoch {epoch + 1}" if epoch >= 0 else "before training"
        found = f"{checked.replace('_', ' ')} {state.curve[-1][checked]:.3f} {when}"
        return ", ".join(text for text in (loss, found) if text)

    if quiet:
        yield lambda state, steps: None
    elif sys.stderr.isatty():
        from rich.progress import Progress

        with Progress(console=console(stderr=True), transient=True) as bar:
            task = bar.add_task("training", total=None)
            yield lambda state, steps: bar.update(
                task, total=steps, completed=state.step, description=describe(state)
            )
    else:

        def update(state: State, steps: int) -> None:
            nonlocal last, begun, before
            now = time.monotonic()
            if state.step < before:
                begun = (now, state.step)
            before = state.step
            if now - last >= PLAIN_PROGRESS_SECONDS or state.step == steps:
                last = now
                words = [f"training: step {state.step:,} of {steps:,}", describe(state)]
                if begun[1] < state.step < steps:
                    left = (now - begun[0]) / (state.step - begun[1]) * (steps - state.step)
                    words.append(f"at most about {left / 60:.0f} min left")
                say(", ".join(filter(None, words)), stderr=True)

        yield update


@contextmanager
def fetch_bar(*, quiet: bool = False) -> Iterator[FetchProgress]:
    """Shows a download: a bar on a terminal, one line per stage elsewhere."""
    words = {
        "wait": "waiting for another process",
        "download": "downloading",
        "check": "checking",
        "convert": "converting, once (about half a minute)",
    }
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns, console=console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=None)

            def move(step: Step) -> None:
                if step.stage == "notice":
                    bar.console.print(clean(step.text), style="yellow", markup=False)
                    return
                text = f"{clean(step.model)}: {words.get(step.stage, step.stage)}"
                bar.update(task, description=text, completed=step.done, total=step.total or None)

            yield move
    else:
        shown: set[str] = set()

        def tell(step: Step) -> None:
            if step.stage == "notice":
                say(step.text, stderr=True)
            elif step.stage in words and step.stage not in shown:
                shown.add(step.stage)
                size = f" {step.total / 1e6:,.0f} MB" if step.total else ""
                say(f"{step.model}: {words[step.stage]}{size}", stderr=True)

        yield tell


@contextmanager
def _moving_bar(what: str, noun: str) -> Iterator[Update]:
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]:,} " + noun),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, done=0)

        def update(done: int, share: float | None) -> None:
            total = None if share is None else 1.0
            bar.update(task, completed=share or 0.0, total=total, done=done)

        yield update


@contextmanager
def _plain_lines(what: str, noun: str) -> Iterator[Update]:
    started = last = time.monotonic()

    def update(done: int, share: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_PROGRESS_SECONDS:
            last = now
            percent = f" ({share:.0%})" if share is not None else ""
            rate = done / (now - started)
            speed = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
            say(f"{what}: {done:,} {noun}{percent}, {speed}/s", stderr=True)

    yield update
