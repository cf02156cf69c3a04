"""A corpus in small for the studies that train scorers."""

from dataclasses import replace

import numpy as np
import pytest
from training.made_up_topics import TOPICS


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
    from dialeval.studies import pone_scorers

    usual = pone_scorers.variants

    def small_variants(*given, **named):
        small = {"hidden": (8,), "epochs": 3}
        return {
            name: replace(one, **small, **({} if name == "BERT-RUBER" else few))
            for name, one in usual(*given, **named).items()
        }

    few = {"variants": 1, "rounds": 1}
    monkeypatch.setattr(pone_scorers, "variants", small_variants)
    return tmp_path
