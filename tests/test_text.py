"""Text of strangers is made harmless, and its language is told where it can be told."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.agreement.sources import read_scores
from dialeval.readers import load
from dialeval.text import (
    FORMULA_STARTS,
    NAMES,
    details,
    language_of,
    neutralise,
    restored,
    swap_persons,
)

SENTENCES = {
    "de": [
        "Ich möchte heute Abend mit dir ins Kino gehen.",
        "Das ist nicht so einfach, wie du denkst.",
        "Können Sie mir bitte sagen, wo der Bahnhof ist?",
    ],
    "fr": [
        "Je ne sais pas ce que tu veux dire.",
        "Vous pouvez prendre le train avec votre vélo.",
        "C'est une très bonne idée, merci beaucoup !",
    ],
    "es": [
        "No sé qué quieres decir con eso.",
        "Me gusta mucho la comida de este restaurante.",
        "¿Puedes decirme dónde está la estación, por favor?",
    ],
    "it": ["Non so cosa vuoi dire, ma la tua idea è molto bella."],
    "pt": ["Eu não sei o que você quer dizer com isso, mas obrigado."],
    "nl": ["Ik weet niet wat je daarmee wilt zeggen, maar het is goed."],
    "zh": ["你好", "我不知道你在说什么，iPhone 很好用。"],
    "ja": ["日本語は話せますか？"],
    "ko": ["오늘 날씨가 정말 좋네요."],
    "th": ["สวัสดีครับ"],
    "cyrillic": ["Как дела? Что ты делаешь сегодня?"],
    "arabic": ["كيف حالك اليوم؟"],
    "indic": ["आप कैसे हैं?"],
    "el": ["Τι κάνεις σήμερα;"],
    "he": ["מה שלומך היום?"],
}

NOT_TOLD = [
    "",
    "ok",
    "?!",
    "😀😀😀",
    "12 + 30 = 42",
    "π",
    "The die was cast in the war, and so was the man's hat.",
    "De la Cruz and van der Berg met Les Paul in Los Angeles.",
    "I had a crème brûlée at the café on the Rue de la Paix.",
    "No me, no you. Pour me one, son!",
    "My Chinese name is 王小明, what is yours?",
    "See https://de.example.org/wiki/der_und_die_das for more.",
]


@pytest.mark.parametrize(
    ("language", "text"), [(name, text) for name, own in SENTENCES.items() for text in own]
)
def test_a_sentence_is_in_its_language(language, text):
    assert language in NAMES
    assert language_of(text) == language


@pytest.mark.parametrize("text", NOT_TOLD)
def test_what_is_english_or_does_not_tell_is_in_no_other_language(text):
    assert language_of(text) == ""


def test_utterances_of_rated_english_sets_raise_no_alarm(datasets):
    rated = datasets / "rated"
    paths = [rated / "dstc10" / f"{n}_eval.json" for n in ("fed-turn", "topical-usr", "humod")]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        pytest.skip("none of the rated sets is here")
    texts = set()
    for path in paths:
        for item in json.loads(path.read_text("utf-8"))[:2000]:
            texts |= {item["response"], *item["context"].split("\n")}
    with (rated / "holistic" / "context_data_release.csv").open(encoding="utf-8") as file:
        texts |= {cell for row in csv.reader(file) for cell in row[1:3]}
    assert len(texts) > 3000
    assert [text for text in texts if language_of(text)] == []


names = st.text(st.sampled_from("'=+-@a1 \t"), min_size=1)


@given(names)
def test_a_name_comes_back_as_it_was_and_is_never_run(name):
    assert not neutralise(name).startswith(FORMULA_STARTS)
    assert restored(neutralise(name)) == name


@pytest.mark.parametrize("name", ["-1", "=SUM(A1)", "+x", "@me", "'-1", "plain", "'quoted'"])
def test_a_table_that_was_made_safe_joins_by_the_names_that_were_meant(tmp_path, name):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "mine"], [neutralise(name), 1]])
    assert list(read_scores(path)["mine"]) == [name]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "system", "item", "response"], [neutralise(name)] * 3 + ["hello"]]
        )
    (sample,) = load(path)
    assert (sample.id, sample.system, sample.item) == (name, name, name)


@pytest.mark.parametrize(
    ("said", "by_the_other"),
    [
        ("I am late, and my dog is too.", "you are late, and your dog is too."),
        ("Do you like what I told you?", "Do I like what you told me?"),
        ("You were mad at me.", "I was mad at you."),
        ("I’m not so keen on museums", "you're not so keen on museums"),
        ("The sun is out.", "The sun is out."),
    ],
)
def test_the_other_speaker_swaps_the_persons(said, by_the_other):
    assert swap_persons(said) == by_the_other


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hi, I'm Carla. Milo has limped since Tuesday.", {"carla", "tuesday"}),
        ("the Corvo 220 says E4", {"corvo", "220", "e4"}),
        ("i can do 40 lengths, ten more than in march", {"40", "ten", "march"}),
        ("I think that I am fine. Thanks!", set()),
    ],
)
def test_details_are_numbers_and_names(text, found):
    assert details(text) == found
