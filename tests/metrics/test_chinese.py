"""Word metrics on Chinese: right with words, refused where the words run together."""

from __future__ import annotations

import marshal
import sys
import tempfile
import types

import pytest

from dialeval.errors import UsageError
from dialeval.metrics import word_vectors
from dialeval.metrics.word_vectors import chinese_words
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn
from dialeval.text import runs_together

SAMPLE = Sample(
    "1", (Turn("你昨天晚上去哪里了"),), "我去图书馆睡觉了", references=("我去图书馆学习了",)
)
SPACED = Sample(
    "1", (Turn("你 昨天 去 哪里 了"),), "我 去 图书馆 睡觉 了", references=("我 去 图书馆",)
)


@pytest.fixture
def jieba(monkeypatch):
    """A dictionary of a few words, in the place of jieba's own."""
    known = ("图书馆", "睡觉", "学习", "昨天", "晚上", "哪里")

    def lcut(text):
        words, start = [], 0
        while start < len(text):
            word = next((one for one in known if text.startswith(one, start)), text[start])
            words.append(word)
            start += len(word)
        return words

    cutter = types.SimpleNamespace(
        lcut=lcut, get_dict_file=lambda: None, gen_pfdict=lambda file: ({}, 0)
    )
    module = types.SimpleNamespace(Tokenizer=lambda: cutter, __version__="0.0.0")
    monkeypatch.setitem(sys.modules, "jieba", module)
    word_vectors._chinese_cutter.cache_clear()
    yield
    word_vectors._chinese_cutter.cache_clear()


def test_texts_whose_words_run_together_are_told_from_others():
    assert runs_together("我去图书馆睡觉了")
    assert not runs_together("我 去 图书馆 睡觉 了")
    assert not runs_together("你好")  # a word
    assert not runs_together("I went to 北京大学图书馆 yesterday with my friends")
    assert not runs_together("plain English", "")


@pytest.mark.parametrize(
    "spec",
    [
        "ruber", "ruber:blend=unreferenced", "embedding-average", "vector-extrema",
        "greedy-matching", "embedding-average:mode=released",
    ],
)  # fmt: skip
def test_metrics_of_words_refuse_what_runs_together(spec):
    metric = make_metric(spec)
    assert "tokenize=jieba" in metric.obstacle(SAMPLE)
    assert metric.obstacle(SPACED) == ""


@pytest.mark.parametrize("spec", ["bleu:mode=released", "rouge:mode=released"])
def test_the_released_overlaps_need_spaces(spec):
    metric = make_metric(spec)
    refused = metric.score(SAMPLE, ())
    assert refused.value is None
    assert "no spaces" in refused.note
    assert metric.score(SPACED, ()).value is not None


def test_bleu_rouge_and_meteor_compare_characters():
    """Six of the eight characters on each side are the same, and five of them in a row."""
    rouge = make_metric("rouge").score(SAMPLE, ())
    assert rouge.value == pytest.approx(6 / 8)
    bleu = make_metric("bleu:n=1").score(SAMPLE, ())
    assert bleu.value == pytest.approx(100 * 6 / 8)
    meteor = make_metric("meteor").score(SAMPLE, ())
    assert meteor.value == pytest.approx(6 / 8 * (1 - 0.5 * (2 / 6) ** 3))


def test_words_of_jieba_are_looked_up(jieba):
    metric = make_metric("embedding-average:tokenize=jieba")
    assert metric.obstacle(SAMPLE) == ""
    response, reference = metric.ask(SAMPLE)
    assert response.words == ("我", "去", "图书馆", "睡觉", "了")
    assert reference.words == ("我", "去", "图书馆", "学习", "了")
    fit, *_ = make_metric("ruber:tokenize=jieba").ask(SAMPLE)
    assert fit.response == "我 去 图书馆 睡觉 了"
    assert fit.turns == ("你 昨天 晚上 去 哪里 了",)


def test_without_jieba_the_way_to_get_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    word_vectors._chinese_cutter.cache_clear()
    with pytest.raises(UsageError, match=r"dialeval\[chinese\]"):
        chinese_words("我去图书馆")
    with pytest.raises(UsageError, match="between spaces"):
        make_metric("ruber:tokenize=jieba,mode=released")


def test_the_words_are_those_of_jieba():
    pytest.importorskip("jieba", reason="needs the extra 'chinese'")
    assert chinese_words("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]  # its README


def test_no_file_of_somebody_else_and_no_other_code_decides_about_chinese_words(
    tmp_path, monkeypatch
):
    """jieba itself takes `jieba.cache` from the folder for temporary files for its dictionary."""
    jieba = pytest.importorskip("jieba", reason="needs the extra 'chinese'")
    other = {"我来": 9**9, "到北": 9**9}
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps((other, 9**10)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, value in {"initialized": False, "FREQ": {}, "total": 0}.items():
        monkeypatch.setattr(jieba.dt, name, value)
    word_vectors._chinese_cutter.cache_clear()
    jieba.add_word("清华大学我来")
    assert chinese_words("清华大学我来到北京") == ["清华大学", "我", "来到", "北京"]


@pytest.mark.parametrize("spec", ["embedding-average:tokenize=jieba", "ruber:tokenize=jieba"])
def test_the_signature_names_the_version_of_the_dictionary(jieba, spec):
    assert dict(make_metric(spec).signature().fields)["jieba"] == "0.0.0"
    assert "jieba" not in str(make_metric(spec.partition(":")[0]).signature())
