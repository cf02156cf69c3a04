"""The claims that hold for all metrics. Each function is one: its name, its meaning, its proof."""

from __future__ import annotations

import copy
import math
import pickle
import re
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any

from dialeval.check.trial import Bench, MetricCheckError, require
from dialeval.metric import Direction, Metric, Need, Pool, option_fields
from dialeval.options import build, split_spec
from dialeval.question import Answer, Question
from dialeval.sample import Level, Sample, Turn, Variant
from dialeval.scores import CalibrationKind, Score, Signature


def declaration(bench: Bench) -> None:
    """The class says what it is in words that dialeval knows."""
    metric = bench.metric
    require(
        re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", metric.name) is not None,
        f"name is {metric.name!r}; use lower case, digits and hyphens, such as 'my-metric'.",
    )
    require(
        isinstance(metric.version, int) and metric.version >= 1,
        f"version is {metric.version!r}; count the versions of the definition from 1.",
    )
    _legal("levels", metric.levels, Level)
    require(bool(metric.levels), "levels is empty; say what is judged: turn, dialogue or both.")
    _legal("needs", metric.needs, Need)
    _legal("direction", [metric.direction], Direction)
    _legal("calibration", [metric.calibration] if metric.calibration else [], CalibrationKind)
    low, high = metric.range
    require(low < high, f"range is {metric.range}; the lowest value comes first.")
    names = [part.name for part in metric.parts()]
    require(len(set(names)) == len(names), f"two parts share a name: {', '.join(names)}.")


def _legal(field: str, values: Iterable[str], kind: Any) -> None:
    known = typing.get_args(kind)
    for value in values:
        require(value in known, f"{field} holds {value!r}; known are {', '.join(known)}.")


def documented(bench: Bench) -> None:
    """It says what it measures, whose idea it is, and what each option and part means."""
    cls = type(bench.metric)
    # A dataclass without a docstring gets its own signature as one.
    doc = cls.__doc__ or ""
    require(
        bool(doc) and not doc.startswith(f"{cls.__name__}("),
        "the class has no docstring; say in one line what it measures.",
    )
    require(bool(bench.metric.citation), "citation is empty; name authors, title, venue and year.")
    for field in option_fields(bench.metric):
        require(
            bool(field.metadata.get("summary")),
            f"option {field.name!r} has no summary; declare it with option(default, summary).",
        )
    for part in bench.metric.parts():
        require(bool(part.summary), f"part {part.name!r} has no summary.")


def frozen(bench: Bench) -> None:
    """It is a frozen dataclass of its own, so that equal options mean an equal metric."""
    cls = type(bench.metric)
    require(
        "__dataclass_params__" in vars(cls),
        f"{cls.__name__} is not a dataclass itself; put @dataclass(frozen=True) above it.",
    )
    before = bench.metric.options()
    bench.scored(bench.samples)
    require(
        bench.metric.options() == before,
        "scoring changed its options; keep nothing on the metric, compute from the sample.",
    )
    try:
        hash(bench.metric)
    except TypeError as error:
        raise MetricCheckError(
            f"it cannot be hashed ({error}); use int, float, bool, str."
        ) from error


def picklable(bench: Bench) -> None:
    """It can be sent to another process and scores the same there."""
    try:
        other = pickle.loads(pickle.dumps(bench.metric))
    except Exception as error:
        raise MetricCheckError(
            f"pickle fails with {type(error).__name__}: {error}. Define the class at the top of a"
            " module, and keep models, files and locks out of the metric."
        ) from error
    require(other == bench.metric, "what pickle returns is not equal to the metric.")
    _same(bench.scored(bench.samples, other), bench.scored(bench.samples), "after pickling")


def label(bench: Bench) -> None:
    """Its label, typed on the command line, makes the same metric."""
    for metric in [bench.metric, *bench.all_alternatives()]:
        name, options = split_spec(metric.label)
        require(name == metric.name, f"the label {metric.label!r} does not start with its name.")
        rebuilt = build(type(metric), options, f"metric {name!r}")
        require(
            rebuilt == metric,
            f"the label {metric.label!r} makes {rebuilt}, not {metric}. Leave `label` to the base"
            " class, and give options the types int, float, bool, str or Literal.",
        )


def signature_parses(bench: Bench) -> None:
    """Its signature can be read back."""
    fields = bench.metric.signature_fields()
    for key, value in fields.items():
        require(isinstance(value, str), f"signature_fields: {key} is {value!r}; give a string.")
    signature = bench.metric.signature()
    require(
        Signature.parse(str(signature)) == signature,
        f"{signature} reads back as something else; leave its text to Signature.",
    )
    require(
        (signature.name, signature.version) == (bench.metric.name, bench.metric.version),
        f"{signature} does not start with the metric's name and version.",
    )


