"""Chats that their readers or speakers rated, and corpora that nobody rated."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dialeval.readers import check, load
from dialeval.sample import Rating, Turn

ENGAGE = """query,response,human_score,Ruber_Unref_Score
How far is it ?,Not really .,2,"0.1
"
Who are you ?,"I , Bob .",5,"0.2
"
How far is it ?,Not really .,1,"0.1
"
How far is it ?,Two miles .,4,"0.3
"
"""


def test_rows_of_a_pair_become_ratings_of_one_sample(read) -> None:
    reading = read(ENGAGE, "file.csv")
    assert reading.format == "engage"
    assert [(s.id, s.response, s.ratings["engagement"].values) for s in reading.samples] == [
        ("engage-0001", "Not really .", (2.0, 1.0)),
        ("engage-0002", "I , Bob .", (5.0,)),
        ("engage-0003", "Two miles .", (4.0,)),
    ]
    assert reading.samples[0].context == (Turn("How far is it ?", "user"),)
    assert reading.problems == []


def test_answers_to_one_query_share_an_item(read) -> None:
    items = [sample.item for sample in read(ENGAGE, "file.csv").samples]
    assert items[0] == items[2] != items[1]


def test_a_score_outside_the_scale_is_an_error_of_its_row(read) -> None:
    broken = "query,response,human_score\nHi,Hello,6\nHi,Hello,3\nHi,Hello\n"
    reading = read(broken, "file.csv")
    assert reading.problems == [
        ":2: human_score: 6 is outside its scale 1 to 5",
        ":4: 2 cells: expected 3, as in the header",
    ]
    assert [s.ratings["engagement"].values for s in reading.samples] == [(3.0,)]
    assert reading.skipped == 2


def test_engage_holds_600_pairs_of_299_queries_with_three_ratings_each(rated: Path) -> None:
    samples = list(load(rated / "engage/Eng_Scores_queries_gen_gtruth_replies.csv"))
    assert len(samples) == 600
    assert {len(s.ratings["engagement"].given) for s in samples} == {3}
    assert len({s.item for s in samples}) == 299


CHAT = {
    "dialog": [
        {"id": 0, "sender": "participant2", "text": "Hi!\nHow are you?", "sender_class": "Bot"},
        {"id": 1, "sender": "participant1", "text": "Fine.", "sender_class": "Human"},
    ],
    "bot_profile": ["i like horses."],
    "user_profile": ["i work at a school."],
    "eval_score": 4,
    "participant1_id": {"class": "User", "user_id": "User 1"},
    "participant2_id": {"class": "Bot", "user_id": "Bot 5"},
}


def test_a_chat_with_a_bot_is_a_dialogue_rated_by_who_chatted(read) -> None:
    reading = read(json.dumps([CHAT, CHAT | {"eval_score": None}]), "chats.json")
    assert reading.format == "convai2"
    sample, silent = reading.samples
    assert sample.level == "dialogue"
    assert sample.context == (Turn("Hi!\nHow are you?", "system"), Turn("Fine.", "user"))
    assert (sample.id, sample.system, sample.facts) == ("chats-0001", "Bot 5", ("i like horses.",))
    assert sample.ratings == {"eval_score": Rating((4.0,), (1.0, 5.0))}
    assert silent.ratings == {}


def test_a_chat_without_turns_or_with_a_bad_score_is_reported(read) -> None:
    reading = read(
        json.dumps([CHAT | {"dialog": None}, CHAT | {"eval_score": 7}, CHAT]), "chats.json"
    )
    assert [problem.partition(": ")[2] for problem in reading.problems] == [
        "dialog: expected a list of turns, not null",
        "eval_score: 7 is outside its scale 1 to 5",
    ]
    assert (len(reading.samples), reading.skipped) == (1, 2)


def test_convai2_holds_1402_chats_of_which_791_are_rated(datasets: Path) -> None:
    folder = datasets / "corpora" / "convai2-human"
    report = check([folder / "data_volunteers.json", folder / "data_intermediate.json"])
    assert set(report.formats.values()) == {"convai2"}
    assert report.levels == {"dialogue": 1402}
    assert report.qualities["eval_score"].ratings == 593 + 198
    assert report.problems == ()


def test_a_chat_of_an_export_names_nobody_and_participant2_is_the_bot(read) -> None:
    said = [("participant2", "Hi!"), ("participant1", "Hello"), ("participant2", "How are you?")]
    dialog = [{"id": n, "sender": who, "text": text} for n, (who, text) in enumerate(said)]
    chat = {"dialog_id": "0xab", "dialog": dialog, "eval_score": 2, "profile_match": 0}
    (sample,) = read(json.dumps([chat]), "export_2018-07-04_train.json").samples
    assert [turn.speaker for turn in sample.context] == ["system", "user", "system"]


def test_the_exports_of_convai2_hold_3005_chats_of_which_2919_are_rated(datasets: Path) -> None:
    report = check(sorted((datasets / "corpora" / "convai2-human").glob("export_*.json")))
    assert set(report.formats.values()) == {"convai2"}
    assert report.levels == {"dialogue": 427 + 438 + 723 + 1417}
    assert report.qualities["eval_score"].ratings == 417 + 421 + 704 + 1377


def conversation(*turns: tuple[str, str, object]) -> dict[str, object]:
    content = [{"message": m, "agent": a, "turn_rating": r} for m, a, r in turns]
    return {"article_url": "", "config": "D", "content": content}


def test_every_turn_is_a_sample_rated_by_the_partner(read) -> None:
    turns = (("Rock?", "agent_1", "Good"), ("Yes.", "agent_2", "Not Good"), ("Why?", "agent_1", ""))
    reading = read(json.dumps({"t_1": conversation(*turns)}, indent=2), "talk.json")
    assert reading.format == "topical-chat"
    assert [(s.id, s.response, s.ratings["turn_rating"].values) for s in reading.samples] == [
        ("t_1-01", "Rock?", (4.0,)),
        ("t_1-02", "Yes.", (2.0,)),
        ("t_1-03", "Why?", (None,)),
    ]
    assert reading.samples[2].context == (Turn("Rock?", "system"), Turn("Yes.", "user"))


def test_a_rating_in_unknown_words_is_dropped_with_a_warning(read) -> None:
    talk = {"t_1": conversation(("Hi", "agent_1", "Superb"))}
    reading = read(json.dumps(talk), "talk.json")
    assert "'Superb' is none of Poor, Not Good" in reading.problems[0]
    assert reading.samples[0].ratings["turn_rating"].values == (None,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": {"content": [], "turn_rating": 0}', "the object is not closed"),
        ('{"a": {"content": [], "turn_rating": 0} ]', "expected ',' or '}', not ']'"),
        ('{"a": {"content": [], "turn_rating": 0}} x', "'x' after the end of the object"),
        ('{"a" {"content": [], "turn_rating": 0}}', "expected a name and ':'"),
        ('{"a": {"content": [], "turn_rating": 0}, 5: 1}', "expected a name and ':'"),
        ('{"a": {"content": [1, "turn_rating": 0}}', "invalid JSON"),
    ],
)
def test_a_broken_object_of_conversations_is_reported(read, text: str, problem: str) -> None:
    reading = read(text, "talk.json", format="topical-chat")
    assert problem in reading.problems[-1]


def test_an_empty_object_holds_no_conversation(read) -> None:
    reading = read("{ }", "talk.json", format="topical-chat")
    assert reading.samples == []
    assert "there is no sample in it (read as topical-chat)" in reading.problems[-1]


def test_topical_chat_has_the_turns_and_words_of_its_files(datasets: Path) -> None:
    path = datasets / "corpora" / "topical-chat" / "valid_freq.json"
    samples = list(load(path))
    said = Counter(sample.ratings["turn_rating"].values[0] for sample in samples)
    # Counted in the file: Excellent, Good, Passable, Not Good, Poor, and no answer.
    assert said == {5.0: 5557, 4.0: 5201, 3.0: 735, 2.0: 108, 1.0: 51, None: 29}
    assert len({sample.dialogue for sample in samples}) == 539


def test_a_line_of_dailydialog_is_a_dialogue_that_ends_in_the_response(read) -> None:
    reading = read("Hi . __eou__ Hello . __eou__ Bye ? __eou__\n\nAlone __eou__\n", "daily.txt")
    assert reading.format == "dailydialog"
    first, alone = reading.samples
    assert first.context == (Turn("Hi .", "system"), Turn("Hello .", "user"))
    assert (first.id, first.response) == ("daily-00001", "Bye ?")
    assert (alone.id, alone.context, alone.response) == ("daily-00003", (), "Alone")
    assert reading.problems == []


def test_a_line_of_dailydialog_without_text_is_reported(read) -> None:
    reading = read("Hi __eou__ A\0B __eou__\n __eou__ __eou__\n", "daily.txt")
    assert reading.samples[0].response == "A\ufffdB"
    assert reading.problems == [
        ":1: holds NUL: replaced by U+FFFD",
        ":2: no turns: expected texts that end in __eou__",
    ]


PERSONA = """1 your persona: i read.
2 hello ?\ti am good .\t\tcandidate|other
3 why ?\ti read .
1 your persona: i ride.
2 hi\thi you
"""


def test_a_number_one_starts_the_next_dialogue_of_personachat(read) -> None:
    reading = read(PERSONA, "talk.txt")
    assert reading.format == "personachat"
    first, second = reading.samples
    assert [turn.text for turn in first.turns] == ["hello ?", "i am good .", "why ?", "i read ."]
    assert [turn.speaker for turn in first.context] == ["user", "system", "user"]
    assert (first.facts, second.facts) == (("i read.",), ("i ride.",))
    assert second.id == "talk-0002"


def test_lines_of_personachat_that_belong_nowhere_are_reported(read) -> None:
    reading = read("1 your persona: i read.\nno number\n1 hi\thello\n", "talk.txt")
    assert reading.problems == [
        ":2: expected a number and a text; the first of a dialogue is 1",
        ":1: a persona without a dialogue",
    ]
    assert [sample.response for sample in reading.samples] == ["hello"]


EMPATHETIC = """Dialog_ID,Type,Actor,Text,Label
a,situation,none,Fire,afraid
a,utterance,speaker,"It burned, all of it",afraid
a,utterance,listener,Oh no!,questioning
b,utterance,speaker,A cat,neutral
c,situation,none,Nothing said,neutral
"""


def test_rows_of_one_id_are_a_dialogue_of_speaker_and_listener(read) -> None:
    reading = read(EMPATHETIC, "afraid.csv")
    assert reading.format == "empathetic"
    first, second = reading.samples
    assert (first.id, first.response) == ("a", "Oh no!")
    assert first.context == (Turn("It burned, all of it", "user"),)
    assert second.turns == (Turn("A cat", "system"),)
    assert reading.problems == [":6: Dialog_ID: 'c' has no utterance"]


def test_a_folder_of_emotions_is_read_whole(tmp_path: Path) -> None:
    for emotion in ("sad", "angry"):
        text = f"Dialog_ID,Type,Actor,Text,Label\n{emotion},utterance,speaker,Hm,x\n,,\n"
        (tmp_path / f"{emotion}.csv").write_text(text)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    report = check([tmp_path])
    assert (report.samples, report.skipped) == (2, 2)
    assert str(report.problems[0]) == (
        f"{tmp_path / 'angry.csv'}:3: expected 5 cells, the first of them an id"
    )


@pytest.mark.parametrize(
    ("path", "format", "dialogues"),
    [
        ("dailydialog/test/dialogues_test.txt", "dailydialog", 1000),
        ("empathetic", "empathetic", 24856),
        ("personachat/valid_self_original_no_cands.txt", "personachat", 1000),
        ("personachat/valid_other_original_no_cands.txt", "personachat", 1000),
    ],
)
def test_corpora_are_recognised_and_read_whole(
    datasets: Path, path: str, format: str, dialogues: int
) -> None:
    report = check([datasets / "corpora" / path])
    assert list(report.formats.values()) == [format]
    assert (report.samples, report.problems) == (dialogues, ())
