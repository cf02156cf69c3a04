"""A metric over runs, and an alarm that looking often does not set off."""

import json

import numpy as np
import pytest
from made_up import ONLY_TOLD, NumberTold, Size, Wrong, edit_manifest

import dialeval
from dialeval.agreement.trend import _Mean, compare_with_earlier
from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")


@pytest.fixture
def day(tmp_path):
    def score(name, values, dialogues=None, metrics=ONLY_TOLD):
        samples = [
            Sample(
                id=f"{name}-{i}",
                context=(Turn("hi"),),
                response=str(value),
                dialogue=str(dialogues[i]) if dialogues else "",
            )
            for i, value in enumerate(values)
        ]
        return dialeval.score(samples, metrics, out=tmp_path / "live" / name)

    return score


def values(seed, mean, size=40):
    """Scores with a standard deviation of about 1; the mean differs a little by the seed."""
    own = np.random.default_rng(seed).normal(size=size)
    return (own - own.mean() + mean + 0.2 * (seed % 3 - 1)).round(4)


def test_a_drop_sets_off_an_alarm_and_days_that_are_alike_do_not(day, tmp_path):
    for number in range(6):
        day(f"day{number}", values(number, 4.0))
    assert not dialeval.trend(tmp_path / "live").alarm
    day("day6", values(6, 2.5))
    found = dialeval.trend(tmp_path / "live")
    assert found.alarm
    assert [one.alarm for one in found.points] == [False] * 6 + [True]
    assert found.sentence().startswith("ALARM: day6 is worse on told: ")
    day("day7", values(7, 2.5))  # the alarm goes on: day6 is not among those before
    assert [one.alarm for one in dialeval.trend(tmp_path / "live").points][-2:] == [True, True]
    day("day8", values(8, 4.0))
    assert not dialeval.trend(tmp_path / "live").alarm


def test_means_and_intervals_are_scipys(day):
    first, second = values(1, 4), values(2, 4)
    found = dialeval.trend(day("a", first), day("b", second))
    for point, own in zip(found.points, (first, second), strict=True):
        low, high = stats.t.interval(0.95, len(own) - 1, own.mean(), stats.sem(own))
        assert (point.mean, point.low, point.high) == pytest.approx((own.mean(), low, high))


def test_p_is_that_of_a_further_observation_of_a_normal_distribution():
    means = [4.0, 4.4, 3.8, 4.1]
    before = [_Mean(m, 0.01, 50) for m in means]
    t = (3.5 - np.mean(means)) / (np.std(means, ddof=1) * np.sqrt(1 + 1 / 4))
    middle, p = compare_with_earlier(_Mean(3.5, 0.01, 50), before)
    assert (middle, p) == pytest.approx((np.mean(means), stats.t.cdf(t, 3)))


def test_means_that_are_alike_by_luck_are_not_trusted_beyond_their_standard_errors():
    before = [_Mean(4.0, 0.04, 50), _Mean(4.01, 0.04, 50), _Mean(3.99, 0.04, 50)]
    t = -0.3 / (0.2 * np.sqrt(1 + 1 / 3))
    assert compare_with_earlier(_Mean(3.7, 0.04, 50), before)[1] == pytest.approx(stats.t.cdf(t, 2))


def test_levels_of_all_looks_add_up_to_alpha(day):
    runs = [day(f"d{number}", values(number, 4, size=5)) for number in range(9)]
    points = dialeval.trend(*runs, alpha=0.1).points
    assert [one.reason for one in points[:3]] == ["fewer than 3 runs before it"] * 3
    levels = [one.level for one in points[3:]]
    assert levels == pytest.approx([0.1 / (j * (j + 1)) for j in range(1, 7)])
    assert sum(levels) == pytest.approx(0.1 * (1 - 1 / 7))  # 1/(j(j+1)) = 1/j - 1/(j+1)


def test_days_that_differ_by_chance_need_a_larger_drop():
    last = _Mean(3.0, 0.01, 50)
    alike = [_Mean(4.0 + 0.01 * (n % 2), 0.01, 50) for n in range(10)]
    unlike = [_Mean(4.0 + 0.8 * (-1) ** n, 0.01, 50) for n in range(10)]
    assert compare_with_earlier(last, alike)[1] < 1e-4
    assert compare_with_earlier(last, unlike)[1] > 0.05


