"""Two runs side by side: made-up scores in real run directories."""

import json

import made_up
import numpy as np
import pytest
from made_up import ONLY_TOLD, NumberTold, Size, Wrong, edit_manifest

import dialeval
from dialeval.agreement.findings import format_p, verdict
from dialeval.agreement.joining import differing_fields
from dialeval.errors import UsageError
from dialeval.sample import Sample, Turn
from dialeval.scores import Signature

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")


def samples(values, prefix="s", system="bot", item=True, context="question"):
    return [
        Sample(
            id=f"{prefix}{i}",
            context=(Turn(f"{context} {i}"),),
            response=str(value),
            system=system,
            item=str(i) if item else "",
        )
        for i, value in enumerate(values)
    ]


@pytest.fixture
def score(tmp_path):
    def run(name, *groups, metrics=ONLY_TOLD):
        return dialeval.score(
            [sample for group in groups for sample in group],
            metrics=list(metrics),
            out=tmp_path / name,
        )

    return run


OLD = np.random.default_rng(3).normal(size=40).round(3)
NEW = (OLD + 0.5 + 0.6 * np.random.default_rng(4).normal(size=40)).round(3)


def test_a_better_run_is_called_better_with_scipys_p_and_interval(score):
    found = dialeval.compare(score("old", samples(OLD)), score("new", samples(NEW)))
    (row,) = found.rows
    assert (row.n, row.outcome, found.joined, found.joined_by) == (40, "better", 40, "id")
    assert row.difference == pytest.approx(np.mean(NEW - OLD))
    assert (row.mean_first, row.mean_second) == pytest.approx((OLD.mean(), NEW.mean()))
    assert row.effect == pytest.approx((NEW - OLD).mean() / np.sqrt((OLD.var() + NEW.var()) / 2))
    oracle = stats.permutation_test(
        (NEW, OLD),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        rng=np.random.default_rng(1),
    )
    assert row.p == pytest.approx(oracle.pvalue, abs=0.002)
    low, high = stats.ttest_rel(NEW, OLD).confidence_interval()
    assert (row.low, row.high) == pytest.approx((low, high), abs=0.03)
    (line,) = verdict(found)
    assert line.startswith(f"new is better than old on told: {row.difference:+.3g} [")


def test_turning_the_runs_round_turns_the_verdict(score):
    old, new = score("old", samples(OLD)), score("new", samples(NEW))
    one, other = dialeval.compare(old, new).rows[0], dialeval.compare(new, old).rows[0]
    assert other.outcome == "worse"
    assert other.difference == pytest.approx(-one.difference)
    (line,) = verdict(dialeval.compare(new, old))
    assert line.startswith(f"new is better than old on told: {one.difference:+.3g}")


def test_the_direction_of_a_metric_decides_who_is_better(score):
    metrics = [NumberTold(), Wrong(), Size()]
    old, new = (
        score(name, samples(values), metrics=metrics) for name, values in (("a", OLD), ("b", NEW))
    )
    found = dialeval.compare(old, new)
    assert {row.metric: row.outcome for row in found.rows} == {
        "told": "better",
        "wrong": "worse",
        "size": "differs",
    }
    lines = verdict(found)
    assert any(line.startswith("a is better than b on wrong: -") for line in lines)
    assert any(line.startswith("b differs from a on size: +") for line in lines)
    orders = {one.metric: [side.name for side in one.sides] for one in found.standings}
    assert orders == {"told": ["b", "a"], "wrong": ["a", "b"], "size": ["b", "a"]}


def test_holm_is_over_all_that_is_tested(score):
    metrics = [NumberTold(), Wrong()]
    found = dialeval.compare(
        score("a", samples(OLD), metrics=metrics), score("b", samples(NEW), metrics=metrics)
    )
    assert [row.p_holm for row in found.rows] == pytest.approx([2 * row.p for row in found.rows])


