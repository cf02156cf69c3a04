"""From samples to a rating job: tasks, attention checks, comparisons, and an order for each rater.

An attention check shows nonsense that nobody can mistake for a good response: words are drawn at
random from responses all over the data. It is neither fluent nor about anything, but has the usual
length and vocabulary, so it does not stand out at a glance. A shuffled response alone may still
make sense ("yes I do"), and the response of another dialogue is fluent and may even fit. In a
group of answers, all are the same nonsense, which no attentive rater calls diverse.

Each rater sees the tasks in a random order, drawn from the seed of the job, and some of them twice:
a task of the first half of the order comes again at least a third of the order later, so that it is
judged again and not remembered. The sides of a comparison are drawn for each rater and task, and
swapped the second time, so that a preference for the left side shows.

With `per_item` each task goes to that many raters only. The numbers of tasks differ by at most one
between raters.

What is to be judged: samples from anything that `dialeval.load` reads, and from runs; and their
pairs.

A run also has scores. They are stored with the samples, out of the raters' sight, so that `dialeval
agree ratings.db` can compare metrics with people without further files.

In a comparison, answers of different sides to the same item are paired. With several sources each
is a side, as in `dialeval compare`; with a single source, each of its systems. Samples are joined
as in `agreement/joining.py`. With three sides and more, every two are paired.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path

from dialeval.agreement.joining import TRIED, SampleKeys, have_same_systems, shared_rows
from dialeval.errors import UsageError
from dialeval.rating.job import DESCRIPTIONS, PREFERENCE, Job, Quality, Task
from dialeval.readers.load import Samples, choose
from dialeval.readers.reader import Problems
from dialeval.runs.run import Run, is_run, open_run
from dialeval.sample import Sample, Turn


@dataclass(frozen=True)
class RatingMaterial:
    """One source: a run, or what one or more files hold."""

    name: str
    samples: tuple[Sample, ...]
    scores: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Id of the sample (`SYSTEM/ID` with `shared_ids`) -> metric -> score."""
    directions: Mapping[str, str] = field(default_factory=dict)
    problems: Problems | None = None
    """The problems of the file."""
    shared_ids: bool = False
    """Whether systems of a run have the same ids, as those that `dialeval holistic` asked."""


def read_material(
    paths: Sequence[str],
    load: Callable[[str], Samples],
    *,
    limit: int | None = None,
    seed: int | None = None,
    spread: str = "",
) -> list[RatingMaterial]:
    """Loads the samples of each path. Ratings that the samples had are dropped: raters start
    afresh.

    spread  a metric of the runs: their samples are chosen evenly over its range, not at random
    """
    if not paths:
        raise UsageError("no file given")
    if spread and limit is None:
        raise UsageError(f"--spread {spread}: say with --limit how many are to be chosen")
    if spread and (files := [path for path in paths if not is_run(path)]):
        raise UsageError(
            f"--spread {spread}: {files[0]} is no run, so it has no scores. Score it first:"
            f" dialeval score {files[0]} -m {spread} -o RUN"
        )
    return [
        _run(name, open_run(path), limit, seed, spread)
        if is_run(path)
        else _files(name, load(path))
        for name, path in zip(_names(paths), paths, strict=True)
    ]


def _files(name: str, samples: Samples) -> RatingMaterial:
    return RatingMaterial(name, tuple(_bare(samples)), problems=samples.counts)


def _run(
    name: str, run: Run, limit: int | None, seed: int | None, spread: str = ""
) -> RatingMaterial:
    rows: Iterator[Sample] | list[Sample] = _bare(run.samples())
    if spread:
        if spread not in run.metrics:
            raise UsageError(
                f"--spread {spread}: {run.directory} has no such metric, but"
                f" {', '.join(run.metrics)}"
            )
        places = evenly_spread(run.scores(spread), limit or 0)
        rows = [sample for place, sample in enumerate(rows) if place in places]
    elif limit is not None:
        generator = random.Random(seed)
        rows = islice(rows, limit) if seed is None else choose(rows, limit, generator)
    samples = tuple(rows)
    wanted = {(sample.system, sample.id) for sample in samples}
    found: dict[tuple[str, str], dict[str, float | None]] = {key: {} for key in wanted}
    seen: set[str] = set()
    shared = False
    for batch in run.batches(["id", "system", *run.metrics]):
        for row in batch.to_pylist():
            shared = shared or row["id"] in seen
            seen.add(row["id"])
            if (key := (row["system"] or "", row["id"])) in wanted:
                found[key] = {metric: row[metric] for metric in run.metrics}
    scores = {f"{by}/{own}" if shared else own: values for (by, own), values in found.items()}
    directions = {metric["label"]: metric["direction"] for metric in run.manifest["metrics"]}
    return RatingMaterial(name, samples, scores, directions, shared_ids=shared)


