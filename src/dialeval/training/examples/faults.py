"""Answers with faults, made from right ones: what `mme-fluency` and `judge` learn to see.

Fluency of MME-CRS, section 3.1 (FM), after USL-H's valid utterance prediction. A response stays
fluent (1) or is broken (0), one as often as the other:

    1   half of the time untouched, otherwise each stop word goes with probability .5
    0   one of three, equally often (USL-H: .3, .3, .4):
        shuffle   the words in another order
        drop      u ~ U(0, .5), each word goes with probability u; at least one goes and one stays
        repeat    after each word, with probability .1, the last m <= 3 words (.7, .2, .1) are said
                  t times more (1, 2, 3: .8, .15, .05); at least once in the text

What the paper leaves open (x % to drop, spans to repeat) is USL-H's. Below 3 words nothing can be
broken: such a response is always fluent. A broken one never equals the original, letter case aside.

A word is a run of letters and digits, joined inside by apostrophes and hyphens (`don't`,
`well-off`); a run of one punctuation mark (`...`, `!`) is a word of its own. A word keeps whether a
space stood before it, wherever it goes: a comma stays attached to whatever comes before it. A space
is put in only where words would become another one, so `join` gives a text of the same words.

Faults that `judge` learns to see. Each takes a dialogue (the turns before, the answer that was
given) and gives a bad answer to the same turns, or None where it cannot be made. It says which
aspects of the answer are bad, and how surely a person would prefer the right answer:

    off-topic       somebody's answer to something else, or another turn of the same dialogue
    parrot          the last turn given back, word for word or nearly
    repeats         its own earlier turn again, or one phrase over and over
    wrong-detail    another number or name than the one that was said
    negated         the right answer with its main verb negated, or no longer negated
    ungrammatical   agreement, articles, tense and word order broken
    word-salad      words in no order
    dull, evasive, rude, foreign    stock answers (`stock_answers/*.txt`, written for this)

The faults that people write themselves (DailyDialog++, DECODE) come from `examples/judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from dialeval.augment import eda
from dialeval.text import STOP_WORDS, letters_and_digits

FEWEST_WORDS = 3
SHUFFLE_DROP_REPEAT = (1 / 3, 1 / 3, 1 / 3)
SHUFFLE_DROP_REPEAT_USL_H = (0.3, 0.3, 0.4)

STOPWORDS: frozenset[str] = frozenset(eda.STOP_WORDS) | {
    "you're", "you've", "you'll", "you'd", "she's", "it's", "that'll", "don't", "should've", "d",
    "ll", "m", "o", "re", "ve", "y", "ain", "aren", "aren't", "couldn", "couldn't", "didn",
    "didn't", "doesn", "doesn't", "hadn", "hadn't", "hasn", "hasn't", "haven", "haven't", "isn",
    "isn't", "ma", "mightn", "mightn't", "mustn", "mustn't", "needn", "needn't", "shan", "shan't",
    "shouldn", "shouldn't", "wasn", "wasn't", "weren", "weren't", "won", "won't", "wouldn",
    "wouldn't",
}  # fmt: skip
"""MME-CRS names no list of the stop words that it drops: this is NLTK's English one, 179 words.
EDA's authors took over its first 127; contractions, and the pieces that a tokeniser leaves of them,
were added later."""

_WORD = re.compile(r"\w+(?:['’-]\w+)*|([^\w\s])\1*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a punctuation mark, and whether it stood right after the one before."""

    text: str
    attached: bool = False


Words = tuple[Word, ...]


def fluency_example(
    text: str,
    generator: np.random.Generator,
    stopwords: frozenset[str],
    *,
    mix: tuple[float, float, float] = SHUFFLE_DROP_REPEAT,
) -> tuple[str, int]:
    """Returns the text, or a changed one, and its label: 1 fluent, 0 broken.

    `mix` says how often a broken text is shuffled, loses words, and repeats some.
    """
    words = words_of(text)
    if generator.random() < 0.5 or len(words) < FEWEST_WORDS:
        return (text if generator.random() < 0.5 else drop_stopwords(text, generator, stopwords)), 1
    shares = np.array(mix)
    if len(set(_spoken(words))) == 1:
        shares = np.array((0, 1, 1))  # the same word again and again has one order only
    rules: tuple[Rule, ...] = (shuffle_words, drop_words, repeat_words)
    return join(rules[generator.choice(3, p=shares / shares.sum())](words, generator)), 0


