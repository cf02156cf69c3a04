"""How much faster is a probe that asks many questions at once than one that asks them one by one?

    python benchmarks/probe.py [--queries 1000] [--serial 40]

A server on this machine, in a process of its own, takes 50 ms for a reply and works on 16 at a
time; who comes seventeenth waits. Each query is asked in five wordings. One by one only `--serial`
queries are asked, because all of them would take minutes: compared are replies per second, in one
run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from dialeval.augment.queries import Query, QueryVariant
from dialeval.probe import probe
from dialeval.systems import Asking, open_system

DELAY, AT_ONCE, WORDINGS = 0.05, 16, 5
REPLY = json.dumps({"choices": [{"message": {"content": "I could not say more."}}]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(REPLY),
    REPLY,
)


def serve(told: Connection) -> None:
    async def run() -> None:
        free = asyncio.Semaphore(AT_ONCE)

        async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r")[0]))
            async with free:
                await asyncio.sleep(DELAY)
            writer.write(ANSWER)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def made_up(count: int) -> list[Query]:
    return [
        Query(
            str(i),
            f"What about {i}?",
            variants=tuple(QueryVariant(f"How about {i}, {j}?") for j in range(1, WORDINGS)),
        )
        for i in range(count)
    ]


def replies_per_second(port: int, folder: Path, count: int, at_once: int) -> float:
    system = open_system(f"openai:http://127.0.0.1:{port}/v1#bot", {}, Asking(concurrency=at_once))
    started = time.perf_counter()
    summary = probe(system, made_up(count), folder, protocol="diversity")
    seconds = time.perf_counter() - started
    assert summary.answered == count * WORDINGS, summary
    rate = summary.answered / seconds
    print(f"{at_once:>8} {summary.answered:>9,} {seconds:>8.1f} {rate:>10.1f}")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--serial", type=int, default=40)
    arguments = parser.parse_args()
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = mine.recv()
    print(f"{'at once':>8} {'replies':>9} {'seconds':>8} {'replies/s':>10}")
    with tempfile.TemporaryDirectory() as name:
        serial = replies_per_second(port, Path(name) / "serial", arguments.serial, 1)
        many = replies_per_second(port, Path(name) / "many", arguments.queries, AT_ONCE)
    server.terminate()
    print(f"{many / serial:.1f} times faster; {AT_ONCE} is the most that this server allows")


if __name__ == "__main__":
    main()
