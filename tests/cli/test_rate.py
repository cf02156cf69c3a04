"""`dialeval rate`, and the verbs that read what it keeps."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from rating_jobs import answers_of, comparison_job, rating_job
from scipy.stats import pearsonr

pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")

from dialeval.rating.opening import create_store, open_store


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    records = (sample.to_record() for name in ("a", "b") for sample in answers_of(name, 5))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def rated(tmp_path):
    path = tmp_path / "ratings.db"
    store = create_store(str(path), rating_job(12, checks=0.1), 2)
    for rater in store.raters():
        for position in range(1, 14):
            number = store.show(rater, position).task.number
            answers = {"overall": number % 5 + 1, "natural": number % 3 + 1}
            store.save(rater, position, answers, "s")
    store.close()
    return path


class Serving:
    """The command in a process of its own, until the links are printed."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "dialeval", "rate", *arguments, "--port", "0", "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.links = json.loads(self.process.stdout.readline() or "{}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        _, self.errors = self.process.communicate(timeout=300)
        return self.process.returncode


def test_the_same_command_goes_on_with_the_job(chats, tmp_path):
    arguments = (str(chats), "--db", str(tmp_path / "r.db"), "--raters", "2")
    links = []
    for _ in range(2):
        serving = Serving(*arguments)
        assert serving.stop() == 0, serving.errors
        links.append([re.sub(r":\d+/", "/", link) for link in serving.links["raters"].values()])
    assert links[0] == links[1]
    assert len(links[0]) == 2
    store = open_store(str(tmp_path / "r.db"))
    assert [quality.name for quality in store.job.qualities] == ["coherence", "fluency", "overall"]
    store.close()


def test_wrong_requests_are_refused_with_a_reason(dialeval, chats, tmp_path):
    db = str(tmp_path / "r.db")
    for arguments, problem in (
        (("--db", db), "name the dialogues to rate"),
        ((str(chats), "--db", db, "--qualities", "overall:9"), "expected NAME or NAME:LOW-HIGH"),
        ((str(chats), "--db", db, "--describe", "x=y"), "there is no quality 'x'"),
        ((str(chats), "--db", "mysql://u:hunter2@h/d"), "not by mysql"),
        ((str(chats), "--db", f"{tmp_path}/no/r.db"), "there is no directory"),
        ((str(tmp_path / "absent.jsonl"), "--db", db), "no such file"),
        ((str(chats), "--db", db, "--raters", "2", "--per-item", "3"), "only 2 raters"),
        ((str(chats), "--db", str(chats)), "file is not a database"),
    ):
        done = dialeval("rate", *arguments)
        assert done.code in (1, 2)
        assert problem in " ".join(done.err.split())
        assert "hunter2" not in done.err
        assert "Traceback" not in done.err


def test_another_job_does_not_overwrite_the_first(dialeval, chats, rated):
    for arguments, problem in (
        ((str(chats),), "a job about other dialogues"),
        (("--qualities", "fun"), "a job with another --qualities"),
        (("--compare",), "a job with another --compare"),
        (("--raters", "1"), "has 2 raters, and none can be taken away"),
        (("--token", "x" * 20), "has another --token"),
    ):
        done = dialeval("rate", *arguments, "--db", str(rated))
        assert done.code == 2
        assert problem in " ".join(done.err.split())


def test_raters_reads_the_database(dialeval, rated):
    done = dialeval("raters", str(rated), "--json")
    reports = {one["quality"]: one for one in json.loads(done.out)}
    assert set(reports) == {"overall", "natural"}
    assert reports["overall"]["n_items"] == 12
    assert reports["overall"]["alpha_ordinal"]["value"] == 1


def test_agree_holds_a_run_against_the_database(dialeval, rated, tmp_path):
    run = tmp_path / "run"
    assert dialeval("score", str(rated), "-m", "length", "-o", str(run)).code == 0
    done = dialeval("agree", str(rated), "--scores", str(run), "--json", "--rounds", "0")
    assert {(row["metric"], row["quality"], row["n"]) for row in json.loads(done.out)} == {
        ("length", "overall", 12),
        ("length", "natural", 12),
    }


def test_agree_without_scores_says_how_to_get_them(dialeval, rated):
    done = dialeval("agree", str(rated))
    assert done.code == 2
    assert "--scores RUN" in " ".join(done.err.split())


def test_ratings_of_a_run_agree_by_themselves(dialeval, tmp_path):
    """Samples that came from a run brought their scores along."""
    from made_up import samples

    from dialeval import load, score
    from dialeval.rating.design import read_material
    from dialeval.rating.job import Job, parse_qualities
    from dialeval.rating.opening import start

    score(samples(7), ["length"], out=tmp_path / "run")
    material = read_material([str(tmp_path / "run")], load)
    job = Job("rate", parse_qualities("overall:1-7"))
    store = start(str(tmp_path / "r.db"), material, job, raters=1).store
    (rater,) = store.raters()
    for position in range(1, 8):
        words = len(store.show(rater, position).task.samples[0].response.split())
        store.save(rater, position, {"overall": words}, "s")
    store.close()
    done = dialeval("agree", str(tmp_path / "r.db"), "--json", "--rounds", "0")
    (row,) = json.loads(done.out)
    assert row["pearson"]["value"] == pytest.approx(1)


def test_rated_aspects_of_dialogues_are_related_without_scores(dialeval, tmp_path):
    """HolisticEval, section 5.5: `dialeval rate runs/bot`, of a directory that has no scores."""
    from made_up import HolisticModels
    from systems.loopback import serving

    import dialeval as library
    from dialeval.augment.queries import Query, QueryVariant
    from dialeval.rating.design import read_material
    from dialeval.rating.job import Job, parse_qualities
    from dialeval.rating.opening import start

    variant = (QueryVariant("and ?", "verbs", "ws"),)
    queries = [Query(str(i), f"{i} ?", variants=variant) for i in range(6)]
    with serving() as bot:
        library.holistic(bot.address, queries=queries, out=tmp_path / "bot",
                         models=HolisticModels(), metrics=["diversity:dispersion=false"],
                         cache=tmp_path / "answers.db")  # fmt: skip
    material = read_material([str(tmp_path / "bot")], library.load)
    job = Job("rate", parse_qualities("coherence,fluency,diversity,consistency"))
    store = start(str(tmp_path / "r.db"), material, job, raters=1).store
    (rater,) = store.raters()
    said = {"coherence": [1, 2, 3, 4, 5, 5], "fluency": [2, 1, 4, 3, 5, 4],
            "diversity": [3, 3, 1, 5, 2, 4], "consistency": [5, 4, 4, 2, 1, 1]}  # fmt: skip
    for position in range(1, 7):
        number = store.show(rater, position).task.number
        store.save(rater, position, {name: own[number - 1] for name, own in said.items()}, "s")
    store.close()
    asked = ("agree", str(tmp_path / "r.db"), "--relations", "--coefficient", "pearson")
    (found,) = json.loads(dialeval(*asked, "--json").out)
    assert (found["of"], found["names"]) == ("qualities", list(said))
    expected = pearsonr(said["coherence"], said["fluency"])
    assert found["values"][0][1] == pytest.approx(expected.statistic)
    assert found["p"][0][1] == pytest.approx(expected.pvalue)
    assert "qualities among themselves, pearson" in dialeval(*asked).out


def test_a_foreign_database_is_refused(dialeval, tmp_path):
    import sqlite3

    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    for verb in (["raters"], ["agree"], ["export"], ["score", "-m", "length"], ["rate", "--db"]):
        done = dialeval(*verb, str(path))
        assert done.code == 2
        assert "not one of dialeval rate" in " ".join(done.err.split())


@pytest.mark.parametrize(("name", "starts"), [("r.jsonl", '{"id"'), ("r.csv", "id,")])
def test_export_writes_what_the_name_says(dialeval, rated, tmp_path, name, starts):
    done = dialeval("export", str(rated), "-o", str(tmp_path / name))
    assert done.code == 0, done.err
    assert (tmp_path / name).read_text().startswith(starts)


def test_export_prints_answers_and_knows_no_other_format(dialeval, rated):
    done = dialeval("export", str(rated), "--to", "answers")
    assert len(done.out.splitlines()) == 26
    done = dialeval("export", str(rated), "--to", "latex")
    assert (done.code, "cannot export ratings to 'latex'" in done.err) == (2, True)


def test_preferences_are_read_as_ratings(dialeval, tmp_path):
    store = create_store(str(tmp_path / "r.db"), comparison_job(4), 2)
    for rater in store.raters():
        for position in range(1, 5):
            store.save(rater, position, {"preference": 1.0}, "s")
    store.close()
    done = dialeval("raters", str(tmp_path / "r.db"), "--json")
    (report,) = json.loads(done.out)
    assert (report["quality"], report["n_items"]) == ("preference", 8)
    assert report["alpha_interval"]["value"] == 1


@pytest.mark.parametrize("options", [("--token", "short"), ("--qualities", "")])
def test_what_makes_no_sense_leaves_no_database_behind(chats, tmp_path, options):
    place = tmp_path / "r.db"
    serving = Serving(str(chats), "--db", str(place), *options)
    _, errors = serving.process.communicate(timeout=300)
    assert serving.process.returncode == 2
    assert options[0] in errors
    assert not place.exists()
