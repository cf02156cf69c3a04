"""How often does `flags` flag answers that people wrote? Each flag there is most likely false.

    python scripts/measure_flags.py [--skip 4000] [--limit 5000] [--show 3] [SET...]
    python scripts/measure_flags.py --pairs

Without a name: corpora of chats between people, by name (`dialeval data`), some answers of each.
The first 4000 were looked at while the rules were written, so they are left out. Prints how many of
a thousand answers have each flag, and examples with --show. With --pairs: how many of the bad
answers of the bundled minimal pairs are flagged, by kind, and how many of the good ones.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import islice

import dialeval
from dialeval.examples import behaviour_pairs
from dialeval.metrics.flags import FAULTS
from dialeval.sample import Sample

PEOPLE = ("dailydialog", "empathetic", "topical-chat")


def answers(name: str):
    """The answers of a set; of a whole dialogue, every turn after the first."""
    for sample in dialeval.load(name):
        if sample.response is not None:
            yield sample
            continue
        turns = sample.turns
        for place in range(1, len(turns)):
            yield Sample(
                f"{sample.id}-{place}", tuple(turns[:place]), turns[place].text, facts=sample.facts
            )


def print_pairs() -> None:
    metric = dialeval.make_metric("flags")
    counts: Counter[str] = Counter()
    pairs = [*behaviour_pairs("learn"), *behaviour_pairs("test")]
    for pair in pairs:
        good, bad = pair.samples()
        counts["good"] += bool(metric.score(good, []).value)
        counts[pair.kind] += bool(metric.score(bad, []).value)
    kinds = Counter(pair.kind for pair in pairs)
    for kind, total in [("good", len(pairs)), *kinds.items()]:
        print(kind, f"{counts[kind]} of {total}", sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=PEOPLE, metavar="SET")
    parser.add_argument("--skip", type=int, default=4000, help="answers of each set to leave out")
    parser.add_argument("--limit", type=int, default=5000, help="answers of each set")
    parser.add_argument("--show", type=int, default=0, help="examples of each flag and set")
    parser.add_argument("--pairs", action="store_true", help="use the bundled minimal pairs")
    given = parser.parse_args()
    if given.pairs:
        print_pairs()
        return
    metric = dialeval.make_metric("flags")
    print("set", "answers", "any", *FAULTS, sep="\t")
    for name in given.sets:
        counts: Counter[str] = Counter()
        total = 0
        for sample in islice(answers(name), given.skip, given.skip + given.limit):
            total += 1
            score = metric.score(sample, [])
            found = [fault for fault in FAULTS if score.parts[fault]]
            counts.update([*found, *(["any"] if found else [])])
            for fault in found:
                if counts[fault] <= given.show:
                    print(f"  {fault}: {sample.response}")
        if not total:
            raise SystemExit(f"{name} has no more than {given.skip} answers: use --skip")
        rates = [f"{1000 * counts[fault] / total:.2f}" for fault in ("any", *FAULTS)]
        print(name, total, *rates, sep="\t", flush=True)


if __name__ == "__main__":
    main()
