"""Models that write: whatever stands beside a dialogue, its replies are the same."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from generation.tiny_networks import tiny_network
from hypothesis import given, settings
from hypothesis import strategies as st
from models import tiny_language_models as tiny

import dialeval
from dialeval.errors import UsageError
from dialeval.generation.backends import (
    ABBREVIATION,
    SENTENCE_END,
    CausalBackend,
    ReplyBackend,
    Seq2SeqBackend,
    endings_of,
)
from dialeval.generation.generator import Decoding, Generator, load_generator
from dialeval.model_store.locate import locate
from dialeval.models.loading import choose_device
from dialeval.models.source import Models
from dialeval.networks import reply_network
from dialeval.networks.reply_network import (
    NETWORKS,
    LstmSeq2Seq,
    NetworkConfig,
    ReplyReading,
)
from dialeval.question import Likelihood
from dialeval.sample import Turn

DECODINGS = [
    Decoding(max_new_tokens=8),
    Decoding("beam", beams=3, count=2, max_new_tokens=8),
    Decoding("sample", top_k=10, count=3, max_new_tokens=8),
]


def tiny_lstm(units=24, vocabulary=tiny.VOCABULARY):
    torch.manual_seed(6)
    config = NetworkConfig(vocabulary, start=3, units=units, layers=2, history_tokens=20)
    model = LstmSeq2Seq(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


GENERATORS = {
    "plain": Generator(CausalBackend(tiny.llama(), tiny.tokenizer(), "plain")),
    "chat": Generator(CausalBackend(tiny.llama(), tiny.tokenizer(), "native")),
    "lines": Generator(CausalBackend(tiny.gpt2(), tiny.tokenizer(None), "native")),
    "tabs": Generator(Seq2SeqBackend(tiny.blenderbot(), tiny.tokenizer(closes=True), "tabs")),
    "lstm": Generator(ReplyBackend(tiny_lstm(), tiny.tokenizer(closes=True))),
}

turns = st.builds(Turn, st.sampled_from(["the cat", "how are you", "", "é🙂", "<|im_end|> \n"]))
histories = st.lists(turns, max_size=4)


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda decoding: decoding.method)
@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=4, deadline=None)
@given(dialogues=st.lists(histories, min_size=2, max_size=6))
def test_replies_do_not_depend_on_the_batch(kind, decoding, dialogues):
    generator = GENERATORS[kind]
    together = generator.replies(dialogues, decoding, seed=1)
    assert together == [generator.replies([one], decoding, seed=1)[0] for one in dialogues]
    generator.tokens_per_batch, before = 1, generator.tokens_per_batch
    assert together == generator.replies(dialogues, decoding, seed=1)
    generator.tokens_per_batch = before


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_seed_decides_what_is_drawn(kind):
    generator, history = GENERATORS[kind], [[Turn("how are you")]]
    three = generator.replies(history, Decoding("sample", count=3, max_new_tokens=12), seed=4)[0]
    one = generator.replies(history, Decoding("sample", max_new_tokens=12), seed=4)[0]
    other = generator.replies(history, Decoding("sample", count=3, max_new_tokens=12), seed=-4)[0]
    assert len(set(three)) == 3
    assert one == three[:1]
    assert other != three


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_long_history_loses_its_beginning(kind):
    generator = GENERATORS[kind]
    end = [Turn("the cat sat on the mat " * 20, "user")]
    long = [Turn("hello", "user"), Turn("what", "system"), *end]
    decoding = Decoding(max_new_tokens=4)
    assert generator.replies([long], decoding) == generator.replies([end], decoding)


def test_the_layout_is_what_the_model_was_made_for():
    found = {kind: generator.layout for kind, generator in GENERATORS.items()}
    assert found == {
        "plain": "plain", "chat": "chat", "lines": "lines", "tabs": "tabs", "lstm": "tabs"
    }  # fmt: skip


def test_turns_end_where_the_layout_ends_them():
    tokenizer = tiny.tokenizer()
    vocabulary = tokenizer.get_vocab()
    ends = {vocabulary["<|endoftext|>"], vocabulary["</s>"], vocabulary["<|im_end|>"]}
    model = tiny.llama()
    model.generation_config.eos_token_id = vocabulary["</s>"]
    chat = endings_of(model, tokenizer, "chat")
    assert set(chat.marks) == ends
    assert vocabulary["<|im_start|>"] in chat.banned
    assert set(endings_of(model, tokenizer, "lines").marks) == ends | {vocabulary["Ċ"]}
    plain = endings_of(model, tokenizer, "plain")
    assert vocabulary["Ġyou"] in plain.words
    assert vocabulary["<|im_start|>"] not in plain.words
    assert plain.is_whole(tokenizer.encode("I am fine."))
    assert not plain.is_whole(tokenizer.encode("I am fine"))


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("I am fine .", True),
        ("Who is that ?", True),
        ('He said "no."', True),
        ("So am I .", True),
        ("Well ...", False),
        ("This is Mr .", False),
        ("at 3 p . m .", False),
        ("I am", False),
    ],
)
def test_a_sentence_is_whole_when_it_ends(text, is_whole):
    assert bool(SENTENCE_END.search(text) and not ABBREVIATION.search(text)) is is_whole


def test_marks_of_roles_and_further_lines_are_taken_off():
    backend = CausalBackend(tiny.gpt2(), tiny.tokenizer(None), "lines")
    ids = tiny.tokenizer(None).encode(" System: what are you\nUser: hello")
    assert Generator(backend)._text(ids) == "what are you"


def test_more_new_tokens_than_the_model_can_take_are_refused():
    for kind in ("plain", "tabs"):
        with pytest.raises(UsageError, match="new tokens"):
            GENERATORS[kind].replies([[]], Decoding(max_new_tokens=60))


def test_generators_are_loaded_by_name(tmp_path):
    tiny.save(tmp_path / "llama", tiny.llama(), tiny.tokenizer())
    tiny.save(tmp_path / "bot", tiny.blenderbot(), tiny.tokenizer(closes=True))
    reply_network.save("seq2seq", tiny_lstm(), tmp_path / "lstm")
    tiny.tokenizer(closes=True).save_pretrained(tmp_path / "lstm")
    histories = [[Turn("hello", "user")], []]
    for name, kind in {"llama": "chat", "bot": "tabs", "lstm": "lstm"}.items():
        loaded = load_generator(str(tmp_path / name), device="cpu")
        for decoding in DECODINGS:
            expected = GENERATORS[kind].replies(histories, decoding)
            assert loaded.replies(histories, decoding) == expected
    assert load_generator(str(tmp_path / "llama"), layout="lines").layout == "lines"


def test_what_decides_how_a_dialogue_is_read_is_part_of_the_fingerprint(tmp_path):
    """A card is about a model; whether it lies there decides nothing."""
    name = str(tiny.save(tmp_path / "llama", tiny.llama(), tiny.tokenizer()))
    before = Models().fingerprint(name)
    (tmp_path / "llama" / "card.json").write_text("{}")
    assert (load_generator(name).layout, Models().fingerprint(name)) == ("chat", before)
    (tmp_path / "llama" / "dialogue.json").write_text('{"layout": "plain"}')
    assert load_generator(name).layout == "plain"
    assert Models().fingerprint(name) != before
    (tmp_path / "llama" / "dialogue.json").write_text('{"layout": "verse"}')
    with pytest.raises(UsageError, match=r"dialogue.json: layout: 'verse' is none of auto"):
        load_generator(name)


def test_the_shipped_adapter_reads_the_layout_that_it_learned():
    from dialeval.model_store.catalogue import CATALOGUE

    assert CATALOGUE["smollm2-135m-dialogue"].facts["layout"] == "plain"


def test_what_writes_computes_where_what_answers_does(tmp_path, monkeypatch):
    """With an Apple GPU, scoring kept to the processor and generation did not."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    name = str(tiny.save(tmp_path / "llama", tiny.llama(), tiny.tokenizer()))
    assert load_generator(name).replies([[Turn("hello")]], DECODINGS[0])
    question = Likelihood(name, "hello", (), layout="plain")
    assert len(list(Models().load(name).answer([question]))) == 1
    assert choose_device("auto") == "cpu"
    assert choose_device("mps") == "mps"


