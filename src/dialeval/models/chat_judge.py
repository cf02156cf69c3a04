"""`openai:http://localhost:8000/v1#NAME`: `Choose` by a chat server.

A server that gives `top_logprobs` is asked once, for one token. One that does not is asked
`samples` times at a temperature, and the replies are counted. Nothing is switched behind anybody's
back: a question without samples to a server without log-probabilities is an error that says what
to add.

Every response is kept, with its usage, in `requests.sqlite` of the cache directory, under a digest
of the address and the request. What lies there is never asked again, also by a run that was killed
between a response and the answer cache. The file holds requests and responses as they were sent,
without headers: no key is in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dialeval.chat_http import Asking, ChatServer, ReplyError
from dialeval.errors import JobError, UsageError
from dialeval.question import Answer, Choose, Chosen, Question, cannot_answer, spellings
from dialeval.storage import cache_directory

PREFIX = "openai:"
CONCURRENCY = 8
TOP = 20
"""Log-probabilities that are asked for: the most that OpenAI's interface gives."""

LONGEST_REPLY = 8
"""Tokens of a reply that is counted: some models begin with a word or two."""

CHARACTERS_PER_TOKEN = 4
"""For estimates only: what English text has with the tokenizers of most models."""


@dataclass(frozen=True)
class Budget:
    """Where to stop, and what tokens cost. None: no limit, no price."""

    requests: int | None = None
    tokens: int | None = None
    price_in: float | None = None
    """The price of a million tokens that are sent."""
    price_out: float | None = None
    """The price of a million tokens that come back."""

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.tokens is not None


@dataclass
class Usage:
    """What was spent on servers. `kept`: responses that were there already."""

    requests: int = 0
    kept: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def cost(self, budget: Budget) -> float | None:
        if budget.price_in is None and budget.price_out is None:
            return None
        into, out = budget.price_in or 0.0, budget.price_out or 0.0
        return (self.tokens_in * into + self.tokens_out * out) / 1e6

    def to_record(self, budget: Budget) -> dict[str, Any]:
        cost = self.cost(budget)
        return asdict(self) | ({} if cost is None else {"cost": cost})


class OverBudgetError(Exception):
    """A request that would be over the budget, which the text names."""


@dataclass
class Servers:
    """How servers are asked in this run, and what was spent so far: shared by all of them."""

    asking: Asking = field(default_factory=Asking)
    budget: Budget = field(default_factory=Budget)
    record: Path | None = None
    """Where responses are kept; by default in the cache directory."""
    usage: Usage = field(default_factory=Usage)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to a worker of Ray. Each has a lock and counts of its own, so that a limit on
        the whole run could not be kept."""
        if self.budget.is_limited:
            raise UsageError("--max-requests and --max-tokens are for one machine: leave out --on")
        return {name: value for name, value in vars(self).items() if name not in ("lock", "usage")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, usage=Usage(), lock=threading.Lock())

    def begin_request(self) -> None:
        """Counts a request that is about to be sent; refuses one that is over the budget."""
        with self.lock:
            spent = self.usage.tokens_in + self.usage.tokens_out
            over = [
                f"--max-{name} {limit}"
                for name, limit, used in (
                    ("requests", self.budget.requests, self.usage.requests),
                    ("tokens", self.budget.tokens, spent),
                )
                if limit is not None and used >= limit
            ]
            if over:
                raise OverBudgetError(over[0])
            self.usage.requests += 1

    def stopped(self, limit: str) -> JobError:
        """Returns what is said at the end of the budget, once nothing is under way any more."""
        tokens = self.usage.tokens_in + self.usage.tokens_out
        return JobError(
            f"stopped at {limit}: {self.usage.requests} requests, {tokens} tokens. What was"
            " answered is kept. Run the same command again to go on."
        )


def is_server(name: str) -> bool:
    return name.startswith(PREFIX)


def fingerprint(name: str) -> str:
    """A server does not tell its weights: its address stands for them."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{digest[:16]}-{digest[:32]}"


def load(name: str, servers: Servers) -> ChatJudge:
    return ChatJudge(name, servers)


