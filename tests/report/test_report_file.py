"""The file that `dialeval report` writes."""

import base64
import hashlib
import re

import made_up
import numpy as np
import pytest
from report.page_reader import PageReader
from report.report_runs import METRICS, plain_run

import dialeval
from dialeval.errors import UsageError
from dialeval.report.build import write_report
from dialeval.report.material import extremes, gather, select


@pytest.fixture(scope="module")
def two_bots(tmp_path_factory):
    """Twenty items; the wordy bot says three times as much."""
    lengths = [n for i in range(20) for n in (2 + i % 5, 6 + i % 4)]
    return plain_run(tmp_path_factory.mktemp("bots") / "run", lengths, ("terse", "wordy"))


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    root = tmp_path_factory.mktemp("versions")
    old = plain_run(root / "old", [5] * 30, metrics=("length", "distinct"))
    new = plain_run(root / "new", [8] * 15 + [5] * 14 + [1], metrics=("length", "distinct"))
    return old, new


def read(runs, out, **options):
    written = write_report([run.directory for run in runs], out, rounds=199, **options)
    return written, out.read_text(encoding="utf-8")


def test_a_run_of_two_systems_has_all_sections_and_dialogues(two_bots, tmp_path):
    written, page = read([two_bots], tmp_path / "r.html")
    assert (written.dialogues, written.shown, written.brief, written.sampled) == (40, 40, 0, False)
    assert written.bytes == (tmp_path / "r.html").stat().st_size
    found = PageReader(page)
    ids = {value for tag, name, value in found.attributes if tag == "section" and name == "id"}
    assert ids == {"summary", "differences", "distributions", "extremes", "dialogues", "repeat"}
    assert sum(value == "card" for _, name, value in found.attributes if name == "class") == 40
    assert found.problems == []


def test_the_summary_has_the_means_and_the_clusters(two_bots, tmp_path):
    _, page = read([two_bots], tmp_path / "r.html", metrics=["length"])
    table = page[page.index('class="summary"') : page.index("</table>")]
    assert re.findall(r"<b>([\d.]+)</b>", table) == ["4.000", "7.500"]
    assert re.findall(r'class="cluster"[^>]*>(\d)<', table) == ["2", "1"]


def test_the_policy_names_the_hashes_of_what_is_inside(two_bots, tmp_path):
    _, page = read([two_bots], tmp_path / "r.html")
    for tag in ("style", "script"):
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in page
    assert not re.search(r"\sstyle=", page)


def test_the_same_runs_give_the_same_bytes(two_bots, tmp_path):
    first = read([two_bots], tmp_path / "r.html")[1]
    assert read([two_bots], tmp_path / "r.html", overwrite=True)[1] == first


def test_two_versions_are_joined_and_tested(versions, tmp_path):
    written, page = read(versions, tmp_path / "r.html")
    assert (written.runs, written.dialogues) == (("old", "new"), 30)
    assert "new differs from old on length: +1.37" in page
    assert "joined by id" in page
    assert "5 → 8" in page
    changed = page[page.index('id="extremes"') : page.index('id="dialogues"')]
    assert changed.index("Rose most") < changed.index("w0 w1 w2 w3 w4 w5 w6 w7")
    assert "5 → 1" in changed[changed.index("Fell most") :]


def test_runs_with_scales_of_their_own_are_reported_by_raw_values_or_not_at_all(tmp_path):
    metrics = [made_up.Told(), made_up.Blended()]
    runs = [
        dialeval.score(samples, metrics, out=tmp_path / name)
        for name, samples in zip(("good", "bad"), made_up.two_bots(), strict=True)
    ]
    _, page = read(runs, tmp_path / "r.html")
    assert "good is better than bad on told-scaled.raw" in page
    assert "not comparable between good and bad: blended" in page
    shown = page[: page.index('id="dialogues"')]
    means = shown[shown.index('class="summary"') : shown.index("</table>")]
    assert "told-scaled.raw" in means
    told = [np.mean([float(s.response) for s in bot]) for bot in made_up.two_bots()]
    numbers = [float(text.replace("−", "-")) for text in re.findall(r"<b>(.*?)</b>", means)]
    assert numbers == pytest.approx(told, abs=1e-3)
    assert "blended" not in means
    assert "<title>blended" not in shown
    assert "<h3>blended" not in shown


def test_of_a_large_run_the_ends_and_a_random_part_are_shown_and_it_says_so(tmp_path):
    run = plain_run(tmp_path / "run", [5] * 300 + [1, 50] + [5] * 98, metrics=("length",))
    written, page = read([run], tmp_path / "r.html", sample=20, seed=3)
    assert (written.shown, written.dialogues, written.sampled) == (20, 400, True)
    assert "The page shows 20 of them" in page
    assert "(seed 3)" in page
    shown = set(re.findall(r'class="id">(q\d+)<', page))
    assert {"q300", "q301"} <= shown
    other = read([run], tmp_path / "other.html", sample=20, seed=4)[1]
    assert shown != set(re.findall(r'class="id">(q\d+)<', other))


def test_a_selection_has_no_entry_twice_and_the_size_that_was_asked_for(two_bots):
    material = gather([two_bots])
    for size in (1, 7, 39, 40, 1000):
        chosen = select(material, size, seed=1)
        assert chosen.size == min(size, 40)
        assert all(len(set(own)) == len(own) for own in chosen.shown)


def test_best_and_worst_follow_the_direction_of_the_metric(two_bots):
    material = gather([two_bots], ["length"])
    (ends,) = extremes(material, 2)
    lengths = material.levels[0].scores["length"][:, 0]
    assert {lengths[i] for i in ends.best} == {np.nanmax(lengths)}
    assert {lengths[i] for i in ends.worst} == {np.nanmin(lengths)}


def test_a_page_stays_under_its_size_and_says_what_it_left_out(two_bots, tmp_path, monkeypatch):
    monkeypatch.setattr("dialeval.report.page.LARGEST", 185_000)
    written, page = read([two_bots], tmp_path / "r.html")
    assert written.brief + 40 - written.shown > 0
    assert written.bytes < 190_000
    assert "to keep this file small" in page


def test_ratings_bring_agreement_and_raters(tmp_path, datasets):
    path = datasets / "rated/fed/fed_data.json"
    run = dialeval.score(dialeval.load(path, limit=40), ["length"], out=tmp_path / "run")
    _, page = read([run], tmp_path / "r.html")
    assert "Metrics and ratings" in page
    assert "Do the raters agree?" in page
    assert "length and Overall" in page


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_of_next_to_nothing_is_shown(tmp_path, count):
    run = plain_run(tmp_path / "run", [3] * count, metrics=METRICS)
    written, page = read([run], tmp_path / "r.html")
    assert written.shown == count
    assert PageReader(page).problems == []


def test_what_cannot_be_compared_is_refused(two_bots, tmp_path):
    other = plain_run(tmp_path / "other", [3], metrics=("bleu",))
    with pytest.raises(UsageError, match="no metric is in every one"):
        write_report([two_bots.directory, other.directory], tmp_path / "r.html")
