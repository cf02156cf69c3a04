import json
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from made_up import Asking, Floored, LengthModel, LengthModels, sample, samples

import dialeval
from dialeval.engine.answers import AnswerCache
from dialeval.engine.job import Job
from dialeval.errors import JobError, UsageError
from dialeval.metric import Metric, Part
from dialeval.metrics.bleu import Bleu
from dialeval.options import option
from dialeval.registry import make_metric
from dialeval.runs.directory import RunDirectory
from dialeval.runs.table import MetricSummary
from dialeval.sample import Sample
from dialeval.scores import Calibration, Score


def run(directory, metrics, data, **options):
    job = Job(directory, metrics, **options)
    job.run(data)
    return job, dialeval.open_run(directory)


def test_a_model_that_answers_with_no_number_is_named_and_not_the_metric(tmp_path):
    class Broken(LengthModel):
        def answer(self, questions):
            for position, answer in super().answer(questions):
                yield position, answer * np.nan

    models = LengthModels()
    models.model = Broken()
    with pytest.raises(JobError, match="the model 'counter' answers with what is no number"):
        Job(tmp_path / "run", [Asking()], models=models).run(samples(3))


def test_a_model_that_fails_when_it_is_asked_is_named(tmp_path):
    class Broken(LengthModel):
        def answer(self, questions):
            raise RuntimeError("shape '[1, 18, 12, -1]' is invalid\nand more")

    models = LengthModels()
    models.model = Broken()
    with pytest.raises(JobError, match=r"'counter' failed .* shape '\[1, 18, 12, -1\]' is invalid"):
        Job(tmp_path / "run", [Asking()], models=models).run(samples(3))


def test_scores_follow_the_order_of_the_samples(tmp_path):
    data = samples(10)
    _, done = run(tmp_path / "run", [Asking(factor=2.0)], data, models=LengthModels(), chunk=3)
    expected = [2.0 * len(s.response) for s in data]
    assert done.scores("asking:factor=2.0") == expected
    assert [s.id for s in done.samples()] == [s.id for s in data]


def test_samples_come_back_unchanged(tmp_path):
    data = samples(5)
    _, done = run(tmp_path / "run", [Floored()], data)
    assert list(done.samples()) == data


def without_files(manifest):
    """Row groups follow the chunks, and so do the digests of files."""
    return {name: value for name, value in manifest.items() if name not in ("files", "sha256")}


@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
def test_the_chunk_size_changes_no_number(tmp_path, chunk):
    data = samples(23)
    metrics = [Asking(), Floored(), *map(make_metric, ("bleu", "chrf", "distinct"))]
    _, one = run(tmp_path / "one", metrics, data, models=LengthModels(), chunk=23)
    _, other = run(tmp_path / "other", metrics, data, models=LengthModels(), chunk=chunk)
    assert without_files(one.manifest) == without_files(other.manifest)
    assert one.scores("floored") == other.scores("floored")


def test_a_system_gets_its_corpus_bleu_though_the_run_was_interrupted(tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu", reason="the oracle here")
    answers = ["the cat sat on the mat", "yes", "no cat sat there at all", "the mat is red"]
    wanted = ["a cat sat on the mat", "yes it is", "a cat sat there", "the mat was red"]
    data = [
        Sample(id=str(i), response=one, references=(other,), system="bot")
        for i, (one, other) in enumerate(zip(answers, wanted, strict=True))
    ]

    def broken():
        yield from data[:2]
        raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError):
        run(tmp_path / "run", [make_metric("bleu")], broken(), chunk=1)
    job, done = run(tmp_path / "run", [make_metric("bleu")], data, chunk=1)
    assert job.resumed == 2
    [system] = done.manifest["systems"]
    expected = sacrebleu.corpus_bleu(answers, [wanted]).score
    assert system["scores"]["bleu"]["pooled"]["value"] == expected


def test_a_sample_is_counted_once_for_its_score_and_the_pool(tmp_path, monkeypatch):
    counted = []
    count = Bleu.count
    monkeypatch.setattr(Bleu, "count", lambda *of: counted.append(of) or count(*of))
    data = [Sample(id=str(i), response="yes", references=("yes it is",)) for i in range(5)]
    run(tmp_path / "run", [Bleu()], data, chunk=2)
    assert len(counted) == 5


