"""The first stage of `judge`: it learns from dialogues and sentences, without a rating of people.

    loss = mean over known aspects of BCE(s_aspect, good or bad)
         + mean over (better, worse) answers to the same turns of BCE(s_better - s_worse, p)

s is what the head says; the second term compares answers in an aspect, mostly the overall
judgement, and p is how surely people prefer the better one (`examples/judge`). All layers learn, or
adapters of them; the word embeddings stay those of the encoder. It begins with what the inference
model has learned of contradictions, or with another judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.models.classifier import Segmented, padded
from dialeval.models.quality_judge import QualityNetwork, Reading, taking_turns
from dialeval.networks.low_rank import low_rank_tensors
from dialeval.question import ASPECTS, NLI_LABELS
from dialeval.training.card import SourceScores, score_source, word_count
from dialeval.training.examples.corpora import known_exchanges, load_corpus
from dialeval.training.examples.faults import Exchange
from dialeval.training.examples.judge import (
    Answered,
    Group,
    Preference,
    daily_dialog_plus,
    decode_pairs,
    exchanges_of,
    graded_groups,
    inference_groups,
    split_by_turns,
    spoiled_group,
)
from dialeval.training.examples.model_ratings import rated_groups, shipped_records
from dialeval.training.learners.inference import load_inference_pairs
from dialeval.training.loop import Validation, multiply_in

BAD_ANSWERS = 2
"""In each group, beside the right one."""

HELD_OUT = 300
"""Groups of the corpora that are validated on; of sentences there are half as many."""

VALIDATED = 500
"""Groups that a language model rated that are validated on, at most: a large encoder reads ten
answers a second, and an epoch ends with a validation."""


@dataclass(frozen=True)
class Material:
    """What groups are made of, and how much of it makes an epoch."""

    corpora: Mapping[str, tuple[Sequence[Exchange], Sequence[Exchange]]]
    """Name -> exchanges to learn from, and to validate on."""
    written: Sequence[Group]
    """Groups that people wrote: DailyDialog++."""
    graded: Sequence[Group]
    """Groups that come with dialeval, to learn from."""
    held_out_graded: Sequence[Group]
    rated: Sequence[Group]
    """Groups that a language model rated, to learn from."""
    held_out_rated: Sequence[Group]
    rated_missing: int
    """Groups that a language model rated, whose texts are in no corpus here."""
    sentences: Sequence[tuple[str, str, str]]
    held_out_sentences: Sequence[tuple[str, str, str]]
    left_out: int
    """Dialogues that rated sets share."""

    def facts(self) -> dict[str, Any]:
        """Returns the counts for the card."""
        return {
            "sha256": self.digest(),
            **{f"exchanges of {name}": len(train) for name, (train, _) in self.corpora.items()},
            "groups that people wrote": len(self.written),
            "groups of graded answers": len(self.graded),
            "groups that a language model rated": len(self.rated),
            "groups that a language model rated, texts not here": self.rated_missing,
            "pairs of sentences": len(self.sentences),
            "dialogues left out because rated sets share them": self.left_out,
            "rated sets that are left out": known_exchanges().described(),
        }

    def digest(self) -> str:
        sha = hashlib.sha256()
        for name, (train, validation) in self.corpora.items():
            sha.update(f"{name}\x1d{len(train)}\x1d{len(validation)}\x1d".encode())
            for exchange in train:
                row = "\x1f".join((*exchange.turns[-1:], exchange.response))
                sha.update(row.encode("utf-8", "replace") + b"\x1e")
        for group in (*self.written, *self.graded, *self.rated):
            for answer in group.answers:
                sha.update(answer.response.encode("utf-8", "replace") + b"\x1e")
        for row_of in self.sentences:
            sha.update("\x1f".join(row_of).encode("utf-8", "replace") + b"\x1e")
        return sha.hexdigest()


def load_material(
    data: Sequence[Path],
    adversarial: Path | None,
    inference: Path | None,
    chats: Path | None,
    seed: int,
) -> Material:
    """Reads everything and leaves out what rated sets share. Texts that a language model rated
    are looked up in `chats`, too; nothing else is learned from these."""
    rated = known_exchanges()
    corpora: dict[str, tuple[Sequence[Exchange], Sequence[Exchange]]] = {}
    left_out = 0
    for path in data:
        corpus = load_corpus(path)
        kept = [d for d in corpus.train if not rated.sets_with_dialogue(d)]
        left_out += len(corpus.train) - len(kept)
        corpora[corpus.name] = (exchanges_of(kept), exchanges_of(corpus.validation))
    generator = np.random.default_rng([seed, 1])
    written: list[Group] = []
    if adversarial is not None:
        for group in daily_dialog_plus(adversarial, generator):
            turns = group.answers[0].turns
            answers = [(*turns, answer.response) for answer in group.answers]
            if any(rated.sets_with_dialogue(dialogue) for dialogue in answers):
                left_out += 1
            else:
                written.append(group)
    sentences: list[tuple[str, str, str]] = []
    held_out: list[tuple[str, str, str]] = []
    if inference is not None:
        found = load_inference_pairs(inference)
        sentences = [(p.premise, p.hypothesis, NLI_LABELS[p.label]) for p in found.train]
        held_out = [(p.premise, p.hypothesis, NLI_LABELS[p.label]) for p in found.validation]
        decode = inference / "decode" / "contradictions.tsv"
        if decode.is_file():
            pairs = decode_pairs(decode, generator)
            order = generator.permutation(len(pairs)).tolist()
            tenth = len(order) // 10
            held_out += [pairs[i] for i in order[:tenth]]
            sentences += [pairs[i] for i in order[tenth:]]
    if not any(train for train, _ in corpora.values()):
        raise UsageError("there is no dialogue to learn from: name a corpus with --data")
    texts = [*data, *([chats] if chats else [])]
    rated_by_model = rated_groups(shipped_records(), texts, adversarial)
    return Material(
        corpora,
        written,
        *split_by_turns(graded_groups()),
        *split_by_turns(rated_by_model.groups),
        rated_by_model.missing,
        sentences,
        held_out,
        left_out,
    )


class HeldOut(NamedTuple):
    """Groups of a right and a bad answer to turns of held-out dialogues, by corpus, and groups of
    sentences."""

    of_corpora: Mapping[str, Sequence[Group]]
    of_sentences: Sequence[Group]


def held_out_groups(material: Material) -> HeldOut:
    """Draws what is validated on: always the same groups."""
    generator = np.random.default_rng(0)
    corpora = {name: own for name, (_, own) in material.corpora.items() if own}
    found: dict[str, Sequence[Group]] = {}
    for name, validation in corpora.items():
        others = [exchange.response for exchange in validation]
        drawn = generator.permutation(len(validation))[: HELD_OUT // len(corpora)].tolist()
        groups = [spoiled_group(validation[place], others, generator, 1) for place in drawn]
        found[name] = [group for group in groups if group]
    held = material.held_out_sentences
    drawn = generator.permutation(len(held))[: HELD_OUT // 2].tolist()
    return HeldOut(found, list(inference_groups([held[i] for i in drawn], generator)))


class Labelled(NamedTuple):
    """An answer, and how good it is from 0 to 1."""

    answer: Answered
    label: float


def held_out_answers(material: Material) -> dict[str, list[Labelled]]:
    """Returns answers that were not learned from, by source: those of a corpus are right (1) or bad
    (0), the others have the rating of a language model."""
    found = {
        name: [
            Labelled(group.answers[place], label)
            for group in groups
            for preference in group.preferred
            for place, label in ((preference.better, 1.0), (preference.worse, 0.0))
        ]
        for name, groups in held_out_groups(material).of_corpora.items()
    }
    found["model-ratings"] = [
        Labelled(answer, answer.aspects["overall"])
        for group in material.held_out_rated[:VALIDATED]
        for answer in group.answers
    ]
    return {name: own for name, own in found.items() if own}


def score_answers(
    source: str, answers: Sequence[Labelled], scores: Sequence[float], middle: float
) -> SourceScores:
    """Returns what the card says of them; a score above `middle` calls an answer good."""
    words = [word_count(one.answer.response) for one in answers]
    return score_source(source, scores, [one.label for one in answers], words, middle)


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """Token ids of each answer, the aspects of each (-1: unknown), and the preferences."""

    answers: list[Segmented]
    aspects: np.ndarray[Any, np.dtype[np.float32]]
    preferred: tuple[Preference, ...]


class JudgeCorpusLearner:
    """Groups of similar length in batches."""

    def __init__(
        self,
        network: QualityNetwork,
        tokenizer: Any,
        reading: Reading,
        material: Material,
        *,
        groups: int,
        graded: int,
        rated: int,
        batch: int,
        precision: str = "float32",
        seed: int,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._reading = reading
        self._material = material
        self._groups = groups
        self._graded = graded
        self._rated = rated
        self._batch = batch
        self._precision = precision
        self._seed = seed
        self._epoch: tuple[int, list[list[EncodedGroup]]] = (-1, [])
        self._count = 0
        if not low_rank_tensors(network.encoder):
            network.requires_grad_(True)
            network.encoder.embeddings.requires_grad_(False)
        validation = held_out_groups(material)
        of_corpora = [group for own in validation.of_corpora.values() for group in own]
        if not of_corpora:
            raise UsageError("there are no dialogues to validate on")
        self._validation = self._encoded([*of_corpora, *validation.of_sentences])
        held_out = self._material.held_out_graded if graded else ()
        self._validation_graded = self._encoded(held_out)
        self._validation_rated = self._encoded(
            self._material.held_out_rated[:VALIDATED] if rated else ()
        )

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {n: p for n, p in self.network.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[EncodedGroup]]:
        """As many in every epoch as in the first: where groups are smaller, some come twice."""
        if self._epoch[0] != epoch:
            generator = np.random.default_rng([self._seed, 2, epoch])
            made = self._batched(self._encoded(self.draw(generator)), generator)
            count = len(made) if epoch == 0 else self._first()
            self._epoch = (epoch, (made + made)[:count])
        return self._epoch[1]

    def _first(self) -> int:
        if not self._count:
            generator = np.random.default_rng([self._seed, 2, 0])
            self._count = len(self._batched(self._encoded(self.draw(generator)), generator))
        return self._count

    def draw(self, generator: np.random.Generator) -> list[Group]:
        """Draws the groups of an epoch: `groups`, a third of them sentences and a fifth written by
        people, the rest from the corpora, each by the root of its size; then `graded`
        and `rated`."""
        material = self._material
        found: list[Group] = []
        if material.written:
            count = min(len(material.written), self._groups // 5)
            drawn = generator.permutation(len(material.written))[:count].tolist()
            found += [material.written[i] for i in drawn]
        if material.sentences:
            count = min(len(material.sentences), self._groups // 3)
            drawn = generator.permutation(len(material.sentences))[:count].tolist()
            found += inference_groups([material.sentences[i] for i in drawn], generator)
        sizes = np.sqrt([len(train) for train, _ in material.corpora.values()])
        shares = sizes / sizes.sum() * (self._groups - len(found))
        for (train, _), share in zip(material.corpora.values(), shares.tolist(), strict=True):
            others = [exchange.response for exchange in train]
            for place in generator.permutation(len(train))[: round(share)].tolist():
                group = spoiled_group(train[place], others, generator, BAD_ANSWERS)
                found += [group] if group else []
        for groups, count in ((material.graded, self._graded), (material.rated, self._rated)):
            found += [groups[i] for i in generator.permutation(len(groups))[:count].tolist()]
        return found

    def loss(self, batch: list[EncodedGroup]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()  # dropout in every block takes a third of the time
        with multiply_in(self._precision):
            return group_loss(self.network, self._tokenizer, batch)

    def validate(self) -> Validation:
        """Returns how often the right answer is preferred, and how well contradictions are told."""
        measures = {}
        ordered, losses = self._ordered(self._validation)
        measures["right_answer_preferred"] = float(np.mean(ordered))
        if self._validation_graded:
            graded, own = self._ordered(self._validation_graded)
            losses = losses + own
            measures["better_of_graded_answers_preferred"] = float(np.mean(graded))
        if self._validation_rated:
            better, own = self._ordered(self._validation_rated)
            losses = losses + own
            measures["better_of_rated_answers_preferred"] = float(np.mean(better))
            measures["correlation_with_ratings_of_the_language_model"] = self._correlation()
        pairs = [group for group in self._validation if not group.preferred]
        if pairs:
            column = ASPECTS.index("consistency")
            said = self.predict([group.answers[0] for group in pairs])[:, column]
            good = np.array([group.aspects[0, column] > 0.5 for group in pairs])
            measures["contradictions_told"] = float(np.mean((said > 0) == good))
        return Validation(float(np.mean(losses)), measures)

    def by_source(self) -> list[SourceScores]:
        """Returns what is known beyond the source and the length of an answer, for the card."""
        column, found = ASPECTS.index("overall"), []
        for source, answers in held_out_answers(self._material).items():
            groups = [Group((one.answer,), ()) for one in answers]
            said = self.predict([group.answers[0] for group in self._encoded(groups)])
            found.append(score_answers(source, answers, said[:, column].tolist(), 0.0))
        return found

    def _correlation(self) -> float:
        """Pearson's r of the overall judgement and the rating, over answers that are held out."""
        groups = self._validation_rated
        said = self.predict([answer for group in groups for answer in group.answers])
        column = ASPECTS.index("overall")
        ratings = np.concatenate([group.aspects[:, column] for group in groups])
        return float(np.corrcoef(said[:, column], ratings)[0, 1])

    def _ordered(self, groups: Sequence[EncodedGroup]) -> tuple[list[bool], list[float]]:
        """For each preference: is the better answer preferred, and the loss."""
        logits = self.predict([answer for group in groups for answer in group.answers])
        ordered, losses, start = [], [], 0
        for group in groups:
            for better, worse, _, aspect in group.preferred:
                column = ASPECTS.index(aspect)
                difference = float(logits[start + better, column] - logits[start + worse, column])
                ordered.append(difference > 0)
                losses.append(float(np.logaddexp(0.0, -difference)))
            start += len(group.answers)
        return ordered, losses

    @torch.no_grad()
    def predict(self, answers: Sequence[Segmented]) -> np.ndarray[Any, np.dtype[np.float32]]:
        with multiply_in(self._precision):
            return predict(self.network, self._tokenizer, answers)

    def _encoded(self, groups: Sequence[Group]) -> list[EncodedGroup]:
        if not groups:
            return []
        texts = [
            (taking_turns(answer.turns), answer.response)
            for group in groups
            for answer in group.answers
        ]
        read, _ = self._reading(texts)
        found, place = [], 0
        for group in groups:
            aspects = np.full((len(group.answers), len(ASPECTS)), -1.0, dtype=np.float32)
            for row, answer in enumerate(group.answers):
                for aspect, value in answer.aspects.items():
                    aspects[row, ASPECTS.index(aspect)] = value
            ids = read[place : place + len(group.answers)]
            place += len(group.answers)
            found.append(EncodedGroup(ids, aspects, group.preferred))
        return found

    def _batched(
        self, groups: Sequence[EncodedGroup], generator: np.random.Generator
    ) -> list[list[EncodedGroup]]:
        """About `batch` answers each, of groups of similar length."""
        jitter = generator.random(len(groups))
        longest = [max(len(ids) for ids, _ in group.answers) // 8 for group in groups]
        order = sorted(range(len(groups)), key=lambda i: (longest[i], jitter[i]))
        batches: list[list[EncodedGroup]] = [[]]
        for place in order:
            if sum(len(group.answers) for group in batches[-1]) >= self._batch:
                batches.append([])
            batches[-1].append(groups[place])
        return [batches[i] for i in generator.permutation(len(batches))]


def group_loss(
    network: QualityNetwork, tokenizer: Any, batch: Sequence[EncodedGroup]
) -> torch.Tensor:
    """See the head of this file."""
    functional = torch.nn.functional
    logits = network(
        **padded([ids for group in batch for ids in group.answers], tokenizer.pad_token_id)
    ).float()
    aspects = torch.from_numpy(np.concatenate([group.aspects for group in batch]))
    known = (aspects >= 0).float()
    each = functional.binary_cross_entropy_with_logits(
        logits, aspects.clamp(min=0), reduction="none"
    )
    loss = (each * known).sum() / known.sum()
    better: list[int] = []
    worse: list[int] = []
    columns: list[int] = []
    probabilities: list[float] = []
    start = 0
    for group in batch:
        for one in group.preferred:
            better.append(start + one.better)
            worse.append(start + one.worse)
            columns.append(ASPECTS.index(one.aspect))
            probabilities.append(one.probability)
        start += len(group.answers)
    if probabilities:
        loss = loss + functional.binary_cross_entropy_with_logits(
            logits[better, columns] - logits[worse, columns], torch.tensor(probabilities)
        )
    return loss


@torch.no_grad()
def predict(
    network: QualityNetwork, tokenizer: Any, answers: Sequence[Segmented], at_once: int = 64
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns what the head says about each answer."""
    network.eval()
    found = np.zeros((len(answers), len(ASPECTS)), dtype=np.float32)
    order = sorted(range(len(answers)), key=lambda i: len(answers[i][0]))
    for start in range(0, len(order), at_once):
        rows = order[start : start + at_once]
        inputs = padded([answers[i] for i in rows], tokenizer.pad_token_id)
        found[rows] = network(**inputs).float().numpy()
    return found
