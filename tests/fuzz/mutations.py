"""Damage: what disks, editors, other programs and strangers do to a file.

    told = mutate(path, random.Random("seed"))       # "manifest.json: metrics.0.label becomes null"

Any file can lose or gain bytes, be emptied, removed, or become a directory or a link that leads
nowhere. JSON is also changed as JSON, so that what is wrong lies deeper than its syntax; tables and
lists of records lose, double and exchange lines; databases are changed cell by cell.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

TOKENS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n\n", b"\x1b[2J",
    b"\xe2\x80\xae", b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 20, b"9" * 4500,
    b"true", b'""', b'"', b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b"[" * 3000, b",", b":",
    b"\t", b";", b"=1+1", b"PAR1", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd",
    b"SQLite format 3\x00", b"../../x", b"|",
)  # fmt: skip
DEEP = "@ deep @"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63,
    10**400, "", " ", "x", "1", "null", "a|b", "a\nb", "\x00", "\x1b[31m", "\ud800", "\u202eabc",
    "é" * 300, "../x", "length|v1", [], {}, [None], [[]], {"": 1}, {"a": {"b": []}}, [1, 2], ["x"],
    [0.5] * 50, DEEP,
)  # fmt: skip
LARGEST_DEPTH = 100_000


def mutate(path: Path, rng: random.Random) -> str:
    """Changes the file in one way, now and then in two; says how."""
    ways = _ways(path)
    told = []
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        if not path.is_file() or path.is_symlink():
            break
        told.append(rng.choice(ways)(path, rng))
    return f"{path.name}: {'; '.join(told)}"


def _ways(path: Path) -> list[Callable[[Path, random.Random], str]]:
    plain = [_flip, _flip, _flip_many, _cut_end, _cut_out, _repeat, _insert, _zero, _another]
    if path.suffix == ".json":
        return [*plain, *[_change_json] * 14]
    if path.suffix == ".jsonl":
        return [*plain, *[_change_json_line] * 10, *[_change_lines] * 4]
    if path.suffix in (".csv", ".tsv", ".txt"):
        return [*plain, *[_change_cell] * 5, *[_change_lines] * 4]
    if path.suffix in (".db", ".sqlite"):
        return [*plain, *[_change_database] * 14]
    return plain


# Bytes


def _place(content: bytes, rng: random.Random) -> int:
    """Anywhere, but often near an end: that is where magic numbers and footers are."""
    size = len(content)
    return rng.choice(
        (rng.randrange(size), rng.randrange(min(size, 16)), size - 1 - rng.randrange(min(size, 64)))
    )


def _flip(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes() or b"\x00")
    place, bit = _place(bytes(content), rng), rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place} flipped"


def _flip_many(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes() or b"\x00")
    places = sorted(rng.randrange(len(content)) for _ in range(rng.randrange(2, 30)))
    for place in places:
        content[place] = rng.randrange(256)
    path.write_bytes(content)
    return f"{len(places)} bytes replaced from {places[0]} on"


def _zero(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes() or b"\x00")
    start, size = _place(bytes(content), rng), rng.choice((1, 8, 64, 512, 4096))
    end = min(len(content), start + size)
    content[start:end] = bytes(end - start)
    path.write_bytes(content)
    return f"bytes {start} to {end} zeroed"


def _cut_end(path: Path, rng: random.Random) -> str:
    content = path.read_bytes() or b"\x00"
    place = _place(content, rng)
    path.write_bytes(content[:place])
    return f"cut off after byte {place}"


def _cut_out(path: Path, rng: random.Random) -> str:
    content = path.read_bytes() or b"\x00"
    start, size = _place(content, rng), rng.choice((1, 2, 8, 100))
    path.write_bytes(content[:start] + content[start + size :])
    return f"{size} bytes cut out at {start}"


def _repeat(path: Path, rng: random.Random) -> str:
    content = path.read_bytes() or b"\x00"
    start, size = _place(content, rng), rng.choice((1, 8, 100, len(content)))
    path.write_bytes(
        content[: start + size] + content[start : start + size] + content[start + size :]
    )
    return f"{size} bytes doubled at {start}"


def _insert(path: Path, rng: random.Random) -> str:
    content = path.read_bytes() or b"\x00"
    place, token = _place(content, rng), rng.choice(TOKENS)
    path.write_bytes(content[:place] + token + content[place:])
    return f"{token[:12]!r} inserted at {place}"


def _another(path: Path, rng: random.Random) -> str:
    """Something else lies in its place."""
    beside = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    what = rng.choice(("nothing", "empty", "directory", "loop", "noise", "other"))
    if what == "other" and beside:
        other = rng.choice(beside)
        shutil.copyfile(other, path)
        return f"replaced by {other.name}"
    if what == "noise":
        path.write_bytes(rng.randbytes(rng.choice((1, 100, 5000))))
        return "replaced by noise"
    if what in ("empty", "other"):
        path.write_bytes(b"")
        return "emptied"
    path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path.name)
    return f"replaced by {what}"


# Lines


def _change_lines(path: Path, rng: random.Random) -> str:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.choice(("lost", "doubled", "exchanged", "joined", "blank"))
    if way == "lost":
        del lines[one]
    elif way == "doubled":
        lines.insert(one, lines[one])
    elif way == "exchanged":
        lines[one], lines[other] = lines[other], lines[one]
    elif way == "joined":
        lines[one] = lines[one].rstrip(b"\r\n")
    else:
        lines.insert(one, b"\n")
    path.write_bytes(b"".join(lines))
    return f"line {one + 1} {way}"


def _change_cell(path: Path, rng: random.Random) -> str:
    separator = b"\t" if path.suffix == ".tsv" else b","
    lines = path.read_bytes().split(b"\n")
    number = rng.randrange(len(lines))
    cells = lines[number].split(separator)
    place = rng.randrange(len(cells))
    value = rng.choice(VALUES)
    cells[place] = str(value).encode("utf-8", "surrogatepass")[:1000]
    lines[number] = separator.join(cells)
    path.write_bytes(b"\n".join(lines))
    return f"cell {place + 1} of line {number + 1} becomes {str(value)[:20]!r}"


# JSON


def _change_json(path: Path, rng: random.Random) -> str:
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return _flip(path, rng)
    changed, told = change_value(record, rng)
    path.write_bytes(_written(changed, rng))
    return told


def _change_json_line(path: Path, rng: random.Random) -> str:
    lines = path.read_bytes().split(b"\n")
    number = rng.randrange(len(lines))
    try:
        record = json.loads(lines[number])
    except (ValueError, RecursionError):
        return _flip(path, rng)
    changed, told = change_value(record, rng)
    lines[number] = _written(changed, rng, indent=None)
    path.write_bytes(b"\n".join(lines))
    return f"line {number + 1}: {told}"


def _written(record: Any, rng: random.Random, indent: int | None = 2) -> bytes:
    text = json.dumps(record, indent=indent, ensure_ascii=rng.random() < 0.5)
    if DEEP in text:
        depth = rng.choice((500, 5_000, LARGEST_DEPTH))
        text = text.replace(f'"{DEEP}"', "[" * depth + "]" * depth)
    return text.encode("utf-8", "surrogatepass")


def change_value(record: Any, rng: random.Random) -> tuple[Any, str]:
    """The record with one value, or one key, other than it was."""
    places = [place for place, _ in nodes(record) if place]
    if not places or rng.random() < 0.05:
        value = rng.choice(VALUES)
        return value, f"becomes {str(value)[:20]!r}"
    *way, last = rng.choice(places)
    named = ".".join(str(step) for step in (*way, last))
    holder = record
    for step in way:
        holder = holder[step]
    act = rng.random()
    if act < 0.15:
        del holder[last]
        return record, f"{named} lost"
    if act < 0.25 and isinstance(holder, dict):
        key = rng.choice(("", "x", str(last) + " ", str(last).upper(), "\ud800", "a|b", "id"))
        holder[key] = holder.pop(last)
        return record, f"{named} is called {key!r}"
    if act < 0.35:
        value = _value_at(record, rng.choice(places))
    elif act < 0.6 and isinstance(holder[last], int | float) and not isinstance(holder[last], bool):
        value = holder[last] + rng.choice((1, -1, 1e-3, holder[last], -2 * holder[last]))
    elif act < 0.6 and isinstance(holder[last], str):
        value = _other_text(holder[last], rng)
    else:
        value = rng.choice(VALUES)
    holder[last] = json.loads(json.dumps(value))
    return record, f"{named} becomes {str(value)[:20]!r}"


def _other_text(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    piece = rng.choice(("", "x", " ", "0", "|", ":", "\x00", "\ud800", "\n", "}"))
    return text[:place] + piece + text[place + rng.choice((0, 1)) :]


def nodes(record: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield place, record
    if isinstance(record, dict):
        for key, value in record.items():
            yield from nodes(value, (*place, key))
    elif isinstance(record, list):
        for number, value in enumerate(record):
            yield from nodes(value, (*place, number))


def _value_at(record: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        record = record[step]
    return record


# Databases


def _change_database(path: Path, rng: random.Random) -> str:
    """One cell gets another value; the triggers and constraints of the file are not asked."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            return _change_table(database, rng)
    except (sqlite3.Error, UnicodeError):
        return _flip(path, rng)


