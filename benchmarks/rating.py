"""Fifty raters at once, and the server killed in the middle: is any rating lost, or doubled?

    python benchmarks/rating.py                    # 50 raters, a save a second each, 30 s
    python benchmarks/rating.py --think 0          # as fast as they can
    python benchmarks/rating.py --db postgresql+psycopg://...

Each rater reads a page, thinks, and saves, over a connection of its own on loopback. One save in
ten is sent twice. In the middle the server gets SIGKILL and is started again; raters send what was
not acknowledged again, under the same submission, as the page does. In the end every acknowledged
rating must be what the database counts, and no submission may have two rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

QUALITIES = "coherence,fluency,overall"
MOST_ATTEMPTS = 150
"""To save one page, a fifth of a second apart: the server needs a few to come back."""


@dataclass
class Tally:
    """What the raters saw."""

    save_seconds: list[float] = field(default_factory=list)
    """Of saves that needed one attempt: those of the outage wait for the restart, not for us."""
    page_seconds: list[float] = field(default_factory=list)
    resent: int = 0
    acknowledged: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """Rater and page -> the answers that the server said are saved, the last ones."""
    unsure: set[tuple[str, int]] = field(default_factory=set)
    """Saves that were under way when time was up: they may count or not."""
    submissions: set[str] = field(default_factory=set)
    is_over: bool = False
    """Time is up: raters finish what they are saving, and go."""


@dataclass(frozen=True)
class Outcome:
    raters: int
    seconds: float
    saves: int
    saves_per_second: float
    save_p50_ms: float
    save_p95_ms: float
    save_p99_ms: float
    page_p95_ms: float
    resent: int
    lost: int
    doubled: int
    outage_seconds: float


class Connection:
    """HTTP over one socket that stays open; just enough of it to ask our own server."""

    def __init__(self, origin: str) -> None:
        self._host = urlsplit(origin).netloc
        self._cookie = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, form: dict[str, str] | None = None
    ) -> tuple[int, str]:
        if self._streams is None:
            name, _, port = self._host.partition(":")
            self._streams = await asyncio.open_connection(name, int(port))
        try:
            return await asyncio.wait_for(self._exchange(method, path, form), 30)
        except BaseException:
            self.close()
            raise

    async def _exchange(
        self, method: str, path: str, form: dict[str, str] | None
    ) -> tuple[int, str]:
        assert self._streams is not None
        reader, writer = self._streams
        body = urlencode(form).encode() if form else b""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", "Accept: application/json"]
        if form:
            lines += [
                "Content-Type: application/x-www-form-urlencoded",
                f"Content-Length: {len(body)}",
            ]
        if self._cookie:
            lines.append(f"Cookie: {self._cookie}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if cookie := re.search(r"^set-cookie: ([^;\r]+)", head, re.I | re.M):
            self._cookie = cookie[1]
        length = re.search(r"^content-length: (\d+)", head, re.I | re.M)
        text = await reader.readexactly(int(length[1])) if length else b""
        return int(head.split()[1]), text.decode()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def rate(name: str, link: str, think: float, tally: Tally, seed: int) -> None:
    """One rater: reads, thinks, saves; sends again what was not acknowledged."""
    generator = random.Random(seed)
    parts = urlsplit(link)
    connection = Connection(f"{parts.scheme}://{parts.netloc}")
    position = 0
    await asyncio.sleep(generator.random() * min(think, 1.0))
    while not tally.is_over:
        position += 1
        started = time.perf_counter()
        status, page = await _read(connection, f"{parts.path}/{position}", tally)
        if status == 404:
            position = 0  # all pages rated: change your mind, from the start
            continue
        if status != 200:
            break
        tally.page_seconds.append(time.perf_counter() - started)
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
        submission = re.search(r'name="submission" value="([^"]+)"', page)
        assert token, page[:500]
        assert submission, page[:500]
        await asyncio.sleep(generator.expovariate(1 / think) if think else 0)
        answers = {f"q{i}": str(generator.randint(1, 5)) for i in range(3)}
        form = {"csrf": token[1], "submission": submission[1], **answers}
        tally.submissions.add(submission[1])
        key = (name, position)
        tally.unsure.add(key)
        for _ in range(2 if generator.random() < 0.1 else 1):
            attempts, started = 0, time.perf_counter()
            while attempts < MOST_ATTEMPTS:
                attempts += 1
                with suppress(OSError, EOFError, asyncio.IncompleteReadError, TimeoutError):
                    started = time.perf_counter()
                    status, text = await connection.ask("POST", f"{parts.path}/{position}", form)
                    assert status == 200, (status, text[:300])
                    assert json.loads(text)["saved"]
                    break
                tally.resent += 1
                await asyncio.sleep(0.2)
            else:
                return
            if attempts == 1:
                tally.save_seconds.append(time.perf_counter() - started)
        tally.unsure.discard(key)
        names = QUALITIES.split(",")
        tally.acknowledged[key] = {q: float(answers[f"q{i}"]) for i, q in enumerate(names)}
    connection.close()


async def _read(connection: Connection, path: str, tally: Tally) -> tuple[int, str]:
    """The page, as soon as there is a server to ask; status 0 if time is up before."""
    while not tally.is_over:
        with suppress(OSError, EOFError, asyncio.IncompleteReadError, TimeoutError):
            return await connection.ask("GET", path)
        await asyncio.sleep(0.2)
    return 0, ""


class Server:
    """`dialeval rate` in a process of its own, which can be killed and started again."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self.links: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "dialeval", "rate", *self._arguments, "--json"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server did not start"
        self.links = json.loads(line)
        self._port = self.links["port"]

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


