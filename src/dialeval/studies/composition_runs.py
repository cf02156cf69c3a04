"""What the studies of MME-CRS are run on: the files of DSTC10 that are here, scored and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import dialeval
from dialeval.agreement.dstc10 import DEVELOPMENT_SETS, protocol_sample
from dialeval.compose.gathering import Gathered, gather
from dialeval.errors import UsageError
from dialeval.registry import make_metrics
from dialeval.studies.comparison_runs import (
    LoadedOnce,
    RatedSet,
    by_lot,
    load_rated_sets,
    run_place,
    sampling_notes,
    thinned,
    unusable,
    what_was_learned,
)
from dialeval.studies.study import Setting

ASKED = ("minilm-l6", "glove-50d", "spacy-en-sm")
"""What the sub-metrics ask, or their judges stand on."""

SUB_METRICS = (
    "mme-fluency", "mme-relevance", "mme-topic", "mme-engagement",
    "mme-specificity", "mme-specificity:kind=nce", "mme-specificity:kind=ppl",
)  # fmt: skip
"""FM, RM, TCM, EM, SM-NLL, SM-NCE, SM-PPL."""

CITED = "Zhang et al., 2022"


@dataclass(frozen=True)
class ScoredSets:
    """Rated sets with all metrics; `notes` say what is not there and what was learned where."""

    gathered: Gathered
    notes: tuple[str, ...]


def score_sets(
    setting: Setting, terms: Sequence[str] = SUB_METRICS, most: int | None = None
) -> ScoredSets:
    """Returns the user's sets or the files of DSTC10, with the metrics of the setting. Those of
    `terms` are composed where there are any, else everything is. `most`: take at most so many
    samples of a set."""
    source = LoadedOnce(setting.source)
    metrics = make_metrics(setting.metrics)
    left_out = {} if setting.source else unusable(metrics)
    usable = [metric for metric in metrics if metric.label not in left_out]
    if not usable:
        raise UsageError("\n".join(["no metric can be asked here:", *left_out.values()]))
    sets = load_rated_sets(setting.sets) if setting.sets else dstc10_sets(setting)
    if most is not None:
        sets = [by_lot(rated, most) for rated in sets]
    setting, before = replace(setting, source=source), 0
    total = sum(len(rated.samples) for rated in sets)
    runs = {}
    for rated in sets:
        place = run_place(rated, usable, source)
        runs[rated.name] = setting.after(before, total).score(rated.samples, usable, place)
        before += len(rated.samples)
    labels = [metric.label for metric in usable]
    gathered = gather(runs, [label for label in labels if label in terms] or labels)
    models = sorted({model for metric in usable for model in metric.models().values()})
    signatures = next(iter(runs.values())).signatures
    return ScoredSets(
        gathered,
        (
            *left_out.values(),
            *(() if setting.sets else (_absent(sets),)),
            *sampling_notes(sets),
            *gathered.left_out,
            *gathered.families.notes,
            *what_was_learned(models),
            *(str(signatures[label].short()) for label in labels),
        ),
    )


def dstc10_sets(setting: Setting) -> list[RatedSet]:
    """Returns the files of the track that are here, as a metric is to see them; of large ones a
    sample."""
    if "dstc10" not in setting.data:
        raise UsageError(
            "the files of DSTC10 are not here. Get them: dialeval data get dstc10, or choose rated"
            " sets of your own: --set FILE"
        )
    return [
        thinned(
            RatedSet(
                path.name.removesuffix("_eval.json"),
                tuple(protocol_sample(sample) for sample in dialeval.load(path)),
            )
        )
        for path in sorted(setting.data["dstc10"].glob("*_eval.json"))
    ]


def _absent(sets: Sequence[RatedSet]) -> str:
    here = {rated.name for rated in sets}
    absent = [name for name in DEVELOPMENT_SETS if name not in here]
    there = len(DEVELOPMENT_SETS) - len(absent)
    return (
        f"{there} of the {len(DEVELOPMENT_SETS)} development data sets are here; not here:"
        f" {', '.join(absent) or 'none'}"
    )
