"""`train seq2seq` and `train generator`: tiny networks learn what is answered."""

import json
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'train'")


from training.killed import Deadly, KilledError  # noqa: E402

from dialeval.errors import UsageError  # noqa: E402
from dialeval.generation.generator import load_generator  # noqa: E402
from dialeval.generation.search import Decoding  # noqa: E402
from dialeval.models.layout import EncoderInput  # noqa: E402
from dialeval.models.source import Models  # noqa: E402
from dialeval.question import Likelihood, TokenLogProbs  # noqa: E402
from dialeval.sample import Turn  # noqa: E402
from dialeval.training.examples.corpora import load_corpus  # noqa: E402
from dialeval.training.learners.seq2seq import (  # noqa: E402  # noqa: E402  # noqa: E402
    LSTM_PAPER,
    TRANSFORMER_PAPER,
    Preset,
    RecurrentArchitecture,
    ReplyPair,
    Seq2SeqLearner,
    Seq2SeqOptions,
    TransformerArchitecture,
    build_tokenizer,
    changed,
    encode_pairs,
    make_batches,
)
from dialeval.training.recipe import Settings  # noqa: E402
from dialeval.training.recipes.seq2seq import Seq2Seq  # noqa: E402
from dialeval.training.run import train  # noqa: E402

OPTIONS = Seq2SeqOptions(vocabulary=300, history_tokens=24, reply_tokens=20, batch=8)
LSTM = Preset(
    RecurrentArchitecture(units=32, dropout=0.1, spread=0.3),
    OPTIONS,
    Settings(epochs=6, learning_rate=0.01, clip=5.0),
)
LSTM_BY_SGD = replace(
    LSTM,
    settings=replace(
        LSTM.settings, learning_rate=1.0, optimizer="sgd", schedule="halving", halve_after=4
    ),
)
TRANSFORMER = Preset(
    TransformerArchitecture(layers=1, units=32, feed_forward=64, heads=2),
    replace(OPTIONS, batch=100, per="tokens", smoothing=0.1),
    Settings(
        epochs=6,
        learning_rate=0.5 * 32**-0.5,
        schedule="noam",
        warmup_steps=40,
        beta2=0.998,
        clip=0,
    ),
)
COPYNET = replace(LSTM, architecture=replace(LSTM.architecture, network="copynet"))
HRED = replace(LSTM, architecture=replace(LSTM.architecture, network="hred", layers=1))
RECOSA = replace(
    LSTM,
    architecture=RecurrentArchitecture("recosa", units=32, layers=1, dropout=0.0, heads=2),
    settings=replace(LSTM.settings, learning_rate=0.003),
)
PRESETS = {
    "lstm": LSTM,
    "lstm-sgd": LSTM_BY_SGD,
    "transformer": TRANSFORMER,
    "copynet": COPYNET,
    "hred": HRED,
    "recosa": RECOSA,
}


@dataclass(frozen=True, kw_only=True)
class Tiny(Seq2Seq):
    """A recipe whose preset is that of a test."""

    tiny: Preset = field(repr=False)

    def presets(self):
        return {"small": self.tiny}


def learn(corpus, out, preset, progress=None):
    return train(Tiny(tiny=preset), corpus, out, progress=progress, checkpoint_seconds=0)


