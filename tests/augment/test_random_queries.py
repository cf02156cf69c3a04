"""The baseline of HolisticEval's Table 5: other queries of the file, with their own dialogues."""

from dialeval.augment import Query, augment_queries, make_augmenters, read_queries, write_queries
from dialeval.probe.plan import Gaps, ProbePlan, samples_of
from dialeval.sample import Turn


def queries(count=80):
    return [Query(f"q{i}", f"question {i}", (Turn(f"before {i}", "system"),)) for i in range(count)]


def augmented(given, seed=None, spec="random"):
    return list(augment_queries(given, make_augmenters([spec], seed)))


def test_variants_are_other_queries_of_the_whole_file_with_their_own_history():
    made = augmented(queries())
    for query in made:
        words = [variant.query for variant in query.variants]
        assert len(set(words)) == 4
        assert query.query not in words
        for variant in query.variants:
            assert variant.by == "random"
            assert variant.context == (Turn(variant.query.replace("question", "before"), "system"),)
    drawn = {variant.query for query in made for variant in query.variants}
    assert {f"question {i}" for i in (0, 79)} <= drawn  # a batch has 64


def test_the_seed_decides_the_draw_and_repeats_are_not_drawn():
    assert augmented(queries(), 1) == augmented(queries(), 1) != augmented(queries(), 2)
    twice = [Query("a", "Who?"), Query("b", "who ?"), Query("c", "Where?")]
    found = augmented(twice)
    assert [[variant.query for variant in query.variants] for query in found] == [
        ["Where?"],
        ["Where?"],
        ["Who?"],
    ]


def test_a_file_keeps_who_made_a_variant_and_its_history(tmp_path):
    made = augmented(queries(6))
    write_queries(made, tmp_path / "q.jsonl")
    assert list(read_queries(tmp_path / "q.jsonl")) == made


def test_a_random_query_is_asked_after_its_own_history_and_never_put_again():
    query = augmented(queries(6))[0]
    for protocol in ("both", "holistic"):
        plan = ProbePlan(protocol)
        _, first, *_ = plan.opening(query)
        own = query.variants[0]
        assert [turn.text for turn in first.history] == [own.context[0].text, own.query]
        assert plan.following(query, "fine") == []
    (one, group) = samples_of([query], ProbePlan("holistic"), lambda key: key[1], "bot", Gaps())
    assert (one.id, group.id) == ("q0/first", "q0/diversity-random")
    assert group.variants[0].query == query.query