def drop_stopwords(
    text: str, generator: np.random.Generator, stopwords: frozenset[str], p: float = 0.5
) -> str:
    """Each stop word goes with probability p; a text that would lose its last word stays."""
    words = words_of(text)
    going = generator.random(len(words)) < p
    kept = tuple(
        word
        for word, goes in zip(words, going.tolist(), strict=True)
        if not (goes and word.text.lower().replace("’", "'") in stopwords)
    )
    if len(kept) == len(words) or not any(word.text[0].isalnum() for word in kept):
        return text
    return join(kept)


Rule = Callable[[Words, np.random.Generator], Words]


def shuffle_words(words: Words, generator: np.random.Generator) -> Words:
    """Another order of the words, at least two of which must differ."""
    while True:
        shuffled = tuple(words[place] for place in generator.permutation(len(words)).tolist())
        if _spoken(shuffled) != _spoken(words):
            return shuffled


def drop_words(words: Words, generator: np.random.Generator) -> Words:
    """Fewer words in the same order, of two or more."""
    while True:
        stays = generator.random(len(words)) >= generator.uniform(0, 0.5)
        if stays.any() and not stays.all():
            return tuple(word for word, kept in zip(words, stays.tolist(), strict=True) if kept)


def repeat_words(words: Words, generator: np.random.Generator) -> Words:
    """Stutters: spans of up to three words that are said again."""
    said: list[Word] = []
    while len(said) <= len(words):
        said = []
        for place, word in enumerate(words, 1):
            said.append(word)
            if generator.random() < 0.1:
                span = generator.choice((1, 2, 3), p=(0.7, 0.2, 0.1))
                times = generator.choice((1, 2, 3), p=(0.8, 0.15, 0.05))
                said.extend(words[max(0, place - span) : place] * int(times))
    return tuple(said)


def words_of(text: str) -> Words:
    return tuple(
        Word(found[0], attached=found.start() > 0 and not text[found.start() - 1].isspace())
        for found in _WORD.finditer(text)
    )


def join(words: Sequence[Word]) -> str:
    """Joins words to a text, of which `words_of` makes the same words."""
    pieces: list[str] = []
    attached: list[str] = []  # the words before that no space parts from this one
    for word in words:
        close = [*attached[-2:], word.text]  # no more than three can become one: `well - off`
        if attached and word.attached and _texts("".join(close)) == close:
            attached.append(word.text)
        else:
            attached = [word.text]
            pieces.append(" ")
        pieces.append(word.text)
    return "".join(pieces[1:])


def _texts(text: str) -> list[str]:
    return [found[0] for found in _WORD.finditer(text)]