def signature_holds_what_moves_the_score(bench: Bench) -> None:
    """Two settings that may score differently have different signatures, and no others do."""
    for field in option_fields(bench.metric):
        moves = field.metadata.get("moves_score", True)
        for other in bench.alternatives(field):
            differs = str(other.signature()) != str(bench.metric.signature())
            require(
                differs or not moves,
                f"{other.label} has the signature of {bench.metric.label}. Let signature_fields"
                f" not hide option {field.name!r}, or declare it with moves_score=False.",
            )
            if not moves:
                require(
                    bench.scored(bench.samples, other) == bench.scored(bench.samples),
                    f"option {field.name!r} is declared with moves_score=False, but {other.label}"
                    f" scores otherwise than {bench.metric.label}.",
                )


def obstacle(bench: Bench) -> None:
    """It says what is missing from a sample that it cannot score, and nothing otherwise."""
    metric = bench.metric
    for sample in bench.samples:
        why = metric.obstacle(sample)
        require(
            not why,
            f"it refuses the ordinary sample {sample.id!r}: {why}."
            " Pass samples= that it can score, or correct levels and needs.",
        )
        for need in metric.needs:
            empty: Any = {} if need == "ratings" else ()
            require(
                bool(metric.obstacle(replace(sample, **{need: empty}))),
                f"it needs {need}, but obstacle() accepts a sample without. Extend"
                " super().obstacle(sample) instead of replacing it.",
            )
        other_level = replace(sample, response="Yes." if sample.response is None else None)
        require(
            other_level.level in metric.levels or bool(metric.obstacle(other_level)),
            f"it does not judge a {other_level.level}, but obstacle() accepts one.",
        )


def ask_is_pure(bench: Bench) -> None:
    """It asks the same frozen questions each time, of models that it declares."""
    declared = set(bench.metric.models().values())
    for sample in bench.samples:
        first, second = list(bench.metric.ask(sample)), list(bench.metric.ask(sample))
        require(first == second, "asked twice about one sample, it asks different questions.")
        for question in first:
            require(
                isinstance(question, Question),
                f"ask returned a {type(question).__name__}; return Questions only.",
            )
            try:
                hash(question), question.key("")
            except TypeError as error:
                raise MetricCheckError(
                    f"a {type(question).__name__} question cannot be a key ({error});"
                    " give it fields of plain frozen types."
                ) from error
            require(
                question.model in declared,
                f"it asks the model {question.model!r}, which models() does not name, so the"
                " signature would not either.",
            )


def deterministic(bench: Bench) -> None:
    """The same sample gets the same score, also from an equal metric made anew."""
    first = bench.scored(bench.samples)
    _same(bench.scored(bench.samples), first, "the second time")
    anew = build(type(bench.metric), bench.metric.options(), bench.metric.name)
    _same(bench.scored(bench.samples, anew), first, "with an equal metric made anew")


def independent_of_neighbours(bench: Bench) -> None:
    """A score does not depend on what is scored before, after, or twice."""
    samples = bench.samples
    expected = bench.scored(samples)
    _same(bench.scored(samples[::-1])[::-1], expected, "when the samples come in reverse order")
    twice = [sample for sample in samples for _ in range(2)]
    _same(bench.scored(twice)[::2], expected, "when every sample comes twice")
    alone = [bench.scored([sample, samples[0]])[0] for sample in samples]
    _same(alone, expected, "when a sample is scored alone")


def touches_nothing_outside(bench: Bench) -> None:
    """While it scores it opens no file, starts no program and reaches no network."""
    bench.scored(bench.samples)  # what is imported or looked up when first used
    if touched := _touched(lambda: bench.scored(bench.samples)):
        raise MetricCheckError(
            f"while it scores, it touches {touched[0]}. Read files when the metric is made, and"
            " keep what they held: see `bound` in dialeval.metric."
        )


_TOUCHING = ("open", "subprocess.Popen", "os.system", "socket.connect", "socket.getaddrinfo")
_watched: ContextVar[list[str] | None] = ContextVar("watched", default=None)


def _touched(work: Callable[[], object]) -> list[str]:
    """Returns what Python's audit events say that the work touched outside of the process."""
    _watch()
    found: list[str] = []
    token = _watched.set(found)
    try:
        work()
    finally:
        _watched.reset(token)
    return found


