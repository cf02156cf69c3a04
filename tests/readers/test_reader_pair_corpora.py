"""Cornell, Tencent and Xiaohuangji, in small files of the same form."""

from __future__ import annotations

import pytest

import dialeval
from dialeval.errors import InputError
from dialeval.training.examples.corpora import load_corpus

LINES = """\
L197 +++$+++ u2 +++$+++ m0 +++$+++ CAMERON +++$+++ Okay... then how 'bout we try out some French?
L196 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ Not the hacking and gagging. Please.
L195 +++$+++ u2 +++$+++ m0 +++$+++ CAMERON +++$+++ Well, I thought we'd start with pronunciation.
L194 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ Can we make this quick? It\x92s late.
L193 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++
"""
CONVERSATIONS = """\
u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L194', 'L195', 'L196', 'L197']
u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L193', 'L195']
"""


def cornell(folder, conversations=CONVERSATIONS):
    folder.mkdir(exist_ok=True)
    (folder / "movie_lines.txt").write_bytes(LINES.encode("latin-1"))
    (folder / "movie_conversations.txt").write_text(conversations)
    return folder


def test_a_conversation_of_a_film_is_read_in_its_order(tmp_path):
    folder = cornell(tmp_path / "films")
    for source in (folder, folder / "movie_conversations.txt"):
        samples = dialeval.load(source)
        first, second = samples
        assert [turn.text for turn in first.context] == [
            "Can we make this quick? It’s late.",
            "Well, I thought we'd start with pronunciation.",
            "Not the hacking and gagging. Please.",
        ]
        assert [turn.speaker for turn in first.context] == ["user", "system", "user"]
        assert first.response == "Okay... then how 'bout we try out some French?"
        assert (first.id, second.id) == ("m0-L194", "m0-L193")
        assert second.context == ()  # an empty line says nothing


def test_a_line_that_is_not_there_is_reported_with_its_place(tmp_path):
    folder = cornell(
        tmp_path / "films", CONVERSATIONS + "u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L7']\n"
    )
    with pytest.raises(InputError, match=r"movie_conversations.txt:3: .*no line L7"):
        list(dialeval.load(folder))
    (folder / "movie_lines.txt").unlink()
    with pytest.raises(InputError, match=r"needs movie_lines.txt beside it"):
        list(dialeval.load(folder / "movie_conversations.txt", format="cornell"))


TENCENT = (
    "你在干嘛呢\t刚吃完饭，准备出去走走\t4\n你在干嘛呢\t不知道\t2\n好累啊\t早点休息吧\texcellent\n"
)


def test_the_grade_of_a_response_is_its_rating(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(TENCENT)
    first, second, third = dialeval.load(path)
    assert (first.context[0].text, first.response) == ("你在干嘛呢", "刚吃完饭，准备出去走走")
    ratings = [one.ratings["overall"] for one in (first, second, third)]
    assert [one.values for one in ratings] == [(4.0,), (2.0,), (5.0,)]
    assert ratings[0].scale == (1.0, 5.0)
    assert first.item == second.item != third.item
    path.write_text("1\t你好\t你好啊\n3\t再见\t明天见\n")
    assert [one.response for one in dialeval.load(path)] == ["你好啊", "明天见"]
    path.write_text(TENCENT + "没有分数\t是的\n")
    with pytest.raises(InputError, match=r"train.txt:4: .*a grade from 1 to 5"):
        list(dialeval.load(path, format="tencent"))


def test_a_table_of_three_columns_in_english_is_not_taken_for_tencents(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("context\tresponse\toverall\nhello\thi\t4\n")
    assert [sample.response for sample in dialeval.load(path)] == ["hi"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("E\nM 呵/呵\nM 是/王/若/猫/的/。\nE\nM 不是\nM 那/是/什么/？\n", "是 王 若 猫 的 。"),
        ("E\nM 呵呵\nM 是王若猫的。\nE\nM 不是\nM 1/2\n", "是王若猫的。"),
    ],
)
def test_slashes_between_words_become_spaces_and_others_stay(tmp_path, text, said):
    path = tmp_path / "xiaohuangji50w.conv"
    path.write_text(text)
    first, second = dialeval.load(path)
    assert first.response == said
    assert first.id == "xiaohuangji50w-000001"
    assert second.context[0].text == "不是"
    if "1/2" in text:
        assert second.response == "1/2"


def test_what_is_no_turn_of_xiaohuangji_is_reported(tmp_path):
    path = tmp_path / "a.conv"
    path.write_text("E\nM 你好\nQ 什么\nM 好\n")
    with pytest.raises(InputError, match=r"a.conv:3: .*E, which begins a dialogue"):
        list(dialeval.load(path))


def test_such_corpora_can_be_learned_from(tmp_path):
    path = tmp_path / "b.conv"
    path.write_text("".join(f"E\nM 问题{n}是什么呢\nM 回答{n}就是这样\n" for n in range(40)))
    corpus = load_corpus(path)
    assert len(corpus.train) + len(corpus.validation) + len(corpus.test) == 40