def test_a_metric_that_cannot_judge_a_sample_says_why(tmp_path):
    data = [sample(1), sample(2, response=None)]
    _, done = run(tmp_path / "run", [Floored()], data)
    assert done.scores("floored")[1] is None
    assert done.manifest["metrics"][0]["notes"] == {"no response": 1}
    assert "floored: 1 of 2 scored (1 no response)" in str(done.table())


@pytest.mark.parametrize(("turns", "dialogues"), [(3, 0), (0, 2), (3, 2)])
def test_answers_and_whole_dialogues_are_counted_apart(tmp_path, turns, dialogues):
    answers = samples(turns + dialogues)
    data = answers[:turns] + [replace(one, response=None) for one in answers[turns:]]
    _, done = run(tmp_path / "run", [make_metric("length")], data)
    found = done.manifest["systems"]
    assert sum(system["turns"] for system in found) == turns
    assert sum(system["dialogues"] for system in found) == dialogues


def test_a_calibration_is_fitted_on_the_run_and_kept(tmp_path, golden):
    """The 5th percentile of HolisticEval, on its golden values, through a whole run."""
    raw = golden["holistic_norm"]["raw"]
    _, done = run(tmp_path / "run", [RawValues()], [numbered(i) for i in range(len(raw))])
    assert done.scores("raw-values") == pytest.approx(golden["holistic_norm"]["normalised"])
    assert done.calibrations["raw-values"].low == pytest.approx(-48.7)


def test_a_calibration_can_be_carried_over_to_the_next_run(tmp_path, golden):
    """A score must not change with the rest of the file."""
    raw = golden["holistic_norm"]["raw"]
    _, first = run(tmp_path / "1", [RawValues()], [numbered(i) for i in range(len(raw))])
    _, second = run(tmp_path / "2", [RawValues()], [numbered(2)], calibrations=first.calibrations)
    assert second.scores("raw-values") == [first.scores("raw-values")[2]]


def test_a_finished_run_on_a_given_scale_is_not_one_on_its_own(tmp_path):
    _, first = run(tmp_path / "1", [RawValues()], [numbered(i) for i in range(6)])
    run(tmp_path / "2", [RawValues()], [numbered(2)], calibrations=first.calibrations)
    with pytest.raises(UsageError, match="other calibration"):
        run(tmp_path / "2", [RawValues()], [numbered(2)])
    with pytest.raises(UsageError, match="other calibration"):
        run(
            tmp_path / "1",
            [RawValues()],
            [numbered(i) for i in range(6)],
            calibrations=first.calibrations,
        )


def test_a_calibration_for_no_metric_of_the_run_is_refused(tmp_path):
    _, first = run(tmp_path / "1", [Floored()], samples(5))
    with pytest.raises(UsageError, match="no metric of this run"):
        Job(tmp_path / "2", [Asking()], models=LengthModels(), calibrations=first.calibrations)


def test_a_run_without_scales_does_not_give_one(tmp_path):
    with pytest.raises(UsageError, match="has scales of: none of its metrics"):
        Job(tmp_path / "run", [RawValues()], calibrations={})


def test_a_scale_of_another_metric_does_not_stand_in(tmp_path):
    _, first = run(tmp_path / "1", [Floored()], samples(5))
    with pytest.raises(
        UsageError, match="no calibration of kind 'floor' was given for 'raw-values'"
    ):
        Job(tmp_path / "2", [RawValues()], calibrations=first.calibrations)


def test_the_signature_names_the_scale(tmp_path):
    """Two files scaled apart must not carry one signature; a carried-over scale must."""
    _, first = run(tmp_path / "1", [Floored()], samples(5))
    _, other = run(tmp_path / "2", [Floored()], samples(7))
    _, same = run(tmp_path / "3", [Floored()], samples(7), calibrations=first.calibrations)
    signatures = [str(done.signatures["floored"]) for done in (first, other, same)]
    assert "|calibration:floor@" in signatures[0]
    assert signatures[0] != signatures[1]
    assert signatures[0] == signatures[2]
    assert "scaled on this file" in str(other.table())
    assert "scaled on this file" not in str(same.table())


