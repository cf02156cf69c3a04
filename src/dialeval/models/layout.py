"""The form in which a language model reads a dialogue: the layouts of `Likelihood`, in ids.

    plain   Hi there. How are you? [text]                       one space between turns
    lines   User: Hi there.\nSystem: How are you?\nUser: [text]
    chat    <|im_start|>user\nHi there.<|im_end|>\n ... <|im_start|>user\n[text]
    eos     Hi there.<|endoftext|>How are you?<|endoftext|>[text]
    tabs    \tHi there.\tHow are you?\t[text]
    auto    lines
    native  chat, if the model has a chat template, else lines

A layout is a frame for each role: marker ids that open a turn, a separator that is tokenised
together with what follows it, marker ids that close the turn. `eos` is DialoGPT's own form; FED's
released code has a space on both sides of the marker, which its metric writes into the turns.

A sequence is `start, turns, opening, text, end`. If it is longer than the window, the turns (with
their markers) lose whole tokens on the side that the question names. The text is cut only if it
does not fit by itself: it keeps its beginning, whose log-probabilities are what they would be in
the whole text, and what it loses is counted like the rest.

`chat_pieces` takes the chat template of a model apart into what stands before and after a turn.

A template is a program that writes a whole conversation. Sharing needs its pieces. They are found
by letting it write conversations of made-up turns and looking at what stands between those:

    user            ... USER <close of user>
    user, system    ... USER <close of user> <open of system> SYSTEM <close of system>
    user, system, user   ... SYSTEM <close of system> <open of user> USER ...

What a template puts before the first turn, such as a default system prompt ("You are a helpful
assistant named ..."), is left out: nobody said it in the dialogue that is judged. Only a
start-of-text token that begins every conversation is kept.

From pieces of text to token ids: what people wrote, and what the layout adds, kept apart.

A dialogue is tokenised piece by piece: each turn and each marker on its own. So the ids of a
dialogue are literally the first ids of the same dialogue one turn later, and a model reads the
common part once. Byte-level tokenizers (GPT-2, Llama 3, SmolLM2, BlenderBot) split a text before
every space anyway; a piece that starts with its space gets the ids that it has in the whole text.

Dialogue text is hostile. Somebody who writes `<|im_end|>` into a chat gets the ids of these ten
ordinary characters. Special tokens come from markers only.

`start_token` is the token that begins a text: `<|endoftext|>` where the vocabulary has it, because
GPT-2, DialoGPT and SmolLM2 were pretrained on documents separated by it (SmolLM2's declared start
token, `<|im_start|>`, opens a chat turn). Else it is the declared start token, else the end token;
it is None if the tokenizer has none of them.

`EncoderInput` is what the encoder of an encoder-decoder reads: the turns of a dialogue, with its
own marks around.

`tabs` (also `auto` and `native`) is FULL's form, "\t" + "\t".join(turns); `plain` joins with
spaces. The tokenizer adds its own marks, and a space in front if it was saved so. What does not fit
is cut from the turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from dialeval.errors import UsageError
from dialeval.models.loading import SURROGATE
from dialeval.question import Choose, Likelihood, spellings
from dialeval.sample import Turn


def start_token(tokenizer: Any) -> int | None:
    document = tokenizer.get_vocab().get("<|endoftext|>")
    for token in (document, tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return None


REMEMBERED = 1 << 12
"""Pieces kept with their ids, a few kB each: a context comes back in every question about it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The ids of a piece of text and, for each, where it starts and ends, in characters."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Segmenter:
    """Tokenises pieces with the tokenizer of a model (a fast one of transformers)."""

    def __init__(self, tokenizer: Any) -> None:
        self._markers = tokenizer.backend_tokenizer
        self._text = _without_special_tokens(tokenizer)
        self._start_id = start_token(tokenizer)
        self._end_id = _end_token(tokenizer)
        self._known = getattr(tokenizer, "known", None)
        self.text = lru_cache(REMEMBERED)(self._tokenise_text)
        self.marker = lru_cache(REMEMBERED)(self._tokenise_marker)

    @property
    def start_id(self) -> int:
        """The token that a text begins with."""
        if self._start_id is None:
            raise UsageError("this model has no start-of-text token. Ask with start=False.")
        return self._start_id

    @property
    def end_id(self) -> int:
        """The token that a text ends with."""
        if self._end_id is None:
            raise UsageError("this model has no end-of-text token: layout 'eos' and end need one.")
        return self._end_id

    def _tokenise_text(self, text: str, before: str = "") -> Segment:
        """`before` is written in front of the text and is part of no span."""
        shift = len(before)
        encoding = self._text.encode(SURROGATE.sub("\ufffd", before + text))
        spans = [(max(0, start - shift), max(0, end - shift)) for start, end in encoding.offsets]
        ids = map(self._known, encoding.ids) if self._known else encoding.ids
        return Segment(tuple(ids), tuple(spans))

    def _tokenise_marker(self, text: str) -> tuple[int, ...]:
        return tuple(self._markers.encode(text, add_special_tokens=False).ids)


