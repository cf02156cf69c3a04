"""Words: how texts are cut into them, edited and compared.

`treebank_words` are words in the manner of the Penn Treebank, as in the text that GloVe was trained
on: punctuation stands alone, `don't` is `do` `n't`, `it's` is `it` `'s`, while `u.s.`, `3.14` and
`well-known` are one word.

Chinese and Japanese have no spaces between words: each of their characters counts as one.

Metrics that look words up in a table need real ones: `runs_together` says whether a text has to be
cut into them first.

Which language is a text written in? Enough of it to say where a model is out of its depth.

A model that has read English gives a Chinese answer a score too, and the score means nothing. So
models declare their languages (`model_store/catalogue.py`), metrics whose rules are made for one
declare it (`Metric.languages`), and the engine puts a note beside the score of a text in another.

    another script    more than half of the letters: Chinese, Japanese, Korean, Cyrillic, ...
    Latin letters     function words: German, French, Spanish, Italian, Portuguese, Dutch

A text in Latin letters is in one of those six languages if at least two different function words of
it occur, at least one word in five is one, and twice as many as are English function words. What is
too short to tell, or is in a language without a list, is in none, and gets no note.

Of 56,364 different texts in the rated English sets of DSTC10, FED, USR, HolisticEval and
PredictiveEngage one is taken for another language ("σ o σ"). Of 53,633 in DSTC9 there are 79, and
they are in it: people try the bots with "Ich spreche auch Deutsch!". Of 3,000 messages of computer
programs with at least five words, translated into one of the six languages, 50 (Dutch) to 70
(German) of 100 are found; whole sentences of a dialogue more often.

Dialogue text is written by strangers: what a terminal and a spreadsheet must not run.

A terminal obeys control characters, so `clean` replaces them. A spreadsheet runs a cell that begins
with `=`, `+`, `-` or `@` as a formula, so `neutralise` writes a leading apostrophe, which
spreadsheets hide. Names join tables: `restored` takes the apostrophe off again.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Chinese characters, as the inside of a character class."""

_LETTERS = rf"[^\W{UNSPACED}]+"

WORD = re.compile(rf"(?=\w)[{UNSPACED}]|{_LETTERS}(?:['’-]{_LETTERS})*")

ALONE = UNSPACED + r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""These, and Thai, Lao, Burmese and Khmer: scripts whose characters are compared one by one."""

LETTERS = rf"(?:[^\W_{ALONE}]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff])+"
"""Letters and digits of all other scripts, with the marks that Python does not count as letters:
accents that stand by themselves, Hebrew and Arabic points, Indic vowels."""

_UNSPACED = re.compile(f"[{UNSPACED}]")


def is_unspaced(word: str) -> bool:
    """Returns whether the word, one of `WORD`, stands beside others without a space."""
    return _UNSPACED.match(word) is not None


TREEBANK = re.compile(
    r"""
      \w+? (?= n't\b )                         # do | n't
    | n't\b
    | ' (?: s | m | d | re | ve | ll )\b       # it | 's
    | (?: [^\W\d_] \. ){2,}                   # u.s.
    | \w+ (?: - \w+ | (?<=\d) [.,] \d+ )*     # well-known, 5,000
    | [^\w\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)


def treebank_words(text: str) -> list[str]:
    """Returns the words of a text in their order; a curly apostrophe is an apostrophe."""
    return TREEBANK.findall(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


LONGEST_WORD = 4
"""Characters of a Chinese word, few idioms aside: a longer run of them is a text without spaces."""

_RUN = re.compile(f"[{UNSPACED}]{{{LONGEST_WORD + 1}}}")

RUNS_TOGETHER = "no spaces between the words of a Chinese or Japanese text"


def runs_together(*texts: str) -> bool:
    """Returns whether one of the texts is in Chinese or Japanese, with its words run together."""
    return any(
        not text.isascii() and _RUN.search(text) is not None and language_of(text) in ("zh", "ja")
        for text in texts
    )


STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the a an and or but of to in on at for with is are was were be been am do does did have"
        " has had i you he she it we they me my your his her its our their this that so not no yes"
        " what how when where who why can will would could should just about very really oh well"
        " yeah",
    )
)
"""English words that say little by themselves."""


