"""The application around the pages: settings, templates, files, errors, forms.

    app = create_app(Settings(roots=(Path("runs"),)), extra_routes=[Route("/hello", hello)])

    async def hello(request):
        return render(request, "hello.html", who="you")        # a template that extends page.html

    async def save(request):                                   # a POST
        await check_csrf(request)                              # 403 unless our own form was sent
        form = await request.form()

A form holds `<input type="hidden" name="csrf" value="{{ csrf() }}">`; a script sends the same in
the header `X-CSRF-Token` (it stands in `<body data-csrf>` where a page asks for it). Scripts and
styles lie in `static/` and are linked as `{{ static("name.js") }}`: a page holds neither, and no
`style=` attribute. Templates of other rooms lie in `templates/ROOM/`. A number in a path is
`{row:number}`: Starlette's own `int` fails where there are more digits than Python takes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.report.look import environment, stylesheet
from dialeval.web.safety import ClientLimits, Guard, Visitor, is_loopback, sign

if TYPE_CHECKING:
    from dialeval.question import ModelSource

PACKAGE = Path(__file__).parent.parent
FOLDERS = ("report/static", "web/static")
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    """A file of the pages: its bytes, its media type and its digest."""

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


SHORTEST_TOKEN = 16
URL_SAFE = re.compile(r"[A-Za-z0-9._~-]+")


def check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN or not URL_SAFE.fullmatch(token):
        raise UsageError(
            f"--token: {SHORTEST_TOKEN} characters or more are needed, and only letters without"
            " accents, digits and . _ ~ -: it stands in an address"
        )


@dataclass(frozen=True)
class Settings:
    """The settings of the server.

    host           the address to listen on; beyond loopback a token is a must
    port           the port that is really listened on
    token          what visitors must bring, once; empty: nothing (loopback only)
    roots          directories in which runs are looked for
    names          further names that this machine is called by: Host headers that are let in
    open_prefixes  paths that need no token, because their pages check codes of their own
    limits         of one client
    secret         signs forms and cookies. Random where empty: then a restart makes open forms
                   stale. Give the same one to keep them alive
    models         who answers questions when something is scored again; None: the built-in models
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    roots: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    open_prefixes: tuple[str, ...] = ()
    limits: ClientLimits = field(default_factory=ClientLimits)
    secret: bytes = b""
    models: ModelSource | None = None

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached by other machines: that needs a token (--token)"
            )
        if self.token:
            check_token(self.token)

    @property
    def address(self) -> str:
        """Returns the address for the browser; it holds the token."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        place = f"[{host}]" if ":" in host else host
        return f"http://{place}:{self.port}/" + (f"?token={self.token}" if self.token else "")


class Number(Convertor[int]):
    """A number in a path, of a size that rows and databases have; others are no such page."""

    regex = "[0-9]{1,12}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", Number())


def create_app(settings: Settings, extra_routes: Sequence[BaseRoute] = ()) -> Starlette:
    """Returns the pages over runs, and those of others, behind one guard."""
    from dialeval.web.pages import run_routes

    secret = settings.secret or secrets.token_bytes(32)
    pages = run_routes(settings)
    app = Starlette(
        routes=[*extra_routes, *pages.routes, Route("/static/{name}", static_file)],
        middleware=[Middleware(Guard, settings=settings, secret=secret)],
        exception_handlers={HTTPException: _http_error, DialevalError: _known_error},
        lifespan=pages.lifespan,
    )
    app.state.settings = settings
    app.state.secret = secret
    app.state.static = read_static()
    app.state.environment = environment()
    return app


def render(
    request: Request,
    template: str,
    /,
    *,
    status_code: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Returns the page that a template makes of these values. It can call `csrf()` and
    `static(name)`."""
    page = request.app.state.environment.get_template(template)
    text = page.render(
        request_path=request.url.path,
        csrf=lambda: csrf_token(request),
        static=lambda name: f"/static/{name}?{request.app.state.static[name].digest[:8]}",
        **values,
    )
    # Lone surrogates, which JSON can carry, are no text: show that something was there.
    return HTMLResponse(text.encode("utf-8", "replace"), status_code=status_code, headers=headers)


def csrf_token(request: Request) -> str:
    """Returns what a form must send back; it holds for this visitor's cookie only."""
    visitor: Visitor = request.scope["dialeval.visitor"]
    visitor.is_wanted = True
    return sign(request.app.state.secret, f"csrf:{visitor.session}")


async def check_csrf(request: Request) -> None:
    """Raises 403 unless the form (field `csrf`) or the header `X-CSRF-Token` is ours."""
    given: object = request.headers.get("x-csrf-token")
    if given is None and _is_form(request):
        given = (await request.form()).get("csrf")
    visitor: Visitor = request.scope["dialeval.visitor"]
    expected = sign(request.app.state.secret, f"csrf:{visitor.session}")
    if not isinstance(given, str) or not hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), expected.encode()
    ):
        raise HTTPException(403, "This form is out of date. Load the page again.")


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in ("application/x-www-form-urlencoded", "multipart/form-data")


TITLES = {
    400: "That request makes no sense",
    403: "Not allowed",
    404: "Nothing is here",
    405: "Not allowed",
    409: "That does not fit what is here",
    422: "That cannot be done",
    503: "That does not work just now",
}


def _error_page(request: Request, status: int, message: str) -> Response:
    title = TITLES.get(status, "Something is wrong")
    return render(request, "error.html", status_code=status, title=title, message=message)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    usual = {404: "There is no such page.", 405: "This address does not take that method."}
    message = usual.get(error.status_code, error.detail)
    return _error_page(request, error.status_code, message)


async def _known_error(request: Request, error: Exception) -> Response:
    """503 where the same request may succeed later: a disk that is full, a database that is away.
    Pages that save try again then."""
    return _error_page(request, 503 if isinstance(error, JobError) else 422, str(error))
