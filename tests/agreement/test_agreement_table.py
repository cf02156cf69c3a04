"""Rows of metric against quality, on a small table whose numbers can be worked out elsewhere."""

import json

import numpy as np
import pytest

from dialeval.agreement.rated import Target, rated_samples
from dialeval.agreement.table import agreement_rows
from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")

RNG = np.random.default_rng(12)
N_ITEMS, SYSTEMS = 20, ("a", "b", "c", "d")
QUALITY = RNG.normal(size=(N_ITEMS, len(SYSTEMS))) + np.arange(len(SYSTEMS))
RATINGS = np.clip(np.round(QUALITY[..., None] + RNG.normal(size=(*QUALITY.shape, 3)) + 2), 0, 5)
SCORES = QUALITY + RNG.normal(size=QUALITY.shape)


def samples():
    return [
        Sample(
            id=f"{item}/{system}",
            response="x",
            system=system,
            item=str(item),
            ratings={"Overall": Rating(tuple(RATINGS[item, s]), raters=("Ann", "Bob", "Cy"))},
        )
        for item in range(N_ITEMS)
        for s, system in enumerate(SYSTEMS)
    ]


def scores(values=SCORES):
    table = {f"{i}/{s}": float(values[i, j]) for i in range(N_ITEMS) for j, s in enumerate("abcd")}
    return {"mine": table}


def rows(by="turn", target="mean", values=None, rounds=0, **options):
    given = scores() if values is None else scores(values)
    levels = rated_samples(samples(), given, Target.parse(target), **options)
    return agreement_rows(levels, by=by, rounds=rounds)


ORACLES = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("name", ORACLES)
def test_each_grouping_equals_scipy_on_the_items_that_it_compares(name):
    mean, oracle = RATINGS.mean(axis=2), ORACLES[name]

    def value(by):
        (row,) = rows(by)
        return row.correlations[name].value

    def within(pairs):
        return np.mean([oracle(x, y).statistic for x, y in pairs])

    assert value("turn") == pytest.approx(oracle(SCORES.ravel(), mean.ravel()).statistic)
    assert value("system") == pytest.approx(oracle(SCORES.mean(0), mean.mean(0)).statistic)
    assert value("within-item") == pytest.approx(within(zip(SCORES, mean, strict=True)))
    assert value("within-system") == pytest.approx(within(zip(SCORES.T, mean.T, strict=True)))


def test_n_counts_what_was_compared():
    counts = {by: rows(by)[0] for by in ("turn", "system", "within-item", "within-system")}
    assert {by: row.n for by, row in counts.items()} == {
        "turn": 80,
        "system": 4,
        "within-item": 80,
        "within-system": 80,
    }
    estimate = counts["within-item"].correlations["spearman"]
    assert (estimate.groups, estimate.groups_undefined) == (20, 0)


@pytest.mark.parametrize(("target", "column"), [("rater:Bob", 1), ("rater:2", 1), ("rater:Cy", 2)])
def test_one_rater_is_chosen_by_name_or_number(target, column):
    (row,) = rows(target=target)
    expected = stats.spearmanr(SCORES.ravel(), RATINGS[..., column].ravel()).statistic
    assert row.correlations["spearman"].value == pytest.approx(expected)


def test_pones_rule_takes_the_largest_value_and_the_smallest_p_over_raters():
    (row,) = rows(target="max-over-raters", rounds=20)
    each = [stats.spearmanr(SCORES.ravel(), RATINGS[..., r].ravel()) for r in range(3)]
    found = row.correlations["spearman"]
    assert found.value == pytest.approx(max(one.statistic for one in each))
    assert found.p == pytest.approx(min(one.pvalue for one in each))
    best = int(np.argmax([one.statistic for one in each]))
    assert (found.rater, row.target) == (("Ann", "Bob", "Cy")[best], "max-over-raters")
    assert (found.low, found.high) == (None, None)


def test_a_metric_that_is_better_when_lower_orders_pairs_as_its_opposite_does():
    (higher,) = rows()
    (lower,) = rows(values=-SCORES, directions={"mine": "lower"})
    assert lower.pairwise.value == higher.pairwise.value
    opposite = -higher.correlations["spearman"].value
    assert lower.correlations["spearman"].value == pytest.approx(opposite)


def test_ties_are_counted_on_both_sides():
    (row,) = rows(values=np.round(SCORES))
    mean = RATINGS.mean(axis=2).ravel()

    def tied(values):
        _, counts = np.unique(values, return_counts=True)
        return int((counts * (counts - 1) // 2).sum())

    assert row.ties_metric == tied(np.round(SCORES))
    assert row.ties_human == tied(np.round(mean, 9))


def test_an_unknown_quality_target_or_metric_is_named():
    with pytest.raises(UsageError, match="Did you mean 'Overall'"):
        rows(qualities=["Overal"])
    with pytest.raises(UsageError, match="Its 3 raters are: Ann, Bob, Cy"):
        rows(target="rater:Dan")
    with pytest.raises(UsageError, match="no target 'median'"):
        rows(target="median")
    levels = rated_samples(samples(), scores(), Target())
    with pytest.raises(UsageError, match="no metric 'yours'"):
        agreement_rows(levels, metrics=["yours"])


def test_samples_without_an_item_cannot_be_grouped_by_it():
    bare = [Sample(id=s.id, response="x", ratings=s.ratings) for s in samples()]
    levels = rated_samples(bare, scores(), Target())
    with pytest.raises(UsageError, match="no turn says which item it answers"):
        agreement_rows(levels, by="within-item", rounds=0)


def test_a_metric_without_any_score_has_a_row_that_says_so():
    nothing = {"mine": dict.fromkeys(scores()["mine"]), "other": scores()["mine"]}
    levels = rated_samples(samples(), nothing, Target())
    row, _ = agreement_rows(levels, rounds=0)
    assert (row.metric, row.n, row.n_missing) == ("mine", 0, 80)
    assert row.correlations["pearson"].reason == "fewer than 3 pairs"


def test_progress_counts_rounds_within_a_row():
    told = []
    levels = rated_samples(samples(), scores(), Target())
    agreement_rows(levels, rounds=9000, progress=lambda *seen: told.append(seen))
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == (9000, 9000)


def test_a_row_is_json_with_the_promised_keys():
    (row,) = rows(rounds=20)
    record = json.loads(json.dumps(row.to_record()))
    promised = {"dataset", "metric", "quality", "level", "by", "n", "n_missing", *ORACLES}
    assert promised <= set(record)
    assert set(record["kendall"]) == {"value", "p", "low", "high"}
    assert {"value", "epsilon", "human_ties", "metric_ties"} <= set(record["pairwise"])


def test_a_maximum_over_raters_takes_no_accuracy_of_pairs():
    """A rater who always says the same ties every pair, so that calibration would find 100 %."""
    (row,) = rows(target="max-over-raters")
    assert (row.pairwise.value, row.pairwise.n_pairs) == (None, 0)
    assert "maximum" in row.pairwise.reason
    (mean,) = rows()
    assert mean.pairwise.value is not None


def test_three_systems_have_no_interval_and_a_reason():
    few = [sample for sample in samples() if sample.system != "d"]
    levels = rated_samples(few, scores(), Target())
    (row,) = agreement_rows(levels, by="system", rounds=50)
    for found in row.correlations.values():
        assert (found.low, found.high, found.no_interval) == (None, None, "fewer than 5 items")
        assert found.to_estimate()["no_interval"] == "fewer than 5 items"
