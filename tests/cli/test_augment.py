import json
import re

import pytest


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("What time is it in the old town?\nWhere do you live, my friend?\n")
    return path


def test_augmented_queries_are_written_and_counted(dialeval, queries, tmp_path):
    out = tmp_path / "a.jsonl"
    done = dialeval("augment", str(queries), "--with", "eda:variants=4", "-o", str(out), "--json")
    assert done.code == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    counts = json.loads(done.out)
    assert [r["query"] for r in records] == queries.read_text().splitlines()
    assert counts["queries"] == 2
    assert counts["variants"] == sum(len(r["variants"]) for r in records) > 0


def test_the_same_seed_gives_the_same_bytes(dialeval, queries):
    first, again, other = (
        dialeval("augment", str(queries), "--with", "eda", "--json", "--seed", seed).out
        for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_without_a_file_the_variants_are_shown(dialeval, queries):
    done = dialeval("augment", str(queries), "--with", "eda:variants=2", "--limit", "1")
    assert done.out.startswith("What time is it in the old town?\n  eda ")
    assert "Where" not in done.out
    assert "queries 1," in done.out


def test_text_that_steers_the_terminal_is_shown_harmless(dialeval):
    hostile = json.dumps({"query": "red \x1b[31m alert now please", "id": "a"})
    done = dialeval("augment", "-", "--with", "eda:variants=4", stdin=hostile + "\n")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\ufffd" in done.out


def test_all_bad_lines_are_listed_and_nothing_is_written(dialeval, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"query": "fine"}\n{oops\n{"query": 5}\n')
    done = dialeval("augment", str(bad), "--with", "eda", "-o", str(tmp_path / "out.jsonl"))
    assert done.code == 2
    assert "bad.jsonl:2:" in done.err
    assert "bad.jsonl:3: query: expected text, not a number" in done.err
    assert not (tmp_path / "out.jsonl").exists()
    assert dialeval("augment", str(bad), "--with", "eda", "--skip-bad", "--json").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--with", "edda"], "Did you mean 'eda'?"),
        (["--with", "eda:swap=x"], "must be of type number"),
        (["--with", "ws:mode=relased"], "Did you mean 'released'?"),
    ],
)
def test_wrong_options_exit_2_with_a_hint(dialeval, queries, arguments, message):
    done = dialeval("augment", str(queries), *arguments)
    assert done.code == 2
    assert message in done.err


def test_the_input_is_not_overwritten(dialeval, queries):
    done = dialeval("augment", str(queries), "--with", "eda", "-o", str(queries))
    assert done.code == 2
    assert "choose another file" in done.err


def test_queries_that_a_generator_cannot_vary_come_with_advice(dialeval, queries):
    """Without history there is nothing to write from; no model is loaded to find that out."""
    done = dialeval("augment", str(queries), "--with", "ctg:model=nowhere")
    assert done.code == 0
    assert "queries 2, variants 0" in done.out
    assert "queries without a variant: 2." in done.out
    assert "--with ws" in done.out


def test_tries_that_gave_no_new_variant_are_counted_in_words(dialeval, tmp_path):
    """A single word that WordNet lacks can be swapped, deleted and replaced in vain only."""
    (tmp_path / "q.txt").write_text("xyzzy\nplugh\n")
    done = dialeval("augment", str(tmp_path / "q.txt"), "--with", "eda:variants=4")
    line = r"no new variant in (\d+) of \1 tries \(\1 same as the query\)"
    assert sum(int(tries) for tries in re.findall(line, done.out)) == 2 * 4