@dataclass(frozen=True)
class Noisy(Metric):
    """Words of the response, with the last digits that a processor makes of them."""

    name = "noisy"
    citation = "made up"
    kind: Literal["floor", "quartile", "minmax"] = option("floor", "of the scale")
    processor: int = option(0, "which one", moves_score=False)

    def score(self, sample, answers):
        draw = np.random.default_rng([self.processor, *sample.digest()])
        words = -len(sample.response.split()) * (1 + 1e-6 * draw.standard_normal())
        return Score(words, {"words": words})

    def parts(self):
        return (Part("words", "their number"),)

    def scales(self):
        return {"words": self.kind}

    def combine(self, scaled):
        return scaled["words"]


@pytest.mark.parametrize("kind", ["floor", "quartile", "minmax"])
def test_the_last_digits_of_raw_values_do_not_move_the_signature_of_their_scale(tmp_path, kind):
    """Ten processors that agree to six digits: ten scales, one signature."""
    runs = [
        run(tmp_path / str(n), [Noisy(kind, n)], samples(40)[:: -1 if n % 2 else 1])[1]
        for n in range(10)
    ]
    signatures = {str(one.signatures[one.metrics[0]]) for one in runs}
    ends = {(scale.low, scale.high) for one in runs for scale in one.calibrations.values()}
    assert len(ends) == 10
    assert len(signatures) == 1
    values = np.array([sorted(one.scores(one.metrics[0])) for one in runs])
    assert np.ptp(values, axis=0).max() < 1e-4
    more = run(tmp_path / "more", [Noisy(kind)], samples(41))[1]
    other = run(tmp_path / "other", [Noisy("minmax" if kind == "floor" else "floor")], samples(40))
    for different in (more, other[1]):
        assert str(different.signatures[different.metrics[0]]) not in signatures


def test_names_and_ratings_do_not_move_the_signature_of_a_scale(tmp_path):
    data = samples(20)
    renamed = [replace(one, id=f"x{one.id}", system="c", ratings={}) for one in data]
    other = [replace(data[0], response="word " * 9), *data[1:]]
    found = [
        str(run(tmp_path / str(n), [Floored()], own)[1].signatures["floored"])
        for n, own in enumerate((data, renamed, other))
    ]
    assert found[0] == found[1] != found[2]


def test_a_scale_keeps_its_identity_from_run_to_run(tmp_path):
    _, first = run(tmp_path / "1", [Floored()], samples(5))
    _, second = run(tmp_path / "2", [Floored()], samples(7), calibrations=first.calibrations)
    _, third = run(tmp_path / "3", [Floored()], samples(9), calibrations=second.calibrations)
    assert third.calibrations == first.calibrations
    assert third.signatures == first.signatures
    [scale] = first.calibrations.values()
    by_hand = {"floored": Calibration(scale.kind, scale.low, scale.high, scale.n)}
    _, written = run(tmp_path / "4", [Floored()], samples(9), calibrations=by_hand)
    _, nearly = run(
        tmp_path / "5",
        [Floored()],
        samples(9),
        calibrations={"floored": Calibration(scale.kind, scale.low - 1, scale.high, scale.n)},
    )
    assert written.signatures != nearly.signatures


def test_an_empty_input_gives_an_empty_run(tmp_path):
    _, done = run(tmp_path / "run", [Floored()], [])
    assert len(done) == 0
    assert done.scores("floored") == []
    assert done.systems == []


def test_means_are_exact_whatever_the_order(tmp_path):
    """1e16 + 1 - 1e16 loses the one if added in this order; the mean must not."""
    values = [1e16, 1.0, -1e16]
    _, done = run(tmp_path / "run", [Literally()], [with_response(str(v)) for v in values])
    assert done.manifest["systems"][0]["scores"]["literally"]["mean"] == pytest.approx(1 / 3)


