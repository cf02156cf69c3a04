"""Starts a server from the arguments of a command: pages over runs, or a rating job."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import JobError, UsageError
from dialeval.remote import located
from dialeval.runs.table import count

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

    from dialeval.rating.store import Store

MISSING = "the page needs {}: pip install 'dialeval[web]'"


@dataclass(frozen=True)
class Serving:
    """An application and the socket that it will listen on."""

    app: Starlette
    listening: socket.socket
    address: str
    port: int
    runs: int
    elsewhere: str = ""
    """The address for other machines, if it differs: 0.0.0.0 is not an address to visit."""

    @property
    def found(self) -> str:
        return f"{count(self.runs, 'run')} found" if self.runs else "No run found yet"

    def to_record(self) -> dict[str, Any]:
        return {
            "address": self.address,
            "elsewhere": self.elsewhere,
            "port": self.port,
            "runs": self.runs,
        }

    def run(self, tell: Callable[[Serving], None] = lambda serving: None) -> None:
        """Serves until Ctrl-C; `tell` is called when the page can be opened."""
        import uvicorn

        class Server(uvicorn.Server):
            """Tells when it listens."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                tell(serving)

        serving = self
        with closing(self.listening):
            try:
                Server(configuration(self.app)).run(sockets=[self.listening])
            except KeyboardInterrupt:  # uvicorn stops in good order and then raises it again
                return


def configuration(app: Starlette) -> uvicorn.Config:
    """Returns how uvicorn serves the application; the number of connections has our own limits."""
    import uvicorn

    from dialeval.web.safety import connections_with

    return uvicorn.Config(
        app,
        http=connections_with(app.state.settings.limits),
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
    )


def prepare(
    directories: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    names: tuple[str, ...] = (),
) -> Serving:
    """Checks everything that can be wrong before anything is printed."""
    needed = ("jinja2", "python_multipart", "starlette", "uvicorn")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise JobError(MISSING.format(", ".join(missing).replace("_", "-")))
    from dialeval.web.frame import Settings, create_app
    from dialeval.web.pages import Catalogue
    from dialeval.web.safety import is_loopback

    roots = find_roots(directories)
    found = Catalogue(roots).find()
    if directories and not found.entries:
        places = ", ".join(str(root) for root in directories)
        raise UsageError(f"no run in {places}. Make one: dialeval score FILE -o {places}/first")
    token = token or ("" if is_loopback(host) else secrets.token_urlsafe(24))
    listening = listen(host, port)
    try:
        settings = Settings(
            host=host,
            port=listening.getsockname()[1],
            token=token,
            roots=roots,
            names=names,
        )
        app = create_app(settings)
    except BaseException:
        listening.close()
        raise
    elsewhere = ""
    if host in ("0.0.0.0", "::"):
        elsewhere = replace(settings, host=socket.gethostname()).address
    return Serving(app, listening, settings.address, settings.port, len(found.entries), elsewhere)


def find_roots(directories: Sequence[Path]) -> tuple[Path, ...]:
    for directory in directories:
        if not located(directory).is_dir():
            raise UsageError(f"{directory} is not a directory")
    return tuple(directories) or (Path("runs"), Path())


def listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise UsageError(f"--host {host}: this machine knows no such address") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if isinstance(error, PermissionError):
            raise JobError(f"port {port} is for the administrator; choose one over 1023") from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {host}: this machine has no such address") from error
        raise JobError(
            f"cannot listen on {host}:{port} ({error.strerror}). Choose another --port;"
            " 0 takes any free one."
        ) from error
    return listening


@dataclass(frozen=True)
class Links:
    """The links to hand out. They hold the codes: whoever has one can use it."""

    organiser: str
    raters: dict[str, str]


def rating_app(store: Store, host: str, port: int, names: tuple[str, ...] = ()) -> Starlette:
    """Makes the application. Every page is behind a code: raters and organiser have their own."""
    from dialeval.web.frame import Settings, create_app
    from dialeval.web.rating_pages import OPEN_PREFIXES, rating_routes
    from dialeval.web.safety import ClientLimits

    # A whole class may sit behind one address.
    limits = ClientLimits(burst=3000, per_second=600.0, connections=400, connections_in_all=500)
    settings = Settings(
        host=host,
        port=port,
        token=store.organiser,
        names=names,
        open_prefixes=OPEN_PREFIXES,
        limits=limits,
        secret=store.secret,
    )
    return create_app(settings, rating_routes(store))


def prepare_rating(
    store: Store, host: str = "127.0.0.1", port: int = 8000, names: tuple[str, ...] = ()
) -> Serving:
    listening = listen(host, port)
    try:
        own_port = listening.getsockname()[1]
        app = rating_app(store, host, own_port, names)
    except BaseException:
        listening.close()
        raise
    address = f"{rating_origin(host, own_port, names)}/organise/{store.organiser}"
    return Serving(app=app, listening=listening, address=address, port=own_port, runs=0)


def rating_origin(host: str, port: int, names: tuple[str, ...]) -> str:
    """Returns how raters on other machines call this one: links to a loopback address would not
    do."""
    if host in ("0.0.0.0", "::"):
        host = names[0] if names else socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def links(store: Store, serving: Serving) -> Links:
    place = serving.address.partition("/organise/")[0]
    return Links(
        serving.address,
        {rater.name: f"{place}/rate/{rater.token}" for rater in store.raters()},
    )
