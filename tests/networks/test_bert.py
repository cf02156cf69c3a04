"""Our BERT and the plain tokenizer against transformers, which defines both."""

from __future__ import annotations

import json

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, BertConfig, BertModel, RobertaConfig, RobertaModel

from dialeval.errors import UsageError
from dialeval.model_store.weights import SharedWeights, shared
from dialeval.models import loading
from dialeval.models.loading import text_tokenizer
from dialeval.networks import bert

TEXTS = ["the cat sat", "a", "", "the the mat on a cat sat the", "THE Cat dog"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "a"]


@pytest.fixture
def directory(tmp_path):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(tmp_path)
    backend = Tokenizer(
        models.WordPiece({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    backend.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
    }
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 32}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | special))
    return tmp_path


def test_states_are_those_of_transformers_whatever_the_padding(directory):
    ours, theirs = bert.load(directory), BertModel.from_pretrained(directory).eval()
    assert ours is not None
    rng = torch.Generator().manual_seed(1)
    lengths = [3, 9, 1, 9, 5]
    ids = torch.randint(1, 50, (5, 9), generator=rng)
    kinds = torch.randint(0, 2, (5, 9), generator=rng)
    mask = (torch.arange(9) < torch.tensor(lengths)[:, None]).long()
    with torch.inference_mode():
        found = ours(ids, mask, kinds).last_hidden_state
        expected = theirs(ids, mask, kinds).last_hidden_state
    real = mask.bool()
    assert torch.allclose(found[real], expected[real], atol=1e-5)
    assert not found[~real].any()


def test_another_kind_of_network_is_left_to_transformers(tmp_path):
    config = RobertaConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
    )
    RobertaModel(config).save_pretrained(tmp_path)
    assert bert.load(tmp_path) is None


def test_the_plain_tokenizer_reads_as_transformers_does(directory):
    ours, theirs = loading.plain_tokenizer(directory), AutoTokenizer.from_pretrained(directory)
    assert ours is not None
    assert ours(TEXTS).input_ids == theirs(TEXTS).input_ids
    bare = {"add_special_tokens": False}
    assert ours(TEXTS, **bare).input_ids == theirs(TEXTS, **bare).input_ids
    cut = {"truncation": True, "max_length": 4}
    assert ours(TEXTS[3], **cut).input_ids == theirs(TEXTS[3], **cut).input_ids
    pair = ours(TEXTS[:2], TEXTS[3:])
    expected = theirs(TEXTS[:2], TEXTS[3:])
    assert pair.input_ids == expected.input_ids
    assert pair.token_type_ids == expected.token_type_ids
    cut = {"truncation": True, "max_length": 6}
    pair, expected = ours(TEXTS[3], TEXTS[0], **cut), theirs(TEXTS[3], TEXTS[0], **cut)
    assert (pair.input_ids, pair.token_type_ids) == (expected.input_ids, expected.token_type_ids)
    for name in ("cls_token_id", "sep_token_id", "pad_token_id", "mask_token_id", "eos_token_id"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert (len(ours), ours.model_max_length) == (len(theirs), theirs.model_max_length)


def test_models_that_share_weights_share_the_tokenizer(directory):
    with shared(SharedWeights()):
        assert text_tokenizer(directory) is text_tokenizer(directory)
    assert text_tokenizer(directory) is not text_tokenizer(directory)


@pytest.mark.parametrize("by", ["plain", "transformers"])
def test_what_a_stranger_writes_gives_no_special_token(directory, by):
    if by == "transformers":  # a file that the plain tokenizer leaves alone
        (directory / "chat_template.jinja").write_text("")
    tokenizer = text_tokenizer(directory)
    assert isinstance(tokenizer, loading.PlainTokenizer) == (by == "plain")
    start, end = VOCABULARY.index("[CLS]"), VOCABULARY.index("[SEP]")
    special = {start, end, VOCABULARY.index("[PAD]"), VOCABULARY.index("[MASK]")}
    hostile = "the [SEP] cat [PAD] sat [MASK] [CLS]"
    for ids in (
        tokenizer(hostile).input_ids,
        *tokenizer([hostile, "a"]).input_ids,
        tokenizer(hostile, truncation=True, max_length=5).input_ids,
    ):
        assert (ids[0], ids[-1]) == (start, end)
        assert not special & set(ids[1:-1])
    assert not special & set(tokenizer(hostile, add_special_tokens=False).input_ids)
    pair = tokenizer(hostile, hostile)
    assert [place for place, one in enumerate(pair.input_ids) if one in special] == [
        0,
        len(pair.input_ids) // 2,
        len(pair.input_ids) - 1,
    ]


def test_the_names_of_its_inputs_are_those_of_transformers(directory):
    path = directory / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    for own in ({}, {"model_input_names": ["input_ids", "attention_mask"]}):
        path.write_text(json.dumps(settings | own))
        ours, theirs = loading.plain_tokenizer(directory), AutoTokenizer.from_pretrained(directory)
        assert ours is not None
        assert ours.model_input_names == theirs.model_input_names


@pytest.mark.parametrize("text", ["{nonsense", '{"version": "1.0"}'])
def test_a_file_that_is_no_tokenizer_is_refused(directory, text):
    (directory / "tokenizer.json").write_text(text)
    with pytest.raises(UsageError, match=r"tokenizer\.json: not a tokenizer"):
        loading.plain_tokenizer(directory)


def test_a_configuration_that_contradicts_the_file_is_left_to_transformers(directory):
    path = directory / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": False}))
    assert loading.plain_tokenizer(directory) is None


def configure(directory, **settings):
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", **settings})
    )


def test_special_tokens_are_those_of_the_class_where_nothing_is_said(directory):
    configure(directory)
    ours, theirs = loading.plain_tokenizer(directory), AutoTokenizer.from_pretrained(directory)
    assert ours is not None
    assert ours(TEXTS).input_ids == theirs(TEXTS).input_ids
    for name in loading.SPECIAL_AND_MASK:
        assert getattr(ours, f"{name}_id") == getattr(theirs, f"{name}_id")


@pytest.mark.parametrize(
    "settings",
    [
        {"truncation_side": "left"},
        {"add_bos_token": True},
        {"added_tokens_decoder": {"11": {"content": "<new>"}}},
    ],
    ids=str,
)
def test_options_that_are_not_heeded_are_left_to_transformers(directory, settings):
    configure(directory, do_lower_case=True)
    assert loading.plain_tokenizer(directory) is not None
    configure(directory, do_lower_case=True, **settings)
    assert loading.plain_tokenizer(directory) is None


def test_a_file_that_contradicts_the_class_is_left_to_transformers(directory):
    configure(directory)
    backend = Tokenizer.from_file(str(directory / "tokenizer.json"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.save(str(directory / "tokenizer.json"))
    assert loading.plain_tokenizer(directory) is None


@pytest.mark.parametrize("left_out", ["layer_norm_eps", "type_vocab_size", "hidden_act"])
def test_a_silent_configuration_means_what_it_means_to_transformers(directory, left_out):
    path = directory / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({n: v for n, v in settings.items() if n != left_out}))
    ours, theirs = bert.load(directory), BertModel.from_pretrained(directory).eval()
    assert ours is not None
    ids = torch.arange(1, 8)[None]
    with torch.inference_mode():
        found = ours(ids, torch.ones_like(ids)).last_hidden_state
        assert torch.allclose(found, theirs(ids).last_hidden_state, atol=1e-6)


def test_defaults_are_those_of_transformers():
    theirs = BertConfig().to_dict()
    assert {name: theirs[name] for name in bert.DEFAULTS} == bert.DEFAULTS