def test_equal_runs_are_seldom_called_different(score):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(2, 30)).round(3)
    found = dialeval.compare(score("a", samples(values[0])), score("b", samples(values[1])))
    assert found.rows[0].outcome == "no difference shown"
    assert verdict(found) == ["no difference shown between a and b on told"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, "id"), ({"prefix": "t"}, "item"), ({"prefix": "t", "item": False}, "context")],
)
def test_samples_are_joined_by_the_first_key_that_they_share(score, changes, expected):
    found = dialeval.compare(score("a", samples(OLD)), score("b", samples(NEW, **changes)))
    assert (found.joined_by, found.joined) == (expected, 40)
    assert found.rows[0].difference == pytest.approx(np.mean(NEW - OLD))


def test_what_nobody_else_answered_is_left_out_and_counted(score):
    found = dialeval.compare(score("a", samples(OLD)), score("b", samples(NEW[:25])))
    assert [(s.name, s.samples, s.left_out) for s in found.sides] == [("a", 40, 15), ("b", 25, 0)]
    assert found.rows[0].mean_first == pytest.approx(OLD[:25].mean())


def test_a_missing_score_takes_its_pair_out(score):
    holes = ["none", *NEW[1:]]
    (row,) = dialeval.compare(score("a", samples(OLD)), score("b", samples(holes))).rows
    assert (row.n, row.n_missing) == (39, 1)


def test_several_answers_to_an_item_count_as_one(score):
    twice = [*samples(NEW, prefix="x"), *samples(NEW + 1, prefix="y")]
    found = dialeval.compare(score("a", samples(OLD)), score("b", twice))
    assert found.rows[0].difference == pytest.approx(np.mean(NEW + 0.5 - OLD))
    assert any("averaged" in warning for warning in found.warnings)


def test_answers_under_the_same_id_to_other_questions_are_pointed_out(score):
    found = dialeval.compare(score("a", samples(OLD)), score("b", samples(NEW, context="other")))
    assert any("do not have the same context" in warning for warning in found.warnings)


def test_nothing_in_common_is_an_error(score):
    stranger = samples(NEW, prefix="t", item=False, context="other")
    with pytest.raises(UsageError, match="no sample of a, b has the same id, item or context"):
        dialeval.compare(score("a", samples(OLD)), score("b", stranger))
    with pytest.raises(UsageError, match="given twice"):
        dialeval.compare(*[score("c", samples(OLD))] * 2)
    with pytest.raises(UsageError, match="no metric is in every run"):
        dialeval.compare(score("d", samples(OLD)), score("e", samples(OLD), metrics=[Wrong()]))


def test_systems_of_one_run_fall_into_clusters(score):
    groups = [
        samples(values, prefix=name, system=name)
        for name, values in (("low", OLD - 2), ("high", OLD + 2), ("higher", OLD + 2.01))
    ]
    found = dialeval.compare(score("run", *groups))
    (standing,) = found.standings
    assert [(s.name, s.cluster) for s in standing.sides] == [("higher", 1), ("high", 2), ("low", 3)]
    assert len(found.rows) == 3
    two = dialeval.compare(found.sides[0].run, systems=["low", "high"])
    assert [(row.first, row.second) for row in two.rows] == [("low", "high")]
    with pytest.raises(UsageError, match="Did you mean 'low'"):
        dialeval.compare(found.sides[0].run, systems=["lo", "high"])


def test_a_side_with_easier_questions_is_not_ranked_before_one_that_beats_it(score):
    """On the ten rows that all have, a is 1 better than b. b and c have thirty easy rows more."""
    hard, easy = OLD[:10], OLD[10:] + 100
    runs = [
        score("a", samples(hard + 1)),
        score("b", samples([*hard, *easy])),
        score("c", samples([*(hard - 1), *(easy - 1)])),
    ]
    found = dialeval.compare(*runs)
    (standing,) = found.standings
    assert [(side.name, side.n) for side in standing.sides] == [("a", 10), ("b", 10), ("c", 10)]
    assert standing.sides[0].mean == pytest.approx(hard.mean() + 1)
    assert any("told (10 of 40 rows)" in warning for warning in found.warnings)


