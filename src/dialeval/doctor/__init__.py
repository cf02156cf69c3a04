"""Is everything here, and does it give the stored scores?

`expected.json` holds the scores of part of the bundled example, written by
`python -m dialeval.doctor` on a machine where the conformance tests passed. A difference means that
a library changed under us, or that the installation is damaged.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from dialeval.callable_package import make_callable
from dialeval.version import __version__

EXPECTED = Path(__file__).with_name("expected.json")
METRICS = ("length", "distinct", "bleu", "bleu:mode=released", "rouge", "meteor", "chrf")
METRICS_WITH_MODELS = (
    "judge",
    "coherence",
    "fluency",
    "full",
    "bertscore",
    "greedy-matching",
    "mme-crs",
)
SAMPLES = 9
TOLERANCE = 1e-6
TOLERANCE_WITH_MODELS = 1e-3
"""Other processors round otherwise, and thirty layers carry it on."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `absent` is an optional part that is not installed."""

    what: str
    status: Literal["ok", "absent", "failed"]
    finding: str

    def to_record(self) -> dict[str, str]:
        return asdict(self)


def examine() -> list[Finding]:
    """Looks at everything; a check that raises is a failed one, never a crash."""
    return [finding for check in CHECKS for finding in _guarded(check)]


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:
        what = check.__name__.strip("_").replace("_", " ")
        yield Finding(what, "failed", f"{type(error).__name__}: {error}")


def _versions() -> Iterator[Finding]:
    yield Finding("dialeval", "ok", f"{__version__} on Python {platform.python_version()}")
    names = ("numpy", "pyarrow", "sacrebleu", "rouge-score", "nltk")
    yield Finding("libraries", "ok", ", ".join(f"{name} {version(name)}" for name in names))


def _extras() -> Iterator[Finding]:
    extras = {"models": "torch", "web": "starlette", "ray": "ray"}
    for extra, module in extras.items():
        if importlib.util.find_spec(module):
            yield Finding(f"extra {extra!r}", "ok", f"{module} {version(module)}")
        else:
            yield Finding(f"extra {extra!r}", "absent", f"pip install 'dialeval[{extra}]'")


def _word_net() -> Iterator[Finding]:
    from dialeval.lexicon import PartOfSpeech, load_wordnet

    wordnet = load_wordnet()
    total = sum(wordnet.counts(pos).synsets for pos in get_args(PartOfSpeech))
    # 117659 is the number of synsets that Princeton states for WordNet 3.0.
    status: Literal["ok", "failed"] = "ok" if total == 117_659 else "failed"
    yield Finding("WordNet 3.0", status, f"{total:,} synsets")


def _cache() -> Iterator[Finding]:
    from dialeval.engine.answers import AnswerCache, default_cache_path

    path = default_cache_path()
    if not path.exists():
        parent = next(p for p in path.parents if p.exists())
        writable = os.access(parent, os.W_OK)
        note = "empty so far" if writable else f"{parent} cannot be written to; set DIALEVAL_CACHE"
        yield Finding("answer cache", "ok" if writable else "failed", f"{path}: {note}")
        return
    with AnswerCache(path) as cache:
        yield Finding("answer cache", "ok", f"{path}: {len(cache):,} answers")


def _models() -> Iterator[Finding]:
    from dialeval.errors import DialevalError
    from dialeval.model_store.locate import list_models, verify

    for model in list_models():
        if "default" in model.presets:
            status: Literal["ok", "absent", "failed"] = "absent"
            found = f"dialeval models get {model.lacks or model.name}"
            if model.path is not None and not model.lacks:
                status, found = "ok", model.role
                try:
                    verify(model.name)
                except DialevalError as error:
                    status, found = "failed", str(error)
            yield Finding(f"model {model.name}", status, found)


def _scores_of_the_example() -> Iterator[Finding]:
    stored = json.loads(EXPECTED.read_text(encoding="utf-8"))
    yield from _compare(stored["metrics"], example_scores(METRICS), TOLERANCE)
    if models_are_here():
        found = example_scores(METRICS_WITH_MODELS)
        yield from _compare(stored["metrics with models"], found, TOLERANCE_WITH_MODELS)


def models_are_here() -> bool:
    """Can metrics that ask the embedded models be tried?"""
    from dialeval.model_store.locate import list_models

    return bool(importlib.util.find_spec("torch")) and all(
        model.is_here for model in list_models() if "default" in model.presets
    )


Scores = dict[str, dict[str, float | None]]
"""Metric -> sample -> value."""


def _compare(stored: Scores, here: Scores, tolerance: float) -> Iterator[Finding]:
    for label, scores in stored.items():
        found = here.get(label, {})
        wrong = [id for id, value in scores.items() if not _same(value, found.get(id), tolerance)]
        what = f"scores of {label}"
        if wrong:
            first = wrong[0]
            difference = f"{first} has {found.get(first)}, stored is {scores[first]}"
            yield Finding(what, "failed", f"{len(wrong)} of {len(scores)} differ: {difference}")
        else:
            yield Finding(what, "ok", f"{len(scores)} of {len(scores)} as stored")


def example_scores(metrics: tuple[str, ...]) -> Scores:
    """Returns the scores of the first samples of the bundled example, without a cache."""
    import dialeval
    from dialeval.examples import four_bots

    samples = list(islice(dialeval.load(four_bots()), SAMPLES))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        run = dialeval.score(samples, metrics, out=place / "run", cache=place / "answers.sqlite")
        return {
            label: dict(zip((s.id for s in samples), run.scores(label), strict=True))
            for label in run.metrics
        }


def _same(stored: float | None, here: float | None, tolerance: float) -> bool:
    if stored is None or here is None:
        return stored is here
    return abs(stored - here) <= tolerance * max(1.0, abs(stored))


CHECKS = (_versions, _extras, _word_net, _models, _cache, _scores_of_the_example)

make_callable(__name__, "dialeval.verbs:doctor")
