"""What rated sets hold is never learned from, whatever lies on the machine."""

from itertools import pairwise
from pathlib import Path

import pytest
from training.chat_files import write_dialogues

from dialeval.readers import load
from dialeval.training.examples.corpora import (
    Corpus,
    RatedExchanges,
    exchanges_of,
    is_long,
    known_exchanges,
    read_exchanges,
    without_rated,
    write_exchanges,
)
from dialeval.training.recipes.mme_judges import MmeFluency

QUERY = "I'd like to see the manager about this."
ANSWER = "He isn't here until Monday, I am afraid!"
RATED = RatedExchanges(
    (
        exchanges_of("tokenised", 1, [("i 'd like to see the manager about this .", ANSWER)]),
        exchanges_of("cased", 1, [(QUERY, "he is n't here until monday , i am afraid !")]),
        exchanges_of("other", 1, [("Thanks.", "Welcome.", QUERY)]),
    )
)


def test_copies_in_another_form_are_the_same_exchange():
    assert RATED.sets_with_exchange(QUERY.upper(), ANSWER) == ("tokenised", "cased")
    assert RATED.sets_with_long_turn(QUERY) == ()  # 29 letters and digits
    assert RATED.sets_with_exchange(ANSWER, QUERY) == ()


def test_only_a_long_exchange_takes_its_dialogue_with_it_and_each_set_is_told():
    dialogues = (("Hi", QUERY, ANSWER), ("Thanks.", "Welcome."), (QUERY, "Of course."))
    corpus, left_out = without_rated(Corpus("c", dialogues, (dialogues[0],), ()), RATED)
    assert corpus.train == dialogues[1:]
    assert corpus.validation == (dialogues[0],)
    assert left_out.count == 1
    facts = left_out.facts()
    assert facts["dialogues left out, by rated set"] == "tokenised 1, cased 1, other 0"
    assert "cased (1 items, 1 exchanges)" in facts["rated sets that are left out"]


def test_a_file_of_hashes_is_read_as_it_was_written(tmp_path):
    write_exchanges(RATED, tmp_path / "hashes.npz")
    with (tmp_path / "hashes.npz").open("rb") as file:
        again = read_exchanges(file)
    assert again == RATED
    assert again.digest == RATED.digest


def test_all_rated_sets_that_we_know_are_shipped_and_the_file_is_small():
    items = {one.name: one.items for one in known_exchanges().sets}
    assert items == {  # as counted by those who released them
        "fed": 375 + 125,
        "usr-topical": 360,
        "dstc10/fed-turn": 375,
        "dstc10/fed-dial": 125,
        "dstc10/topical-usr": 360,
        "dstc10/dailydialog-zhao": 900,
        "dstc10/dailydialog-grade": 300,
        "dstc10/dailydialog-gupta": 500,
        "dstc10/persona-usr": 300,
        "dstc10/persona-zhao": 900,
        "dstc10/convai2-grade": 600,
        "dstc10/empathetic-grade": 300,
        "dstc10/humod": 9500,
        "dstc10/dstc7": 9990,
        "dstc9": 2080,
        "grade-dailydialog": 300,
        "holistic/coherence": 200,
        "holistic/fluency": 200,
        "holistic/consistency": 100,
        "holistic/consistency-ws": 100,
        "holistic/consistency-ctg": 100,
        "engage": 600,
    }


@pytest.mark.parametrize("name", ["dailydialog-gupta", "persona-zhao", "convai2-grade"])
def test_every_long_exchange_of_a_rated_set_is_known(datasets: Path, name):
    path = datasets / "rated" / "dstc10" / f"{name}_eval.json"
    if not path.is_file():
        pytest.skip(f"{name} is not here")
    for sample in list(load(path))[::20]:
        for one, other in pairwise(turn.text for turn in sample.turns):
            if is_long(one, other):
                title = one.title(), other.title().replace(" ", "  ")
                assert f"dstc10/{name}" in known_exchanges().sets_with_exchange(*title)


def test_what_lies_on_the_machine_does_not_decide_what_is_learned_from(tmp_path, monkeypatch):
    dialogues = [[f"query {i}", f"answer {i}"] for i in range(40)] + [[QUERY, ANSWER]] * 3
    path = write_dialogues(tmp_path / "c.jsonl", dialogues)
    rated = tmp_path / "data" / "rated" / "holistic" / "context_data_release.csv"
    rated.parent.mkdir(parents=True)

    def digest():
        return MmeFluency(examples=20, held_out=2).example_sets([path]).digest

    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "data"))
    without = digest()
    rated.write_text(f'0,"{QUERY}","{ANSWER}",' + ",".join("1" * 10) + "\n")
    assert digest() == without
