"""Who is asked what, in which order: checks, second showings, shares, pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rating_jobs import answers_of, comparison_job, rating_job

from dialeval.errors import UsageError
from dialeval.rating.design import RatingMaterial, assignments, design, pair_up, read_material
from dialeval.rating.job import Job, Quality, described, parse_qualities
from dialeval.sample import Sample, Turn


def test_a_quality_has_the_usual_scale_or_its_own():
    found = parse_qualities("overall, natural:1-3,understandable:0-1 , My quality:0-10")
    assert [(q.name, q.low, q.high) for q in found] == [
        ("overall", 1, 5),
        ("natural", 1, 3),
        ("understandable", 0, 1),
        ("My quality", 0, 10),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "name at least one"),
        ("overall:5-1", "from a smaller to a larger"),
        ("overall:1-11", "between 0 and 10"),
        ("overall:1", "expected NAME or NAME:LOW-HIGH"),
        ("a,b,a", "'a' is named twice"),
        ("a__b", "cannot be the name"),
    ],
)
def test_a_quality_that_makes_no_sense_is_refused(text, problem):
    with pytest.raises(UsageError, match=problem):
        parse_qualities(text)


def test_a_description_of_an_unknown_quality_is_a_slip_of_the_pen():
    asked = described(parse_qualities("overall"), {"overall": "Well?"})
    assert asked == (Quality("overall", 1, 5, "Well?"),)
    with pytest.raises(UsageError, match="Did you mean 'overall'"):
        described(asked, {"overal": "Well?"})


def test_checks_are_word_salad_from_the_data():
    job = rating_job(40, checks=0.1)
    checks = [task for task in job.tasks if task.kind == "check"]
    assert len(checks) == 4
    words = {word for task in job.tasks[:40] for word in task.samples[0].response.split()}
    for check in checks:
        salad = check.samples[0].response.split()
        assert set(salad) <= words
        assert len(salad) >= 6


def test_a_check_of_a_comparison_has_the_good_answer_first():
    job = comparison_job(20, checks=0.05)
    (check,) = [task for task in job.tasks if task.kind == "check"]
    good, bad = check.samples
    assert good.response in {task.samples[0].response for task in job.tasks[:20]}
    assert bad.response != good.response
    assert job.passes({"preference": 1.0})
    assert not job.passes({"preference": 0.5})
    assert not job.passes({"preference": 0.0})


@pytest.mark.parametrize(
    ("overall", "natural", "passes"),
    [(1, 1, True), (2, 1, True), (3, 2, False), (1, 3, False), (2, 2, True), (5, 3, False)],
)
def test_a_check_is_passed_below_the_middle_of_the_scales(overall, natural, passes):
    """On average over qualities: (2 - 1) / 4 and (2 - 1) / 2 give .375."""
    assert rating_job().passes({"overall": overall, "natural": natural}) is passes


@given(st.integers(1, 60), st.integers(1, 5), st.floats(0, 0.5), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_everybody_sees_everything_once_and_some_again_later(count, raters, duplicates, seed):
    job = rating_job(count, duplicates=duplicates, checks=0.1, seed=seed)
    for rater in range(1, raters + 1):
        order = assignments(job, rater, raters)
        assert [one.position for one in order] == list(range(1, len(order) + 1))
        first = {one.task: one.position for one in order if not one.repeat}
        assert sorted(first) == [task.number for task in job.tasks]
        again = [one for one in order if one.repeat]
        assert len({one.task for one in again}) == len(again)
        for one in again:
            assert job.tasks[one.task - 1].kind == "sample"
            assert one.position - first[one.task] > len(job.tasks) / 3 - 1
        assert order == assignments(job, rater, raters)


def test_raters_have_orders_of_their_own():
    job = rating_job(30)
    orders = {tuple(a.task for a in assignments(job, rater, 5)) for rater in range(1, 6)}
    assert len(orders) == 5


@given(st.integers(2, 9), st.integers(1, 9), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_shares_are_fair_and_every_task_gets_its_raters(raters, per_item, count):
    job = rating_job(count, per_item=per_item)
    orders = [assignments(job, rater, raters) for rater in range(1, raters + 1)]
    seen = Counter(one.task for order in orders for one in order)
    assert set(seen.values()) == {min(per_item, raters)}
    assert len(seen) == count
    sizes = [len(order) for order in orders]
    assert max(sizes) - min(sizes) <= 1


def test_sides_are_drawn_for_each_rater_and_swapped_the_second_time():
    job = comparison_job(200, duplicates=0.2)
    flips = []
    for rater in (1, 2):
        order = assignments(job, rater, 2)
        first = {one.task: one.flipped for one in order if not one.repeat}
        flips.append(first)
        assert all(one.flipped is not first[one.task] for one in order if one.repeat)
        assert 60 < sum(first.values()) < 140  # of 200 fair coins, p < 1e-8 outside
    assert flips[0] != flips[1]


def test_of_several_sources_each_is_a_side():
    pairs = pair_up([RatingMaterial(name, answers_of(name, 3)) for name in ("old", "new", "other")])
    assert len(pairs.pairs) == 9
    assert {(a.system, b.system) for a, b in pairs.pairs} == {
        ("old", "new"), ("old", "other"), ("new", "other"),
    }  # fmt: skip
    assert all(a.item == b.item for a, b in pairs.pairs)


def test_of_one_source_each_system_is_a_side():
    both = (*answers_of("x", 3), *answers_of("y", 2))
    pairs = pair_up([RatingMaterial("chats", both)])
    assert [(a.id, b.id) for a, b in pairs.pairs] == [("x-0", "y-0"), ("x-1", "y-1")]
    assert pairs.left_out == 1


def test_the_same_sample_in_two_runs_gets_a_name_of_its_own_in_each():
    old = answers_of("bot", 2)
    new = tuple(replace(sample, response="better") for sample in old)
    pairs = pair_up([RatingMaterial("old", old), RatingMaterial("new", new)]).pairs
    assert [(a.id, b.id) for a, b in pairs] == [
        ("old/bot-0", "new/bot-0"), ("old/bot-1", "new/bot-1"),
    ]  # fmt: skip


def test_where_nothing_else_is_shared_the_context_is():
    context = (Turn("Who are you?", "user"),)
    left = RatingMaterial("a", (Sample("1", context, "Bob."),))
    right = RatingMaterial("b", (Sample("2", context, "Alice."),))
    assert len(pair_up([left, right]).pairs) == 1


def test_equal_answers_are_not_worth_a_question():
    left = RatingMaterial("a", answers_of("a", 2, "the same"))
    right = RatingMaterial("b", (*answers_of("b", 1, "the same"), *answers_of("b", 2)[1:]))
    found = pair_up([left, right])
    assert (len(found.pairs), found.same) == (1, 1)


@pytest.mark.parametrize(
    ("material", "problem"),
    [
        ([RatingMaterial("a", answers_of("a", 2))], "name two files or runs"),
        (
            [
                RatingMaterial("a", (Sample("1", (Turn("x"),), "y"),)),
                RatingMaterial("b", (Sample("2", (Turn("z"),), "y"),)),
            ],
            "no sample of a, b has the same id, item or context",
        ),
        (
            [RatingMaterial(n, answers_of(n, 2, "the same")) for n in "ab"],
            "all answers are the same",
        ),
    ],
)
def test_where_there_is_nothing_to_compare_it_says_why(material, problem):
    with pytest.raises(UsageError, match=problem):
        pair_up(material)


def test_an_id_that_two_files_share_needs_a_decision():
    same = [RatingMaterial("a", answers_of("bot", 1)), RatingMaterial("b", answers_of("bot", 1))]
    with pytest.raises(UsageError, match="add --compare"):
        design(same, Job("rate", parse_qualities("overall")))


def test_a_run_brings_its_scores_and_files_lose_their_ratings(tmp_path):
    from made_up import samples

    import dialeval

    dialeval.score(samples(4), ["length"], out=tmp_path / "run")
    (source,) = read_material([str(tmp_path / "run")], dialeval.load, limit=3)
    assert [sample.id for sample in source.samples] == ["s0", "s1", "s2"]
    assert all(sample.ratings == {} for sample in source.samples)
    assert source.scores["s2"] == {"length": 3.0}
    job = design([source], Job("rate", parse_qualities("overall"))).job
    assert job.tasks[2].scores == ({"length": 3.0},)
    assert job.directions.keys() == {"length"}


def test_a_limit_of_comparisons_counts_pairs_and_leaves_none_without_a_rival():
    sources = [RatingMaterial(name, tuple(answers_of(name, 30))) for name in ("a", "b")]
    job = Job("compare", (Quality("preference"),), seed=3)
    few = design(sources, job, 7)
    assert len(few.job.tasks) == 7
    assert few.remarks == ()
    assert {task.samples for task in few.job.tasks} <= set(pair_up(sources).pairs)
    assert design(sources, job, 7).job.digest() == few.job.digest()
    assert design(sources, replace(job, seed=4), 7).job.tasks != few.job.tasks


def test_pairs_remember_what_joined_them():
    """Three systems answer the same question: its three pairs are not independent."""
    sides = [
        RatingMaterial(name, [Sample(f"s{n}", (Turn(f"q{n}"),), f"{name} {n}") for n in range(4)])
        for name in ("a", "b", "c")
    ]
    pairs = pair_up(sides).pairs
    assert len(pairs) == 12
    assert {first.item for first, _ in pairs} == {"s0", "s1", "s2", "s3"}
    assert all(first.item == second.item for first, second in pairs)


def test_one_attention_check_and_a_quality_without_a_description_are_told():
    source = RatingMaterial("a", tuple(answers_of("a", 10)))
    job = Job("rate", parse_qualities("overall,zest"), checks=0.05)
    one, undescribed = design([source], job).remarks
    assert "--checks 0.3 makes three" in one
    assert undescribed.startswith("'zest' has no description")
    three = design([source], replace(job, checks=0.3, qualities=parse_qualities("overall")))
    assert three.remarks == ()
    assert sum(task.kind == "check" for task in three.job.tasks) == 3