@cache
def _watch() -> None:
    """Installs the hook, once: Python cannot remove one."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _TOUCHING and (found := _watched.get()) is not None:
            found.append(f"{arguments[0]!r} ({event})")

    sys.addaudithook(hook)


def _same(scores: list[Score], expected: list[Score], when: str) -> None:
    for number, (score, wanted) in enumerate(zip(scores, expected, strict=True)):
        require(
            score == wanted,
            f"sample {number} scores {score.value} instead of {wanted.value} {when}. Use nothing"
            " but the sample, the answers and the options: no state, clock or random numbers.",
        )


def range_and_parts(bench: Bench) -> None:
    """Values lie in the declared range; parts are those declared."""
    seen: set[str] = set()
    for sample, score in zip(bench.samples, bench.scored(bench.samples), strict=True):
        _fits(bench.metric, score, f"sample {sample.id!r}")
        seen |= set(score.parts)
    absent = [part.name for part in bench.metric.parts() if part.name not in seen]
    require(not absent, f"no score carries the declared part {', '.join(map(repr, absent))}.")


def _fits(metric: Metric, score: Score, where: str) -> None:
    if score.value is not None:
        low, high = metric.range
        # Libraries that take logarithms end a few rounding errors above their maximum.
        slack = 1e-9 * max(abs(bound) for bound in (low, high, 1.0) if math.isfinite(bound))
        require(
            low - slack <= score.value <= high + slack,
            f"{where}: {score.value} lies outside the declared range {low} to {high}.",
        )
    declared = {part.name: part for part in metric.parts()}
    for name, value in score.parts.items():
        require(name in declared, f"{where}: the part {name!r} is not declared in parts().")
        numbers = value if isinstance(value, tuple) else (value,)
        require(
            isinstance(value, tuple) == declared[name].many,
            f"{where}: the part {name!r} is {value!r}; declare many=True for a tuple of numbers.",
        )
        require(
            all(isinstance(n, int | float) and math.isfinite(n) for n in numbers),
            f"{where}: the part {name!r} is {value!r}; leave out a part that is not a number.",
        )


def leaves_its_input_alone(bench: Bench) -> None:
    """Neither the sample nor the answers are changed."""
    for sample in bench.samples:
        ours = copy.deepcopy(sample)
        answers = [bench.answer(question) for question in bench.metric.ask(ours)]
        kept = copy.deepcopy(answers)
        bench.metric.score(ours, answers)
        require(ours == sample, "it changes the sample; copy what you want to change.")
        unchanged = len(kept) == len(answers) and all(
            _equal_answers(a, b) for a, b in zip(kept, answers, strict=True)
        )
        require(unchanged, "it changes the answers, which others may share; copy them first.")


def _equal_answers(first: Answer, second: Answer) -> bool:
    import numpy as np

    if isinstance(first, str) or isinstance(second, str):
        return bool(first == second)
    return np.array_equal(first, second, equal_nan=True)


def pool(bench: Bench) -> None:
    """A pool does not depend on the order of the samples, on other pools, nor on where it was
    filled: parts that come from other processes are merged into it."""
    if bench.metric.pool() is None:
        return
    require(
        not any(bench.metric.ask(sample) for sample in bench.samples),
        "it has a pool and asks questions. A resumed run counts again without a model, so a metric"
        " with a pool can ask nothing.",
    )

    def filled(samples: Sequence[Sample]) -> Pool:
        pool = bench.metric.pool()
        assert pool is not None
        for sample in samples:
            pool.add(bench.score(sample))
        return pool

    def merged(*parts: Sequence[Sample]) -> Pool:
        whole = filled(())
        for samples in parts:
            try:
                whole.merge(pickle.loads(pickle.dumps(filled(samples))))
            except Exception as error:
                raise MetricCheckError(
                    f"sending a pool by pickle and merging it into another fails with"
                    f" {type(error).__name__}: {error}"
                ) from error
        return whole

    expected = filled(bench.samples).result()
    _fits(bench.metric, expected, "pool")
    half = len(bench.samples) // 2
    for pool, when in (
        (filled(bench.samples), "the second time"),
        (filled(bench.samples[::-1]), "reversed"),
        (merged(bench.samples[:half], bench.samples[half:]), "merged of two parts"),
        (merged(bench.samples[half:], bench.samples[:half]), "merged of two parts, reversed"),
    ):
        value = pool.result().value
        require(
            value == expected.value,
            f"the pool gives {value} instead of {expected.value} {when}. Return a fresh accumulator"
            " from pool(), and let it sum whole numbers: a sum of floats depends on the order.",
        )


def survives(bench: Bench, text: str) -> None:
    sample = bench.samples[0]
    alone = (
        replace(sample, response=text)
        if sample.response is not None
        else replace(sample, context=(*sample.context[:-1], Turn(text, "user")))
    )
    everywhere = replace(
        alone,
        context=tuple(Turn(text, turn.speaker) for turn in alone.context),
        references=(text,) if alone.references else (),
        facts=(text,) if alone.facts else (),
        variants=(Variant(text, text),) if alone.variants else (),
    )
    for hostile in (alone, everywhere):
        _fits(bench.metric, bench.score(hostile), "hostile text")


CLAIMS = (
    declaration,
    documented,
    frozen,
    picklable,
    label,
    signature_parses,
    signature_holds_what_moves_the_score,
    obstacle,
    ask_is_pure,
    deterministic,
    independent_of_neighbours,
    touches_nothing_outside,
    range_and_parts,
    leaves_its_input_alone,
    pool,
)
