"""The recipes by the names of `dialeval train`, one file for each or for a family.

Nothing is imported before use.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.options import build
from dialeval.training.recipe import Recipe

RECIPES: Mapping[str, str] = {
    "lm": "lm:LanguageModel",
    "nli": "nli:Inference",
    "ruber": "ruber:Ruber",
    "bert-ruber": "ruber:BertRuber",
    "pone": "ruber:Pone",
    "seq2seq": "seq2seq:Seq2Seq",
    "generator": "seq2seq:Generator",
    "mme": "mme:Mme",
    "mme-fluency": "mme_judges:MmeFluency",
    "mme-relevance": "mme_judges:MmeRelevance",
    "mme-engagement": "mme_judges:MmeEngagement",
    "mme-topic": "topic_graph:MmeTopic",
    "mme-specificity": "mme_judges:MmeSpecificity",
    "grade": "topic_graph:Grade",
    "deb": "corpus_judges:Deb",
    "maude": "corpus_judges:Maude",
    "dyna-eval": "corpus_judges:DynaEval",
    "flow-score": "corpus_judges:FlowScore",
    "usr-context": "usr:UsrContext",
    "usr-fact": "usr:UsrFact",
    "predictive-engage": "corpus_judges:PredictiveEngage",
    "judge-corpus": "judge:JudgeCorpus",
    "judge": "judge:JudgeOnRatings",
}
"""Name -> module of this package and class."""


def find_recipe(name: str) -> type[Recipe[Any]]:
    if name not in RECIPES:
        known = ", ".join(RECIPES)
        raise UsageError(f"no recipe {name!r}.{did_you_mean(name, RECIPES)} There are: {known}")
    module, _, cls = RECIPES[name].partition(":")
    found: type[Recipe[Any]] = getattr(importlib.import_module(f"{__name__}.{module}"), cls)
    return found


def make_recipe(recipe: str | Recipe[Any], options: Mapping[str, Any]) -> Recipe[Any]:
    """Makes a recipe by name with checked options; one that is made already takes none."""
    if isinstance(recipe, Recipe):
        if options:
            raise UsageError(f"recipe {recipe.name!r} is made: give its options when making it")
        return recipe
    return build(find_recipe(recipe), options, f"recipe {recipe!r}")