def test_sides_without_a_common_row_have_no_ranking(score):
    runs = [
        score("a", samples(OLD[:10])),
        score("b", samples(OLD)),
        score("c", samples(OLD)[20:]),
    ]
    found = dialeval.compare(*runs)
    assert found.standings == ()
    assert any("told (0 of" in warning for warning in found.warnings)


def test_systems_of_two_runs_meet_themselves(score):
    def both(shift, prefix):
        return [
            sample
            for system, base in (("x", OLD), ("y", OLD + 100))
            for sample in samples(base + shift, prefix=prefix + system, system=system)
        ]

    found = dialeval.compare(score("a", both(0, "p")), score("b", both(1, "q")))
    assert (found.joined_by, found.joined) == ("item", 80)
    assert found.rows[0].difference == pytest.approx(1)


def test_other_options_make_scores_incomparable_and_are_named(score):
    a = score("a", samples(OLD), metrics=[NumberTold(), Size(scale=1)])
    b = score("b", samples(NEW), metrics=[NumberTold(), Size(scale=2)])
    assert a.metrics[0] == b.metrics[0] == "told"
    shared = [label for label in a.metrics if label in b.metrics]
    assert shared == ["told"]  # an option that was given is part of the label
    found = dialeval.compare(a, b)
    assert any("left out" in warning for warning in found.warnings)


def test_fields_that_differ_are_found():
    one = Signature("m", 1, (("lm", "a"), ("mode", "paper")))
    other = Signature("m", 2, (("lm", "b"), ("mode", "paper"), ("calibration", "floor@1")))
    assert differing_fields([one, other]) == ["version", "lm", "calibration"]


def test_runs_with_different_signatures_are_warned_about_and_take_no_part(score):
    a, b = score("a", samples(OLD)), score("b", samples(NEW))
    edit_manifest(b.directory, str(b.signatures["told"]), "told|v2|lm:other|dialeval:0.1.0")
    found = dialeval.compare(a, b.directory)
    (row,) = found.rows
    assert (row.outcome, row.p_holm, found.standings) == ("not comparable", None, ())
    assert "version is v1 in a, v2 in b" in found.warnings[0]
    assert "lm is (none) in a, other in b" in found.warnings[0]


def test_different_scales_are_told_apart_from_other_differences(score):
    runs = [score("a", samples(OLD)), score("b", samples(NEW))]
    for run, digest in zip(runs, ("aaaa", "bbbb"), strict=True):
        scaled = f"told|v1|calibration:floor@{digest}|dialeval:0.1.0"
        edit_manifest(run.directory, str(run.signatures["told"]), scaled)
    found = dialeval.compare(*(run.directory for run in runs))
    assert "Score b again with --calibration" in found.warnings[0]


def test_runs_with_scales_of_their_own_are_compared_by_raw_values(score):
    """On their own scales the worse bot has the higher mean, with p < .001."""
    good, bad = made_up.two_bots()
    a, b = score("a", good, metrics=[made_up.Told()]), score("b", bad, metrics=[made_up.Told()])
    assert np.mean(b.scores("told-scaled")) > np.mean(a.scores("told-scaled")) + 0.2
    found = dialeval.compare(a, b, worst=1)
    (row,) = found.rows
    assert (row.name, row.outcome, row.raw) == ("told-scaled.raw", "worse", True)
    raw = [float(s.response) for s in bad], [float(s.response) for s in good]
    assert row.difference == pytest.approx(np.mean(raw[0]) - np.mean(raw[1]))
    assert found.standings[0].sides[0].name == "a"
    assert {change.metric for change in found.changes} == {"told-scaled.raw"}
    assert "a is better than b on told-scaled.raw" in verdict(found)[0]
    assert "raw values are compared" in found.warnings[0]
    assert "Score b again with --calibration" in found.warnings[0]
    assert json.loads(json.dumps(found.to_record()))["rows"][0]["raw"] is True


def test_on_one_scale_the_scores_themselves_are_compared(tmp_path, score):
    good, bad = made_up.two_bots()
    a = score("a", good, metrics=[made_up.Told()])
    b = dialeval.score(bad, [made_up.Told()], out=tmp_path / "b", calibrations=a.calibrations)
    (row,) = dialeval.compare(a, b).rows
    assert (row.name, row.outcome, row.raw) == ("told-scaled", "worse", False)


