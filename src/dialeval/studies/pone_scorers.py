"""The scorers of PONE's experiments: what each learns from, trained once and kept.

    CACHE/studies/pone/DIGEST/SCORER/           what `dialeval train pone` leaves
    CACHE/studies/pone/DIGEST/SCORER/seeds/N    the scorer of each seed

DIGEST is that of everything that decides what is learned: options, data, encoder and, where a
generator writes the positives, its weights. The rated answers are not part of it: a scorer that was
trained once is held against any.

The answers that PONE's raters judge come from systems that answer the queries of the test dialogues
of DailyDialog, or of the corpus that `--corpus` names, in the same random order: 100 of them, or
300 where a system reads more than one turn. A system that reads one turn is asked for each
utterance once. Models are decoded with five beams.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.errors import UsageError
from dialeval.options import split_spec
from dialeval.progress import Progress
from dialeval.sample import Sample, Turn
from dialeval.storage import cache_directory
from dialeval.studies.study import Findings, Setting, Table

if TYPE_CHECKING:
    from dialeval.models.pair_scorer import ContextRule
    from dialeval.pictures.drawing import Drawing
    from dialeval.systems.system import System
    from dialeval.training.loop import State
    from dialeval.training.recipe import Progress as TrainingProgress
    from dialeval.training.recipes.ruber import BertRuber

PAIRS, SEEDS = 15_000, 5
CORPUS = "dailydialog"
BASELINE, FULL = "BERT-RUBER", "PONE"
AUGMENTED = ("PONE-Ne-LF", "PONE-Ne", FULL)
"""Those that learn from augmented positives."""

VERSION = 2
"""Of what is kept: a scorer for each seed."""


@dataclass(frozen=True)
class Sizes:
    """How much a scorer learns from, and how often it is trained."""

    pairs: int = PAIRS
    seeds: int = SEEDS

    @classmethod
    def of(cls, setting: Setting, seeds: int = SEEDS) -> Sizes:
        return cls(setting.pairs or PAIRS, setting.seeds or seeds)


def corpus_of(setting: Setting) -> Path:
    """Returns what scorers learn from, and whose test queries chatbots answer."""
    return setting.corpus or setting.data[CORPUS]


def variants(
    encoder: str,
    positives: str = "eda",
    sizes: Sizes | None = None,
    context: ContextRule = "last",
) -> dict[str, BertRuber]:
    """Returns the five scorers, by the paper's names. Its single-turn tables have the turn before
    as the query (`last`)."""
    from dialeval.training.recipes.ruber import BertRuber, Pone

    sizes = sizes or Sizes()
    shared: dict[str, Any] = {
        "model": encoder, "context": context, "pairs": sizes.pairs, "seeds": sizes.seeds
    }  # fmt: skip
    full = Pone(positives=positives, **shared)
    return {
        BASELINE: BertRuber(**shared),
        "PONE-Po-LF": replace(full, positives="none", filter="none"),
        "PONE-Ne-LF": replace(full, sampler="random", filter="none"),
        "PONE-Ne": replace(full, sampler="random"),
        FULL: full,
    }


def all_variants(
    encoder: str, positives: Sequence[str], sizes: Sizes, context: ContextRule = "last"
) -> dict[str, BertRuber]:
    """Returns the five and, for each other way to make positives, the three that learn from
    them."""
    found = variants(encoder, sizes=sizes, context=context)
    for spec in positives:
        others = variants(encoder, spec, sizes, context)
        found |= {f"{name}{suffix(spec)}": others[name] for name in AUGMENTED}
    return found


def suffix(spec: str) -> str:
    """Returns what tells a scorer from that of the same name with EDA: `ctg:model=a/b` -> `, ctg
    b`."""
    name, options = split_spec(spec)
    return f", {name} {Path(str(options['model'])).name}" if "model" in options else f", {name}"


def check_positives(positives: Sequence[str]) -> None:
    """Complains of what cannot be made, before anything is trained."""
    from dialeval.generation.generator import load_generator
    from dialeval.training.examples.sampling import generator_of, make_positives

    for spec in positives:
        model = generator_of(spec)
        if not model:
            raise UsageError(
                f"--positives {spec}: eda is in the study anyway; others are made by a generator,"
                " such as ctg:model=DIR"
            )
        make_positives(spec, [], [])
        load_generator(model)
    if len({suffix(spec) for spec in positives}) < len(positives):
        raise UsageError("--positives: two of them have the same name")


STEPS = 100
"""Steps of progress for one training, or for the answers of one system."""


def all_trained(recipes: Mapping[str, BertRuber], setting: Setting) -> dict[str, Path]:
    """Returns the directory of each scorer, and reports one progress over all trainings."""
    total = STEPS * sum(recipe.seeds for recipe in recipes.values())
    found: dict[str, Path] = {}
    done = 0
    for name, recipe in recipes.items():
        found[name] = _trained(name, recipe, setting.after(done, total))
        done += STEPS * recipe.seeds
        setting.progress(done, total)
    return found


def _trained(name: str, recipe: BertRuber, setting: Setting) -> Path:
    """Returns the directory of one scorer: from the cache, or trained now."""
    from dialeval.training.run import train

    out = _place(recipe, setting) / name.lower().replace("/", "-")
    if not (out / "card.json").exists():
        train(
            replace(recipe, source=setting.source),
            corpus_of(setting),
            out,
            licence=None if setting.corpus else "CC BY-NC-SA 4.0",
            progress=_steps_of_trainings(setting),
        )
    return out


def _steps_of_trainings(setting: Setting) -> TrainingProgress:
    """Returns reports of a training as steps: `STEPS` for each seed. What is made before the first
    one, variants and vectors, takes about as long as a training: it is half of the steps."""
    from dialeval.training.recipe import Progress as TrainingProgress

    class Steps(TrainingProgress):
        seeds, told = 0, 0

        def tell(self, share: float) -> None:
            # A label filter trains in several stages, each from 0: nothing goes back.
            self.told = max(self.told, round(STEPS * (self.seeds + share)))
            setting.progress(self.told, 0)

        def counting(self, what: str) -> AbstractContextManager[Progress]:
            return nullcontext(lambda done, total: self.tell(done / max(1, total) / 2))

        def training(self) -> AbstractContextManager[Callable[[State, int], None]]:
            return nullcontext(lambda state, steps: self.tell((1 + state.step / steps) / 2))

        def finished(self, done: int, total: int) -> None:
            self.seeds = done
            self.tell(0.0)

    return Steps()


def seed_directories(directory: Path) -> list[Path]:
    """Returns the scorers of all seeds, in their order; of one seed that is the directory."""
    found = sorted((directory / "seeds").glob("*/"), key=lambda path: int(path.name))
    return found or [directory]


def validation_accuracies(directory: Path) -> list[float]:
    """Returns the accuracy of each seed on held-out pairs."""
    records = json.loads((directory / "seeds.json").read_text(encoding="utf-8"))
    return [record["accuracy"]["validation"] for record in records]


def scores_of(directory: Path, samples: Sequence[Sample], setting: Setting) -> list[float | None]:
    """Returns how well each response fits, by the scorer in a directory; None without a response.

    Vectors are computed once for all scorers that read with the same encoder.
    """
    import torch

    from dialeval.models.pair_scorer import last_words
    from dialeval.training.examples.pair_corpus import Pair
    from dialeval.training.examples.pair_vectors import embed, pair_vectors
    from dialeval.training.learners.pair_scorer import score_pairs
    from dialeval.training.recipes.ruber import load_scorer

    config, network = load_scorer(directory)
    numbers: dict[str, int] = {}
    pairs: dict[int, Pair] = {}
    for place, sample in enumerate(samples):
        if sample.response is None or not sample.response.strip():
            continue
        # All turns, whatever the rule: so all scorers share one table of vectors.
        read = [
            numbers.setdefault(last_words(text, config.truncate_words), len(numbers))
            for text in (*(turn.text for turn in sample.context), sample.response)
        ]
        turns = read[:-1][-1:] if config.context == "last" else read[:-1]
        pairs[place] = Pair(tuple(turns), read[-1])
    found: list[float | None] = [None] * len(samples)
    if not pairs:
        return found
    vectors = embed(list(numbers), config.encoder, pooling=config.pooling, source=setting.source)
    both = pair_vectors(list(pairs.values()), vectors, config.context)
    with torch.inference_mode():
        scores = score_pairs(network.eval(), both.queries, both.responses)
    for place, score in zip(pairs, scores.tolist(), strict=True):
        found[place] = score
    return found


def draw(directories: Mapping[str, Path], recipe: BertRuber, setting: Setting) -> Drawing:
    """Returns where these scorers draw the line, on the same held-out pairs."""
    from dialeval.training.examples.pair_vectors import load_pair_data
    from dialeval.training.learners.decision_boundary import draw_boundaries
    from dialeval.training.recipe import Progress
    from dialeval.training.recipes.ruber import load_scorer

    data = load_pair_data([corpus_of(setting)], replace(recipe, source=setting.source), Progress())
    networks = {title: load_scorer(directory)[1] for title, directory in directories.items()}
    return draw_boundaries(networks, data, np.random.default_rng(0))


def _place(recipe: BertRuber, setting: Setting) -> Path:
    """Returns a folder for what is trained with these options on the same data."""
    from dialeval.models.source import Models
    from dialeval.training.examples.pair_corpus import load_pairs
    from dialeval.training.examples.sampling import generator_of

    corpus = load_pairs([corpus_of(setting)], recipe.context, most=recipe.pairs)
    facts = {
        "version": VERSION,
        "options": recipe.options(),
        "settings": asdict(recipe.settings()),
        "model": (setting.source or Models()).fingerprint(recipe.model),
        "corpus": corpus.digest(),
    }
    if generator := generator_of(recipe.positives):
        facts["positives"] = f"{recipe.positives}@{Models().fingerprint(generator)}"
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return cache_directory() / "studies" / "pone" / digest[:16]


DRAWN, DRAWN_MULTI_TURN = 100, 300
"""Answers of each system that are rated, as in the paper."""

BEAMS = {"method": "beam"}
QUALITIES = "fluency:1-6,coherence:1-6,engagement:1-6,overall:1-6"


def answers_to_rate(setting: Setting) -> Findings:
    from dialeval.systems import open_system, split_address

    samples: list[Sample] = []
    rows: list[tuple[str | float | None, ...]] = []
    queries: list[tuple[tuple[str, ...], str]] = []
    for number, address in enumerate(setting.systems):
        is_model = split_address(address)[0] == "hf"
        system = open_system(address, BEAMS if is_model else {})
        # After a wrong address was found: a large corpus takes a while.
        queries = queries or _queries(setting)
        if any(sample.system == system.name for sample in samples):
            raise UsageError(f"--systems: two of them are called {system.name!r}")
        turns: int = getattr(system, "turns", 0)
        count = setting.limit or (DRAWN if turns == 1 else DRAWN_MULTI_TURN)
        now = setting.after(number * STEPS, len(setting.systems) * STEPS)
        answers = _answers(system, queries, turns, count, now.progress)
        system.close()
        if not answers:
            raise UsageError(
                f"--systems {address}: it reads several turns, and no dialogue of"
                f" {corpus_of(setting)} has a query after another turn. Take a system that reads"
                " one (train seq2seq --turns 1), or another --corpus"
            )
        found = [sample for sample in answers if sample is not None]
        if not found:
            raise UsageError(f"--systems {address}: it answers none of {len(answers)} queries")
        samples += found
        numbers = (len(answers), len(found), len({sample.response for sample in found}))
        rows.append((system.name, str(turns or "all"), *map(str, numbers)))
    lines = [json.dumps(sample.to_record(), ensure_ascii=False) for sample in samples]
    learned = f" --corpus {setting.corpus}" if setting.corpus else ""
    asked = " ".join(setting.systems)
    header = ("system", "turns it reads", "queries", "answers", "different")
    return Findings(
        (),
        [
            "answers.jsonl, in the folder of -o, holds the answers to rate. Let three people rate"
            " them:",
            f"dialeval rate FOLDER/answers.jsonl --qualities {QUALITIES} --raters 3",
            f"then: dialeval study pone --systems {asked} --raters ratings.db{learned} -o FOLDER",
        ],
        [Table("Answers", header, tuple(rows))],
        files={"answers.jsonl": "\n".join(lines) + "\n"},
    )


def _queries(setting: Setting) -> list[tuple[tuple[str, ...], str]]:
    """Returns all turns so far and the true answer, in random order, each query once."""
    from dialeval.training.examples.corpora import load_corpus

    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for dialogue in load_corpus(corpus_of(setting)).test:
        for place in range(1, len(dialogue)):
            found.setdefault(dialogue[place - 1], (dialogue[:place], dialogue[place]))
    queries = list(found.values())
    return [queries[i] for i in np.random.default_rng(0).permutation(len(queries)).tolist()]


def _answers(
    system: object,
    queries: Sequence[tuple[tuple[str, ...], str]],
    turns: int,
    count: int,
    progress: Progress,
) -> list[Sample | None]:
    """Returns what a system answers to the first `count` queries, of those with two turns or more
    where it reads more than one; None where it says nothing."""
    from dialeval.readers.fields import alternating
    from dialeval.systems.system import BatchedSystem, System

    assert isinstance(system, System)
    asked = [query for query in queries if turns == 1 or len(query[0]) > 1][:count]
    contexts = [alternating([Turn(text) for text in history[-turns:]]) for history, _ in asked]
    replies: list[str | None] = []
    size = system.batch if isinstance(system, BatchedSystem) else 1
    for start in range(0, len(contexts), size):
        some = contexts[start : start + size]
        if isinstance(system, BatchedSystem):
            replies += map(_checked, system.replies(some))
        else:
            replies += [_reply(system, context) for context in some]
        progress(STEPS * len(replies) // len(contexts), 0)
    return [
        None
        if reply is None
        else Sample(
            id=f"{system.name}-{number:03d}",
            context=context,
            response=reply,
            references=(reference,),
            system=system.name,
            item=f"query-{number:03d}" if turns == 1 else f"dialogue-{number:03d}",
        )
        for number, ((_, reference), context, reply) in enumerate(
            zip(asked, contexts, replies, strict=True), start=1
        )
    ]


def _reply(system: System, context: Sequence[Turn]) -> str | None:
    from dialeval.chat_http import ReplyError

    try:
        return _checked(system.reply(context))
    except ReplyError:
        return None


def _checked(reply: str) -> str | None:
    """Returns a reply that can be rated: a chatbot that was hardly trained may say nothing."""
    from dialeval.chat_http import ReplyError
    from dialeval.systems.system import checked

    try:
        return checked(reply)
    except ReplyError:
        return None
