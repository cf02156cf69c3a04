"""The page in a real browser: read, sort and search by keyboard, edit a response, stay at home."""

from __future__ import annotations

import pytest
from browser import serving
from hostile import PAYLOADS
from made_up import Asking, LengthModels, samples

from dialeval import score
from dialeval.registry import METRICS
from dialeval.sample import Sample, Turn
from dialeval.web.frame import Settings, create_app


def open_run(visit, name: str) -> None:
    visit.follow(visit.page.get_by_role("link", name=name).click)


def open_dialogue(visit, number: int) -> None:
    visit.follow(visit.page.locator("[data-row]").nth(number).click)


def listed(visit) -> list[str]:
    return visit.page.locator(".rows .id").all_inner_texts()


def test_a_person_reads_a_run_by_keyboard_alone(page, open_page):
    visit = open_page(page)
    keyboard = visit.page.keyboard

    keyboard.press("j")
    keyboard.press("Enter")
    visit.page.wait_for_url("**/run/*")
    assert listed(visit)[:2] == ["s0", "s1"]

    visit.page.get_by_role("link", name="length").focus()
    keyboard.press("Enter")
    visit.page.wait_for_url("**sort=length")
    assert listed(visit)[:3] == ["s0", "s7", "s14"]  # the shortest
    assert visit.page.locator("[aria-sort=ascending]").inner_text().startswith("length")

    keyboard.press("/")
    keyboard.type("S11")
    keyboard.press("Enter")
    visit.page.wait_for_url("**text=S11**")
    assert listed(visit)[0] == "s112"  # one word; the order is kept
    assert len(listed(visit)) == 11

    keyboard.press("j")
    keyboard.press("j")
    keyboard.press("k")
    keyboard.press("Enter")
    visit.page.wait_for_url("**/112?**")
    keyboard.press("ArrowRight")
    visit.page.wait_for_url("**/119?**")
    keyboard.press("ArrowLeft")
    visit.page.wait_for_url("**/112?**")
    keyboard.press("u")
    visit.page.wait_for_url("**page=1")
    assert listed(visit)[0] == "s112"
    assert visit.is_quiet()


def test_pages_turn_by_keyboard(page, open_page):
    visit = open_page(page)
    open_run(visit, "first")
    visit.page.keyboard.press("n")
    visit.page.wait_for_url("**page=2")
    assert listed(visit)[0] == "s50"
    visit.page.keyboard.press("p")
    visit.page.wait_for_url("**page=1")
    visit.page.get_by_role("spinbutton", name="Page").fill("3")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**page=3")
    assert listed(visit)[0] == "s100"
    assert visit.is_quiet()


@pytest.mark.parametrize("scripts", [True, False])
def test_an_edited_response_is_scored_in_place(page, open_page, scripts):
    """Without scripts the whole page comes back and says the same."""
    visit = open_page(page, java_script_enabled=scripts)
    open_run(visit, "first")
    open_dialogue(visit, 6)
    assert visit.page.url.endswith("/6?")
    if scripts:
        visit.page.keyboard.press("e")
        visit.page.keyboard.press("Control+a")
        visit.page.keyboard.type("<b>two</b> words")
        visit.page.keyboard.press("Control+Enter")
    else:
        visit.page.get_by_label("Another response").fill("<b>two</b> words")
        visit.page.get_by_role("button", name="Score it").click()
    row = visit.page.locator(".outcome tr", has_text="length")
    row.wait_for()
    assert row.inner_text().split() == ["length", "7", "2", "−5"]
    assert visit.page.get_by_label("Another response").input_value() == "<b>two</b> words"
    assert visit.page.url.endswith("/6?") == scripts
    assert visit.is_quiet()


