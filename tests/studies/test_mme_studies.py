"""The studies of MME-CRS, on made-up rated files and on those of DSTC10 where they are here."""

from __future__ import annotations

import json

import pytest
from compose.made_up_runs import rated_samples, variety, words
from scipy.stats import spearmanr

import dialeval
from dialeval.agreement.dstc10 import DEVELOPMENT_SETS
from dialeval.compose.fitting import DSTC10_QUALITIES
from dialeval.compose.leave_one_out import SINGLE
from dialeval.errors import UsageError
from dialeval.runs.export import export
from dialeval.studies import dstc10, mme_ablation
from dialeval.studies.mme_published import (
    DEVELOPMENT_COUNTS,
    PRINTED,
    TEST_COUNTS,
    claims,
    column_of,
)
from dialeval.studies.rated_runs import SUB_METRICS, LoadedSet, sampling_notes, thinned
from dialeval.studies.result import run_study
from dialeval.studies.study import find_study

METRICS = ["length", "distinct:n=1"]


def long(text):
    """From 1 to 5, as people rate."""
    return 1 + words(text) / 3


def varied(text):
    return 1 + 4 * variety(text)


RULES = {
    "fed-turn": {"Overall": long, "Diverse": lambda text: varied(text) / 5},
    "humod": {"relevance": long},
    "persona-zhao": {"overall": long},
    "jsalt": {"appropriateness": long, "content": varied},
}


@pytest.fixture
def track(tmp_path, monkeypatch):
    """Three development files and a test file, in the track's form."""
    folder = tmp_path / "rated" / "dstc10"
    folder.mkdir(parents=True)
    for name, rules in RULES.items():
        records = [
            {
                "dialogue_id": sample.id,
                "model": sample.system,
                "context": "\n".join(turn.text for turn in sample.context),
                "response": sample.response,
                "annotations": {q: list(r.values) for q, r in sample.ratings.items()},
            }
            for sample in rated_samples(name, rules)
        ]
        (folder / f"{name}_eval.json").write_text(json.dumps(records))
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))


def test_scoring_exporting_and_agreeing_give_the_cells_of_table_3(track, tmp_path):
    """On a test file, two of whose items nobody rated, as scipy computes them."""
    file = tmp_path / "rated" / "dstc10" / "jsalt_eval.json"
    records = json.loads(file.read_text())
    records[1]["annotations"] = {}
    del records[7]["annotations"]
    file.write_text(json.dumps(records))
    run = dialeval.score(dialeval.load(file), ["distinct:n=1"], out=tmp_path / "run")
    export(run, "dstc10", tmp_path / "handed-in.csv")
    found = dialeval.agree(file, scores=[tmp_path / "handed-in.csv"], rounds=0)
    kept = [one for n, one in enumerate(records) if n not in (1, 7)]
    scores = [variety(one["response"]) for one in kept]
    assert [(row.quality, row.level) for row in found] == [
        ("appropriateness", "turn"),
        ("content", "turn"),
    ]
    for row in found:
        people = [one["annotations"][row.quality][0] for one in kept]
        assert row.n == 58
        assert row.correlations["spearman"].value == pytest.approx(
            spearmanr(scores, people).statistic
        )


def test_the_qualities_of_the_development_sets_are_the_37_names():
    assert tuple(dstc10.FILES) == DEVELOPMENT_SETS
    assert {quality for own in dstc10.FILES.values() for quality in own} == set(DSTC10_QUALITIES)


def test_the_published_rows_are_those_of_the_tables():
    printed = {row: value for row, (value, _) in mme_ablation.PRINTED.items()}
    assert printed["w/o RM+TCM"] == "11.07"
    assert printed["w/o TCM"] == "27.78"
    assert printed[mme_ablation.PLAIN] == "27.55"
    assert dstc10.TEST_MEANS["Deep AM-FM"][0] == "18.38"


def test_every_cell_of_tables_3_and_6_stands_there_and_bears_out_the_text():
    assert sum(map(len, PRINTED.values())) == 77
    values = {one.what: one.value for one in claims()}
    assert values["MME-CRS: qualities where it ranks first"] == 6
    assert values["MME-CRS: lead over the second"] == pytest.approx(1.11)
    # The text says 1.01, its tables do not.
    assert values["drop without EM"] == pytest.approx(0.99)