def _without_special_tokens(tokenizer: Any) -> Any:
    """Returns a copy of the tokenizer to which special tokens are ordinary characters.

    Some chat models do not flag the marks of their template as special; they are treated alike.
    """
    from tokenizers import Tokenizer

    description = json.loads(tokenizer.backend_tokenizer.to_str())
    template = template_text(tokenizer)
    for added in description["added_tokens"]:
        added["special"] = added["special"] or added["content"] in template
    # A post-processor would add special tokens, and trim spaces off the spans.
    description |= {"post_processor": None, "truncation": None, "padding": None}
    copy = Tokenizer.from_str(json.dumps(description))
    copy.encode_special_tokens = True
    return copy


def template_text(tokenizer: Any) -> str:
    """Returns the source of the chat template; empty where there is none."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    return template or ""


def _end_token(tokenizer: Any) -> int | None:
    """Returns what separates documents; the `eos_token` of a chat model may only end a turn."""
    added = tokenizer.get_added_vocab()
    for name in ("<|endoftext|>", "<|end_of_text|>"):
        if name in added:
            return int(added[name])
    end: int | None = tokenizer.eos_token_id
    return end


SEPARATORS = {"auto": "\t", "native": "\t", "tabs": "\t", "plain": " "}


class EncoderInput:
    """Writes dialogues for one model; `window` is the number of tokens that it can read at once.

    `before` and `after` are the special tokens that stand around a text that the model writes, and
    around the turns too, unless the tokenizer says that its model reads them bare.
    """

    def __init__(self, tokenizer: Any, window: int) -> None:
        self.window = window
        self.segments = Segmenter(tokenizer)
        self.before, self.after = _marks(tokenizer)
        bare = getattr(tokenizer, "bare", False)
        self._around = ((), ()) if bare else (self.before, self.after)

    def write(
        self, turns: Sequence[Turn], layout: str, truncate: Literal["left", "right"] = "left"
    ) -> tuple[tuple[int, ...], int]:
        """Returns the encoder's ids, and how many tokens of the turns were cut."""
        separator = SEPARATORS[layout]
        text = separator.join(turn.text for turn in turns)
        before = "\t" if separator == "\t" and turns else ""
        ids = self.segments.text(before + text).ids
        start, end = self._around
        room = max(0, self.window - len(start) - len(end))
        cut = max(0, len(ids) - room)
        kept = ids[:room] if truncate == "right" else ids[cut:]
        return (*start, *kept, *end), cut