def lower_words(text: str) -> list[str]:
    """Returns the words of a text in lower case, `don't` being one of them."""
    return re.findall(r"\w+(?:['’]\w+)*", text.lower())


def content_words(text: str) -> set[str]:
    """Returns the different words of a text that are no stop words."""
    return set(lower_words(text)) - STOP_WORDS


_NUMBERS = frozenset(
    re.findall(
        r"\w+",
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
        " hundred thousand monday tuesday wednesday thursday friday saturday sunday january"
        " february march april june july august september october november december",
    )
)
_DETAIL = re.compile(r"[^\W\d_]*\d[\w-]*|[^\W\d_]+")


def details(text: str) -> set[str]:
    """Returns the numbers, days, months and names of an English text, in lower case.

    A name is a word with a capital that does not begin a sentence.
    """
    found = set()
    for sentence in re.split(r"(?<=[.!?])\s+|\n", text):
        for place, word in enumerate(_DETAIL.findall(sentence)):
            lower = word.lower()
            is_name = place > 0 and word[0].isupper() and lower not in STOP_WORDS
            if is_name or lower in _NUMBERS or any(sign.isdigit() for sign in word):
                found.add(lower)
    return found


def words_and_numbers(text: str) -> set[str]:
    """What a detail of another text may be found in."""
    return {word.lower() for word in _DETAIL.findall(text)}


_OTHER_PERSON = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "am": "are",
    "i'm": "you're", "i've": "you've", "i'd": "you'd", "i'll": "you'll",
    "you": "I", "your": "my", "yours": "mine", "yourself": "myself",
    "you're": "I'm", "you've": "I've", "you'd": "I'd", "you'll": "I'll",
}  # fmt: skip
_VERB_OF_OTHER = {("you", "are"): "am", ("you", "were"): "was", ("i", "was"): "were"}
_BEFORE_SUBJECT = frozenset(
    re.findall(
        r"[\w']+",
        "and because but do does don't did didn't are aren't were have haven't had can can't could"
        " would will should may might must shall if that then so when where while what which who"
        " why how as than before after until since though think hope know believe guess",
    )
)
_AFTER_SUBJECT = frozenset(
    re.findall(
        r"[\w']+",
        "are aren't were weren't have haven't had hadn't do don't did didn't can can't cannot could"
        " couldn't would wouldn't will won't should may might must said say know think want like"
        " love hate live work need never always really also",
    )
)


def swap_persons(text: str) -> str:
    """Returns an English text as the other speaker would put it: `I am` becomes `you are`."""
    pieces = re.findall(r"[A-Za-z'’]+|[^A-Za-z'’]+", text)
    words = [piece.lower().replace("’", "'") if piece[0].isalpha() else "" for piece in pieces]
    swapped, before = [], ""
    for place, (piece, word) in enumerate(zip(pieces, words, strict=True)):
        after = next(filter(None, words[place + 1 :]), "")
        subject = not before or before in _BEFORE_SUBJECT or after in _AFTER_SUBJECT
        if word == "you" and not subject:
            swapped.append("me")
        else:
            swapped.append(_VERB_OF_OTHER.get((before, word)) or _OTHER_PERSON.get(word) or piece)
        before = word or ("" if any(mark in piece for mark in ".!?,;:") else before)
    return "".join(swapped)


_FUNCTION_WORDS = """
a an the this that these those some any no none each every either neither both all half such
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves one ones oneself
who whom whose which what whatever whichever whoever someone somebody something anyone anybody
anything everyone everybody everything nobody nothing other others another
and or but nor so yet for if unless until till while whereas because since although though
whether than as lest once
about above across after against along amid among around at before behind below beneath beside
besides between beyond by despite down during except from in inside into like near of off on
onto out outside over past per through throughout to toward towards under underneath up upon
via with within without
be am is are was were been being have has had having do does did done doing
can could may might must shall should will would ought need dare cannot
not n't 's 'm 'd 're 've 'll ca wo ai gonna gotta wanna
here there where when why how then now thus hence ever never always just only also too very
quite rather almost even still already again away back else maybe perhaps really however
yes yeah yep nope ok okay oh ah uh um hmm hey hi hello bye please well wow ha haha
much many more most few fewer less least several enough own same
mr mrs ms dr st etc
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that no topic is made of: English words of the closed classes, and their contractions.

WordNet holds only nouns, verbs, adjectives and adverbs, and so it takes `in` for indium, `he` for
helium and `it` for a business. Code that asks it for a part of speech leaves these out first.
"""


