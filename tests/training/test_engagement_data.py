"""Responses with soft labels: who is rated by whom, and what must not be learned from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dialeval.errors import InputError, UsageError
from dialeval.sample import Rating
from dialeval.training.examples import engagement
from dialeval.training.examples.corpora import RatedExchanges, exchanges_of
from dialeval.training.examples.engagement import (
    MODEL_RATINGS,
    Engaging,
    balance,
    load_engagement,
    matched_pairs,
    read_engagement,
    soft_label,
    without_rated,
)

NOTHING = RatedExchanges(())
LONG_REPLY = "The orchestra played three encores before anybody thought of leaving the hall."


def example(
    text: str, before: str = "How was it?", dialogue: str = "1", source: str = "a"
) -> Engaging:
    return Engaging(text, (before,), 0.5, source, dialogue)


def saw(*dialogues: tuple[str, ...]) -> RatedExchanges:
    return RatedExchanges((exchanges_of("ours", len(dialogues), dialogues),))


def write(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def topical(messages: list[tuple[str, str]]) -> dict[str, object]:
    content = [
        {"message": text, "agent": f"agent_{place % 2 + 1}", "turn_rating": rating}
        for place, (text, rating) in enumerate(messages)
    ]
    return {"config": "D", "content": content}


def chat(score: int | None, *turns: tuple[str, str]) -> dict[str, object]:
    dialog = [{"id": n, "sender_class": who, "text": text} for n, (who, text) in enumerate(turns)]
    return {"dialog": dialog, "eval_score": score, "bot_profile": []}


def test_the_soft_label_is_that_of_the_golden_scale(golden) -> None:  # type: ignore[no-untyped-def]
    for rated, label in golden["engagement_scale"]["1..5 to 0..1 ((s-1)/4)"].items():
        assert soft_label(Rating((float(rated),), (1.0, 5.0))) == pytest.approx(label)
    assert soft_label(Rating((2.0, None, 5.0), (1.0, 5.0))) == pytest.approx(2.5 / 4)
    assert soft_label(Rating((None,), (1.0, 5.0))) is None


def test_a_message_of_topical_chat_has_the_rating_it_was_given(tmp_path: Path) -> None:
    file = write(
        tmp_path / "valid.json",
        {"t_1": topical([("Hello!", "Poor"), ("Do you like jazz?", "Good"), ("I do.", "")])},
    )
    assert read_engagement(file) == [
        Engaging("Hello!", (), 0.0, "valid", "t_1"),
        Engaging("Do you like jazz?", ("Hello!",), 0.75, "valid", "t_1"),
    ]


def test_the_score_of_a_chat_is_given_to_what_the_bot_said_only(tmp_path: Path) -> None:
    turns = [
        ("Human", "Hi"),
        ("Bot", "Hello."),
        ("Bot", "I ski."),
        ("Human", "So do I"),
        ("Bot", ""),
        ("Bot", "Where?"),
    ]
    file = write(
        tmp_path / "chats.json", [chat(4, *turns), chat(None, *turns), chat(2, *turns[:-1])]
    )
    before = ("Hi", "Hello. I ski.", "So do I")
    assert read_engagement(file) == [
        Engaging("Hello. I ski.", ("Hi",), 0.75, "chats", "chats-0001"),
        Engaging("Where?", before, 0.75, "chats", "chats-0001"),
    ], "a chat of three turns says too little about any of them"


def test_labelled_replies_are_read_and_empty_ones_left_out(tmp_path: Path) -> None:
    rows = 'id,query,reply,label\n0,"Hm ?\n","A good question .\n",1\n1,Where ?,,0\n'
    file = write(tmp_path / "humanAMT_engscores_utt.csv", rows)
    assert read_engagement(file) == [
        Engaging("A good question .", ("Hm ?",), 1.0, "engage-convai", "humanAMT_engscores_utt-0")
    ]


def test_a_label_that_is_none_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.csv", "id,query,reply,label\n0,a,b,1\n1,a,b,maybe\n")
    with pytest.raises(InputError, match=r"(?s)3.*label.*maybe"):
        read_engagement(file)


def test_a_folder_without_rated_responses_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.json file"):
        read_engagement(tmp_path)


def test_a_long_text_that_raters_saw_takes_its_dialogue_with_it() -> None:
    examples = [example(LONG_REPLY), example("Nice."), example("Nice.", dialogue="2")]
    rated = [("What did they play?", LONG_REPLY.upper())]
    assert without_rated(examples, saw(*rated))[0] == [examples[2]]


def test_a_long_exchange_takes_its_dialogue_and_a_short_one_only_itself() -> None:
    long, short = "What did you think of the concert on Sunday evening?", "Thanks!"
    examples = [
        example("Fine.", long, "1"),
        example("Other.", "x", "1"),
        example("Welcome.", short, "2"),
        example("Welcome.", "Hello!", "2"),
    ]
    assert without_rated(examples, saw((long, "fine"), (short, "Welcome")))[0] == [examples[3]]


def test_balance_draws_as_many_of_each_source_and_repeats_as_little_as_possible() -> None:
    many = [example(str(n), source="many") for n in range(50)]
    few = [example(str(n), source="few") for n in range(4)]
    drawn = balance([*many, *few], 10, np.random.default_rng(1))
    assert Counter(one.source for one in drawn) == {"many": 10, "few": 10}
    assert max(Counter(one for one in drawn if one.source == "many").values()) == 1
    assert sorted(Counter(one for one in drawn if one.source == "few").values()) == [2, 2, 3, 3]


def made_up(folder: Path, dialogues: int = 30) -> Path:
    turns = [("Hi", "Good"), ("Do tell me more.", "Excellent"), ("Of number {n}?", "Passable")]
    conversations = {
        f"t_{n}": topical([(text.format(n=n), rating) for text, rating in turns])
        for n in range(dialogues)
    }
    return write(folder / "talk.json", conversations)


def test_pairs_are_of_one_source_equally_long_and_ordered() -> None:
    """Two sources; 30 words against 28 are equally long, against 20 they are not."""
    said = [(30, 1.0, "a"), (28, 0.0, "a"), (20, 0.0, "a"), (30, 0.0, "b"), (20, 1.0, "b")]
    examples = [
        Engaging(" ".join(["so"] * words), (), target, source, str(number))
        for number, (words, target, source) in enumerate(said)
    ]
    pairs = matched_pairs(examples, 7, np.random.default_rng(0))
    assert {(pair.better, pair.worse) for pair in pairs} == {(examples[0], examples[1])}
    assert len(pairs) == 2, "each of the two is drawn once, and has only the other"


def test_no_dialogue_and_no_exchange_is_on_both_sides(tmp_path: Path) -> None:
    data = load_engagement([made_up(tmp_path)], rated=NOTHING)
    learned = {one.dialogue for one in data.train}
    held = {one.dialogue for one in data.validation}
    assert len(held) == 3
    assert not learned & held
    assert {(one.context[-1:], one.text) for one in data.train}.isdisjoint(
        {(one.context[-1:], one.text) for one in data.validation}
    )


def test_the_split_does_not_depend_on_the_seed_but_the_draw_does(tmp_path: Path) -> None:
    file = made_up(tmp_path)
    one, again, other = (
        load_engagement([file], rated=NOTHING, per_source=9, seed=seed) for seed in (0, 0, 1)
    )
    assert len(one.train) == 9
    assert one.digest() == again.digest() != other.digest()
    assert one.validation == other.validation


def test_nothing_rated_is_bad_usage(tmp_path: Path) -> None:
    file = write(tmp_path / "chats.json", [chat(None, ("Bot", "Hello."))])
    with pytest.raises(UsageError, match="0 responses to learn from"):
        load_engagement([file], rated=NOTHING)


def test_the_real_sets_share_nothing_with_the_held_out_engage_set(
    datasets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (datasets / "rated" / "engage" / "DD_finetune_valid.csv").is_file():
        pytest.skip("the fine-tuning sets of Predictive Engagement are not here")
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    everything = load_engagement([Path("engage")], rated=NOTHING)
    data = load_engagement([Path("engage")])
    assert Counter(one.source for one in (*everything.train, *everything.validation)) == {
        "engage-dailydialog": 300,
        "engage-convai": 294,  # 297 rows, three of them without a reply
    }
    # DD_finetune_valid.csv has one pair of Eng_Scores_queries_gen_gtruth_replies.csv.
    assert data.left_out.by_set["engage"] >= 1


def test_a_language_model_rated_each_of_several_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second digit is engagement. Without the corpora only texts of its own are known."""
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    records = [
        {"turns": ["=How was it?"], "answers": ["=It rained.", "=No."], "ratings": ["343", "512"]},
        {"turns": ["#0123456789"], "answers": ["=Not here.", "=No."], "ratings": ["111", "111"]},
        {"turns": ["=And now?"], "answers": ["=It snows."], "ratings": ["555"]},
    ]
    monkeypatch.setattr(engagement, "shipped_records", lambda: records)
    assert read_engagement(Path(MODEL_RATINGS)) == [
        Engaging("It rained.", ("How was it?",), 0.75, MODEL_RATINGS, "How was it?"),
        Engaging("No.", ("How was it?",), 0.0, MODEL_RATINGS, "How was it?"),
        Engaging("It snows.", ("And now?",), 1.0, MODEL_RATINGS, "And now?"),
    ]
    data = load_engagement([Path(MODEL_RATINGS)], rated=NOTHING)
    assert (len(data.train) + len(data.validation), data.missing) == (3, 1)
