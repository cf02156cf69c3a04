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
    by_set, changes = result.tables
    assert by_set.header == ("", "fed-turn", "humod", "jsalt", "persona-zhao", "mean")
    assert [row[0] for row in changes.rows][:2] == ["w/o length", "w/o distinct:n=1"]


def test_test_sets_are_judged_with_weights_of_development_sets(track):
    result = run_study(find_study("dstc10"), metrics=METRICS)
    rows = {(row.what, row.ours.by): row for row in result.rows if row.ours}
    assert rows["MME-CRS: test protocol", "test sets"].ours.n == 2
    development, test, qualities = result.tables
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