def run(raters: int, seconds: float, think: float, db: str, dialogues: int = 100) -> Outcome:
    """Everything, in a directory that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="dialeval-rating-") as folder:
        chats = Path(folder) / "chats.jsonl"
        with chats.open("w", encoding="utf-8") as file:
            for number in range(dialogues):
                turns = [f"What about {number}?", "Tell me more.", "Well, where to begin?"]
                record = {"id": f"{number}", "context": turns, "response": f"{number} is fine."}
                file.write(json.dumps(record) + "\n")
        place = db or str(Path(folder) / "ratings.db")
        server = Server(
            [str(chats), "--db", place, "--raters", str(raters), "--qualities", QUALITIES]
        )
        try:
            tally, outage, took = asyncio.run(_load(server, seconds, think))
        finally:
            server.stop()
        return _outcome(place, tally, raters, took, outage)


async def _load(server: Server, seconds: float, think: float) -> tuple[Tally, float, float]:
    tally, started = Tally(), time.monotonic()
    links = server.links["raters"]
    people = [
        asyncio.create_task(rate(name, link, think, tally, seed))
        for seed, (name, link) in enumerate(links.items())
    ]
    await asyncio.sleep(seconds / 2)
    while len(tally.save_seconds) < len(people) and not any(one.done() for one in people):
        await asyncio.sleep(0.1)  # a slow machine: there is nothing to lose yet
    down = time.monotonic()
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)
    outage = time.monotonic() - down
    await asyncio.sleep(seconds / 2)
    tally.is_over = True
    await asyncio.gather(*people)
    return tally, outage, time.monotonic() - started


def _outcome(place: str, tally: Tally, raters: int, took: float, outage: float) -> Outcome:
    from sqlalchemy import func, select

    from dialeval.rating import schema
    from dialeval.rating.database import reading
    from dialeval.rating.opening import open_store

    store = open_store(place)
    assert store is not None
    counted = {(one.rater, one.position): dict(one.answers) for one in store.counted()}
    lost = sum(
        counted.get(key) != answers
        for key, answers in tally.acknowledged.items()
        if key not in tally.unsure
    )
    with reading(store.engine, store.address) as connection:
        rows = connection.scalar(select(func.count()).select_from(schema.ratings)) or 0
        known = connection.scalar(select(func.count(schema.ratings.c.submission.distinct()))) or 0
    store.close()
    assert known <= len(tally.submissions)
    times = sorted(tally.save_seconds)
    return Outcome(
        raters,
        round(took, 1),
        len(times),
        round(len(times) / took, 1),
        _percentile(times, 50),
        _percentile(times, 95),
        _percentile(times, 99),
        _percentile(sorted(tally.page_seconds), 95),
        tally.resent,
        lost,
        rows - known,
        round(outage, 1),
    )


def _percentile(times: Sequence[float], percent: int) -> float:
    return round(1000 * times[min(len(times) - 1, len(times) * percent // 100)], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--think", type=float, default=1.0, help="mean seconds before a save")
    parser.add_argument("--db", default="", help="an empty PostgreSQL database; default: SQLite")
    given = parser.parse_args()
    outcome = run(given.raters, given.seconds, given.think, given.db)
    print(json.dumps(asdict(outcome), indent=2))
    sys.exit(1 if outcome.lost or outcome.doubled else 0)


if __name__ == "__main__":
    main()
