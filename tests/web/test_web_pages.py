"""The pages over runs, read as text; `test_web_browser.py` looks at them in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from browser import serving
from hostile import LONE_SURROGATE, PAYLOADS
from made_up import Told, sample, samples, two_bots

from dialeval import score
from dialeval.sample import Rating, Sample, Turn, Variant
from dialeval.web.frame import Settings, create_app

from .asking import ask, run_address


def words_of(text: str) -> str:
    """What a person reads."""
    text = re.sub(r"</?(bdi|code|b)>", "", text)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_list_shows_each_run_with_its_numbers(page):
    text = words_of(ask(page).text)
    assert "first" in text
    assert "120 samples · a, b" in text
    assert "length 3.975" in text  # 17 times 1 to 7 words, and one word more: 477 by 120
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d ·", text)


def test_the_latest_run_comes_first(runs):
    score(samples(3), ["length"], out=runs / "deep" / "down" / "second")
    history = runs / "first" / "history.jsonl"
    history.write_text(history.read_text("utf-8").replace('"time": "20', '"time": "19'), "utf-8")
    with serving(create_app(Settings(roots=(runs,)))) as address:
        names = re.findall(r"data-row><bdi>([^<]*)</bdi>", ask(address).text)
    assert names == ["deep/down/second", "first"]


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(runs):
    score(samples(3), ["length"], out=runs / "strange")
    manifest = runs / "strange" / "manifest.json"
    record = json.loads(manifest.read_text("utf-8"))
    for broken in (
        "{",
        json.dumps(record | {"run_format": 99}),
        json.dumps(record | {"systems": 7}),
    ):
        manifest.write_text(broken, "utf-8")
        with serving(create_app(Settings(roots=(runs,)))) as address:
            answer = ask(address)
            assert answer.status == 200
            assert 'class="run broken"' in answer.text
            assert run_address(address, "first")


def test_a_finished_run_appears_without_a_restart(page, runs):
    assert "later" not in ask(page).text
    score(samples(3), ["length"], out=runs / "later")
    assert ask(page, run_address(page, "later")).status == 200


def test_nothing_found_says_what_to_do(tmp_path):
    with serving(create_app(Settings(roots=(tmp_path,)))) as address:
        assert "dialeval score" in ask(address).text


def ids(text: str) -> list[str]:
    return re.findall(r'class="id"><bdi>([^<]*)</bdi>', text)


def test_rows_are_paged_fifty_at_a_time(page):
    first = run_address(page, "first")
    assert ids(ask(page, first).text) == [f"s{i}" for i in range(50)]
    assert ids(ask(page, f"{first}?page=3").text) == [f"s{i}" for i in range(100, 120)]
    assert ids(ask(page, f"{first}?page=99").text) == [f"s{i}" for i in range(100, 120)]


def test_rows_are_filtered_sorted_and_counted(page):
    first = run_address(page, "first")
    text = ask(page, f"{first}?system=1&metric=length&low=7&sort=distinct&order=down").text
    longest = [f"s{i}" for i in range(120) if i % 7 == 6 and i % 2 == 1]
    assert ids(text) == longest
    assert f"{len(longest)} of 120 samples, by distinct, highest first" in words_of(text)
    assert ids(ask(page, f"{first}?text=S11").text) == ["s11", *(f"s11{i}" for i in range(10))]
    assert "No sample of this run is like that" in ask(page, f"{first}?text=xyzzy").text


def test_a_note_can_be_chosen(runs):
    some = [sample(i, None if i % 3 == 0 else "a b") for i in range(9)]
    score(some, ["length"], out=runs / "notes")
    with serving(create_app(Settings(roots=(runs,)))) as address:
        notes = run_address(address, "notes")
        assert "length: no response (3)" in words_of(ask(address, notes).text)
        assert ids(ask(address, f"{notes}?note=0").text) == ["s0", "s3", "s6"]
        assert "whole dialogue" in ask(address, f"{notes}?note=0").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sort=lenght", "Did you mean &#39;length&#39;"),
        ("low=1", "choose the metric"),
        ("metric=length&low=abc", "not a number"),
        ("page=x", "no page"),
        ("system=5", "no system"),
    ],
)
def test_a_query_that_makes_no_sense_is_answered_with_the_reason(page, query, said):
    answer = ask(page, f"{run_address(page, 'first')}?{query}")
    assert answer.status == 422
    assert said in answer.text


def test_a_dialogue_knows_its_place_in_the_list_it_came_from(page):
    first = run_address(page, "first")
    query = "metric=length&low=7.0&sort=length"  # s6, s13, s20, ...
    text = ask(page, f"{first}/13?{query}").text
    assert "2 of 17 that match, by length" in words_of(text)
    links = dict(re.findall(r'rel="(prev|next)" href="([^"]*)"', unescape(text)))
    assert links == {"prev": f"{first}/6?{query}", "next": f"{first}/20?{query}"}
    assert f'href="{first}?{query}&page=1"' in unescape(text)


def test_a_dialogue_that_the_filter_leaves_out_has_no_neighbours(page):
    text = ask(page, f"{run_address(page, 'first')}/0?metric=length&low=7").text
    assert "not among the 17 that match" in words_of(text)
    assert "rel=" not in text.split("<main")[1]


@pytest.mark.parametrize("row", ["120", "99999999999999999999", "-1", "x", "1.5"])
def test_a_row_that_is_not_there_is_not_found(page, row):
    assert ask(page, f"{run_address(page, 'first')}/{row}").status == 404


def post(page: str, path: str, response: str):
    shown = ask(page, path)
    form = {"csrf": shown.csrf, "response": response}
    return ask(page, f"{path}/what-if", "POST", {"Cookie": shown.cookie}, form)


def test_an_edited_response_is_scored_beside_the_old_one(page):
    answer = post(page, run_address(page, "first") + "/6", "four words are\r\nhere")
    assert "length 7 4 −3" in words_of(answer.text)
    assert "four words are\nhere</textarea>" in answer.text


def test_what_cannot_be_edited_says_so(runs, page):
    score([sample(0, None)], ["length"], out=runs / "whole")
    whole = run_address(page, "whole") + "/0"
    assert "no single response to edit" in ask(page, whole).text
    first = run_address(page, "first") + "/0"
    assert post(page, first, "x" * 20_001).status == 400
    shown = ask(page, first)
    headers = {"Cookie": shown.cookie}
    answer = ask(page, f"{whole}/what-if", "POST", headers, {"csrf": shown.csrf, "response": "x"})
    assert answer.status == 400


def test_two_runs_stand_side_by_side(page, runs):
    some = [replace(one, response=f"{one.response} more") for one in samples(120)]
    score(some, ["length", "distinct:n=1"], out=runs / "second")
    chosen = [run_address(page, name).removeprefix("/run/") for name in ("first", "second")]
    text = words_of(ask(page, f"/compare?run={chosen[0]}&run={chosen[1]}").text)
    assert "length 3.950 4.950 +1.000" in text  # system b: 237 words in 60; one more each
    assert "same id" not in text  # the same 120 questions
    assert "share no sample" not in text
    assert "Only in the second: distinct:n=1" in text
    assert "dialeval compare" in text
    assert ask(page, f"/compare?run={chosen[0]}").status == 400
    assert ask(page, f"/compare?run={chosen[0]}&run={'0' * 16}").status == 404


def test_means_on_scales_of_their_own_have_no_difference(page, runs):
    for name, answers in zip(("good", "bad"), two_bots(), strict=True):
        score(answers, [Told(), "length"], out=runs / name)
    good, bad = (run_address(page, name).removeprefix("/run/") for name in ("good", "bad"))
    text = words_of(ask(page, f"/compare?run={good}&run={bad}").text)
    assert re.search(r"told-scaled 0\.\d+ 0\.\d+ not measured in the same way", text)
    assert "length 1.000 1.000 0.000" in text


def test_two_runs_of_other_questions_are_told_apart(page, runs):
    some = samples(120)[:40]
    score(some, ["length"], out=runs / "part")
    score([replace(one, id=f"other {one.id}") for one in some], ["length"], out=runs / "other")
    first, part, other = (
        run_address(page, name).removeprefix("/run/") for name in ("first", "part", "other")
    )
    assert "40 samples by the same id" in ask(page, f"/compare?run={first}&run={part}").text
    assert "share no sample by its id" in ask(page, f"/compare?run={part}&run={other}").text


class Elements(HTMLParser):
    """Every element and attribute that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {
            value or "" for name, value in attrs if name in ("href", "src", "action")
        }


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser


