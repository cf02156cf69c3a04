"""The directory of `dialeval holistic` as dialogues that people rate under four aspects.

HolisticEval, section 5.5: raters judge coherence, fluency, diversity and self-consistency of the
same dialogue. A sample holds all that they need: its context is the history, the query, the answer
and a paraphrase of the query; its response is the second answer; its variants are the query and its
paraphrases with the answer to each.

    dialeval rate runs/bot --qualities coherence,fluency,diversity,consistency

A query has one sample for each system. Paraphrases are those of the first augmenter that has some
(`ws` before `ctg`); random queries are none. A query without a second answer ends with the first,
and one without a group has no variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dialeval.errors import InputError, UsageError
from dialeval.probe.directory import open_probe
from dialeval.probe.plan import BASELINE, kind_of
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample

SETTINGS, PROBES = "holistic.json", "probes"
"""The file that marks such a directory, and the folder of its probes. They are not in `holistic`,
which takes long to import, because every file that is read is shown to this reader."""


def recognises(source: Source) -> bool:
    return source.is_directory and (source.path / SETTINGS).is_file()


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    folders = sorted(path for path in (source.path / PROBES).glob("*") if path.is_dir())
    try:
        probes = [open_probe(folder) for folder in folders]
    except (InputError, UsageError) as error:
        raise UnreadableError(str(error)) from error
    if not probes or not all(probe.samples for probe in probes):
        raise UnreadableError(
            "it is unfinished. Repeat the `dialeval holistic` command that started it to resume it"
        )
    several = len(probes) > 1
    for probe in probes:
        for sample in whole_dialogues(probe.samples):
            name = f"{sample.system}/{sample.id}" if several else sample.id
            yield replace(sample, id=name, item=sample.dialogue)


def whole_dialogues(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yields one sample for each query that was answered, in the order of the queries."""
    by_query: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        kind = kind_of(sample)
        if kind is not None and kind.by != BASELINE:
            by_query.setdefault(sample.dialogue, {}).setdefault(kind.kind, sample)
    for query, kinds in by_query.items():
        told = kinds.get("consistency") or kinds.get("first")
        if told is not None:
            group = kinds.get("diversity")
            yield replace(told, id=query, variants=group.variants if group else ())


READER = Reader(
    "holistic-run",
    "the directory of `dialeval holistic`: dialogues to rate under four aspects",
    recognises,
    read,
)
