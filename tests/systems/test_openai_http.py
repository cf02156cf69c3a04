import json
import time
from dataclasses import replace

import pytest

from dialeval import chat_http as chat_server
from dialeval.chat_http import LARGEST_REPLY, CutReply, find_key
from dialeval.errors import UsageError
from dialeval.sample import Turn
from dialeval.systems import Asking, ReplyError, open_system
from dialeval.systems.language_models import content_of
from dialeval.systems.system import INSTRUCTIONS, checked

SECRET = "sk-never-to-be-seen-0123456789"
PATIENT = Asking(timeout=60.0, retries=1)
IMPATIENT = Asking(timeout=1.0, retries=1)


def ask(server, text, asking=PATIENT, **options):
    return checked(open_system(server.address, options, asking).reply([Turn(text, "user")]))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_WAIT", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_the_dialogue_and_the_options_reach_the_server(server):
    history = [
        Turn("Be brief.", INSTRUCTIONS),
        Turn("Hi!", "user"),
        Turn("Hello.", "system"),
        Turn("Who are you?", "user"),
    ]
    options = {"temperature": "0.5", "max_tokens": "7", "seed": "3", "system_prompt": "You are Bob"}
    reply = open_system(server.address, options).reply(history)
    assert reply == "Who are you? Indeed, after 5."
    assert server.requests == [
        {
            "path": "/v1/chat/completions",
            "model": "polite",
            "messages": [
                {"role": "system", "content": "You are Bob"},
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi!"},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Who are you?"},
            ],
            "temperature": 0.5,
            "max_tokens": 7,
            "seed": 3,
        }
    ]