def test_a_finished_run_is_reused(tmp_path):
    data = samples(5)
    run(tmp_path / "run", [Floored()], data)
    before = (tmp_path / "run" / "scores.parquet").stat().st_mtime_ns
    job, _ = run(tmp_path / "run", [Floored()], data)
    assert job.resumed == 5
    assert (tmp_path / "run" / "scores.parquet").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("metrics", "count", "difference"), [([Floored()], 6, "data"), ([Asking()], 5, "metrics")]
)
def test_a_finished_run_is_not_overwritten_by_another(tmp_path, metrics, count, difference):
    run(tmp_path / "run", [Floored()], samples(5))
    with pytest.raises(UsageError, match=f"other {difference}"):
        run(tmp_path / "run", metrics, samples(count), models=LengthModels())
    run(tmp_path / "run", metrics, samples(count), models=LengthModels(), overwrite=True)


def test_a_second_process_on_the_same_directory_gets_a_clear_message(tmp_path):
    with (
        RunDirectory(tmp_path / "run").exclusive(),
        pytest.raises(JobError, match="another process is writing"),
    ):
        run(tmp_path / "run", [Floored()], samples(5))


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        run(tmp_path, [Floored()], samples(5), overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


def test_an_unfinished_run_with_other_metrics_is_not_continued(tmp_path):
    def broken():
        yield from samples(4)
        raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError):
        run(tmp_path / "run", [Floored()], broken(), chunk=2)
    with pytest.raises(UsageError, match="unfinished run with other metrics"):
        run(tmp_path / "run", [Asking()], samples(5), chunk=2, models=LengthModels())
    with pytest.raises(UsageError, match="unfinished run of other data"):
        run(tmp_path / "run", [Floored()], samples(9)[1:], chunk=2)
    with pytest.raises(UsageError, match="unfinished run"):
        dialeval.open_run(tmp_path / "run")
    job, _ = run(tmp_path / "run", [Floored()], samples(5), chunk=2)
    assert job.resumed == 4


def test_an_answer_is_cached_before_the_run_is_finished(tmp_path):
    def broken():
        yield from samples(4)
        raise RuntimeError("the power goes out")

    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        with pytest.raises(RuntimeError):
            run(tmp_path / "1", [Asking()], broken(), models=LengthModels(), cache=cache, chunk=4)
        source = LengthModels()
        run(tmp_path / "2", [Asking()], samples(4), models=source, cache=cache)
    assert source.loaded == 0


def test_the_manifest_holds_what_is_needed_to_repeat_the_run(tmp_path):
    run(tmp_path / "run", [Asking(factor=3.0)], samples(3), models=LengthModels())
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (metric,) = manifest["metrics"]
    version = dialeval.__version__
    assert metric["signature"] == f"asking|v1|factor:3.0|lm:counter@f00df00d|dialeval:{version}"
    assert metric["options"] == {"factor": 3.0}
    assert len(manifest["data"]["sha256"]) == 64


def numbered(i: int) -> Sample:
    return Sample(id=f"s{i}", response=str(i))


def with_response(text: str) -> Sample:
    return Sample(id=text, response=text)


class RawValues(Floored):
    """The golden raw value whose number the response names."""

    name = "raw-values"

    def score(self, sample, answers):
        raw = [-12.0, -30.5, -3.25, -55.0, -18.75, -7.5, -22.0, -9.0, -41.0, -15.5]
        return dialeval.Score(raw[int(sample.response)])


class Literally(Floored):
    """The number that the response is."""

    name = "literally"
    calibration = None

    def score(self, sample, answers):
        return dialeval.Score(float(sample.response))


def test_only_the_metrics_that_differ_are_named_where_a_run_is_unfinished(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.start({"metrics": ["bleu|v1|n:4", "length|v1|unit:words"]})
    with pytest.raises(UsageError) as caught:
        directory.start({"metrics": ["length|v1|unit:words", "bleu|v1|n:2"]})
    assert str(caught.value).splitlines()[1:3] == ["  there: bleu|v1|n:4", "  here:  bleu|v1|n:2"]
    assert "length" not in str(caught.value)
    with pytest.raises(UsageError, match="the same ones in another order"):
        directory.start({"metrics": ["length|v1|unit:words", "bleu|v1|n:4"]})


def test_notes_that_differ_only_in_their_brackets_are_counted_as_one():
    summary = MetricSummary()
    for note in ("repeats (turn 1)", "repeats (turn 3)", "repeats", "too (very) long"):
        summary.add(Score(1.0, note=note))
    assert summary.notes == {"repeats": 3, "too (very) long": 1}