def hostile_sample(number: int, payload: str) -> Sample:
    return Sample(
        id=f"{number}{payload}",
        context=(Turn(payload, payload), Turn(payload, "user")),
        response=payload,
        references=(payload,),
        facts=(payload,),
        system=payload,
        dialogue=payload,
        item=payload,
        ratings={payload: Rating((1.0, 2.0), (1, 5), (payload, "x"))},
        variants=(Variant(payload, payload),),
    )


def test_hostile_text_never_becomes_an_element_an_attribute_or_an_address(runs):
    """Compared with the same pages over harmless text: not one more tag, attribute or scheme."""
    score([hostile_sample(i, p) for i, p in enumerate(PAYLOADS)], ["length"], out=runs / "hostile")
    score([hostile_sample(i, "hello") for i in range(len(PAYLOADS))], ["length"], out=runs / "calm")
    with serving(create_app(Settings(roots=(runs,)))) as address:
        hostile, calm = (run_address(address, name) for name in ("hostile", "calm"))
        pairs = [("/", "/"), (hostile, calm), (f"{hostile}?page=2", f"{calm}?page=2")]
        pairs += [(f"{hostile}/{i}", f"{calm}/{i}") for i in range(len(PAYLOADS))]
        known = elements("".join(ask(address, path).text for _, path in pairs[:4]))
        for path, _ in pairs:
            found = elements(ask(address, path).text)
            assert found.tags <= known.tags | {"h4"}, path
            assert found.attributes <= known.attributes, path
            assert all(one.startswith(("/", "?", "#")) for one in found.addresses), path


