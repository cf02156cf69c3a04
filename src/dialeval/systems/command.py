"""`cmd:"./bot --stdin"`: a command that speaks JSON lines.

For each question one line is written to its standard input, {"messages": [{"role": ..., "content":
...}]}, and one line is read from its standard output: {"reply": "..."}, {"error": "..."}, or the
reply as plain text. The command is started once, without a shell, and goes on from question to
question. If it dies it is started again and asked once more; if it is late it is killed, together
with what it started. With --concurrency there are as many of it. The command line is stored with
the probe: give secrets through the environment.

A line too many would make each reply the answer to the next question. So whatever was not asked for
is a failure, and the process is started again. A greeting ("Loading model ...") looks like a reply
in plain text: the first such reply is believed when the process, its input closed, ends or is late
without another line. From then on the command has to stay with plain text, or with JSON.
"""

from __future__ import annotations

import json
import os
import queue
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal

from dialeval.chat_http import LARGEST_REPLY, Asking, ReplyError
from dialeval.errors import UsageError
from dialeval.sample import Turn
from dialeval.systems.system import as_messages

_INTERPRETER = re.compile(r"(python|node|bash|sh|ruby|perl)[\d.]*")

LAST_LINES = 5
"""Number of lines of standard error that are shown with a failure."""

GRACE = 0.05
"""Seconds in which a second line may follow a reply in plain text."""

BLOCK = 1 << 16
QUOTED = 80
"""Characters of a line that are shown."""

Form = Literal["plain text", "JSON"]


class Command:
    """The processes of one command; each is asked by one thread at a time."""

    def __init__(self, address: str, asking: Asking) -> None:
        self._words = split(address)
        self.name = name_of(self._words)
        self.concurrency = asking.concurrency or 1
        self._timeout = asking.timeout
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._started: set[_Process] = set()
        self._closed = False
        self._form: Form | None = None
        """What its replies look like, once there is one."""

    @property
    def settings(self) -> Mapping[str, object]:
        return {"kind": "cmd", "command": self._words}

    def reply(self, history: Sequence[Turn]) -> str:
        line = json.dumps({"messages": as_messages(history)}).encode("ascii") + b"\n"
        try:
            return reply_in(self._ask(line))
        except _DiedError:
            try:
                return reply_in(self._ask(line))
            except _DiedError as error:
                down = not error.had_replied
                raise ReplyError("the command ended", str(error), down=down) from None

    def close(self) -> None:
        self._closed = True
        for process in list(self._started):
            process.kill()
        while not self._idle.empty():
            self._idle.get().bury()

    def _ask(self, line: bytes) -> bytes:
        process = self._take()
        try:
            answer = process.ask(line, self._timeout)
            goes_on = self._believe(process, answer)
        except BaseException:
            self._bury(process)
            raise
        if goes_on:
            self._idle.put(process)
        else:
            self._bury(process)
        return answer

    def _believe(self, process: _Process, answer: bytes) -> bool:
        """Returns whether the process can be asked more; `ReplyError` where this may be no
        reply."""
        form = form_of(answer)
        if form and self._form and form != self._form:
            raise _astray(f"{_quoted(answer)} after a reply in {self._form}")
        if form == "plain text" and self._form is None:
            if second := process.end(self._timeout):
                is_greeting = form_of(second) == "JSON"
                other = "its first reply" if is_greeting else _quoted(second)
                raise _astray(f"{_quoted(answer)} before {other}", down=True)
            self._form = form
            return False
        if more := process.unread(GRACE if form == "plain text" else 0.0):
            raise _astray(f"{_quoted(more)} after the reply")
        self._form = self._form or form
        return True

    def _bury(self, process: _Process) -> None:
        process.bury()
        self._started.discard(process)

    def _take(self) -> _Process:
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        if self._closed:
            raise ReplyError("stopped")
        process = _Process(self._words)
        self._started.add(process)
        return process


class _DiedError(Exception):
    """The process ended before it replied to this question."""

    def __init__(self, epitaph: str, had_replied: bool) -> None:
        super().__init__(epitaph)
        self.had_replied = had_replied