def _spoken(words: Words) -> list[str]:
    return [word.text.lower() for word in words]


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A bad answer: what is bad about it, and the probability that people prefer the right one."""

    response: str
    bad: frozenset[str]
    preferred: float = 0.97


@dataclass(frozen=True, slots=True)
class Exchange:
    """The turns before an answer (the last one is by the other speaker), the answer, and turns of
    the same dialogue that come after it."""

    turns: tuple[str, ...]
    response: str
    later: tuple[str, ...] = ()


Others = Sequence[str]
"""Answers to other turns, to draw from."""

Fault = Callable[[Exchange, Others, np.random.Generator], "Spoiled | None"]


def off_topic(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    """Returns an answer to something else. Half of the time the one of twenty that shares most
    words with the dialogue: sharing words is not yet an answer."""
    if generator.random() < 0.5:
        return Spoiled(_draw(others, generator), frozenset({"relevance"}))
    said = _content(" ".join((*exchange.turns[-3:], exchange.response)))
    drawn = [_draw(others, generator) for _ in range(20)]
    best = max(drawn, key=lambda text: len(_content(text) & said) / (3 + len(_content(text))))
    return Spoiled(best, frozenset({"relevance"}), 0.93)


def other_turn(
    exchange: Exchange, others: Others, generator: np.random.Generator
) -> Spoiled | None:
    """Returns a turn of the same dialogue that does not belong here."""
    turns = [*exchange.turns[:-1], *exchange.later[1:]]
    turns = [
        turn for turn in turns if letters_and_digits(turn) != letters_and_digits(exchange.response)
    ]
    if not turns:
        return None
    return Spoiled(_draw(turns, generator), frozenset({"relevance"}), 0.9)


def parrot(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    """Returns the other speaker's words: whole, with the pronouns turned round, or most of them."""
    last = exchange.turns[-1]
    words = last.split()
    if len(words) < 3:
        return None
    way = generator.integers(5)
    if way == 0:
        text = _turned_round(last)
    elif way == 1:
        text = " ".join(words[: max(3, int(len(words) * generator.uniform(0.6, 1)))])
    elif way == 2:
        text = f"{_draw(_LEAD_INS, generator)} {last}"
    else:
        text = last
    return Spoiled(text, frozenset({"novelty", "engagement"}), 0.96)


