import time

import pytest

from dialeval.errors import UsageError
from dialeval.sample import Turn
from dialeval.systems import Asking, ReplyError, open_system

BOT = """
import asyncio, sys, time

def reply(messages):
    text = messages[-1]["content"]
    if text == "hang":
        time.sleep(60)
    if text == "exit":
        sys.exit(3)
    if text == "late":
        raise TimeoutError("upstream")
    return f"{text} x{len(messages)}"

def shout(texts):
    return " ".join(texts).upper()

async def slowly(messages):
    await asyncio.sleep(60 if messages[-1]["content"] == "hang" else 0.01)
    return "done " + messages[-1]["content"]

class Bot:
    answer = staticmethod(reply)

number = 7
"""


@pytest.fixture
def bot(tmp_path, monkeypatch, request):
    """The module is found in the working directory, under a name of its own."""
    name = f"bot_{abs(hash(request.node.name)) % 10**9}"
    (tmp_path / f"{name}.py").write_text(BOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    return name


def say(address, text, timeout=60.0, **options):
    system = open_system(address, options, Asking(timeout=timeout))
    try:
        return system.reply([Turn("first", "user"), Turn("second", "system"), Turn(text, "user")])
    finally:
        system.close()


def test_a_function_of_the_working_directory_replies(bot):
    assert say(f"python:{bot}:reply", "hi") == "hi x3"
    assert say(f"python:{bot}:Bot.answer", "hi") == "hi x3"


def test_a_function_may_take_texts(bot):
    assert say(f"python:{bot}:shout", "hi", takes="texts") == "FIRST SECOND HI"


def test_an_async_function_is_awaited(bot):
    assert say(f"python:{bot}:slowly", "hi") == "done hi"


def test_only_an_async_function_is_called_by_many_unless_told_otherwise(bot):
    systems = [
        open_system(f"python:{bot}:slowly"),
        open_system(f"python:{bot}:reply"),
        open_system(f"python:{bot}:reply", {}, Asking(concurrency=4)),
    ]
    assert [system.concurrency for system in systems] == [16, 1, 4]
    for system in systems:
        system.close()


@pytest.mark.parametrize("function", ["reply", "slowly"])
def test_a_function_that_hangs_is_left_behind(bot, function):
    system = open_system(f"python:{bot}:{function}", {}, Asking(timeout=3.0))
    started = time.monotonic()
    with pytest.raises(ReplyError, match="no reply in time"):
        system.reply([Turn("hang")])
    assert system.reply([Turn("hi")]).endswith(("hi", "hi x1"))
    assert time.monotonic() - started < 50.0
    system.close()


@pytest.mark.parametrize(("text", "reason"), [("exit", "SystemExit"), ("late", "TimeoutError")])
def test_what_a_function_raises_is_its_reason(bot, text, reason):
    with pytest.raises(ReplyError) as caught:
        say(f"python:{bot}:reply", text)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("python:nothing_here:reply", "ModuleNotFoundError"),
        ("python:{bot}:rply", "rply"),
        ("python:{bot}:number", "not a function"),
        ("python:{bot}", "MODULE:FUNCTION"),
        ("python:", "after the colon"),
    ],
)
def test_what_cannot_be_called_is_refused_at_once(bot, address, message):
    with pytest.raises(UsageError, match=message):
        open_system(address.format(bot=bot))
