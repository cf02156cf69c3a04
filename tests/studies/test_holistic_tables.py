"""HolisticEval's tables and figures on the released files, with made-up models."""

import json

import numpy as np
import pytest
from made_up import HolisticModels
from scipy.stats import pearsonr, spearmanr

from dialeval.errors import UsageError
from dialeval.metrics.diversity import ngram_entropy
from dialeval.probe.holistic_result import ASPECTS
from dialeval.question import Judge
from dialeval.studies.holistic_tables import aspect_rows, rated_by_own
from dialeval.studies.result import run_study, save_drawings
from dialeval.studies.study import find_study


class Models(HolisticModels):
    """Judges by the length of the response, too."""

    def answer(self, questions):
        if isinstance(questions[0], Judge):
            return [(i, np.array([1 / len(q.response)])) for i, q in enumerate(questions)]
        return super().answer(questions)


@pytest.fixture
def here(datasets, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))


def of(result, what):
    return [(row.ours.by, row.value) for row in result.rows if row.what == what]


def test_what_the_release_allows_is_the_papers_and_the_cases_are_found(here):
    result = run_study(find_study("holistic-tables"), source=Models())
    assert result.failures == ()
    # Tables 3 and 4: mean and max of the raters; Table 8: the WordNet row
    assert sum(row.must_match for row in result.rows) == 2 * 4 + 2
    low_to_high, one_to_five = (value for _, value in of(result, "Table 2: human score"))
    assert low_to_high == pytest.approx((2.1 - 1.4) / (4.8 - 1.4))
    assert one_to_five == pytest.approx((2.1 - 1) / 4)
    assert [value for _, value in of(result, "Table 7: human score")] == pytest.approx([0.2, 0.375])
    # the answer of Table 7 has no word "no"
    assert of(result, "Table 7: self-consistency") == [("minilm-l6-nli, last pair", 0.75)]
    # three rows of the same number: two modes of the tuned model, and published beside each
    by = [by for by, _ in of(result, "Table 3, GPT-2 w/ fine-tuning: Pearson")]
    assert by == ["smollm2-135m-dialogue, mode=paper", "smollm2-135m-dialogue, mode=released"]
    # Tables 5 and 6 are quoted where nobody rated groups: 18 and 15 numbers; so is section 5.5
    *quoted, r, p = [row for row in result.rows if row.is_quoted]
    assert [row.what[:7] for row in quoted] == ["Table 5"] * 18 + ["Table 6"] * 15
    assert {row.reason for row in quoted} == {"quoted: needs rated groups"}
    assert [row.published.printed for row in (r, p)] == ["0.42", "0.003"]
    assert r.reason == p.reason == "quoted: needs rated dialogues"
    *tables, _, _ = [row.what[:7] for row in result.rows]
    assert tables == sorted(tables)


def test_figures_have_people_from_0_to_1_and_noise_on_them(here, tmp_path):
    result = run_study(find_study("holistic-figures"), source=Models(), draw=True)
    assert set(result.pictures) == {"figure-1.svg", "figure-2.svg"}
    save_drawings(result, tmp_path / "figures")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "figure-1.svg",
        "figure-2.svg",
    }
    text = (tmp_path / "figures" / "figure-1.svg").read_text()
    assert "Noise of standard deviation 0.05 on y" in text
    # The paper's r stands below each panel (Table 3), and both have the same axis.
    assert "in the paper 0.59" in text
    assert "in the paper 0.67" in text
    assert text.count(">1.0</text>") == 4
    save_drawings(result, tmp_path / "both.svg")
    assert "Figure 2" in (tmp_path / "both.svg").read_text()
    quoted = [row for row in result.rows if row.what.startswith("Figure 3")]
    assert len(quoted) == 3 * 3 * 2
    assert all(row.is_quoted and not row.must_match for row in quoted)


@pytest.fixture
def rated(tmp_path):
    """Twelve groups of five answers, their ratings by three people, and the file of both."""
    draw = np.random.default_rng(0)
    groups = [[" ".join(draw.choice(list("abcdef"), 4)) for _ in range(5)] for _ in range(12)]
    ratings = draw.integers(1, 6, (12, 3))
    with (tmp_path / "rated.jsonl").open("w") as file:
        for number, (answers, given) in enumerate(zip(groups, ratings.tolist(), strict=True)):
            record = {
                "id": f"q{number}/diversity-ws",
                "dialogue": f"q{number}",
                "variants": [{"query": "q", "response": answer} for answer in answers],
                "ratings": {"diversity": {"values": given, "scale": [1, 5]}},
            }
            file.write(json.dumps(record) + "\n")
    return groups, ratings, [str(tmp_path / "rated.jsonl")]


