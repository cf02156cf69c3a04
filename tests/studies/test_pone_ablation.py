"""PONE's ablation, on made-up dialogues whose topics have to match."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from models import tiny_encoders, tiny_language_models
from training.made_up_topics import TOPICS, Topics

from dialeval.errors import UsageError
from dialeval.studies import pone_ablation
from dialeval.studies.pone_ablation import (
    BASELINE,
    FULL,
    PRINTED,
    all_variants,
    averages,
    check_positives,
    variants,
)
from dialeval.studies.result import run_study
from dialeval.studies.study import find_study


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
    monkeypatch.setattr(pone_ablation, "SEEDS", 2)
    monkeypatch.setattr(pone_ablation, "variants", small_variants)


def small_variants(encoder, positives="eda"):
    small = {"hidden": (8,), "epochs": 3}
    return {
        name: replace(one, **small, **({} if name == BASELINE else {"variants": 1, "rounds": 1}))
        for name, one in variants(encoder, positives).items()
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


def test_beams_stand_beside_eda_and_the_picture_shows_two_scorers(corpora, tmp_path):
    generator = tiny_language_models.save(
        tmp_path / "beams", tiny_language_models.llama(), tiny_language_models.tokenizer()
    )
    spec = f"ctg:model={generator},tokens=3"
    study = find_study("pone-ablation")
    result = run_study(study, source=Topics(), positives=[spec], draw=True)
    by_set, components = result.tables
    added = [f"{name}, ctg beams" for name in ("PONE-Ne-LF", "PONE-Ne", "PONE")]
    assert [row[0] for row in by_set.rows] == [*PRINTED, *added]
    found = {row[0]: row for row in by_set.rows}
    gains = {row[0]: (row[1], row[3]) for row in components.rows}
    assert len(gains) == 5 + 4
    fields, gain = gains["label filter, ctg beams"]
    assert fields == "PONE-Ne-LF, ctg beams -> PONE-Ne, ctg beams"
    assert gain == pytest.approx(found[added[1]][-3] - found[added[0]][-3])
    assert "PONE, ctg beams" in result.notes[1]
    drawn = result.drawing.svg()
    assert ">BERT-RUBER<" in drawn
    assert ">PONE<" in drawn


@pytest.mark.parametrize("spec", ["eda", "none", "eda:swap=0.2"])
def test_positives_that_no_generator_writes_are_refused(spec):
    with pytest.raises(UsageError, match="by a generator"):
        check_positives([spec])


def test_an_encoder_writes_no_positives(tmp_path):
    encoder = tiny_encoders.save_bert(tmp_path / "bert")
    with pytest.raises(UsageError, match="encoder"):
        check_positives([f"ctg:model={encoder}"])


def test_other_positives_change_nothing_but_the_positives():
    options = all_variants("minilm-l6", ["ctg:model=a/b"])
    for name in ("PONE-Ne-LF", "PONE-Ne", "PONE"):
        other = options[f"{name}, ctg b"]
        assert other == replace(options[name], positives="ctg:model=a/b")


def test_a_component_is_what_two_scorers_differ_in():
    options = variants("minilm-l6")
    random = {name for name, one in options.items() if one.sampler_options.name == "random"}
    augmented = {name for name, one in options.items() if one.positives == "eda"}
    filtered = {name for name, one in options.items() if one.filter_options.mode == "paper"}
    assert random == {"BERT-RUBER", "PONE-Ne-LF", "PONE-Ne"}
    assert augmented == {"PONE-Ne-LF", "PONE-Ne", "PONE"}
    assert filtered == {"PONE-Ne", "PONE"}


def test_a_seed_counts_with_the_mean_over_the_sets():
    records = [{"agreement": {"a": {"spearman": 0.2}, "b": {"spearman": 0.4}}}]
    assert averages(records, "spearman") == pytest.approx([0.3])
