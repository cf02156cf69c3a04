"""People rate groups of answers, one dialogue under four aspects, and samples over a range."""

import math
from dataclasses import replace

import pytest
from made_up import samples

import dialeval
from dialeval.errors import UsageError
from dialeval.probe.directory import whole_dialogues
from dialeval.probe.plan import kind_of
from dialeval.rating.design import RatingMaterial, design, evenly_spread, read_material
from dialeval.rating.job import Job, parse_qualities
from dialeval.sample import Sample, Turn, Variant


def group(number):
    variants = tuple(Variant(f"wording {i}?", f"answer {i} of {number}") for i in range(5))
    return Sample(f"q{number}/diversity-ws", dialogue=f"q{number}", variants=variants)


def answer(number):
    return Sample(f"q{number}/first", (Turn("wording 0?", "user"),), "answer", dialogue="q")


def job(qualities, **options):
    return Job("rate", parse_qualities(qualities), **options)


def test_a_group_is_rated_as_a_whole_by_a_question_about_groups():
    made = design([RatingMaterial("a", tuple(map(group, range(3))))], job("diversity")).job
    assert [len(task.samples[0].variants) for task in made.tasks] == [5, 5, 5]
    assert made.qualities[0].description.startswith("How much do the answers differ")
    own = replace(made.qualities[0], description="Mine?")
    kept = design([RatingMaterial("a", (group(0),))], Job("rate", (own,))).job
    assert kept.qualities[0].description == "Mine?"


def test_an_attention_check_of_a_group_is_the_same_nonsense_five_times():
    made = design([RatingMaterial("a", tuple(map(group, range(4))))], job("diversity", checks=0.5))
    for check in made.job.tasks[4:]:
        (sample,) = check.samples
        assert len(sample.variants) == 5
        assert len({variant.response for variant in sample.variants}) == 1
        assert sample.variants[0].response not in {f"answer 0 of {i}" for i in range(4)}


@pytest.mark.parametrize(
    ("qualities", "left", "remark"),
    [("diversity", 2, "1 single answers"), ("fluency,overall", 1, "2 groups of answers")],
)
def test_groups_and_answers_are_not_mixed(qualities, left, remark):
    both = RatingMaterial("a", (group(0), group(1), answer(0)))
    made = design([both], job(qualities))
    assert len(made.job.tasks) == left
    assert any(remark in one for one in made.remarks)


def test_samples_are_chosen_evenly_over_the_range_of_a_metric(tmp_path):
    # many mediocre values, few at the ends: targets 0, 5, 10
    values = [5.0, 5.1, 4.9, 5.2, None, 0.0, 10.0, 5.3]
    assert evenly_spread(values, 3) == {0, 5, 6}
    assert evenly_spread(values, 20) == {0, 1, 2, 3, 5, 6, 7}
    dialeval.score(samples(14), ["length"], out=tmp_path / "run")  # 1 to 7 words, twice
    (source,) = read_material(
        [str(tmp_path / "run")], dialeval.load, limit=7, seed=0, spread="length"
    )
    assert sorted(len(s.response.split()) for s in source.samples) == [1, 2, 3, 4, 5, 6, 7]


def test_groups_of_several_systems_in_one_run_are_rated_each_with_its_own_scores(tmp_path):
    def said(system, number, answers):
        variants = tuple(Variant(f"wording {i}?", text) for i, text in enumerate(answers))
        name = f"q{number}/diversity-ws"
        return Sample(name, dialogue=f"q{number}", variants=variants, system=system, item=name)

    dull, lively = ["no", "no"], ["yes of course", "not in my life"]
    both = [said("dull", i, dull) for i in range(2)] + [said("fun", i, lively) for i in range(2)]
    dialeval.score(both, ["diversity:n=1,dispersion=false"], out=tmp_path / "run")
    (source,) = read_material([str(tmp_path / "run")], dialeval.load)
    tasks = design([source], job("diversity")).job.tasks
    found = {task.samples[0].id: [*task.scores[0].values()] for task in tasks}
    assert list(found) == [f"{who}/q{i}/diversity-ws" for who in ("dull", "fun") for i in range(2)]
    assert found["dull/q1/diversity-ws"] == [0.0]  # one word, twice
    assert found["fun/q0/diversity-ws"] == [pytest.approx(math.log(7))]  # seven words, once each
    assert kind_of(tasks[2].samples[0]).by == "ws"
    assert [task.samples[0].item for task in tasks[1:3]] == ["q1/diversity-ws", "q0/diversity-ws"]


def test_a_range_needs_a_run_that_has_the_metric_and_a_number(tmp_path):
    dialeval.score(samples(4), ["length"], out=tmp_path / "run")
    run, file = str(tmp_path / "run"), str(tmp_path / "chats.jsonl")
    with pytest.raises(UsageError, match="say with --limit"):
        read_material([run], dialeval.load, spread="length")
    with pytest.raises(UsageError, match="has no such metric, but length"):
        read_material([run], dialeval.load, limit=2, spread="coherence")
    with pytest.raises(UsageError, match="is no run, so it has no scores"):
        read_material([file], dialeval.load, limit=2, spread="length")


def test_one_dialogue_has_the_second_answer_and_the_group():
    context = (Turn("wording 0?", "user"), Turn("answer", "system"), Turn("wording 1?", "user"))
    again = Sample("q0/consistency-ws-1", context, "other answer", dialogue="q0")
    (whole,) = whole_dialogues([replace(answer(0), dialogue="q0"), group(0), again])
    assert (whole.id, whole.context, whole.response) == ("q0", context, "other answer")
    assert whole.variants == group(0).variants
