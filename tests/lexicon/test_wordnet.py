"""The shipped lexicon says what WordNet 3.0 says, in the way that NLTK says it.

Expected values come from WordNet's manual pages, NLTK's documentation and the released WS.csv of
HolisticEval. Where the database itself is at hand (DIALEVAL_WORDNET, or /usr/share/wordnet from
Debian's wordnet-base) every word, synset and irregular form is compared with NLTK's reader.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nltk.data
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.corpus.reader import WordNetCorpusReader
from nltk.translate.meteor_score import meteor_score

import dialeval.lexicon
from dialeval.lexicon import Counts, NltkView, PartOfSpeech, load_wordnet

REPOSITORY = Path(__file__).parents[2]
SHIPPED = REPOSITORY / "src" / "dialeval" / "lexicon"
WS_EXAMPLES = json.loads((REPOSITORY / "tests" / "golden.json").read_text())["ws_examples"]
DATABASE = Path(os.environ.get("DIALEVAL_WORDNET", "/usr/share/wordnet"))
PARTS: tuple[PartOfSpeech, ...] = ("n", "v", "a", "r")

needs_database = pytest.mark.skipif(
    not (DATABASE / "data.noun").exists(),
    reason=f"no WordNet 3.0 database in {DATABASE}: apt-get install wordnet-base, "
    "or set DIALEVAL_WORDNET",
)

lexicon = load_wordnet()


Senses = list[tuple[str, tuple[str, ...]]]


def our_senses(word: str, pos: PartOfSpeech | None) -> Senses:
    return [(synset.pos, synset.lemmas) for synset in lexicon.synsets(word, pos)]


def heads(word: str, pos: PartOfSpeech | None = None) -> list[str]:
    return [synset.name for synset in lexicon.synsets(word, pos)]


# --- values from outside -------------------------------------------------------------------------


def test_counts_are_those_of_the_manual_page_wnstats() -> None:
    assert lexicon.counts("n") == Counts(words=117798, synsets=82115, senses=146312)
    assert lexicon.counts("v") == Counts(words=11529, synsets=13767, senses=25047)
    assert lexicon.counts("a") == Counts(words=21479, synsets=18156, senses=30002)
    assert lexicon.counts("r") == Counts(words=4481, synsets=3621, senses=5580)


@pytest.mark.parametrize(("token", "pos", "substitute"), WS_EXAMPLES["pairs"])
def test_the_first_head_that_differs_is_the_substitute_seen_in_ws_csv(
    token: str, pos: PartOfSpeech, substitute: str
) -> None:
    assert next(head for head in heads(token, pos) if head != token) == substitute


def test_dog_has_the_senses_of_the_nltk_guide() -> None:
    nouns = ["dog", "frump", "dog", "cad", "frank", "pawl", "andiron"]
    assert heads("dog") == [*nouns, "chase"]
    assert heads("dog", "v") == ["chase"]
    assert lexicon.synsets("dog")[0].lemmas == ("dog", "domestic_dog", "Canis_familiaris")


@pytest.mark.parametrize(
    ("form", "pos", "base"),
    [
        ("dogs", None, "dog"),
        ("churches", None, "church"),
        ("aardwolves", None, "aardwolf"),
        ("abaci", None, "abacus"),
        ("hardrock", "r", None),
        ("book", "n", "book"),
        ("book", "a", None),
        ("denied", "n", None),
        ("denied", "v", "deny"),
    ],
)
def test_morphy_answers_as_in_the_nltk_guide(
    form: str, pos: PartOfSpeech | None, base: str | None
) -> None:
    assert lexicon.morphy(form, pos) == base


def test_synsets_ignores_case_and_morphy_does_not() -> None:
    assert lexicon.synsets("DOGS") == lexicon.synsets("dogs") != ()
    assert lexicon.morphy("DOGS") is None


def test_lemmas_keep_their_case() -> None:
    assert lexicon.synsets("earth")[0].lemmas == ("Earth", "earth", "world", "globe")


def test_adjectives_carry_no_syntactic_marker_and_satellites_are_told_apart() -> None:
    # data.adj: "01552162 00 s 01 galore(ip) 0" and "00014358 00 s 02 abounding 0 galore(ip) 0".
    assert our_senses("galore", "a") == [("s", ("galore",)), ("s", ("abounding", "galore"))]
    assert {synset.pos for synset in lexicon.all_synsets("a")} == {"a", "s"}
    assert not any(
        "(" in lemma
        for pos in PARTS
        for synset in lexicon.all_synsets(pos)
        for lemma in synset.lemmas
    )


def test_an_unknown_part_of_speech_is_explained() -> None:
    with pytest.raises(ValueError, match="found under 'a'"):
        lexicon.synsets("galore", "s")  # type: ignore[arg-type]


def test_meteor_finds_synonyms_through_the_view() -> None:
    view = NltkView(lexicon)
    # One match in one chunk: F = 1, penalty = 0.5 * (1 / 1) ** 3. (Not "automobile": NLTK looks up
    # synonyms of what its stemmer has left over, and "automobil" is no word.)
    assert meteor_score([["auto"]], ["car"], wordnet=view) == 0.5
    assert meteor_score([["teapot"]], ["car"], wordnet=view) == 0


def test_meteor_through_the_view_is_that_of_the_nltk_documentation() -> None:
    hypothesis = (
        "It is a guide to action which ensures that the military always obeys the commands "
        "of the party"
    )
    reference = (
        "It is a guide to action that ensures that the military will forever heed Party commands"
    )
    score = meteor_score([reference.split()], hypothesis.split(), wordnet=NltkView(lexicon))
    assert round(score, 4) == 0.6944


def test_princetons_licence_ships_with_the_lexicon() -> None:
    assert "WordNet 3.0 Copyright 2006 by Princeton University." in dialeval.lexicon.LICENSE
    assert dialeval.lexicon.LICENSE.rstrip().endswith("LICENSEE agrees to preserve same.")


# --- laws ----------------------------------------------------------------------------------------

any_text = st.text(st.characters())
any_word = st.sampled_from([word for pos in PARTS for word in lexicon.words(pos)])
any_ending = st.sampled_from(["", "s", "es", "ies", "ves", "men", "ed", "ing", "er", "est"])


@given(any_text)
def test_any_text_has_an_answer(text: str) -> None:
    lexicon.synsets(text)
    lexicon.morphy(text)
    NltkView(lexicon).synsets(text)


@given(any_word, any_ending)
def test_all_parts_of_speech_together_are_nouns_verbs_adjectives_adverbs(
    word: str, ending: str
) -> None:
    form = word + ending
    together = [synset for pos in PARTS for synset in lexicon.synsets(form, pos)]
    assert list(lexicon.synsets(form)) == together


@given(any_word)
def test_every_sense_of_a_word_lists_the_word(word: str) -> None:
    for pos in PARTS:
        bases = set(lexicon.lemma_forms(word, pos))
        for synset in lexicon.synsets(word, pos):
            assert bases & {lemma.lower() for lemma in synset.lemmas}


# --- the whole database --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WordNetCorpusReader]:
    """NLTK's reader over the database. It reads only copies below its own data path."""
    data = tmp_path_factory.mktemp("nltk_data")
    corpus = data / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    for file in DATABASE.iterdir():
        shutil.copyfile(file, corpus / file.name)
    # Debian leaves these out; the reader wants them, our questions do not touch them.
    (corpus / "lexnames").write_text("".join(f"{i:02}\tfile{i}\t1\n" for i in range(45)))
    (corpus / "index.sense").write_text("")
    nltk.data.path.append(str(data))
    with pytest.warns(UserWarning, match="multilingual"):
        nltk_reader = WordNetCorpusReader(str(corpus), None)
    yield nltk_reader
    nltk.data.path.remove(str(data))


