"""The studies by name. A study is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import cast

from dialeval.errors import UsageError, did_you_mean
from dialeval.studies.study import Study

STUDIES = {
    "holistic-raters": "holistic_raters",
    "holistic-consistency-ws": "holistic_consistency_ws",
    "holistic-consistency": "holistic_consistency",
    "holistic-length": "holistic_length",
    "ngram-entropy": "ngram_entropy",
    "ws-substitutions": "ws_substitutions",
    "ws-consistency": "ws_consistency",
    "pone-bleu": "pone_bleu",
    "pone-ablation": "pone_ablation",
    "comparison": "comparison",
    "dstc10-table": "dstc10_table",
    "dstc10": "dstc10",
    "mme-ablation": "mme_ablation",
    "full-fed": "full_fed",
    "follow-up-selection": "full_follow_ups",
    "behaviour": "behaviour",
}
"""Name -> module of this package that holds it as `STUDY`."""


def find_study(name: str) -> Study:
    if name not in STUDIES:
        raise UsageError(f"no study {name!r}.{did_you_mean(name, STUDIES)} See: dialeval study")
    module = importlib.import_module(f"dialeval.studies.{STUDIES[name]}")
    return cast(Study, module.STUDY)


def list_studies() -> list[Study]:
    return [find_study(name) for name in STUDIES]
