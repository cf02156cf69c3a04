"""WordNet substitution (WS): the verbs, the nouns, the adjectives and adverbs, or all of them.

Pang et al., Towards Holistic and Automatic Evaluation of Open-Domain Dialogue Generation, ACL 2020,
sections 3.3 and 4.4: words of a query are replaced by synonyms from WordNet to get queries of the
same meaning. Four variants beside the original. The code that did it was not released; what it did
can be read off the data that were.

mode=readable (the default) is ours, not the paper's. It keeps the query readable: a near synonym or
none, in the form of the word it replaces (tense, number, comparison, capital letters, "a" or "an"),
spacing and punctuation as they are. Auxiliaries, the copula, names, contractions, verbs with a
particle, and words whose synonyms do not do their work (`LEFT_ALONE`) stay. Three steps, so that a
probe has something to ask:

1. Each word gets its nearest synonym, in whichever sense of it that is found (`near_synonyms`).
2. Where one part of speech alone has synonyms, `all` would repeat it; it takes the next nearest.
3. Where fewer than `least` variants were found, neutral openings fill up (`framed`): `frame`.

mode=paper is the paper's rule: every verb, every noun, every adjective and adverb, or all of them
get a synonym in its base form, whatever the sense. Which one the paper leaves open; here it is the
one that the authors' WS.csv shows (`released_synonym`). The rest of the query stays as it is.

mode=released repeats WS.csv itself: the same synonyms, in lower case, punctuation apart,
underscores kept, "a" before a vowel; a query without, say, nouns comes back as it was.
`dialeval study ws-substitutions` measures how well.

mode=released-consistency repeats the paraphrases of the authors' self-consistency set, which follow
another rule: one word of the query at most. Of the verbs, the nouns, the adjectives and the adverbs
the first of each is looked at whose first sense in WordNet, over all parts of speech, is of its
kind; the earliest of these four words that is not the head of that sense is replaced by it
("really" -> "truly", "went" -> "travel", "i" -> "iodine"). `dialeval study ws-consistency` measures
how well.

`released_synonym` is the rule recovered from HolisticEval's WS.csv: the synsets of the word in
WordNet's order; the first whose head lemma is another word; that lemma, in lower case.

`near_synonyms` reads WordNet from both sides, and goes through all senses of the word. Two words
are close where they share senses that are usual ones of both:

    closeness = share * 4 ** -(words of the lemma - 1)
                * sum over shared synsets of 1 / (i ** 3 * j * sqrt(k))

i is the rank of the synset among the senses of the word, j among those of the lemma, k the place of
the lemma in the synset, all from 1; share is how many of the lemma's senses are of this part of
speech, so that "mouth", a noun above all, is a poor verb. "talk" is close to "speak" (0.43),
"mouth" less so (0.16), "address" hardly (0.02). Lemmas that are not among the 10 000 most frequent
words of GloVe's vocabulary (imbibe), or that only narrow the word down (political party), are left
aside; so are nouns of several words, which are definitions (eating house, married woman), and what
is less close than `LEAST_CLOSE`. The closest comes first; of two as close, the one that WordNet
names first.

`inflected` makes a form from a base form and a Penn Treebank tag: `("go", "VBD")` -> `went`.
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

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import ClassVar, Literal

from dialeval.augment.queries import Query, QueryVariant, normalised_query
from dialeval.errors import UsageError
from dialeval.lexicon import PartOfSpeech, Synset, load_wordnet
from dialeval.model_store.presets import model_option
from dialeval.models.tagger import Word, load_tagger
from dialeval.options import option

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


LEAST_CLOSE = 0.16
"""What is further away is another meaning more often than not: understand for see, law for
police, software for package. Found by reading what it lets through in everyday dialogues."""
SHORTEST = 3
"""Letters: what is shorter is an abbreviation (m for meter, mo for moment)."""


def released_synonym(word: str, pos: PartOfSpeech) -> str | None:
    """Returns what HolisticEval puts in the place of a word in lower case; None: the word stays."""
    for synset in load_wordnet().synsets(word, pos):
        if (head := synset.name.lower()) != word:
            return head
    return None


@lru_cache(maxsize=8192)
def near_synonyms(lemma: str, pos: PartOfSpeech) -> tuple[str, ...]:
    """Other lemmas that are close enough, the closest first, underscores kept."""
    closeness: dict[str, float] = {}
    for rank, synset in enumerate(load_wordnet().synsets(lemma, pos), start=1):
        others = [other for other in synset.lemmas if other.lower() != lemma]
        for place, other in enumerate(others, start=1):
            if _is_usable(other, lemma, pos):
                shared = _usualness(other, pos, synset) / (rank**3 * math.sqrt(place))
                closeness[other] = closeness.get(other, 0.0) + shared
    close = [other for other, value in closeness.items() if value >= LEAST_CLOSE]
    return tuple(sorted(close, key=lambda other: -closeness[other]))


def _usualness(other: str, pos: PartOfSpeech, synset: Synset) -> float:
    """Returns how usual a word this is for the synset: share / (j * 4 ** (words - 1))."""
    wordnet = load_wordnet()
    senses = [sense.number for sense in wordnet.synsets(other, pos)]
    share = len(senses) / len(wordnet.synsets(other))
    rank = senses.index(synset.number) + 1
    return share / (rank * 4.0 ** (len(_words(other)) - 1))


def _is_usable(other: str, lemma: str, pos: PartOfSpeech) -> bool:
    words = _words(other)
    if pos == "n" and len(words) > 1:
        return False
    return (
        lemma not in words
        and len(other) >= SHORTEST
        and all(word in _common_words() for word in words)
    )


def _words(lemma: str) -> list[str]:
    return lemma.replace("-", "_").split("_")


@cache
def _common_words() -> frozenset[str]:
    """Returns common words in lower case; names (Taiwan) and units (H2O) are none."""
    text = files("dialeval.augment").joinpath("common-words.txt").read_text(encoding="ascii")
    return frozenset(text.split())


Kind = Literal["verbs", "nouns", "modifiers"]
KINDS: dict[PartOfSpeech, Kind] = {"v": "verbs", "n": "nouns", "a": "modifiers", "r": "modifiers"}
HOWS = ("verbs", "nouns", "modifiers", "all")
LEAST = 3
"""The fewest variants of a query that a probe can compare."""

LEFT_ALONE = {
    "do", "get", "give", "have", "let", "make", "put", "take",  # their object has the meaning
    "as", "ever", "here", "how", "least", "less", "more", "most", "much", "many", "never", "not",
    "so", "then", "there", "too", "very", "well", "when", "where", "why", "but", "besides",
    "bit", "first", "last", "lot", "next", "one", "other", "own", "right", "same", "such", "thing",
    "going", "look", "matter", "used", "way",  # going to, have a look, what is the matter
    # WordNet's usual sense is not that of talk, or its synonyms take another object:
    "also", "appear", "appointment", "area", "believe", "bill", "business", "call", "can", "cent",
    "class", "come", "course", "day", "down", "draft", "easily", "evening", "favorite", "favourite",
    "flush", "foreign", "freeze", "girl", "go", "happen", "hope", "invite", "leave", "like", "live",
    "luck", "man", "mean", "meet", "minute", "name", "nice", "office", "out", "package", "person",
    "picture", "pity", "plan", "position", "press", "radio", "red", "report", "rest", "say", "see",
    "someone", "sorry", "stick", "still", "suit", "suppose", "tell", "test", "thank", "thanks",
    "today", "up", "view", "world",
}  # fmt: skip
"""Words that stay, and that take no other's place."""

