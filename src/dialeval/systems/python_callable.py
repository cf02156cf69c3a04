"""`python:mybot:reply`: a function in this process.

It takes the dialogue as a list of {"role", "content"} messages, or with `takes=texts` as a list of
texts, and returns the reply. The working directory can be imported from. A plain function is called
by one thread at a time unless --concurrency says that it may be called by more; an `async` one runs
16 times at once, on one event loop.

A thread cannot be killed: a plain function that hangs is left behind in its own, and the next
question gets a new one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from dialeval.chat_http import Asking, ReplyError
from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.sample import Turn
from dialeval.systems.system import as_messages

ASYNC_CONCURRENCY = 16


@dataclass(frozen=True)
class PythonOptions:
    """The options of a `python:` system."""

    takes: Literal["messages", "texts"] = option(
        "messages", "argument of the function: messages with roles, or plain texts"
    )


class PythonCallable:
    """A function that replies."""

    def __init__(self, address: str, options: PythonOptions, asking: Asking) -> None:
        self.name = address
        self._function = find_function(address)
        self._loop = _Loop() if inspect.iscoroutinefunction(self._function) else None
        self.concurrency = asking.concurrency or (ASYNC_CONCURRENCY if self._loop else 1)
        self._options = options
        self._timeout = asking.timeout

    @property
    def settings(self) -> Mapping[str, object]:
        return {"kind": "python", "function": self.name, "takes": self._options.takes}

    def reply(self, history: Sequence[Turn]) -> str:
        messages = as_messages(history)
        takes_texts = self._options.takes == "texts"
        given: Any = [message["content"] for message in messages] if takes_texts else messages
        running = self._start(given)
        try:
            return running.result(self._timeout)  # type: ignore[no-any-return]
        except concurrent.futures.TimeoutError as error:
            if running.done():  # the function itself raised a TimeoutError
                raise ReplyError("TimeoutError", str(error)) from error
            running.cancel()
            raise ReplyError("no reply in time", f"waited {self._timeout:g} s") from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not running.done():
                raise
            raise ReplyError(type(error).__name__, str(error)) from error

    def close(self) -> None:
        if self._loop:
            self._loop.close()

    def _start(self, given: Any) -> concurrent.futures.Future[Any]:
        if self._loop:
            return self._loop.start(self._function(given))
        running: concurrent.futures.Future[Any] = concurrent.futures.Future()
        running.set_running_or_notify_cancel()
        threading.Thread(target=_settle, args=(running, self._function, given), daemon=True).start()
        return running


def find_function(address: str) -> Callable[[Any], Any]:
    """`mybot:reply` -> the function `reply` of the module `mybot`."""
    module, _, attribute = address.partition(":")
    if not module or not attribute:
        raise UsageError(f"python:{address}: expected MODULE:FUNCTION, such as python:mybot:reply")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except Exception as error:
        raise UsageError(f"python:{address}: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UsageError(f"python:{address} is not a function but {type(found).__name__}")
    return found


def _settle(
    running: concurrent.futures.Future[Any], function: Callable[[Any], Any], given: Any
) -> None:
    try:
        running.set_result(function(given))
    except BaseException as error:  # also SystemExit: a bot that calls exit() costs one reply
        running.set_exception(error)


class _Loop:
    """An event loop in a thread of its own, so that whatever a function keeps open stays on it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1.0)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_the_rest())
        self._loop.close()


async def _cancel_the_rest() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
