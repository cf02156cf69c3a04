"""`cmd:"./bot --stdin"`: a command that speaks JSON lines.

For each question one line is written to its standard input, {"messages": [{"role": ..., "content":
...}]}, and one line is read from its standard output: {"reply": "..."}, {"error": "..."}, or the
reply as plain text. The command is started once, without a shell, and goes on from question to
question. If it dies it is started again and asked once more; if it is late it is killed, together
with what it started. With --concurrency there are as many of it. The command line is stored with
the probe: give secrets through the environment.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO

from dialeval.errors import UsageError
from dialeval.sample import Turn
from dialeval.systems.system import LARGEST_REPLY, Asking, ReplyError, as_messages

_INTERPRETER = re.compile(r"(python|node|bash|sh|ruby|perl)[\d.]*")

LAST_LINES = 5
"""Of standard error, to be shown with a failure."""


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
                raise ReplyError("the command ended", str(error)) from None

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
        except BaseException:
            process.bury()
            self._started.discard(process)
            raise
        self._idle.put(process)
        return answer

    def _take(self) -> _Process:
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        if self._closed:
            raise ReplyError("stopped")
        process = _Process(self._words)
        self._started.add(process)
        return process


class _DiedError(Exception):
    """The process ended before it replied."""


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
        self._errors: deque[str] = deque(maxlen=LAST_LINES)
        self._drain = threading.Thread(target=self._keep_errors, daemon=True)
        self._drain.start()

    def ask(self, line: bytes, timeout: float) -> bytes:
        late = threading.Event()

        def kill() -> None:
            late.set()
            self.kill()

        watchdog = threading.Timer(timeout, kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            answer = self._exchange(line)
        finally:
            watchdog.cancel()
        if late.is_set():
            raise ReplyError("no reply in time", f"waited {timeout:g} s{self._last_words()}")
        if len(answer) > LARGEST_REPLY:
            raise ReplyError("reply too long", f"more than {LARGEST_REPLY:,} bytes")
        if not answer:
            raise _DiedError(self._epitaph())
        return answer

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

    def _exchange(self, line: bytes) -> bytes:
        """Nothing where the process is gone. A kill from the watchdog ends both waits."""
        stdin, stdout = self._pipe(self._process.stdin), self._pipe(self._process.stdout)
        with suppress(OSError):  # it may have replied before it read, and be gone
            stdin.write(line)
            stdin.flush()
        try:
            return stdout.readline(LARGEST_REPLY + 2)
        except OSError:
            return b""

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
    """The program; where that is an interpreter, what it runs: every second bot is a `python`."""
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
    """The words of a command line; what cannot be started is refused before anything is asked."""
    try:
        words = shlex.split(address)
    except ValueError as error:
        raise UsageError(f"cmd:{address}: {error}") from error
    if not words:
        raise UsageError('cmd: expected a command, such as cmd:"./bot --stdin"')
    if shutil.which(words[0]) is None:
        raise UsageError(f"cmd:{address}: there is no command {words[0]!r} that can be run")
    return words


def reply_in(line: bytes) -> str:
    """The reply in a line: the field of an object, or the line itself."""
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
