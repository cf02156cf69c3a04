"""`mme-crs` and `mme-avg`: weighted sums on scales, missing values, and the guard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up import WORDS, LengthModels, sample, samples, term

import dialeval
from dialeval.check import check_metric
from dialeval.compose.evidence import apply_composition, gather
from dialeval.compose.fitting import fit
from dialeval.errors import InputError, UsageError
from dialeval.metrics.composition import SHIPPED, Composition, save_composition
from dialeval.question import Judgement
from dialeval.registry import make_metric, make_metrics
from dialeval.sample import Rating, Sample, Turn
from dialeval.scores import Calibration


@pytest.fixture
def crs(tmp_path):
    """Words of the answer from 1 to 5, and BLEU-1; relevance is BLEU alone."""
    composition = Composition(
        (term("length", WORDS), term("bleu:n=1")),
        {"overall": (0.25, 0.75), "relevance": (0.0, 1.0)},
    )
    save_composition(composition, tmp_path / "crs.json")
    return tmp_path / "crs.json"


def scored(metric, *given):
    return [metric.score(one, [None for _ in metric.ask(one)]) for one in given]


def test_the_score_is_the_weighted_sum_of_scaled_values(crs):
    one = sample(1, "fine thank you")  # three words; BLEU-1 of the reference itself is 1
    [found] = scored(make_metric(f"mme-crs:weights={crs}"), one)
    assert found.parts == {"length": 0.5, "bleu:n=1": pytest.approx(1.0)}
    assert found.value == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)
    [average] = scored(make_metric(f"mme-avg:weights={crs}"), one)
    assert average.value == pytest.approx(0.75)


def test_a_metric_without_weight_is_not_asked(crs):
    metric = make_metric(f"mme-crs:weights={crs},quality=relevance")
    assert [part.name for part in metric.parts()] == ["bleu:n=1"]


def test_a_metric_that_is_better_the_lower_it_is_is_turned_round(tmp_path):
    lower = replace(term("length", WORDS), direction="lower")
    save_composition(Composition((lower,), {"overall": (1.0,)}), tmp_path / "c.json")
    metric = make_metric(f"mme-crs:weights={tmp_path / 'c.json'}")
    assert [found.value for found in scored(metric, sample(1, "a"), sample(2, "a b c d"))] == [
        1.0,
        0.25,
    ]


def test_a_missing_value_leaves_no_score_or_its_weight_to_the_others(crs):
    bare = replace(sample(1, "one two three"), references=())
    [none] = scored(make_metric(f"mme-crs:weights={crs}"), bare)
    assert none.value is None
    assert none.note == "bleu: no references"
    [rest] = scored(make_metric(f"mme-crs:weights={crs},missing=rescale"), bare)
    assert rest.value == pytest.approx(0.5)
    assert rest.note == "without bleu: no references"
    relevance = f"mme-crs:weights={crs},quality=relevance,missing=rescale"
    assert scored(make_metric(relevance), bare)[0].value is None


def test_what_sub_metrics_remark_is_said_after_their_names(tmp_path):
    names = ("mme-fluency", "mme-engagement", "mme-relevance")
    composition = Composition(tuple(map(term, names)), {"overall": (0.5, 0.25, 0.25)})
    save_composition(composition, tmp_path / "c.json")
    metric = make_metric(f"mme-crs:weights={tmp_path / 'c.json'}")
    cut, both, whole = (Judgement(0.5, *by).answer() for by in ((0, 50), (100, 50), ()))
    found = metric.score(sample(1), [cut, cut, both])
    assert found.note == (
        "mme-fluency, mme-engagement: response truncated to 50 tokens"
        " + mme-relevance: turns truncated to 100 tokens, response truncated to 50 tokens"
    )
    assert metric.score(sample(1), [whole, whole, whole]).note == ""


def test_parts_with_scales_of_their_own_are_combined(tmp_path):
    """ruber:blend=min is the smaller of two scaled halves."""
    halves = {
        "unreferenced": Calibration("minmax", 0.0, 0.5, 3),
        "referenced": Calibration("minmax", -1.0, 1.0, 3),
    }
    ruber = term("ruber:blend=min", halves)
    assert ruber.scaled(0.0, {"unreferenced": 0.3, "referenced": 0.0}) == pytest.approx(0.5)
    assert ruber.scaled(0.0, {"unreferenced": 0.1, "referenced": 0.9}) == pytest.approx(0.2)
    assert ruber.scaled(0.0, {"unreferenced": 0.9, "referenced": 3.0}) == 1.0  # clipped


@pytest.mark.parametrize("name", ["mme-crs", "mme-avg"])
def test_both_pass_the_checks_of_all_metrics(crs, name):
    check_metric(make_metric(f"{name}:weights={crs}"))


def test_a_run_holds_score_parts_and_the_digest_of_the_weights(crs, tmp_path):
    metric = f"mme-crs:weights={crs}"
    run = dialeval.score(samples(9), [metric], out=tmp_path / "run")
    again = dialeval.score(samples(9), ["length", "bleu:n=1"])
    lengths = np.clip((np.array(again.scores("length")) - 1) / 4, 0, 1)
    expected = 0.25 * lengths + 0.75 * np.array(again.scores("bleu:n=1"))
    assert run.scores(metric) == pytest.approx(list(expected))
    fields = dict(run.signatures[metric].fields)
    assert fields["weights"].startswith("crs@")
    from dialeval.metrics.composition import find_composition

    composition = find_composition(str(crs))
    assert apply_composition(composition, again, "overall") == pytest.approx(list(expected))


def test_a_preset_leaves_weights_alone_that_somebody_named(crs):
    [metric] = make_metrics([f"mme-crs:weights={crs}"], preset="paper")
    assert metric.label == f"mme-crs:weights={crs}"


@pytest.mark.parametrize("name", ["mme-crs", "mme-avg"])
def test_the_paper_preset_does_not_take_weights_that_were_fitted_with_embedded_models(name):
    with pytest.raises(UsageError, match="hold for the embedded models") as found:
        make_metric(name, preset="paper")
    assert "\n  dialeval train mme --as-published --backbone" in str(found.value)
    assert f"-m {name}:weights=DIR/crs.json" in str(found.value)
    assert make_metric(name, preset="default").label == name


@pytest.fixture
def asking(monkeypatch):
    """The metric `asking` of the made-up ones, by name."""
    from made_up import Asking

    from dialeval.registry import METRICS

    monkeypatch.setitem(METRICS._loaded, "asking", Asking)


def test_another_model_than_the_fitted_one_is_refused(asking, tmp_path):
    rated = [
        replace(one, ratings={"overall": Rating((float(n % 5),))})
        for n, one in enumerate(samples(20))
    ]
    first, second = LengthModels("aaaa" * 16), LengthModels("bbbb" * 16)
    cache = tmp_path / "answers.sqlite"
    run = dialeval.score(rated, ["asking", "length"], models=first, cache=cache)
    composition = fit(gather({"rated": run}))
    assert "counter@aaaaaaaa" in composition.terms[0].signature
    save_composition(composition, tmp_path / "crs.json")
    metric = f"mme-avg:weights={tmp_path / 'crs.json'}"
    same = dialeval.score(rated, [metric], models=first, cache=cache)
    assert None not in same.scores(metric)
    with pytest.raises(UsageError, match="lm was counter@aaaaaaaa and is counter@bbbbbbbb"):
        dialeval.score(rated, [metric], models=second, cache=cache)
    other = dialeval.score(rated, ["asking", "length"], models=second, cache=cache)
    with pytest.raises(UsageError, match="fitted with another 'asking'"):
        apply_composition(composition, other, "overall")


def test_another_definition_than_the_fitted_one_is_refused(tmp_path):
    old = replace(term("length", WORDS), signature="length|v7|unit:words")
    save_composition(Composition((old,), {"overall": (1.0,)}), tmp_path / "c.json")
    with pytest.raises(UsageError, match="'length': version was 7 and is 1"):
        dialeval.score(samples(3), [f"mme-crs:weights={tmp_path / 'c.json'}"])


def test_a_dialogue_is_judged_by_terms_that_judge_dialogues(tmp_path):
    whole = Sample("d", (Turn("hello", "user"), Turn("hi there", "system")))
    save_composition(Composition((term("bleu"),), {"overall": (1.0,)}), tmp_path / "c.json")
    [found] = scored(make_metric(f"mme-crs:weights={tmp_path / 'c.json'}"), whole)
    assert found.note == "bleu: no response"


def test_without_weights_the_metric_cannot_be_made(monkeypatch, tmp_path):
    from dialeval.metrics import composition

    monkeypatch.setattr(composition, "SHIPPED", tmp_path)
    with pytest.raises(UsageError, match="no weights 'mme-crs' come with this dialeval"):
        make_metric("mme-crs")


def test_a_composition_of_itself_is_refused(tmp_path):
    path = tmp_path / "c.json"
    save_composition(Composition((term("length", WORDS),), {"overall": (1.0,)}), path)
    path.write_text(path.read_text().replace('"length"', f'"mme-crs:weights={path}"'))
    with pytest.raises(InputError, match=r"terms\[0\].metric: .* is a composition itself"):
        make_metric(f"mme-crs:weights={path}")


def test_the_shipped_weights_are_of_the_seven_sub_metrics():
    if not (SHIPPED / "mme-crs.json").exists():
        pytest.skip("the weights are not fitted yet: scripts/fit_mme_crs.py")
    from dialeval.metrics.composition import find_composition

    assert find_composition("mme-crs").specs == [
        "mme-fluency",
        "mme-relevance",
        "mme-topic",
        "mme-engagement",
        "mme-specificity",
        "mme-specificity:kind=nce",
        "mme-specificity:kind=ppl",
    ]


def test_weights_that_were_fitted_again_make_another_version_of_the_metrics():
    """Write down the new digest with the next version, and both in the CHANGELOG."""
    for name in ("mme-crs", "mme-avg"):
        metric = make_metric(name)
        assert (metric.version, metric.composition.digest()[:8]) == (2, "93b8fc6f")