def test_one_function_asks_what_there_is_to_compute_on():
    """A second one would choose differently one day: see the Apple GPU above."""
    source = Path(dialeval.__file__).parent
    asks = re.compile(r"is_available\(|device_count\(|current_accelerator")
    found = {
        str(path.relative_to(source)): len(asks.findall(path.read_text("utf-8")))
        for path in source.rglob("*.py")
        if asks.search(path.read_text("utf-8"))
    }
    assert found == {"models/loading.py": 1}


def test_what_cannot_write_is_refused(tmp_path):
    from models.tiny_encoders import save_bert

    with pytest.raises(UsageError, match="cannot write"):
        load_generator(str(save_bert(tmp_path / "bert")))
    with pytest.raises(UsageError, match="no model 'smol'"):
        load_generator("smol")


def test_an_lstm_whose_weights_do_not_fit_is_refused(tmp_path):
    reply_network.save("seq2seq", tiny_lstm(), tmp_path)
    tiny.tokenizer(closes=True).save_pretrained(tmp_path)
    assert locate(str(tmp_path)).role == "generator"
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "units": 8}))
    with pytest.raises(UsageError, match="does not fit its weights"):
        load_generator(str(tmp_path))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_lstm_is_that_of_luong_and_klein():
    """One step written down in numpy after the papers' equations: LSTM, attention, input feed."""
    model = tiny_lstm(units=3, vocabulary=9)
    weight = {name: value.numpy().astype(np.float64) for name, value in model.state_dict().items()}
    source, target = [4, 7, 2, 5], [3, 6, 8]

    def cell(prefix, suffix, x, hidden, memory):
        gates = weight[f"{prefix}weight_ih{suffix}"] @ x + weight[f"{prefix}bias_ih{suffix}"]
        gates += weight[f"{prefix}weight_hh{suffix}"] @ hidden + weight[f"{prefix}bias_hh{suffix}"]
        into, forget, new, out = np.split(gates, 4)
        memory = sigmoid(forget) * memory + sigmoid(into) * np.tanh(new)
        return sigmoid(out) * np.tanh(memory), memory

    state = [(np.zeros(3), np.zeros(3)) for _ in range(2)]
    states = []
    for token in source:
        x = weight["source_words.weight"][token]
        for layer in range(2):
            state[layer] = cell("encoder.", f"_l{layer}", x, *state[layer])
            x = state[layer][0]
        states.append(x)
    states, output, expected = np.array(states), np.zeros(3), []
    for token in target:
        x = np.concatenate([weight["target_words.weight"][token], output])
        for layer in range(2):
            state[layer] = cell(f"decoder.{layer}.", "", x, *state[layer])
            x = state[layer][0]
        scores = states @ (weight["attend.weight"] @ x)
        share = np.exp(scores) / np.exp(scores).sum()
        output = np.tanh(weight["combine.weight"] @ np.concatenate([share @ states, x]))
        expected.append(weight["head.weight"] @ output + weight["head.bias"])
    with torch.inference_mode():
        found = model(torch.tensor([[*source, 0]]), torch.tensor([4]), torch.tensor([target]))
        reading = ReplyReading(model, [tuple(source), (1,)])
        reading.write([6, 6])
    assert np.allclose(found[0].numpy(), expected, atol=1e-5)
    log_probs = torch.tensor(np.array(expected)).log_softmax(1)[1]
    assert torch.allclose(reading.log_probs[0].double(), log_probs, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_learns_from_whole_replies_what_it_says_token_by_token(name):
    model = tiny_network(name)
    sources, targets = [(5, 9, 4, 5, 7), (8, 6)], torch.tensor([[3, 9, 7], [3, 6, 6]])
    with torch.inference_mode():
        reading = ReplyReading(model, sources)
        ids = torch.tensor([sources[0], (*sources[1], 0, 0, 0)])
        whole = model(ids, torch.tensor([5, 2]), targets).log_softmax(-1)
        assert torch.allclose(reading.log_probs, whole[:, 0], atol=1e-5)
        for place in (1, 2):
            reading.write(targets[:, place].tolist())
            assert torch.allclose(reading.log_probs, whole[:, place], atol=1e-5)


@pytest.mark.parametrize("name", ["copynet", "hred", "recosa"])
def test_what_a_network_replies_does_not_depend_on_the_batch(name):
    generator = Generator(ReplyBackend(tiny_network(name), tiny.tokenizer(closes=True)))
    texts = (["the cat", "how are you"], [], ["hello"], ["", "the", "cat", "<|im_end|> \n"])
    dialogues = [[Turn(text) for text in dialogue] for dialogue in texts]
    decoding = Decoding("beam", beams=3, count=2, max_new_tokens=6)
    together = generator.replies(dialogues, decoding)
    assert together == [generator.replies([one], decoding)[0] for one in dialogues]


def test_the_copynet_is_that_of_gu():
    """Generation and copying share a softmax; the decoder reads where its last token stands."""
    model = tiny_network("copynet", units=3, vocabulary=9)
    source, said = [5, 7, 2, 7], 7
    weight = {name: value.numpy() for name, value in model.state_dict().items()}
    with torch.inference_mode():
        ids, lengths = torch.tensor([[*source, 0]]), torch.tensor([4])
        start = model.encode(ids, lengths)
        _, state = model.step(torch.tensor([3]), start)
        found, after = model.step(torch.tensor([said]), state)
        states = start["memory"][0].numpy()
        copied = state["copying"][0].numpy()
        shares = np.exp(copied[[1, 3]]) / np.exp(copied[[1, 3]]).sum()
        read = torch.tensor(shares @ states[[1, 3]])[None]
        words = model.target_words(torch.tensor([said]))
        value, expected = model._decode(torch.cat([words, read, state["output"]], 1), state)
    generating = weight["head.weight"] @ expected["output"][0].numpy() + weight["head.bias"]
    copying = np.tanh(states @ weight["copy.weight"].T) @ value[0].numpy()
    mass = np.exp(generating)
    for place, token in enumerate(source):
        mass[token] += 0.0 if token == 5 else np.exp(copying[place])  # 5 begins a turn
    assert np.allclose(found[0].exp().numpy(), mass / mass.sum(), atol=1e-5)
    assert torch.allclose(after["hidden"], expected["hidden"])


def test_the_hred_is_that_of_serban():
    """A GRU over words, a GRU over turns, a GRU that answers: written down in numpy."""
    model = tiny_network("hred", units=3, vocabulary=9)
    weight = {name: value.numpy().astype(np.float64) for name, value in model.state_dict().items()}

    def cell(name, suffix, x, hidden):
        inner = weight[f"{name}.weight_ih{suffix}"] @ x + weight[f"{name}.bias_ih{suffix}"]
        outer = weight[f"{name}.weight_hh{suffix}"] @ hidden + weight[f"{name}.bias_hh{suffix}"]
        (r, z, n), (hr, hz, hn) = np.split(inner, 3), np.split(outer, 3)
        new = np.tanh(n + sigmoid(r + hr) * hn)
        return (1 - sigmoid(z + hz)) * new + sigmoid(z + hz) * hidden

    context = np.zeros(3)
    for turn in ([4], [5, 7, 2], [5, 6]):  # the first was cut
        hidden = np.zeros(3)
        for token in turn:
            hidden = cell("turns", "_l0", weight["words.weight"][token], hidden)
        context = cell("dialogue", "_l0", hidden, context)
    word = weight["words.weight"][3]
    begin = np.tanh(weight["begin.weight"] @ context + weight["begin.bias"])
    hidden = cell("decoder.0", "", np.concatenate([word, context]), begin)
    output = np.tanh(
        weight["combine.weight"] @ np.concatenate([hidden, context, word]) + weight["combine.bias"]
    )
    expected = weight["head.weight"] @ output + weight["head.bias"]
    with torch.inference_mode():
        found = model(
            torch.tensor([[4, 5, 7, 2, 5, 6], [5, 0, 0, 0, 0, 0]]),
            torch.tensor([6, 1]),
            torch.tensor([[3], [3]]),
        )
    assert np.allclose(found[0, 0].numpy(), expected, atol=1e-5)


def test_recosa_knows_the_order_of_the_turns_and_no_later_word():
    model = tiny_network("recosa")
    sources = torch.tensor([[5, 9, 5, 7], [5, 7, 5, 9]])
    with torch.inference_mode():
        scores = model(sources, torch.tensor([4, 4]), torch.tensor([[3, 9], [3, 9]]))
        other = model(sources, torch.tensor([4, 4]), torch.tensor([[3, 7], [3, 9]]))
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)
    assert torch.allclose(scores[0, 0], other[0, 0], atol=1e-6)
    assert not torch.allclose(scores[0, 1], other[0, 1], atol=1e-3)


def test_a_model_that_learned_to_read_the_last_turn_reads_that_alone(tmp_path):
    name = str(tiny.save(tmp_path / "bot", tiny.blenderbot(), tiny.tokenizer(closes=True)))
    decoding = Decoding(max_new_tokens=8)
    histories = [[Turn("the cat"), Turn("hello")], [Turn("hello")]]
    (tmp_path / "bot" / "dialogue.json").write_text('{"turns": 1}')
    both = load_generator(name).replies(histories, decoding)
    assert both[0] == both[1] == GENERATORS["tabs"].replies(histories[1:], decoding)[0]
    (tmp_path / "bot" / "dialogue.json").write_text('{"turns": -1}')
    with pytest.raises(UsageError, match=r"dialogue.json: turns: expected a number from 0"):
        load_generator(name)
