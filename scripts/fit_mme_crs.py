"""Fits the weights that come with dialeval (src/dialeval/compose/weights) and writes their cards.

    DIALEVAL_DATA=DIR python scripts/fit_mme_crs.py           # mme-crs: the seven of the paper
    DIALEVAL_DATA=DIR python scripts/fit_mme_crs.py --wide    # wide: other metrics of turns, too

Scores every rated data set that is here with the seven sub-metrics of MME-CRS and some others to
compare with (answers and runs are cached), fits the weights on all of them, and tries them on each
left-out set. All seven sub-metrics must be trained and shipped:
weights of fewer, or of other models, would be refused by the guard of the metric.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dialeval.compose.card import card_text, verdict
from dialeval.compose.composition_file import SHIPPED, save_composition
from dialeval.compose.fit import OURS, FitOptions, fit, fit_warnings
from dialeval.compose.leave_one_out import leave_one_out
from dialeval.compose.qualities import find_quality_map
from dialeval.compose.tables import standing_lines, trial_lines, weight_lines
from dialeval.errors import DialevalError, UsageError
from dialeval.registry import make_metrics
from dialeval.studies.comparison_runs import rated_sets_here, unusable
from dialeval.studies.composition_runs import SUB_METRICS, score_sets
from dialeval.studies.study import Setting
from dialeval.terminal import counting_bar, print_table, say

OTHERS = ("bert-ruber", "deep-am-fm", "coherence", "pmi")
"""What `wide` composes besides: by other models or from other questions."""

COMPARED = ("pone", "usl-h", "length")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--power", default="2", choices=["1", "2", "3", "adaptive"])
    parser.add_argument("--map", default="common", help="literal, common, or a JSON file")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wide", action="store_true", help="compose other metrics, too")
    parser.add_argument("--prior", type=float, default=OURS.prior, help="see dialeval compose fit")
    parser.add_argument("--paper", action="store_true", help="as in the paper")
    parser.add_argument("--set", action="append", help="only this rated set; repeat")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the folder to write to")
    given = parser.parse_args()
    power = given.power if given.power == "adaptive" else float(given.power)
    names = find_quality_map(given.map)
    prior = 0.0 if given.paper else given.prior
    options = FitOptions(power, given.sample, given.seed, names, prior, even=not given.paper)
    if missing := unusable(make_metrics(SUB_METRICS)):
        raise UsageError("\n".join(["all seven sub-metrics are needed:", *missing.values()]))
    sets = tuple(given.set or rated_sets_here())
    name, terms = ("wide", (*SUB_METRICS, *OTHERS)) if given.wide else ("mme-crs", SUB_METRICS)
    everything = (*SUB_METRICS, *OTHERS, *COMPARED)
    with counting_bar("scoring") as progress:
        scored = score_sets(Setting(metrics=everything, sets=sets, progress=progress), terms)
    for note in scored.notes:
        say(note, style="dim")
    composition = fit(scored.gathered, options)
    trials = leave_one_out(scored.gathered, options)
    save_composition(composition, given.out / f"{name}.json")
    command = (
        "python scripts/fit_mme_crs.py"
        + "".join(
            f" --{name} {getattr(given, name)}"
            for name in ("power", "map", "sample", "seed", "prior")
            if getattr(given, name) != parser.get_default(name)
        )
        + "".join(f" --{flag}" for flag in ("wide", "paper") if getattr(given, flag))
    )
    card = card_text(name, command, composition, trials)
    (given.out / f"{name}.md").write_text(card, encoding="utf-8")
    for lines, texts in (
        (weight_lines(composition, list(composition.weights)), 1),
        (trial_lines(trials), 3),
        (standing_lines(trials), 1),
    ):
        print_table(*lines, right=range(texts, len(lines[0])))
        say()
    for warning in fit_warnings(composition):
        say(warning, style="yellow")
    say(verdict(trials))
    say(f"wrote {given.out / name}.json and {name}.md")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except DialevalError as error:
        say(str(error), stderr=True, style="red")
        raise SystemExit(error.exit_code) from None
