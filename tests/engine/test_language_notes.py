"""Text that a metric or its models are not made for is scored, and counted under the table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from made_up import Asking, LengthModels, sample

from dialeval.engine.chunk import UNKNOWN, language_of_sample
from dialeval.engine.job import Job
from dialeval.metric import Metric
from dialeval.metrics.meteor import Meteor
from dialeval.model_store.catalogue import CATALOGUE
from dialeval.runs.run import open_run
from dialeval.sample import Turn
from dialeval.scores import Score

CHINESE = replace(sample(1, "我很好，谢谢你。"), context=(Turn("你好吗？", "user"),))
GERMAN = sample(2, "Das ist nicht so einfach, wie du denkst.")
ENGLISH = sample(3, "That is not as easy as you think.")
EMOJI = sample(4, "😀😀😀 😀")


class EnglishModels(LengthModels):
    """Knows English, and no piece that is not ASCII."""

    known = frozenset({"en"})

    def languages(self, name):
        return self.known

    def unknown_pieces(self, name, text):
        return sum(not character.isascii() for character in text) / len(text)


class UnstatedModels(EnglishModels):
    known = frozenset()


@dataclass(frozen=True)
class Noting(Metric):
    name = "noting"
    citation = "made up"
    languages = frozenset({"zh"})

    def score(self, sample, answers):
        return Score(1.0, note="turns truncated") if sample.context else Score.missing("no turns")


def run(directory, metrics, samples, models=None):
    Job(directory, metrics, models=models).run(samples)
    return open_run(directory)


def notes(run, label):
    return {m["label"]: m["notes"] for m in run.manifest["metrics"]}[label]


def test_text_in_another_language_is_scored_and_counted(tmp_path):
    found = run(tmp_path / "run", [Asking()], [CHINESE, GERMAN, ENGLISH, EMOJI], EnglishModels())
    assert notes(found, "asking") == {
        "in Chinese (made for English)": 1,
        "in German (made for English)": 1,
        UNKNOWN: 1,
    }
    line = (
        "asking: 4 of 4 scored (1 in Chinese (made for English); 1 in German (made for English);"
        f" 1 {UNKNOWN})"
    )
    assert line in found.table().notes


def test_where_nobody_says_what_a_model_reads_its_pieces_do(tmp_path):
    found = run(tmp_path / "run", [Asking()], [CHINESE, GERMAN, ENGLISH], UnstatedModels())
    assert notes(found, "asking") == {UNKNOWN: 1}


def test_a_source_that_says_nothing_gets_no_notes(tmp_path):
    found = run(tmp_path / "run", [Asking()], [CHINESE, GERMAN], LengthModels())
    assert notes(found, "asking") == {}


def test_a_metric_may_be_made_for_a_language_itself(tmp_path):
    found = run(tmp_path / "run", [Meteor(), Noting()], [CHINESE, GERMAN])
    assert notes(found, "meteor") == {
        "in Chinese (made for English)": 1,
        "in German (made for English)": 1,
    }
    assert notes(found, "noting") == {
        "turns truncated": 1,
        "turns truncated, in German (made for Chinese)": 1,
    }


def test_a_score_without_a_value_keeps_its_reason(tmp_path):
    found = run(tmp_path / "run", [Noting()], [replace(GERMAN, context=())])
    assert notes(found, "noting") == {"no turns": 1}


def test_a_short_response_is_in_the_language_of_its_dialogue():
    short = replace(GERMAN, response="Ja!", context=(Turn("Möchtest du noch etwas Kaffee?", "u"),))
    assert language_of_sample(short) == "de"
    assert language_of_sample(ENGLISH) == ""
    assert language_of_sample(replace(CHINESE, response=None)) == "zh"


def test_every_model_of_the_catalogue_says_what_it_reads():
    known = {name: entry.languages for name, entry in CATALOGUE.items()}
    assert known.pop("bert-base-chinese") == ("zh",)
    qwen = [languages for name, languages in known.items() if name.startswith("qwen")]
    assert qwen == [("en", "zh")] * 2
    assert set(known.values()) == {("en",), ("en", "zh")}


def test_models_on_this_machine_say_it_too(embedded_models):
    from dialeval.models.source import Models

    source = Models("cpu")
    assert source.languages("bert-ruber-minilm-l6") == {"en"}
    assert source.unknown_pieces("bert-ruber-minilm-l6", "hello there") == 0
    assert source.unknown_pieces("bert-ruber-minilm-l6", "😀 🤷 😀") == 1
    assert source.unknown_pieces("smollm2-135m", "😀 🤷 😀") == 0