def test_a_day_with_few_dialogues_needs_a_larger_drop():
    before = [_Mean(4.0 + 0.1 * (n % 2), 0.01, 50) for n in range(10)]
    assert compare_with_earlier(_Mean(3.0, 0.01, 50), before)[1] < 0.001
    assert compare_with_earlier(_Mean(3.0, 1.0, 2), before)[1] > 0.1


@pytest.mark.parametrize("between", [0.0, 0.3])
def test_false_alarms_in_a_month_of_looks_are_as_rare_as_alpha_says(between):
    rng = np.random.default_rng(0)
    series, alpha, alarms, uncorrected = 150, 0.05, 0, 0
    for _ in range(series):
        means = rng.normal(0, between, size=30) + rng.normal(0, 1 / np.sqrt(30), size=30)
        days = [_Mean(float(m), 1 / 30, 30) for m in means]
        p = [compare_with_earlier(days[k], days[:k])[1] for k in range(3, 30)]
        alarms += any(one <= alpha / (j * (j + 1)) for j, one in enumerate(p, 1))
        uncorrected += min(p) <= alpha
    assert alarms <= stats.binom.ppf(0.999, series, alpha)
    assert uncorrected > series / 2  # what looking often would do


def test_turns_of_one_dialogue_count_once(day):
    turns = [1.0, 3.0, 5.0, 7.0]
    found = dialeval.trend(day("a", turns, "xxyy"), day("b", turns, "xxyy"))
    assert (found.points[0].n, found.points[0].mean) == (2, 4.0)
    low, high = stats.t.interval(0.95, 1, 4.0, stats.sem([2.0, 6.0]))
    assert (found.points[0].low, found.points[0].high) == pytest.approx((low, high))


def test_less_of_a_metric_whose_direction_is_lower_is_no_alarm(day):
    runs = [day(f"d{n}", values(n, 4), metrics=(Wrong(),)) for n in range(4)]
    assert not dialeval.trend(*runs, day("less", values(9, 2), metrics=(Wrong(),))).alarm
    assert dialeval.trend(*runs, day("more", values(9, 6), metrics=(Wrong(),))).alarm


def test_a_run_that_was_measured_in_another_way_has_a_reason_and_no_number(day, tmp_path):
    runs = [day(f"d{n}", values(n, 4)) for n in range(5)]
    edit_manifest(runs[1].directory, "told|v1|", "told|v1|model:other@1|")
    found = dialeval.trend(tmp_path / "live")
    assert found.points[1].mean is None
    assert found.points[1].reason == "measured with another model than the last run"
    assert found.points[3].reason == "fewer than 3 runs before it"  # two of them count
    assert found.points[4].level == pytest.approx(0.025)


def test_the_first_day_has_no_test_and_no_alarm(day):
    found = dialeval.trend(day("first", values(1, 4)))
    assert not found.alarm
    assert found.sentence() == "NO TEST of first: fewer than 3 runs before it."


def test_it_can_be_kept_and_drawn(day, tmp_path):
    runs = [day(name, values(n, 1 if name == "e" else 4)) for n, name in enumerate("abcde")]
    found = dialeval.trend(*runs)
    record = json.loads(json.dumps(found.to_record()))
    assert record["alarm"] is True
    assert [one["name"] for one in record["points"]] == list("abcde")
    from dialeval.pictures.drawing import to_svg

    picture = to_svg(found.plot())
    assert "e: 1 (40 dialogues)" in picture
    assert "ALARM" in picture


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "name runs"),
        (("a", "b"), {"metric": "tolt"}, "Did you mean 'told'"),
        (("a", "b"), {"metric": "size"}, "neither more nor less"),
        (("a", "b"), {}, "Name one with --metric: told, size"),
        (("a", "b"), {"metric": "told", "system": "bot"}, "no system 'bot'"),
        (("a", "b"), {"metric": "told", "alpha": 0}, "between 0 and 1"),
    ],
)
def test_what_is_no_trend_is_refused(day, names, options, message):
    runs = [day(name, values(1, 4, size=3), metrics=(NumberTold(), Size())) for name in names]
    with pytest.raises(UsageError, match=message):
        dialeval.trend(*runs, **options)