def _change_table(database: sqlite3.Connection, rng: random.Random) -> str:
    made = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    database.execute("PRAGMA ignore_check_constraints=ON")
    for (trigger,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        database.execute(f'DROP TRIGGER "{trigger}"')
    tables = sorted(database.execute(made).fetchall())
    if not tables:
        raise sqlite3.DatabaseError("no table is left")
    table, _ = rng.choice(tables)
    if rng.random() < 0.1:
        act = rng.choice((f'DROP TABLE "{table}"', f'DELETE FROM "{table}"'))
        database.execute(act)
        return act
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    keys = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")') if row[5]]
    rows = database.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()
    if not rows:
        return f"{table} is empty"
    row, column = rng.choice(rows), rng.choice(columns)
    value = _cell(row[columns.index(column)], rng)
    where = " AND ".join(f'"{key}" IS ?' for key in keys)
    found = [row[columns.index(key)] for key in keys]
    database.execute(
        f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE {where}', [value, *found]
    )
    return f"{table}.{column} becomes {str(value)[:30]!r}"


def _cell(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bytes) and rng.random() < 0.7:
        changed = bytearray(value or b"\x00")
        way = rng.choice(("flip", "zero", "cut", "longer"))
        if way == "flip":
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        elif way == "zero":
            changed[:] = bytes(len(changed))
        elif way == "cut":
            del changed[rng.randrange(len(changed)) :]
        else:
            changed += b"\x00\x01"
        return bytes(changed)
    if isinstance(value, str) and rng.random() < 0.7:
        try:
            changed_record, _ = change_value(json.loads(value), rng)
            return _written(changed_record, rng, None).decode("utf-8", "replace")
        except (ValueError, RecursionError):
            return _other_text(value, rng).replace("\ud800", "?")
    return rng.choice((None, 0, -1, 2**60, 0.5, "", "x", "{}", "[]", "null", b"", b"\xff\x00"))
