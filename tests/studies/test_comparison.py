"""`study comparison`: rated files of one's own, made-up and real, in every form."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dialeval.agreement.coefficient import Coefficient
from dialeval.errors import UsageError
from dialeval.storage import cache_directory
from dialeval.studies.comparison import (
    OURS,
    PUBLISHED,
    Cell,
    overview_tables,
    people_among_each_other,
    short,
    wide_tables,
)
from dialeval.studies.result import (
    result_csv,
    result_latex,
    result_markdown,
    run_study,
    save_result,
    table_cells,
    tables_for_people,
)
from dialeval.studies.study import find_study

np = pytest.importorskip("numpy")


@pytest.fixture
def rated(tmp_path):
    """Longer answers are rated higher; those with a question mark are rated polite."""
    path = tmp_path / "my_rated.jsonl"
    lines = [
        {
            "id": str(n),
            "context": [{"text": "hello"}],
            "response": "word " * (n + 1) + "?" * (n % 3 == 0),
            "references": ["word word"],
            "ratings": {
                "Overall": {"values": [n, n + n % 2, n - n % 3], "scale": [-5, 30]},
                "polite": {"values": [n % 3, 1, 2], "scale": [0, 5]},
            },
        }
        for n in range(12)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def compare(rated, *metrics, **options):
    return run_study(find_study("comparison"), metrics=metrics, sets=[rated], **options)


def test_people_agree_as_in_the_golden_table(golden):
    case = golden["human_agreement"]
    ratings = np.array(case["ratings_raters_x_items"], dtype=float).T
    average, largest = people_among_each_other(ratings)
    for name in ("pearson", "spearman"):
        assert average[name].value == pytest.approx(case["human_avg"][name], abs=1e-9)
        assert largest[name].value == pytest.approx(case["human_max"][name], abs=1e-9)
        assert average[name].p is None
        assert 0 < largest[name].p < 0.01


def test_a_limit_draws_samples_of_each_set(rated):
    result = compare(rated, "length", limit=5)
    assert f"{rated}: 5 of 12 samples, drawn at random" in result.notes
    (complete,) = (table for table in result.tables if table.for_programs)
    place = complete.header.index("n")
    assert {row[place] for row in complete.rows} == {5}


def test_one_rater_agrees_with_nobody():
    average, largest = people_among_each_other(np.arange(5.0)[:, None])
    assert average["pearson"].value is None
    assert largest["spearman"].reason == "no two raters to compare"


def test_correlations_are_those_of_scipy(rated):
    stats = pytest.importorskip("scipy.stats")
    rows = list(csv.DictReader(io.StringIO(result_csv(compare(rated, "length", "chrf")))))
    (row,) = [r for r in rows if (r["metric"], r["quality"]) == ("length", "Overall")]
    lengths = [n + 1 + (n % 3 == 0) for n in range(12)]
    means = [(n + n + n % 2 + n - n % 3) / 3 for n in range(12)]
    for name, theirs in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        found = theirs(lengths, means)
        assert float(row[name]) == pytest.approx(found.statistic)
        assert float(row[f"{name} p"]) == pytest.approx(found.pvalue)
    assert (row["n"], row["missing"], row["level"], row["set"]) == ("12", "0", "turn", rated)


def test_the_same_numbers_stand_in_every_form(rated, tmp_path):
    result = compare(rated, "length")
    table = tables_for_people(result)[0]
    ((label, cell),) = [row for row in table_cells(table)[1] if row[0] == "length"]
    assert label == "length"
    for text in (result_markdown(result), result_latex(result)):
        assert cell in text.replace("\\", "")
    for ending, start in ((".tex", "% Lan"), (".csv", "set,"), (".json", "{"), (".md", "# comp")):
        save_result(result, tmp_path / f"out{ending}")
        assert (tmp_path / f"out{ending}").read_text().startswith(start)
    assert "\\toprule" in result_latex(result)
    assert "Every correlation" not in result_markdown(result)


def test_what_was_run_before_is_not_run_again(rated, monkeypatch):
    first = compare(rated, "length", "bleu")
    runs = list((cache_directory() / "studies" / "comparison").iterdir())
    assert len(runs) == 1

    def refuse(self, sample, answers):
        raise AssertionError("scored again")

    from dialeval.metrics.length import Length

    monkeypatch.setattr(Length, "score", refuse)
    assert compare(rated, "length", "bleu").to_record() == first.to_record()
    with pytest.raises(AssertionError, match="scored again"):
        compare(rated, "length")  # other metrics: another run


def test_a_metric_without_its_model_is_left_out_and_named(rated, tmp_path):
    result = compare(rated, "length", f"pone:model={tmp_path / 'none'}")
    assert any("is left out" in note and "no such directory" in note for note in result.notes)
    with pytest.raises(UsageError, match="no metric can be asked here"):
        compare(rated, f"pone:model={tmp_path / 'none'}")


def test_a_learned_metric_runs_and_says_what_it_learned_from(rated, tmp_path):
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from models import tiny_encoders, tiny_scorers

    encoder = tiny_encoders.save_bert(tmp_path / "encoder")
    scorer = tiny_scorers.save_pair_scorer(tmp_path / "scorer", str(encoder))
    (scorer / "card.json").write_text(json.dumps({"data": {"corpus": "made-up"}}))
    result = compare(rated, f"pone:model={scorer}", f"bert-ruber:model={scorer},blend=min")
    assert f"{scorer} learned from made-up" in "\n".join(result.notes)
    rows = list(csv.DictReader(io.StringIO(result_csv(result))))
    assert {row["metric"] for row in rows if row["pearson"]} >= {
        "Human(Avg)",
        f"pone:model={scorer}",
        f"bert-ruber:model={scorer},blend=min",
    }


def test_a_file_without_ratings_is_refused(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text('{"id": "1", "context": [{"text": "a"}], "response": "b"}\n')
    with pytest.raises(UsageError, match="no sample has ratings"):
        compare(str(path), "length")


def test_without_rated_sets_it_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="no rated set is here"):
        run_study(find_study("comparison"), metrics=["length"])


def test_other_studies_take_no_sets():
    with pytest.raises(UsageError, match="leave out --set"):
        run_study(find_study("pone-bleu"), sets=["fed"])


def test_the_printed_numbers_are_read():
    assert len(PUBLISHED) == 22
    assert set(OURS) <= set(PUBLISHED)
    assert str(PUBLISHED["PONE"]["grade-dailydialog", "turn", "coherence"]) == ".163/.163"
    assert str(PUBLISHED["DynaEval"]["fed", "dialogue", "Overall"]) == ".503/.547"
    assert ("engage", "turn", "engagement") not in PUBLISHED["RUBER"]


@pytest.mark.parametrize(
    ("value", "p", "text"),
    [(0.3416, 0.001, ".342"), (-0.0836, 0.2, "-.084*"), (1.0, 0.0, "1.000"), (None, None, "-")],
)
def test_a_correlation_is_printed_as_in_such_tables(value, p, text):
    assert short(Coefficient(value, 9, p=p)) == text


def test_a_wide_table_is_cut_into_several():
    columns = {("set", "turn", f"q{n}"): f"q{n}" for n in range(7)}
    rows = [("one", dict.fromkeys(columns, ".5")), ("late", {("set", "turn", "q6"): ".7"})]
    first, second = wide_tables("T", columns, rows)
    assert (first.title, second.title) == ("T (1 of 2)", "T (2 of 2)")
    assert [row[0] for row in first.rows] == ["one"]
    assert second.rows == (("one", ".5", ".5"), ("late", "", ".7"))


def test_the_composed_metrics_stand_above_their_published_rows():
    assert {"usl-h", "deep-am-fm"} <= set(find_study("comparison").metrics)
    found = {name: Coefficient(0.25, 360, p=0.001) for name in ("pearson", "spearman")}
    cells = [
        Cell("usr-topical", "turn", "Overall", name, found) for name in ("usl-h", "deep-am-fm")
    ]
    rows = overview_tables(cells)[0].rows
    assert rows[:4] == (
        ("usl-h", ".250/.250"),
        ("USL-H, DialEvalMetrics", ".322/.340"),
        ("deep-am-fm", ".250/.250"),
        ("Deep AM-FM, DialEvalMetrics", ".285/.268"),
    )


def test_real_sets_stand_beside_their_published_numbers(datasets, monkeypatch):
    if not (datasets / "rated" / "usr-topical").exists():
        pytest.skip("no data of USR")
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    result = run_study(find_study("comparison"), metrics=["rouge"], sets=["usr-topical"])
    rows = list(csv.DictReader(io.StringIO(result_csv(result))))
    (row,) = [r for r in rows if (r["metric"], r["quality"]) == ("rouge", "Overall")]
    assert (row["published pearson"], row["published spearman"]) == ("0.275", "0.287")
    assert float(row["spearman"]) == pytest.approx(0.287, abs=0.05)
    assert (row["state"], row["must match"]) == ("ran", "no")
    # The other 21 metrics of DialEvalMetrics have a number on this set (FBD has none anywhere).
    quoted = {r["metric"]: r for r in rows if r["state"] == "quoted"}
    assert len(quoted) == len(PUBLISHED) - 1
    assert all(r["must match"] == "no" and not r["pearson"] for r in quoted.values())
    assert quoted["ADEM"]["reason"] == "dialeval has no ADEM"
    assert quoted["grade"]["reason"] == "not asked"
    labels = [cells[0] for cells in tables_for_people(result)[0].rows]
    assert labels[:4] == ["Human(Avg)", "Human(Max)", "rouge", "ROUGE-L, DialEvalMetrics"]
