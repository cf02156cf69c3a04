"""PONE's ablation, on made-up dialogues whose topics have to match."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

from models import tiny_encoders, tiny_language_models
from training.made_up_topics import TOPICS, Topics

from dialeval.errors import UsageError
from dialeval.studies.pone_ablation import PRINTED_COLUMN
from dialeval.studies.pone_scorers import (
    BASELINE,
    FULL,
    STEPS,
    Sizes,
    all_variants,
    check_positives,
    variants,
)
from dialeval.studies.pone_tables import TABLE_7
from dialeval.studies.result import run_study
from dialeval.studies.study import find_study

FIVE = ["BERT-RUBER", "PONE-Po-LF", "PONE-Ne-LF", "PONE-Ne", "PONE"]


def study_ablation(source, **options):
    study = find_study("pone-ablation")
    return run_study(study, source=source, metrics=["length"], seeds=2, **options)


def test_five_scorers_stand_beside_people_and_the_published_numbers(corpora):
    source, heard = Topics(), []
    result = study_ablation(source, progress=lambda *done: heard.append(done))
    assert result.failures == ()
    ours = {row.what: row for row in result.rows}
    assert all(ours[f"{name}: Spearman"].value is not None for name in FIVE)
    assert ours["Human(Max): Pearson"].value == pytest.approx(1.0)  # all ten raters say the same
    assert ours["Human(Max): Pearson"].published.printed == "0.598"
    assert ours["BERTScore: Spearman"].published.printed == "0.221"
    assert ours["length: Spearman"].value is not None
    by_set, components, printed = result.tables
    assert [row[0] for row in by_set.rows] == FIVE
    assert by_set.header[1] == "holistic/coherence"
    found = {row[0]: row for row in by_set.rows}
    gain = next(row for row in components.rows if row[0] == "all of PONE")[3]
    assert gain == pytest.approx(found[FULL][-4] - found[BASELINE][-4])
    steps = [done for done, total in heard if total]
    assert heard[-1] == (10 * STEPS, 10 * STEPS)  # five scorers, two seeds
    assert steps == sorted(steps)
    assert len({done for done in steps if done < STEPS}) > 2  # while the first one learns
    assert "PONE" in result.notes[0]
    assert [row[0] for row in printed.rows] == list(TABLE_7[PRINTED_COLUMN])
    assert len(printed.header) == 3 + 2 * 4

    own = corpora / "mine.jsonl"
    rows = [{"id": str(i), "context": [{"text": "what of cats"}], "response": f"some {t} {i}",
             "ratings": {"fluency": {"values": [2], "scale": [1, 6]},
                         "overall": {"values": [5 if t == "cats" else 1], "scale": [1, 6]}}}
            for i, t in enumerate(TOPICS * 3)]  # fmt: skip
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = study_ablation(source, sets=[str(own)])
    assert again.tables[0].header[1] == str(own)
    accuracies = [[row[-1] for row in one.tables[0].rows] for one in (result, again)]
    assert accuracies[0] == accuracies[1]  # nothing was trained again


def test_beams_stand_beside_eda_and_the_picture_shows_two_scorers(corpora, tmp_path):
    generator = tiny_language_models.save(
        tmp_path / "beams", tiny_language_models.llama(), tiny_language_models.tokenizer()
    )
    spec = f"ctg:model={generator},tokens=3"
    result = study_ablation(Topics(), positives=[spec], draw=True)
    by_set, components, _ = result.tables
    added = [f"{name}, ctg beams" for name in ("PONE-Ne-LF", "PONE-Ne", "PONE")]
    assert [row[0] for row in by_set.rows] == [*FIVE, *added]
    found = {row[0]: row for row in by_set.rows}
    gains = {row[0]: (row[1], row[3]) for row in components.rows}
    assert len(gains) == 5 + 4
    fields, gain = gains["label filter, ctg beams"]
    assert fields == "PONE-Ne-LF, ctg beams -> PONE-Ne, ctg beams"
    assert gain == pytest.approx(found[added[1]][-4] - found[added[0]][-4])
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
    options = all_variants("minilm-l6", ["ctg:model=a/b"], Sizes())
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
