"""Pairs from corpora, their vectors on disk, and variants of responses."""

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from made_up import LengthModels
from models import tiny_encoders, tiny_language_models
from training.chat_files import write_dialogues

from dialeval.augment.augmenter import make_augmenter
from dialeval.augment.generator import ConditionalTextGenerator
from dialeval.augment.queries import Query
from dialeval.errors import UsageError
from dialeval.models.pair_scorer import last_words
from dialeval.sample import Turn
from dialeval.training.examples import pair_vectors, sampling
from dialeval.training.examples.corpora import SPLITS, RatedExchanges, exchanges_of, load_corpus
from dialeval.training.examples.pair_corpus import Pair, load_pairs
from dialeval.training.examples.pair_vectors import embed
from dialeval.training.examples.sampling import generator_of, make_positives, sampled


@pytest.fixture
def chats(tmp_path):
    dialogues = [[f"query {i}", f"answer {i}", f"more {i}"] for i in range(40)]
    return write_dialogues(tmp_path / "chats.jsonl", dialogues)


def as_texts(corpus, split):
    return [
        ([corpus.texts[n] for n in pair.context], corpus.texts[pair.response])
        for pair in getattr(corpus, split)
    ]


def test_a_query_is_the_turn_before_or_all_turns_before(chats):
    single = as_texts(load_pairs([chats], "last"), "train")
    several = as_texts(load_pairs([chats], "weighted"), "train")
    number = single[0][0][0].split()[-1]
    assert (["query " + number], "answer " + number) in single
    assert (["answer " + number], "more " + number) in single
    assert ([f"query {number}", f"answer {number}"], f"more {number}") in several


def test_splits_share_no_dialogue_and_no_pair(tmp_path):
    # Every dialogue ends in the same exchange: it may be in one split only.
    dialogues = [[f"query {i}", f"answer {i}", "thanks", "bye"] for i in range(40)]
    corpus = load_pairs([write_dialogues(tmp_path / "c.jsonl", dialogues)], "last")
    splits = [as_texts(corpus, split) for split in ("train", "validation", "test")]
    everything = [pair for pairs in splits for pair in pairs]
    assert everything.count((["thanks"], "bye")) == 1
    queries = [{pair[0][0] for pair in pairs if "query" in pair[0][0]} for pairs in splits]
    assert all(queries)
    assert sum(map(len, queries)) == 40


def test_a_bounded_corpus_has_the_authors_proportions_and_the_same_texts(tmp_path):
    dialogues = [[f"query {i}", f"answer {i}"] for i in range(400)]
    path = write_dialogues(tmp_path / "c.jsonl", dialogues)
    whole, bounded = load_pairs([path], "last"), load_pairs([path], "last", most=180)
    assert [len(bounded.train), len(bounded.validation), len(bounded.test)] == [180, 10, 10]
    assert set(bounded.train) < set(whole.train)
    assert bounded.texts == whole.texts


def test_dialogues_of_a_rated_set_are_not_learned_from(tmp_path):
    shared = ["I would like to see the manager about this.", "He is out until Monday, I am afraid."]
    dialogues = [[f"query {i}", f"answer {i}"] for i in range(40)]
    path = write_dialogues(tmp_path / "c.jsonl", [*dialogues, [*shared, "Oh no."]])
    rated = RatedExchanges((exchanges_of("ours", 1, [tuple(shared)]),))
    whole = load_pairs([path], "last")
    kept = load_pairs([path], "last", rated=rated)
    assert shared[1] in {answer for _, answer in as_texts(whole, "train")}
    assert shared[1] not in {answer for _, answer in as_texts(kept, "train")}
    assert (kept.left_out.count, kept.left_out.by_set) == (1, {"ours": 1})


def test_a_corpus_whose_wrong_responses_cannot_be_told_is_refused_at_once(tmp_path):
    path = write_dialogues(tmp_path / "c.jsonl", [[f"query {i}", "ok"] for i in range(60)])
    with pytest.raises(UsageError, match="pairs with 1 different responses for train are too few"):
        load_pairs([path], "last")


def test_rival_answers_to_the_same_turns_are_all_learned_from(tmp_path):
    rows = []
    for number in range(20):
        query = {"dialogue": f"d{number}", "context": [f"query {number}"]}
        rows += [query | {"response": f"{bot} {number}", "system": bot} for bot in ("good", "bad")]
        longer = [f"query {number}", f"good {number}", f"more {number}"]
        rows.append({"dialogue": f"d{number}", "context": longer, "response": f"end {number}"})
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    found = load_corpus(path)
    dialogues = [*found.train, *found.validation, *found.test]
    assert sorted(map(len, dialogues)) == [2] * 20 + [4] * 20
    assert {d[1] for d in dialogues if len(d) == 2} == {f"bad {number}" for number in range(20)}


