"""Agreement between raters, against published tables, textbooks and other libraries."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dialeval
from dialeval.agreement.raters import (
    cohen_kappa,
    fleiss_kappa,
    human_variance,
    icc_mean,
    icc_single,
    krippendorff_alpha,
    leave_one_out,
    mean_cohen_kappa,
    mean_rating,
    pairwise,
    rater_reports,
    summarise_raters,
)
from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample

unhurried = settings(deadline=None)

SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]],
    dtype=np.float64,
)
"""Shrout and Fleiss (1979), Table 2: six targets, four judges."""

tables = arrays(
    np.float64,
    st.tuples(st.integers(3, 8), st.integers(2, 5)),
    elements=st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]),
)
holey_tables = arrays(
    np.float64,
    st.tuples(st.integers(3, 8), st.integers(2, 5)),
    elements=st.sampled_from([1.0, 2.0, 3.0, 5.0, np.nan]),
)
STATISTICS = [
    mean_cohen_kappa,
    lambda table: mean_cohen_kappa(table, "linear"),
    lambda table: mean_cohen_kappa(table, "quadratic"),
    fleiss_kappa,
    lambda table: krippendorff_alpha(table, "nominal"),
    lambda table: krippendorff_alpha(table, "ordinal"),
    lambda table: krippendorff_alpha(table, "interval"),
    icc_single,
    icc_mean,
    human_variance,
    lambda table: pairwise(table).pearson_mean,
    lambda table: pairwise(table).spearman_max,
]


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("krippendorff")


@pytest.fixture(scope="module")
def inter_rater():
    return pytest.importorskip("statsmodels.stats.inter_rater")


def close(found, expected):
    """Both undefined, or the same number."""
    if expected.value is None:
        return found.value is None
    return found.value == pytest.approx(expected.value, abs=1e-9)


def load_table(path):
    ratings = [next(iter(sample.ratings.values())) for sample in dialeval.load(path)]
    return np.array([one.values for one in ratings], dtype=np.float64), ratings[0].raters


def numbers(found):
    return [
        found.pearson_mean.value,
        found.pearson_max.value,
        found.spearman_mean.value,
        found.spearman_max.value,
    ]


def test_leave_one_out_equals_the_golden_numbers(golden):
    known = golden["inter_rater_leave_one_out"]
    report = summarise_raters(np.array(known["ratings_items_x_raters"]), "abcd")
    assert [r.pearson.value for r in report.raters] == pytest.approx(known["pearson_per_rater"])
    assert [r.spearman.value for r in report.raters] == pytest.approx(known["spearman_per_rater"])
    kinds = ("pearson_mean", "pearson_max", "spearman_mean", "spearman_max")
    assert numbers(report.leave_one_out) == pytest.approx([known[kind] for kind in kinds])
    assert report.human_variance.value == pytest.approx(known["human_variance_ddof0_mean"])


@pytest.mark.parametrize(
    ("place", "published"),
    [
        ("context_data_release.csv", [0.6070, 0.9094, 0.5736, 0.8696]),
        ("fluency_data_release.csv", [0.6965, 0.8773, 0.6977, 0.8515]),
        ("self_consistency/baseline", [0.6117, 0.7542, 0.6248, 0.7380]),
        ("self_consistency/word_net", [0.6411, 0.7964, 0.6437, 0.7948]),
        ("self_consistency/seq2seq", [0.6539, 0.7516, 0.6590, 0.7556]),
    ],
)
def test_leave_one_out_reproduces_holistic_tables_3_4_and_9(datasets, place, published):
    path = datasets / "rated" / "holistic" / place
    if not path.exists():
        pytest.skip(f"no {path}")
    report = summarise_raters(*load_table(path))
    assert [round(value, 4) for value in numbers(report.leave_one_out)] == published


def test_the_two_random_raters_of_holistic_context_are_flagged(datasets):
    path = datasets / "rated" / "holistic" / "context_data_release.csv"
    if not path.exists():
        pytest.skip(f"no {path}")
    report = summarise_raters(*load_table(path))
    flagged = [rater for rater in report.raters if rater.looks_random]
    assert [round(rater.pearson.value, 2) for rater in flagged] == [-0.08, 0.16]
    assert report.random_looking == tuple(rater.name for rater in flagged)


def test_pairwise_and_kappas_equal_the_golden_numbers(golden):
    known = golden["human_agreement"]
    table = np.array(known["ratings_raters_x_items"], dtype=np.float64).T
    report = summarise_raters(table, "abc")
    assert numbers(report.pairwise) == pytest.approx(
        [
            known[name][kind]
            for kind in ("pearson", "spearman")
            for name in ("human_avg", "human_max")
        ]
    )
    assert report.cohen_kappa.value == pytest.approx(known["cohen_kappa_mean"])
    assert report.fleiss_kappa.value == pytest.approx(known["fleiss_kappa"])
    assert report.cohen_kappa_quadratic.value == pytest.approx(
        np.mean(known["quadratic_weighted_kappa_pairs"])
    )


def test_icc_equals_shrout_and_fleiss():
    assert round(icc_single(SHROUT_FLEISS).value, 2) == 0.29
    assert round(icc_mean(SHROUT_FLEISS).value, 2) == 0.62


@pytest.mark.filterwarnings("ignore")  # pingouin calls what pandas is about to change
def test_icc_equals_pingouin():
    pingouin = pytest.importorskip("pingouin")
    pandas = pytest.importorskip("pandas")
    table = np.random.default_rng(1).normal(size=(20, 5)) + np.arange(20)[:, None] / 5
    rows = [(i, r, table[i, r]) for i in range(20) for r in range(5)]
    frame = pandas.DataFrame(rows, columns=["item", "rater", "rating"])
    known = pingouin.intraclass_corr(frame, "item", "rater", "rating")["ICC"].to_numpy()
    # rows: ICC(1,1), ICC(2,1), ICC(3,1), ICC(1,k), ICC(2,k), ICC(3,k)
    assert icc_single(table).value == pytest.approx(known[1], abs=1e-9)
    assert icc_mean(table).value == pytest.approx(known[4], abs=1e-9)


def test_fleiss_kappa_of_a_worked_example():
    """The example of 10 subjects, 14 raters, 5 categories: P = .378, Pe = .213, kappa = .210."""
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    table = np.array([np.repeat(np.arange(5.0), row) for row in counts])
    assert fleiss_kappa(table).value == pytest.approx(0.210, abs=5e-4)


@unhurried
@given(table=tables)
def test_kappas_equal_statsmodels(inter_rater, table):
    if (found := fleiss_kappa(table)).value is not None:
        counts = np.stack([(table == grade).sum(axis=1) for grade in range(1, 6)], axis=1)
        assert found.value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)
    x, y = table[:, 0], table[:, 1]
    joint = np.array([[((x == a) & (y == b)).sum() for b in range(1, 6)] for a in range(1, 6)])
    for ours, theirs in [("plain", None), ("linear", "linear"), ("quadratic", "quadratic")]:
        if (found := cohen_kappa(x, y, ours)).value is not None:
            known = inter_rater.cohens_kappa(joint, wt=theirs, return_results=False)
            assert found.value == pytest.approx(known, abs=1e-9)


@unhurried
@given(tables)
def test_weighted_kappas_equal_their_definition(table):
    """Sums over the full tables of observed and expected pairs of ratings."""
    x, y = table[:, 0], table[:, 1]
    for weights, power in (("linear", 1), ("quadratic", 2)):
        found = cohen_kappa(x, y, weights).value
        expected = np.mean(np.abs(x[:, None] - y) ** power)
        if found is None:
            assert expected == 0
        else:
            assert found == pytest.approx(1 - np.mean(np.abs(x - y) ** power) / expected, abs=1e-9)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@unhurried
@given(table=holey_tables)
def test_alpha_equals_the_krippendorff_package(oracle, scale, table):
    found = krippendorff_alpha(table, scale)
    pairable = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if len(set(pairable[~np.isnan(pairable)])) < 2:
        assert found.value is None
        assert found.reason in ("only one category in use", "no item with 2 ratings")
    else:
        known = oracle.alpha(pairable.T, level_of_measurement=scale)
        assert found.value == pytest.approx(known, abs=1e-9)


@unhurried
@given(holey_tables, st.randoms(use_true_random=False))
def test_the_order_of_items_and_raters_changes_nothing(table, random):
    items, raters = list(range(table.shape[0])), list(range(table.shape[1]))
    random.shuffle(items)
    random.shuffle(raters)
    for statistic in STATISTICS:
        assert close(statistic(table[items][:, raters]), statistic(table))
    before = leave_one_out(table, [str(r) for r in range(table.shape[1])])
    after = leave_one_out(table[items][:, raters], [str(r) for r in raters])
    for rater in after:
        assert close(rater.spearman, before[int(rater.name)].spearman)
        assert close(rater.pearson, before[int(rater.name)].pearson)


@unhurried
@given(st.lists(st.integers(1, 5), min_size=3, max_size=9), st.integers(2, 4))
def test_perfect_agreement_is_one(column, raters):
    table = np.repeat(np.array(column, dtype=np.float64)[:, None], raters, axis=1)
    assert human_variance(table).value == 0
    for statistic in STATISTICS:
        if statistic is not human_variance:
            expected = None if len(set(column)) == 1 else pytest.approx(1)
            assert statistic(table).value == expected


@unhurried
@given(holey_tables, st.permutations([1.0, 2.0, 3.0, 5.0]))
def test_nominal_statistics_do_not_see_the_labels(table, labels):
    renamed = table.copy()
    for old, new in zip([1.0, 2.0, 3.0, 5.0], labels, strict=True):
        renamed[table == old] = new
    for statistic in (mean_cohen_kappa, fleiss_kappa, lambda t: krippendorff_alpha(t, "nominal")):
        assert close(statistic(renamed), statistic(table))


@unhurried
@given(holey_tables, st.integers(-3, 3), st.sampled_from([0.5, 2.0, 4.0]))
def test_interval_statistics_do_not_see_the_unit(table, shift, unit):
    moved = table * unit + shift
    for statistic in STATISTICS:
        if statistic is human_variance:
            continue
        assert close(statistic(moved), statistic(table))


@unhurried
@given(holey_tables)
def test_ordinal_alpha_sees_only_the_order(table):
    assert close(krippendorff_alpha(table**3, "ordinal"), krippendorff_alpha(table, "ordinal"))


@settings(unhurried, max_examples=50)
@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.7]), min_size=2, max_size=6))
def test_means_that_are_equal_on_paper_are_tied(row):
    whole = np.array([row]) * 10
    tied = mean_rating(np.array([row, row[::-1]]))
    assert tied[0] == tied[1] == pytest.approx(whole.round().mean() / 10)
    assert 0.1 + 0.7 != 0.3 + 0.5
    assert len(set(mean_rating(np.array([[0.1, 0.7], [0.3, 0.5]])))) == 1


def test_what_cannot_be_said_has_a_reason():
    alone = summarise_raters(np.array([[1.0], [2.0], [3.0]]), ["ann"])
    assert alone.pairwise.pearson_mean.reason == "fewer than 2 raters"
    assert alone.icc_mean.reason == "fewer than 2 raters"
    assert alone.alpha_interval.reason == "no item with 2 ratings"
    assert (alone.random_looking, alone.raters[0].reason) == ((), "only one rater")
    apart = summarise_raters(np.array([[1.0, np.nan], [np.nan, 2.0]]), ["ann", "bob"])
    assert apart.cohen_kappa.reason == "no items in common"
    assert apart.n_missing == 2
    assert apart.random_looking == ()
    assert apart.raters[0].reason == "too few common items: 0 of at least 10"
    same = summarise_raters(np.full((4, 3), 2.0), "abc")
    assert same.leave_one_out.pearson_mean.reason == "constant"
    assert same.fleiss_kappa.reason == same.alpha_nominal.reason == "only one category in use"
    assert same.human_variance.value == 0


def test_few_items_neither_accuse_nor_acquit_a_rater():
    table = np.array([[1, 1, 2], [2, 2, 1], [3, 3, 3], [4, 4, 2.0]])
    few = leave_one_out(table, "abc")[2]
    assert few.pearson.value == pytest.approx(0.3162, abs=1e-4)
    assert (few.looks_random, few.reason) == (False, "too few common items: 4 of at least 10")
    more = leave_one_out(np.tile(table, (3, 1)), "abc")[2]
    assert more.pearson.value == pytest.approx(0.3162, abs=1e-4)
    assert more.looks_random
    assert "may be chance" in more.reason


def test_a_rater_who_always_says_the_same_is_told_from_raters_who_all_do():
    varied = np.arange(12.0)
    table = np.column_stack([varied, varied, np.full(12, 3.0)])
    constant = leave_one_out(table, "abc")[2]
    assert (constant.looks_random, constant.reason) == (True, "always gives the same rating")
    pair = leave_one_out(table[:, 1:], "bc")
    assert (pair[0].looks_random, pair[0].reason) == (False, "the others always say the same")


def test_turns_and_dialogues_have_raters_of_their_own():
    def sample(name, response, values):
        return Sample(id=name, response=response, ratings={"Overall": Rating(values)})

    samples = [
        *(sample(f"t{i}", "x", (i, i + i % 2)) for i in range(5)),
        *(sample(f"d{i}", None, (i, -i, i)) for i in range(4)),
    ]
    turns, dialogues = rater_reports(samples)
    assert (turns.level, turns.report.n_items, turns.report.n_raters) == ("turn", 5, 2)
    assert (dialogues.level, dialogues.report.n_items) == ("dialogue", 4)
    assert dialogues.to_record()["level"] == "dialogue"
    with pytest.raises(UsageError, match="Did you mean 'Overall'"):
        rater_reports(samples, ["Overal"])


def test_a_report_is_ready_for_json():
    report = summarise_raters(SHROUT_FLEISS, ["a", "b", "c", "d"])
    record = json.loads(json.dumps(report.to_record()))
    assert record["icc_mean"] == {
        "value": report.icc_mean.value,
        "n": 6,
        "n_missing": 0,
        "reason": "",
    }
    assert [rater["name"] for rater in record["raters"]] == ["a", "b", "c", "d"]


def test_names_must_fit_the_table():
    with pytest.raises(ValueError, match="1 names for a table"):
        summarise_raters(SHROUT_FLEISS, ["a"])