def test_the_counts_of_tables_1_and_2_are_those_of_the_paper():
    """The sums were added up by hand from the printed tables."""
    assert sum(one.turns for one in DEVELOPMENT_COUNTS.values()) == 67076
    assert sum(one.qualities for one in DEVELOPMENT_COUNTS.values()) == 54
    assert sum(one.annotations for one in DEVELOPMENT_COUNTS.values()) == 561636
    assert sum(one.annotations for one in TEST_COUNTS.values()) == 169885
    assert set(DEVELOPMENT_COUNTS) == set(DEVELOPMENT_SETS)


@pytest.mark.parametrize(
    ("name", "quality", "column"),
    [
        ("jsalt_eval.json", "appropriateness", 0),
        ("data/dstc10-persona_eval.json", "relevance", 10),
        ("DSTC10-Topical", "grammar", 5),
        ("DP", "content", 8),
        ("jsalt", "content", None),
        ("persona-usr", "relevance", None),
    ],
)
def test_a_test_file_is_known_by_its_name(name, quality, column):
    assert column_of(name, quality) == column


def test_a_named_test_file_is_judged_with_weights_of_the_development_sets(track, tmp_path):
    file = tmp_path / "dstc10-persona_eval.json"
    (tmp_path / "rated" / "dstc10" / "jsalt_eval.json").rename(file)
    result = run_study(find_study("dstc10"), metrics=METRICS, sets=[str(file)])
    cells = next(table for table in result.tables if table.title.startswith("Tables 3 and 6"))
    rows = {row[0]: dict(zip(cells.header, row, strict=True)) for row in cells.rows}
    ours = rows["MME-CRS, ours by the shipped rule"]
    assert ours["DP-A"] > 90
    assert ours["DP-C"] is not None
    assert ours["J-A"] is None
    assert ours["Avg"] is None
    assert ours["Avg of 2 here"] == pytest.approx((ours["DP-A"] + ours["DP-C"]) / 2)
    published = (45.60 + 32.53) / 2
    assert rows["Top 1 (MME-CRS)"]["Avg of 2 here"] == pytest.approx(published)


def test_table_5_leaves_out_what_it_says():
    assert list(mme_ablation.ablations(SUB_METRICS)) == list(mme_ablation.WITHOUT)
    assert list(mme_ablation.ablations(["mme-fluency", "mme-topic"])) == ["w/o FM", "w/o TCM",
                                                                          "w/o RM+TCM"]  # fmt: skip
    assert mme_ablation.ablations(["length"]) == {}


def test_the_ablation_runs_on_any_metrics(track):
    result = run_study(find_study("mme-ablation"), metrics=METRICS)
    assert result.failures == ()
    rows = {(row.what, row.ours.by): row.value for row in result.rows if row.ours}
    without = rows["w/o distinct:n=1", "one score"]
    whole = rows[mme_ablation.WHOLE, "by quality"]
    assert whole > rows["w/o length", "by quality"]
    assert without is not None
    submissions, changes, by_set, curve = result.tables
    assert [row[:4] for row in submissions.rows] == [
        ("1", "d = 1", "2", 29.96),
        ("2", "d = 2", "1", 31.04),
        ("3", "d = 3", "4", 29.77),
        ("4", "d adaptive", "5", 29.64),
        ("5", "d adaptive, BERT in place of SimCSE", "6", 29.61),
    ]
    assert by_set.header == ("", "fed-turn", "humod", "jsalt", "persona-zhao", "mean")
    assert [row[0] for row in changes.rows][:2] == ["w/o length", "w/o distinct:n=1"]
    for row in changes.rows:  # the interval holds the difference
        assert row[4] <= row[3] <= row[5]
    assert changes.rows[-1][:3] == ("MME-Avg", 27.55, pytest.approx(-3.49))
    assert [row[0] for row in curve.rows] == ["1", "2", "3"]
    # With all other sets it is what leaving each out gives.
    name = curve.header.index("by quality, the paper's rule")
    crs = next(row for row in by_set.rows if row[0] == mme_ablation.WHOLE)
    assert curve.rows[-1][name] == pytest.approx(crs[-1])


def test_the_ablation_draws_its_learning_curve(track):
    result = run_study(find_study("mme-ablation"), metrics=METRICS, draw=True, limit=40)
    assert "one score, the shipped rule" in result.drawing.svg()
    assert "fed-turn: 40 of 60 samples, drawn at random" in result.notes


