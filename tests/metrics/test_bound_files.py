"""A metric reads the files that its options name when it is made, and never again."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
from made_up import WORDS, samples, term, two_terms

import dialeval
from dialeval.check import example_samples, made_up_answer
from dialeval.metrics.composition import Composition, save_composition
from dialeval.registry import make_metric


def texts(*lines):
    return lambda path: path.write_text("\n".join(lines))


def sets(**sides):
    return lambda path: path.write_text(json.dumps(sides))


def weights(weight):
    return lambda path: save_composition(two_terms(weight), path)


FILES = {
    "full:follow_ups={}/f.txt": (texts("Huh?", "You are rude."), texts("What?", "Nonsense.")),
    "follow-up-contrast:follow_ups={}/f.json": (
        sets(positive=["Nice!"], negative=["Huh?"]),
        sets(positive=["Great!"], negative=["Huh?"]),
    ),
    "bertscore:idf={}/f.txt": (texts("I teach maths", "a b"), texts("you will see it", "the sea")),
    "bertscore:layer=1,baseline={}/f.csv": (
        texts("LAYER,P,R,F", "1,0.5,0.5,0.5"),
        texts("LAYER,P,R,F", "1,0.7,0.7,0.7"),
    ),
    "mme-crs:weights={}/f.json": (weights(0.25), weights(0.75)),
    "mme-avg:weights={}/f.json": (
        weights(0.25),
        lambda path: save_composition(Composition((term("bleu"),), {"overall": (1.0,)}), path),
    ),
}


def scored(metric):
    short = [replace(one, response=(one.response or "")[:12]) for one in example_samples(metric)]
    found = [
        metric.score(sample, [made_up_answer(question) for question in metric.ask(sample)])
        for sample in short
    ]
    return found, str(metric.signature()), metric.parts()


@pytest.mark.parametrize("spec", FILES)
def test_a_file_that_changes_moves_neither_score_nor_signature_of_a_metric(spec, tmp_path):
    path = tmp_path / spec.rpartition("/")[2]
    first, second = FILES[spec]
    first(path)
    metric = make_metric(spec.format(tmp_path))
    before, sent = scored(metric), pickle.dumps(metric)
    second(path)
    assert scored(metric) == before
    assert scored(pickle.loads(sent)) == before
    anew = scored(make_metric(spec.format(tmp_path)))
    assert anew[0] != before[0]
    assert anew[1] != before[1]
    path.unlink()
    assert scored(pickle.loads(sent)) == before


def test_a_term_of_a_composition_keeps_the_file_that_it_names(tmp_path):
    follow_ups, crs = tmp_path / "mine.txt", tmp_path / "crs.json"
    follow_ups.write_text("Huh?")
    asking = term(f"full:follow_ups={follow_ups}", WORDS)
    save_composition(Composition((asking,), {"overall": (1.0,)}), crs)
    metric = make_metric(f"mme-crs:weights={crs}")
    follow_ups.write_text("What?")
    [sample, *_] = example_samples(metric)
    assert [question.text for question in metric.ask(sample)] == ["Huh?"]
    assert [question.text for question in pickle.loads(pickle.dumps(metric)).ask(sample)] == [
        "Huh?"
    ]
    # Made anew, it is another metric than the one that was weighed.
    with pytest.raises(dialeval.UsageError, match=r"follow_ups was mine@.* and is mine@"):
        make_metric(f"mme-crs:weights={crs}").signature({})


def test_an_edit_in_the_middle_of_a_run_moves_no_score(tmp_path):
    path = tmp_path / "crs.json"
    save_composition(two_terms(0.25), path)

    def interrupted():
        yield from samples(3000)  # more than a chunk
        save_composition(two_terms(0.75), path)
        yield from samples(3000)

    run = dialeval.score(interrupted(), [f"mme-crs:weights={path}"])
    [label] = run.metrics
    values = run.scores(label)
    assert values[:3000] == values[3000:]
    save_composition(two_terms(0.25), path)
    assert str(run.signatures[label]) == str(make_metric(label).signature())


def test_signatures_name_the_digest_of_what_is_bound(tmp_path):
    """The texts count, not the folder that they lie in, and not how they are written down."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    sets(negative=["Huh?"])(tmp_path / "a" / "f.json")
    texts("  Huh?", "")(tmp_path / "b" / "f.txt")
    first, second = (
        make_metric("full", follow_ups=str(tmp_path / path)) for path in ("a/f.json", "b/f.txt")
    )
    assert first.signature() == second.signature()
    assert "|follow_ups:f@" in str(first.signature())