LONGEST_ABBREVIATION = 3
"""Capital letters: TV, CD, FAQ."""

_CONTRACTION = re.compile(r"[\w]+\s?['’]\s?(?:t|s|m|d|ll|re|ve|em|clock)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\b([Aa])n?(\s+)$")
_VOWEL_SOUND = re.compile(r"(?!uni|use|usu|eu|one|once)[aeiou]|hour|honest|honou?r|heir", re.I)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `text[start:end]`."""

    start: int
    end: int
    new: str
    kind: Kind


@dataclass(frozen=True)
class WordNetSubstitution:
    """Replaces words by synonyms from WordNet."""

    name: ClassVar[str] = "ws"
    reads_all: ClassVar[bool] = False

    mode: Literal["readable", "paper", "released", "released-consistency"] = option(
        "readable",
        "readable: near synonyms; paper: the paper's rule; released: as in HolisticEval's WS.csv;"
        " released-consistency: as in its self-consistency set",
    )
    least: int = option(
        LEAST, "readable: fill up to this many variants with openings (Tell me, ...)", low=0, high=3
    )
    tagger: str = model_option("tagger", "the spaCy pipeline that tags parts of speech")

    def __post_init__(self) -> None:
        if self.mode != "readable" and self.least != LEAST:
            raise UsageError(f"augmenter 'ws': mode={self.mode} has no openings; leave out least")

    @property
    def keeps_repeats(self) -> bool:
        """The release has five lines for every query, changed or not."""
        return self.mode == "released"

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        texts = [query.query for query in queries]
        tagger = load_tagger(self.tagger)
        if self.mode in ("readable", "paper"):
            make = self._readable if self.mode == "readable" else _by_the_paper
            return [
                make(text, words)
                for text, words in zip(texts, tagger.tag_texts(texts), strict=True)
            ]
        cut = [released_words(text) for text in texts]
        tags = tagger.tag_words(cut)
        repeat = _as_released if self.mode == "released" else _as_released_for_consistency
        return [repeat(words, own) for words, own in zip(cut, tags, strict=True)]

    def _readable(self, text: str, words: Sequence[Word]) -> list[QueryVariant]:
        edits = readable_edits(text, words)
        made = _variants(text, edits)
        if len({edit.kind for edit in edits}) == 1:
            made[-1] = QueryVariant(apply(text, readable_edits(text, words, nearest=1)), "all")
        found = {variant.query for variant in made} - {text}
        names = [word.start for word in words if word.tag.startswith("NNP")]
        missing = max(0, self.least - len(found))
        return made + [QueryVariant(frame, "frame") for frame in framed(text, names)[:missing]]


def _variants(text: str, edits: Sequence[Edit], articles: bool = True) -> list[QueryVariant]:
    return [
        QueryVariant(
            apply(text, (edit for edit in edits if how in ("all", edit.kind)), articles), how
        )
        for how in HOWS
    ]


def _by_the_paper(text: str, words: Sequence[Word]) -> list[QueryVariant]:
    contracted = _contracted(text)
    edits = []
    for word in words:
        pos = released_part_of_speech(word.tag)
        if pos and contracted.isdisjoint(range(word.start, word.end)):
            new = released_synonym(word.text.lower(), pos)
            if new:
                put = _in_case_of(word.text, new.replace("_", " "))
                edits.append(Edit(word.start, word.end, put, KINDS[pos]))
    return _variants(text, edits, articles=False)


def _as_released(words: Sequence[str], tags: Sequence[str]) -> list[QueryVariant]:
    return _variants(" ".join(words), released_edits(words, tags), articles=False)


def _as_released_for_consistency(words: Sequence[str], tags: Sequence[str]) -> list[QueryVariant]:
    return [QueryVariant(released_paraphrase(words, tags), "one word")]


def released_words(text: str) -> list[str]:
    """Returns the text as the release has it: lower case, punctuation apart, contractions in one
    word."""
    return normalised_query(text).split()


def released_paraphrase(words: Sequence[str], tags: Sequence[str]) -> str:
    """Returns the words with one of them replaced, as in the self-consistency set, or as they are.

    The authors' tagger took "i" at the start of a query for a noun; no word in -ing was replaced.
    """
    seen: set[PartOfSpeech] = set()
    for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
        pos = released_part_of_speech("NN" if (place, word) == (0, "i") else tag)
        if pos is None or pos in seen or tag == "VBG":
            continue
        first = next(iter(load_wordnet().synsets(word)), None)
        if first is None or first.pos != pos:  # a satellite adjective ("s") is none of ours either
            continue
        seen.add(pos)
        if (head := first.name.lower()) != word:
            return " ".join((*words[:place], head.replace("_", " "), *words[place + 1 :]))
    return " ".join(words)


def released_edits(words: Sequence[str], tags: Sequence[str]) -> list[Edit]:
    """Edits of the words joined by single spaces."""
    edits, start = [], 0
    for word, tag in zip(words, tags, strict=True):
        pos = released_part_of_speech(tag)
        if pos and not re.search(r"['’]", word) and (new := released_synonym(word, pos)):
            edits.append(Edit(start, start + len(word), new, KINDS[pos]))
        start += len(word) + 1
    return edits


def released_part_of_speech(tag: str) -> PartOfSpeech | None:
    """No comparative or superlative is replaced anywhere in WS.csv."""
    if tag in ("JJ", "RB"):
        return "a" if tag == "JJ" else "r"
    return "v" if tag.startswith("VB") else "n" if tag.startswith("NN") else None


def readable_edits(text: str, words: Sequence[Word], nearest: int = 0) -> list[Edit]:
    """Returns what `mode=readable` replaces here: by the nearest synonyms, or (1) the next ones."""
    contracted = _contracted(text)
    edits = []
    for word in words:
        inside = not contracted.isdisjoint(range(word.start, word.end))
        pos = _readable_part_of_speech(word)
        if pos and not inside and (new := _replacement(word, pos, nearest)):
            edits.append(Edit(word.start, word.end, new, KINDS[pos]))
    return edits


def _contracted(text: str) -> set[int]:
    """Returns the places of letters that belong to a contraction."""
    return {at for match in _CONTRACTION.finditer(text) for at in range(*match.span())}


def _readable_part_of_speech(word: Word) -> PartOfSpeech | None:
    if word.auxiliary or word.particle or not word.text.isalpha():
        return None
    if word.text.isupper() and len(word.text) <= LONGEST_ABBREVIATION:
        return None
    if word.tag in ("NN", "NNS"):
        return "n"
    return {"VB": "v", "JJ": "a", "RB": "r"}.get(word.tag[:2])  # type: ignore[return-value]


def _replacement(word: Word, pos: PartOfSpeech, nearest: int) -> str | None:
    """Returns a synonym in the form and the case of the word; None: it stays."""
    lower = word.text.lower()
    forms = load_wordnet().lemma_forms(lower, pos)
    is_inflected = word.tag not in ("NN", "VB", "VBP", "JJ", "RB")
    # "found" is a word of its own, but as a past tense it is a form of "find".
    bases = [form for form in forms if form != lower] if is_inflected else []
    lemma = next(iter(bases or forms), None)
    if lemma is None or {lemma, lower} & LEFT_ALONE:
        return None
    synonyms = [other for other in near_synonyms(lemma, pos) if other not in LEFT_ALONE]
    inflected = [inflect(synonym, word.tag).replace("_", " ") for synonym in synonyms]
    others = [form for form in inflected if form != lower]
    return _in_case_of(word.text, others[nearest]) if len(others) > nearest else None


def _in_case_of(model: str, text: str) -> str:
    if model.isupper() and len(model) > 1:
        return text.upper()
    return text[0].upper() + text[1:] if model[0].isupper() else text


def apply(text: str, edits: Iterable[Edit], articles: bool = True) -> str:
    """Returns the text with the edits, which stand in its order, and with "a" or "an" to suit
    them."""
    pieces, place = [], 0
    for edit in edits:
        before = text[place : edit.start]
        if articles:
            n = "n" if _VOWEL_SOUND.match(edit.new) else ""
            before = _ARTICLE.sub(rf"\g<1>{n}\g<2>", before)
        pieces += [before, edit.new]
        place = edit.end
    return "".join((*pieces, text[place:]))
