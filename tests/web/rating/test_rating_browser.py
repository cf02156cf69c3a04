"""In a real browser: rate by keyboard, reload, go on elsewhere, lose the connection."""

from __future__ import annotations

import pytest
from hostile import PAYLOADS
from rating_jobs import comparison_job, rating_job

from dialeval.rating.design import RatingMaterial, design
from dialeval.rating.job import Job, parse_qualities
from dialeval.sample import Sample, Turn


def press(visit, *keys: str) -> None:
    for key in keys:
        visit.page.keyboard.press(key)


def is_chosen(visit, field: str, value: str) -> bool:
    return visit.page.locator(f"input[name={field}][value='{value}']").is_checked()


def test_a_dialogue_is_rated_by_keyboard_and_found_saved_after_a_reload(site, open_page):
    here = site(rating_job())
    visit = open_page(f"{here.address}{here.rater()}")
    visit.page.locator("#go:focus").wait_for()
    press(visit, "Enter")
    visit.page.wait_for_url("**/1")
    press(visit, "4", "2", "Enter")
    visit.page.wait_for_url("**/2?saved=1")
    assert visit.page.locator("#status").inner_text() == "✓ Page 1 saved"
    rater = here.store.raters()[0]
    assert here.store.show(rater, 1).answers == {"overall": 4, "natural": 2}
    press(visit, "b")
    visit.page.wait_for_url("**/1")
    visit.page.reload()
    assert is_chosen(visit, "q0", "4")
    assert is_chosen(visit, "q1", "2")
    # Beyond the best there is nothing, least of all the worst.
    press(visit, "5", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft", "Enter")
    visit.page.wait_for_url("**/2?saved=1")
    assert here.store.show(rater, 1).answers == {"overall": 5, "natural": 1}
    press(visit, "p")
    visit.page.wait_for_url("**/pause")
    assert visit.is_quiet()
    other = open_page(f"{here.address}{here.rater()}")
    other.follow(other.page.get_by_role("link", name="Go on with page 2").click)
    assert other.page.url.endswith("/2")
    assert other.page.get_by_text("1 of 6 rated").is_visible()
    assert other.is_quiet()


def test_enter_before_everything_is_answered_says_so_and_saves_nothing(site, open_page):
    here = site(rating_job())
    visit = open_page(f"{here.address}{here.rater()}/1")
    press(visit, "3", "Enter")
    assert visit.page.locator("#status").inner_text() == "Answer every question first."
    assert visit.page.locator("fieldset.current legend").inner_text() == "natural"
    assert here.store.last_number() == 0
    press(visit, "9")  # not on the scale of 1 to 3
    assert not visit.page.locator("input[name=q1]:checked").count()


def test_two_answers_are_compared_by_keyboard(site, open_page):
    here = site(comparison_job(3))
    rater = here.store.raters()[0]
    visit = open_page(f"{here.address}{here.rater()}/1")
    for key in ("1", "2", "3"):
        press(visit, key, "Enter")
        visit.page.wait_for_url(f"**saved={key}")
    visit.page.get_by_role("heading", name="Thank you. That was all.").wait_for()
    said = [here.store.show(rater, position) for position in (1, 2, 3)]
    flipped = [one.assignment.flipped for one in said]
    assert said[0].answers == {"preference": 0.0 if flipped[0] else 1.0}
    assert said[1].answers == {"preference": 0.5}
    assert said[2].answers == {"preference": 1.0 if flipped[2] else 0.0}
    assert visit.is_quiet()


def test_without_a_connection_it_says_so_and_sends_the_same_again(site, open_page):
    here = site(rating_job())
    visit = open_page(f"{here.address}{here.rater()}/1")
    sent: list[str] = []
    held = []

    def break_twice(route):
        if route.request.method != "POST":
            route.continue_()
            return
        sent.append(route.request.post_data)
        if len(sent) == 1:
            route.abort()
        elif len(sent) == 2:
            # The server saves it, but the answer is lost on the way.
            route.fetch()
            route.abort()
        else:
            held.append(route)

    visit.page.route("**/rate/**", break_twice)
    press(visit, "4", "2", "Enter")
    visit.page.get_by_text("Not saved yet: no answer from the server").wait_for()
    assert "saved=1" not in visit.page.url
    for _ in range(600):
        if held:
            break
        visit.page.wait_for_timeout(50)
    held.pop().continue_()
    visit.page.wait_for_url("**/2?saved=1")
    assert len(sent) == 3
    assert len(set(sent)) == 1
    assert here.store.last_number() == 1


def test_without_scripts_it_is_a_plain_form(site, open_page):
    here = site(rating_job())
    visit = open_page(f"{here.address}{here.rater()}/1", java_script_enabled=False)
    visit.page.locator("input[name=q0][value='4']").check()
    visit.page.locator("input[name=q1][value='2']").check()
    visit.page.get_by_role("button", name="Save and next").click()
    visit.page.wait_for_url("**/2?saved=1")
    assert visit.page.get_by_text("✓ Page 1 saved").is_visible()
    assert here.store.last_number() == 1


def test_hostile_dialogues_run_nothing(site, open_page):
    turns = tuple(Turn(text, text) for text in PAYLOADS)
    samples = tuple(
        Sample(f"s{i}", turns, text, facts=PAYLOADS) for i, text in enumerate(PAYLOADS[:2])
    )
    here = site(
        design([RatingMaterial("h", samples)], Job("rate", parse_qualities("overall"))).job, 1
    )
    visit = open_page(f"{here.address}{here.rater()}/1")
    visit.page.locator("summary").first.click()
    assert visit.page.locator(".chat .turn").count() == len(PAYLOADS) + 1
    press(visit, "3", "Enter")
    visit.page.wait_for_url("**saved=1")
    assert visit.page.evaluate("window.pwned") is None
    visit.page.goto(f"{here.address}{here.organiser}")
    assert visit.page.evaluate("window.pwned") is None
    assert visit.is_quiet()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_fit_the_screen(site, open_page, width, dark):
    here = site(comparison_job(3))
    visit = open_page(f"{here.address}{here.rater()}", width=width, dark=dark)
    for path in (here.rater(), f"{here.rater()}/1", here.organiser):
        visit.page.goto(f"{here.address}{path}")
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.is_quiet()
