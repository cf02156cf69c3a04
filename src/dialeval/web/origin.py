"""Is a request meant for us, and does it come from us? Its headers say so."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from dialeval.web.frame import Settings


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_own_name(header: str, settings: Settings) -> bool:
    """Is this the Host of a request that was meant for us?

    An address written in digits is: to misuse it, a site would have to lie at that address. A name
    must be `localhost`, one that was given, or, beyond loopback, the name of this machine.
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    own = {"localhost", settings.host.lower(), *(name.lower() for name in settings.names)}
    if is_loopback(settings.host):
        return name in own or is_loopback(name)
    return name in own | {socket.gethostname().lower(), socket.getfqdn().lower()} or _is_address(
        name
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_from_own_page(headers: Headers) -> bool:
    """Browsers send Origin with every POST, and Sec-Fetch-Site besides; other programs may send
    neither, and still need the token of a form.

    Our pages send no referrer, and then a form's Origin is `null`. So is that of a hostile frame:
    only Sec-Fetch-Site, which no page can forge, tells them apart.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin == "null":
        return site == "same-origin"
    try:
        place = None if origin is None else urlsplit(origin).netloc
    except ValueError:  # `http://[`
        return False
    if place is not None and place.lower() != headers["host"].lower():
        return False
    return site in (None, "same-origin")
