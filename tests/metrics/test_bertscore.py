"""BERTScore against the formulas of the paper in plain loops, and against the authors' package."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import sample
from models.tiny_encoders import LAYERS, save_bert
from transformers import AutoModel, AutoTokenizer

from dialeval.check import metric_checks
from dialeval.errors import UsageError
from dialeval.metrics.bertscore import BertScore
from dialeval.models.encoder import load
from dialeval.question import DocumentFrequency
from dialeval.registry import make_metric

PAIRS = [
    ("the cat sat on a mat.", "a cat sat on the mat."),
    ("do you like dogs?", "i do not like it"),
    ("so", "very very very so"),
    ("the dog and the cat", "it"),
    ("I don't!", "I don't!"),
]
CORPUS = ["the cat sat", "the dog sat on it", "do you like it", "so"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def idf(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS) + "\n")
    return str(tmp_path / "corpus.txt")


@pytest.fixture(scope="module")
def score(directory):
    """Scores a response with the tiny encoder."""
    model = load(directory)

    def scored(metric, response, *references):
        judged = sample(response, *references)
        questions = metric.ask(judged)
        answers = dict(model.answer(questions))
        return metric.score(judged, [answers[n] for n in range(len(questions))])

    return scored


def triple(score):
    return [score.parts[name] for name in ("precision", "recall", "f1")]


def by_the_paper(directory, candidate, reference, layer, corpus=None):
    """Equations of section 3, with loops: P, R and F1."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModel.from_pretrained(directory).eval()

    def read(text):
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = model(**inputs, output_hidden_states=True).hidden_states[layer][0].double()
        return inputs.input_ids[0].tolist(), [state / state.norm() for state in states]

    def weight(token):
        if corpus is None:
            return 0.0 if token in (tokenizer.cls_token_id, tokenizer.sep_token_id) else 1.0
        holding = sum(token in tokenizer(text).input_ids for text in corpus)
        return -math.log((holding + 1) / (len(corpus) + 1))

    (x, reference_states), (y, candidate_states) = read(reference), read(candidate)
    recall = sum(
        weight(token) * max(float(state @ other) for other in candidate_states)
        for token, state in zip(x, reference_states, strict=True)
    ) / sum(weight(token) for token in x)
    precision = sum(
        weight(token) * max(float(state @ other) for other in reference_states)
        for token, state in zip(y, candidate_states, strict=True)
    ) / sum(weight(token) for token in y)
    return [precision, recall, 2 * precision * recall / (precision + recall)]


@pytest.mark.parametrize("layer", [0, 2, LAYERS])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_score_is_that_of_the_formulas(score, directory, pair, layer):
    found = score(BertScore(layer=layer), *pair)
    assert triple(found) == pytest.approx(by_the_paper(directory, *pair, layer), abs=1e-5)
    assert found.value == found.parts["f1"]


@pytest.mark.parametrize("pair", PAIRS)
def test_rare_tokens_weigh_more_with_idf(score, directory, pair, idf):
    found = score(BertScore(layer=2, idf=idf), *pair)
    assert triple(found) == pytest.approx(by_the_paper(directory, *pair, 2, CORPUS), abs=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"layer": 1}, {"idf": True}, {"baseline": True}])
def test_the_score_is_that_of_the_package(score, directory, tmp_path, options):
    bert_score = pytest.importorskip("bert_score")
    ours, theirs = dict(options), {"num_layers": options.get("layer", LAYERS), "batch_size": 1}
    references = [reference for _, reference in PAIRS]
    if "idf" in options:
        (tmp_path / "references.txt").write_text("\n".join(references) + "\n")
        ours["idf"] = str(tmp_path / "references.txt")
        theirs |= {"idf": True, "nthreads": 0}
    if "baseline" in options:
        path = str(write_baselines(tmp_path))
        ours |= {"layer": LAYERS, "baseline": path}
        theirs |= {"rescale_with_baseline": True, "lang": "en", "baseline_path": path}
    expected = bert_score.score(
        [response for response, _ in PAIRS], references, model_type=str(directory), **theirs
    )
    for pair, wanted in zip(PAIRS, torch.stack(expected, dim=1).tolist(), strict=True):
        assert triple(score(BertScore(**ours), *pair)) == pytest.approx(wanted, abs=1e-4)


def write_baselines(directory):
    rows = "".join(f"{n},0.{n}1,0.{n}2,0.{n}3\n" for n in range(LAYERS + 1))
    (directory / "baselines.tsv").write_text("LAYER,P,R,F\n" + rows)
    return directory / "baselines.tsv"


def test_a_copy_scores_1(score):
    for response, _ in PAIRS:
        assert triple(score(BertScore(), response, response)) == pytest.approx([1, 1, 1], abs=1e-6)


def test_exchanging_the_texts_exchanges_precision_and_recall(score):
    for response, reference in PAIRS:
        precision, recall, f1 = triple(score(BertScore(), response, reference))
        exchanged = triple(score(BertScore(), reference, response))
        assert exchanged == pytest.approx([recall, precision, f1], abs=1e-6)


