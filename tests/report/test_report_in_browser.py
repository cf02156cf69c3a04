"""The report as a reader has it: in a browser, by keyboard, offline."""

import pytest
from hostile import PAYLOADS
from report.page_reader import ELEMENTS
from report.report_runs import METRICS, hostile_sample, plain_run

import dialeval
from dialeval.report.build import write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Thirty answers by two bots."""
    root = tmp_path_factory.mktemp("browser")
    run = plain_run(root / "run", [2 + i % 7 for i in range(30)], ("terse", "wordy"))
    write_report([run.directory], root / "report.html", rounds=99)
    return root / "report.html"


def shown(page):
    return page.locator(".card:not([hidden])")


def test_hostile_dialogues_do_nothing(open_page, tmp_path):
    samples = [hostile_sample(i, text, "bot") for i, text in enumerate(PAYLOADS)]
    run = dialeval.score(samples, METRICS, out=tmp_path / "run")
    write_report([run.directory], tmp_path / "r.html", rounds=99)
    visit = open_page(tmp_path / "r.html")
    visit.page.locator("#toggle").click()
    visit.page.wait_for_timeout(200)
    assert visit.page.evaluate("typeof window.pwned") == "undefined"
    tags = visit.page.evaluate("[...new Set([...document.all].map(e => e.localName))]")
    assert set(tags) <= ELEMENTS
    assert visit.is_quiet()
    assert len(visit.requests) == 1


def test_dialogues_are_walked_opened_searched_and_helped_by_keyboard(open_page, report):
    visit = open_page(report)
    page = visit.page
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('.card').id") == "d2"
    page.keyboard.press("Enter")
    assert page.locator("#d2 .chat").is_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('.card').id") == "d2"
    page.keyboard.press("/")
    page.keyboard.type("w7")
    found = sum(2 + i % 7 >= 8 for i in range(30))
    page.locator("#count", has_text=f"{found} of 30").wait_for()
    assert shown(page).count() == found
    page.keyboard.press("Escape")
    assert shown(page).count() == 30
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    assert visit.is_quiet()


def test_dialogues_are_sorted_and_filtered(open_page, report):
    page = open_page(report).page
    page.select_option("#metric", label="length")
    page.select_option("#order", "high")
    marks = page.locator(".card .mark").all_text_contents()
    numbers = [float(mark) for mark in marks]
    assert numbers == sorted(numbers, reverse=True)
    page.select_option("#order", "file")
    assert page.locator(".card").first.get_attribute("id") == "d1"
    page.select_option("#system", label="wordy")
    assert shown(page).count() == 15


def test_a_link_from_the_best_opens_the_dialogue(open_page, report):
    page = open_page(report).page
    link = page.locator("#extremes .lines a").first
    link.click()
    target = link.get_attribute("href")
    page.locator(f"{target}[open]").wait_for()
    assert page.locator(f"{target} .chat").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_the_screen_in_light_and_dark(open_page, report, tmp_path, width, dark):
    visit = open_page(report, width=width, dark=dark)
    visit.page.evaluate("location.hash = '#d1'")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == dark
    picture = tmp_path / f"{width}-{'dark' if dark else 'light'}.png"
    visit.page.screenshot(path=picture)
    assert picture.stat().st_size > 10_000
    assert visit.is_quiet()


def test_it_can_be_read_without_the_script(open_page, report):
    page = open_page(report, java_script_enabled=False).page
    page.locator("#d1 summary").first.click()
    assert page.locator("#d1 .chat").is_visible()
    assert not page.locator("#tools").is_visible()
