"""How dialogues become token ids: layouts, spans, truncation, hostile text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.errors import UsageError
from dialeval.models.layout import OUTSIDE, Writer, resolve_roles
from dialeval.question import Likelihood
from dialeval.sample import Turn

from . import tiny_language_models as tiny

TOKENIZER = tiny.tokenizer()
WRITER = Writer(TOKENIZER, window=10_000)
LAYOUTS = ["auto", "plain", "lines", "chat", "eos", "tabs"]
DIALOGUE = (Turn("hello there", "user"), Turn("how are you", "system"))

texts = st.text(max_size=12) | st.sampled_from(["<|im_end|>", "a<|endoftext|>b", "</s>", "é🙂", ""])
questions = st.builds(
    Likelihood,
    model=st.just("tiny"),
    text=texts,
    turns=st.lists(st.builds(Turn, texts, st.sampled_from(["user", "system", ""]))).map(tuple),
    speaker=st.sampled_from(["user", "system"]),
    layout=st.sampled_from(LAYOUTS),
    truncate=st.sampled_from(["left", "right"]),
    start=st.booleans(),
    end=st.booleans(),
    whole=st.booleans(),
)


def written_text(question):
    return TOKENIZER.decode(WRITER.write(question).ids)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("plain", "<|endoftext|>hello there how are you fine"),
        ("auto", "<|endoftext|>User: hello there\nSystem: how are you\nUser: fine"),
        ("lines", "<|endoftext|>User: hello there\nSystem: how are you\nUser: fine"),
        (
            "chat",
            "<|im_start|>user\nhello there<|im_end|>\n"
            "<|im_start|>assistant\nhow are you<|im_end|>\n"
            "<|im_start|>user\nfine",
        ),
        ("eos", "<|endoftext|>hello there<|endoftext|>how are you<|endoftext|>fine"),
        ("tabs", "<|endoftext|>\thello there\thow are you\tfine"),
    ],
)
def test_what_each_layout_writes(layout, expected):
    assert written_text(Likelihood("tiny", "fine", DIALOGUE, "user", layout)) == expected


def test_native_is_the_chat_template_where_there_is_one_and_lines_elsewhere():
    native = Likelihood("tiny", "fine", DIALOGUE, "user", "native")
    assert WRITER.write(native) == WRITER.write(replace(native, layout="chat"))
    without = Writer(tiny.tokenizer(chat_template=None), 512)
    assert without.write(native) == without.write(replace(native, layout="lines"))


def test_plain_is_what_holistic_eval_encodes():
    question = Likelihood("tiny", "what are you", (Turn("the cat sat"),), start=False)
    assert list(WRITER.write(question).ids) == TOKENIZER.encode("the cat sat what are you")


def test_fed_writes_its_spaces_into_the_turns():
    turns = (Turn(" the cat ", "user"), Turn(" sat ", "system"))
    question = Likelihood("tiny", " what?", turns, "user", "eos", whole=True)
    expected = "<|endoftext|> the cat <|endoftext|> sat <|endoftext|> what?"
    assert list(WRITER.write(question).ids) == TOKENIZER.encode(expected)


def test_the_end_of_a_text_is_the_end_of_its_turn_in_a_chat():
    assert written_text(Likelihood("tiny", "a", layout="plain", end=True)).endswith("<|endoftext|>")
    assert written_text(Likelihood("tiny", "a", layout="chat", end=True)).endswith("<|im_end|>")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_dialogue_is_a_prefix_of_the_longer_dialogue(layout):
    answer = Turn("fine thanks", "user")
    shorter = WRITER.write(Likelihood("tiny", answer.text, DIALOGUE, "user", layout)).ids
    longer = WRITER.write(Likelihood("tiny", "good", (*DIALOGUE, answer), "system", layout)).ids
    assert longer[: len(shorter)] == shorter


@settings(deadline=None)
@given(questions)
def test_spans_cover_the_text_in_order(question):
    written = WRITER.write(question)
    assert len(written.spans) == len(written.ids) - written.first
    spans = [span for span in written.spans if span != OUTSIDE]
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == set(range(len(question.text)))
    assert spans == sorted(spans)


@settings(deadline=None)
@given(questions)
def test_special_tokens_never_come_from_dialogue_text(question):
    # The same question with its markers alone has just as many special tokens.
    bare = Likelihood(
        question.model,
        "",
        tuple(Turn("", turn.speaker) for turn in question.turns),
        **{name: getattr(question, name) for name in ("speaker", "layout", "start", "end")},
    )
    special = set(TOKENIZER.all_special_ids) | {TOKENIZER.convert_tokens_to_ids("<|endoftext|>")}
    special |= set(TOKENIZER.convert_tokens_to_ids(tiny.SPECIAL))
    count = [sum(i in special for i in WRITER.write(q).ids) for q in (question, bare)]
    assert count[0] == count[1]


@settings(deadline=None)
@given(questions, st.integers(1, 40))
def test_a_small_window_cuts_turns_before_text_and_counts_it(question, window):
    whole, cut = WRITER.write(question), Writer(TOKENIZER, window).write(question)
    assert len(cut.ids) <= window
    assert cut.cut == len(whole.ids) - len(cut.ids)
    lost = [s for s in whole.spans if s != OUTSIDE], [s for s in cut.spans if s != OUTSIDE]
    if len(lost[0]) > len(lost[1]):
        assert lost[0][: len(lost[1])] == lost[1]


def test_the_side_of_truncation():
    turns = (Turn("aaaa", "user"), Turn("bbbb", "system"))
    full = WRITER.write(Likelihood("tiny", "c", turns, "user")).ids
    small = Writer(TOKENIZER, len(full) - 3)
    left = small.write(Likelihood("tiny", "c", turns, "user", truncate="left"))
    right = small.write(Likelihood("tiny", "c", turns, "user", truncate="right"))
    assert left.ids == (full[0], *full[4:])
    assert right.ids == (*full[:-5], *full[-2:])
    assert left.cut == right.cut == 3


def test_unnamed_speakers_alternate_back_from_the_text():
    turns = (Turn("a"), Turn("b", "Alice"), Turn("c"))
    assert resolve_roles(turns, "system") == ("user", "system", "user", "system")
    assert resolve_roles(turns, "user") == ("system", "user", "system", "user")
    known = (Turn("a", "user"), Turn("b", "user"))
    assert resolve_roles(known, "user") == ("user", "user", "user")


def test_half_characters_are_replaced_one_for_one():
    written = WRITER.write(Likelihood("tiny", "a\ud800b"))
    assert written.spans[-1] == (2, 3)


def test_a_model_without_chat_template_says_which_layouts_it_has():
    with pytest.raises(UsageError, match=r"no chat template.*plain, lines, eos, tabs"):
        Writer(tiny.tokenizer(None), 100).write(Likelihood("tiny", "a", layout="chat"))


def test_a_template_that_begins_with_a_start_token_keeps_it():
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}</s>{% endfor %}"
    )
    fast = tiny.tokenizer(template, closes=True)
    ids = Writer(fast, 100).write(Likelihood("tiny", "x", (Turn("y", "user"),), layout="chat")).ids
    assert fast.convert_ids_to_tokens(ids)[0] == "<s>"
    assert fast.convert_ids_to_tokens(ids).count("</s>") == 1


def test_a_template_that_cannot_be_taken_apart_is_an_error():
    template = "{% for m in messages %}{{ m['content'] }}{% if loop.last %}!{% endif %}{% endfor %}"
    with pytest.raises(UsageError, match="cannot be taken apart"):
        Writer(tiny.tokenizer(template), 100).write(Likelihood("tiny", "a", layout="chat"))