class ChatJudge:
    """A model of a server that is asked for ratings, several at a time."""

    def __init__(self, name: str, servers: Servers) -> None:
        self._server = ChatServer(name.removeprefix(PREFIX), servers.asking)
        self._servers = servers
        self._name = name
        self._kept = RecordedRequests(servers.record or cache_directory() / "requests.sqlite")

    def answer(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """In the order in which the server is done. Where one question fails, those under way are
        waited for, so that nothing that was paid for is lost."""
        asked = [self._checked(question) for question in questions]
        width = self._servers.asking.concurrency or CONCURRENCY
        waiting = iter(enumerate(asked))
        running: dict[Future[Chosen], int] = {}
        failed: BaseException | None = None
        with ThreadPoolExecutor(width) as pool:
            while True:
                while failed is None and len(running) < width:
                    try:
                        position, question = next(waiting)
                    except StopIteration:
                        break
                    running[pool.submit(self._choose, question)] = position
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    position = running.pop(future)
                    if error := future.exception():
                        failed = failed or error
                    else:
                        yield position, future.result().answer()
        if isinstance(failed, OverBudgetError):
            raise self._servers.stopped(str(failed)) from failed
        if isinstance(failed, ReplyError):
            raise JobError(f"{self._name}: {failed}. {failed.advice}".rstrip()) from failed
        if failed is not None:
            raise failed

    def _checked(self, question: Question) -> Choose:
        if not isinstance(question, Choose):
            raise cannot_answer(question, "a chat server")
        return question

    def _choose(self, question: Choose) -> Chosen:
        text = question.instruction + question.material + question.wanted
        messages = [{"role": "user", "content": text}]
        if not question.samples:
            request = {
                "messages": messages,
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": True,
                "top_logprobs": TOP,
            }
            return Chosen(
                probabilities_of(self._response(request, 0), question.choices, self._name)
            )
        counts = [0] * len(question.choices)
        request = {
            "messages": messages,
            "max_tokens": LONGEST_REPLY,
            "temperature": question.temperature,
        }
        for number in range(question.samples):
            reply = text_of(self._response(request, number))
            if (choice := first_choice(reply, question.choices)) is not None:
                counts[choice] += 1
        return Chosen(tuple(count / question.samples for count in counts))

    def _response(self, request: Mapping[str, object], number: int) -> dict[str, Any]:
        """The response to a request, or to its n-th repetition: the one that is kept, or a new
        one."""
        body = json.dumps(request, sort_keys=True)
        key = hashlib.sha256(f"{self._name}\n{number}\n{body}".encode("utf-8", "replace")).digest()
        if (kept := self._kept.get(key)) is not None:
            with self._servers.lock:
                self._servers.usage.kept += 1
            return kept
        self._servers.begin_request()
        response = self._server.ask(request, _completion)
        text = self._server.blotted(json.dumps(response))
        used = response.get("usage")
        sent, came = (_count(used, name) for name in ("prompt_tokens", "completion_tokens"))
        with self._servers.lock:
            self._servers.usage.tokens_in += sent
            self._servers.usage.tokens_out += came
        self._kept.put(key, self._name, body, text, sent, came)
        return response


class RecordedRequests:
    """Requests and responses on disk, each written before anything is made of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            with self._database:
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS exchanges (key BLOB PRIMARY KEY, model TEXT NOT"
                    " NULL, request TEXT NOT NULL, response TEXT NOT NULL, tokens_in INTEGER NOT"
                    " NULL, tokens_out INTEGER NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP)"
                )
        except (sqlite3.Error, OSError) as error:
            raise JobError(f"{path}: responses cannot be kept there ({error})") from error

    def get(self, key: bytes) -> dict[str, Any] | None:
        with self._lock, closing(self._database.cursor()) as cursor:
            row = cursor.execute("SELECT response FROM exchanges WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, key: bytes, model: str, request: str, response: str, into: int, out: int) -> None:
        try:
            with self._lock, self._database:
                self._database.execute(
                    "INSERT OR REPLACE INTO exchanges (key, model, request, response, tokens_in,"
                    " tokens_out) VALUES (?, ?, ?, ?, ?, ?)",
                    (key, model, request, response, into, out),
                )
        except sqlite3.Error as error:
            raise JobError(f"{self.path}: responses cannot be kept there ({error})") from error


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _completion(body: bytes) -> dict[str, Any]:
    try:
        record: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError("not JSON", f"{len(body)} bytes", passing=True) from error
    try:
        record["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ReplyError("not a chat completion", "no choices[0].message.content") from error
    found: dict[str, Any] = record
    return found


def text_of(response: Mapping[str, Any]) -> str:
    content = response["choices"][0]["message"]["content"]
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def probabilities_of(
    response: Mapping[str, Any], choices: Sequence[str], name: str
) -> tuple[float, ...]:
    """The probability of each choice as the first token, all of its spellings together."""
    try:
        rows = response["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        listed: dict[str, float] = {}
        for row in rows:
            token, log_prob = row["token"], float(row["logprob"])
            if isinstance(token, str) and not math.isnan(log_prob):
                listed[token] = listed.get(token, 0.0) + math.exp(min(0.0, log_prob))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UsageError(
            f"{name} gives no log-probabilities. Count replies instead, 20 requests for each"
            " question: add samples=20 to llm-judge, or --samples 20 to compare and doctor"
        ) from error
    return tuple(
        math.fsum(listed.get(form, 0.0) for form in spellings(choice)) for choice in choices
    )


def first_choice(reply: str, choices: Sequence[str]) -> int | None:
    """The choice that a reply begins with: `4`, `4.`, `**4**`, `Yes, ...`; None for anything else,
    such as `45` or `The rating is 4`."""
    words = "".join(char if char.isalnum() else " " for char in reply.casefold()).split()
    lowered = [choice.casefold() for choice in choices]
    return lowered.index(words[0]) if words and words[0] in lowered else None


@dataclass(frozen=True)
class Estimate:
    """What a run would ask of one server; nothing was asked to find out."""

    model: str
    questions: int
    requests: int
    tokens_in: int
    tokens_out: int

    def usage(self) -> Usage:
        return Usage(self.requests, 0, self.tokens_in, self.tokens_out)


def estimate(questions: Sequence[Question]) -> list[Estimate]:
    """By model: requests and tokens, the latter by the length of the texts."""
    found: dict[str, Estimate] = {}
    for question in dict.fromkeys(questions):
        if not isinstance(question, Choose) or not is_server(question.model):
            continue
        before = found.get(question.model, Estimate(question.model, 0, 0, 0, 0))
        length = len(question.instruction) + len(question.material) + len(question.wanted)
        times = question.samples or 1
        found[question.model] = replace(
            before,
            questions=before.questions + 1,
            requests=before.requests + times,
            tokens_in=before.tokens_in + times * -(-length // CHARACTERS_PER_TOKEN),
            tokens_out=before.tokens_out + (times * LONGEST_REPLY if question.samples else 1),
        )
    return list(found.values())