def test_figure_3_takes_the_ratings_of_ones_own_raters(here, rated):
    groups, ratings, sets = rated
    result = run_study(find_study("holistic-figures"), source=Models(), sets=sets, draw=True)
    for n in (1, 2, 3):
        ((by, value),) = of(result, f"Figure 3, WS, {n}-grams: Pearson")
        entropies = [ngram_entropy(group, n) for group in groups]
        expected = pearsonr(entropies, ratings.mean(axis=1)).statistic
        assert (by, value) == ("your raters", pytest.approx(expected))
    assert "figure-3.svg" in result.pictures


def test_tables_5_and_6_are_those_of_ones_own_raters(here, rated):
    groups, ratings, sets = rated
    result = run_study(find_study("holistic-tables"), source=Models(), sets=sets)
    entropies = [ngram_entropy(group, 2) for group in groups]
    ((_, value),) = of(result, "Table 5, WS, 2-grams: Spearman")
    assert value == pytest.approx(spearmanr(entropies, ratings.mean(axis=1)).statistic)
    alone = [
        pearsonr(ratings[:, place], np.delete(ratings, place, axis=1).mean(axis=1)).statistic
        for place in range(3)
    ]
    ((_, mean),) = of(result, "Table 6, WS: Pearson, mean")
    ((_, largest),) = of(result, "Table 6, WS: Pearson, max")
    ((_, variance),) = of(result, "Table 6, WS: human variance")
    assert (mean, largest) == (pytest.approx(np.mean(alone)), pytest.approx(max(alone)))
    assert variance == pytest.approx(ratings.var(axis=1).mean())
    printed = {row.what: row.published.printed for row in result.rows if row.published}
    assert printed["Table 6, WS: human variance"] == "0.68"
    assert printed["Table 6, CTG: Spearman, max"] == "0.81"
    # Nobody rated groups of CTG or of random queries: 6 + 5 numbers of each are quoted.
    quoted = [row for row in result.rows if row.is_quoted and row.what.startswith("Table")]
    assert len(quoted) == 2 * (6 + 5)
    assert {row.reason for row in quoted} == {"quoted: needs rated groups"}


def test_section_5_5_relates_the_aspects_of_dialogues_that_people_rated(tmp_path):
    draw = np.random.default_rng(1)
    said = {aspect: draw.integers(1, 6, (12, 5)) for aspect in ASPECTS}
    with (tmp_path / "rated.jsonl").open("w") as file:
        for number in range(12):
            record = {
                "id": f"q{number}",
                "context": ["Hello!"],
                "response": "Hi.",
                "variants": [{"query": "q", "response": answer} for answer in ("a b", "c")],
                "ratings": {name: given[number].tolist() for name, given in said.items()},
            }
            file.write(json.dumps(record) + "\n")
    own = rated_by_own([str(tmp_path / "rated.jsonl")])
    assert own.groups == {}  # each dialogue shows its answers, and none is a group to rate
    found = {row.what: row for row in aspect_rows(own.dialogues)}
    assert len(found) == 6 * 2
    expected = pearsonr(said["coherence"].mean(axis=1), said["fluency"].mean(axis=1))
    of = "Section 5.5, coherence and fluency: "
    assert found[f"{of}Pearson"].value == pytest.approx(expected.statistic)
    assert found[f"{of}p"].value == pytest.approx(expected.pvalue)
    assert {row.n for row in found.values()} == {12}


class Nobody:
    """Models that must not be asked."""

    def fingerprint(self, model):
        raise AssertionError(model)

    load = fingerprint


@pytest.mark.parametrize("study", ["holistic-tables", "holistic-figures"])
def test_a_file_without_rated_groups_is_refused_before_anything_is_scored(here, tmp_path, study):
    (tmp_path / "one.jsonl").write_text('{"context": ["hi"], "response": "hello"}\n')
    with pytest.raises(UsageError, match="no group of answers has a rating of 'diversity'"):
        run_study(find_study(study), sets=[str(tmp_path / "one.jsonl")], source=Nobody())


@pytest.mark.parametrize("study", ["holistic-tables", "holistic-figures"])
def test_three_models_are_needed(here, study):
    with pytest.raises(UsageError, match="name three models in this order"):
        run_study(find_study(study), models=["gpt2"], source=Models())