class _Process:
    """One running command."""

    def __init__(self, words: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A group of its own: it can be killed with all that it started, and Ctrl-C is ours.
                start_new_session=True,
            )
        except OSError as error:
            reason = str(error.strerror or error)
            raise ReplyError("the command cannot be started", reason, down=True) from error
        self._had_replied = False
        self._output = self._pipe(self._process.stdout).fileno()
        self._read = b""
        """What was read of its output, and is part of no reply yet."""
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._errors: deque[str] = deque(maxlen=LAST_LINES)
        self._drain = threading.Thread(target=self._keep_errors, daemon=True)
        self._drain.start()

    def ask(self, line: bytes, timeout: float) -> bytes:
        # Of a process that was just started, it depends on the moment what is there already.
        if self._had_replied and (waiting := self.unread()):
            raise _astray(f"{_quoted(waiting)} before the question")
        with self._killed_after(timeout) as late:
            with suppress(OSError):  # it may have replied before it read, and be gone
                stdin = self._pipe(self._process.stdin)
                stdin.write(line)
                stdin.flush()
            answer = self._line()
        if late.is_set():
            raise ReplyError("no reply in time", f"waited {timeout:g} s{self._last_words()}")
        if len(answer) > LARGEST_REPLY:
            raise ReplyError("reply too long", f"more than {LARGEST_REPLY:,} bytes")
        if not answer:
            raise _DiedError(self._epitaph(), self._had_replied)
        self._had_replied = True
        return answer

    def unread(self, seconds: float = 0.0) -> bytes:
        """Returns what it wrote without being asked, or writes within this many seconds."""
        if not self._read and self._poll.poll(1000 * seconds):
            self._read = os.read(self._output, BLOCK)
        return self._read

    def end(self, timeout: float) -> bytes:
        """Tells it that there are no more questions; returns the line that it writes nevertheless,
        if it does."""
        with suppress(OSError):
            self._pipe(self._process.stdin).close()
        with self._killed_after(timeout):
            return self._line()

    def kill(self) -> None:
        """Ends the process and all that it started; whoever waits for its reply gets none."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def bury(self) -> None:
        """Kills it and lets go of its pipes. Only for the thread that asked it."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._drain.join(1.0)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                self._pipe(pipe).close()

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[threading.Event]:
        """Ends all waits for the process in time; the event says whether it came to that."""
        late = threading.Event()

        def kill() -> None:
            late.set()
            self.kill()

        watchdog = threading.Timer(seconds, kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield late
        finally:
            watchdog.cancel()

    def _line(self) -> bytes:
        """Returns the next line of its output, with its end; nothing where the process is gone."""
        while b"\n" not in self._read and len(self._read) <= LARGEST_REPLY:
            block = os.read(self._output, BLOCK)
            if not block:
                break
            self._read += block
        line, end, self._read = self._read.partition(b"\n")
        return line + end

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def _keep_errors(self) -> None:
        stream = self._pipe(self._process.stderr)
        while line := stream.readline(1000):
            if text := line.decode("utf-8", "replace").strip():
                self._errors.append(text)

    def _epitaph(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        return f"exit code {code}" + self._last_words()

    def _last_words(self) -> str:
        self._drain.join(0.5)
        said = " / ".join(self._errors)
        return f"; it said: {said[-400:]}" if said else ""


def name_of(words: Sequence[str]) -> str:
    """Returns the program or, if that is an interpreter, what it runs: every second bot is a
    `python`."""
    program = Path(words[0]).name
    options, runs = words[1:], ""
    if program == "java":
        runs = _after("-jar", options)
    elif _INTERPRETER.fullmatch(program):
        script = next((word for word in options if Path(word).is_file()), "")
        runs = script or _after("-m", options)
    return Path(runs).name or program


def _after(flag: str, words: Sequence[str]) -> str:
    return next((word for before, word in pairwise(words) if before == flag), "")


def split(address: str) -> list[str]:
    """Returns the words of a command line; what cannot be started is refused before anything is
    asked."""
    try:
        words = shlex.split(address)
    except ValueError as error:
        raise UsageError(f"cmd:{address}: {error}") from error
    if not words:
        raise UsageError('cmd: expected a command, such as cmd:"./bot --stdin"')
    if shutil.which(words[0]) is None:
        raise UsageError(f"cmd:{address}: there is no command {words[0]!r} that can be run")
    return words


def form_of(line: bytes) -> Form | None:
    """Returns how the line replies; None where it is an error, or garbled."""
    if not line.lstrip().startswith(b"{"):
        return "plain text"
    try:
        reply_in(line)
    except ReplyError:
        return None
    return "JSON"


def _astray(detail: str, down: bool = False) -> ReplyError:
    return ReplyError(
        "the command wrote a line that is no reply",
        detail,
        down=down,
        advice="Write one line for each question to standard output, and everything else to"
        " standard error.",
    )


def _quoted(line: bytes) -> str:
    first = line.lstrip(b"\r\n").split(b"\n")[0].decode("utf-8", "replace").strip()
    return json.dumps(first[:QUOTED], ensure_ascii=False)


def reply_in(line: bytes) -> str:
    """Returns the reply in a line: the field of an object, or the line itself."""
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return text
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReplyError("not JSON", str(error)) from error
    if isinstance(reply := record.get("reply"), str):
        return reply
    if "error" in record:
        raise ReplyError("the command reports an error", str(record["error"])[:400])
    raise ReplyError("no reply in the line", "expected a text in the field 'reply'")
