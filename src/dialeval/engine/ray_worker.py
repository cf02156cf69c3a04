"""What runs on a worker of a Ray cluster: one process that holds the models of a run and scores the
chunks that it is given. It knows nothing of Ray, files or other workers.

Answers are kept in the memory of the worker, in a database of its own: what one metric asked, the
next one finds. The answer cache of the user is neither read nor written, as a SQLite file on a disk
that several machines share could be damaged.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from dialeval.engine.answers import Answerer
from dialeval.engine.cache import AnswerCache
from dialeval.engine.chunk import Chunk, ScoredChunk, score_chunk
from dialeval.errors import DialevalError, JobError
from dialeval.metric import Metric
from dialeval.question import Model, ModelSource, TellingSource
from dialeval.version import __version__

IN_MEMORY = Path(":memory:")
"""What SQLite calls a database without a file."""

ANSWERS_KEPT = 50_000
"""Then the database starts again, empty: at 2 kB for the log-probabilities of a response, 100 MB.
What repeats (turns of one dialogue, stock answers) mostly lies closer together."""


class Worker:
    """Scores chunks with models that are loaded once.

    weights  name of each model -> the fingerprint that the signatures of the run name
    version  of dialeval, where the run was started
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        models: ModelSource,
        weights: Mapping[str, str],
        version: str,
    ) -> None:
        self._metrics = metrics
        self._models = LoadedOnce(models)
        self._weights = weights
        self._version = version
        self._cache: AnswerCache | None = None
        self._answers = 0
        self._under_way = 0

    def score(self, chunk: Chunk) -> ScoredChunk:
        if self._cache is None:
            self._check_is_alike()
            self._cache = AnswerCache(IN_MEMORY)
        try:
            answerer = Answerer(self._models, self._cache)
            scored = score_chunk(chunk, self._metrics, answerer, self._note_under_way)
        finally:
            self._under_way = 0
        self._answers += scored.counts.distinct - scored.counts.cached
        if self._answers > ANSWERS_KEPT:
            self._cache.close()
            self._cache, self._answers = AnswerCache(IN_MEMORY), 0
        return scored

    def under_way(self) -> int:
        """How many samples of the chunk in hand are done; asked while `score` runs."""
        return self._under_way

    def _note_under_way(self, samples: int) -> None:
        self._under_way = samples

    def _check_is_alike(self) -> None:
        """The signatures of the run must be true of what this machine computes."""
        where = f"the worker on {platform.node()}"
        if self._version != __version__:
            raise JobError(f"{where} has dialeval {__version__}, this machine {self._version}")
        for name, expected in self._weights.items():
            try:
                found = self._models.fingerprint(name)
            except DialevalError as error:
                raise JobError(f"{where}: {error}") from error
            if found != expected:
                raise JobError(
                    f"{where} has other weights of {name!r} ({found[:8]}) than this machine"
                    f" ({expected[:8]}). On both: dialeval models get {name}"
                )


class LoadedOnce:
    """A model source that asks the other one for each model once."""

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._fingerprints: dict[str, str] = {}
        self._models: dict[str, Model] = {}

    def fingerprint(self, name: str) -> str:
        if name not in self._fingerprints:
            self._fingerprints[name] = self._source.fingerprint(name)
        return self._fingerprints[name]

    def languages(self, name: str) -> frozenset[str]:
        source = self._source
        return source.languages(name) if isinstance(source, TellingSource) else frozenset()

    def unknown_pieces(self, name: str, text: str) -> float:
        source = self._source
        return source.unknown_pieces(name, text) if isinstance(source, TellingSource) else 0.0

    def load(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._source.load(name)
        return self._models[name]
