"""`dialeval train deb`: is this an answer to these turns? (Sai et al., TACL 2020, section 5)

DEB is BERT that learned the next utterance on Reddit and was tuned on DailyDialog++: right answers
that people wrote, against wrong ones that share words with the context and against random ones.
Here a head on frozen sentence vectors learns both at once:

    dailydialog++   each context of dev.json with its five right answers, and five of its ten wrong
                    ones, drawn again in every epoch
    corpora         pairs of dialogues of people (in place of Reddit), each once with its response
                    and once with a random one

A tenth of the contexts is held out to choose the best epoch by. Contexts of test.json are measured
on: with adversarial and with random answers, as in the paper's Table 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.sentence_head import HeadExamples, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.corpora import WrittenAnswers
    from dialeval.training.examples.pair_corpus import Example

VALIDATION = 0.1
"""Share of the contexts to learn from that are validated on."""


@dataclass(frozen=True, kw_only=True)
class Deb(SentenceHead):
    """Teach a head to tell right answers from wrong ones that people wrote to look right.

    The data are dailydialog++ and, to learn from more dialogues, any corpora.
    """

    name = "deb"
    metric = "deb"

    contexts: int | None = option(
        None, "Learn from at most this many contexts of DailyDialog++.", low=20
    )
    pairs: int = option(20_000, "Learn from at most this many pairs of the corpora.", low=0)
    held_out: int = held_out_option(300, "contexts of test.json")

    @property
    def about(self) -> str:
        return (
            "Is a response an answer to these turns? A head on frozen sentence vectors that learned"
            " from DailyDialog++: right answers against adversarial and random ones."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.datasets.locate import resolve_folder
        from dialeval.training.examples.corpora import (
            known_exchanges,
            read_written_answers,
            without_rated_contexts,
            written_file,
        )
        from dialeval.training.examples.pair_corpus import (
            ExampleSets,
            drawn,
            load_pairs,
            with_random_responses,
        )

        folders = {path: resolve_folder(path) for path in data}
        written = [place for place in folders.values() if (place / "dev.json").is_file()]
        if len(written) != 1:
            raise UsageError("train deb learns from one folder of DailyDialog++: --data FOLDER")
        [folder] = written
        every = list(read_written_answers(written_file(folder, "dev.json")))
        contexts, left_out = without_rated_contexts(every, known_exchanges())
        contexts = drawn(contexts, self.contexts, np.random.default_rng(0))
        size = max(1, round(VALIDATION * len(contexts)))
        validation, learn = contexts[:size], contexts[size:]
        if not learn:
            raise UsageError(f"{folder}: {len(contexts)} contexts to learn from are too few")
        test = drawn(
            list(read_written_answers(written_file(folder, "test.json"))),
            self.held_out,
            np.random.default_rng(0),
        )
        others = [path for path in data if folders[path] != folder]
        corpus = load_pairs(others, "weighted") if others else None
        pairs = (
            drawn(corpus.train, self.pairs, np.random.default_rng([self.seed, 1])) if corpus else []
        )

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, 2 + epoch])
            found = [one for own in learn for one in _mixed(own, generator)]
            if corpus:
                found += with_random_responses(corpus.texts, pairs, generator)
            return found

        held_out = np.random.default_rng(0)
        facts = corpus.left_out.facts() if corpus else {}
        return HeadExamples(
            ExampleSets(
                of_epoch,
                [one for own in validation for one in _mixed(own, held_out)],
                _digest(contexts) + (corpus.digest() if corpus else ""),
                {
                    "contexts of DailyDialog++ to learn from": len(learn),
                    "contexts of DailyDialog++ to validate on": len(validation),
                    "corpora": corpus.name if corpus else "none",
                    "pairs of the corpora": len(pairs),
                    "sha256 of the contexts": _digest(contexts),
                    **left_out.facts(),
                    **{name: value for name, value in facts.items() if "dialogues" in name},
                },
                measured={
                    "test, adversarial answers": [
                        one for own in test for one in _against(own, own.adversarial)
                    ],
                    "test, random answers": [
                        one for own in test for one in _against(own, own.random)
                    ],
                },
            ),
            corpus.texts if corpus else (),
            [text for own in learn for text in (*own.adversarial, *own.random)],
        )


def _mixed(own: WrittenAnswers, generator: np.random.Generator) -> list[Example]:
    """Returns the right answers, and as many wrong ones of both kinds."""
    wrong = (*own.adversarial, *own.random)
    chosen = generator.permutation(len(wrong))[: len(own.right)].tolist()
    return _against(own, [wrong[place] for place in chosen])


def _against(own: WrittenAnswers, wrong: Sequence[str]) -> list[Example]:
    from dialeval.training.examples.pair_corpus import Example

    return [
        *(Example(own.turns, answer, 1.0) for answer in own.right),
        *(Example(own.turns, answer, 0.0) for answer in wrong),
    ]


def _digest(contexts: Sequence[WrittenAnswers]) -> str:
    import hashlib

    sha = hashlib.sha256()
    for own in contexts:
        texts = (*own.turns, *own.right, *own.adversarial, *own.random)
        sha.update("\x1f".join(texts).encode("utf-8", "surrogatepass") + b"\x1e")
    return sha.hexdigest()
