"""A PostgreSQL server of the tests' own, on a socket in a directory that goes away with it.

It will not run as root, so root lends it another user. Tests that need it skip, with the reason,
where its programs are absent.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    if program := shutil.which("initdb"):
        return Path(program).resolve().parent
    pytest.skip("no PostgreSQL server here: install the package 'postgresql'")


def _lend_user(folder: Path) -> list[str]:
    """What to put before a command so that it does not run as root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL does not run as root, and setpriv is absent")
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of an empty database; it waits for the disk as little as it can."""
    pytest.importorskip("psycopg", reason="needs the extra 'postgres'")
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="dialeval-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        before = _lend_user(folder)

        def run(*command: str) -> None:
            done = subprocess.run(
                [*before, *command], cwd=folder, capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, done.stdout + done.stderr

        data = str(folder / "data")
        run(str(programs / "initdb"), "-D", data, "-U", "tester", "--auth=trust", "--no-sync")
        options = f"-c listen_addresses='' -k {folder} -c fsync=off -c max_connections=100"
        control = str(programs / "pg_ctl")
        log = str(folder / "log")
        run(control, "-D", data, "-o", options, "-l", log, "-w", "-t", "60", "start")
        try:
            yield f"postgresql+psycopg://tester:secret-word@/postgres?host={quote(name)}"
        finally:
            run(control, "-D", data, "-m", "immediate", "-w", "stop")


_schemas = iter(range(1_000_000))


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The URL of a schema that no other test has."""
    from sqlalchemy import create_engine, text

    name = f"test_{next(_schemas)}"
    engine = create_engine(postgres_server)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return f"{postgres_server}&options=-csearch_path%3D{name}"
