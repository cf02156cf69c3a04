"""`bertscore`: has each token a counterpart in the same sense? (Zhang et al., ICLR 2020, section 3)

    R  = sum over tokens x of the reference of  w(x) * max over tokens y of the response, cos(x, y)
    P  = the same with the two exchanged
    F1 = 2 P R / (P + R)

x and y stand for the states of an encoder. The weights w sum to 1: equal ones, or with idf=FILE

    w(x) ~ idf(x) = ln( (M + 1) / (1 + number of the M lines of the file that hold x) )

so that rare tokens count more. The authors take the references of the test set as that file. The
marks at both ends of a text ([CLS], [SEP]) weigh nothing, but they can be somebody's counterpart.

Cosines of contextual states crowd near the top of their range; baseline=b spreads them with
(x - b) / (1 - b), where b is what random sentences get. b is a number, or a CSV file as in the
`bert-score` package, `LAYER,P,R,F`, with one line per layer.

The numbers are those of that package: of several references the best counts, for P, R and F1 apart;
an empty text gets 0 before the baseline. One difference: the package pads a batch with cosines of
0, so that there the best cosine of a token may be 0 instead of negative, depending on the pairs in
its batch. Where P or R is not positive their harmonic mean means nothing, and F1 is 0.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part, bound
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, BestMatches, DocumentFrequency, Question, TokenMatch
from dialeval.sample import Sample
from dialeval.scores import Score

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

TUNED_LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "sup-simcse-bert-base-uncased": 10,
}
"""The layers that agree best with the human judgments of WMT16, from the `bert-score` package."""

Triple = tuple[float, float, float]
"""Precision, recall and F1."""


@dataclass(frozen=True)
class Corpus:
    """The lines of a text file, and the hash that identifies them in a signature."""

    lines: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class BertScore(Metric):
    """Greedy matching of contextual token embeddings between response and reference: F1."""

    name = "bertscore"
    needs = frozenset({"references"})
    citation = (
        "Zhang, Kishore, Wu, Weinberger, Artzi: BERTScore: Evaluating Text Generation with BERT."
        " ICLR 2020"
    )

    model: str = model_option("token-encoder", "the encoder")
    layer: int = option(
        -1, "layer of the encoder; -1: the tuned layer if it is known, else the last", low=-1
    )
    idf: str = option("", "file of texts, one per line: rare tokens get a higher weight")
    baseline: str = option(
        "", "score of random texts, or a CSV file with this score for each layer"
    )
    corpus: Corpus | None = bound()
    floor: Triple = bound()

    def __post_init__(self) -> None:
        self.bind(
            corpus=_corpus(self.idf) if self.idf else None,
            floor=_floor(self.baseline, self.chosen_layer()),
        )

    @property
    def range(self) -> tuple[float, float]:
        floor = self.floor[2]
        return (-floor / (1 - floor), 1.0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        layer, response = self.chosen_layer(), sample.response or ""
        questions: list[Question] = [
            TokenMatch(self.model, response, reference, layer) for reference in sample.references
        ]
        if self.corpus:
            questions.append(DocumentFrequency(self.model, self.corpus.lines))
        return questions

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        import numpy as np

        matches = [BestMatches.read(answer) for answer in answers[: len(sample.references)]]
        weights = None
        if self.corpus:
            lines = len(self.corpus.lines)
            weights = np.log((lines + 1) / (1 + np.asarray(answers[-1], np.float64)))
        triples = [triple for match in matches if (triple := _triple(match, weights)) is not None]
        if not triples:
            return Score.missing("idf weighs no token")
        floor = np.array(self.floor)
        best = (np.max(triples, axis=0) - floor) / (1 - floor)
        note = "truncated" if any(match.cut for match in matches) else ""
        if not len(matches[0].candidate_tokens):
            note = "empty response"
        precision, recall, f1 = best.tolist()
        return Score(f1, {"precision": precision, "recall": recall, "f1": f1}, note)

    def chosen_layer(self) -> int:
        name = self.model.rpartition("/")[2]
        return TUNED_LAYERS.get(name, -1) if self.layer == -1 else self.layer

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("precision", "how much of the response is in the reference"),
            Part("recall", "how much of the reference is in the response"),
            Part("f1", "harmonic mean of the two"),
        )

    def signature_fields(self) -> Mapping[str, str]:
        layer = self.chosen_layer()
        fields = {"layer": "last" if layer == -1 else str(layer), "idf": "none", "baseline": "none"}
        if self.corpus:
            fields["idf"] = f"{Path(self.idf).name}@{self.corpus.sha256[:8]}"
        if self.baseline:
            fields["baseline"] = "/".join(map(str, self.floor))
        return fields


def _triple(match: BestMatches, weights: Array | None) -> Triple | None:
    """P, R and F1; None where no token weighs anything."""
    if not len(match.candidate_tokens) or not len(match.reference_tokens):
        return (0.0, 0.0, 0.0)
    precision = _mean(match.candidate_tokens, match.candidate_cosines, weights)
    recall = _mean(match.reference_tokens, match.reference_cosines, weights)
    if precision is None or recall is None:
        return None
    positive = precision > 0 and recall > 0
    return (precision, recall, 2 * precision * recall / (precision + recall) if positive else 0.0)


def _mean(tokens: npt.NDArray[np.int64], cosines: Array, weights: Array | None) -> float | None:
    if weights is None:
        return float(cosines.mean())
    chosen = weights[tokens]
    return float(chosen @ cosines / chosen.sum()) if chosen.any() else None


def _corpus(path: str) -> Corpus:
    try:
        content = Path(path).read_bytes()
        lines = tuple(line for line in content.decode("utf-8-sig").split("\n") if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"metric 'bertscore': idf={path}: {error}") from error
    if not lines:
        raise UsageError(f"metric 'bertscore': idf={path}: the file holds no text")
    return Corpus(lines, hashlib.sha256(content).hexdigest())


def _floor(baseline: str, layer: int) -> Triple:
    try:
        floor = (float(baseline or 0),) * 3
    except ValueError:
        floor = _baseline(baseline, layer)
    if not all(-1 < value < 1 for value in floor):
        raise UsageError(f"metric 'bertscore': baseline={baseline} is not a cosine below 1")
    return floor


def _baseline(path: str, layer: int) -> Triple:
    what = f"metric 'bertscore': baseline={path}"
    if layer == -1:
        raise UsageError(f"{what}: which line of the file? Say layer=NUMBER")
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            row = {int(row["LAYER"]): row for row in csv.DictReader(file)}[layer]
        return (float(row["P"]), float(row["R"]), float(row["F"]))
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise UsageError(f"{what}: neither a number nor a file of baselines ({error})") from error
    except KeyError as error:
        raise UsageError(
            f"{what}: {error} is missing. Expected the columns LAYER,P,R,F and a line per layer"
        ) from error
