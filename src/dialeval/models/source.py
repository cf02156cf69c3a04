"""The source of models for the engine: an identity without loading, and the model when needed.

Nothing is fetched here. A model that is not on this machine is an error that says how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from dialeval.errors import DialevalError, JobError, UsageError, is_panic
from dialeval.model_store.catalogue import Role
from dialeval.model_store.locate import Located, fingerprint, locate, offline, ready
from dialeval.model_store.scorer_directory import JUDGE_KINDS, read_scorer
from dialeval.model_store.weights import (
    SharedWeights,
    shared,
)
from dialeval.models import chat_judge
from dialeval.models.chat_judge import Servers, is_server
from dialeval.models.loading import SURROGATE, is_out_of_memory, text_tokenizer
from dialeval.question import Model

LOADERS: Mapping[Role, str] = {
    "causal-lm": "dialeval.models.causal_lm:load",
    "seq2seq-lm": "dialeval.models.seq2seq_lm:load",
    "encoder": "dialeval.models.encoder:load",
    "classifier": "dialeval.models.classifier:load",
    "reply-ranker": "dialeval.models.reply_ranker:load",
    "word-vectors": "dialeval.models.word_vectors:load",
    "judge": "dialeval.models.source:load_judge",
}
"""Role -> `load(directory: Path, *, device: str) -> Model`, and for language models
`adapter: Path | None` besides. Imported when the first model of the role is loaded."""


class Models:
    """The built-in `ModelSource`. Models that stand on the same weights share them.

    device   `auto` (as `choose_device` says), `cpu`, `cuda:1`
    servers  how servers are asked, and what that cost so far
    """

    def __init__(self, device: str = "auto", servers: Servers | None = None) -> None:
        self.device = device
        self.servers = servers or Servers()
        self._told: dict[str, str] = {}
        self._weights = SharedWeights()
        self._tokenizers: dict[Path, Any] = {}

    def fingerprint(self, name: str) -> str:
        self._told[name] = (
            chat_judge.fingerprint(name) if is_server(name) else fingerprint(locate(name))
        )
        return self._told[name]

    def languages(self, name: str) -> frozenset[str]:
        if is_server(name):
            return frozenset()
        found: Located | None = locate(name)
        while found is not None and found.entry is None:
            found = found.base  # an adapter or a judge of somebody's own reads what its base does
        return frozenset(found.entry.languages) if found and found.entry else frozenset()

    def unknown_pieces(self, name: str, text: str) -> float:
        if is_server(name):
            return 0.0
        found = locate(name)
        while found.base is not None:
            found = found.base
        if found.role not in ("encoder", "classifier"):
            return 0.0
        if found.directory not in self._tokenizers:
            with shared(self._weights):
                self._tokenizers[found.directory] = text_tokenizer(found.directory)
        tokenizer = self._tokenizers[found.directory]
        clean = SURROGATE.sub("\ufffd", text)
        ids = tokenizer([clean], add_special_tokens=False, verbose=False).input_ids[0]
        return ids.count(tokenizer.unk_token_id) / len(ids) if ids else 0.0

    def spent(self) -> dict[str, Any]:
        """Says what servers were asked so far; empty if none was."""
        usage = self.servers.usage
        asked = usage.requests or usage.kept
        return usage.to_record(self.servers.budget) if asked else {}

    def load(self, name: str) -> Model:
        if is_server(name):
            return chat_judge.load(name, self.servers)
        found = locate(name)
        if found.role not in LOADERS:
            raise UsageError(f"model {name!r} is a {found.role}: it answers no questions.")
        if found.gguf and found.entry:
            with offline(), _told_plainly(found):
                ready(found)
                load = _named("dialeval.models.llama_cpp:load")
                return cast("Model", load(found.gguf, device=self.device))
        with offline(), _told_plainly(found), shared(self._weights):
            asks = found.role == "judge"  # its base answers for itself
            directory = ready(found if asks else found.base or found)
            options: dict[str, Any] = {"device": self.device}
            if found.base and not asks:
                ready(found)
                options["adapter"] = found.directory
            model = cast("Model", _named(LOADERS[found.role])(directory, **options))
        if name in self._told and fingerprint(found) != self._told[name]:
            raise JobError(
                f"model {name!r} changed while it was used. Wait until it is written, and repeat"
                " the command."
            )
        return model


@contextmanager
def _told_plainly(found: Located) -> Iterator[None]:
    """Reports any failure to load as one error: damaged files of an unchecked model fail in many
    ways."""
    try:
        yield
    except (DialevalError, MemoryError, ImportError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        if is_out_of_memory(error):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"model {found.name!r} cannot be loaded from {found.directory}: {reason}"
        ) from error


def load_judge(directory: Path, *, device: str = "auto") -> Model:
    """Loads the judge in a directory that `dialeval train` made."""
    kind = JUDGE_KINDS[read_scorer(directory)["kind"]]
    return cast("Model", _named(kind.loader)(directory, device=device))


def check_trained_for(name: str, metric: str) -> None:
    """Refuses a judge that was trained to answer another question than this metric's."""
    if is_server(name):
        return
    found = locate(name)
    record = read_scorer(found.directory) if found.role == "judge" else {}
    trained = record.get("metric")
    if trained in (None, metric) or {trained, metric} <= JUDGE_KINDS[record["kind"]].alike:
        return
    raise UsageError(
        f"model {name!r} was trained for {trained}, and is asked for {metric}. See: dialeval"
        " models, dialeval train"
    )


def _named(loader: str) -> Any:
    """Returns the function of a name `module:function`."""
    module, _, function = loader.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("dialeval"):
            raise
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error
