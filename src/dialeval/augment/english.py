"""English inflection: a base form and a Penn Treebank tag -> the form. `("go", "VBD")` -> `went`.

Irregular forms are those of WordNet's exception lists, read backwards: the lists name "went" and
"gone" as forms of "go". They also hold the doubled consonants (stopped, planning), so that the
regular rules need no pronunciation. What they do not say is which form is which; the endings do:
gone, taken, shown, begun, sung are participles, "came" and "ran" pasts whose participle is the base
form. Names of several words are inflected at their head: has_got, bodies_of_water.

`framed` puts neutral openings before a query: "Where do you live?" -> "Tell me, where do you
live?". They keep the meaning whatever the words are, so that there is something to ask where no
word has a synonym. In a query of several sentences a question at its end is what gets the opening;
where the end is no question, the beginning gets one for statements. They are English: what begins
with letters of another script gets none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from dialeval.lexicon import PartOfSpeech, load_wordnet

UNCHANGED = {
    "beat", "bet", "bid", "broadcast", "burst", "cast", "cost", "cut", "forecast", "hit", "hurt",
    "input", "let", "offset", "output", "put", "quit", "read", "reset", "rid", "set", "shed",
    "shut", "slit", "split", "spread", "sublet", "thrust", "upset", "wed",
}  # fmt: skip
"""Verbs whose past is their base form, which no exception list can say."""

USUALLY_REGULAR = {
    "abide", "address", "blend", "bless", "burn", "bypass", "clothe", "coordinate", "curse",
    "dive", "dream", "gild", "gird", "grip", "heave", "lean", "leap", "learn", "overpass", "pen",
    "prove", "shoe", "smell", "spell", "spill", "spoil", "spotlight", "stave", "transfix",
    "unlearn", "work",
}  # fmt: skip
"""Verbs whose irregular form is rare, dated or British: learnt, wrought, bypast."""

RARE_PLURALS = {"brethren", "busses", "kine", "pence"}

_PARTICIPLE = re.compile(r"([^a]n|ne|u[nm][gk]?)$")
"""gone, shown, lain, borne, begun, sung, drunk; but not began, ran."""

_SIBILANT = re.compile(r"(s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"(?<=[^aeiou])y$")
_VOWELS = re.compile(r"[aeiouy]+")


def inflect(lemma: str, tag: str) -> str:
    """Returns the form of `lemma` that the tag asks for; base tags (VB, VBP, NN, JJ, RB) change
    nothing."""
    if tag in ("JJR", "JJS", "RBR", "RBS"):
        return _compare(lemma, "a" if tag.startswith("J") else "r", tag.endswith("R"))
    change = {"VBZ": _third, "VBD": _past, "VBN": _participle, "VBG": _gerund, "NNS": _plural}
    if tag not in change:
        return lemma
    words = lemma.split("_")
    head = 0 if tag.startswith("V") else _noun_head(words)
    words[head] = change[tag](words[head])
    return "_".join(words)


@cache
def _irregular(pos: PartOfSpeech) -> dict[str, list[str]]:
    """Base form -> its irregular forms."""
    forms = defaultdict(list)
    for form, bases in load_wordnet().exceptions(pos).items():
        for base in bases:
            if form != base:
                forms[base].append(form)
    return forms


def _noun_head(words: list[str]) -> int:
    """body_of_water -> body; prescription_drug -> drug."""
    return next((place - 1 for place, word in enumerate(words) if place and word == "of"), -1)


def _third(verb: str) -> str:
    if verb in ("be", "have"):
        return {"be": "is", "have": "has"}[verb]
    return verb + "es" if re.search(r"[^aeiou]o$", verb) else _with_s(verb)


def _past(verb: str) -> str:
    if verb == "be":
        return "was"
    if verb in UNCHANGED:
        return verb
    forms = _strong_forms(verb)
    pasts = [form for form in forms if not _PARTICIPLE.search(form)]
    if len(forms) == 1 and not re.search(r"[ewv]n$", forms[0]):
        pasts = forms  # won, hung, bent: past and participle in one
    return pasts[0] if pasts else _with_ed(verb)


def _participle(verb: str) -> str:
    forms = _strong_forms(verb)
    if participles := [form for form in forms if _PARTICIPLE.search(form)]:
        # sunk before sunken, borne after born
        return participles[-1] if participles[-1].endswith("ne") else participles[0]
    if forms and verb.endswith(("come", "run")):
        return verb
    return _past(verb)


def _strong_forms(verb: str) -> list[str]:
    """Irregular forms of the past and the participle that do not end in -ed."""
    if verb in USUALLY_REGULAR:
        return []
    return [
        form
        for form in _irregular("v").get(verb, [])
        if not form.endswith(("ed", "ing", "s")) and "'" not in form
    ]


def _gerund(verb: str) -> str:
    for form in _irregular("v").get(verb, []):
        if form.endswith("ing"):
            return form
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    silent = verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and verb != "be"
    return (verb[:-1] if silent else verb) + "ing"


def _with_ed(verb: str) -> str:
    for form in _irregular("v").get(verb, []):
        if form.endswith("ed"):
            return form
    return verb + "d" if verb.endswith("e") else _CONSONANT_Y.sub("i", verb) + "ed"


def _plural(noun: str) -> str:
    for form in _irregular("n").get(noun, []):
        if form not in RARE_PLURALS:
            return form
    if noun.endswith("man"):
        return noun[:-2] + "en"
    if re.search(r"[^aious]s$", noun):
        return noun  # a plural already, or without one: things, means, series
    return _with_s(noun)


def _with_s(word: str) -> str:
    if _CONSONANT_Y.search(word):
        return word[:-1] + "ies"
    return word + ("es" if _SIBILANT.search(word) else "s")


def _compare(word: str, pos: PartOfSpeech, comparative: bool) -> str:
    """bigger, better, nicer; more_beautiful."""
    endings = ("er", "better", "worse", "less", "more") if comparative else ("est", "st")
    for form in _irregular(pos).get(word, []):
        if form.endswith(endings):
            return form
    syllables = len(_VOWELS.findall(re.sub(r"e$", "", word)))
    if syllables > 1 or not word.isalpha() or word.endswith("ly"):
        return f"{'more' if comparative else 'most'}_{word}"
    return (word[:-1] if word.endswith("e") else word) + ("er" if comparative else "est")


BEFORE_A_QUESTION = ("Tell me, ", "Could you tell me: ", "I wonder, ")
BEFORE_A_STATEMENT = ("Well, ", "So, ", "Okay, ")

_SENTENCE_END = re.compile(r"[.!?…]\s+")
_FIRST_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LETTER = re.compile(r"[^\W\d_]")
_LAST_LATIN = "\u024f"
"""The letters up to it, those of Unicode's Latin Extended-B, are Latin."""


def framed(text: str, proper: Sequence[int] = ()) -> list[str]:
    """Returns the text with each opening that it does not have; none where it has no word.

    `proper` says where words start that are names, and so keep their capital letter.
    """
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    is_question = "?" in text[end:]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, end)] if is_question else []
    first = _FIRST_WORD.search(text, ends[-1] if ends else 0)
    if first is None or _is_foreign(text, first.start()):
        return []
    openings = BEFORE_A_QUESTION if is_question else BEFORE_A_STATEMENT
    rest = text[first.start() :]
    if first.start() not in proper and _loses_capital(first[0]):
        rest = rest[0].lower() + rest[1:]
    head, said = text[: first.start()], rest.lower()
    return [
        head + opening + rest
        for opening in openings
        if not said.startswith(opening.rstrip(" ,:").lower())
    ]


def _is_foreign(text: str, start: int) -> bool:
    """Returns whether the first letter from there on is not Latin."""
    letter = _LETTER.search(text, start)
    return letter is not None and letter[0] > _LAST_LATIN


def _loses_capital(word: str) -> bool:
    """Not "I", "I'm", or what is written in capital letters (NASA, AI)."""
    return re.split("['’]", word)[0] != "I" and (len(word) == 1 or not word[1:2].isupper())
