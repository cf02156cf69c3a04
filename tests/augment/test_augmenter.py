from dataclasses import dataclass
from typing import ClassVar

import pytest

from dialeval.augment import Query, QueryVariant, Tally, augment_queries, make_augmenters
from dialeval.augment.queries import changed_pieces
from dialeval.errors import UsageError


@dataclass(frozen=True)
class Fixed:
    """Gives every query the same paraphrases."""

    texts: tuple[str, ...]
    keeps_repeats: bool = False
    name: ClassVar[str] = "fixed"
    reads_all: ClassVar[bool] = False

    def augment(self, queries):
        return [[QueryVariant(text, "fixed") for text in self.texts] for _ in queries]


def test_a_paraphrase_that_says_nothing_new_is_dropped_and_counted():
    tally = Tally()
    query = Query("a", "who is it", variants=(QueryVariant("who was it", "old"),))
    made = Fixed(("who  is it ", "who was it", "who be it", "who be it"))
    (augmented,) = augment_queries([query], [made], tally)
    assert [variant.query for variant in augmented.variants] == ["who was it", "who be it"]
    assert tally.to_record() == {
        "queries": 1,
        "variants": 1,
        "without_variant": 0,
        "kept": {"fixed": 1},
        "unchanged": {"fixed": 1},
        "repeated": {"fixed": 2},
    }


def test_an_augmenter_may_keep_repeats_as_a_release_did():
    (augmented,) = augment_queries([Query("a", "who")], [Fixed(("who", "who"), True)])
    assert [variant.query for variant in augmented.variants] == ["who", "who"]


def test_variants_stay_with_their_queries_over_many_batches():
    class Echo(Fixed):
        def augment(self, queries):
            return [[QueryVariant(query.query + "!", "echo")] for query in queries]

    queries = [Query(str(number), f"q{number}") for number in range(200)]
    for query in augment_queries(queries, [Echo(()), Fixed(("new",))]):
        assert [v.query for v in query.variants] == [query.query + "!", "new"]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "choose from ws, eda, ctg"),
        (["wss"], "no augmenter 'wss'. Did you mean 'ws'"),
        (["ws", "ws:mode=readable"], "given twice"),
        (["eda:alpha=2"], "no option 'alpha'"),
        (["eda:swap=2"], "at most 1"),
    ],
)
def test_a_wrong_choice_is_explained(specs, message):
    with pytest.raises(UsageError, match=message.replace("?", ".")):
        make_augmenters(specs)


def test_the_seed_holds_where_the_spec_has_none():
    first, second = make_augmenters(["eda", "eda:seed=5"], seed=3)
    assert (first.seed, second.seed) == (3, 5)


def test_changed_words_are_marked_and_the_pieces_spell_the_variant():
    pieces = changed_pieces("Do you think so, Bob?", "Do you really believe so, Bob?")
    assert "".join(piece for piece, _ in pieces) == "Do you really believe so, Bob?"
    assert [piece for piece, is_new in pieces if is_new] == ["really", "believe"]


def test_a_text_that_nobody_reads_is_not_compared_word_by_word():
    """80,000 equal words would take a comparison minutes."""
    long = "a " * 80_000
    assert changed_pieces(long, f"{long} b") == [(f"{long} b", False)]


def test_of_chinese_the_changed_characters_are_marked():
    pieces = changed_pieces("我们去公园", "我们去学园")
    assert [piece for piece, is_new in pieces if is_new] == ["学"]
