"""PONE's ablation, on made-up dialogues whose topics have to match."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from training.made_up_topics import TOPICS, Topics

from dialeval.studies import pone_ablation
from dialeval.studies.catalogue import find_study
from dialeval.studies.pone_ablation import BASELINE, FULL, PRINTED, averages, variants
from dialeval.studies.result import run_study


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """DailyDialog in small, and answers rated 5 on the topic and 1 off it."""
    generator = np.random.default_rng(0)
    daily = tmp_path / "corpora" / "dailydialog"
    for split, size in (("train", 80), ("validation", 20), ("test", 20)):
        lines = [
            f"do you like {t} {split} {i} __eou__ well {t} are nice said {i} {split} __eou__"
            for i, t in enumerate(generator.choice(TOPICS, size))
        ]
        (daily / split).mkdir(parents=True)
        (daily / split / f"dialogues_{split}.txt").write_text("\n".join(lines))
    rows = []
    for i in range(40):
        asked, answered = generator.choice(TOPICS, 2)
        rating = "5" if asked == answered else "1"
        rows.append(f"{i},what of {asked} {i},some {answered} {i}," + ",".join(rating * 10))
    rated = tmp_path / "rated" / "holistic" / "context_data_release.csv"
    rated.parent.mkdir(parents=True)
    rated.write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    monkeypatch.setattr(pone_ablation, "SEEDS", 2)
    monkeypatch.setattr(pone_ablation, "variants", small_variants)
    settings = pone_ablation.scorer_settings_of(epochs=3)
    monkeypatch.setattr(pone_ablation, "scorer_settings_of", lambda: settings)


def small_variants(encoder):
    return {
        name: replace(options, hidden=(8,), variants=1, filter=replace(options.filter, rounds=1))
        for name, options in variants(encoder).items()
    }


def test_five_scorers_stand_beside_the_published_numbers(corpora):
    source, heard = Topics(), []
    study = find_study("pone-ablation")
    result = run_study(study, source=source, progress=lambda *done: heard.append(done))
    assert result.failures == ()
    assert len(result.rows) == 2 * len(PRINTED)
    assert all(row.published is not None and row.value is not None for row in result.rows)
    by_set, components = result.tables
    assert [row[0] for row in by_set.rows] == list(PRINTED)
    assert by_set.header[1] == "holistic/coherence"
    found = {row[0]: row for row in by_set.rows}
    gain = next(row for row in components.rows if row[0] == "all of PONE")[3]
    assert gain == pytest.approx(found[FULL][-3] - found[BASELINE][-3])
    assert heard[-1] == (10, 10)
    assert "PONE" in result.notes[0]

    loaded = source.loaded
    again = run_study(study, source=source)
    assert again.to_record() == result.to_record()
    assert source.loaded == loaded


def test_a_component_is_what_two_scorers_differ_in():
    options = variants("minilm-l6")
    random = {name for name, one in options.items() if one.sampler.name == "random"}
    augmented = {name for name, one in options.items() if one.positives == "eda"}
    filtered = {name for name, one in options.items() if one.filter.mode == "paper"}
    assert random == {"BERT-RUBER", "PONE-Ne-LF", "PONE-Ne"}
    assert augmented == {"PONE-Ne-LF", "PONE-Ne", "PONE"}
    assert filtered == {"PONE-Ne", "PONE"}


def test_a_seed_counts_with_the_mean_over_the_sets():
    records = [{"agreement": {"a": {"spearman": 0.2}, "b": {"spearman": 0.4}}}]
    assert averages(records, "spearman") == pytest.approx([0.3])