def evenly_spread(values: Sequence[float | None], count: int) -> set[int]:
    """Returns the places of `count` values that lie evenly over their range.

    HolisticEval's raters saw samples "with a diverse range of generation quality" (section 4.5): a
    random selection would mostly be mediocre. The targets divide the range from the lowest to the
    highest value into equal steps; each takes the nearest value that is left. Missing values are
    not chosen.
    """
    there = sorted((value, place) for place, value in enumerate(values) if value is not None)
    if len(there) <= count:
        return {place for _, place in there}
    low, high = there[0][0], there[-1][0]
    chosen: set[int] = set()
    for step in range(count):
        target = low if count == 1 else low + (high - low) * step / (count - 1)
        left = [(abs(value - target), value, place) for value, place in there]
        _, value, place = min(left)
        chosen.add(place)
        there.remove((value, place))
    return chosen


def _bare(samples: Samples | Iterator[Sample]) -> Iterator[Sample]:
    return (replace(sample, ratings={}) for sample in samples)


def _names(paths: Sequence[str]) -> list[str]:
    """Returns the last part of each path without its endings if that is unique, else the whole
    path."""
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise UsageError(f"{twice[0]} is given twice")
    short = [Path(path).name.partition(".")[0] or path for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


@dataclass(frozen=True)
class Pairs:
    """`left_out` samples met no other answer; `same` pairs of equal answers need no question."""

    pairs: tuple[tuple[Sample, Sample], ...]
    left_out: int
    same: int


def pair_up(material: Sequence[RatingMaterial]) -> Pairs:
    """Pairs every answer with each answer of another side. The name of the side is in `system`."""
    sides = _sides(material)
    if len(sides) < 2:
        raise UsageError(
            "there is nothing to compare: name two files or runs, or one that holds the answers of"
            " several systems"
        )
    keys = [SampleKeys.of(samples) for samples in sides.values()]
    own_system = len(material) > 1 and have_same_systems(keys)
    for by in TRIED:
        if rows := shared_rows(keys, by, own_system):
            groups = [
                {
                    side: _with_item(samples[places[0]], key)
                    for (side, samples), places in zip(sides.items(), row, strict=True)
                    if places
                }
                for key, row in rows.items()
            ]
            total = sum(len(samples) for samples in sides.values())
            return _pairs(groups, total - sum(map(len, groups)))
    raise UsageError(
        f"there is nothing to compare: no sample of {', '.join(sides)} has the same id, item or"
        " context as one of another. Give answers to one question the same 'item'."
    )


def _sides(material: Sequence[RatingMaterial]) -> dict[str, list[Sample]]:
    if len(material) > 1:
        return {source.name: list(source.samples) for source in material}
    sides: dict[str, list[Sample]] = {}
    for sample in material[0].samples:
        sides.setdefault(sample.system, []).append(sample)
    return sides


def _pairs(groups: Sequence[dict[str, Sample]], left_out: int) -> Pairs:
    pairs: list[tuple[Sample, Sample]] = []
    same = 0
    for group in groups:
        ids = [sample.id for sample in group.values()]
        answers = [
            replace(
                sample,
                system=side,
                id=sample.id if ids.count(sample.id) == 1 else f"{side}/{sample.id}",
            )
            for side, sample in group.items()
        ]
        for first, second in combinations(answers, 2):
            if [turn.text for turn in first.turns] == [turn.text for turn in second.turns]:
                same += 1
            else:
                pairs.append((first, second))
    if not pairs:
        raise UsageError("there is nothing to compare: all answers are the same on all sides")
    return Pairs(tuple(pairs), left_out, same)


def _with_item(sample: Sample, key: Hashable) -> Sample:
    """Pairs of the same group are not independent: if the data do not say what belongs together,
    the item is the key that joined them."""
    if sample.item or sample.dialogue or not isinstance(key, tuple):
        return sample
    value = key[-1]
    return replace(sample, item=value.hex() if isinstance(value, bytes) else str(value))


SHORTEST, LONGEST = 6, 25
"""The number of words of nonsense: fewer may make sense, more are a chore to read."""
LONG_WORD = 20
"""A longer word is a sentence in a script without spaces, or an address, and is cut to pieces."""
PIECE = 2


def vocabulary(samples: Sequence[Sample]) -> list[str]:
    """Returns the words of all responses (in whole dialogues: of all turns), with repetitions."""
    words = [word for sample in samples for text in _texts(sample) for word in _words(text)]
    if len(set(words)) < SHORTEST:
        # The data hold too few words: add others.
        words += ["seven", "quickly", "of", "beneath", "lamp", "who", "purple", "therefore"]
    return words


def nonsense_of(sample: Sample, words: Sequence[str], generator: random.Random) -> Sample:
    """Returns the sample with nonsense in place of its response; in a whole dialogue, of every
    other turn."""

    def mix(text: str) -> str:
        wanted = min(LONGEST, max(SHORTEST, len(list(_words(text)))))
        return " ".join(generator.choice(words) for _ in range(wanted))

    if sample.variants:
        # The same nonsense everywhere: different nonsense would be diverse.
        same = mix(sample.variants[0].response)
        variants = tuple(replace(variant, response=same) for variant in sample.variants)
        sample = replace(sample, variants=variants)
        if sample.response is None:
            return sample
    if sample.response is not None:
        return replace(sample, response=mix(sample.response))
    turns = tuple(
        Turn(mix(turn.text), turn.speaker) if index % 2 or len(sample.context) == 1 else turn
        for index, turn in enumerate(sample.context)
    )
    return replace(sample, context=turns)


def _texts(sample: Sample) -> Iterator[str]:
    yield from (variant.response for variant in sample.variants)
    if sample.response is not None:
        yield sample.response
    else:
        yield from (turn.text for turn in sample.context)


def _words(text: str) -> Iterator[str]:
    for word in text.split():
        if len(word) <= LONG_WORD:
            yield word
        else:
            yield from (word[at : at + PIECE] for at in range(0, len(word), PIECE))


APART = 3
"""A task is repeated at least 1/APART of the order later."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The task of a rater at one position (from 1). `flipped`: the second sample is on the left."""

    position: int
    task: int
    repeat: bool = False
    flipped: bool = False


def assignments(job: Job, rater: int, raters: int) -> list[Assignment]:
    """Returns the assignments of a rater by number (from 1); the same for every call."""
    generator = random.Random(f"{job.seed} rater {rater}")
    tasks = _share(job, rater, raters)
    generator.shuffle(tasks)
    flipped = {task: job.kind == "compare" and generator.random() < 0.5 for task in tasks}
    checks = {task.number for task in job.tasks if task.kind == "check"}
    early = [place for place, task in enumerate(tasks[: len(tasks) // 2]) if task not in checks]
    count = min(len(early), math.ceil(job.duplicates * (len(tasks) - len(checks & flipped.keys()))))
    again = generator.sample(early, count)
    order = [(float(place), task, False) for place, task in enumerate(tasks)]
    order += [
        (generator.uniform(place + len(tasks) / APART, len(tasks)), tasks[place], True)
        for place in again
    ]
    return [
        Assignment(position, task, repeat, flipped[task] != (repeat and job.kind == "compare"))
        for position, (_, task, repeat) in enumerate(sorted(order), 1)
    ]


def _share(job: Job, rater: int, raters: int) -> list[int]:
    """Returns the tasks of one rater. Every rater gets all attention checks."""
    if not job.per_item or job.per_item >= raters:
        return [task.number for task in job.tasks]
    samples = [task.number for task in job.tasks if task.kind == "sample"]
    random.Random(f"{job.seed} shares").shuffle(samples)
    own = [
        task
        for place, task in enumerate(samples)
        if (rater - 1 - place * job.per_item) % raters < job.per_item
    ]
    return own + [task.number for task in job.tasks if task.kind == "check"]


MOST_TASKS = 100_000
"""More tasks are a mistake that would fill the disk."""


@dataclass(frozen=True)
class Design:
    """A job, and remarks for whoever made it."""

    job: Job
    remarks: tuple[str, ...] = ()


def design(material: Sequence[RatingMaterial], job: Job, most_pairs: int | None = None) -> Design:
    """Makes the job with its tasks: each sample on its own, or pairs of answers side by side, at
    most `most_pairs` of them at random."""
    directions = {name: way for source in material for name, way in source.directions.items()}
    job = replace(job, sources=tuple(one.name for one in material), directions=directions)
    made = (
        _comparison(material, job, most_pairs) if job.kind == "compare" else _rating(material, job)
    )
    return replace(made, remarks=(*made.remarks, *_advice(made.job)))


def _advice(job: Job) -> Iterator[str]:
    """What the organiser should mend before raters begin."""
    checks = sum(task.kind == "check" for task in job.tasks)
    if checks == 1:
        share = math.ceil(300 / (len(job.tasks) - 1)) / 100
        more = f": --checks {share:g} makes three" if share <= 1 else ""
        yield f"there is one attention check, which a rater who answers at random may pass{more}"
    for quality in job.qualities:
        if not quality.description and quality.name != PREFERENCE:
            yield (
                f"{quality.name!r} has no description, so each rater has to guess what it means:"
                f" --describe {quality.name}='Is it ...?'"
            )


def _rating(material: Sequence[RatingMaterial], job: Job) -> Design:
    samples = [
        _with_system(sample) if source.shared_ids else sample
        for source in material
        for sample in source.samples
    ]
    _check_ids(samples)
    scores = {ident: found for source in material for ident, found in source.scores.items()}
    judged = [(sample,) for sample in samples if sample.turns or sample.variants]
    remarks = []
    if without := len(samples) - len(judged):
        remarks.append(f"{without:,} samples hold no dialogue: left out")
    groups = [one for one in judged if is_group(one[0])]
    if groups and len(groups) < len(judged):
        wants_groups = {quality.name for quality in job.qualities} <= OF_GROUPS.keys()
        if wants_groups:
            remarks.append(f"{len(judged) - len(groups):,} single answers: left out")
            judged = groups
        else:
            remarks.append(
                f"{len(groups):,} groups of answers: left out. Rate them by --qualities diversity"
            )
            judged = [one for one in judged if not is_group(one[0])]
    if judged and all(one[0].variants for one in judged):
        job = replace(job, qualities=about_groups(job.qualities))
    return Design(_with_tasks(job, judged, scores), tuple(remarks))


OF_GROUPS = {"diversity": "How much do the answers differ, in meaning and in choice of words?"}
"""Qualities that belong to a group of answers, and the question about each."""


def is_group(sample: Sample) -> bool:
    """Whether several answers are judged together, and none of them alone."""
    return bool(sample.variants) and sample.response is None


def about_groups(qualities: Sequence[Quality]) -> tuple[Quality, ...]:
    """Asks of a group what the usual question asks of one answer, unless somebody wrote another."""
    return tuple(
        replace(quality, description=OF_GROUPS[name])
        if (name := quality.name.lower()) in OF_GROUPS
        and quality.description == DESCRIPTIONS.get(name, "")
        else quality
        for quality in qualities
    )


def _comparison(material: Sequence[RatingMaterial], job: Job, most: int | None) -> Design:
    found = pair_up(material)
    pairs = found.pairs
    if most is not None and most < len(pairs):
        chosen = random.Random(f"{job.seed} pairs").sample(range(len(pairs)), most)
        pairs = tuple(pairs[place] for place in sorted(chosen))
    scores = {
        ident: values
        for source in material
        for name, values in source.scores.items()
        for ident in (name, f"{source.name}/{name}")
    }
    remarks = []
    if found.left_out:
        remarks.append(f"{found.left_out:,} samples have no counterpart: left out")
    if found.same:
        remarks.append(f"{found.same:,} pairs of equal answers: left out")
    return Design(_with_tasks(job, pairs, scores), tuple(remarks))


def _with_tasks(
    job: Job,
    judged: Sequence[tuple[Sample, ...]],
    scores: Mapping[str, Mapping[str, float | None]],
) -> Job:
    if not judged:
        raise UsageError("there is nothing to rate")
    if len(judged) > MOST_TASKS:
        raise UsageError(
            f"{len(judged):,} are too many to rate (at most {MOST_TASKS:,}): choose some with"
            " --limit N --seed 0"
        )
    tasks = [
        Task(number, "sample", samples, tuple(scores.get(sample.id, {}) for sample in samples))
        for number, samples in enumerate(judged, 1)
    ]
    return replace(job, tasks=(*tasks, *_checks(job, judged)))


def _checks(job: Job, judged: Sequence[tuple[Sample, ...]]) -> list[Task]:
    """Nonsense in place of a response; in a comparison, beside the response itself."""
    count = math.ceil(job.checks * len(judged))
    if not count:
        return []
    generator = random.Random(f"{job.seed} checks")
    words = vocabulary([samples[0] for samples in judged])
    checks = []
    for place in range(count):
        source = judged[generator.randrange(len(judged))][0]
        bad_copy = nonsense_of(source, words, generator)
        name = f"check-{place + 1:04d}"
        bad = replace(bad_copy, id=name, references=(), item=name, system="")
        good = replace(source, id=f"{name}-good", references=(), item=name, system="")
        samples = (bad,) if job.kind == "rate" else (good, bad)
        checks.append(Task(len(judged) + place + 1, "check", samples, tuple({} for _ in samples)))
    return checks


def _with_system(sample: Sample) -> Sample:
    """Returns the sample under an id that no other system has. The item still says which samples
    answer the same thing."""
    return replace(
        sample,
        id=f"{sample.system}/{sample.id}",
        dialogue=f"{sample.system}/{sample.dialogue}" if sample.dialogue else "",
        item=sample.item or sample.id,
    )


def _check_ids(samples: Sequence[Sample]) -> None:
    seen: set[str] = set()
    for sample in samples:
        if sample.id in seen:
            raise UsageError(
                f"the id {sample.id!r} occurs twice. To compare answers of two systems,"
                " add --compare; otherwise give each sample an id of its own."
            )
        seen.add(sample.id)
