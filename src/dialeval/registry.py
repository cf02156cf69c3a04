"""Names -> metrics and readers. Nothing is imported until it is asked for by name.

Built-ins are listed here as `module:Class` strings. Other packages add theirs through entry points
in the groups `dialeval.metrics` and `dialeval.readers`; a name that exists twice is an error, never
a silent winner.

A plugin is other people's code. One that cannot be loaded, whatever it raises, or that is no metric
or reader, is an error for those who ask for it by name. For everybody else it is named, once, and
left out. A plugin reader is guarded where it is used, too (`guarded`).
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from dialeval.errors import UsageError, did_you_mean, explain
from dialeval.metric import Metric
from dialeval.options import build, split_spec

if TYPE_CHECKING:
    from dialeval.readers.reader import Reader

T = TypeVar("T")
logger = logging.getLogger("dialeval.plugins")


class Registry(Generic[T]):
    """A table of lazily imported things of one kind.

    accept  makes what a plugin offers ready for use; raises `TypeError` where it is something else
    """

    def __init__(
        self,
        kind: str,
        listing: str,
        builtin: Mapping[str, str],
        accept: Callable[[str, Any], T] = lambda name, offered: cast(T, offered),
    ) -> None:
        self.kind = kind
        self.group = f"dialeval.{kind}s"
        self._listing = listing
        self._builtin = dict(builtin)
        self._accept = accept
        self._loaded: dict[str, T] = {}
        self._broken: dict[str, str] = {}

    @cached_property
    def _targets(self) -> dict[str, str | EntryPoint]:
        targets: dict[str, str | EntryPoint] = dict(self._builtin)
        for entry in entry_points(group=self.group):
            if entry.name in targets:
                owner = entry.dist.name if entry.dist else "a plugin"
                raise UsageError(
                    f"{self.kind} {entry.name!r} exists twice: {owner} defines it as"
                    f" {entry.value}, but the name is taken. Rename or uninstall one of them."
                )
            targets[entry.name] = entry
        return targets

    def names(self) -> list[str]:
        return list(self._targets)

    def working(self) -> list[str]:
        """Returns the names that can be loaded; a plugin that cannot be loaded is named once, in a
        warning.

        Built-in ones are not loaded for this.
        """
        found = []
        for name in self._targets:
            known = name in self._broken
            try:
                if self.is_plugin(name):
                    self.get(name)
                found.append(name)
            except UsageError as error:
                if not known:
                    logger.warning("%s. It is left out.", error)
        return found

    def is_plugin(self, name: str) -> bool:
        return not isinstance(self._targets[name], str)

    def get(self, name: str) -> T:
        if name not in self._loaded:
            if name not in self._targets:
                raise UsageError(
                    f"no {self.kind} {name!r}.{did_you_mean(name, self._targets)}"
                    f" See: {self._listing}"
                )
            self._loaded[name] = self._load(name, self._targets[name])
        return self._loaded[name]

    def _load(self, name: str, target: str | EntryPoint) -> T:
        if isinstance(target, str):
            module, _, attribute = target.partition(":")
            return cast(T, getattr(importlib.import_module(module), attribute))
        if name not in self._broken:
            try:
                return self._accept(name, target.load())
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # sys.exit in a module would end the command
                self._broken[name] = explain(error)
        raise UsageError(
            f"the plugin {self.kind} {name!r} ({target.value}) cannot be loaded:"
            f" {self._broken[name]}"
        )


def _accept_metric(name: str, offered: Any) -> type[Metric]:
    if not (isinstance(offered, type) and issubclass(offered, Metric)):
        raise TypeError(f"expected a class of metrics (dialeval.Metric), not {_kind_of(offered)}")
    return offered


def _accept_reader(name: str, offered: Any) -> Reader:
    from dialeval.readers.reader import Reader, guarded

    if not isinstance(offered, Reader):
        raise TypeError(
            f"expected a Reader (dialeval.readers.reader.Reader), not {_kind_of(offered)}"
        )
    return guarded(offered)


def _kind_of(offered: Any) -> str:
    if isinstance(offered, type):
        return f"the class {offered.__name__}"
    return f"a value of type {type(offered).__name__}"


METRICS: Registry[type[Metric]] = Registry(
    "metric",
    "dialeval metrics",
    {
        "length": "dialeval.metrics.length:Length",
        "flags": "dialeval.metrics.flags:Flags",
        "distinct": "dialeval.metrics.distinct:Distinct",
        "bleu": "dialeval.metrics.bleu:Bleu",
        "rouge": "dialeval.metrics.rouge:Rouge",
        "meteor": "dialeval.metrics.meteor:Meteor",
        "chrf": "dialeval.metrics.chrf:Chrf",
        "coherence": "dialeval.metrics.likelihood:Coherence",
        "fluency": "dialeval.metrics.likelihood:Fluency",
        "diversity": "dialeval.metrics.diversity:Diversity",
        "marginal-diversity": "dialeval.metrics.diversity:MarginalDiversity",
        "consistency": "dialeval.metrics.consistency:Consistency",
        "holistic": "dialeval.metrics.holistic:Holistic",
        "pmi": "dialeval.metrics.likelihood:Pmi",
        "full": "dialeval.metrics.full:Full",
        "fed": "dialeval.metrics.full:Fed",
        "follow-up-contrast": "dialeval.metrics.full:FollowUpContrast",
        "embedding-average": "dialeval.metrics.word_vectors:EmbeddingAverage",
        "vector-extrema": "dialeval.metrics.word_vectors:VectorExtrema",
        "greedy-matching": "dialeval.metrics.word_vectors:GreedyMatching",
        "bertscore": "dialeval.metrics.bertscore:BertScore",
        "ruber": "dialeval.metrics.ruber:Ruber",
        "bert-ruber": "dialeval.metrics.ruber:BertRuber",
        "pone": "dialeval.metrics.ruber:Pone",
        "mme-fluency": "dialeval.metrics.mme:MmeFluency",
        "mme-relevance": "dialeval.metrics.mme:MmeRelevance",
        "mme-topic": "dialeval.metrics.mme:MmeTopic",
        "mme-engagement": "dialeval.metrics.mme:MmeEngagement",
        "mme-specificity": "dialeval.metrics.mme:MmeSpecificity",
        "grade": "dialeval.metrics.corpus_judges:Grade",
        "deb": "dialeval.metrics.corpus_judges:Deb",
        "maude": "dialeval.metrics.corpus_judges:Maude",
        "dyna-eval": "dialeval.metrics.corpus_judges:DynaEval",
        "flow-score": "dialeval.metrics.corpus_judges:FlowScore",
        "predictive-engage": "dialeval.metrics.corpus_judges:PredictiveEngage",
        "usr": "dialeval.metrics.usr:Usr",
        "dialogrpt": "dialeval.metrics.dialog_rpt:DialogRpt",
        "usl-h": "dialeval.metrics.usl_h:UslH",
        "deep-am-fm": "dialeval.metrics.deep_am_fm:DeepAmFm",
        "mme-crs": "dialeval.metrics.composed:MmeCrs",
        "mme-avg": "dialeval.metrics.composed:MmeAvg",
        "judge": "dialeval.metrics.judge:JudgeMetric",
        "llm-judge": "dialeval.metrics.llm_judge:LlmJudge",
    },
    _accept_metric,
)

DEFAULT_METRICS = ("judge",)
"""The metrics of `score` if none is named."""

READERS: Registry[Reader] = Registry(
    "reader",
    "dialeval data formats",
    {
        "chat": "dialeval.readers.chat:READER",
        "sharegpt": "dialeval.readers.chat:SHAREGPT",
        "wildchat": "dialeval.readers.chat:WILDCHAT",
        "messages": "dialeval.readers.chat:MESSAGES",
        "chatgpt": "dialeval.readers.chat:CHATGPT",
        "claude": "dialeval.readers.chat:CLAUDE",
        "openai-batch": "dialeval.readers.chat:BATCH",
        "langfuse": "dialeval.readers.traces:LANGFUSE_READER",
        "langsmith": "dialeval.readers.traces:LANGSMITH_READER",
        "opentelemetry": "dialeval.readers.traces:OPENTELEMETRY_READER",
        "transcript": "dialeval.readers.transcript:READER",
        "jsonl": "dialeval.readers.plain_jsonl:READER",
        "csv": "dialeval.readers.plain_csv:CSV",
        "tsv": "dialeval.readers.plain_csv:TSV",
        "parquet": "dialeval.readers.arrow:READER",
        "arrow": "dialeval.readers.arrow:ARROW",
        "datasets": "dialeval.readers.arrow:DATASETS",
        "fed": "dialeval.readers.rated:FED_READER",
        "usr": "dialeval.readers.rated:USR_READER",
        "dstc10": "dialeval.readers.rated:DSTC10_READER",
        "grade": "dialeval.readers.rated:GRADE_READER",
        "holistic": "dialeval.readers.holistic:HOLISTIC_READER",
        "holistic-diversity": "dialeval.readers.holistic:DIVERSITY_READER",
        "holistic-toy": "dialeval.readers.holistic:TOY_READER",
        "holistic-consistency": "dialeval.readers.holistic:CONSISTENCY_READER",
        "engage": "dialeval.readers.rated:ENGAGE_READER",
        "convai2": "dialeval.readers.convai:CONVAI2_READER",
        "convai2017": "dialeval.readers.convai:CONVAI2017_READER",
        "topical-chat": "dialeval.readers.corpora:TOPICAL_CHAT_READER",
        "dailydialog": "dialeval.readers.corpora:DAILYDIALOG_READER",
        "empathetic": "dialeval.readers.corpora:EMPATHETIC_READER",
        "personachat": "dialeval.readers.corpora:PERSONACHAT_READER",
        "cornell": "dialeval.readers.corpora:CORNELL_READER",
        "tencent": "dialeval.readers.corpora:TENCENT_READER",
        "xiaohuangji": "dialeval.readers.corpora:XIAOHUANGJI_READER",
        "probe": "dialeval.probe.directory:READER",
        "holistic-run": "dialeval.probe.directory:HOLISTIC_READER",
        "ratings": "dialeval.rating.reader:READER",
        "label-studio": "dialeval.readers.annotations:LABEL_STUDIO",
        "argilla": "dialeval.readers.annotations:ARGILLA",
    },
    _accept_reader,
)


_IN_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[A-Za-z_]\w*)(?P<options>:.*)?)?", re.DOTALL)


def find_metric(name: str) -> type[Metric]:
    """Returns the class of a metric by its name, or by its file: `./my_metric.py:EchoRate`."""
    found = _IN_FILE.fullmatch(name)
    if not found:
        return METRICS.get(name)
    return metric_from_file(Path(found["path"]), found["name"] or "")


def metric_from_file(path: Path, name: str) -> type[Metric]:
    """Returns a class of metrics in a Python file. The file is run; its digest is part of the
    signature."""
    try:
        code = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    digest = hashlib.sha256(code).hexdigest()
    module_name = f"dialeval_file_{digest[:16]}"
    if module_name not in sys.modules:
        module = types.ModuleType(module_name)
        module.__file__ = str(path)
        sys.modules[module_name] = module  # dataclasses look up their module
        try:
            exec(compile(code, str(path), "exec"), module.__dict__)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit in the file would end the command
            del sys.modules[module_name]
            raise UsageError(f"{path} cannot be loaded: {explain(error)}") from error
    offered = vars(sys.modules[module_name])
    own = [key for key, value in offered.items() if _is_metric_of(value, module_name)]
    there = ", ".join(own) or "none"
    if not name:
        example = own[0] if own else "NAME"
        raise UsageError(f"{path}: name the class: {path}:{example}. Metrics in it: {there}")
    try:
        cls = _accept_metric(name, offered[name])
    except KeyError:
        raise UsageError(
            f"{path}: no class {name!r}.{did_you_mean(name, own)} Metrics in it: {there}"
        ) from None
    except TypeError as error:
        raise UsageError(f"{path}: {name}: {error}") from None
    if not cls.name or cls.name in METRICS.names():
        why = f"the name {cls.name!r} is taken" if cls.name else "it has no name"
        raise UsageError(f'{path}: {name}: {why}. Give it one of its own: name = "echo-rate"')
    cls.file_digest = digest
    return cls


def _is_metric_of(value: object, module: str) -> bool:
    return isinstance(value, type) and issubclass(value, Metric) and value.__module__ == module


def make_metric(spec: str | Metric | type[Metric], preset: str = "", **options: Any) -> Metric:
    """`make_metric("bleu:n=2")`, `make_metric("bleu", n=2)`: a metric with checked options.

    `spec` may be a class, or a class in a file: `./my_metric.py:EchoRate:n=2`. `preset` chooses the
    models that the options do not name; one that it lacks is an error.
    """
    if isinstance(spec, Metric):
        return spec
    if isinstance(spec, type):
        cls, typed, name = _accept_metric(spec.__name__, spec), {}, spec.__name__
    elif in_file := _IN_FILE.fullmatch(spec.strip()):
        name = f"{in_file['path']}:{in_file['name'] or ''}".rstrip(":")
        cls, typed = find_metric(name), split_spec(f"x{in_file['options'] or ''}")[1]
    else:
        name, typed = split_spec(spec)
        cls = METRICS.get(name)
    given = {**typed, **options}
    if preset:
        from dialeval.model_store.presets import preset_options

        given |= preset_options(preset, cls.name, cls.uses(), given, cls.without_model)
    metric = build(cls, given, f"metric {name!r}")
    if cls.without_model and not all(metric.models().values()):
        raise UsageError(cls.without_model)
    return metric


def make_metrics(specs: Iterable[str | Metric | type[Metric]], preset: str = "") -> list[Metric]:
    """Makes several metrics at once; the same metric with the same options twice is refused."""
    if preset:
        from dialeval.model_store.presets import preset_models

        preset_models(preset)  # an unknown preset is an error even where no metric needs it
    metrics = [make_metric(spec, preset) for spec in specs]
    labels = [metric.label for metric in metrics]
    if not metrics:
        raise UsageError("no metric given. See: dialeval metrics")
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise UsageError(f"metric given twice: {', '.join(twice)}")
    return metrics
