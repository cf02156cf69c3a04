"""A rating job on a socket: the addresses of its pages, and the application behind them."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from starlette.applications import Starlette

from dialeval.rating.store import Store
from dialeval.web.frame import Settings, create_app
from dialeval.web.rating.pages import OPEN_PREFIXES, rating_routes
from dialeval.web.safety import Limits
from dialeval.web.serving import Serving, listen

LIMITS = Limits(burst=3000, per_second=600.0, connections=400, connections_in_all=500)
"""A whole class may sit behind one address."""


@dataclass(frozen=True)
class Links:
    """What to hand out. They hold the codes: whoever has one can use it."""

    organiser: str
    raters: dict[str, str]


def rating_app(store: Store, host: str, port: int, names: tuple[str, ...] = ()) -> Starlette:
    """Every page behind a code: those of raters and organiser behind their own."""
    settings = Settings(
        host=host,
        port=port,
        token=store.organiser,
        names=names,
        open_prefixes=OPEN_PREFIXES,
        limits=LIMITS,
        secret=store.secret,
    )
    return create_app(settings, rating_routes(store))


def prepare(
    store: Store, host: str = "127.0.0.1", port: int = 8000, names: tuple[str, ...] = ()
) -> Serving:
    listening = listen(host, port)
    try:
        own_port = listening.getsockname()[1]
        app = rating_app(store, host, own_port, names)
    except BaseException:
        listening.close()
        raise
    address = f"{origin(host, own_port, names)}/organise/{store.organiser}"
    return Serving(
        app=app, listening=listening, address=address, elsewhere="", port=own_port, runs=0
    )


def origin(host: str, port: int, names: tuple[str, ...]) -> str:
    """How raters on other machines call this one: links to a loopback address would not do."""
    if host in ("0.0.0.0", "::"):
        host = names[0] if names else socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def links(store: Store, serving: Serving) -> Links:
    place = serving.address.partition("/organise/")[0]
    return Links(
        serving.address,
        {rater.name: f"{place}/rate/{rater.token}" for rater in store.raters()},
    )
