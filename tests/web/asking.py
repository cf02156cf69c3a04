"""Requests as a stranger would send them: any header, any method, no browser in between."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def cookie(self) -> str:
        """What the next request sends back: `name=value`."""
        return self.headers.get("set-cookie", "").partition(";")[0]

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="(\w+)"', self.text)
        assert found, "the page has no form"
        return found[1]


def ask(
    address: str,
    path: str = "/",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """One request. Host is that of the address unless `headers` says something else."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    sent = {"Host": place.netloc, **(headers or {})}
    if form is not None:
        body = urlencode(form).encode()
        sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
    if body is not None:
        sent.setdefault("Content-Length", str(len(body)))
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)
    finally:
        connection.close()


def run_address(address: str, name: str, headers: Mapping[str, str] | None = None) -> str:
    """`/run/...` of the run with this name, as the list of runs links it."""
    listing = ask(address, headers=headers).text
    found = re.search(rf'href="(/run/\w+)" data-row><bdi>{re.escape(name)}</bdi>', listing)
    assert found, f"no run {name} in the list"
    return found[1]
