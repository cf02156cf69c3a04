"""Judges that read text: what they read, what they answer, and that a batch changes nothing."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra 'models'")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import tiny_encoders
from transformers import AutoModel, AutoTokenizer

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import save_tensors
from dialeval.models.source import Models
from dialeval.models.text_judge import (
    Reading,
    TextJudgeConfig,
    TextJudgeNetwork,
    TwinJudgeConfig,
    TwinJudgeNetwork,
    TwinReading,
    load,
    load_encoder,
)
from dialeval.networks.low_rank import add_low_rank, low_rank_tensors
from dialeval.question import Embed, Judge

PAIRS = [
    (("the cat sat on a mat .", "do you like it ?"), "i do like it so very"),
    (("dog",), "cat"),
    ((), "the dog sat"),
    (("a mat and a dog and a cat and a mat and a dog sat on it so very very very",), "no ."),
    (("do you ?",), "the cats do n ' t like sitting on it and do n ' t like it so very ! ! ! ! !"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_encoders.save_bert(tmp_path_factory.mktemp("judge") / "bert")


def head_and_adapters(network):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.requires_grad and not name.endswith("log_scale"):
                parameter.copy_(torch.randn(parameter.shape) * 0.4)
    own = {f"encoder.{n}": t for n, t in low_rank_tensors(network.encoder).items()}
    own = own or {f"encoder.{n}": t for n, t in network.encoder.state_dict().items()}
    head = {n: t for n, t in network.state_dict().items() if not n.startswith("encoder.")}
    return head | own


def save_judge(directory, base, reads="pair", pooling="max", rank=2, hidden=(), **more):
    config = TextJudgeConfig(
        "mme-x", str(base), reads, pooling, hidden=hidden, rank=rank, alpha=4.0, **more
    )
    torch.manual_seed(3)
    network = TextJudgeNetwork(load_encoder(str(base))[0], config)
    if rank:
        add_low_rank(network.encoder, rank, 4.0, 0)
    directory.mkdir(parents=True)
    save_tensors(directory, config.to_record(), head_and_adapters(network))
    return directory


def save_twin(directory, base, rank=2, **more):
    config = TwinJudgeConfig("mme-x", str(base), rank=rank, alpha=4.0, **more)
    torch.manual_seed(4)
    network = TwinJudgeNetwork(load_encoder(str(base))[0])
    if rank:
        add_low_rank(network.encoder, rank, 4.0, 0)
    directory.mkdir(parents=True)
    save_tensors(directory, config.to_record(), head_and_adapters(network))
    return directory


def ask(directory, pairs):
    questions = [Judge(str(directory), turns, response) for turns, response in pairs]
    found = Answerer(Models("cpu"), None).answer(questions)
    return [float(found[question][0]) for question in questions]


MAKERS = {
    "pair": lambda d, base: save_judge(d, base),
    "response": lambda d, base: save_judge(d, base, reads="response", pooling="mean", hidden=(8,)),
    "whole": lambda d, base: save_judge(d, base, rank=0),
    "twin": lambda d, base: save_twin(d, base),
    "twin whole": lambda d, base: save_twin(d, base, rank=0),
}


@pytest.fixture(scope="module", params=MAKERS)
def judge(request, base, tmp_path_factory):
    return MAKERS[request.param](tmp_path_factory.mktemp("made") / "judge", base)


def test_an_answer_does_not_depend_on_its_neighbours(judge):
    together = ask(judge, PAIRS)
    assert all(0 < score < 1 for score in together)
    assert len(set(together)) > 1
    for pair, score in zip(PAIRS, together, strict=True):
        assert ask(judge, [pair])[0] == pytest.approx(score, abs=1e-5)
    assert ask(judge, PAIRS[::-1])[::-1] == pytest.approx(together, abs=1e-5)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=st.lists(st.text(max_size=40), max_size=3), response=st.text(max_size=200))
def test_any_text_has_an_answer(judge, turns, response):
    assert 0 <= ask(judge, [(tuple(turns), response)])[0] <= 1


def test_judges_on_one_encoder_map_its_weights_once(base, tmp_path):
    source = Models("cpu")
    makers = [name for name in MAKERS if "whole" not in name]
    made = [MAKERS[name](tmp_path / name, base) for name in makers]
    networks = [source.load(str(directory))._network.encoder for directory in made]
    networks.append(source.load(str(base))._model)
    first, *others = ([p.data_ptr() for p in network.parameters()] for network in networks)
    assert all(other == first for other in others)
    apart = Models("cpu").load(str(base))._model
    assert apart.embeddings.word_embeddings.weight.data_ptr() != first[0]


def test_sharing_weights_changes_no_answer(base, tmp_path):
    """Least of all where a judge brings an encoder of its own: the shared one stays as it was."""
    made = [make(tmp_path / name, base) for name, make in MAKERS.items()]
    alone = [ask(directory, PAIRS) for directory in made]
    source = Models("cpu")
    for order in (made, made[::-1]):
        answerer = Answerer(source, None)
        together = {d: [Judge(str(d), *pair) for pair in PAIRS] for d in order}
        found = answerer.answer([q for questions in together.values() for q in questions])
        for directory, expected in zip(made, alone, strict=True):
            assert [float(found[q][0]) for q in together[directory]] == expected


def test_a_judge_is_asked_nothing_else(judge):
    with pytest.raises(UsageError, match="judge of text and cannot answer Embed"):
        Answerer(Models("cpu"), None).answer([Embed(str(judge), "hello")])


def test_a_response_is_read_alone_where_that_is_its_way(tmp_path, base):
    directory = save_judge(tmp_path / "j", base, reads="response")
    assert ask(directory, [((), "the cat")]) == ask(directory, [(("a dog ?",), "the cat")])
    pair = save_judge(tmp_path / "p", base)
    assert ask(pair, [((), "the cat")]) != ask(pair, [(("a dog ?",), "the cat")])


def test_the_score_is_that_of_transformers_and_arithmetic(tmp_path, base):
    """Max pooling over the states of a plain BERT whose layers were changed by hand."""
    directory = save_judge(tmp_path / "j", base, reads="response")
    from safetensors.torch import load_file

    tensors = {n: t.float() for n, t in load_file(directory / "scorer.safetensors").items()}
    model, tokenizer = AutoModel.from_pretrained(base).eval(), AutoTokenizer.from_pretrained(base)
    with torch.no_grad():
        for name, module in model.named_modules():
            if f"encoder.{name}.up" in tensors:
                up, down = (tensors[f"encoder.{name}.{part}"] for part in ("up", "down"))
                module.weight += 4.0 / 2 * up @ down
        states = model(**tokenizer("do you like it ?", return_tensors="pt")).last_hidden_state[0]
        logit = states.amax(dim=0) @ tensors["head.1.weight"][0] + tensors["head.1.bias"][0]
    assert ask(directory, [((), "do you like it ?")])[0] == pytest.approx(
        float(torch.sigmoid(logit)), abs=1e-5
    )


def test_turns_lose_their_beginning_and_responses_their_end(base):
    tokenizer = AutoTokenizer.from_pretrained(base)
    config = TextJudgeConfig("m", str(base), "pair", "max", context_tokens=2, response_tokens=3)
    reading = Reading(tokenizer, config, 24)
    ((ids, segments),), cut = reading([(("the cat", "sat on"), "a mat and dog")])
    words = tokenizer.convert_ids_to_tokens(ids)
    assert words == ["[CLS]", "sat", "on", "[SEP]", "a", "mat", "and", "[SEP]"]
    assert segments == [0, 0, 0, 0, 1, 1, 1, 1]
    assert cut == [(2, 3)]
    twins = TwinReading(
        tokenizer, TwinJudgeConfig("m", "b", context_tokens=2, response_tokens=3), 24
    )
    ((turns, turns_cut),) = twins.contexts([("the cat", "sat on")])
    assert tokenizer.convert_ids_to_tokens(turns)[1:-1] == ["sat", "on"]
    ((said, said_cut),) = twins.responses(["a mat and dog"])
    assert tokenizer.convert_ids_to_tokens(said)[1:-1] == ["a", "mat", "and"]
    assert turns_cut
    assert said_cut
    ((_, whole_cut),) = twins.responses(["a mat and"])
    assert not whole_cut
    assert twins.limits(turns_cut, whole_cut) == (2, 0)


def test_twins_with_the_same_words_on_both_sides_agree_most(tmp_path, base):
    directory = save_twin(tmp_path / "t", base)
    from safetensors.torch import load_file

    tensors = load_file(directory / "scorer.safetensors")
    scale, bias = float(tensors["log_scale"].float().exp()), float(tensors["bias"].float())
    same = ask(directory, [(("the cat sat",), "the cat sat")])[0]
    assert same == pytest.approx(float(torch.sigmoid(torch.tensor(scale + bias))), abs=1e-5)
    assert ask(directory, [(("the cat sat",), "do you ?")])[0] < same


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("reads", "mind", "reads: 'mind' is none of"),
        ("pooling", "sum", "pooling: 'sum' is none of"),
        ("rank", "8", "rank: expected int"),
        ("encoder", "", "encoder: names no model"),
        ("hidden", [4], "not the weights of"),
        ("format", 9, "reads format 1"),
    ],
)
def test_a_damaged_directory_is_named(tmp_path, base, field, value, said):
    directory = save_judge(tmp_path / "j", base)
    path = directory / "scorer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(UsageError, match=said):
        load(directory, device="cpu")
