"""Build the hashes of the exchanges of rated sets that ship in `dialeval.training`.

    DIALEVAL_DATA=DIR python scripts/build_rated_exchanges.py

DIR/rated holds the rated sets. No training learns from them (see
`dialeval.training.examples.corpora`). The fine-tuning files of `engage` are no rated set:
the engagement sub-metric is trained on them. The script prints one line for each set.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from dialeval.readers import load
from dialeval.sample import Sample
from dialeval.storage import data_directory
from dialeval.training.examples.corpora import (
    SHIPPED,
    Dialogue,
    RatedExchanges,
    exchanges_of,
    write_exchanges,
)

DESTINATION = Path(__file__).resolve().parent.parent / "src" / "dialeval" / "training" / SHIPPED
SETS = {
    "fed": "fed/fed_data.json",
    "usr-topical": "usr-topical/tc_usr_data.json",
    "dstc10/fed-turn": "dstc10/fed-turn_eval.json",
    "dstc10/fed-dial": "dstc10/fed-dial_eval.json",
    "dstc10/topical-usr": "dstc10/topical-usr_eval.json",
    "dstc10/dailydialog-zhao": "dstc10/dailydialog-zhao_eval.json",
    "dstc10/dailydialog-grade": "dstc10/dailydialog-grade_eval.json",
    "dstc10/dailydialog-gupta": "dstc10/dailydialog-gupta_eval.json",
    "dstc10/persona-usr": "dstc10/persona-usr_eval.json",
    "dstc10/persona-zhao": "dstc10/persona-zhao_eval.json",
    "dstc10/convai2-grade": "dstc10/convai2-grade_eval.json",
    "dstc10/empathetic-grade": "dstc10/empathetic-grade_eval.json",
    "dstc10/humod": "dstc10/humod_eval.json",
    "dstc10/dstc7": "dstc10/dstc7_eval.json",
    "dstc9": "dstc9/dialogues.jsonl",
    "grade-dailydialog": "grade-dailydialog",
    "holistic/coherence": "holistic/context_data_release.csv",
    "holistic/fluency": "holistic/fluency_data_release.csv",
    "holistic/consistency": "holistic/self_consistency/baseline",
    "holistic/consistency-ws": "holistic/self_consistency/word_net",
    "holistic/consistency-ctg": "holistic/self_consistency/seq2seq",
    "engage": "engage/Eng_Scores_queries_gen_gtruth_replies.csv",
}
ONE_STRING = "dstc10/humod"
"""The set whose contexts are one string each, turns and sentences alike."""

WITHOUT_CONTEXT = "dstc10/dstc7"
"""The set whose contexts have lost their stop words."""

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def conversations(name: str, sample: Sample) -> Iterator[Dialogue]:
    """A context with each of its answers and references; every variant with what was answered."""
    before = tuple(turn.text for turn in sample.context)
    answers = [a for a in (sample.response, *sample.references) if a is not None]
    if name == WITHOUT_CONTEXT:
        starts: list[Dialogue] = [()]
    elif name == ONE_STRING:
        sentences = SENTENCE_END.split(before[0])
        starts = [(" ".join(sentences[place:]),) for place in range(len(sentences))]
    else:
        starts = [before]
    for start in starts:
        yield from [(*start, answer) for answer in answers] or [start]
    for variant in sample.variants:
        yield (variant.query, variant.response)


def main() -> None:
    found = []
    for name, path in SETS.items():
        samples = list(load(data_directory() / "rated" / path))
        dialogues = [d for sample in samples for d in conversations(name, sample)]
        found.append(exchanges_of(name, len(samples), dialogues))
        print(
            f"{name}: {len(samples):,} items, {len(found[-1].exchanges):,} exchanges,"
            f" {len(found[-1].long_turns):,} long turns"
        )
    write_exchanges(RatedExchanges(tuple(found)), DESTINATION)
    print(f"{DESTINATION.name}: {DESTINATION.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