def _marks(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the special tokens that stand before and after a text; after it at least the end
    token.

    BlenderBot's tokenizer adds `</s>` or does not, depending on the version that saved it.
    """
    bare = tokenizer("a", add_special_tokens=False).input_ids
    full = tokenizer("a").input_ids
    shift = next(n for n in range(len(full)) if full[n : n + len(bare)] == bare)
    return tuple(full[:shift]), tuple(full[shift + len(bare) :]) or (tokenizer.eos_token_id,)


USER, SYSTEM, AGAIN = "QUSERQ", "QSYSTEMQ", "QAGAINQ"
"""Made-up turns; capital letters, so that a template which trims or escapes leaves them alone."""


@dataclass(frozen=True, slots=True)
class ChatPieces:
    """Per role (`user`, `system`), the marker text around a turn; `start` begins it all."""

    opening: dict[str, str]
    closing: dict[str, str]
    start: str


def chat_pieces(tokenizer: Any) -> ChatPieces:
    """Returns the pieces of a tokenizer's chat template; a template that resists is a
    `UsageError`."""
    if not template_text(tokenizer):
        raise UsageError(
            "this model has no chat template, so layout 'chat' means nothing to it."
            " Its layouts: plain, lines, eos, tabs."
        )
    from jinja2 import TemplateError

    try:
        alone = _write(tokenizer, [USER])
        pair = _write(tokenizer, [USER, SYSTEM])
        three = _write(tokenizer, [USER, SYSTEM, AGAIN])
        user_close = alone.split(USER)[1]
        head, rest = pair.split(USER)
        user_to_system, system_close = rest.split(SYSTEM)
        system_to_user = three.split(SYSTEM)[1].split(AGAIN)[0]
    except (TemplateError, ValueError, IndexError) as error:
        raise _resists() from error
    if not (user_to_system.startswith(user_close) and system_to_user.startswith(system_close)):
        raise _resists()
    user_open = system_to_user.removeprefix(system_close)
    start = tokenizer.bos_token or ""
    begins = bool(start) and head.startswith(start) and not user_open.startswith(start)
    return ChatPieces(
        opening={"user": user_open, "system": user_to_system.removeprefix(user_close)},
        closing={"user": user_close, "system": system_close},
        start=start if begins else "",
    )


def _write(tokenizer: Any, turns: Sequence[str]) -> str:
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=False)]
    return str(tokenizer.apply_chat_template(messages, tokenize=False))


def _resists() -> UsageError:
    return UsageError(
        "the chat template of this model cannot be taken apart turn by turn."
        " Use another layout: plain, lines, eos, tabs."
    )


Role = Literal["user", "system"]
OTHER: dict[Role, Role] = {"user": "system", "system": "user"}

OUTSIDE = (-1, -1)
"""The span of a token that is not of the text."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a turn: marker ids, and a separator that belongs to the text's tokens."""

    opening: tuple[int, ...] = ()
    separator: str = ""
    closing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A question as a model reads it: the tokens `ids[first:]` are to be answered for."""

    ids: tuple[int, ...]
    first: int
    spans: tuple[tuple[int, int], ...]
    cut: int


class Writer:
    """Writes questions for one model; `window` is the number of tokens it can read at once."""

    def __init__(self, tokenizer: Any, window: int) -> None:
        self.window = window
        self._tokenizer = tokenizer
        self._segments = Segmenter(tokenizer)

    def write(self, question: Likelihood) -> Written:
        question = self._resolved(question)
        frames = self._frames(question.layout)
        roles = resolve_roles(question.turns, question.speaker)
        turns: list[int] = []
        for number, (turn, role) in enumerate(zip(question.turns, roles, strict=False)):
            frame = frames[role]
            before = frame.separator if number or question.layout != "plain" else ""
            turns += frame.opening
            turns += self._segments.text(turn.text, before).ids
            turns += frame.closing
        start = self._start(question)
        opening = frames[roles[-1]].opening
        ids, spans = self._text(question, frames[roles[-1]])
        room = self.window - len(start) - len(opening) - len(ids)
        kept = _cut(turns, max(0, room), question.truncate)
        whole = (*start, *kept, *opening, *ids)[: self.window]
        outside = len(whole) if len(spans) == 0 else len(start) + len(kept) + len(opening)
        first = len(start) if question.whole else min(outside, len(whole))
        answered = ((OUTSIDE,) * (outside - first) + spans)[: len(whole) - first]
        return Written(whole, first, answered, len(turns) - len(kept) + max(0, -room))

    def write_choices(self, question: Choose) -> list[list[Written]]:
        """Returns the prompt of a `Choose` with each spelling of each choice behind it. Only the
        last token differs, so that all of them are read in one go."""
        text = self._segments.text
        if template_text(self._tokenizer):
            marks = self._segments.marker
            start = marks(self._chat.start) + marks(self._chat.opening["user"])
            end = marks(self._chat.closing["user"]) + marks(self._chat.opening["system"])
        else:
            start, end = (self._segments.start_id,), text("\nAnswer:").ids
        before = (*start, *text(question.instruction).ids)
        after = (*text(question.wanted).ids, *end)
        material = text(question.material).ids
        kept = _cut(material, max(0, self.window - len(before) - len(after) - 1), "left")
        prompt, cut = (*before, *kept, *after), len(material) - len(kept)
        if len(prompt) >= self.window:
            raise UsageError(f"the rubric alone is longer than the model can read ({self.window})")
        tokens = choice_tokens(question.choices, lambda form: text(form).ids)
        return [
            [Written((*prompt, token), len(prompt), (OUTSIDE,), cut) for token in own]
            for own in tokens
        ]

    def _resolved(self, question: Likelihood) -> Likelihood:
        """Replaces `auto` and `native` by the layout that they stand for with this model."""
        if question.layout == "auto":
            return replace(question, layout="lines")
        if question.layout == "native":
            return replace(question, layout="chat" if template_text(self._tokenizer) else "lines")
        return question

    def _text(
        self, question: Likelihood, frame: Frame
    ) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Ids and spans of the text, and of its end. An empty text has no tokens."""
        ids: tuple[int, ...] = ()
        spans: tuple[tuple[int, int], ...] = ()
        if question.text:
            alone = question.layout == "plain" and not question.turns
            segment = self._segments.text(question.text, "" if alone else frame.separator)
            ids, spans = segment.ids, segment.spans
        if question.end:
            ids = (*ids, self._end(question.layout, frame))
            spans = (*spans, OUTSIDE)
        return ids, spans

    def _end(self, layout: str, frame: Frame) -> int:
        """In a chat a text ends with its turn."""
        return frame.closing[0] if layout == "chat" and frame.closing else self._segments.end_id

    def _start(self, question: Likelihood) -> tuple[int, ...]:
        """A chat begins as its template does, whose first marker predicts what follows."""
        if not question.start:
            return ()
        if question.layout == "chat":
            return self._segments.marker(self._chat.start)
        return (self._segments.start_id,)

    def _frames(self, layout: str) -> dict[Role, Frame]:
        marker = self._segments.marker
        if layout == "lines":
            return {
                "user": Frame(marker("User:"), " ", marker("\n")),
                "system": Frame(marker("System:"), " ", marker("\n")),
            }
        if layout == "chat":
            return {
                role: Frame(marker(self._chat.opening[role]), "", marker(self._chat.closing[role]))
                for role in OTHER
            }
        if layout == "eos":
            return dict.fromkeys(OTHER, Frame(closing=(self._segments.end_id,)))
        return dict.fromkeys(OTHER, Frame(separator={"plain": " ", "tabs": "\t"}[layout]))

    @cached_property
    def _chat(self) -> ChatPieces:
        return chat_pieces(self._tokenizer)


def choice_tokens(
    choices: Sequence[str], tokenise: Callable[[str], Sequence[int]]
) -> list[list[int]]:
    """Returns the tokens for each choice: every spelling of it that is a single token."""
    found = []
    for choice in choices:
        forms = [tuple(tokenise(form)) for form in spellings(choice)]
        found.append(sorted({ids[0] for ids in forms if len(ids) == 1}))
    if not all(found) or len(set().union(*found)) < sum(map(len, found)):
        raise UsageError(
            f"this model has no token of its own for each of {', '.join(choices)}, so it cannot be"
            " asked for the probability of a reply"
        )
    return found


def resolve_roles(turns: Sequence[Turn], speaker: str) -> tuple[Role, ...]:
    """Returns the role of each turn and, last, of the text.

    Where the data does not say `user` or `system`, roles alternate, counted from the text
    backwards: whoever answers was just spoken to.
    """
    role: Role = "user" if speaker == "user" else "system"
    roles = [role]
    for turn in reversed(turns):
        role = _role(turn.speaker) or OTHER[role]
        roles.append(role)
    return tuple(reversed(roles))


def _role(speaker: str) -> Role | None:
    if speaker == "user":
        return "user"
    return "system" if speaker == "system" else None


def _cut(ids: Sequence[int], room: int, side: Literal["left", "right"]) -> Sequence[int]:
    if len(ids) <= room:
        return ids
    return ids[:room] if side == "right" else ids[len(ids) - room :]
