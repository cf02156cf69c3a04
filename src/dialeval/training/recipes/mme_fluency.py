"""`dialeval train mme-fluency`: which responses are fluent? (MME-CRS, section 3.1)

It learns from responses of people, half of them corrupted (see `examples/faults.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.text_judge import TextJudge

if TYPE_CHECKING:
    import numpy as np

    from dialeval.models.text_judge import TextJudgeConfig
    from dialeval.training.examples.pair_corpus import Example, ExampleSets, Pair


@dataclass(frozen=True, kw_only=True)
class MmeFluency(TextJudge):
    """Teach an encoder which responses are fluent: words shuffled, dropped, repeated are not."""

    name = "mme-fluency"
    metric = "mme-fluency"

    examples: int | None = option(None, "Draw at most this many examples per epoch.", low=20)
    held_out: int = held_out_option(2000, "examples each")

    @property
    def about(self) -> str:
        return (
            "Is a response fluent? Learned from responses of people, half of them broken: words"
            " shuffled, dropped, repeated."
        )

    def judge_config(self) -> TextJudgeConfig:
        from dialeval.models.text_judge import TextJudgeConfig

        return TextJudgeConfig(
            "mme-fluency",
            self.model,
            "response",
            "max",
            context_tokens=0,
            response_tokens=self.response_tokens,
            rank=self.adapter_rank,
            alpha=2.0 * self.adapter_rank,
        )

    def example_sets(self, data: Sequence[Path]) -> ExampleSets:
        import numpy as np

        from dialeval.training.examples.faults import STOPWORDS, fluency_example
        from dialeval.training.examples.pair_corpus import (
            WHOLE,
            Example,
            ExampleSets,
            corpus_facts,
            drawn,
            load_pairs,
        )

        corpus = load_pairs(data, "last", words=WHOLE)
        responses = corpus.responses(corpus.train)

        def corrupted(texts: Iterable[str], generator: np.random.Generator) -> list[Example]:
            made = (fluency_example(text, generator, STOPWORDS) for text in texts)
            return [Example((), text, float(label)) for text, label in made]

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, epoch])
            return corrupted(drawn(responses, self.examples, generator), generator)

        def held_out(pairs: Sequence[Pair]) -> list[Example]:
            generator = np.random.default_rng(0)
            return corrupted(drawn(corpus.responses(pairs), self.held_out, generator), generator)

        return ExampleSets(
            of_epoch,
            held_out(corpus.validation),
            corpus.digest(),
            corpus_facts(corpus)
            | {"responses to learn from": len(responses), "examples per epoch": len(of_epoch(0))},
            measured={"test": held_out(corpus.test)},
            by_source={name: held_out(own) for name, own in corpus.test_by_corpus.items() if own},
        )