ANSWERS = {"hello": "how are you ?", "goodbye": "see you soon ."}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """In DailyDialog's form: a greeting has its answer, and so has a farewell."""
    root = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 40), ("validation", 4), ("test", 4)):
        folder = root / split
        folder.mkdir()
        said = list(ANSWERS.items())
        lines = [f"{said[i % 2][0]} __eou__ {said[i % 2][1]} __eou__ {i} !" for i in range(count)]
        (folder / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n")
    return root


def weights(directory):
    from safetensors.torch import load_file

    return load_file(directory / "model.safetensors")


@pytest.mark.parametrize("name", ["lstm", "transformer", "copynet", "hred", "recosa"])
def test_what_was_learned_is_what_is_said(tmp_path, corpus, name):
    settings = replace(PRESETS[name].settings, epochs=15)
    longer = replace(PRESETS[name], settings=settings)
    card = train(Tiny(tiny=longer), corpus, tmp_path / "mine")
    assert list(card.scores) == ["test perplexity per token (12 replies)"]
    generator = load_generator(str(tmp_path / "mine"))
    histories = [[Turn(greeting, "user")] for greeting in ANSWERS]
    for decoding in (Decoding(max_new_tokens=12), Decoding("beam", max_new_tokens=12)):
        assert [replies[0] for replies in generator.replies(histories, decoding)] == list(
            ANSWERS.values()
        )
    assert "train" in (tmp_path / "mine" / "card.md").read_text()
    assert not (tmp_path / "mine" / "checkpoint.safetensors").exists()
    assert not [path for path in (tmp_path / "mine").iterdir() if path.suffix in (".pt", ".bin")]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, step) for name in ("lstm", "lstm-sgd", "transformer") for step in (3, 9)),
        *((name, 3) for name in ("copynet", "hred", "recosa")),
    ],
)
def test_a_killed_training_ends_with_the_same_weights(tmp_path, corpus, name, step):
    short = replace(PRESETS[name], settings=replace(PRESETS[name].settings, epochs=2))
    learn(corpus, tmp_path / "whole", short)
    with pytest.raises(KilledError):
        learn(corpus, tmp_path / "killed", short, Deadly(step))
    learn(corpus, tmp_path / "killed", short)
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_training_of_another_preset_is_not_continued(tmp_path, corpus):
    with pytest.raises(KilledError):
        learn(corpus, tmp_path, LSTM, Deadly(2))
    with pytest.raises(UsageError, match="another training"):
        learn(corpus, tmp_path, changed(LSTM, units=8))


def test_the_generator_answers_questions_as_it_was_measured(tmp_path, corpus):
    """The test perplexity of the card, from the likelihoods that a metric would be given."""
    preset = replace(TRANSFORMER, settings=replace(TRANSFORMER.settings, epochs=2))
    card = learn(corpus, tmp_path / "mine", preset)
    questions = [
        Likelihood("", text=turn, turns=tuple(map(Turn, dialogue[:i])), layout="tabs", end=True)
        for dialogue in load_corpus(corpus).test
        for i, turn in enumerate(dialogue)
    ]
    answers = Models(device="cpu").load(str(tmp_path / "mine")).answer(questions)
    found = [TokenLogProbs.read(answer).log_probs for _, answer in answers]
    mean = sum(map(sum, found)) / sum(map(len, found))
    assert math.exp(-mean) == pytest.approx(next(iter(card.scores.values())), rel=1e-4)


def test_training_ends_after_so_many_steps(tmp_path, corpus):
    preset = replace(LSTM, settings=replace(LSTM.settings, steps=20))
    learn(corpus, tmp_path / "mine", preset)
    curve = json.loads((tmp_path / "mine" / "card.json").read_text())["curve"]
    assert [entry["step"] for entry in curve] == [0, 15, 20]


@pytest.mark.parametrize("architecture", ["seq2seq", "copynet", "transformer", "hred", "recosa"])
def test_every_architecture_answers_a_probe(tmp_path, corpus, architecture):
    """By name, from the recipe to the chatbot under test; a single-turn one reads one turn."""
    from dialeval.systems import open_system

    settings = {"architecture": architecture, "units": 16, "vocabulary": 300, "pairs": 8}
    card = train("seq2seq", corpus, tmp_path / "bot", epochs=1, turns=1, **settings)
    assert card.settings["architecture"] == architecture
    bot = open_system(f"hf:{tmp_path / 'bot'}", {"max_new_tokens": 6})
    history = [Turn("who ?", "system"), Turn("hello", "user")]
    assert bot.reply(history) == bot.reply(history[1:])