def test_a_model_scores_an_edited_response(tmp_path, open_page, monkeypatch):
    monkeypatch.setitem(METRICS._loaded, "asking", Asking)
    score(samples(3), [Asking()], out=tmp_path / "runs" / "asked", models=LengthModels())
    settings = Settings(roots=(tmp_path / "runs",), models=LengthModels())
    with serving(create_app(settings)) as address:
        visit = open_page(address)
        open_run(visit, "asked")
        open_dialogue(visit, 0)
        for text in ("abcdef", "abc"):
            visit.page.get_by_label("Another response").fill(text)
            visit.page.get_by_role("button", name="Score it").click()
            row = visit.page.locator(".outcome tbody tr", has_text=f"{len(text)}")
            row.wait_for()
            assert row.inner_text().split()[:3] == ["asking", "4", f"{len(text)}"]
        assert visit.is_quiet()


def test_a_server_that_went_away_is_said_in_words(runs, open_page):
    with serving(create_app(Settings(roots=(runs,)))) as address:
        visit = open_page(address)
        open_run(visit, "first")
        open_dialogue(visit, 0)
    visit.page.get_by_role("button", name="Score it").click()
    visit.page.get_by_text("The server does not answer.").wait_for()


def test_two_runs_are_chosen_and_stand_side_by_side(runs, open_page):
    score(samples(50), ["length"], out=runs / "second")
    with serving(create_app(Settings(roots=(runs,)))) as address:
        visit = open_page(address)
        button = visit.page.get_by_role("button", name="Side by side")
        assert button.is_disabled()
        for box in visit.page.get_by_role("checkbox").all():
            box.check()
        button.click()
        visit.page.get_by_role("heading", name="Side by side").wait_for()
        assert visit.is_quiet()


def test_hostile_text_runs_nothing_and_asks_for_nothing(tmp_path, open_page):
    """Every text in the list, and every text in a dialogue, a dozen in each."""
    dozens = [PAYLOADS[i : i + 12] for i in range(0, len(PAYLOADS), 12)]
    chats = [
        Sample(f"chat {i}", tuple(Turn(text, text) for text in some), some[0], references=some)
        for i, some in enumerate(dozens)
    ]
    single = [Sample(f"{i}{p}", (Turn(p, p),), p, system=p) for i, p in enumerate(PAYLOADS)]
    score([*chats, *single], ["length", "distinct"], out=tmp_path / "runs" / "hostile")
    with serving(create_app(Settings(roots=(tmp_path / "runs",)))) as address:
        visit = open_page(address)
        open_run(visit, "hostile")
        visit.page.keyboard.press("n")
        visit.page.wait_for_url("**page=2")
        assert visit.page.evaluate("window.pwned") is None
        visit.page.keyboard.press("p")
        visit.page.wait_for_url("**page=1")
        assert visit.page.evaluate("window.pwned") is None
        visit.page.keyboard.press("j")
        visit.page.keyboard.press("Enter")
        for number in range(len(chats)):
            visit.page.wait_for_url(f"**/{number}?")
            assert visit.page.locator(".turn").count() == len(dozens[number]) + 1
            assert visit.page.evaluate("window.pwned") is None
            visit.page.keyboard.press("ArrowRight")
        visit.page.wait_for_url(f"**/{len(chats)}?")
        assert visit.is_quiet()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_no_page_is_wider_than_the_window(page, open_page, width, dark, tmp_path):
    visit = open_page(page, width=width, dark=dark)
    for name in ("runs", "run", "dialogue"):
        wide = visit.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        picture = visit.page.screenshot(path=tmp_path / f"{name}.png")
        assert len(picture) > 5000  # something was painted
        if name != "dialogue":
            visit.follow(visit.page.locator("[data-row]").first.click)
    assert visit.is_quiet()


def test_the_token_leaves_the_address(runs, open_page):
    settings = Settings(token="correct-horse-battery-staple", roots=(runs,))
    with serving(create_app(settings)) as address:
        visit = open_page(f"{address}/?token=correct-horse-battery-staple")
        assert visit.page.url == f"{address}/"
        open_run(visit, "first")
        assert listed(visit)[0] == "s0"
        assert visit.page.evaluate("document.cookie") == ""
        assert visit.is_quiet()