NAMES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "zh": "Chinese",
    "ja": "Japanese",
    "ko": "Korean",
    "th": "Thai",
    "el": "Greek",
    "he": "Hebrew",
    "hy": "Armenian",
    "ka": "Georgian",
    "cyrillic": "Cyrillic",
    "arabic": "Arabic",
    "indic": "Indic",
    "southeast-asian": "Southeast Asian",
}
"""What `language_of` says -> how a note says it. Several languages share the last four scripts."""

_SCRIPTS = {
    "kana": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "han": "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "cyrillic": "\u0400-\u052f",
    "arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "indic": "\u0900-\u0dff",
    "th": "\u0e00-\u0e7f",
    "southeast-asian": "\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
}
_FOREIGN = re.compile("|".join(f"(?P<{n.replace('-', '_')}>[{c}])" for n, c in _SCRIPTS.items()))
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"\S+://\S+|www\.\S+|\S+@\S+")

UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "southeast-asian"})
"""No spaces between words."""

_TELLING_WORDS = {
    "de": """der das dem des ein eine einen einem einer eines und oder aber ich du er sie wir ihr
        mich dich sich mir dir ihm ihn ihnen uns euch mein meine meinen dein deine sein seine
        seinen unser ihre ihren ist sind bist seid waren wird werden wurde habe haben hast kann
        kannst können könnte muss möchte soll nicht kein keine keinen auch noch schon nur sehr mehr
        immer wieder hier dort jetzt dann wenn weil dass ob als wie wo warum wer was für mit von
        vom zu zum zur bei beim aus auf über unter nach vor durch ohne gegen um im am ins es ja
        nein bitte danke heute gut diese dieser dieses diesen alle alles etwas nichts""",
    "fr": """le la les un une des du de et ou mais je tu il elle nous vous ils elles me te se moi
        toi lui leur mon ma mes ta tes sa ses notre votre vos ce cet cette ces ça cela qui que quoi
        dont où est es sont suis êtes sommes était être avoir ai as avez avons ont fait peut ne pas
        jamais rien plus très aussi bien oui dans sur sous avec sans pour par chez vers entre si
        quand comment pourquoi comme parce donc alors ici en au aux merci bonjour tout tous toute
        qu il n'est c'est y sera même""",
    "es": """el la los las un una unos unas de del y o pero yo tú él ella nosotros ustedes usted
        ellos ellas me te se lo le les nos mi mis tu tus su sus este esta esto estos estas ese esa
        eso que qué quién cuál cuándo cómo como dónde donde porque por para con sin en a al desde
        hasta entre sobre es son soy eres está están estoy estás era ser estar hay ha han he tengo
        tiene puede puedo quiero hacer no ni sí si muy más menos también ya aquí ahora todo todos
        nada algo gracias hola bien cuando pues""",
    "it": """il lo la gli le un uno una di del della dello dei degli delle e o ma io tu lui lei noi
        voi loro mi ti si ci vi me te mio mia tuo tua suo sua questo questa questi quello quella che
        chi cosa come dove quando perché per con da dal dalla in nel nella su sul sulla tra fra è
        sono sei siamo era essere ho hai ha abbiamo hanno fare posso puoi può vorrei non più molto
        anche già ancora qui adesso sì no grazie ciao bene se al alla ai alle tutto niente""",
    "pt": """o os a as um uma uns umas de do da dos das e ou mas eu tu ele ela nós vocês você eles
        elas me te se lhe meu minha teu tua seu sua este esta isto esse essa isso que quem qual
        quando como onde porque por para com sem em no na nos nas ao à até entre sobre é são sou
        está estão estou era ser estar tem tenho há foi pode posso quero fazer não nem sim muito
        mais também já aqui agora tudo nada obrigado obrigada olá bem pelo pela num""",
    "nl": """het een en of maar ik jij je u hij zij ze wij we jullie mij me jou hem haar ons hun
        mijn jouw zijn onze deze dit die dat wie wat waar wanneer waarom hoe niet geen nog al ook
        wel heel zeer meer is ben bent was waren wordt worden heb hebt heeft hebben had kan kunt
        kunnen moet moeten wil zal zou gaan gaat doen voor met van naar bij uit op om te aan door
        over onder zonder tot als dan omdat want hier daar nu ja nee dank bedankt goed graag er""",
}
"""The frequent ones, after the stop word lists of Snowball (BSD licence). Some are English words as
well: those count neither for one nor for the other."""

