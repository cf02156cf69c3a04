"""Is one metric better than another? And how do metrics relate to each other?"""

import json

import numpy as np
import pytest

from dialeval.agreement.metric_ranking import rank_metrics, rounds_needed
from dialeval.agreement.rated import Target, rated_samples
from dialeval.agreement.relations import relations
from dialeval.agreement.significance import williams_p
from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample

N = 120
RNG = np.random.default_rng(21)
HUMAN = RNG.normal(size=N)
COLUMNS = {
    "good": HUMAN + 0.3 * RNG.normal(size=N),
    "fine": HUMAN + 0.32 * RNG.normal(size=N),
    "poor": HUMAN + 3 * RNG.normal(size=N),
}


def levels(columns=COLUMNS, target="mean", extra=(), **options):
    samples = [
        Sample(
            id=str(i),
            response="x",
            system=f"bot{i % 4}",
            item=str(i // 4),
            ratings={"Overall": Rating((float(HUMAN[i]),))}
            | {name: Rating((float(values[i]),)) for name, values in dict(extra).items()},
        )
        for i in range(N)
    ]
    scores = {
        name: {str(i): float(v) for i, v in enumerate(values) if not np.isnan(v)}
        for name, values in columns.items()
    }
    return rated_samples(samples, scores, Target.parse(target), **options)


@pytest.mark.parametrize("test", ["williams", "perm-both"])
def test_a_metric_that_knows_more_stands_above_one_that_knows_less(test):
    (ranking,) = rank_metrics(levels(), test, rounds=999)
    clusters = {one.metric: one.cluster for one in ranking.metrics}
    assert clusters == {"good": 1, "fine": 1, "poor": 2}
    assert [one.metric for one in ranking.metrics][-1] == "poor"
    assert len(ranking.pairs) == 3
    json.dumps(ranking.to_record())


def test_williams_p_is_that_of_numpys_correlations_and_holm_by_hand():
    (ranking,) = rank_metrics(levels(), "williams")
    found = {frozenset((pair.first, pair.second)): pair for pair in ranking.pairs}
    raw = {}
    for pair in found:
        first, second = sorted(pair)
        r = np.corrcoef([COLUMNS[first], COLUMNS[second], HUMAN])
        raw[pair] = williams_p(r[0, 2], r[1, 2], r[0, 1], N)
        assert found[pair].test.p == pytest.approx(raw[pair])
    smallest = min(raw, key=raw.__getitem__)
    assert found[smallest].p_holm == pytest.approx(3 * raw[smallest])


def test_a_metric_that_is_better_when_lower_competes_turned_over():
    turned = COLUMNS | {"good": -COLUMNS["good"]}
    (plain,) = rank_metrics(levels(), "williams")
    (ranking,) = rank_metrics(levels(turned, directions={"good": "lower"}), "williams")
    assert [(m.metric, m.cluster) for m in ranking.metrics] == [
        (m.metric, m.cluster) for m in plain.metrics
    ]
    assert [m.turned for m in ranking.metrics if m.metric == "good"] == [True]
    (wrong,) = rank_metrics(levels(turned), "williams")
    assert wrong.metrics[-1].metric == "good"


@pytest.mark.parametrize("by", ["system", "within-item", "within-system"])
def test_groups_are_tested_by_permutation(by):
    (ranking,) = rank_metrics(levels(), "perm-both", by=by, rounds=99)
    assert (ranking.by, len(ranking.pairs)) == (by, 3)
    assert all(0 < pair.test.p <= 1 for pair in ranking.pairs)


def test_what_cannot_be_tested_is_refused_with_the_way_out():
    with pytest.raises(UsageError, match="use --test perm-both"):
        rank_metrics(levels(), "williams", by="within-item")
    with pytest.raises(UsageError, match="--target mean"):
        rank_metrics(levels(target="max-over-raters"), "williams")


@pytest.mark.parametrize("test", ["williams", "perm-both"])
def test_order_and_tests_rest_on_the_samples_that_every_metric_scored(test):
    """`fine` lacks the samples on which `poor` fails, and could not be ranked on others."""
    holes = COLUMNS["fine"].copy()
    holes[:30] = np.nan
    nothing = np.full(N, np.nan)
    columns = COLUMNS | {"fine": holes, "silent": nothing}
    (ranking,) = rank_metrics(levels(columns), test, coefficient="pearson", rounds=99)
    expected = {m: np.corrcoef(COLUMNS[m][30:], HUMAN[30:])[0, 1] for m in COLUMNS}
    found = {one.metric: one for one in ranking.metrics}
    for metric, value in expected.items():
        assert (found[metric].n, found[metric].correlation) == (N - 30, pytest.approx(value))
    for pair in ranking.pairs:
        if "silent" not in (pair.first, pair.second):
            assert pair.test.n == N - 30
            assert pair.test.difference == pytest.approx(
                expected[pair.first] - expected[pair.second]
            )
    assert (ranking.left_out, ranking.scarcest) == (30, "fine")
    assert "30 samples are left out" in ranking.remark
    assert found["silent"].correlation is None


def test_where_all_metrics_scored_everything_nothing_is_left_out():
    (ranking,) = rank_metrics(levels(), "williams")
    assert (ranking.left_out, ranking.remark) == (0, "")


def test_relations_by_system_are_those_of_the_means():
    (found,) = relations(levels(), "pearson", by="system")
    means = [[COLUMNS[m][s::4].mean() for s in range(4)] for m in COLUMNS]
    np.testing.assert_allclose(found.values, np.corrcoef(means), atol=1e-9)
    assert (found.by, found.n[0][1]) == ("system", 4)
    with pytest.raises(UsageError, match="--by turn or --by system"):
        relations(levels(), by="within-item")


def test_enough_rounds_let_the_smallest_p_survive_holm():
    for pairs in (1, 45, 190):
        rounds = rounds_needed(pairs)
        assert pairs / (rounds + 1) <= 0.05 < pairs / rounds


def test_too_few_rounds_are_pointed_out():
    (few,) = rank_metrics(levels(), "perm-both", rounds=19)
    assert "Use --rounds 59 or more" in few.warning
    (exact,) = rank_metrics(levels(), "perm-both", rounds=59)
    assert exact.warning == ""
    (williams,) = rank_metrics(levels(), "williams")
    assert williams.warning == ""


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_relations_equal_pandas_with_pairwise_complete_columns(coefficient):
    pandas = pytest.importorskip("pandas")
    holes = COLUMNS["fine"].copy()
    holes[::5] = np.nan
    columns = COLUMNS | {"fine": holes}
    liking = np.where(np.arange(N) % 3 == 0, HUMAN, RNG.normal(size=N))
    metrics, qualities = relations(levels(columns, extra={"Liking": liking}), coefficient)
    expected = pandas.DataFrame(columns).corr(method=coefficient)
    np.testing.assert_allclose(metrics.values, expected.to_numpy(), atol=1e-9)
    assert metrics.n[0] == (N, N - 24, N)
    assert (qualities.of, qualities.names) == ("qualities", ("Overall", "Liking"))
    both = pandas.DataFrame({"Overall": HUMAN, "Liking": liking}).corr(method=coefficient)
    np.testing.assert_allclose(qualities.values, both.to_numpy(), atol=1e-9)


def test_a_constant_metric_relates_to_nothing():
    metrics = relations(levels({"good": COLUMNS["good"], "flat": np.ones(N)}))[0]
    assert metrics.values[0] == (1.0, None)
    json.dumps(metrics.to_record())


def probed(dialogue_of_groups="q{}"):
    """Two turns of each of six dialogues, and one sample of the dialogue as a whole."""
    samples, coherence, diversity = [], {}, {}
    for number in range(6):
        for turn in range(2):
            ident = f"turn {number} {turn}"
            samples.append(Sample(ident, response="x", system="bot", dialogue=f"q{number}"))
            coherence[ident] = float(number + 10 * turn)
        ident = f"group {number}"
        dialogue = dialogue_of_groups.format(number)
        samples.append(Sample(ident, system="bot", dialogue=dialogue))
        diversity[ident] = -float(number**2)
    scores = {"coherence": coherence, "diversity": diversity}
    return rated_samples(samples, scores, Target.parse("mean"))


def test_metrics_of_turns_and_of_dialogues_are_related_through_the_dialogue():
    (found,) = relations(probed(), "pearson")
    assert (found.level, found.names, found.note) == ("both", ("coherence", "diversity"), "")
    means, squares = np.arange(6) + 5.0, -(np.arange(6.0) ** 2)
    assert found.values[0][1] == pytest.approx(np.corrcoef(means, squares)[0, 1])
    assert (found.n[0][1], found.n[0][0]) == (6, 6)
    json.dumps(found.to_record())


def test_levels_without_a_common_dialogue_are_not_related_and_say_so():
    (found,) = relations(probed("another {}"))
    assert found.values[0][1] is None
    assert found.n[0][1] == 0
    assert found.note == "Turns and dialogues are not related: no dialogue has samples of both."


def test_order_and_test_within_items_rest_on_the_same_groups():
    """A metric that says the same of all answers to most items is not saved by the few others."""
    rng = np.random.default_rng(0)
    samples, scores = [], {"flat": {}, "noisy": {}}
    for item in range(40):
        for system, rating in enumerate(rng.permutation(5).tolist()):
            ident = f"{item}-{system}"
            rated = {"q": Rating((float(rating),))}
            samples.append(
                Sample(ident, response="x", item=str(item), system=str(system), ratings=rated)
            )
            scores["flat"][ident] = rating if item < 4 else 0.0
            scores["noisy"][ident] = rating + 1.2 * rng.normal()
    found = rated_samples(samples, scores, Target())
    (ranking,) = rank_metrics(found, "perm-both", by="within-item", rounds=999)
    assert [(one.metric, one.cluster) for one in ranking.metrics] == [("noisy", 1), ("flat", 2)]
    assert ranking.metrics[1].correlation == pytest.approx(4 / 40)
    (duel,) = ranking.pairs
    assert duel.test.second == pytest.approx(ranking.metrics[1].correlation)
    assert duel.test.first == pytest.approx(ranking.metrics[0].correlation)
