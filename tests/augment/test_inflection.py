"""Forms as English grammars list them."""

import pytest

from dialeval.augment.english import inflect
from dialeval.lexicon import load_wordnet

VERBS = """
go goes went gone going
take takes took taken taking
begin begins began begun beginning
drink drinks drank drunk drinking
come comes came come coming
run runs ran run running
win wins won won winning
hang hangs hung hung hanging
show shows showed shown showing
beat beats beat beaten beating
put puts put put putting
bear bears bore borne bearing
learn learns learned learned learning
stop stops stopped stopped stopping
visit visits visited visited visiting
try tries tried tried trying
enjoy enjoys enjoyed enjoyed enjoying
watch watches watched watched watching
purchase purchases purchased purchased purchasing
agree agrees agreed agreed agreeing
lie lies lay lain lying
do does did done doing
have has had had having
be is was been being
sing sings sang sung singing
take_place takes_place took_place taken_place taking_place
"""


@pytest.mark.parametrize("row", VERBS.strip().splitlines())
def test_verbs_are_conjugated(row):
    base, *forms = row.split()
    assert [inflect(base, tag) for tag in ("VBZ", "VBD", "VBN", "VBG")] == forms
    assert inflect(base, "VB") == inflect(base, "VBP") == base


NOUNS = """
cat cats
child children
policeman policemen
bus buses
box boxes
city cities
day days
hero heroes
photo photos
life lives
means means
church churches
foot feet
body_of_water bodies_of_water
prescription_drug prescription_drugs
"""


@pytest.mark.parametrize("row", NOUNS.strip().splitlines())
def test_nouns_have_plurals(row):
    base, plural = row.split()
    assert inflect(base, "NNS") == plural


ADJECTIVES = """
big bigger biggest
good better best
bad worse worst
nice nicer nicest
happy happier happiest
large larger largest
fast faster fastest
decent more_decent most_decent
"""


@pytest.mark.parametrize("row", ADJECTIVES.strip().splitlines())
def test_adjectives_are_compared(row):
    base, *forms = row.split()
    assert [inflect(base, tag) for tag in ("JJ", "JJR", "JJS")] == [base, *forms]


@pytest.mark.parametrize("tag", ["VBZ", "VBG"])
def test_wordnet_finds_the_verbs_behind_their_forms(tag):
    """All but a few in a thousand, such as "birdie", whose forms morphy takes for others."""
    wordnet = load_wordnet()
    verbs = [verb for verb in wordnet.words("v") if verb.isalpha()]
    found = [verb for verb in verbs if verb in wordnet.lemma_forms(inflect(verb, tag), "v")]
    assert len(found) / len(verbs) > 0.995