def test_of_several_references_the_best_counts_for_each_part_apart(score):
    response, references = "the cat sat", ["so", "the", "the cat sat on a mat and you like it"]
    alone = [triple(score(BertScore(), response, reference)) for reference in references]
    together = triple(score(BertScore(), response, *references))
    assert together == pytest.approx([max(part) for part in zip(*alone, strict=True)])


def test_a_baseline_is_sent_to_0_and_1_stays_1(score, tmp_path):
    plain = np.array(triple(score(BertScore(), *PAIRS[1])))
    number = triple(score(BertScore(baseline="0.5"), *PAIRS[1]))
    assert number == pytest.approx((2 * plain - 1).tolist())
    file = BertScore(layer=3, baseline=str(write_baselines(tmp_path)))
    low = np.array([0.31, 0.32, 0.33])
    assert triple(score(file, *PAIRS[1])) == pytest.approx(((plain - low) / (1 - low)).tolist())
    assert file.range == pytest.approx((-0.33 / 0.67, 1))


@pytest.mark.parametrize(("response", "reference"), [("", "the cat"), ("the cat", " "), ("", "")])
def test_an_empty_text_scores_0_before_the_baseline(score, response, reference):
    assert triple(score(BertScore(), response, reference)) == [0, 0, 0]
    assert score(BertScore(baseline="0.5"), response, reference).value == -1
    note = "" if response else "empty response"
    assert score(BertScore(), response, reference).note == note


def test_a_text_that_was_cut_is_noted(score):
    assert score(BertScore(), "the cat", "so " * 40).note == "truncated"


def test_tokens_that_are_in_every_line_weigh_nothing(score, tmp_path):
    (tmp_path / "one.txt").write_text("the cat")
    metric = BertScore(idf=str(tmp_path / "one.txt"))
    assert score(metric, "the", "cat").note == "idf weighs no token"
    assert score(metric, "the dog", "cat sat").value is not None


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=5),
    st.lists(st.floats(-1, 1), min_size=1, max_size=5),
)
def test_f1_lies_between_0_and_1_whatever_the_cosines(first, second):
    answer = np.array([(len(first), 0), *((7, cosine) for cosine in first + second)])
    found = BertScore().score(sample("a", "b"), [answer])
    assert 0 <= found.value <= 1
    assert found.parts["precision"] == pytest.approx(np.mean(first))
    assert found.parts["recall"] == pytest.approx(np.mean(second))


def test_the_layer_is_the_tuned_one_where_it_is_known():
    chosen = {model: BertScore(model=model).chosen_layer() for model in ("roberta-large", "x")}
    assert chosen == {"roberta-large": 17, "x": -1}
    assert BertScore(model="FacebookAI/roberta-large").chosen_layer() == 17
    assert BertScore(model="roberta-large", layer=24).chosen_layer() == 24


def test_the_signature_names_the_layer_and_the_content_of_files(idf, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "corpus.txt"
    copy.write_text("\n".join(CORPUS) + "\n")
    signature = str(BertScore(idf=idf, baseline="0.25").signature())
    assert re.search(r"\|layer:last\|idf:corpus\.txt@[0-9a-f]{8}\|", signature)
    assert "|baseline:0.25/0.25/0.25|" in signature
    assert str(BertScore(idf=str(copy), baseline="0.25").signature()) == signature
    copy.with_name("other.txt").write_text("so")
    assert str(BertScore(idf=str(copy.with_name("other.txt"))).signature()) != signature


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("idf=nowhere.txt", "idf=nowhere.txt: .*No such file"),
        ("baseline=nowhere.tsv,layer=1", "neither a number nor a file"),
        ("baseline=nowhere.tsv", "which line of the file"),
        ("baseline=1", "not a cosine below 1"),
        ("baseline=nan", "not a cosine below 1"),
        ("baseline={file},layer=9", "9 is missing"),
        ("idf={empty}", "the file holds no text"),
    ],
)
def test_bad_options_are_refused_before_anything_is_scored(spec, complaint, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    spec = spec.format(file=write_baselines(tmp_path), empty=tmp_path / "empty.txt")
    with pytest.raises(UsageError, match=complaint):
        make_metric(f"bertscore:{spec}")


def made_up(question):
    draw = np.random.default_rng(list(question.key("")))
    if isinstance(question, DocumentFrequency):
        return np.linspace(0, len(question.texts), 50)
    texts = (question.candidate, question.reference)
    tokens, others = (min(40, len(text.split())) for text in texts)
    rows = [(draw.integers(50), draw.uniform(-0.2, 1)) for _ in range(tokens + others)]
    return np.array([(tokens, 0), *rows])


@pytest.mark.parametrize("options", ["", "baseline=0.3", "idf"])
def test_the_checks_for_all_metrics(options, idf):
    metric = make_metric(f"bertscore:{f'idf={idf}' if options == 'idf' else options}")
    for check in metric_checks(metric, answer=made_up):
        check()
