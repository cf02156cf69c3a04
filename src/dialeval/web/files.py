"""Styles and scripts: read once, known by name. A request cannot name any other file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dialeval.report.look import stylesheet

PACKAGE = Path(__file__).parent.parent
FOLDERS = ("report/static", "web/static", "web/rating/static")
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    kind: str
    digest: str


def read_static() -> Mapping[str, StaticFile]:
    found = {}
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).glob("*")):
            if path.suffix in KINDS:
                content = _content(path)
                digest = hashlib.sha256(content).hexdigest()
                found[path.name] = StaticFile(content, KINDS[path.suffix], digest)
    return found


def _content(path: Path) -> bytes:
    """The sheet of reports comes with the colours of their pictures."""
    return stylesheet().encode() if path.name == "dialeval.css" else path.read_bytes()


async def static_file(request: Request) -> Response:
    file: StaticFile | None = request.app.state.static.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404)
    tag = f'"{file.digest}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return Response(file.content, headers={"etag": tag, "content-type": file.kind})