def test_the_first_turns_of_a_history_are_left_out_where_one_turn_is_read(corpus):
    dialogue = ("one .", "two .", "three .")
    tokenizer = build_tokenizer([dialogue, *load_corpus(corpus).train], 400)
    last = encode_pairs(tokenizer, [dialogue], 24, 12, turns=1)[-1]
    assert last.source == EncoderInput(tokenizer, 24).write([Turn("two .")], "tabs")[0]


def test_a_generator_of_positives_has_pairs_of_its_own(tmp_path):
    from dialeval.training.examples.pair_corpus import load_pairs

    corpus = tmp_path / "corpus"
    for split, count in (("train", 30), ("validation", 4), ("test", 4)):
        (corpus / split).mkdir(parents=True)
        lines = [f"ask {split} {i} __eou__ say {split} {i} __eou__ bye {i}" for i in range(count)]
        (corpus / split / f"dialogues_{split}.txt").write_text("\n".join(lines))
    settings = {"units": 16, "vocabulary": 300, "epochs": 1}
    whole = train("seq2seq", corpus, tmp_path / "whole", pairs=4, **settings)
    own = train("seq2seq", corpus, tmp_path / "own", apart_from=36, **settings)
    others = load_pairs([corpus], "last", most=36)
    assert own.data["pairs left to a scorer"] == len(others.train) == 36
    assert "pairs left to a scorer" not in whole.data
    texts = others.texts
    taken = {(texts[pair.context[-1]], texts[pair.response]) for pair in others.train}
    dialogues = load_corpus(corpus).train
    left = sum(
        (one, other) not in taken for dialogue in dialogues for one, other in pairwise(dialogue)
    )
    assert own.data["pairs per epoch"] == left + len(dialogues)  # each begins with a turn


def test_heads_that_cannot_share_the_units_are_refused(tmp_path, corpus):
    with pytest.raises(UsageError, match="30 units cannot be shared by 4 heads"):
        train("seq2seq", corpus, tmp_path / "bot", architecture="recosa", units=30)


@pytest.mark.parametrize("pieces", ["bpe", "words"])
def test_histories_are_written_as_they_are_at_use(corpus, pieces):
    dialogues = [("Hello  there .", "I am\tfine 🙂 .", "And   you ?", "x" * 50, "So am I .")]
    tokenizer = build_tokenizer([*dialogues, *load_corpus(corpus).train], 400, pieces)
    pairs = encode_pairs(tokenizer, dialogues, 24, 12)
    at_use = EncoderInput(tokenizer, 24)
    for i, pair in enumerate(pairs):
        assert pair.source == at_use.write(tuple(map(Turn, dialogues[0][:i])), "tabs")[0]
        assert len(pair.target) <= 12
    assert tokenizer.decode(pairs[2].target[:-1]).split() == ["And", "you", "?"]
    assert pairs[2].target[-1] == tokenizer.eos_token_id
    (cut,) = encode_pairs(tokenizer, [("a b c d e f g h i j k l",)], 24, 12)
    assert cut.target[-1] != tokenizer.eos_token_id


def test_a_word_that_is_rare_is_unknown_and_never_said(tmp_path, corpus):
    tokenizer = build_tokenizer([("a a a b b c",)], 6, "words")
    assert tokenizer.decode(tokenizer.encode("a b c")[:-1]) == "a b <unk>"
    preset = changed(replace(LSTM, options=replace(OPTIONS, pieces="words")), vocabulary=12)
    learn(corpus, tmp_path, replace(preset, settings=replace(preset.settings, epochs=1)))
    generator = load_generator(str(tmp_path))
    (replies,) = generator.replies([[]], Decoding("sample", count=20, max_new_tokens=5))
    assert not any("<" in reply for reply in replies)