def their_senses(reader: WordNetCorpusReader, word: str, pos: PartOfSpeech | None) -> Senses:
    return [(synset.pos(), tuple(synset.lemma_names())) for synset in reader.synsets(word, pos)]


@needs_database
@pytest.mark.parametrize("pos", PARTS)
def test_every_word_has_the_senses_that_nltk_gives_it(
    reader: WordNetCorpusReader, pos: PartOfSpeech
) -> None:
    words = sorted(reader.all_lemma_names(pos))
    assert list(lexicon.words(pos)) == words
    assert [
        word for word in words if our_senses(word, pos) != their_senses(reader, word, pos)
    ] == []


@needs_database
def test_irregular_inflected_and_mangled_forms_are_reduced_as_by_nltk(
    reader: WordNetCorpusReader,
) -> None:
    irregular = [
        line.split()[0]
        for suffix in ("noun", "verb", "adj", "adv")
        for line in (DATABASE / f"{suffix}.exc").read_text().splitlines()
    ]
    draw = random.Random(0)
    words = draw.sample(sorted(reader.all_lemma_names()), 3000)
    endings = ("s", "es", "ses", "ies", "ves", "men", "ed", "ing", "er", "est")
    inflected = [word + ending for word in words for ending in endings]
    mangled = [word[: -draw.randint(1, 3)] + draw.choice(endings) for word in words]

    different = []
    for form in (*irregular, *inflected, *mangled, *(word.title() for word in words), "", "_", "é"):
        same = our_senses(form, None) == their_senses(reader, form, None)
        same &= lexicon.morphy(form) == reader.morphy(form)
        for pos in PARTS:
            same &= list(lexicon.lemma_forms(form, pos)) == reader._morphy(form, pos)
            same &= lexicon.morphy(form, pos) == reader.morphy(form, pos)
        if not same:
            different.append(form)
    assert different == []


@needs_database
def test_the_shipped_files_are_what_the_script_builds(tmp_path: Path) -> None:
    script = REPOSITORY / "scripts" / "build_wordnet.py"
    subprocess.run([sys.executable, script, DATABASE, "--output", tmp_path], check=True)
    name = "wordnet-3.0.npz"
    with np.load(SHIPPED / name) as shipped, np.load(tmp_path / name) as built:
        assert shipped.files == built.files
        assert all(np.array_equal(shipped[array], built[array]) for array in built.files)
    assert (tmp_path / "WORDNET-LICENSE.txt").read_text() == dialeval.lexicon.LICENSE
