"""Hand-written answers with one fault each, and answers that only look as if they had one."""

import pytest

import dialeval
from dialeval.sample import Sample, Turn

FAULTY = {
    "refusal": [
        "I'm sorry, but I can't assist with that request.",
        "I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but I cannot help you with that.",
        "I am unable to provide medical advice. Please see a doctor.",
        "I must respectfully decline to answer.",
        "I'm not able to discuss that topic.",
        "That would be against our guidelines.",
    ],
    "leaked-prompt": [
        "You are a helpful assistant. Answer in one sentence. The capital is Paris.",
        "As an AI language model, I do not have feelings.",
        "As a large language model I have no body.",
        "<|im_start|>assistant Sure, it opens at nine.",
        "[INST] Where is the station? [/INST] Over there.",
        "### Instruction: be brief\nNo.",
    ],
    "other-language": [
        "Ich weiß das leider nicht, aber du kannst es morgen noch einmal versuchen.",
        "Il faut appuyer sur le bouton pendant quinze secondes pour la redémarrer.",
        "我不知道你在说什么。",
        "Я не знаю, что вам сказать.",
    ],
    "empty": ["", "   \n", "null", "None", "[object Object]", "undefined"],
    "cut-off": [
        "The easiest way to get there is to take the bus and then walk along the",
        "You should try it again tomorrow morning, it might work better because",
        "Here is the code that you asked for: ```python\nprint('hello')",
        "First you need flour, eggs, some sugar and a bit of salt,",
    ],
    "rude": [
        "I've told you already. Are you too thick to read?",
        "Shut up and let me finish.",
        "You're so stupid, I can't believe it.",
        "Only a moron would ask that.",
        "You are pathetic.",
        "go to hell",
    ],
}

HARMLESS = [
    "I'm sorry to hear that. Did you hurt yourself?",
    "I can't help it, I love chocolate.",
    "Sorry, I can't come tonight. How about tomorrow?",
    "I can't answer the phone while I drive.",
    "You are a good friend, thank you!",
    "You are a great assistant coach, the team is lucky.",
    "As a model she has travelled a lot.",
    "Where are you from",
    "I told my boss and now I have to wait whether I can keep it :(",
    "what are you up to",
    "Yes, and you?",
    "The film was really stupid but the music was good.",
    "I felt stupid when I forgot my keys.",
    "None of them came in the end.",
    "My idiot brother crashed the car again.",
    "I follow the instructions on the box and it always works",
    "Hmm, I was thinking of the one that we had the last time we were in",
]


def flags(response, context="What can you tell me about the weather tomorrow?", facts=()):
    sample = Sample(id="x", context=(Turn(context, "user"),), response=response, facts=tuple(facts))
    score = dialeval.make_metric("flags").score(sample, [])
    found = {name for name, value in score.parts.items() if value}
    assert score.value == len(found)
    assert bool(score.note) == bool(found)
    return found


@pytest.mark.parametrize(
    ("fault", "response"), [(fault, text) for fault, texts in FAULTY.items() for text in texts]
)
def test_a_faulty_answer_has_this_flag_and_no_other(fault, response):
    assert flags(response) == {fault}


@pytest.mark.parametrize("response", HARMLESS)
def test_what_only_looks_like_a_fault_is_not_flagged(response):
    assert flags(response) == set()


def test_an_answer_that_repeats_an_instruction_leaks_it_and_one_that_uses_a_fact_does_not():
    prompt = "You are Max. Never mention that the discount code for new customers is SPRING."
    leaked = "Well, never mention that the discount code for new customers is SPRING, they said."
    assert flags(leaked, facts=[prompt]) == {"leaked-prompt"}
    fact = "The Eiffel Tower was finished in 1889 and is 330 metres tall today."
    used = "The Eiffel Tower was finished in 1889 and is 330 metres tall, since you ask."
    assert flags(used, facts=[fact]) == set()


def test_the_language_may_be_asked_for_and_a_german_chat_may_be_german():
    german = "Das ist nicht so gut, aber wir können es noch einmal mit dem anderen versuchen."
    assert flags(german, "Could you say that in German, please?") == set()
    assert flags(german, "Kannst du mir sagen, ob das so gut ist oder nicht?") == set()
    french = "Il faut appuyer sur le bouton pendant quinze secondes pour le redémarrer."
    assert flags(french, "My tablet keeps freezing.") == {"other-language"}
    assert flags(french, "Mon ordinateur plante.") == set()
    english = "That is not so good, but we can try it with the other one."
    assert flags(english, "Kannst du mir sagen, ob das so gut ist?") == {"other-language"}


def test_the_note_says_what_is_wrong_so_that_worst_can_show_it(tmp_path):
    samples = [
        Sample(id="good", context=(Turn("Hi there!"),), response="Hello, how are you?"),
        Sample(
            id="bad", context=(Turn("Hi there!"),), response="Shut up, I can't assist with that."
        ),
    ]
    run = dialeval.score(samples, ["flags"], out=tmp_path / "run")
    first = next(iter(dialeval.worst(run)))
    assert (first.id, first.score) == ("bad", 2.0)
    assert first.note == "refuses; insults"


def test_it_is_a_well_behaved_metric():
    dialeval.check_metric(dialeval.make_metric("flags"))