def test_hostile_text_sent_by_the_visitor_stays_text(page):
    first = run_address(page, "first")
    shown = ask(page, f"{first}/0")

    def answers(sent: str) -> list[str]:
        form = {"csrf": shown.csrf, "response": sent}
        return [
            ask(page, f"{first}?text={quote(sent)}").text,
            ask(page, f"{first}?sort={quote(sent)}").text,
            ask(page, f"{first}/0/what-if", "POST", {"Cookie": shown.cookie}, form).text,
        ]

    known = elements("".join(answers("a b a b c d")) + ask(page, first).text)
    for payload in PAYLOADS:
        found = elements("".join(answers(payload)))
        assert found.tags <= known.tags, payload
        assert found.attributes <= known.attributes, payload
        assert all(one.startswith(("/", "?", "#")) for one in found.addresses), payload


NO_TEXT = ["%FF%FE", "%00", quote(LONE_SURROGATE, errors="surrogatepass")]


@pytest.mark.parametrize("sent", NO_TEXT)
def test_bytes_that_are_no_text_are_no_accident(page, sent):
    first = run_address(page, "first")
    shown = ask(page, f"{first}/0")
    assert ask(page, f"{first}?text={sent}").status == 200
    body = f"csrf={shown.csrf}&response={sent}".encode()
    headers = {"Cookie": shown.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    assert ask(page, f"{first}/0/what-if", "POST", headers, body=body).status == 200