_ALSO_ENGLISH = """
a ai al an as ben comment dan den des die do door e em en era es et fait fare had han has hat hay he
hem her his hoe hun i in is je lo los man me men mi na nada no nos nu o of om on or os over per plus
pour sa ses si sin so sobre son sou sua sur ten tot tous um van vi want war was wel will y
"""


def language_of(text: str) -> str:
    """Returns one of `NAMES`, or nothing: too short to tell, or a language without a list."""
    if text.isascii():
        return _latin(text)
    counts = dict.fromkeys(_SCRIPTS, 0)
    for match in _FOREIGN.finditer(text):
        counts[(match.lastgroup or "").replace("_", "-")] += 1
    foreign = sum(counts.values())
    if foreign < 2 or 2 * foreign <= sum(1 for _ in _LETTER.finditer(text)):
        return _latin(text)
    # Japanese is written with both; a Chinese text has no kana.
    kana, han = counts.pop("kana"), counts.pop("han")
    counts |= {"ja": kana + han, "zh": 0} if kana else {"zh": han}
    return max(counts, key=lambda script: counts[script])


def _latin(text: str) -> str:
    words = _WORD.findall(_ADDRESS.sub(" ", text.lower()))
    if len(words) < 3:
        return ""
    others = _telling_words()
    found = {name: [word for word in words if word in own] for name, own in others.items()}
    hits = max(len(own) for own in found.values())
    if hits < 2 or 5 * hits < len(words):
        return ""
    # What several languages have in common tells less of them apart.
    weights = {n: sum(1 / _shared_by()[word] for word in own) for n, own in found.items()}
    best = max(found, key=lambda name: weights[name])
    hits = len(found[best])
    in_english = sum(word in FUNCTION_WORDS and word not in _words_of(best) for word in words)
    clear = len(set(found[best])) >= 2 and 5 * hits >= len(words) and hits >= 2 * in_english
    return best if clear else ""


@cache
def _words_of(language: str) -> frozenset[str]:
    return frozenset(_TELLING_WORDS[language].split())


@cache
def _telling_words() -> dict[str, frozenset[str]]:
    """Returns the function words of each language that are no English words."""
    english = FUNCTION_WORDS | frozenset(_ALSO_ENGLISH.split())
    return {name: _words_of(name) - english for name in _TELLING_WORDS}


@cache
def _shared_by() -> dict[str, int]:
    """Word -> in how many of the lists it is."""
    return Counter(word for own in _telling_words().values() for word in own)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def neutralise(text: str) -> str:
    """Returns the text as a cell that is shown and never run; `restored` undoes it."""
    return "'" + text if text.lstrip("'").startswith(FORMULA_STARTS) else text


def restored(cell: str) -> str:
    """Returns the name that `neutralise` made this cell of."""
    is_protected = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_STARTS)
    return cell[1:] if is_protected else cell


def clean(text: str) -> str:
    """Returns the text without anything that could move the cursor, hide or reorder what is shown.

    Control characters and invisible format characters (bidi marks, zero-width joins, tags) become
    U+FFFD, so that people see that something was there. Line breaks become spaces.
    """
    return "".join(
        " " if char in "\n\r\t" else "\ufffd" if _is_unsafe(char) else char for char in text
    )


def _is_unsafe(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def letters_and_digits(text: str) -> str:
    """Letters and digits alone, without case: copies of a text differ in the rest."""
    return "".join(filter(str.isalnum, text.casefold()))
