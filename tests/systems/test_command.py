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


def system_of(tmp_path, code, timeout=20.0):
    path = tmp_path / "made_up.py"
    path.write_text("import json, os, sys, time\n" + code)
    return open_system(f"cmd:{sys.executable} {path}", {}, Asking(timeout=timeout))


def outcomes(system, count):
    """What questions 0, 1, 2 ... get: a reply, or the error."""
    found = []
    for number in range(count):
        try:
            found.append(system.reply([Turn(f"q{number}")]))
        except ReplyError as error:
            found.append(error)
    system.close()
    return found


STRAY = "the command wrote a line that is no reply"
JSON_ECHO = """
for line in sys.stdin:
    said = json.loads(line)["messages"][-1]["content"]
    print(json.dumps({"reply": "re " + said}), flush=True)
"""
PLAIN_ECHO = """
for line in sys.stdin:
    print("re", json.loads(line)["messages"][-1]["content"], flush=True)
"""


@pytest.mark.parametrize("loading", [0.0, 0.3])
@pytest.mark.parametrize(
    ("echo", "before"),
    [(JSON_ECHO, "before its first reply"), (PLAIN_ECHO, 'before "re q0"')],
    ids=["JSON", "plain"],
)
def test_a_greeting_is_no_reply_however_long_the_first_reply_takes(tmp_path, loading, echo, before):
    greeting = f'print("Loading model ...", flush=True); time.sleep({loading})'
    (error,) = outcomes(system_of(tmp_path, greeting + echo), 1)
    assert error.reason == STRAY
    assert error.detail == f'"Loading model ..." {before}'
    assert error.down
    assert "everything else to standard error" in error.advice


def test_plain_replies_belong_to_their_questions(tmp_path):
    assert outcomes(system_of(tmp_path, PLAIN_ECHO), 4) == ["re q0", "re q1", "re q2", "re q3"]


def test_a_command_that_does_not_end_with_its_input_is_believed_when_time_is_up(tmp_path):
    system = system_of(tmp_path, PLAIN_ECHO + "time.sleep(600)", timeout=6.0)
    assert outcomes(system, 2) == ["re q0", "re q1"]


def test_a_plain_reply_of_two_lines_fails_alone(tmp_path):
    code = PLAIN_ECHO.replace('"re"', r'"first\n" * ("q2" in line) + "re"')
    first, second, third, fourth = outcomes(system_of(tmp_path, code), 4)
    assert (first, second, fourth) == ("re q0", "re q1", "re q3")
    assert third.reason == STRAY
    assert third.detail.endswith("after the reply")


def test_what_waits_before_a_question_fails_it_and_nothing_shifts(tmp_path):
    go, gone = tmp_path / "go", tmp_path / "gone"
    code = (
        JSON_ECHO
        + f"""
    if "q1" in line:
        while not os.path.exists({str(go)!r}): time.sleep(0.01)
        print(json.dumps({{"reply": "unasked"}}), flush=True)
        open({str(gone)!r}, "w").close()
"""
    )
    system = system_of(tmp_path, code)
    assert [system.reply([Turn(f"q{number}")]) for number in (0, 1)] == ["re q0", "re q1"]
    go.touch()
    for _ in range(6000):
        if gone.exists():
            break
        time.sleep(0.01)
    with pytest.raises(ReplyError) as caught:
        system.reply([Turn("q2")])
    assert caught.value.reason == STRAY
    assert "unasked" in caught.value.detail
    assert system.reply([Turn("q3")]) == "re q3"
    system.close()


@pytest.mark.parametrize(
    ("usual", "strange", "detail"),
    [
        ('json.dumps({"reply": "a"})', '"log"', '"log" after a reply in JSON'),
        ('"a"', 'json.dumps({"reply": "b"})', "after a reply in plain text"),
    ],
)
def test_a_command_stays_with_one_form_of_replies(tmp_path, usual, strange, detail):
    code = f'for line in sys.stdin: print({strange} if "q2" in line else {usual}, flush=True)'
    first, second, third, fourth = outcomes(system_of(tmp_path, code), 4)
    assert (first, second, fourth) == ("a", "a", "a")
    assert third.reason == STRAY
    assert detail in third.detail


def test_a_command_of_plain_words_may_report_an_error_in_json(tmp_path):
    code = """
for line in sys.stdin: print('{"error": "tired"}' if "q1" in line else "a", flush=True)
"""
    first, second, third = outcomes(system_of(tmp_path, code), 3)
    assert (first, third) == ("a", "a")
    assert second.reason == "the command reports an error"


def test_a_command_that_never_replied_is_down(tmp_path):
    (error,) = outcomes(system_of(tmp_path, "sys.exit(3)"), 1)
    assert error.reason == "the command ended"
    assert error.down


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