def test_test_sets_are_judged_with_weights_of_development_sets(track):
    result = run_study(find_study("dstc10"), metrics=METRICS)
    rows = {(row.what, row.ours.by): row for row in result.rows if row.ours}
    assert rows["MME-CRS: test protocol", "test sets, the paper's rule"].ours.n == 2
    counts, development, test, cells, *more, qualities = result.tables
    by_name = {row[0]: row[1:] for row in counts.rows}
    assert by_name["fed-turn"] == ("375", "9", "3,348", "60", "2", "120")
    assert by_name["JSALT"] == ("741", "1", "2,822", "60", "2", "120")
    assert by_name["ESL"] == ("1,242", "1", "1,242", "-", "-", "-")
    rows = {row[0]: row[1:] for row in cells.rows}
    assert rows["Top 3"] == (*PRINTED["Top 3"], 28.93, 26.15)
    assert cells.header[-1] == "Avg of 1 here"
    ours = rows["MME-CRS, ours by the paper's rule"]
    assert ours[0] == pytest.approx(test.rows[0][test.header.index(SINGLE)])
    assert ours[1:] == (*(None,) * 11, ours[0])
    submissions, parts, tests, reasons, _, _ = more  # tests and reasons by two rules
    assert [row[2] for row in submissions.rows] == ["2", "1", "4", "5", "6"]
    assert [row[0] for row in parts.rows] == [
        "w/o length", "w/o distinct:n=1", "d = 1", "d = 3", "d adaptive", "MME-Avg",
    ]  # fmt: skip
    first = dict(zip(tests.header, tests.rows[0], strict=True))
    assert (first["composition"], first["against"]) == ("crs", "average")
    assert first["low"] <= first["difference x 100"] <= first["high"]
    assert [row[0] for row in reasons.rows] == ["fed-turn", "humod", "persona-zhao"]
    assert any(note.startswith("By the paper's rule, means by set: crs") for note in result.notes)
    assert "jsalt" not in {row[0] for row in development.rows}
    assert [row[:2] for row in test.rows[:2]] == [
        ("jsalt", "appropriateness"),
        ("jsalt", "content"),
    ]
    # The weights that mme-crs takes of itself for both: nobody else has these names.
    assert {row[2] for row in test.rows[:2]} == {"overall"}
    assert len(qualities.rows) == 37
    fitted = {row[0]: row[2] for row in qualities.rows}
    assert fitted["relevance"] == "humod"
    assert fitted["turing"] == "-"
    header = development.header
    assert {"crs", "average", SINGLE} < set(header)
    assert test.rows[0][header.index(SINGLE)] > 90  # people like long answers everywhere


def test_what_was_scored_before_is_not_scored_again(track, monkeypatch):
    first = run_study(find_study("dstc10"), metrics=METRICS)
    from dialeval.metrics.length import Length

    def refuse(self, sample, answers):
        raise AssertionError("scored again")

    monkeypatch.setattr(Length, "score", refuse)
    assert run_study(find_study("dstc10"), metrics=METRICS).to_record() == first.to_record()


def test_without_the_files_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="the files of DSTC10 are not here"):
        run_study(find_study("mme-ablation"), metrics=METRICS)


def test_copies_among_the_real_sets_are_found(datasets, monkeypatch):
    """FED, USR and GRADE are in DSTC10 under other names, with other punctuation."""
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    from dialeval.compose.evidence import text_digests
    from dialeval.datasets import find_dataset
    from dialeval.readers import load

    def texts(name):
        if find_dataset(name) is None:
            pytest.skip(f"{name} is not here")
        return {digest for sample in load(name) for digest in text_digests(sample)}

    for ours, theirs, least in (
        ("usr-topical", "dstc10/topical-usr", 359),
        ("grade-dailydialog", "dstc10/dailydialog-grade", 298),
        ("fed", "dstc10/fed-turn", 374),
        ("dstc10/fed-turn", "dstc10/fed-dial", 249),
    ):
        assert len(texts(ours) & texts(theirs)) >= least


def test_a_large_set_is_studied_by_a_sample_that_is_always_the_same():
    samples = tuple(rated_samples("humod", RULES["humod"])) * 100
    whole = LoadedSet("humod", samples[:1001])
    thin = thinned(whole)
    assert (len(thin.samples), thin.whole, thinned(whole)) == (500, 1001, thin)
    assert sampling_notes([thin]) == ["humod: 500 of 1,001 samples, drawn at random"]
    assert thinned(LoadedSet("small", samples[:1000])).samples == samples[:1000]