@pytest.mark.parametrize("key", ["", SECRET])
def test_a_reply_that_met_the_limit_of_tokens_is_known_by_it(server, monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    system = open_system(server.address)
    assert isinstance(system.reply([Turn("lengthy", "user")]), CutReply)
    assert not isinstance(system.reply([Turn("fine", "user")]), CutReply)


def test_speakers_that_nobody_named_take_turns_and_the_last_is_the_user(server):
    open_system(server.address).reply([Turn("a"), Turn("b"), Turn("c")])
    roles = [message["role"] for message in server.requests[0]["messages"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("manner", "reason", "attempts"),
    [
        ("fail500", "HTTP 500", 2),
        ("slow", "no reply in time", 2),
        ("drip", "no reply in time", 2),
        ("empty", "not JSON", 2),
        ("mute", "empty reply", 1),
        ("truncated", "answer cut off", 2),
        ("broken", "not JSON", 2),
        ("schema", "not a chat completion", 1),
        ("huge", "reply too long", 1),
        ("endless", "reply too long", 1),
        ("reset", "connection closed by the server", 2),
        ("elsewhere", "redirected elsewhere", 1),
    ],
)
def test_bad_manners_have_a_reason_and_only_what_may_pass_is_tried_again(
    server, manner, reason, attempts
):
    started = time.monotonic()
    with pytest.raises(ReplyError) as caught:
        ask(server, manner, IMPATIENT if manner in ("slow", "drip") else PATIENT)
    assert caught.value.reason == reason
    assert server.asked[manner] == attempts
    assert time.monotonic() - started < 50.0


def test_the_words_of_an_error_are_shown(server):
    with pytest.raises(ReplyError, match="HTTP 500: out of order"):
        ask(server, "fail500")


def test_a_failure_that_passes_costs_nothing(server):
    assert ask(server, "once") == "second time lucky"


def test_a_redirect_on_the_same_server_is_followed(server):
    assert ask(server, "nearby") == "found it"


@pytest.mark.parametrize(("manner", "least"), [("busy", 1.0), ("busydate", 0.9)])
def test_the_server_is_given_the_time_that_it_asks_for(server, manner, least):
    assert ask(server, manner) == "not busy any more"
    first, second = server.times
    assert second - first >= least


def test_a_server_that_asks_for_too_much_patience_gets_none(server, monkeypatch):
    monkeypatch.setattr(chat_server, "LONGEST_HOLD", 0.5)
    with pytest.raises(ReplyError, match="asks to wait 1 s"):
        ask(server, "busy")
    assert server.asked["busy"] == 1


def test_no_server_at_all():
    with pytest.raises(ReplyError) as caught:
        open_system("openai:http://127.0.0.1:9/v1#x", {}, PATIENT).reply([Turn("hi")])
    assert caught.value.reason == "cannot connect"
    assert caught.value.down
    assert caught.value.advice == "Is the server running at http://127.0.0.1:9/v1?"


def test_a_server_that_has_answered_is_tried_again_when_it_is_gone(server, monkeypatch):
    """It may be restarting; one where nothing ever answered is tried once."""
    tries = []

    def refused(*request):
        tries.append(request)
        raise ReplyError("cannot connect", passing=True, down=True)

    system = open_system(server.address, {}, PATIENT)
    system.reply([Turn("hello")])
    monkeypatch.setattr(chat_server, "post", refused)
    for asked, attempts in ((system, PATIENT.retries + 1), (open_system(server.address), 1)):
        tries.clear()
        with pytest.raises(ReplyError, match="cannot connect") as caught:
            asked.reply([Turn("hello")])
        assert len(tries) == attempts
        assert bool(caught.value.advice) is (asked is not system)


def test_a_web_page_instead_of_a_reply_is_quoted_and_blames_the_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for manner in ("web-page", "missing-page"):
        with pytest.raises(
            ReplyError, match="a web page that begins with <!doctype html>"
        ) as caught:
            ask(server, manner)
        assert server.asked[manner] == 1
        assert "/v1" in caught.value.advice
        assert len(caught.value.detail) < 150
        assert "\x1b" not in caught.value.detail
        assert SECRET[:8] not in caught.value.detail


def test_the_key_goes_into_the_header_and_nowhere_else(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    system = open_system(server.address, {}, PATIENT)
    assert system.reply([Turn("echo-key")]) == "Your header is Bearer [API key]."
    assert server.headers_seen[0]["Authorization"] == f"Bearer {SECRET}"
    with pytest.raises(ReplyError) as caught:
        system.reply([Turn("refuse-key")])
    assert "Incorrect API key" in str(caught.value)
    assert SECRET not in str(caught.value) + str(system.settings) + repr(caught.value.__cause__)


def test_a_key_in_other_letters_is_blotted_out_too(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert ask(server, "echo-key loudly") == "Your header is BEARER [API key]."


@pytest.mark.parametrize("where", ["host", "scheme", "path"])
def test_a_redirect_to_another_place_is_refused_without_a_word_of_its_address(
    server, monkeypatch, where
):
    """The names of hosts are read in small letters: `http://KEY.example` showed the key so."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ReplyError, match="redirected elsewhere") as caught:
        ask(server, f"key-as-host {where}")
    shown = f"{caught.value} {caught.value.detail} {caught.value.advice}".lower()
    assert SECRET.lower()[:8] not in shown
    assert "example" not in shown


def test_a_key_can_be_named(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    ask(server, "hello", replace(PATIENT, key_env="MY_KEY"))
    assert server.headers_seen[0]["Authorization"] == f"Bearer {SECRET}"
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        ask(server, "hello", replace(PATIENT, key_env="NO_SUCH_KEY"))


def test_the_usual_key_does_not_cross_an_open_network(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert find_key("http://192.0.2.7/v1", None) == ""
    assert find_key("http://192.0.2.7/v1", "OPENAI_API_KEY") == SECRET
    for safe in ("https://192.0.2.7/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"):
        assert find_key(safe, None) == SECRET


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("openai:http://me:secret@host/v1#m", "no password"),
        ("openai:http://me:secret@host:99999/v1#m", "no password"),
        ("openai:http://host/v1?key=secret#m", "no password"),
        ("openai:http://host/v1", "name the model"),
        ("openai:host/v1#m", "expected a URL"),
        ("openai:ftp://host/v1#m", "expected a URL"),
        ("openai:http://host:99999/v1#m", "expected a URL"),
    ],
)
def test_an_address_that_cannot_be_used_says_why_and_keeps_secrets(address, message):
    with pytest.raises(UsageError, match=message) as caught:
        open_system(address)
    assert "secret" not in str(caught.value)


def test_content_in_parts_is_one_text():
    body = b'{"choices": [{"message": {"content": [{"type": "text", "text": "a "},'
    body += b' {"type": "image"}, {"type": "text", "text": "b"}]}}]}'
    assert content_of(body) == "a b"


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"choices": []}', b'{"choices": [1]}', b"1"])
def test_other_json_is_not_a_completion(body):
    with pytest.raises(ReplyError, match="not a chat completion"):
        content_of(body)


def test_a_reply_is_text_of_bounded_size():
    assert checked(" half \ud800 a pair\x00 ") == "half \ufffd a pair\ufffd"
    with pytest.raises(ReplyError, match="too long"):
        checked("x" * (LARGEST_REPLY + 1))
    with pytest.raises(ReplyError, match="not a text"):
        checked(None)


def test_a_rate_spaces_the_requests(server):
    system = open_system(server.address, {}, Asking(rate=600))
    started = time.monotonic()
    for _ in range(4):
        system.reply([Turn("hello")])
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("before", range(340, 410, 7))
def test_half_a_key_is_not_kept_where_a_long_error_is_cut(server, monkeypatch, before):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    body = json.dumps({"error": {"message": "x" * before + f" Bearer {SECRET}"}}).encode()
    system = open_system(server.address, {}, PATIENT)
    assert SECRET[:4] not in system._server._said(body)