def test_an_utterance_is_its_last_words_and_chinese_its_last_characters(tmp_path):
    dialogues = [[f"a b c d {i}", f"今天天气很好{i}"] for i in range(20)]
    corpus = load_pairs([write_dialogues(tmp_path / "c.jsonl", dialogues)], "last", words=3)
    assert ["c d 7"] in [context for context, _ in as_texts(corpus, "train")] + [
        context for split in ("validation", "test") for context, _ in as_texts(corpus, split)
    ]
    assert any(text == "很好7" for text in corpus.texts)


def test_vectors_are_the_answers_of_the_model_and_computed_once():
    source = LengthModels()
    texts = ["a", "bbb", "cc"]
    assert embed(texts, "any", source=source).tolist() == [[1], [3], [2]]
    assert embed(texts, "any", source=source).tolist() == [[1], [3], [2]]
    assert source.loaded == 1
    assert embed(texts, "any", pooling="cls", source=source).shape == (3, 1)
    embed(texts, "any", source=LengthModels("beef"))
    assert source.loaded == 2


def test_vectors_are_read_without_loading_them(monkeypatch):
    assert isinstance(embed(["a", "b"], "any", source=LengthModels()), np.memmap)


def test_a_killed_embedding_goes_on_after_its_last_chunk(monkeypatch):
    monkeypatch.setattr(pair_vectors, "CHUNK", 10)
    texts = ["x" * (i + 1) for i in range(35)]

    class Dying(LengthModels):
        def load(self, name):
            self.loaded += 1
            return self

        def answer(self, questions):
            if len(self.model.batches) == 2:
                raise KeyboardInterrupt
            return self.model.answer(questions)

    with pytest.raises(KeyboardInterrupt):
        embed(texts, "any", source=Dying())
    source = LengthModels()
    heard = []
    vectors = embed(texts, "any", source=source, progress=lambda *done: heard.append(done))
    assert vectors[:, 0].tolist() == list(range(1, 36))
    assert source.model.batches == [10, 5]
    assert heard[-1] == (35, 35)


def test_variants_of_a_response_are_other_texts_and_shared_by_equal_responses():
    texts = ["hello there", "I would like a cup of black coffee please", "yes"]
    pairs = [Pair((0,), 1), Pair((2,), 1), Pair((0,), 2)]
    made = make_positives("eda", pairs, texts, variants=5)
    assert made.of_pair[0] == made.of_pair[1]
    assert 1 <= len(made.of_pair[0]) <= 5
    assert texts[1] not in [made.texts[n] for n in made.of_pair[0]]
    assert make_positives("eda", pairs, texts, variants=5) == made


def test_positives_can_be_left_out_and_an_unknown_kind_is_refused():
    assert make_positives("none", [Pair((0,), 1)], ["a", "b"]).of_pair == ((),)
    with pytest.raises(UsageError, match="eda, ctg or none"):
        make_positives("ws", [Pair((0,), 1)], ["a", "b"])


@pytest.fixture
def generator(tmp_path):
    return tiny_language_models.save(
        tmp_path / "llama", tiny_language_models.llama(), tiny_language_models.tokenizer()
    )


def test_beams_of_a_generator_are_written_once_and_a_killed_search_goes_on(generator, monkeypatch):
    monkeypatch.setattr(sampling, "KEPT_AT_ONCE", 2)
    texts = ["hello", "how are you", "the cat sat", "what", "are you", "say the cat"]
    pairs = [Pair((number,), number + 1) for number in range(5)]
    spec = f"ctg:model={generator},tokens=4,method=beam"
    augment, asked = ConditionalTextGenerator.augment, []

    def counted(self, queries):
        asked.append(len(queries))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return augment(self, queries)

    monkeypatch.setattr(ConditionalTextGenerator, "augment", counted)
    with pytest.raises(KeyboardInterrupt):
        make_positives(spec, pairs, texts, variants=2)
    made = make_positives(spec, pairs, texts, variants=2)
    assert asked == [2, 2, 1, 1]
    assert make_positives(spec, pairs, texts, variants=2) == made
    assert asked == [2, 2, 1, 1]
    assert [len(numbers) for numbers in made.of_pair] == [2] * 5
    monkeypatch.setattr(ConditionalTextGenerator, "augment", augment)
    fresh = make_augmenter(f"{spec},variants=2").augment(
        [Query("", texts[pair.response], (Turn(texts[pair.context[0]]),)) for pair in pairs]
    )
    written = [[made.texts[n] for n in numbers] for numbers in made.of_pair]
    assert written == [[last_words(one.query, 100) for one in variants] for variants in fresh]