@pytest.mark.parametrize(("limit", "per"), [(7, "pairs"), (64, "tokens")])
def test_every_epoch_has_each_pair_once_and_as_many_batches(limit, per):
    lengths = np.random.default_rng(0).integers(1, 30, size=(200, 2))
    pairs = [ReplyPair(tuple(range(s)), (i,) * t) for i, (s, t) in enumerate(lengths.tolist())]
    counts = set()
    for epoch in range(5):
        batches = make_batches(pairs, limit, per, np.random.default_rng(epoch))
        counts.add(len(batches))
        assert sorted(pair.target[0] for batch in batches for pair in batch) == list(range(200))
        for batch in batches:
            longest = max(max(len(pair.source), len(pair.target)) for pair in batch)
            assert len(batch) == 1 or len(batch) * (1 if per == "pairs" else longest) <= limit
    assert len(counts) == 1


def test_the_loss_is_per_pair_or_per_token_and_smoothed():
    class Uneven(RecurrentArchitecture):
        """Gives 8 tokens the logits 0, 1, ... 7, whatever it reads."""

        def logits(self, model, sources, lengths, targets):
            return torch.arange(8.0).repeat(*targets.shape, 1)

    batch = [ReplyPair((1,), (7, 7, 0)), ReplyPair((1, 2), (3,))]
    log_probs = torch.arange(8.0).log_softmax(0).tolist()
    nll = -(2 * log_probs[7] + log_probs[0] + log_probs[3])
    spread = -4 * sum(log_probs) / 8
    model = torch.nn.Linear(1, 1)
    for per, smoothing, expected in (
        ("pairs", 0.0, nll / 2),
        ("tokens", 0.0, nll / 4),
        ("tokens", 0.1, (0.9 * nll + 0.1 * spread) / 4),
    ):
        options = Seq2SeqOptions(per=per, smoothing=smoothing)
        preset = Preset(Uneven(), options, Settings(epochs=1, learning_rate=0.1))
        learner = Seq2SeqLearner(model, preset, 1, batch, batch)
        objective = learner.loss(batch)
        assert float(objective.loss) == pytest.approx(expected, rel=1e-5)
        assert float(objective.shown) == pytest.approx(nll / 4, rel=1e-5)
        assert learner.mean_nll(batch) == pytest.approx(nll / 4, rel=1e-5)


def test_the_learning_rate_follows_the_papers():
    noam = TRANSFORMER_PAPER.settings
    rates = [noam.learning_rate * noam.share_of_rate(n - 1, 10**5, 1) for n in (1, 8000, 32000)]
    # Vaswani et al., equation 3, with d = 512, 8000 steps to warm up and OpenNMT's factor 2.
    assert rates == pytest.approx(
        [2 / 512**0.5 / 8000**1.5, 2 / (512 * 8000) ** 0.5, 2 / 4048], 2e-3
    )
    halving = LSTM_PAPER.settings
    by_epoch = [halving.learning_rate * halving.share_of_rate(9 * e, 1, 9) for e in range(11)]
    assert by_epoch == [1.0] * 8 + [0.5, 0.25, 0.125]


def test_the_published_sizes_are_those_of_the_reference():
    tokenizer = build_tokenizer([("a b c",)], 50, "words")
    lstm = LSTM_PAPER.architecture.build(tokenizer, 50, 50)
    assert lstm.encoder.weight_hh_l1.shape == (4 * 500, 500)
    assert lstm.decoder[0].weight_ih.shape == (4 * 500, 1000)
    transformer = TRANSFORMER_PAPER.architecture.build(tokenizer, 100, 50)
    config = transformer.config
    assert (config.encoder_layers, config.decoder_layers) == (6, 6)
    assert (config.d_model, config.encoder_ffn_dim, config.decoder_attention_heads) == (
        512, 2048, 8
    )  # fmt: skip
    glorot = math.sqrt(6 / (512 + 2048))
    widest = float(transformer.model.encoder.layers[0].fc1.weight.detach().abs().max())
    assert 0.99 * glorot < widest <= glorot


def test_a_vocabulary_smaller_than_the_bytes_is_refused():
    with pytest.raises(UsageError, match="too small"):
        build_tokenizer([("a",)], 100)
