"""`flags`: does the answer refuse, leak a prompt, switch the language, break off, or insult?

    flags = number of the faults below that the answer has        0: none was found; lower is better

    refusal        it declines as language models do: "I'm sorry, but I can't assist with that"
    leaked-prompt  it shows instructions or speaks as a model: "You are a helpful assistant", "As an
                   AI language model", tokens of a chat template, or eight words in a row of an
                   instruction among the facts (`--system-prompt facts` puts it there)
    other-language it is in another language or script than the conversation (`text.py`),
                   unless the last turn names that language: "How do you say it in French?"
    empty          it says nothing, or holds a placeholder such as "null" or "[object Object]"
    cut-off        it ends on a word that ends no sentence ("because the"), on a comma after eight
                   words or more, or within a code block
    rude           it insults: strong words, or mild ones that are said of "you"

These are rules, not a model: they take no time and need no server. They find what is written in the
usual words, and nothing that is meant but not said. Refusals, prompts, ends and insults are found
in English only. A short answer with a foreign phrase ("C'est la vie.") counts as another language.
`judge` rates politeness and language by a model; it knows neither refusals nor prompts.

`scripts/measure_flags.py` counts the flags on answers that people wrote; docs/decide.md has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dialeval.metric import Metric, Part
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import FUNCTION_WORDS, NAMES, language_of

FAULTS = {
    "refusal": "refuses",
    "leaked-prompt": "shows its instructions or speaks as a model",
    "other-language": "is in another language than the conversation",
    "empty": "is empty",
    "cut-off": "breaks off",
    "rude": "insults",
}
"""Part -> what is said of an answer with this fault."""

_REFUSAL = re.compile(
    r"\bI(?:'m| am) (?:very |really |so )?(?:sorry|afraid)[,.;]?(?: but)?,? (?:that )?I(?:'m| am)?"
    r" (?:can(?:'t|not| not)|not able to|unable to|won't be able to)"
    r" (?:help|assist|provide|comply|fulfil|fulfill|answer|discuss|engage|generate|create|do that)"
    r"|\bI(?:'m| am)? (?:can(?:'t|not| not)|won't|not able to|unable to) "
    r"(?:assist|comply|(?:help|support) (?:you )?with (?:that|this|your)|fulfil|"
    r"(?:provide|generate|create|produce|engage in) (?:any|that|this|such|content|information|"
    r"advice|instructions|medical|legal|financial|explicit|harmful|illegal))"
    r"|\bI must (?:respectfully )?decline\b"
    r"|\bI(?:'m| am) not (?:allowed|permitted|programmed|designed|able) to "
    r"(?:assist|discuss|provide|answer|generate|engage|share|help)"
    r"|\b(?:against|violates?) (?:my|our|the) (?:guidelines|programming|(?:content |usage )?polic)",
    re.I,
)
_LEAK = re.compile(
    r"\byou are an? (?:helpful|friendly|expert|professional|AI|large language|virtual)"
    r"[\w, -]{0,40}(?:assistant|chatbot|language model|bot|agent|AI)\b"
    r"|\bas an? (?:AI|artificial intelligence|large language|language)(?: language)? ?"
    r"(?:model|assistant|chatbot)\b"
    r"|\bI(?:'m| am) (?:just |only )?an? (?:AI|large) language model\b"
    r"|\bmy (?:system prompt|training data|knowledge cut-?off)\b"
    r"|\bmy instructions (?:are|say|state|tell)\b"
    r"|<\|(?:im_start|im_end|endoftext|system|user|assistant|eot_id|start_header_id)[^>]*\|?>"
    r"|\[/?INST\]|<</?SYS>>|^#{2,3} ?(?:System|Instruction|Response)\b:?",
    re.I | re.M,
)
_INSTRUCTION = re.compile(
    r"\byou (?:are an?|must|should|will be|always|never)\b|\byour (?:task|job|role|goal|purpose)\b"
    r"|\b(?:do not|never|always) (?:reveal|mention|say|disclose|answer|use|give|respond)\b",
    re.I,
)
OVERLAP = 8
"""Words in a row that an answer and an instruction share."""

_PLACEHOLDER = re.compile(
    r"(?:null|none|nan|undefined|n/a|<unk>|<empty>|\[object object\]|no response|\{\}|\[\])\.?",
    re.I,
)
_NO_END = frozenset({"the", "a", "an", "and", "or", "but", "because", "my", "your", "their", "our"})
_NO_END |= {"its", "which", "than", "if", "whose", "into"}
"""Words that end no sentence; "to", "of", "from" and the like do: "Where are you from"."""

LONG_ENOUGH = 8
"""Words of an answer that may be called cut off: short ones trail off in chats."""

_MILD = (
    r"stupid|dumb|idiotic|pathetic|worthless|useless|ignorant|brainless|clueless|thick|loser|fool|"
    r"liar|jerk|creep|pig|disgusting|dense"
)
_RUDE = re.compile(
    r"\b(?:asshole|arsehole|dumbass|dickhead|motherfuck\w*|bastard|bitch|cunt|retard(?:ed)?|moron|"
    r"imbecile|scumbag|wanker|twat)\b"
    r"|\b(?:fuck|screw) (?:you|off)\b|\b(?:piss|bugger|sod) off\b|\bgo to hell\b"
    r"|\bshut (?:the \w+ )?up\b"
    r"|\byou (?:suck|disgust me|make me sick)\b|\b(?:you|your) idiots?\b"
    r"|\b(?:you|u)(?:'re| are|r)?(?: \w+){0,2}? (?:a |an |so |such |that |too )(?:\w+ )?"
    rf"(?:{_MILD}|idiot)\b"
    rf"|\b(?:you|u)(?:'re| are)(?: just| really| all)? (?:{_MILD})\b"
    rf"|\bare you (?:\w+ )?(?:{_MILD})\b",
    re.I,
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True)
class Flags(Metric):
    """Number of faults that rules find: refusal, leaked prompt, other language, empty, cut off,
    rude."""

    name = "flags"
    direction = "lower"
    range = (0.0, float(len(FAULTS)))
    citation = "dialeval's own; docs/decide.md says how often people's answers are flagged"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        response = (sample.response or "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        found = {
            "refusal": bool(_REFUSAL.search(response)),
            "leaked-prompt": _leaks(response, sample.facts),
            "other-language": _switches(response, [turn.text for turn in sample.context]),
            "empty": not response.strip() or bool(_PLACEHOLDER.fullmatch(response.strip())),
            "cut-off": _breaks_off(response),
            "rude": bool(_RUDE.search(response)),
        }
        note = "; ".join(FAULTS[fault] for fault, there in found.items() if there)
        return Score(float(sum(found.values())), {f: float(t) for f, t in found.items()}, note)

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(fault, f"1 if the answer {what}") for fault, what in FAULTS.items())


def _leaks(response: str, facts: Sequence[str]) -> bool:
    if _LEAK.search(response):
        return True
    instructions = [fact for fact in facts if _INSTRUCTION.search(fact)]
    own = _sequences(response) if instructions else set()
    return any(not own.isdisjoint(_sequences(fact)) for fact in instructions)


def _sequences(text: str) -> set[tuple[str, ...]]:
    """Every `OVERLAP` words in a row."""
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[i : i + OVERLAP]) for i in range(len(words) - OVERLAP + 1)}


def _switches(response: str, turns: Sequence[str]) -> bool:
    if not turns:
        return False
    before, here = language_of(" ".join(turns)), language_of(response)
    if here == before:
        return False
    if here:
        known = before or _is_english(" ".join(turns), response)
        return bool(known) and NAMES[here].lower() not in turns[-1].lower()
    return _is_english(response, " ".join(turns)) and "english" not in turns[-1].lower()


def _is_english(text: str, other: str) -> bool:
    """Whether, of three words or more, a fifth are English function words that the other text, in
    another language, does not have: "me" and "no" are Spanish, too."""
    words = [word.lower() for word in _WORD.findall(text)]
    elsewhere = {word.lower() for word in _WORD.findall(other)}
    hits = sum(word in FUNCTION_WORDS and word not in elsewhere for word in words)
    return len(words) >= 3 and hits >= 1 and 5 * hits >= len(words)


def _breaks_off(response: str) -> bool:
    text = response.rstrip()
    words = _WORD.findall(text)
    if text.count("```") % 2:
        return True
    if len(words) < LONG_ENOUGH or not text:
        return False
    if text[-1] == "," or text.endswith(" ("):  # but not :(
        return True
    return text[-1].isalpha() and words[-1].lower() in _NO_END
