"""What is damaged, which command meets it, and how a wrong number would show.

A target makes sound files, says which of them are damaged, and how they are used. `use` gives what
the command did, and the numbers that it showed. After damage the numbers must be those of the sound
files, unless the command failed or said that something is wrong: that is `keeps`. Where users write
the files themselves any number may come out, but under another signature: that is `signed`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import material
from .trying import Tried, run

Words = Sequence[str | Path]
Rule = Literal["any", "keeps", "signed"]


@dataclass(frozen=True)
class Target:
    """`share` is its part of the budget; `damaged` are patterns of the files that are changed."""

    name: str
    make: Callable[[Path], None]
    damaged: tuple[str, ...]
    uses: tuple[Callable[[Path], tuple[Tried, Any]], ...]
    rule: Rule = "any"
    share: float = 1.0
    needs: str = ""
    """A package without which it is left out."""

    def files(self, directory: Path) -> list[Path]:
        found = {path for pattern in self.damaged for path in directory.glob(pattern)}
        return sorted(path for path in found if path.is_file())


def shows(*words: str) -> Callable[[Path], tuple[Tried, Any]]:
    """A command whose standard output holds the numbers; `@` stands for the directory."""

    def use(directory: Path) -> tuple[Tried, Any]:
        tried = run(*(word.replace("@", str(directory)) for word in words))
        return tried, tried.out.replace(str(directory).encode(), b"@")

    return use


def writes(name: str, *words: str) -> Callable[[Path], tuple[Tried, Any]]:
    """A command that writes a file with the numbers."""

    def use(directory: Path) -> tuple[Tried, Any]:
        tried = run(*(word.replace("@", str(directory)) for word in words))
        made = directory / name
        content = made.read_bytes() if tried.code == 0 and made.is_file() else b""
        return tried, content.replace(str(directory).encode(), b"@")

    return use


def scores(*words: str) -> Callable[[Path], tuple[Tried, Any]]:
    """`score --json`: the table, and the signatures that it stands under."""

    def use(directory: Path) -> tuple[Tried, Any]:
        with own_cache(directory / "cache"):
            tried = run("score", *(word.replace("@", str(directory)) for word in words), "--json")
        if tried.code or tried.crash:
            return tried, None
        record = json.loads(tried.out.replace(str(directory).encode(), b"@"))
        return tried, (
            record["table"],
            [metric["signature"] for metric in record["manifest"]["metrics"]],
        )

    return use


@contextmanager
def own_cache(directory: Path) -> Any:
    before = os.environ.get("DIALEVAL_CACHE")
    os.environ["DIALEVAL_CACHE"] = str(directory)
    try:
        yield
    finally:
        if before is None:
            del os.environ["DIALEVAL_CACHE"]
        else:
            os.environ["DIALEVAL_CACHE"] = before


def resumes(directory: Path) -> tuple[Tried, Any]:
    """The rest of an unfinished run, with its small chunks, and then its scores."""
    from dialeval.readers import load

    from .trying import run_function

    tried = run_function(
        lambda: material.resumed_job(directory, directory / "run").run(
            load(directory / "samples.jsonl")
        )
    )
    if tried.code or tried.crash:
        return tried, None
    return shows("export", "@/run", "--to", "jsonl")(directory)


SAMPLES = "@/samples.jsonl"


def reading(pattern: str) -> tuple[Callable[[Path], tuple[Tried, Any]], ...]:
    """Every file of a directory, by the verbs that read dialogues."""
    return tuple(
        _each(pattern, words)
        for words in (
            ("data", "check", "FILE"),
            ("score", "FILE", "-m", "length", "--json", "--skip-bad"),
            ("data", "convert", "FILE", "-o", "@/made.parquet", "--skip-bad"),
            ("raters", "FILE", "--json"),
            ("augment", "FILE", "--with", "eda", "--json"),
        )
    )


def _each(pattern: str, words: Words) -> Callable[[Path], tuple[Tried, Any]]:
    def use(directory: Path) -> tuple[Tried, Any]:
        last = Tried((), 0, b"", "")
        for path in sorted(directory.glob(pattern)):
            filled = (
                str(path) if w == "FILE" else str(w).replace("@", str(directory)) for w in words
            )
            last = run(*filled)
            if last.complaint:
                break
        return last, None

    return use


def examines(directory: Path) -> tuple[Tried, Any]:
    """`doctor RUN`; it counts the lines of the history, too, which any program may add to."""
    tried, out = shows("doctor", "@/run", "--json")(directory)
    return tried, [line for line in out.splitlines() if b"lines can be read" not in line]


RUN_USES = (
    shows("export", "@/run", "--to", "jsonl"),
    shows("export", "@/run", "--to", "csv"),
    shows("export", "@/run", "--to", "markdown"),
    examines,
    shows("agree", "@/run", "--rounds", "0", "--json"),
    shows("compare", "@/run", "--rounds", "99", "--json", "--worst", "1"),
    shows("score", SAMPLES, "-m", "length", "-m", "bleu", "-m", "distinct", "-o", "@/run"),
    writes("page.html", "report", "@/run", "-o", "@/page.html", "--rounds", "99"),
    writes(
        "weights.json",
        "compose",
        "fit",
        "@/run",
        "-m",
        "length",
        "-m",
        "distinct",
        "-o",
        "@/weights.json",
    ),
    writes("scores.csv", "score", "@/run", "-m", "length", "-o", "@/scores.csv"),
)
PROBE_USES = (
    shows("show", "@/probe", "--json"),
    scores("@/probe", "-m", "length", "-m", "diversity:dispersion=false"),
    shows("data", "check", "@/probe", "--json"),
)


def probes_again(directory: Path) -> tuple[Tried, Any]:
    tried = run(*material.probe_words(directory), "--json")
    if tried.code or tried.crash:
        return tried, None
    return shows("show", "@/probe", "--json")(directory)


RATING_USES = (
    shows("export", "@/ratings.db", "--to", "jsonl"),
    shows("export", "@/ratings.db", "--to", "answers"),
    shows("raters", "@/ratings.db", "--json"),
    shows("agree", "@/ratings.db", "--scores", "@/run", "--rounds", "0", "--json"),
    # Opens the job, and fails where it would listen: this address is kept for documents.
    shows("rate", "--db", "@/ratings.db", "--host", "192.0.2.1", "--port", "1"),
)
VECTORS = ("-m", "embedding-average:model=@/vectors")

TARGETS: tuple[Target, ...] = (
    Target("chat", material.chat, ("*",), reading("chat*")),
    Target("logs", material.logs, ("*",), reading("*.*"), share=2),
    Target("samples", material.sample_file, ("*",), reading("samples*"), share=2),
    Target("tables", material.table, ("*",), reading("table*")),
    Target("tabs", material.tabs, ("*",), reading("table*"), share=0.5),
    Target("parquet", material.parquet, ("*",), reading("samples*")),
    Target("packed", material.packed, ("*",), reading("samples*"), share=0.5),
    Target("rated sets", material.rated_sets, ("*",), reading("*.json"), share=2),
    Target("text sets", material.text_sets, ("*",), reading("*.*"), share=2),
    Target("run", material.finished_run, ("run/*",), RUN_USES, "keeps", share=5),
    Target("manifest", material.finished_run, ("run/manifest.json",), RUN_USES, "keeps", share=3),
    Target(
        "unfinished run",
        material.unfinished_run,
        ("run/*", "run/shards/*"),
        (resumes,),
        "keeps",
        share=2,
    ),
    Target("probe", material.probe, ("probe/*",), PROBE_USES, "keeps", share=3),
    Target(
        "probing again",
        material.probe,
        ("probe/*", "queries.jsonl", "replies.jsonl"),
        (probes_again,),
        share=1.5,
    ),
    Target("ratings", material.ratings, ("ratings.db",), RATING_USES, share=2, needs="sqlalchemy"),
    Target(
        "weights",
        material.weights,
        ("weights.json",),
        (
            shows("compose", "show", "@/weights.json", "--json"),
            shows("compose", "apply", "@/weights.json", "@/run"),
        ),
        share=1,
    ),
    Target(
        "composed",
        material.weights,
        ("weights.json",),
        (scores(SAMPLES, "-m", "mme-crs:weights=@/weights.json"),),
        "signed",
    ),
    Target(
        "word vectors",
        material.word_vectors,
        ("vectors/*",),
        (scores(SAMPLES, *VECTORS),),
        "signed",
    ),
    Target(
        "cache",
        lambda directory: _cached(directory),
        ("cache/*",),
        (scores(SAMPLES, *VECTORS),),
        "keeps",
        share=2,
    ),
    Target(
        "encoder",
        material.encoder,
        ("bert/*",),
        (scores(SAMPLES, "-m", "bertscore:model=@/bert"),),
        "signed",
        share=2,
        needs="torch",
    ),
    Target(
        "follow-ups",
        material.language_model,
        ("follow.*",),
        (
            scores(
                SAMPLES,
                "-m",
                "full:model=@/llama,follow_ups=@/follow.json",
                "-m",
                "full:model=@/llama,follow_ups=@/follow.txt",
            ),
            scores(SAMPLES, "-m", "follow-up-contrast:model=@/llama,follow_ups=@/follow.json"),
        ),
        "signed",
        share=1,
        needs="torch",
    ),
    Target(
        "language model",
        material.language_model,
        ("llama/*",),
        (scores(SAMPLES, "-m", "fluency:model=@/llama"),),
        "signed",
        share=2,
        needs="torch",
    ),
)


def _cached(directory: Path) -> None:
    material.word_vectors(directory)
    tried, _ = scores(SAMPLES, *VECTORS)(directory)
    assert tried.code == 0, tried.err + tried.crash
