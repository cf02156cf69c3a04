"""Fits the weights that come with dialeval (src/dialeval/metrics/weights) and writes their cards.

    DIALEVAL_DATA=DIR python scripts/fit_mme_crs.py           # mme-crs: the seven of the paper
    DIALEVAL_DATA=DIR python scripts/fit_mme_crs.py --wide    # wide: other metrics of turns, too

Scores the development sets of DSTC10 with the seven sub-metrics of MME-CRS and some others to
compare with (answers and runs are cached), fits the weights on all of them, and tries them on each
left-out set. The scale of terms is chosen on the sets that are kept. Then the weights are tried on
the sets of `REPORTED`, which nothing was fitted or chosen on. All seven sub-metrics must be trained
and shipped: weights of fewer, or of other models, would be refused by the guard of the metric.

dstc7 is tried and not fitted on: its contexts have lost their stop words at the source, so that
what relevance and topic read is not what people read, and their weights would suffer for it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from dialeval.agreement.dstc10 import DEVELOPMENT_SETS
from dialeval.cli.terminal import counting_bar, print_table, run_script, say
from dialeval.compose.fitting import OURS, SCALES, FitOptions, find_quality_map, fit, fit_warnings
from dialeval.compose.leave_one_out import fit_best, leave_each_out, try_on_new_sets
from dialeval.compose.tables import card_text, method_lines, trial_lines, verdict, weight_lines
from dialeval.datasets import DATASETS, find_dataset
from dialeval.errors import UsageError
from dialeval.metrics.composition import SHIPPED, save_composition
from dialeval.registry import make_metrics
from dialeval.studies.rated_runs import SUB_METRICS, score_sets, unusable
from dialeval.studies.study import Setting

OTHERS = ("bert-ruber", "deep-am-fm", "coherence", "pmi")
"""What `wide` composes besides: by other models or from other questions."""

COMPARED = ("pone", "usl-h", "length")

REPORTED = (
    "dstc10/dstc7", "engage", "holistic/coherence", "holistic/fluency", "holistic/consistency",
    "holistic/consistency-ws", "holistic/consistency-ctg",
)  # fmt: skip
"""Nothing is fitted or chosen on these."""


def development_sets() -> list[str]:
    """Those of DSTC10 that are here, without those that are reported on."""
    names = (f"dstc10/{name}" for name in DEVELOPMENT_SETS)
    known = {f"dstc10/{part.name}" for part in DATASETS["dstc10"].parts}
    here = [name for name in names if name in known and find_dataset(name) is not None]
    return [name for name in here if name not in REPORTED]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--power", default="2", choices=["1", "2", "3", "adaptive"])
    parser.add_argument("--map", default="common", help="literal, common, or a JSON file")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wide", action="store_true", help="compose other metrics, too")
    parser.add_argument("--prior", type=float, default=OURS.prior, help="see dialeval compose fit")
    parser.add_argument("--paper", action="store_true", help="as in the paper")
    parser.add_argument("--scale", default="best", choices=["best", *SCALES])
    parser.add_argument("--most", type=int, default=500, help="samples of a set, drawn at random")
    parser.add_argument("--set", action="append", help="fit on this rated set; repeat")
    parser.add_argument("--report", action="append", help="only try on this one; repeat")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the folder to write to")
    given = parser.parse_args()
    power = given.power if given.power == "adaptive" else float(given.power)
    names = find_quality_map(given.map)
    prior = 0.0 if given.paper else given.prior
    options = FitOptions(power, given.sample, given.seed, names, prior, even=not given.paper)
    best = given.scale == "best" and not given.paper
    if not best and not given.paper:
        options = replace(options, scale=given.scale)
    if missing := unusable(make_metrics(SUB_METRICS)):
        raise UsageError("\n".join(["all seven sub-metrics are needed:", *missing.values()]))
    sets = tuple(given.set or development_sets())
    tried = tuple(given.report or (name for name in REPORTED if find_dataset(name) is not None))
    name, terms = ("wide", (*SUB_METRICS, *OTHERS)) if given.wide else ("mme-crs", SUB_METRICS)
    everything = (*terms, *COMPARED)
    with counting_bar("scoring") as progress:
        setting = Setting(metrics=everything, sets=sets, progress=progress)
        scored = score_sets(setting, terms, given.most)
    with counting_bar("scoring what is reported on") as progress:
        setting = Setting(metrics=everything, sets=tried, progress=progress)
        unseen = score_sets(setting, terms, given.most)
    for note in scored.notes:
        say(note, style="dim")
    fitter = fit_best if best else fit
    composition = fitter(scored.gathered, options)
    trials = leave_each_out(scored.gathered, options, scales=SCALES if best else ())
    reported = try_on_new_sets(composition, scored.gathered, unseen.gathered, options)
    save_composition(composition, given.out / f"{name}.json")
    command = (
        "python scripts/fit_mme_crs.py"
        + "".join(
            f" --{name} {getattr(given, name)}"
            for name in ("power", "map", "sample", "seed", "prior", "scale", "most")
            if getattr(given, name) != parser.get_default(name)
        )
        + "".join(f" --{flag}" for flag in ("wide", "paper") if getattr(given, flag))
        + "".join(f" --set {name}" for name in given.set or ())
        + "".join(f" --report {name}" for name in given.report or ())
    )
    card = card_text(name, command, composition, trials, reported)
    (given.out / f"{name}.md").write_text(card, encoding="utf-8")
    for lines, texts in (
        (weight_lines(composition, list(composition.weights)), 1),
        (trial_lines(trials), 3),
        (method_lines(trials), 1),
        (trial_lines(reported), 3),
        (method_lines(reported), 1),
    ):
        print_table(*lines, right=range(texts, len(lines[0])))
        say()
    for warning in fit_warnings(composition):
        say(warning, style="yellow")
    say(verdict(trials))
    say(f"wrote {given.out / name}.json and {name}.md")
    return 0


if __name__ == "__main__":
    run_script(main)
