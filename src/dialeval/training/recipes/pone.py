"""`dialeval train pone`: BERT-RUBER with hard negatives, augmented positives and filtered labels.

Lan et al. (TOIS 2020): negatives near to the true response, more positives by EDA or a
generator (`examples/sampling.py`), and a filter for their labels (`learners/pair_scorer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from dialeval.options import option
from dialeval.training.recipes.bert_ruber import BertRuber

if TYPE_CHECKING:
    from dialeval.training.examples.sampling import SamplerOptions
    from dialeval.training.learners.pair_scorer import FilterOptions


@dataclass(frozen=True, kw_only=True)
class Pone(BertRuber):
    """Teach PONE which responses fit a query: hard negatives, augmented positives, filtered labels.

    The vectors of a corpus are computed once and stored in the cache.
    """

    name: ClassVar[str] = "pone"
    metric: ClassVar[str] = "pone"
    title: ClassVar[str] = "PONE"

    sampler: Literal["weighted", "random", "middle", "bm25"] = option(
        "weighted",
        "Choose where wrong responses come from. weighted: near the true one (PONE). middle: the"
        " middle of ten by similarity (MME-CRS). bm25: words in common with the true one.",
    )
    candidates: int = option(200, "With --sampler weighted, draw this many candidates (h).", low=1)
    temperature: float = option(
        0.05, "With --sampler weighted, use this t in softmax(cosine / t).", low=0.001
    )
    random_every: int = option(
        2,
        "Draw random wrong responses in every N-th epoch, as the released code does; 0: never.",
        low=0,
    )
    edit_negatives: bool = option(True, "Edit wrong responses as often as right ones.")
    positives: str = option(
        "eda",
        "Make more right responses (variants) by eda (changed words), ctg (a generator, slow;"
        " ctg:model=DIR samples, ctg:model=DIR,method=beam takes its beams) or none.",
    )
    variants: int = option(5, "Make this many variants per response (k).", low=1)
    filter: Literal["paper", "released", "none"] = option(
        "paper",
        "Filter the labels of variants. paper: the scorer labels all variants until no label"
        " changes. released: it labels them on a schedule, with dropout active and tiny steps."
        " none: all variants are right.",
    )
    threshold: float | None = option(
        None,
        "Keep labels whose score is nearer to 0 or 1 than this; 0.5 keeps all (default: 0.5, with"
        " --filter released 0.05).",
        low=0.0,
        high=0.5,
    )
    doubtful: Literal["drop", "change"] = option(
        "drop",
        "Choose what happens to variants whose label is not kept. drop: the scorer does not learn"
        " from them. change: they count as right, which is an option of the released code.",
    )
    rounds: int | None = option(
        None,
        "Stop the label filter after this many rounds (default: 100, with --filter released 75"
        " epochs of them).",
        low=1,
    )
    compare_with: str = option(
        "", "Draw another trained scorer, such as BERT-RUBER, in boundary.svg for comparison."
    )

    filter_epochs: int | None = None
    filter_rate: float | None = None
    filter_decay: float | None = None

    @property
    def sampler_options(self) -> SamplerOptions:
        from dialeval.training.examples.sampling import SamplerOptions

        return SamplerOptions(self.sampler, self.candidates, self.temperature)

    @property
    def filter_options(self) -> FilterOptions:
        from dialeval.training.learners.pair_scorer import FilterOptions, released_filter

        if self.filter == "released":
            usual = released_filter(self.positives, self.threshold, self.rounds, self.doubtful)
        else:
            threshold = 0.5 if self.threshold is None else self.threshold
            usual = FilterOptions(self.filter, threshold, self.doubtful, rounds=self.rounds or 100)
        own = {
            "epochs": self.filter_epochs,
            "learning_rate": self.filter_rate,
            "decay": self.filter_decay,
        }
        given = {name: value for name, value in own.items() if value is not None}
        return replace(usual, **given)  # type: ignore[arg-type]
