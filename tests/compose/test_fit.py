"""Fitting weights on runs, and leaving data sets out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compose.made_up_runs import METRICS, rated_samples, run_on, variety, words

from dialeval.agreement.coefficient import Coefficient
from dialeval.compose.evidence import (
    Evidence,
    MetricColumns,
    find_families,
    term_column,
    text_digests,
)
from dialeval.compose.evidence import gather as gather_metrics
from dialeval.compose.fitting import (
    COMMON,
    DSTC10_QUALITIES,
    SCALES,
    FitOptions,
    divided,
    find_quality_map,
    fit,
    fit_warnings,
)
from dialeval.compose.leave_one_out import (
    AVERAGE,
    CRS,
    LeaveOneOut,
    Trial,
    choose_scale,
    fit_best,
    leave_each_out,
    weights_on,
)
from dialeval.compose.tables import verdict
from dialeval.errors import InputError, UsageError
from dialeval.metrics.composition import MEAN_OF_ALL, Composition, Term, save_composition
from dialeval.sample import Rating, Sample, Turn
from dialeval.scores import Calibration


@pytest.fixture
def runs(tmp_path):
    """Three data sets: people like long answers, varied ones, or (Overall) both."""
    made = {
        "one": {"Overall": words, "variety": variety},
        "two": {"overall": words},
        "three": {"variety": variety, "Overall": lambda text: words(text) + variety(text)},
    }
    return {
        name: run_on(rated_samples(name, rules, noise=0.1), tmp_path / name)
        for name, rules in made.items()
    }


def gather(runs, metrics=()):
    """With `length` among what every run has, which is left out unless somebody names it."""
    opened = list(runs.values() if isinstance(runs, dict) else runs)
    common = [one for one in opened[0].metrics if all(one in run.metrics for run in opened)]
    return gather_metrics(runs, metrics or common)


def test_a_metric_without_a_direction_is_composed_only_if_it_is_named(runs):
    """Twenty ratings that go with length would give it the largest weight."""
    gathered = gather_metrics(runs)
    assert [one.spec for one in gathered.ingredients] == ["distinct:n=1", "bleu:n=1"]
    assert gathered.others == ("length",)
    assert any("length: neither more nor less of it is better" in one for one in gathered.left_out)
    named = fit(gather_metrics(runs, ["length", "bleu:n=1"]))
    [warning] = [line for line in fit_warnings(named) if line.startswith("length: ")]
    assert "may mean nothing on other data" in warning


def test_runs_of_nothing_but_length_are_refused(tmp_path):
    run = run_on(rated_samples("a", {"overall": words}), tmp_path / "a", ["length"])
    with pytest.raises(UsageError, match=r"only length\. .* -m length"):
        gather_metrics([run])


def test_few_ratings_are_said_to_be_few(tmp_path):
    """By a table of critical values, 20 pairs need |r| > .444 at the level of 5 %."""
    few = rated_samples("few", {"overall": words, "variety": variety}, count=20)
    many = rated_samples("many", {"overall": words}, count=120)
    both = {name: run_on(own, tmp_path / name) for name, own in (("few", few), ("many", many))}
    lines = [line for line in fit_warnings(fit(gather(both))) if "are few" in line]
    assert lines == [
        "few, overall, variety: 20 rated samples are few. A metric that knows nothing gets a"
        " correlation of up to 0.44 by chance (95 %)"
    ]


def test_a_metric_that_scored_few_of_the_rated_samples_is_named(tmp_path):
    """Five references among 120 rated answers: the critical value of 5 pairs is .878."""
    given = rated_samples("part", {"overall": words}, count=120)
    part = [one if n < 5 else replace(one, references=()) for n, one in enumerate(given)]
    run = run_on(part, tmp_path / "part", ["distinct:n=1", "bleu:n=1"])
    composition = fit(gather({"part": run}))
    [set_of_one] = composition.provenance["sets"]
    assert set_of_one["fitted"][0]["pairs"] == [120, 5]
    [line] = [line for line in fit_warnings(composition) if "few" in line]
    assert line.startswith("part, overall: bleu:n=1 has a score on 5 of 120 rated samples")
    assert "up to 0.88" in line


def test_what_people_like_gets_the_weight(runs):
    composition = fit(gather(runs))
    assert composition.specs == list(METRICS)
    weights = {
        quality: dict(zip(METRICS, w, strict=True)) for quality, w in composition.weights.items()
    }
    assert max(weights["overall"], key=weights["overall"].get) == "length"
    assert max(weights["variety"], key=weights["variety"].get) == "distinct:n=1"
    assert all(sum(w.values()) == pytest.approx(1) for w in weights.values())


def test_the_weights_are_those_of_scipy_and_the_formula(runs):
    stats = pytest.importorskip("scipy.stats")
    composition = fit(gather({"two": runs["two"]}))
    samples = list(runs["two"].samples())
    ratings = [sample.ratings["overall"].values[0] for sample in samples]
    found = []
    for term in composition.terms:
        raw = np.array(runs["two"].scores(term.spec))
        if term.scales:  # quartiles, clipped: USL-H
            low, high = np.quantile(raw, [0.25, 0.75])
            raw = (np.clip(raw, low, high) - low) / (high - low)
        found.append(max(0.0, stats.spearmanr(raw, ratings).statistic))
    squares = np.array(found) ** 2
    assert composition.weights["overall"] == pytest.approx(squares / squares.sum())


def test_names_are_literal_unless_a_map_joins_them(runs):
    assert set(fit(gather(runs)).weights) == {"Overall", "overall", "variety"}
    joined = fit(gather(runs), FitOptions(names=COMMON))
    assert set(joined.weights) == {"overall", "variety"}
    assert joined.weights_for("Overall").quality == "overall"
    separate = fit(gather(runs)).weights
    # Eq. 2: one and three have Overall, two has overall; all count the same.
    mean = [(2 * a + b) / 3 for a, b in zip(separate["Overall"], separate["overall"], strict=True)]
    assert joined.weights["overall"] == pytest.approx(mean)


def test_a_sample_is_drawn_once_and_depends_on_nothing_but_seed_and_data(runs):
    few = FitOptions(sample=20)
    alone = fit(gather({"two": runs["two"]}), few).provenance["sets"][0]
    together = fit(gather(runs), few).provenance["sets"]
    assert alone["fitted"][0]["n"] == 20
    again = fit(gather({"two": runs["two"]}), few).provenance["sets"][0]
    assert alone == again
    [same] = [one for one in together if one["name"] == "two"]
    assert same["fitted"][0]["n"] == 20
    other = fit(gather({"two": runs["two"]}), FitOptions(sample=20, seed=1)).provenance["sets"][0]
    assert other["fitted"] != alone["fitted"]


def test_a_constant_metric_is_named_and_gets_no_weight(tmp_path):
    samples = [
        replace(sample, response=f"a b {'c' * (n + 1)}", ratings={"Overall": Rating((float(n),))})
        for n, sample in enumerate(rated_samples("same", {}))
    ]
    run = run_on(samples, tmp_path / "same", ["length", "length:unit=characters"])
    composition = fit(gather({"same": run}))
    assert composition.weights["Overall"] == (0, 1)
    assert any(
        "length has no correlation (constant) and counts as 0" in line
        for line in fit_warnings(composition)
    )


def test_where_nothing_agrees_all_weights_are_equal_and_it_is_said(tmp_path):
    samples = rated_samples("worst", {"Overall": lambda text: -words(text)})
    run = run_on(samples, tmp_path / "worst", ["length", "length:unit=characters"])
    composition = fit(gather({"worst": run}))
    assert composition.weights["Overall"] == (0.5, 0.5)
    assert any("nothing correlates positively" in line for line in fit_warnings(composition))


def test_a_set_given_twice_counts_once(runs, tmp_path):
    shouted = [
        replace(s, id=f"copy-{s.id}", context=tuple(Turn(t.text.upper() + " ?") for t in s.context))
        for s in runs["one"].samples()
    ]
    twice = gather({**runs, "copy": run_on(shouted, tmp_path / "copy")})
    assert "one and copy hold the same turns (60)" in twice.families.notes[0]
    assert twice.families.same == twice.families.relatives == ((0, 3), (1,), (2,))
    options = FitOptions(names=COMMON)
    weights = fit(twice, options).weights["overall"]
    # The scales are pooled over one more set, so not to the last digit.
    assert weights == pytest.approx(fit(gather(runs), options).weights["overall"], abs=0.01)
    assert {trial.dataset for trial in leave_each_out(twice).trials} == {"one", "two", "three"}


def test_a_level_that_no_metric_judges_is_left_out_and_named(tmp_path):
    rated = {"Overall": Rating((1.0,))}
    whole = [Sample(f"d{n}", (Turn(f"hi {n}"), Turn("ho")), ratings=rated) for n in range(5)]
    turns = rated_samples("turns", {"Overall": words})
    gathered = gather({"both": run_on([*turns, *whole], tmp_path / "both", ["bleu", "rouge"])})
    assert [one.name for one in gathered.sets] == ["both, turns"]
    notes = fit_warnings(fit(gathered))
    assert "both, dialogues: none of the metrics has a value there: left out" in notes


def evidence(name, level, samples, digest=""):
    texts = frozenset(digest for sample in samples for digest in text_digests(sample))
    return Evidence(name, level, digest or name, len(samples), {}, {}, texts)


def test_a_dialogue_and_its_turns_are_left_out_together_but_count_apart():
    talk = [Turn(f"Turn {n} of a talk!") for n in range(6)]
    turns = [Sample(f"t{n}", tuple(talk[:n]), talk[n].text) for n in range(1, 6)]
    whole = [Sample("d", tuple(talk))]
    other = [Sample("o", (Turn("Hi."),), "Something else")]
    found = find_families(
        [
            evidence("turns", "turn", turns),
            evidence("whole", "dialogue", whole),
            evidence("other", "turn", other),
        ]
    )
    assert found.relatives == ((0, 1), (2,))
    assert found.same == ((0,), (1,), (2,))
    assert found.notes == ("turns and whole share 5 texts: they are left out together",)


def test_a_few_shared_answers_make_relatives_not_the_same_set():
    answers = [Sample(str(n), (Turn(f"q{n}"),), f"a{n}") for n in range(20)]
    found = find_families(
        [evidence("a", "turn", answers[:12]), evidence("b", "turn", answers[10:])]
    )
    assert found.relatives == ((0, 1),)
    assert found.same == ((0,), (1,))


def test_with_one_data_set_there_is_nothing_to_leave_out(runs):
    with pytest.raises(UsageError, match="there must be another that shares no conversation"):
        leave_each_out(gather({"one": runs["one"]}))


def test_the_left_out_set_is_never_seen(runs, tmp_path):
    """Poisoned ratings and scores of a set change its own rows only where people are asked."""
    honest = leave_each_out(gather(runs))
    liars = [
        replace(s, ratings={q: Rating((-100 * r.values[0],)) for q, r in s.ratings.items()})
        for s in runs["two"].samples()
    ]
    poisoned = leave_each_out(gather({**runs, "two": run_on(liars, tmp_path / "liars")}))
    for before, after in zip(honest.trials, poisoned.trials, strict=True):
        if before.dataset == "two":
            # What is composed is the same; people think the opposite.
            assert after.weights == before.weights
            for name, found in before.found.items():
                assert after.found[name].value == pytest.approx(-found.value)
        else:
            assert after.found[AVERAGE] == before.found[AVERAGE]


def test_leaving_out_correlates_the_whole_set_and_says_whose_weights(runs):
    found = leave_each_out(gather(runs), FitOptions(sample=10))
    by_set = {(t.dataset, t.quality): t for t in found.trials}
    assert all(one.n == 60 for t in found.trials for one in t.found.values())
    assert by_set["one", "variety"].weights == "variety"
    assert by_set["two", "overall"].weights == "Overall"  # no other set has overall
    assert found.methods[:2] == [CRS, AVERAGE]
    assert set(METRICS) <= set(found.methods)


def test_a_quality_that_no_other_set_has_uses_the_mean_of_all(tmp_path):
    one = run_on(rated_samples("a", {"alpha": words}), tmp_path / "a")
    two = run_on(rated_samples("b", {"beta": variety}), tmp_path / "b")
    found = leave_each_out(gather({"a": one, "b": two}))
    assert {trial.weights for trial in found.trials} == {MEAN_OF_ALL}


def test_other_metrics_of_the_runs_are_compared_with(runs):
    gathered = gather(runs, ["length", "distinct:n=1"])
    assert gathered.others == ("bleu:n=1",)
    standings = {one.name: one for one in leave_each_out(gathered).summary()}
    assert set(standings) == {CRS, "crs, one score", AVERAGE, *METRICS}
    assert standings[CRS].all.by_set.value > standings["bleu:n=1"].all.by_set.value


def test_rivals_are_held_against_the_composition_where_both_are_defined():
    """On set b the composition has no correlation: there the rival wins against nobody."""
    undefined = Coefficient(None, 0, 1, "no scores")
    found = LeaveOneOut(
        (
            Trial("a", "q", "q", {CRS: Coefficient(0.3, 9), "m": Coefficient(0.2, 9)}),
            Trial("b", "q", "q", {CRS: undefined, "m": Coefficient(0.8, 9)}),
        )
    )
    standing = {one.name: one for one in found.summary()}["m"]
    assert standing.all.by_set.value == pytest.approx(0.5)
    assert (standing.shared.by_set.value, standing.crs.by_set.value) == (0.2, 0.3)
    assert verdict(found).count("agrees better with people than all 1 others") == 2


def test_the_verdict_names_both_means():
    """Qualities of a large set count more in one of them."""
    large = [(f"q{i}", 0.1, 0.2) for i in range(3)]
    found = LeaveOneOut(
        tuple(
            Trial(name, quality, quality, {CRS: Coefficient(crs, 9), "m": Coefficient(m, 9)})
            for name, quality, crs, m in [("a", "q0", 0.4, 0.2), *(("b", *one) for one in large)]
        )
    )
    assert verdict(found) == (
        "Mean by set: the composition agrees better with people than all 1 others. Mean by"
        " quality: the composition does not agree better with people than m (1 of 1 others)."
    )


def test_a_metric_that_a_run_lacks_or_that_was_made_otherwise_is_refused(runs, tmp_path):
    with pytest.raises(UsageError, match="has no metric 'chrf'"):
        gather(runs, ["chrf"])
    with pytest.raises(UsageError, match="metric given twice: length"):
        gather(runs, ["length", "length"])
    with pytest.raises(UsageError, match="no run to fit on"):
        gather_metrics([])
    with pytest.raises(UsageError, match="is given twice"):
        gather([runs["one"], runs["one"]])
    unrated = [replace(s, ratings={}) for s in runs["one"].samples()]
    with pytest.raises(UsageError, match="no sample has ratings"):
        gather({"x": run_on(unrated, tmp_path / "x")})


def test_the_37_names_are_those_of_the_track(golden):
    expected = golden["dstc10_quality_names"]
    assert list(DSTC10_QUALITIES) == expected["case_sensitive_distinct"]
    assert len(set(DSTC10_QUALITIES)) == expected["n"]


def test_a_map_of_ones_own(tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"Overall": "all", "overall": "all"}')
    assert find_quality_map(str(path))("Overall") == "all"
    assert find_quality_map(str(path))("other") == "other"
    path.write_text('{"Overall": 3}')
    with pytest.raises(InputError, match=r"map\.json: Overall: must be a text, not 3"):
        find_quality_map(str(path))
    path.write_text("[1]")
    with pytest.raises(InputError, match="name in the data"):
        find_quality_map(str(path))
    path.write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        find_quality_map(str(path))
    with pytest.raises(UsageError, match="literal, common, or a JSON file"):
        find_quality_map("comon")


def test_a_prior_draws_every_quality_towards_all_of_them(runs):
    composition = fit(gather(runs))
    plain = composition.weights
    of_sets = [
        np.mean([fitted["weights"] for fitted in one["fitted"]], axis=0)
        for one in composition.provenance["sets"]
    ]
    everything = np.mean(of_sets, axis=0)
    drawn = fit(gather(runs), FitOptions(prior=4.0)).weights
    for quality, sets in (("Overall", 2), ("overall", 1), ("variety", 2)):
        expected = (sets * np.array(plain[quality]) + 4 * everything) / (sets + 4)
        np.testing.assert_allclose(drawn[quality], expected)
    far = fit(gather(runs), FitOptions(prior=1e9)).weights
    for weights in far.values():
        np.testing.assert_allclose(weights, everything, atol=1e-6)


def test_even_weights_are_divided_by_the_spread_of_their_terms(runs):
    gathered = gather(runs)
    plain, even = (fit(gathered, FitOptions(even=e)).weights["overall"] for e in (False, True))
    terms = fit(gathered).terms
    spreads = [np.std(np.concatenate([one.scaled(t) for one in gathered.sets])) for t in terms]
    expected = np.array(plain) / np.array(spreads)
    assert even == pytest.approx(expected / expected.sum())
    assert sum(even) == pytest.approx(1)


def test_a_term_that_never_changes_has_no_even_weight():
    assert divided((0.5, 0.25, 0.25), (0.1, 0.0, 0.2)) == pytest.approx((0.8, 0.0, 0.2))
    assert divided((0.5, 0.5), (0.0, 0.0)) == (0.5, 0.5)


def test_the_sample_is_drawn_from_what_was_rated(tmp_path):
    samples = rated_samples("many", {"overall": words}, count=400, noise=0.1)
    rated = {one.id for one in samples[::8]}
    thinned = [one if one.id in rated else replace(one, ratings={}) for one in samples]
    run = run_on(thinned, tmp_path / "run", ("length", "distinct:n=1"))
    composition = fit(gather([run]), FitOptions(sample=40))
    (found,) = composition.provenance["sets"]
    assert (found["samples"], found["fitted"][0]["n"]) == (50, 40)
    everything = fit(gather([run]), FitOptions(sample=300))
    assert everything.provenance["sets"][0]["fitted"][0]["n"] == 50


def test_a_composition_is_no_rival_on_the_data_that_it_may_have_seen(runs, tmp_path):
    save_composition(fit(gather(runs)), tmp_path / "w.json")
    label = f"mme-crs:weights={tmp_path / 'w.json'}"
    again = {
        name: run_on(list(run.samples()), tmp_path / f"again-{name}", (*METRICS, label))
        for name, run in runs.items()
    }
    gathered = gather(again, METRICS[:2])
    assert gathered.others == METRICS[2:]


def test_what_is_tried_as_one_score_is_what_the_metric_takes_by_itself():
    terms = (Term("length", "length|v1"), Term("distinct", "distinct|v1"))
    composition = Composition(terms, {"overall": (1.0, 0.0), "Overall": (0.0, 1.0)})
    assert weights_on(composition, "unheard of") == composition.weights_for("overall")


def test_a_metric_that_a_run_lacks_is_named(runs, tmp_path):
    short = run_on(list(runs["two"].samples()), tmp_path / "short", METRICS[:2])
    gathered = gather_metrics({"one": runs["one"], "short": short})
    assert [one.spec for one in gathered.ingredients] == [METRICS[1]]
    assert gathered.left_out[0] == (
        f"{METRICS[2]}: not in short, so that it cannot be composed: left out"
    )


def test_the_scale_of_a_term_is_an_option_and_stands_in_the_composition(runs):
    """length of the three sets: quartiles, 1 % and 99 %, least and most, by numpy."""
    gathered = gather({"two": runs["two"]}, ["length"])
    values = [words(sample.response) for sample in runs["two"].samples()]
    ends = {"quartile": (25, 75), "percentile": (1, 99), "minmax": (0, 100)}
    for scale, percents in ends.items():
        composition = fit(gathered, FitOptions(scale=scale))
        (found,) = composition.terms[0].scales.values()
        assert (found.kind, composition.provenance["scale"]) == (scale, scale)
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(values, percents)))


def test_the_scale_is_chosen_on_the_kept_sets_and_never_on_the_left_out_one(runs, tmp_path):
    """What people said about the left-out set is turned round: its trial is fitted the same."""
    gathered = gather(runs, ["length"])
    before = leave_each_out(gathered, FitOptions(), scales=SCALES)
    turned = [
        replace(one, ratings={q: -column for q, column in one.ratings.items()})
        if one.name == "three"
        else one
        for one in gathered.sets
    ]
    after = leave_each_out(replace(gathered, sets=tuple(turned)), FitOptions(), scales=SCALES)
    scales = {trial.dataset: trial.scale for trial in before.trials}
    assert {t.dataset: t.scale for t in after.trials}["three"] == scales["three"]
    rho = [t.found[CRS].value for t in before.trials if t.dataset == "three"]
    assert rho == pytest.approx([-t.found[CRS].value for t in after.trials if t.dataset == "three"])


def test_the_best_scale_is_the_one_that_tells_more_answers_apart(runs):
    """People rate by the number of words: clipping at quartiles ties half of the answers."""
    composition = fit_best(gather(runs, ["length"]), FitOptions())
    tried = composition.provenance["scales tried"]
    assert tried["minmax"] > tried["quartile"]
    assert composition.provenance["scale"] != "quartile"
    assert choose_scale(gather({"two": runs["two"]}), FitOptions()).scale == "quartile"


@pytest.mark.parametrize("kind", ["floor", "quartile", "percentile", "minmax", "unit"])
def test_a_column_is_scaled_as_its_values_are_one_by_one(kind):
    values = np.array([-3.0, -1.0, 0.2, 0.2, 4.0, 9.0])
    scale = Calibration.fit(kind, values)
    assert scale.apply_all(values).tolist() == [scale.apply(v) for v in values.tolist()]
    flat = Calibration(kind, 2.0, 2.0, 1)
    assert flat.apply_all(values).tolist() == [0.0] * 6
    for direction in ("higher", "lower"):
        term = Term("mme-specificity", "", direction, {"nll": scale})
        columns = MetricColumns(np.array([*values, np.nan]), {"nll": np.array([*values, np.nan])})
        one_by_one = [term.scaled(0.0, {"nll": v}) for v in values.tolist()]
        assert term_column(columns, term)[:-1].tolist() == one_by_one
        assert np.isnan(term_column(columns, term)[-1])
