"""METEOR against NLTK, with NLTK's own reader of WordNet where the database is installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nltk.data
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import pairs, score, sentences
from nltk.corpus.reader import WordNetCorpusReader
from nltk.translate.meteor_score import meteor_score

from dialeval.lexicon import NltkView, load_wordnet
from dialeval.metrics.meteor import Meteor

DATABASE = Path(os.environ.get("DIALEVAL_WORDNET", "/usr/share/wordnet"))

# The example of NLTK's documentation.
HYPOTHESIS = (
    "It is a guide to action which ensures that the military always obeys the commands of the party"
)
REFERENCES = (
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the"
    " command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
)


def test_the_example_of_nltks_documentation():
    assert round(score(Meteor(), HYPOTHESIS, REFERENCES[0]).value, 4) == 0.6944
    assert round(score(Meteor(), HYPOTHESIS, *REFERENCES).value, 4) == 0.6944
    assert score(Meteor(), "non matching hypothesis", "this is a cat").value == 0


def test_a_synonym_counted_by_hand():
    # One chunk of 3 matches: P = R = 1, penalty 1/2 * (1/3)^3.
    assert score(Meteor(), "my auto stopped", "my car stopped").value == pytest.approx(1 - 0.5 / 27)


def test_a_synonym_that_is_not_its_own_stem_is_missed_as_by_nltk():
    # "purchas" is not in WordNet. Two chunks of one match: F = 2/3, penalty 1/2.
    assert score(Meteor(), "I purchase books", "I buy books").value == pytest.approx(1 / 3)


@given(sentences.filter(str.strip))
def test_a_copy_of_m_words_loses_half_of_m_cubed(text):
    m = len(text.split())
    assert score(Meteor(tokenize="none"), text, text).value == pytest.approx(1 - 0.5 / m**3)


weights = st.fixed_dictionaries(
    {"alpha": st.floats(0, 1), "beta": st.floats(0, 5), "gamma": st.floats(0, 1)}
)


@given(pairs, weights)
def test_it_is_nltks_meteor_over_its_options(pair, options):
    response, references = pair
    expected = meteor_score(
        [text.split() for text in references],
        response.split(),
        wordnet=NltkView(load_wordnet()),
        **options,
    )
    found = score(Meteor(tokenize="none", **options), response, *references)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert 0 <= found.value <= 1


@pytest.fixture(scope="module")
def nltk_wordnet(tmp_path_factory):
    """NLTK's reader over the database files, which it wants below its own data path."""
    if not (DATABASE / "data.noun").exists():
        pytest.skip(f"no WordNet 3.0 database in {DATABASE}: set DIALEVAL_WORDNET")
    data = tmp_path_factory.mktemp("nltk_data")
    corpus = data / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    for file in DATABASE.iterdir():
        shutil.copyfile(file, corpus / file.name)
    (corpus / "lexnames").write_text("".join(f"{i:02}\tfile{i}\t1\n" for i in range(45)))
    (corpus / "index.sense").write_text("")
    nltk.data.path.append(str(data))
    with pytest.warns(UserWarning, match="multilingual"):
        reader = WordNetCorpusReader(str(corpus), None)
    yield reader
    nltk.data.path.remove(str(data))


def test_real_answers_score_as_with_nltks_wordnet(nltk_wordnet, datasets):
    file = datasets / "corpora" / "dailydialog" / "test" / "dialogues_test.txt"
    dialogues = file.read_text(encoding="utf-8").splitlines()[:300]
    turns = [turn.strip() for line in dialogues for turn in line.split("__eou__") if turn.strip()]
    for response, reference in zip(turns, turns[2:], strict=False):
        expected = meteor_score([reference.split()], response.split(), wordnet=nltk_wordnet)
        found = score(Meteor(tokenize="none"), response, reference).value
        assert found == pytest.approx(expected, abs=1e-6)


def test_words_keep_their_apostrophes_and_lose_their_punctuation():
    assert Meteor().words("Don't go (yet), it’s 3.5 km!") == [
        *("Don't", "go", "(", "yet", ")", ",", "it’s", "3", ".", "5", "km", "!")
    ]
    assert Meteor(tokenize="none").words("Don't go.") == ["Don't", "go."]


def test_punctuation_does_not_hide_a_match():
    assert score(Meteor(), "Hello. Bye.", "hello").value > 0
    assert score(Meteor(tokenize="none"), "Hello. Bye.", "hello").value == 0


@given(pairs.flatmap(lambda p: st.tuples(st.just(p), st.permutations(p[1]))))
def test_the_order_of_references_does_not_matter(case):
    (response, references), permuted = case
    assert score(Meteor(), response, *references) == score(Meteor(), response, *permuted)


def test_each_character_of_a_script_without_spaces_is_a_word():
    metric = Meteor()
    assert metric.words("我爱你!") == ["我", "爱", "你", "!"]
    assert metric.words("don't über_all हिन्दी") == ["don't", "über_all", "हिन्दी"]
    assert score(metric, "我爱你", "我很爱你").value > 0
    assert metric.languages == {"en"}
