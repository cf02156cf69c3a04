"""The paraphrases in HolisticEval's self-consistency set, made again.

In that set a query is put a second time in other words, after its answer. Of the 100 queries 57
come back changed, all of them in one word, and the replacement is not that of WS.csv: "really"
becomes "truly", "went" "travel", "i" "iodine". The code was not released, and the paper says no
more than "one paraphrase". What can be read off (`augment/substitution.py` states it as a rule):

- The replacement is the head of the first sense that WordNet has of the word over all parts of
  speech, nouns first. This holds for all 57.
- The word is the first of its kind whose first sense is of that kind, and the earliest such word
  that changes. This fits all 57 if the tags are what they must have been.

What cannot be recovered is the tagger: it took "i" at the start of a query for a noun nine times in
ten, and "glad" after "i'm" as well. And in four queries a word that the rule would replace stays
under any tags ("What height is she ?", where "How much is it ?" became "how much be it ?").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import not_

import dialeval
from dialeval.augment.substitution import released_paraphrase, released_words
from dialeval.errors import UsageError
from dialeval.lexicon import load_wordnet
from dialeval.models.tagger import load_tagger
from dialeval.sample import Sample
from dialeval.studies.holistic_raters import CITED, PAPER
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table
from dialeval.studies.ws_substitutions import GOAL, TAGGER

FOLDER = "self_consistency/word_net"


def measure(setting: Setting) -> Findings:
    samples = dialeval.load(setting.data["holistic"] / FOLDER)
    pairs = [query_and_paraphrase(sample) for sample in samples]
    tags = load_tagger(TAGGER).tag_words([query for query, _ in pairs])
    made = [
        released_paraphrase(query, own).split() for (query, _), own in zip(pairs, tags, strict=True)
    ]
    same = [ours == released for ours, (_, released) in zip(made, pairs, strict=True)]
    changed = [query != released for query, released in pairs]
    replaced = [replacement(*pair) for pair in compress(pairs, changed)]
    by_rule = sum(new == first_head(word) for word, new in replaced)
    measured = [
        Measured("changed paraphrases", sum(changed), n=len(pairs)),
        Measured("the new word, given the old one", by_rule / len(replaced), n=len(replaced)),
        _share("end to end: all", same),
        _share("end to end: changed", list(compress(same, changed))),
        _share("end to end: unchanged", list(compress(same, map(not_, changed)))),
    ]
    rows = tuple(
        (" ".join(released), " ".join(ours))
        for ok, ours, (_, released) in zip(same, made, pairs, strict=True)
        if not ok
    )
    return Findings(measured, (), (Table("Other than in the set", ("released", "ours"), rows),))


def query_and_paraphrase(sample: Sample) -> tuple[list[str], list[str]]:
    """Returns the words of the query and of its paraphrase: the third last turn and the last
    one."""
    if len(sample.context) < 3:
        raise UsageError(f"{sample.id}: a query, its answer and a paraphrase are needed")
    return released_words(sample.context[-3].text), released_words(sample.context[-1].text)


def replacement(query: Sequence[str], paraphrase: Sequence[str]) -> tuple[str, str]:
    """Returns the first word that is another one, and what stands in its place (one word or
    more)."""
    place = next(
        i for i, (old, new) in enumerate(zip(query, paraphrase, strict=False)) if old != new
    )
    rest = len(query) - place - 1
    return query[place], " ".join(paraphrase[place : len(paraphrase) - rest])


def first_head(word: str) -> str | None:
    """Returns the head of the word's first sense, as the set writes it."""
    first = next(iter(load_wordnet().synsets(word)), None)
    return first.name.lower().replace("_", " ") if first else None


def _share(what: str, right: Sequence[bool]) -> Measured:
    return Measured(what, sum(right) / len(right), n=len(right))


STUDY = Study(
    name="ws-consistency",
    paper=PAPER,
    cited=CITED,
    repeats="HolisticEval: the paraphrases of the self-consistency set, by rule and end to end",
    needs=(Data("holistic", (FOLDER,)),),
    published=(
        Published("changed paraphrases", "57", "the released set"),
        Published("the new word, given the old one", "1", "the released set", tolerance=1 - GOAL),
        *(
            Published(f"end to end: {some}", "1", "the released set", must_match=False)
            for some in ("all", "changed", "unchanged")
        ),
    ),
    differs=(
        "The rule was recovered from this very set, so these numbers are in-sample.",
        "The paper names the Stanford tagger; we tag with spaCy's small pipeline, on words cut at"
        ' spaces, and take "i" at the start of a query for a noun, as the set has it.',
    ),
    measure=measure,
)
