"""What a judge knows beyond source and length: against scipy and by arithmetic."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.errors import InputError
from dialeval.training.card import partial_correlation, score_source


def test_a_judge_that_counts_words_knows_nothing_beyond_length() -> None:
    generator = np.random.default_rng(0)
    words = generator.integers(1, 40, 400)
    labels = (words + generator.normal(0, 10, 400) > 15).astype(float)
    found = score_source("a", words / 40, labels, words.tolist())
    assert found.spearman is not None
    assert found.spearman > 0.5
    assert found.length == pytest.approx(1.0)
    assert found.partial is None


def test_the_partial_correlation_is_that_of_the_residuals_of_ranks() -> None:
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(1)
    words = generator.integers(1, 30, 200)
    labels = words / 30 + generator.normal(0, 0.5, 200)
    scores = 0.5 * labels + words / 30 + generator.normal(0, 0.5, 200)
    x, y, z = map(stats.rankdata, (scores, labels, words))
    left = [values - np.polyval(np.polyfit(z, values, 1), z) for values in (x, y)]
    found = score_source("a", scores.tolist(), labels.tolist(), words.tolist())
    assert found.partial == pytest.approx(float(np.corrcoef(left)[0, 1]), abs=1e-9)


def test_the_majority_is_right_as_often_as_its_label_is_there() -> None:
    found = score_source("a", [0.9, 0.8, 0.1, 0.9], [1, 1, 1, 0], [3, 3, 3, 3])
    assert (found.majority, found.accuracy, found.length) == (0.75, 0.5, None)
    assert found.partial == found.spearman
    assert score_source("a", [0.9, 0.1], [1, 0], [1, 2], None).accuracy is None


def test_where_length_says_everything_nothing_is_left_to_correlate() -> None:
    assert partial_correlation(1.0, 1.0, 1.0) is None
    assert partial_correlation(None, 0.0, 0.0) is None


SHIPPED = Path(dialeval.__file__).parent / "adapters"
OF_PEOPLE = {"judge-minilm-l6", "judge-mpnet"}
WITHOUT_LABELS = {"smollm2-135m-dialogue"}


@pytest.mark.parametrize(
    "part",
    sorted({path.parent.name for path in SHIPPED.glob("*/card.json")} - OF_PEOPLE - WITHOUT_LABELS),
)
def test_the_card_of_a_shipped_part_has_a_row_for_each_source(part: str) -> None:
    directory = SHIPPED / part
    rows = json.loads((directory / "card.json").read_text())["by_source"]
    assert rows
    assert all(1 / 3 <= row["majority"] <= 1 for row in rows)  # pairs of sentences have 3 labels
    assert all(row["n"] > 0 and row["partial"] is not None for row in rows)
    assert "## By source" in (directory / "card.md").read_text()


@pytest.mark.parametrize("part", sorted(OF_PEOPLE))
def test_a_judge_of_people_has_its_correlations_on_each_set_left_out_also_given_length(
    part: str,
) -> None:
    card = json.loads((SHIPPED / part / "card.json").read_text())
    sets = [name.removeprefix("rated answers of ") for name in card["data"]]
    assert len(sets) == 13
    for name in sets:
        assert 0 < card["scores"][f"{name}, left out: Spearman of overall"] < 1
        assert 0 < card["scores"][f"{name}, left out: overall given length"] < 1


def measure_script() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "measure_parts.py"
    spec = importlib.util.spec_from_file_location("measure_parts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_part_is_measured_as_it_is_used_and_the_table_goes_to_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from models import tiny_encoders
    from training.chat_files import write_dialogues

    from dialeval.training.recipes.mme_judges import MmeFluency
    from dialeval.training.run import train

    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path / "nothing"))
    said = [(f"do you like cats {n} ?", f"i do like the cat {n} so .") for n in range(60)]
    corpus = write_dialogues(tmp_path / "chats.jsonl", said)
    base = str(tiny_encoders.save_bert(tmp_path / "bert"))
    out = tmp_path / "mine"
    recipe = MmeFluency(
        model=base, examples=20, held_out=10, rank=2, epochs=1, learning_rate=0.02, batch=8
    )
    train(recipe, corpus, out)
    before = json.loads((out / "card.json").read_text())
    script = measure_script()
    (found,) = script.measure_part(str(out))
    assert found.n == len(recipe.example_sets([corpus]).by_source["chats.jsonl"])
    assert found.majority >= 0.5
    card = script.add_to_card(out, [found])
    after = json.loads((out / "card.json").read_text())
    assert after == before | {"by_source": [found.to_record()]}
    assert card.text() == (out / "card.md").read_text()
    with pytest.raises(InputError, match="elsewhere"):
        script.measure_part(str(out), [tmp_path / "elsewhere"])