def test_what_is_not_comparable_has_no_number(score):
    good, bad = made_up.two_bots()
    metrics = [made_up.Blended(), NumberTold()]
    a, b = score("a", good, metrics=metrics), score("b", bad, metrics=metrics)
    found = dialeval.compare(a, b, worst=2)
    row = next(row for row in found.rows if row.metric == "blended")
    numbers = (row.mean_first, row.mean_second, row.difference, row.low, row.high, row.effect)
    assert {*numbers, row.p, row.p_holm} == {None}
    assert (row.outcome, row.n) == ("not comparable", 40)
    assert {one.metric for one in (*found.changes, *found.standings)} == {"told"}
    assert found.tested == 1
    assert "blended: not comparable, the runs have different scales" in found.warnings[0]


def test_the_samples_that_changed_most_come_with_their_texts(score):
    later = OLD.copy()
    later[7] -= 9
    later[3] += 4
    found = dialeval.compare(score("a", samples(OLD)), score("b", samples(later)), worst=1)
    lost, gained = found.changes
    assert (lost.ids, lost.kind, gained.ids, gained.kind) == (
        ("s7", "s7"), "worse", ("s3", "s3"), "better",
    )  # fmt: skip
    assert lost.difference == pytest.approx(-9)
    assert lost.context == ("question 7",)
    assert lost.responses == (str(OLD[7]), str(later[7]))


def test_neither_workers_nor_other_metrics_move_a_result(score):
    metrics = [Wrong(), NumberTold()]
    a, b = score("a", samples(OLD)), score("b", samples(NEW))
    more = [score(n, samples(v), metrics=metrics) for n, v in (("c", OLD), ("d", NEW))]
    rows = [
        dialeval.compare(a, b).rows[0],
        dialeval.compare(a, b, workers=3).rows[0],
        dialeval.compare(*more).rows[1],
    ]
    assert len({(row.p, row.low, row.high) for row in rows}) == 1


def test_too_few_rounds_for_many_tests_are_pointed_out(score):
    groups = [samples(OLD + i, prefix=f"{i}x", system=f"bot{i}") for i in range(5)]
    found = dialeval.compare(score("run", *groups), rounds=99)
    assert any("Use --rounds 200 or more" in warning for warning in found.warnings)


def test_the_record_is_json_and_holds_the_verdict(score):
    found = dialeval.compare(score("a", samples(OLD)), score("b", samples(NEW)), worst=2)
    record = json.loads(json.dumps(found.to_record()))
    assert record["verdict"] == verdict(found)
    assert {"sides", "rows", "standings", "changes", "warnings"} <= set(record)


@pytest.mark.parametrize(
    ("p", "text"), [(0.0002, "p < .001"), (0.002, "p = .002"), (0.5, "p = .500"), (1.0, "p = 1")]
)
def test_p_is_printed_as_journals_do(p, text):
    assert format_p(p) == text


def test_joined_by_dialogue_the_turns_of_one_are_one_row_with_their_mean(score):
    """Live chats: the second turn depends on the bot, so nothing but the dialogue is shared."""

    def chats(values, bot):
        return [
            Sample(f"{bot}{d}.{t}", (Turn(f"{bot} {t}"),), str(value), dialogue=f"chat {d}")
            for d, turns in enumerate(values)
            for t, value in enumerate(turns)
        ]

    old = score("old", chats([[1, 2, 3], [4], [5, 7]], "a"))
    new = score("new", chats([[4, 4], [4, 6], [9]], "b"))
    found = dialeval.compare(old, new, join_by="dialogue", rounds=99)
    (row,) = found.rows
    assert (row.n, found.joined, found.warnings) == (3, 3, ())
    assert row.mean_first == pytest.approx((2 + 4 + 6) / 3)
    assert row.mean_second == pytest.approx((4 + 5 + 9) / 3)
