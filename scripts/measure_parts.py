"""What do the learned parts know beyond the source and the length of a response?

    DIALEVAL_DATA=DIR python scripts/measure_parts.py [PART ...] [--data NAME ...] [--write]
    DIALEVAL_DATA=DIR python scripts/measure_parts.py --people PART ...

PART is the name of a shipped part or a directory of `dialeval train`; all shipped ones if left out.
Each is measured on examples that it did not learn from, each source alone, and `--write` adds the
table to its card: `dialeval models card PART` shows it.

The trainings of judges that read text measure it themselves. This measures any part as it is used,
through the engine, whenever it was trained, and adds the table to its card (see `card`):

    mme-fluency        intact and broken responses, by corpus
    mme-specificity    the same: does it give intact ones the higher mean log-probability?
    mme-relevance, mme-topic, grade, bert-ruber, pone, ruber
                       the response that was given, and the middle of ten others, by corpus
    deb, maude, usr-context, usr-fact
                       what their recipes hold out for the test, by kind of wrong response
    mme-engagement     responses and what people said about them, by source
    nli                pairs of the sets that are held out: contradictions against the others
    judge-corpus       right and bad answers, by corpus, and answers that a language model rated

A language model has no labels, so that its card has no such table.

`--people` prints Spearman with people on the rated sets that are here, as a training does at its
end.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from dialeval.cli.terminal import print_table, run_script, say
from dialeval.datasets.locate import find_dataset
from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.metrics.mme import MmeSpecificity, measures
from dialeval.model_store.locate import locate
from dialeval.model_store.scorer_directory import DESCRIPTION, read_scorer
from dialeval.model_store.weights import read_json
from dialeval.models.quality_judge import is_quality_judge, taking_turns
from dialeval.models.source import Models
from dialeval.question import (
    ASPECTS,
    NLI_LABELS,
    Assess,
    Assessment,
    Inference,
    Judge,
    MaskedLikelihood,
    TokenLogProbs,
)
from dialeval.sample import Turn
from dialeval.training.card import (
    Card,
    SourceScores,
    metric_agreement,
    score_examples,
    source_cells,
)
from dialeval.training.examples.judge import Answered
from dialeval.training.examples.pair_corpus import Example, drawn
from dialeval.training.learners.inference import (
    InferencePair,
    load_inference_pairs,
    score_pairs,
)
from dialeval.training.learners.judge_corpus import held_out_answers, load_material, score_answers
from dialeval.training.recipe import Progress
from dialeval.training.recipes import find_recipe
from dialeval.training.recipes.mme_judges import MmeEngagement, MmeFluency, MmeRelevance
from dialeval.training.recipes.sentence_head import SentenceHead

PER_SOURCE = 500
MEASURED = (
    "mme-fluency", "mme-specificity", "mme-engagement",
    "mme-relevance", "mme-topic", "grade", "bert-ruber", "pone", "ruber",
    "deb", "maude", "usr-context", "usr-fact",
)  # fmt: skip


def measure_part(
    model: str, data: Sequence[Path] = (), *, per_source: int = PER_SOURCE
) -> list[SourceScores]:
    """`model` by name or directory, on `data` or on what its card says that it learned from."""
    found = locate(model)
    data = data or learned_from(found.directory)
    if found.role == "classifier":
        return _nli(model, data, per_source)
    if is_quality_judge(found.directory):
        return _quality(model, data, per_source)
    metric = metric_of(found.directory)
    if metric == "mme-specificity":
        examples = held_out_examples("mme-fluency", data, per_source)
        return [_specificity(model, source, own) for source, own in examples.items()]
    threshold = None if metric == "mme-engagement" else 0.5
    return [
        _judge(model, source, own, threshold)
        for source, own in held_out_examples(metric, data, per_source).items()
    ]


def held_out_examples(
    metric: str, data: Sequence[Path], per_source: int
) -> Mapping[str, Sequence[Example]]:
    """Returns held-out examples by source, always the same ones."""
    own_recipe = find_recipe(metric)
    if issubclass(own_recipe, SentenceHead):
        found = own_recipe().examples_of(data).sets.by_kind
    elif metric == "mme-engagement":
        found = MmeEngagement(per_source=1).example_sets(data).by_source
    elif metric == "mme-fluency":
        found = MmeFluency(examples=20, held_out=per_source).example_sets(data).by_source
    else:
        recipe = MmeRelevance(architecture="cross-encoder", examples=20, held_out=per_source)
        found = recipe.example_sets(data).by_source
    generator = np.random.default_rng(0)
    return {source: drawn(own, per_source, generator) for source, own in found.items()}


def agreement_with_people(model: str) -> Mapping[str, float | None]:
    """Asks the metric that uses this part. A card has these numbers if the part was trained where
    the sets were."""
    directory = locate(model).directory
    recipe = find_recipe(metric_of(directory))()
    found = metric_agreement(recipe.metric, directory, recipe.rated, Progress())
    if not found:
        raise UsageError("no rated set is here: name their folder in DIALEVAL_DATA")
    return found


def add_to_card(directory: Path, found: Sequence[SourceScores]) -> Card:
    """Writes the table into `card.json` and `card.md`; all else stays as it is."""
    record = read_json(directory / "card.json")
    known = {field.name for field in fields(Card)}
    card = Card(**{name: value for name, value in record.items() if name in known})
    card = replace(card, by_source=[one.to_record() for one in found])
    card.write(directory)
    return card


def metric_of(directory: Path) -> str:
    """Returns which judge it is, by its description."""
    if not (directory / DESCRIPTION).exists():
        raise UsageError(f"{directory} is no judge: it has no labels to be right about")
    found = read_scorer(directory).get("metric")
    if found not in MEASURED:
        raise UsageError(f"{directory / DESCRIPTION}: metric: there are no examples for {found!r}")
    return str(found)


def learned_from(directory: Path) -> list[Path]:
    """Returns what stands after `--data` in the command of the card."""
    words = shlex.split(str(read_json(directory / "card.json").get("command", "")))
    found = [Path(after) for word, after in pairwise(words) if word == "--data"]
    if not found:
        raise UsageError(f"{directory / 'card.json'}: command: it names no --data: name them")
    return list(dict.fromkeys(found))


def _judge(
    model: str, source: str, examples: Sequence[Example], threshold: float | None
) -> SourceScores:
    asked = [Judge(model, example.turns, example.response) for example in examples]
    answers = Answerer(Models("cpu"), None).answer(asked)
    scores = [float(answers[question][0]) for question in asked]
    return score_examples(source, examples, scores, threshold)


def _specificity(model: str, source: str, examples: Sequence[Example]) -> SourceScores:
    usual = MmeSpecificity()
    asked = [MaskedLikelihood(model, one.response, usual.masks, usual.tokens) for one in examples]
    answers = Answerer(Models("cpu"), None).answer(asked)
    read = [TokenLogProbs.read(answers[question]) for question in asked]
    kept = [place for place, tokens in enumerate(read) if len(tokens)]
    scores = [measures(read[place])["nce"] for place in kept]
    return score_examples(source, [examples[place] for place in kept], scores, None)


def _quality(model: str, data: Sequence[Path], most: int) -> list[SourceScores]:
    """Asks as `judge` does: turns take turns, and the rating goes from 1 to 5."""
    written, chats = (find_dataset(name) for name in ("dailydialog++", "convai2-human"))
    held_out = held_out_answers(load_material(data, written, None, chats, seed=0))
    found = []
    for source, answers in held_out.items():
        own = answers[:most]
        asked = [Assess(model, _turns(one.answer), one.answer.response) for one in own]
        read = Answerer(Models("cpu"), None).answer(asked)
        overall = ASPECTS.index("overall")
        scores = [Assessment.read(read[question]).ratings[overall] for question in asked]
        found.append(score_answers(source, own, scores, 3.0))
    return found


def _turns(answered: Answered) -> tuple[Turn, ...]:
    return tuple(Turn(text, "me" if own else "you") for own, text in taking_turns(answered.turns))


def _nli(model: str, data: Sequence[Path], most: int) -> list[SourceScores]:
    held_out: dict[str, Sequence[InferencePair]] = {}
    for path in data:
        held_out |= load_inference_pairs(path).at_most(most).held_out
    return [_inference(model, source, pairs) for source, pairs in held_out.items()]


def _inference(model: str, source: str, pairs: Sequence[InferencePair]) -> SourceScores:
    asked = [Inference(model, pair.premise, pair.hypothesis) for pair in pairs]
    answers = Answerer(Models("cpu"), None).answer(asked)
    rows = np.array([np.asarray(answers[q], dtype=float)[: len(NLI_LABELS)] for q in asked])
    return score_pairs(source, pairs, rows)


SHIPPED = Path(__file__).parent.parent / "src" / "dialeval" / "adapters"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--data", action="append", type=Path, default=[])
    parser.add_argument("--per-source", type=int, default=PER_SOURCE)
    parser.add_argument("--write", action="store_true", help="add the table to the card")
    parser.add_argument("--people", action="store_true", help="print Spearman with people instead")
    given = parser.parse_args()
    if given.people and not given.parts:
        parser.error("--people: name the parts")
    if given.people:
        for part in given.parts:
            say(part)
            rows = [
                [name, f"{r:.3f}" if r is not None else "-"]
                for name, r in agreement_with_people(part).items()
            ]
            print_table(["rated set", "Spearman"], rows, right=[1])
        return 0
    for part in given.parts or sorted(place.name for place in SHIPPED.iterdir() if place.is_dir()):
        try:
            found = measure_part(part, given.data, per_source=given.per_source)
        except UsageError as error:
            say(f"{part}: {error}", style="yellow")
            continue
        header, *rows = source_cells([one.to_record() for one in found])
        say(part)
        print_table(header, rows, right=range(1, len(header)))
        if given.write:
            add_to_card(locate(part).directory, found)
    return 0


if __name__ == "__main__":
    run_script(main)
