"""The rater's and the organiser's pages, asked without a browser: plain forms, codes, secrets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from hostile import LONE_SURROGATE, MARKUP, PAYLOADS
from rating_jobs import answers_of, comparison_job, rating_job
from web.asking import ask

from dialeval.rating.design import RatingMaterial, design
from dialeval.rating.job import Job, parse_qualities
from dialeval.sample import Sample, Turn, Variant


def submission(page) -> str:
    return re.search(r'name="submission" value="([^"]+)"', page.text)[1]


def send(site, path, page, answers, cookie="", **headers):
    form = {"csrf": page.csrf, "submission": submission(page), **answers}
    return ask(
        site.address, path, "POST", headers={"Cookie": cookie or page.cookie, **headers}, form=form
    )


def test_a_plain_form_saves_and_leads_to_the_next_page(site):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    page = ask(here.address, path)
    done = send(here, path, page, {"q0": "4", "q1": "2"})
    assert (done.status, done.headers["location"]) == (303, f"{here.rater()}/2?saved=1")
    after = ask(here.address, path)
    assert 'value="4" required checked' in after.text
    assert 'value="2" required checked' in after.text
    assert "Page 1 saved" in ask(here.address, f"{here.rater()}/2?saved=1").text
    assert here.store.done(here.store.raters()[0]) == 1


def test_a_script_gets_json_and_a_second_send_changes_nothing(site):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    page = ask(here.address, path)
    for _ in range(2):
        done = send(here, path, page, {"q0": "4", "q1": "2"}, Accept="application/json")
        assert json.loads(done.text) == {"saved": True, "next": f"{here.rater()}/2?saved=1"}
    assert here.store.last_number() == 1


@pytest.mark.parametrize(
    "answers", [{}, {"q0": "4"}, {"q0": "9", "q1": "1"}, {"q0": "x", "q1": "1"}]
)
def test_an_incomplete_form_saves_nothing_and_keeps_what_was_chosen(site, answers):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    done = send(here, path, ask(here.address, path), answers)
    assert done.status == 422
    assert "Nothing was saved" in done.text
    if answers.get("q0") == "4":
        assert 'value="4" required checked' in done.text
    assert here.store.last_number() == 0


def test_a_comment_is_optional_and_shown_to_its_rater_and_the_organiser(site):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    answers = {"q0": "4", "q1": "2"}
    send(here, path, ask(here.address, path), {**answers, "comment": " Two\r\nlines <b>. "})
    assert here.store.show(here.store.raters()[0], 1).comment == "Two\nlines <b>."
    assert ">\nTwo\nlines &lt;b&gt;.</textarea>" in ask(here.address, path).text
    assert "Two\nlines &lt;b&gt;.</td>" in ask(here.address, here.organiser).text
    assert "lines" not in ask(here.address, f"{here.rater(2)}/1").text


def test_a_comment_that_is_too_long_saves_nothing_and_is_kept_on_the_page(site):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    form = {"q0": "4", "q1": "2", "comment": "x" * 2001}
    page = ask(here.address, path)
    done = send(here, path, page, form)
    assert done.status == 422
    assert "the comment has 2,001 characters, and at most 2,000 are kept" in done.text
    assert "x" * 2001 in done.text
    assert 'value="4" required checked' in done.text
    told = send(here, path, page, form, Accept="application/json")
    assert "2,001 characters" in json.loads(told.text)["problem"]
    assert here.store.last_number() == 0


def test_a_form_of_another_site_is_refused(site):
    here = site(rating_job())
    path = f"{here.rater()}/1"
    page = ask(here.address, path)
    answers = {"q0": "4", "q1": "2"}
    foreign = send(here, path, page, answers, Origin="https://attacker.example")
    stale = send(here, path, page, answers, cookie="dialeval-visitor-8000=" + "x" * 43)
    assert (foreign.status, stale.status) == (403, 403)
    assert here.store.last_number() == 0


def test_nothing_is_shown_without_a_code(site):
    here = site(rating_job())
    for path in ("/rate/nobody", "/rate/nobody/1", f"/rate/{here.store.organiser}", "/organise/x"):
        assert ask(here.address, path).status == 404
    for path in (
        f"{here.rater()}/0",
        f"{here.rater()}/99",
        f"{here.rater()}/{10**30}",
        f"{here.organiser}/passwd",
    ):
        assert ask(here.address, path).status == 404
    assert ask(here.address, "/").status == 401


def test_the_last_page_leads_to_those_left_open_and_then_to_the_end(site):
    here = site(rating_job(3))
    answers = {"q0": "4", "q1": "2"}
    assert ask(here.address, f"{here.rater()}/done").headers["location"] == f"{here.rater()}/1"
    for position, target in ((2, "3"), (3, "1"), (1, "2")):
        path = f"{here.rater()}/{position}"
        done = send(here, path, ask(here.address, path), answers)
        assert done.headers["location"].partition("?")[0] == f"{here.rater()}/{target}"
    path = f"{here.rater()}/3"
    done = send(here, path, ask(here.address, path), answers)
    assert done.headers["location"] == f"{here.rater()}/done?saved=3"
    assert "That was all" in ask(here.address, f"{here.rater()}/done").text


def test_welcome_and_pause_lead_back_to_where_the_rater_was(site):
    here = site(replace(rating_job(3), instructions="Be <kind>."))
    path = f"{here.rater()}/1"
    send(here, path, ask(here.address, path), {"q0": "4", "q1": "2"})
    welcome = ask(here.address, here.rater()).text
    assert "Be &lt;kind&gt;." in welcome
    for page in (welcome, ask(here.address, f"{here.rater()}/pause").text):
        assert f'href="{here.rater()}/2"' in page
        assert "1 of 3 rated" in page


def test_raters_never_see_scores_systems_or_what_is_a_check(site):
    samples = answers_of("gpt-secret", 4, "a word")
    material = RatingMaterial(
        "chats", samples, {s.id: {"hidden-metric": 0.123456} for s in samples}, {}
    )
    job = Job("rate", parse_qualities("overall"), checks=0.5, duplicates=0.5)
    here = site(design([material], job).job)
    total = here.store.total(here.store.raters()[0])
    assert total == 8
    for position in range(1, total + 1):
        page = ask(here.address, f"{here.rater()}/{position}").text.lower()
        for secret in ("gpt-secret", "hidden-metric", "0.123", "check-", "duplicate", "repeat"):
            assert secret not in page


def test_a_comparison_is_blind_and_stored_the_right_way_round(site):
    here = site(comparison_job(6))
    rater = here.store.raters()[0]
    for position in range(1, 7):
        page = ask(here.address, f"{here.rater()}/{position}")
        shown = re.findall(r"(\d+) is what (\w) says", unescape(page.text))
        left = shown[0][1]
        send(here, f"{here.rater()}/{position}", page, {"q0": "left"})
        showing = here.store.show(rater, position)
        assert showing.answers == {"preference": 1.0 if left == "a" else 0.0}
        again = ask(here.address, f"{here.rater()}/{position}").text
        assert 'value="left" required checked' in again


def test_the_organiser_sees_numbers_links_and_files(site):
    here = site(rating_job())
    for rater in (1, 2):
        for position in (1, 2, 3):
            path = f"{here.rater(rater)}/{position}"
            send(here, path, ask(here.address, path), {"q0": "4", "q1": "2"})
    page = ask(here.address, here.organiser)
    assert "6 of 12 pages rated, 50 %" in page.text
    assert f"{here.address}{here.rater(2)}" in page.text
    export = ask(here.address, f"{here.organiser}/ratings.jsonl")
    assert "attachment" in export.headers["content-disposition"]
    records = [json.loads(line) for line in export.text.splitlines()]
    assert sum("ratings" in record for record in records) >= 3
    assert ask(here.address, f"{here.organiser}/answers.jsonl").text.count("\n") == 6
    assert "rating_overall__rater-2" in ask(here.address, f"{here.organiser}/ratings.csv").text


@pytest.mark.parametrize("kind", ["rate", "compare"])
def test_hostile_text_stays_text_on_every_page(site, kind):
    texts = (*PAYLOADS, LONE_SURROGATE)
    sides = [
        RatingMaterial(
            side,
            tuple(
                Sample(
                    f"{side}{i}", (Turn(text, text),), f"{text} {side}", facts=(text,), item=str(i)
                )
                for i, text in enumerate(texts)
            ),
        )
        for side in (MARKUP[0], "b")[: 2 if kind == "compare" else 1]
    ]
    qualities = parse_qualities("overall") if kind == "rate" else parse_qualities("preference")
    hostile = Job(kind, (replace(qualities[0], description=MARKUP[3]),), title=MARKUP[1],
                  instructions=MARKUP[2])  # fmt: skip
    here = site(design(sides, hostile).job, 1)
    (rater,) = here.store.raters()
    for position, text in enumerate(texts, 1):
        here.store.save(rater, position, {qualities[0].name: 1.0}, "s", text)
    own = ("<script defer src=", "<script")
    pages = [f"{here.rater()}/{n}" for n in range(1, len(texts) + 1)]
    for path in (*pages, here.rater(), f"{here.rater()}/pause", here.organiser):
        page = ask(here.address, path)
        assert page.status == 200
        assert page.text.count(own[1]) == page.text.count(own[0])
        assert not re.search(r"<(img|iframe|object|embed|base|style|math|plaintext)\b", page.text)
        assert "attacker.example" not in re.sub(r">[^<]*<", "><", page.text)
        assert not re.search(r"[\x00-\x08\x0e-\x1f\u202a-\u202e\u2066-\u2069]", page.text)


@pytest.mark.parametrize(
    ("host", "names", "expected"),
    [
        ("127.0.0.1", (), "http://127.0.0.1:80"),
        ("0.0.0.0", ("lab.example",), "http://lab.example:80"),
        ("::1", (), "http://[::1]:80"),
    ],
)
def test_links_are_for_the_machines_of_the_raters(host, names, expected):
    from dialeval.web.serving import rating_origin

    assert rating_origin(host, 80, names) == expected


def test_a_group_shows_every_wording_and_answer_and_no_system(site):
    variants = tuple(Variant(f"wording {i}?", f"<b>answer {i}</b>") for i in range(5))
    group = Sample("g", (Turn("Hello!", "user"),), system="secret-bot", variants=variants)
    job = design([RatingMaterial("a", (group,))], Job("rate", parse_qualities("diversity"))).job
    here = site(job)
    page = ask(here.address, f"{here.rater()}/1")
    shown = unescape(page.text)
    assert all(f"wording {i}?" in shown and f"<b>answer {i}</b>" in shown for i in range(5))
    assert "<b>answer 1</b>" not in page.text
    assert "secret-bot" not in page.text
    assert "rate the answers together" in ask(here.address, here.rater()).text
    assert send(here, f"{here.rater()}/1", page, {"q0": "4"}).status == 303
