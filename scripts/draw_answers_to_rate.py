"""Draws answers for a language model to rate, and packs its ratings for `train judge-corpus`.

    python scripts/draw_answers_to_rate.py draw FOLDER --groups 6000 --batch 120
    python scripts/draw_answers_to_rate.py draw-graded FOLDER      # the graded answers, instead
    ... the rater reads FOLDER/batch-*.txt and writes FOLDER/ratings-*.txt ...
    python scripts/draw_answers_to_rate.py pack FOLDER

    python scripts/draw_answers_to_rate.py draw-rated FOLDER2      # to compare rater and people
    ... the rater reads FOLDER2/batch-*.txt and writes FOLDER2/ratings-*.txt ...
    python scripts/draw_answers_to_rate.py agree FOLDER2

`draw` takes turns of public corpora that no rated set shares, and up to three answers to each: the
one that was given, those of a small language model, answers to similar turns, and faulty ones. A
batch shows them in random order, without their source. A line of `ratings-NNN.txt` is the number
of a group and for each answer three digits from 1 to 5: relevance, engagement, overall.

`pack` adds the rated groups to `training/examples/model_ratings.jsonl.gz`. Texts of the corpora
become hashes there, because the corpora may not be passed on.

`draw-rated` draws 50 answers of each set that `dialeval study judge` knows, and `agree` prints
Spearman of the rater with the mean rating of people. These ratings are never packed.

The ratings that ship came in seven draws. This script made the last six, with other shares in the
first of them; the 5,228 groups of the earliest draw were made by a program that was not kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from dialeval.datasets.locate import resolve_folder
from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
from dialeval.generation.generator import load_generator
from dialeval.generation.search import Decoding
from dialeval.metrics.judge import assessed
from dialeval.models.source import Models
from dialeval.question import Assess, Embed
from dialeval.readers import load
from dialeval.sample import Turn
from dialeval.studies.judge import SETS
from dialeval.text import letters_and_digits
from dialeval.training.examples.corpora import known_exchanges, load_corpus, without_rated
from dialeval.training.examples.faults import Exchange, spoil
from dialeval.training.examples.judge import exchanges_of, graded_groups
from dialeval.training.examples.model_ratings import (
    RATED,
    SHIPPED,
    corpus_texts,
    reference,
    shipped_records,
)
from dialeval.training.examples.rated_answers import mean_ratings

CORPORA = {"dailydialog": 0.25, "empathetic": 0.15, "personachat": 0.15, "topical-chat": 0.1,
           "convai2-human": 0.35}  # fmt: skip
"""Where the turns come from, and which share of them."""

SOURCES = {"given": 0.28, "written": 0.2, "similar": 0.37, "faulty": 0.15}
"""Where answers come from. Each group takes three of them at random."""
WITHOUT_WRITER = {"given": 0.34, "written": 0.0, "similar": 0.47, "faulty": 0.19}
"""The same with `--no-writer`: writing takes a language model far longer than all the rest."""

WRITER, ENCODER = "smollm2-135m-dialogue", "minilm-l6"
LONGEST, FEWEST_LETTERS = 6, 12
"""Turns before an answer that are shown; letters that the last of them has at least."""
POOL = 2500
"""Exchanges of a corpus that are searched for similar turns, at least."""

SHIPPED_AT = Path(__file__).parents[1] / "src/dialeval/training/examples" / SHIPPED


def draw(
    folder: Path, groups: int, batch: int, seed: int, sources: Mapping[str, float] = SOURCES
) -> None:
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rated_before = {tuple(record["turns"]) for record in shipped_records()}
    exchanges = []
    for name, share in CORPORA.items():
        exchanges += _with_answers(name, round(groups * share), rated_before, generator, sources)
        print(f"{name}: {len(exchanges)} groups so far", flush=True)
    _write_batches(folder, exchanges, batch, generator)


def draw_graded(folder: Path, batch: int, seed: int) -> None:
    """All graded answers that nobody has rated."""
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rated_before = {tuple(record["turns"]) for record in shipped_records()}
    rows = []
    for group in graded_groups():
        turns = list(group.answers[0].turns)
        if tuple(map(reference, turns)) not in rated_before:
            texts = [group.answers[i].response for i in generator.permutation(len(group.answers))]
            rows.append((turns, texts))
    _write_batches(folder, rows, batch, generator)


def _write_batches(
    folder: Path,
    groups: Sequence[tuple[list[str], list[str]]],
    batch: int,
    generator: np.random.Generator,
) -> None:
    order = generator.permutation(len(groups))
    with (folder / "groups.jsonl").open("w", encoding="utf-8") as file:
        for place in order:
            turns, answers = groups[place]
            file.write(json.dumps({"turns": turns, "answers": answers}) + "\n")
    for number, start in enumerate(range(0, len(order), batch), start=1):
        text = "\n\n".join(
            _shown(place, *groups[order[place]])
            for place in range(start, min(start + batch, len(order)))
        )
        (folder / f"batch-{number:03}.txt").write_text(text + "\n", encoding="utf-8")


def _shown(number: int, turns: Sequence[str], answers: Sequence[str]) -> str:
    lines = [f"## {number}"]
    lines += [
        f"{'BA'[(len(turns) - place) % 2]}: {' '.join(turn.split())}"
        for place, turn in enumerate(turns)
    ]
    lines += [f"  {place}) {' '.join(one.split())}" for place, one in enumerate(answers, start=1)]
    return "\n".join(lines)


def _with_answers(
    name: str,
    count: int,
    rated_before: set[tuple[str, ...]],
    generator: np.random.Generator,
    shares: Mapping[str, float],
) -> list[tuple[list[str], list[str]]]:
    """Turns of a corpus, each with three answers."""
    corpus, _ = without_rated(load_corpus(Path(name)), known_exchanges())
    found = [
        one
        for one in exchanges_of(corpus.train)
        if len(letters_and_digits(one.turns[-1])) >= FEWEST_LETTERS
        and len(one.response.split()) <= 60
    ]
    most = max(POOL, 2 * count)
    pool = [found[i] for i in generator.permutation(len(found))[:most]]
    drawn = []
    for one in pool:
        turns = one.turns[-int(generator.integers(1, LONGEST + 1)) :]
        if tuple(map(reference, turns)) not in rated_before:
            drawn.append(Exchange(turns, one.response, one.later))
        if len(drawn) == count:
            break
    wanted = [_sources(generator, shares) for _ in drawn]
    written = iter(_written([d for d, own in zip(drawn, wanted, strict=True)
                             for _ in range(own.count("written"))], generator))  # fmt: skip
    similar = _similar(drawn, pool)
    others = [one.response for one in pool]
    rows = []
    for place, (one, sources) in enumerate(zip(drawn, wanted, strict=True)):
        answers = []
        for source in sources:
            if source == "given":
                answers.append(one.response)
            elif source == "written":
                answers.append(next(written))
            elif source == "similar":
                answers.append(similar[place][int(generator.integers(len(similar[place])))])
            else:
                answers += [bad.response for bad in spoil(one, others, generator, 1)]
        different = {letters_and_digits(text): text for text in answers if letters_and_digits(text)}
        texts = list(different.values())
        if len(texts) >= 2:
            shuffled = [texts[i] for i in generator.permutation(len(texts))]
            rows.append((list(one.turns), shuffled))
    return rows


def _sources(generator: np.random.Generator, shares: Mapping[str, float]) -> list[str]:
    drawn = generator.choice(list(shares), size=3, p=list(shares.values())).tolist()
    return ["given", *[one for one in drawn if one != "given"][:2]] if "given" in drawn else drawn


def _written(exchanges: Sequence[Exchange], generator: np.random.Generator) -> Iterator[str]:
    """What the small language model says, cold or hot."""
    if not exchanges:
        return
    writer = load_generator(WRITER)
    histories = [
        [
            Turn(text, ("system", "user")[(len(one.turns) - place) % 2])
            for place, text in enumerate(one.turns)
        ]
        for one in exchanges
    ]
    texts = [""] * len(histories)
    heats = generator.choice([0.6, 0.9, 1.1], size=len(histories))
    for heat in sorted(set(heats.tolist())):
        rows = np.flatnonzero(heats == heat).tolist()
        decoding = Decoding("sample", top_p=0.95, temperature=heat, max_new_tokens=32)
        replies = writer.replies(
            [histories[i] for i in rows], decoding, int(generator.integers(99))
        )
        for row, reply in zip(rows, replies, strict=True):
            texts[row] = _whole_sentences(reply[0])
    yield from texts


def _whole_sentences(text: str) -> str:
    """Without a sentence that was cut off, where there is one before it."""
    whole = re.match(r"(?s).*[.!?]", text.strip())
    return whole.group(0) if whole else text.strip()


def _similar(drawn: Sequence[Exchange], pool: Sequence[Exchange]) -> list[list[str]]:
    """For each exchange, answers to the turns of the pool that are nearest to its last one."""
    with AnswerCache(default_cache_path()) as cache:
        answerer = Answerer(Models(), cache)
        texts = [one.turns[-1] for one in (*drawn, *pool)]
        answers = answerer.answer((Embed(ENCODER, text) for text in texts), lambda *_: None)
        vectors = np.stack([np.asarray(answers[Embed(ENCODER, text)]) for text in texts])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    own, other = vectors[: len(drawn)], vectors[len(drawn) :]
    found = []
    for one, row in zip(drawn, own @ other.T, strict=True):
        nearest = (pool[i] for i in np.argsort(-row))
        others = (o.response for o in nearest if o.turns[-1] != one.turns[-1])
        found.append(list(islice(others, 8)))
    return found


def pack(folder: Path) -> None:
    groups = [json.loads(line) for line in (folder / "groups.jsonl").open(encoding="utf-8")]
    known = {
        reference(text)
        for text in corpus_texts([Path(name) for name in CORPORA], resolve_folder("dailydialog++"))
    }

    def stored(text: str) -> str:
        return key if (key := reference(text)) in known else f"={text}"

    records = {tuple(record["turns"]): record for record in shipped_records()}
    lines = bad = 0
    for path in sorted(folder.glob("ratings-*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            number, *ratings = line.split()
            lines += 1
            group = groups[int(number)]
            right = len(ratings) == len(group["answers"]) and all(
                re.fullmatch(f"[1-5]{{{len(RATED)}}}", rating) for rating in ratings
            )
            if not right:
                bad += 1
                continue
            turns = list(map(stored, group["turns"]))
            records[tuple(turns)] = {
                "turns": turns,
                "answers": list(map(stored, group["answers"])),
                "ratings": ratings,
            }
    text = "\n".join(json.dumps(record, ensure_ascii=False) for record in records.values())
    SHIPPED_AT.write_bytes(gzip.compress(text.encode() + b"\n", mtime=0))
    print(
        f"{lines} groups read, {bad} of them without a rating for each answer; {len(records)} now"
    )


PER_SET = 50


def draw_rated(folder: Path, batch: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in SETS:
        samples = [
            sample
            for sample in load(name, limit=1500, seed=0)
            if sample.response and sample.response.strip() and sample.context and sample.ratings
        ]
        ratings = mean_ratings(name, samples, None)["overall"]
        for place in generator.permutation(np.flatnonzero(~np.isnan(ratings)))[:PER_SET].tolist():
            question = assessed(samples[place], "")
            rows.append((name, question, float(ratings[place])))
    rows = [rows[place] for place in generator.permutation(len(rows))]
    with (folder / "rated.jsonl").open("w", encoding="utf-8") as file:
        for name, _, rating in rows:
            file.write(json.dumps({"set": name, "rating": rating}) + "\n")
    for number, start in enumerate(range(0, len(rows), batch), start=1):
        text = "\n\n".join(
            _shown_rated(place, rows[place][1])
            for place in range(start, min(start + batch, len(rows)))
        )
        (folder / f"batch-{number:03}.txt").write_text(text + "\n", encoding="utf-8")


def _shown_rated(number: int, question: Assess) -> str:
    turns = [
        f"{'B' if turn.speaker == 'me' else 'A'}: {' '.join(turn.text.split())}"
        for turn in question.turns[-8:]
    ]
    return "\n".join([f"## {number}", *turns, f"  1) {' '.join(question.response.split())}"])


def agree(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "rated.jsonl").open(encoding="utf-8")]
    said = {}
    for path in sorted(folder.glob("ratings-*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            number, rating = line.split()
            said[int(number)] = [int(digit) for digit in rating]
    found = []
    for name in SETS:
        own = [place for place in said if rows[place]["set"] == name]
        people = [rows[place]["rating"] for place in own]
        each = [spearmanr([said[place][n] for place in own], people)[0] for n in range(len(RATED))]
        found.append(each)
        values = ", ".join(f"{a} {value:.3f}" for a, value in zip(RATED, each, strict=True))
        print(f"{name} ({len(own)}): {values}")
    means = ", ".join(f"{a} {v:.3f}" for a, v in zip(RATED, np.mean(found, axis=0), strict=True))
    print(f"mean: {means}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["draw", "draw-graded", "pack", "draw-rated", "agree"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--groups", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-writer", action="store_true", help="draw no answers that it wrote")
    arguments = parser.parse_args()
    if arguments.what == "draw":
        sources = WITHOUT_WRITER if arguments.no_writer else SOURCES
        draw(arguments.folder, arguments.groups, arguments.batch, arguments.seed, sources)
    elif arguments.what == "draw-graded":
        draw_graded(arguments.folder, arguments.batch, arguments.seed)
    elif arguments.what == "draw-rated":
        draw_rated(arguments.folder, arguments.batch, arguments.seed)
    elif arguments.what == "agree":
        agree(arguments.folder)
    else:
        pack(arguments.folder)


if __name__ == "__main__":
    main()
