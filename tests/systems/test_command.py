import shlex
import sys
import time
from pathlib import Path

import pytest

from dialeval.errors import UsageError
from dialeval.sample import Turn
from dialeval.systems import Asking, ReplyError, open_system
from dialeval.systems.command import name_of, reply_in

BOT = r"""
import json, os, subprocess, sys, time
seen = 0
for line in sys.stdin:
    seen += 1
    text = json.loads(line)["messages"][-1]["content"]
    if text == "plain":
        print("plain words", flush=True)
    elif text == "die":
        print("I am dying", file=sys.stderr, flush=True)
        sys.exit(4)
    elif text.startswith("die once") and not os.path.exists(text.split()[-1]):
        open(text.split()[-1], "w").close()
        sys.exit(5)
    elif text == "hang":
        subprocess.run(["sleep", "30"])
    elif text == "huge":
        sys.stdout.write("x" * 3_000_000); sys.stdout.write("\n"); sys.stdout.flush()
    elif text == "chatter":
        sys.stderr.write("noise\n" * 200_000)
        print(json.dumps({"reply": "quiet now"}), flush=True)
    else:
        print(json.dumps({"reply": f"{text} {seen} {os.getpid()}"}), flush=True)
"""


@pytest.fixture
def bot(tmp_path):
    path = tmp_path / "bot.py"
    path.write_text(BOT)
    address = f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(path))}"
    opened = open_system(address, {}, Asking(timeout=5.0))
    yield lambda text: opened.reply([Turn(text)])
    opened.close()


def test_one_process_answers_all_questions(bot):
    _, first, process = bot("hello").split()
    _, second, same = bot("hello").split()
    assert (first, second) == ("1", "2")
    assert process == same


def test_a_line_may_be_plain_text(bot):
    assert bot("plain") == "plain words"


def test_a_process_that_dies_is_started_again_once(bot, tmp_path):
    with pytest.raises(ReplyError) as caught:
        bot("die")
    assert caught.value.reason == "the command ended"
    assert "exit code 4" in caught.value.detail
    assert "I am dying" in caught.value.detail
    assert bot(f"die once {tmp_path / 'mark'}").startswith("die once")
    assert bot("hello").startswith("hello")


def test_a_process_that_hangs_is_killed_with_its_children(bot):
    started = time.monotonic()
    with pytest.raises(ReplyError, match="no reply in time"):
        bot("hang")
    assert bot("hello").startswith("hello 1 ")
    assert time.monotonic() - started < 50.0


def test_a_line_that_never_ends_is_not_read_to_the_end(bot):
    with pytest.raises(ReplyError, match="reply too long"):
        bot("huge")
    assert bot("hello").startswith("hello 1 ")


def test_noise_on_standard_error_does_not_block(bot):
    assert bot("chatter") == "quiet now"


def test_closing_ends_the_process(tmp_path):
    path = tmp_path / "bot.py"
    path.write_text(BOT)
    system = open_system(f"cmd:{sys.executable} {path}")
    process = int(system.reply([Turn("hello")]).split()[-1])
    system.close()
    assert not Path(f"/proc/{process}").exists()


def test_with_concurrency_there_are_several_processes(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "bot.py"
    path.write_text(BOT.replace("seen += 1", "seen += 1; time.sleep(0.3)"))
    system = open_system(f"cmd:{sys.executable} {path}", {}, Asking(concurrency=2))
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda text: system.reply([Turn(text)]), ["a", "b"]))
    system.close()
    assert len({reply.split()[-1] for reply in replies}) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"reply": "cut', "not JSON"),
        (b'{"text": "hi"}', "no reply in the line"),
        (b'{"reply": 7}', "no reply in the line"),
        (b'{"error": "no idea"}', "the command reports an error"),
    ],
)
def test_a_line_without_a_reply(line, reason):
    with pytest.raises(ReplyError) as caught:
        reply_in(line)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("cmd:./no-such-bot --stdin", "no command './no-such-bot'"),
        ("cmd:'open quote", "No closing quotation"),
        ("cmd: ", "after the colon"),
        ('cmd:""', "no command ''"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(address, message):
    with pytest.raises(UsageError, match=message):
        open_system(address)


def test_a_shell_is_not_involved(tmp_path):
    system = open_system(f"cmd:echo hello ; touch {tmp_path / 'mark'}")
    assert system.reply([Turn("hi")]).startswith("hello ; touch")
    system.close()
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/python3.11", "-u", "BOT", "--fast"], "my_bot.py"),
        (["node", "BOT"], "my_bot.py"),
        (["python", "-m", "mybot", "--stdin"], "mybot"),
        (["java", "-Xmx1g", "-jar", "lib/bot.jar"], "bot.jar"),
        (["bash", "-c", "cat"], "bash"),
        (["./bots/echo", "BOT"], "echo"),
    ],
)
def test_a_command_is_called_by_what_runs_not_by_its_interpreter(tmp_path, words, name):
    script = tmp_path / "my_bot.py"
    script.write_text("")
    assert name_of([str(script) if word == "BOT" else word for word in words]) == name
