"""Responses and how engaging people found them, from 0 to 1: for the engagement sub-metric.

MME-CRS learns engagement from ConvAI 2017, 13 124 responses, from the response alone. Every rating
becomes a soft label, (rating - lowest) / (highest - lowest), in these ways:

    Topical-Chat    `turn_rating`, 1 to 5: the partner's word for this very message
    ConvAI2         `eval_score`, 1 to 5: what the person thought of talking with the bot, so it
                    is given to every message of the bot, and to none of the person's own
    ConvAI 2017     `engagement`, 1 to 5, on the whole dialogue: given to both speakers' messages,
                    as Predictive Engagement does; two ratings are averaged
    engage          the fine-tuning sets of Predictive Engagement: `label`, 0 or 1, of a reply
    model-ratings   the engagement, 1 to 5, that a language model gave to each of several answers to
                    the same turns; it ships with dialeval (`model_ratings.py`)

Messages that one speaker sent in a row are one response where the rating is that of a dialogue. A
dialogue of fewer than four turns is not learned from: its rating says little about any of them.

Sources differ in their mean by half of the scale, and people like longer messages, so that a judge
of labels learns the source and the length. `matched_pairs` takes both away: the better and the
worse response of a pair are of one source and equally long.

Nothing is learned from that rated sets hold too (`rated_exchanges`): a query with the same reply,
or the same long text, letter case and punctuation aside. Where it is long, its whole dialogue goes.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from dialeval.datasets.locate import find_dataset, resolve_folder
from dialeval.errors import InputError, Problem, UsageError
from dialeval.sample import Rating, Sample, Turn
from dialeval.text import letters_and_digits
from dialeval.training.card import word_count
from dialeval.training.examples.corpora import LeftOut, RatedExchanges, is_long, known_exchanges
from dialeval.training.examples.model_ratings import rated_groups, shipped_records

MODEL_RATINGS = "model-ratings"
"""Names the ratings of a language model among the data."""

CORPORA = ("dailydialog", "empathetic", "personachat", "topical-chat", "convai2-human")
WRITTEN = "dailydialog++"
"""Where the texts that it rated are looked up."""

QUALITIES = ("turn_rating", "eval_score", "engagement")
OF_BOTH_SPEAKERS = ("engagement",)
"""Qualities of a dialogue as such; the others judge what the system said."""

FEWEST_TURNS = 4
"""The fewest turns of a dialogue that is rated as a whole."""

LONGER = 1.1
"""Responses are equally long if neither has a tenth more words than the other."""

LABELLED = ["id", "query", "reply", "label"]
SOURCES = {
    "DD_finetune_train": "engage-dailydialog",
    "DD_finetune_valid": "engage-dailydialog",
    "humanAMT_engscores_utt": "engage-convai",
}


@dataclass(frozen=True, slots=True)
class Engaging:
    """A response after its context, `target` from 0 (not engaging) to 1; `dialogue` is never
    split, and is unique within its source."""

    text: str
    context: tuple[str, ...]
    target: float
    source: str
    dialogue: str


@dataclass(frozen=True)
class EngagementData:
    """`left_out` are the responses that rated sets hold too."""

    train: tuple[Engaging, ...]
    validation: tuple[Engaging, ...]
    left_out: LeftOut
    missing: int = 0
    """Groups of answers that a language model rated, whose texts are in no corpus here."""

    def digest(self) -> str:
        sha = hashlib.sha256()
        for split in (self.train, self.validation):
            for one in split:
                sha.update("\x1f".join((*one.context, one.text)).encode("utf-8", "replace"))
                sha.update(f"\x1e{one.target:.6f}".encode())
            sha.update(b"\x1d")
        return sha.hexdigest()


def load_engagement(
    data: Sequence[Path],
    *,
    rated: RatedExchanges | None = None,
    validation: float = 0.1,
    per_source: int | None = None,
    seed: int = 0,
) -> EngagementData:
    """Responses of files, folders and data sets by name, split by dialogue.

    rated       what must stay unseen; None: the rated sets that dialeval knows
    validation  share of the dialogues of each source to validate on; always the same ones
    per_source  learn from exactly this many responses of each source, repeated if it has fewer;
                None: from all
    """
    read = [_read(path) for path in data]
    found = [one for responses, _ in read for one in responses]
    missing = sum(groups for _, groups in read)
    unrated, left_out = without_rated(found, known_exchanges() if rated is None else rated)
    held_out = _validation_dialogues(unrated, validation)
    validate = [one for one in unrated if (one.source, one.dialogue) in held_out]
    seen = set(map(_exchange, validate))
    learn = [
        one
        for one in unrated
        if (one.source, one.dialogue) not in held_out and _exchange(one) not in seen
    ]
    if not learn or not validate:
        raise UsageError(
            f"{len(learn)} responses to learn from and {len(validate)} to validate on: it takes"
            f" some of each, rated by one of {', '.join(QUALITIES)} on a scale that is known. For"
            " files of your own say it with: dialeval data convert FILE --scale engagement=1..5"
            " -o FILE.parquet"
        )
    if per_source is not None:
        learn = balance(learn, per_source, np.random.default_rng(seed))
    return EngagementData(tuple(learn), tuple(validate), left_out, missing)


def read_engagement(path: Path) -> list[Engaging]:
    """Reads all rated responses of a file or a folder, or of a data set by name."""
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Engaging], int]:
    """Returns rated responses, and how many groups of them have no text here."""
    if os.fspath(path) == MODEL_RATINGS:
        return _rated_by_a_model()
    place = resolve_folder(path)
    if not place.is_dir():
        return list(_of_file(place, SOURCES.get(place.stem, place.stem))), 0
    files = [
        file for file in sorted(place.iterdir()) if file.suffix == ".json" or is_labelled(file)
    ]
    if not files:
        raise UsageError(f"{place} holds no .json file and no .csv with {','.join(LABELLED)}")
    sources = {file: SOURCES.get(file.stem, place.name) for file in files}
    return [one for file, source in sources.items() for one in _of_file(file, source)], 0


def _rated_by_a_model() -> tuple[list[Engaging], int]:
    """Returns the answers whose texts are in the corpora that are here, and how many groups have
    none.

    Answers to the same turns are one dialogue, which is called by its turns: what is held out does
    not depend on what else is here.
    """
    here = [Path(name) for name in CORPORA if find_dataset(name) is not None]
    found = rated_groups(shipped_records(), here, find_dataset(WRITTEN))
    return [
        Engaging(
            answer.response,
            answer.turns,
            float(answer.aspects["engagement"]),
            MODEL_RATINGS,
            "\x1f".join(answer.turns),
        )
        for group in found.groups
        for answer in group.answers
    ], found.missing


def soft_label(rating: Rating) -> float | None:
    """Returns the mean rating on a scale from 0 to 1; None where nobody rated, or the scale is
    unknown."""
    if rating.mean is None or rating.scale is None:
        return None
    low, high = rating.scale
    return (rating.mean - low) / (high - low)


def balance(
    examples: Iterable[Engaging], per_source: int, generator: np.random.Generator
) -> list[Engaging]:
    """Draws `per_source` examples of each source at random; repeats only where there are fewer."""
    chosen = []
    for _, group in groupby(sorted(examples, key=_source), key=_source):
        members = list(group)
        draws = (generator.permutation(len(members)) for _ in range(per_source // len(members) + 1))
        chosen += [members[place] for place in np.concatenate(list(draws))[:per_source].tolist()]
    return chosen


def at_most_of_each(
    examples: Sequence[Engaging], most: int, generator: np.random.Generator
) -> list[Engaging]:
    """Draws at most `most` examples of each source, each once, in random order; 0: all of them."""
    taken = Counter[str]()
    chosen = []
    for place in generator.permutation(len(examples)).tolist():
        taken[examples[place].source] += 1
        if not most or taken[examples[place].source] <= most:
            chosen.append(examples[place])
    return chosen


@dataclass(frozen=True, slots=True)
class PreferredResponse:
    """Two responses of one source, equally long, of which people liked the first better."""

    better: Engaging
    worse: Engaging


def matched_pairs(
    examples: Iterable[Engaging], per_source: int, generator: np.random.Generator
) -> list[PreferredResponse]:
    """Draws at most `per_source` pairs of each source: one response at random, each once, then one
    that is equally long and was rated otherwise. A small source gives fewer pairs instead of
    repeating responses, which would be learned by heart."""
    chosen: list[PreferredResponse] = []
    for _, group in groupby(sorted(examples, key=_source), key=_source):
        members = sorted(group, key=lambda one: word_count(one.text))
        lengths = np.array([word_count(one.text) for one in members])
        targets = np.array([one.target for one in members])
        ends = np.searchsorted(lengths, np.floor(lengths * LONGER), side="right")
        starts = np.searchsorted(lengths, np.ceil(lengths / LONGER))
        able = [
            place
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
            if (targets[start:end] != targets[place]).any()
        ]
        for place in generator.permutation(able)[:per_source].astype(int).tolist():
            near = np.arange(starts[place], ends[place])
            other = int(generator.choice(near[targets[near] != targets[place]]))
            both = sorted((members[place], members[other]), key=lambda one: -one.target)
            chosen.append(PreferredResponse(*both))
    return chosen


def without_rated(
    examples: Sequence[Engaging], rated: RatedExchanges
) -> tuple[list[Engaging], LeftOut]:
    """Returns the examples that raters, whom a metric is to be compared with, did not see."""
    own: dict[Engaging, tuple[str, ...]] = {}
    of_dialogue: dict[tuple[str, str], set[str]] = {}
    for one in examples:
        query = one.context[-1] if one.context else ""
        shared = rated.sets_with_exchange(query, one.text)
        own[one] = shared
        long = {*rated.sets_with_long_turn(one.text), *(shared if is_long(query, one.text) else ())}
        of_dialogue.setdefault((one.source, one.dialogue), set()).update(long)
    kept, by_set = [], Counter[str]()
    for one in examples:
        if names := {*own[one], *of_dialogue[one.source, one.dialogue]}:
            by_set.update(names)
        else:
            kept.append(one)
    return kept, LeftOut(rated, "responses", len(examples) - len(kept), by_set)


def _of_file(path: Path, source: str) -> Iterator[Engaging]:
    if is_labelled(path):
        return _of_labelled_replies(path, source)
    from dialeval.readers import load

    return chain.from_iterable(_of_sample(sample, source) for sample in load(path))


def is_labelled(path: Path) -> bool:
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])[: len(LABELLED)] == LABELLED


def _of_labelled_replies(path: Path, source: str) -> Iterator[Engaging]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        for row in table:
            if row["label"] not in ("0", "1"):
                said = f"expected 0 or 1, not {row['label']!r}"
                raise InputError([Problem(str(path), table.line_num, "label", said, "error")])
            if text := row["reply"].strip():
                context = (row["query"].strip(),)
                target = float(row["label"])
                yield Engaging(text, context, target, source, f"{path.stem}-{row['id']}")


def _of_sample(sample: Sample, source: str) -> Iterator[Engaging]:
    labels = ((name, soft_label(r)) for name, r in sample.ratings.items() if name in QUALITIES)
    quality, target = next(((n, label) for n, label in labels if label is not None), ("", None))
    if target is None:
        return
    dialogue = sample.dialogue or sample.id
    if sample.response is not None:
        context = tuple(turn.text for turn in sample.context)
        if text := sample.response.strip():
            yield Engaging(text, context, target, source, dialogue)
        return
    turns = _merged(sample.context)
    if len(turns) < FEWEST_TURNS:
        return
    for place, turn in enumerate(turns):
        if turn.speaker == "system" or quality in OF_BOTH_SPEAKERS:
            context = tuple(before.text for before in turns[:place])
            yield Engaging(turn.text, context, target, source, dialogue)


def _merged(turns: Sequence[Turn]) -> list[Turn]:
    """Returns one turn of what a speaker said in a row."""
    spoken = (turn for turn in turns if turn.text.strip())
    return [
        Turn(" ".join(turn.text.strip() for turn in said), speaker)
        for speaker, said in groupby(spoken, key=lambda turn: turn.speaker)
    ]


def _validation_dialogues(examples: Iterable[Engaging], share: float) -> set[tuple[str, str]]:
    """Returns the first examples of each source, at least one, in the order of a digest."""
    chosen: set[tuple[str, str]] = set()
    keys = sorted({(one.source, one.dialogue) for one in examples})
    for _, group in groupby(keys, key=lambda key: key[0]):
        dialogues = sorted(
            group,
            key=lambda key: hashlib.sha256("\x1f".join(key).encode("utf-8", "replace")).digest(),
        )
        chosen.update(dialogues[: max(1, round(share * len(dialogues)))])
    return chosen


def _source(example: Engaging) -> str:
    return example.source


def _exchange(example: Engaging) -> tuple[str, str]:
    return letters_and_digits(example.context[-1] if example.context else ""), letters_and_digits(
        example.text
    )
