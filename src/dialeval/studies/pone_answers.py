"""The answers that PONE's raters judge: every system answers test queries, and some are drawn.

Systems answer the queries of DailyDialog's test dialogues, in the same random order: 100 of them,
or 300 where a system reads more than one turn. A system that reads one turn is asked for each
utterance once. Models are decoded with five beams.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn
from dialeval.studies.pone_scorers import CORPUS
from dialeval.studies.study import Findings, Setting, Table

DRAWN, DRAWN_MULTI_TURN = 100, 300
"""Answers of each system that are rated, as in the paper."""

BEAMS = {"method": "beam"}
QUALITIES = "fluency:1-6,coherence:1-6,engagement:1-6,overall:1-6"


def answers_to_rate(setting: Setting) -> Findings:
    from dialeval.systems import open_system, split_address

    samples: list[Sample] = []
    rows: list[tuple[str | float | None, ...]] = []
    queries = _queries(setting)
    for number, address in enumerate(setting.systems):
        is_model = split_address(address)[0] == "hf"
        system = open_system(address, BEAMS if is_model else {})
        if any(sample.system == system.name for sample in samples):
            raise UsageError(f"--systems: two of them are called {system.name!r}")
        turns: int = getattr(system, "turns", 0)
        count = setting.limit or (DRAWN if turns == 1 else DRAWN_MULTI_TURN)
        found = list(_answers(system, queries, turns, count))
        system.close()
        samples += found
        different = len({sample.response for sample in found})
        rows.append((system.name, str(turns or "all"), str(len(found)), str(different)))
        setting.progress(number + 1, len(setting.systems))
    lines = [json.dumps(sample.to_record(), ensure_ascii=False) for sample in samples]
    return Findings(
        (),
        [
            "answers.jsonl holds the answers to rate. Let three people rate them:",
            f"dialeval rate answers.jsonl --qualities {QUALITIES} --raters 3",
            "then: dialeval study pone --systems ... --raters ratings.db -o FOLDER",
        ],
        [Table("Answers", ("system", "turns it reads", "answers", "different"), tuple(rows))],
        files={"answers.jsonl": "\n".join(lines) + "\n"},
    )


def _queries(setting: Setting) -> list[tuple[tuple[str, ...], str]]:
    """Returns all turns so far and the true answer, in random order, each query once."""
    from dialeval.training.examples.corpora import load_corpus

    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for dialogue in load_corpus(setting.data[CORPUS]).test:
        for place in range(1, len(dialogue)):
            found.setdefault(dialogue[place - 1], (dialogue[:place], dialogue[place]))
    queries = list(found.values())
    return [queries[i] for i in np.random.default_rng(0).permutation(len(queries)).tolist()]


def _answers(
    system: object, queries: Sequence[tuple[tuple[str, ...], str]], turns: int, count: int
) -> Iterator[Sample]:
    """Yields what a system answers to the first `count` queries, of those with two turns or more
    where it reads more than one."""
    from dialeval.readers.fields import alternating
    from dialeval.systems.system import BatchedSystem, System, checked

    assert isinstance(system, System)
    asked = [query for query in queries if turns == 1 or len(query[0]) > 1][:count]
    contexts = [alternating([Turn(text) for text in history[-turns:]]) for history, _ in asked]
    if isinstance(system, BatchedSystem):
        replies = []
        for start in range(0, len(contexts), system.batch):
            replies += system.replies(contexts[start : start + system.batch])
    else:
        replies = [system.reply(context) for context in contexts]
    for number, ((_, reference), context, reply) in enumerate(
        zip(asked, contexts, replies, strict=True), start=1
    ):
        yield Sample(
            id=f"{system.name}-{number:03d}",
            context=context,
            response=checked(reply),
            references=(reference,),
            system=system.name,
            item=f"query-{number:03d}" if turns == 1 else f"dialogue-{number:03d}",
        )
