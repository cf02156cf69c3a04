"""The guard of the page, tried from outside: sockets and plain requests, no browser's manners."""

from __future__ import annotations

import re
import socket
from urllib.parse import urlsplit

import pytest
from browser import serving
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dialeval.errors import UsageError
from dialeval.web.frame import Settings, check_csrf, create_app
from dialeval.web.safety import ClientLimits, TokenBuckets, is_own_name

from .asking import ask, run_address

TOKEN = "correct-horse-battery-staple"


async def write(request):
    await check_csrf(request)
    return PlainTextResponse("written")


async def fail(request):
    raise RuntimeError("secret detail")


ROUTES = [Route("/write", write, methods=["POST"]), Route("/fail", fail)]


@pytest.fixture
def plain():
    with serving(create_app(Settings(), ROUTES)) as address:
        yield address


@pytest.fixture
def guarded(runs):
    with serving(create_app(Settings(token=TOKEN, roots=(runs,)), ROUTES)) as address:
        yield address


def test_every_answer_carries_the_security_headers(page):
    first = run_address(page, "first")
    style = re.search(r'href="(/static/page.css[^"]*)"', ask(page).text)[1]
    for path in ("/", first, f"{first}/0", style, "/nothing", f"{first}?low=x"):
        headers = ask(page, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


def test_pages_are_never_stored_by_the_browser(page):
    assert ask(page).headers["cache-control"] == "no-store"
    assert ask(page, run_address(page, "first") + "/0").headers["cache-control"] == "no-store"


def test_no_page_holds_a_script_or_a_style(page):
    first = run_address(page, "first")
    for path in ("/", first, f"{first}/0"):
        text = ask(page, path).text
        assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", text) == []
        assert not re.search(r"<style|\sstyle=|\son\w+=", text)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1", "a b"],
)
def test_a_foreign_host_header_gets_nothing(page, host):
    answer = ask(page, headers={"Host": host})
    assert answer.status in (400, 421)
    assert "first" not in answer.text


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_loopback_by_any_of_its_names_is_let_in(page, host):
    assert ask(page, headers={"Host": host}).status == 200


def test_beyond_loopback_an_address_or_a_given_name_is_let_in_and_no_other_name():
    settings = Settings(host="0.0.0.0", token=TOKEN, names=("Bench.example",))
    for host in ("192.168.1.7:8000", "[fe80::1]:80", "bench.example", socket.gethostname()):
        assert is_own_name(host, settings)
    assert not is_own_name("evil.example", settings)


def test_two_host_headers_are_refused(page):
    place = urlsplit(page)
    with socket.create_connection((place.hostname, place.port), timeout=10) as raw:
        raw.sendall(
            f"GET / HTTP/1.1\r\nHost: {place.netloc}\r\nHost: evil.example\r\n\r\n".encode()
        )
        assert raw.recv(64).split()[1] in (b"400", b"421")


def test_beyond_loopback_a_token_is_a_must():
    with pytest.raises(UsageError, match="token"):
        Settings(host="0.0.0.0")
    with pytest.raises(UsageError, match="16"):
        Settings(host="0.0.0.0", token="short")
    for token in ("aaaaaaaaaaaaaaaa&b=1", "my/secret?token#2026", "sechzehn Zeichen", "ä" * 20):
        with pytest.raises(UsageError, match="it stands in an address"):
            Settings(host="0.0.0.0", token=token)


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=wrong-wrong-wrong-wrong", "/static/page.css", "/nothing"]
)
def test_without_the_token_nothing_is_shown(guarded, path):
    answer = ask(guarded, path)
    assert answer.status == 401
    assert "first" not in answer.text


def test_the_token_comes_once_and_lives_on_as_a_cookie(guarded):
    answer = ask(guarded, f"/compare?run=a&token={TOKEN}")
    assert answer.status == 303
    assert answer.headers["location"] == "/compare?run=a"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert ask(guarded, headers={"Cookie": answer.cookie}).status == 200
    assert ask(guarded, headers={"Cookie": answer.cookie[:-1] + "0x"}).status == 401


def test_the_redirect_after_the_token_stays_here(guarded):
    answer = ask(guarded, f"//evil.example/?token={TOKEN}")
    assert answer.status == 303
    assert answer.headers["location"] == "/evil.example/"


def test_a_token_does_not_excuse_a_post(guarded):
    answer = ask(guarded, f"/write?token={TOKEN}", "POST", form={})
    assert answer.status == 401


def test_open_paths_need_no_token():
    settings = Settings(token=TOKEN, open_prefixes=("/rate/",))
    route = Route("/rate/{code}", lambda request: PlainTextResponse("hello"))
    with serving(create_app(settings, [route])) as address:
        assert ask(address, "/rate/x").text == "hello"
        assert ask(address, "/ratex").status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_write_from_another_site_is_refused(page, headers):
    first = run_address(page, "first")
    shown = ask(page, f"{first}/0")
    answer = ask(
        page,
        f"{first}/0/what-if",
        "POST",
        {"Cookie": shown.cookie, **headers},
        {"csrf": shown.csrf, "response": "x"},
    )
    assert answer.status == 403