def repeats(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    """Its own earlier turn again, or a phrase of the answer over and over."""
    own = [turn for turn in exchange.turns[-2::-2] if len(turn.split()) > 3]
    if own and generator.random() < 0.6:
        text = own[0] if generator.random() < 0.6 else _draw(own, generator)
        if generator.random() < 0.3:
            text = f"{text} {_first_sentence(exchange.response)}"
        return Spoiled(text, frozenset({"novelty"}), 0.95)
    words = exchange.response.split()
    if len(words) < 3:
        return None
    span = int(generator.integers(2, min(12, len(words)) + 1))
    start = int(generator.integers(0, len(words) - span + 1))
    times = int(generator.integers(2, 5))
    phrase = words[start : start + span]
    text = " ".join(words[: start + span] + phrase * (times - 1) + words[start + span :])
    return Spoiled(text, frozenset({"novelty", "fluency"}), 0.95)


def wrong_detail(
    exchange: Exchange, others: Others, generator: np.random.Generator
) -> Spoiled | None:
    """Another number or name in place of one that the dialogue mentions."""
    said = set(re.findall(r"[a-z0-9]+", " ".join(exchange.turns).lower()))
    found = [
        match
        for match in re.finditer(r"\b(?:\d[\d,.:]*|[A-Z][a-z]{2,}|[a-z]+)\b", exchange.response)
        if _is_detail(match[0]) and match[0].lower().strip(".,:") in said
    ]
    if not found:
        return None
    match = found[int(generator.integers(len(found)))]
    other = _other_detail(match[0], generator)
    text = exchange.response[: match.start()] + other + exchange.response[match.end() :]
    return Spoiled(text, frozenset({"consistency"}), 0.9)


def negated(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    """Returns an answer that says the contrary of the right one."""
    found = list(_NEGATED.finditer(exchange.response))
    if found:
        match = found[int(generator.integers(len(found)))]
        text = (
            exchange.response[: match.start()]
            + _NEGATIONS[match[0].lower()]
            + exchange.response[match.end() :]
        )
        return Spoiled(text, frozenset({"consistency"}), 0.75)
    found = list(_PLAIN.finditer(exchange.response))
    if not found:
        return None
    match = found[int(generator.integers(len(found)))]
    text = f"{exchange.response[: match.end()]} not{exchange.response[match.end() :]}"
    return Spoiled(text, frozenset({"consistency"}), 0.75)


def ungrammatical(
    exchange: Exchange, others: Others, generator: np.random.Generator
) -> Spoiled | None:
    """Three slips in a text of twelve words, more in a longer one."""
    words = exchange.response.split()
    if len(words) < 4:
        return None
    before = list(words)
    for _ in range(max(2, len(words) // 4)):
        words = _slip(words, generator)
    if words == before:
        return None
    return Spoiled(" ".join(words), frozenset({"fluency"}), 0.93)


def word_salad(
    exchange: Exchange, others: Others, generator: np.random.Generator
) -> Spoiled | None:
    """Returns the words of the answer, or of several, in no order; words lost; words stuttered."""
    way = generator.integers(4)
    source = exchange.response
    if way == 1:
        source = f"{exchange.response} {_draw(others, generator)}"
    words = words_of(source)
    if len(words) < 4 or len({word.text.lower() for word in words}) < 3:
        return None
    if way < 2:
        mixed = shuffle_words(words, generator)[: max(4, len(exchange.response.split()))]
    else:
        mixed = drop_words(words, generator) if way == 2 else repeat_words(words, generator)
        if way == 2 and len(mixed) > len(words) * 0.8:
            mixed = shuffle_words(words, generator)
    return Spoiled(join(mixed), frozenset({"fluency"}), 0.97)


def dull(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    return Spoiled(_stock("dull", generator), frozenset({"engagement"}), 0.85)


def evasive(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    return Spoiled(_stock("evasive", generator), frozenset({"engagement", "relevance"}), 0.9)


def rude(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    """Returns an insult, alone or beside the right answer."""
    insult = _stock("rude", generator)
    if generator.random() < 0.6:
        own = _first_sentence(exchange.response)
        insult = f"{insult}. {own}" if generator.random() < 0.5 else f"{own} {insult}"
    return Spoiled(insult, frozenset({"politeness"}), 0.95)


def foreign(exchange: Exchange, others: Others, generator: np.random.Generator) -> Spoiled | None:
    return Spoiled(_stock("foreign", generator), frozenset({"fluency"}), 0.95)


FAULTS: dict[str, tuple[Fault, float]] = {
    "off-topic": (off_topic, 5.0),
    "other-turn": (other_turn, 2.0),
    "parrot": (parrot, 1.3),
    "repeats": (repeats, 1.3),
    "wrong-detail": (wrong_detail, 1.5),
    "negated": (negated, 0.7),
    "ungrammatical": (ungrammatical, 1.5),
    "word-salad": (word_salad, 1.0),
    "dull": (dull, 1.2),
    "evasive": (evasive, 0.7),
    "rude": (rude, 0.7),
    "foreign": (foreign, 0.4),
}
"""Name -> how it is made, and how often: relevance is most of what people judge by."""


def spoil(
    exchange: Exchange, others: Others, generator: np.random.Generator, number: int
) -> list[Spoiled]:
    """So many bad answers of different kinds, none equal to the right one."""
    names = list(FAULTS)
    shares = np.array([share for _, share in FAULTS.values()])
    order = generator.choice(len(names), size=len(names), replace=False, p=shares / shares.sum())
    found: list[Spoiled] = []
    for place in order.tolist():
        spoiled = FAULTS[names[place]][0](exchange, others, generator)
        if spoiled is not None and letters_and_digits(spoiled.response) != letters_and_digits(
            exchange.response
        ):
            found.append(spoiled)
        if len(found) == number:
            break
    return found


_LEAD_INS = ("oh,", "so", "yeah,", "well,", "hm,", "okay,", "you said")
_TURNS = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "am": "are", "i'm": "you're",
    "i've": "you've", "i'd": "you'd", "i'll": "you'll", "you": "i", "your": "my",
    "yours": "mine", "you're": "i'm", "you've": "i've", "you'd": "i'd", "you'll": "i'll",
}  # fmt: skip

_NEGATIONS = {
    "don't": "do", "doesn't": "does", "didn't": "did", "isn't": "is", "aren't": "are",
    "wasn't": "was", "weren't": "were", "can't": "can", "won't": "will", "haven't": "have",
    "hasn't": "has", "couldn't": "could", "wouldn't": "would", "never": "always", "not": "",
    "no": "yes", "yes": "no", "always": "never", "love": "hate", "hate": "love", "like": "dislike",
    "nothing": "everything", "none": "all", "good": "bad", "bad": "good",
}  # fmt: skip
_NEGATED = re.compile(rf"\b(?:{'|'.join(_NEGATIONS)})\b", re.IGNORECASE)
_PLAIN = re.compile(
    r"\b(?:am|is|are|was|were|do|does|did|can|could|will|would|have|has|i'm|it's|that's|they're)\b",
    re.IGNORECASE,
)

_SLIPS = {
    "is": "are", "are": "is", "was": "were", "were": "was", "have": "has", "has": "have",
    "do": "does", "does": "do", "i": "me", "me": "i", "he": "him", "she": "her", "they": "them",
    "my": "me", "your": "you", "a": "an", "an": "a", "to": "for", "in": "on", "on": "at",
    "at": "in", "this": "these", "these": "this", "that": "those", "much": "many", "many": "much",
    "am": "is", "i'm": "i", "it's": "it", "going": "go", "went": "goed", "better": "more good",
    "been": "be", "can": "cans", "would": "will", "who": "which", "their": "they",
}  # fmt: skip
_SMALL = frozenset(
    re.findall(r"\w+", "a an the to of is are was were am be been i you it that and for in on")
)


def _is_detail(word: str) -> bool:
    return word[0].isdigit() or any(word.lower() in group for group in _details())


def _other_detail(word: str, generator: np.random.Generator) -> str:
    if word[0].isdigit():
        digits = [c for c in word if c.isdigit()]
        while True:
            changed = "".join(
                str(generator.integers(1 if place == 0 else 0, 10)) if c.isdigit() else c
                for place, c in enumerate(word)
            )
            if [c for c in changed if c.isdigit()] != digits:
                return changed
    group = next(group for group in _details() if word.lower() in group)
    other = _draw([entry for entry in group if entry != word.lower()], generator)
    return other.capitalize() if word[0].isupper() else other


def _slip(words: list[str], generator: np.random.Generator) -> list[str]:
    place = int(generator.integers(len(words)))
    word = words[place]
    way = generator.integers(5)
    if word.lower() in _SLIPS and way < 3:
        return [*words[:place], _SLIPS[word.lower()], *words[place + 1 :]]
    if word.lower() in _SMALL:
        return [*words[:place], *words[place + 1 :]]
    if way == 0 and place + 1 < len(words):
        return [*words[:place], words[place + 1], word, *words[place + 2 :]]
    if way == 1 and word.endswith(("ing", "ed")) and len(word) > 5:
        return [*words[:place], re.sub(r"(ing|ed)$", "", word), *words[place + 1 :]]
    if way == 2 and word.isalpha() and len(word) > 3:
        other = word[:-1] if word.endswith("s") else f"{word}s"
        return [*words[:place], other, *words[place + 1 :]]
    return words


def _turned_round(text: str) -> str:
    return " ".join(_TURNS.get(word.lower(), word) for word in text.split())


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


def _content(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9']+", text.lower())) - STOP_WORDS


def _draw(texts: Sequence[str], generator: np.random.Generator) -> str:
    return texts[int(generator.integers(len(texts)))]


def _stock(name: str, generator: np.random.Generator) -> str:
    """Returns one stock answer, or two of them in a row."""
    first = _draw(_stock_answers(name), generator)
    if generator.random() < 0.25:
        return f"{first}. {_draw(_stock_answers(name), generator)}"
    return first


@cache
def _stock_answers(name: str) -> tuple[str, ...]:
    place = files("dialeval.training.examples") / "stock_answers" / f"{name}.txt"
    return tuple(place.read_text(encoding="utf-8").splitlines())


@cache
def _details() -> tuple[tuple[str, ...], ...]:
    """Groups of words of which one can stand for another: numbers, days, colours, names, ..."""
    return tuple(tuple(line.split()) for line in _stock_answers("details"))
