"""CTG: beams of a generator in the place of a query."""

import logging

import numpy as np
import pytest
from models import tiny_language_models as tiny

from dialeval.augment.augmenter import make_augmenter
from dialeval.augment.generator import MOST_TEXTS, ConditionalTextGenerator, distinct
from dialeval.augment.queries import Query
from dialeval.errors import UsageError
from dialeval.generation.generator import Decoding, load_generator
from dialeval.sample import Turn

QUERIES = [
    Query("a", "the cat sat", (Turn("hello", "user"), Turn("how are you", "system"))),
    Query("b", "what are you trying to say", (Turn("hello"),)),
    Query("c", "hello", (Turn("the cat"), Turn("how"))),
]


@pytest.fixture
def model(tmp_path):
    return str(tiny.save(tmp_path / "llama", tiny.llama(), tiny.tokenizer()))


class Scripted:
    """Says, with n beams, the first n of its lines."""

    def __init__(self, lines):
        self.lines, self.asked = lines, []

    def replies(self, histories, decoding, seed, *, speaker):
        self.asked.append((len(histories), decoding.beams, speaker))
        return [self.lines[: decoding.count] for _ in histories]


def scripted(lines, **options):
    augmenter = ConditionalTextGenerator(**options)
    vars(augmenter)["_generator"] = Scripted(lines)
    return augmenter


def test_variants_are_the_best_beams_given_the_history_alone(model):
    augmenter = make_augmenter(f"ctg:model={model},variants=3,tokens=6")
    found = augmenter.augment(QUERIES)
    beams = load_generator(model).replies(
        [query.context for query in QUERIES],
        Decoding("beam", beams=5, count=5, max_new_tokens=6),
        speaker="user",
    )
    for query, variants, texts in zip(QUERIES, found, beams, strict=True):
        assert [variant.query for variant in variants] == distinct(query.query, texts)[:3]
        assert [variant.how for variant in variants] == ["beam 1", "beam 2", "beam 3"]
    assert [augmenter.augment([query])[0] for query in QUERIES] == found
    others = [Query(query.id, "something else", query.context) for query in QUERIES]
    assert augmenter.augment(others) == found


def test_sampled_variants_are_drawn_among_the_likeliest_tokens_and_depend_on_the_seed(model):
    def sampled(seed):
        spec = f"ctg:model={model},variants=3,tokens=6,method=sample,top_k=5"
        return make_augmenter(spec, seed).augment(QUERIES)

    drawn = load_generator(model).replies(
        [query.context for query in QUERIES],
        Decoding("sample", top_k=5, count=64, max_new_tokens=6),
        7,
        speaker="user",
    )
    for query, variants, texts in zip(QUERIES, sampled(7), drawn, strict=True):
        assert [variant.query for variant in variants] == distinct(query.query, texts)[:3]
        assert [variant.how for variant in variants] == ["sample 1", "sample 2", "sample 3"]
    assert sampled(7) == sampled(7) != sampled(8)


def test_top_k_without_sampling_is_refused():
    with pytest.raises(UsageError, match="method=sample only"):
        make_augmenter("ctg:top_k=10")


def test_copies_of_the_query_and_of_each_other_are_left_out():
    texts = ["The cat SAT!", "a dog ran", "A dog  ran.", "", " ?!", "a dog runs"]
    assert distinct("the cat sat", texts) == ["a dog ran", "a dog runs"]


def test_the_search_widens_until_enough_is_found():
    lines = ["same", "Same!", "same .", "SAME", "one", "two", "three", "four"]
    augmenter = scripted(lines, variants=2)
    query = Query("a", "same", (Turn("hello"),))
    assert [v.query for v in augmenter.augment([query])[0]] == ["one", "two"]
    assert augmenter._generator.asked == [(1, 4, "user"), (1, 8, "user")]


def test_what_could_not_be_found_is_said(caplog):
    augmenter = scripted(["one"], variants=2)
    with caplog.at_level(logging.WARNING):
        found = augmenter.augment([Query("a", "same", (Turn("hello"),))])
    assert [variant.query for variant in found[0]] == ["one"]
    assert augmenter._generator.asked[-1][1] == MOST_TEXTS
    assert "1 of 1 queries have fewer than 2 variants" in caplog.text
    assert "no history" not in caplog.text


def test_a_query_without_history_gets_no_variant_and_is_counted(caplog):
    """All of them would get the same, whatever they ask."""
    augmenter = scripted(["one"], variants=1)
    with caplog.at_level(logging.WARNING):
        found = augmenter.augment([Query("a", "who"), Query("b", "why", (Turn("hi"),))])
    assert [[variant.query for variant in variants] for variants in found] == [[], ["one"]]
    assert augmenter._generator.asked[0][0] == 1
    assert "1 of 2 queries have no history" in caplog.text
    assert "--with ws" in caplog.text
    assert "fewer than" not in caplog.text


def test_closeness_keeps_what_lies_in_its_band():
    """Unit vectors at 0, 60, 90 and 20 degrees: cosines 1, 0.5, 0 and 0.94."""
    angles = {"query": 0, "near": 60, "far": 90, "too near": 20, "as near": 60}

    class Compass:
        def answer(self, questions):
            for i, question in enumerate(questions):
                angle = np.radians(angles[question.text])
                yield i, 3 * np.array([np.cos(angle), np.sin(angle)])

    augmenter = scripted(["far", "near", "too near", "as near"], variants=2, closeness="0.3-0.9")
    vars(augmenter)["_encoder"] = Compass()
    found = augmenter.augment([Query("a", "query", (Turn("hello"),))])
    assert [variant.query for variant in found[0]] == ["near", "as near"]


@pytest.mark.parametrize("band", ["9", "0.9-0.3", "0.5-0.5", "a-b", "0-2"])
def test_a_band_that_makes_no_sense_is_refused(band):
    with pytest.raises(UsageError, match="LOW-HIGH"):
        make_augmenter(f"ctg:closeness={band}")


def test_the_embedded_model_proposes_other_queries(embedded_models):
    augmenter = make_augmenter("ctg:variants=2,tokens=12,closeness=0.1-0.95")
    query = Query("a", "I am fine , thank you .", (Turn("Hi , Mary . How are you ?"),))
    (variants,) = augmenter.augment([query])
    assert len({variant.query for variant in variants}) == 2
    assert all(variant.query.endswith((".", "?", "!")) for variant in variants)