def test_a_write_needs_the_token_of_the_form_and_the_cookie_it_was_made_for(page):
    first = run_address(page, "first")
    one, other = ask(page, f"{first}/0"), ask(page, f"{first}/0")

    def post(cookie: str, csrf: str) -> int:
        form = {"csrf": csrf, "response": "x"}
        return ask(page, f"{first}/0/what-if", "POST", {"Cookie": cookie}, form).status

    assert post(one.cookie, one.csrf) == 200
    assert post(one.cookie, "") == 403
    assert post(one.cookie, "0" * 64) == 403
    assert post(one.cookie, other.csrf) == 403
    assert post("", one.csrf) == 403


def test_a_script_may_send_the_token_in_a_header(page):
    with_form = ask(page, run_address(page, "first") + "/0")
    headers = {"Cookie": with_form.cookie, "X-CSRF-Token": with_form.csrf}
    answer = ask(page, run_address(page, "first") + "/0/what-if", "POST", headers, {"x": "y"})
    assert answer.status == 400
    assert "no response" in answer.text


def test_the_same_secret_keeps_forms_alive_over_a_restart(runs):
    settings = Settings(roots=(runs,), secret=b"s" * 32)
    with serving(create_app(settings)) as address:
        first = run_address(address, "first")
        shown = ask(address, f"{first}/0")
    with serving(create_app(settings)) as address:
        form = {"csrf": shown.csrf, "response": "x"}
        answer = ask(address, f"{first}/0/what-if", "POST", {"Cookie": shown.cookie}, form)
    assert answer.status == 200


def test_a_body_over_the_limit_is_refused_before_it_is_read(plain):
    answer = ask(plain, "/write", "POST", {"Content-Length": str(10**9)})
    assert answer.status == 413


def test_a_length_of_thousands_of_digits_is_refused_like_any_other(plain, caplog):
    answer = ask(plain, "/write", "POST", {"Content-Length": "9" * 4500})
    assert answer.status in (400, 413)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert caplog.text == ""


def test_a_body_that_does_not_say_how_long_it_is_is_counted(plain):
    place = urlsplit(plain)
    kind = "application/x-www-form-urlencoded"
    with socket.create_connection((place.hostname, place.port), timeout=10) as raw:
        raw.sendall(
            f"POST /write HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: {kind}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        for _ in range(5):
            raw.sendall(chunk)
        assert raw.recv(64).split()[1] == b"413"


def test_a_client_that_asks_too_often_has_to_wait():
    limits = ClientLimits(burst=5, per_second=0.001)
    with serving(create_app(Settings(limits=limits))) as address:
        answers = [ask(address) for _ in range(7)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert "retry-after" in answers[-1].headers


def test_the_pace_is_kept_per_client_fills_up_with_time_and_forgets_the_quiet_ones():
    now = [0.0]
    pace = TokenBuckets(ClientLimits(burst=2, per_second=1, clients=2), lambda: now[0])
    assert [pace.allows("a") for _ in range(3)] == [True, True, False]
    assert pace.allows("b")
    now[0] = 1.0
    assert [pace.allows("a") for _ in range(2)] == [True, False]
    pace.allows("c")  # b was quiet for longest
    assert [pace.allows("b") for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../frame.py",
        "/static/..%2fframe.py",
        "/static/%2e%2e/%2e%2e/errors.py",
        "/static//etc/passwd",
        "/run/..%2f..%2fetc",
        "/run/../../etc/passwd",
        "/run/%00",
        "/run/" + "0" * 16,
        "/run/" + "a" * 5000,
    ],
)
def test_no_address_names_a_file(page, path):
    answer = ask(page, path)
    assert answer.status == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("digits", ["9" * 4500, "9" * 20, "9" * 12])
def test_a_number_of_any_length_in_a_path_is_only_another_page_that_is_not_there(
    page, digits, caplog
):
    answer = ask(page, f"{run_address(page, 'first')}/{digits}")
    assert answer.status == 404
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert caplog.text == ""


def test_only_runs_below_the_given_directories_can_be_opened(tmp_path, runs):
    from dialeval.web.pages import Catalogue, run_id

    other = tmp_path / "elsewhere"
    other.mkdir()
    (runs / "first").rename(other / "first")
    (runs / "link").symlink_to(other / "first")
    assert Catalogue([runs]).find().entries == ()
    assert Catalogue([runs]).open(run_id(other / "first")) is None
    assert Catalogue([other]).open(run_id(other / "first")) is not None


def test_an_error_in_our_code_shows_no_traceback(plain, caplog):
    answer = ask(plain, "/fail")
    assert answer.status == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "secret detail" in caplog.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(page, method):
    assert ask(page, method=method).status == 405


def test_extra_routes_come_first_and_pass_the_same_guard(runs):
    mine = Route("/", lambda request: PlainTextResponse("mine"))
    with serving(create_app(Settings(roots=(runs,)), [mine])) as address:
        answer = ask(address)
        assert answer.text == "mine"
        assert answer.headers["cache-control"] == "no-store"
        assert ask(address, headers={"Host": "evil.example"}).status == 421