def test_beams_of_other_weights_under_the_same_name_are_not_taken_for_these(generator):
    pairs, texts = [Pair((0,), 1)], ["hello", "how are you"]
    spec = f"ctg:model={generator},tokens=4"
    before = make_positives(spec, pairs, texts, variants=2)
    other = tiny_language_models.llama()
    other.lm_head.weight.data.neg_()
    tiny_language_models.save(generator, other, tiny_language_models.tokenizer())
    assert make_positives(spec, pairs, texts, variants=2) != before


def test_only_a_generator_writes_positives():
    assert generator_of("none") == generator_of("eda") == ""
    assert generator_of("ctg:model=a/b,tokens=9") == "a/b"


def test_an_encoder_of_chinese_is_an_encoder_like_any_other(tmp_path):
    """The form of bert-base-chinese: a directory with a WordPiece vocabulary of characters."""
    directory = tiny_encoders.save_bert(tmp_path / "bert-base-chinese")
    dialogues = [[f"今天天气好吗{i}", f"很好{i}"] for i in range(20)]
    corpus = load_pairs([write_dialogues(tmp_path / "c.jsonl", dialogues)], "last", words=8)
    assert max(map(len, corpus.texts)) <= 9
    vectors = embed(corpus.texts, str(directory))
    assert vectors.shape == (len(corpus.texts), 16)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("named", [True, False])
def test_answers_of_rivals_to_the_same_turns_are_in_one_split(tmp_path, named):
    lines = [
        {
            "id": f"{number}-{system}",
            **({"dialogue": f"d{number}"} if named else {}),
            "context": [
                f"A long question about the matter number {number}?",
                f"Go on with {number}, please.",
            ],
            "response": f"Answer {system} to {number}.",
        }
        for number in range(60)
        for system in range(3)
    ]
    path = tmp_path / "rivals.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = load_corpus(path)
    splits = [{dialogue[:-1] for dialogue in getattr(corpus, split)} for split in SPLITS]
    assert all(splits)
    assert not splits[0] & splits[1]
    assert not splits[0] & splits[2]
    assert not splits[1] & splits[2]


def test_a_generator_samples_unless_a_method_is_named():
    assert sampled("ctg:model=a/b") == "ctg:model=a/b,method=sample,top_k=20"
    assert sampled("ctg") == "ctg:method=sample,top_k=20"
    assert sampled("ctg:method=sample,top_k=5") == "ctg:method=sample,top_k=5"
    assert sampled("eda") == "eda"


def test_the_beams_of_a_dull_generator_are_the_same_texts_and_its_samples_are_not(tmp_path):
    """One that says the same to everybody: its five beams are five texts in all."""
    import torch
    from generation.tiny_networks import save_network, tiny_network
    from models import tiny_language_models as tiny

    from dialeval.networks import reply_network

    dull = tiny_network("seq2seq")
    torch.nn.init.zeros_(dull.head.weight)
    name = save_network(tmp_path / "dull", "seq2seq")
    reply_network.save("seq2seq", dull, tmp_path / "dull")
    words = tiny.tokenizer(closes=True).convert_ids_to_tokens(range(tiny.VOCABULARY))
    assert len(words) == tiny.VOCABULARY
    texts = [f"query {i}" for i in range(8)] + [f"answer {i}" for i in range(8)]
    pairs = [Pair((i,), 8 + i) for i in range(8)]
    found = {
        method: make_positives(f"ctg:model={name},tokens=4{method}", pairs, texts, variants=5)
        for method in (",method=beam", "")
    }
    written = sum(map(len, found[""].of_pair))
    assert len(found[",method=beam"].texts) == 5
    assert written == 40
    assert len(found[""].texts) / written > 0.5


def test_the_card_says_how_many_positives_are_different():
    from dialeval.training.recipes.ruber import _variety

    facts = _variety(75_000, 384)
    assert facts["share of different texts"] == 0.0051
    assert _variety(0, 0) == {"variants of responses": 0}
