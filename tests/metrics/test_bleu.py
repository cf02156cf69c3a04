"""BLEU against sacreBLEU, NLTK, nlg-eval's unit values and the numbers that PONE published."""

from __future__ import annotations

import math

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import corpora, pairs, pooled, reference_columns, score, sentences
from nltk.translate.bleu_score import sentence_bleu as nltk_sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from dialeval.errors import UsageError
from dialeval.metrics.bleu import Bleu
from dialeval.registry import make_metric

settings = st.fixed_dictionaries(
    {
        "smoothing": st.sampled_from(["exp", "floor", "add-k", "none"]),
        "tokenize": st.sampled_from(["13a", "intl", "char", "zh", "none"]),
        "lowercase": st.booleans(),
    }
)


@given(pairs, settings)
def test_a_response_gets_sacrebleus_sentence_bleu(pair, options):
    response, references = pair
    expected = sacrebleu.sentence_bleu(
        response,
        references,
        smooth_method=options["smoothing"],
        tokenize=options["tokenize"],
        lowercase=options["lowercase"],
        use_effective_order=True,
    )
    assert score(Bleu(**options), response, *references).value == expected.score


@given(pairs, settings, st.integers(1, 4))
def test_each_part_is_the_bleu_of_its_order(pair, options, n):
    response, references = pair
    found = score(Bleu(n=n, **options), response, *references)
    for order in range(1, n + 1):
        expected = BLEU(
            max_ngram_order=order,
            effective_order=True,
            smooth_method=options["smoothing"],
            tokenize=options["tokenize"],
            lowercase=options["lowercase"],
        ).sentence_score(response, references)
        assert found.parts[f"bleu-{order}"] == expected.score
    assert found.value == found.parts[f"bleu-{n}"]


@given(corpora, settings)
def test_a_system_gets_sacrebleus_corpus_bleu(corpus, options):
    expected = sacrebleu.corpus_bleu(
        [response for response, _ in corpus],
        reference_columns(corpus),
        smooth_method=options["smoothing"],
        tokenize=options["tokenize"],
        lowercase=options["lowercase"],
        force=True,
    )
    assert pooled(Bleu(**options), corpus).value == expected.score


@given(corpora.flatmap(lambda c: st.tuples(st.just(c), st.permutations(c))))
def test_a_pool_does_not_depend_on_the_order(both):
    assert pooled(Bleu(), both[0]) == pooled(Bleu(), both[1])


def test_nlg_evals_unit_values(golden):
    case = golden["bleu_sentence"]["plain_multi_ref_check"]
    found = score(Bleu(smoothing="none"), case["hyp"], *case["refs"])
    for n in (1, 2, 3):
        expected = case["nlgeval_expected"][f"Bleu_{n}"]
        assert found.parts[f"bleu-{n}"] / 100 == pytest.approx(expected, abs=2e-6)


def test_the_published_bleus_of_pone(golden):
    cases = golden["bleu_sentence"]["cases"]
    assert len(cases) == 4
    for case in cases:
        found = score(Bleu(mode="released"), case["hypothesis"], case["reference"])
        assert round(found.value, 6) == case["published_pone_bleu4"]


def method4_of_2016(p_n, references, hypothesis, hyp_len):
    """NLTK's smoothing as it was: `i+1 * k / ln(len)`, which is i + k / ln(len)."""
    return [
        1 / (i + 5 / math.log(hyp_len)) if p.numerator == 0 else p.numerator / p.denominator
        for i, p in enumerate(p_n)
    ]


@given(sentences, sentences)
def test_released_is_nltk_with_words_as_references(golden, response, reference):
    words, as_references = response.split(), reference.split() or ["..."]
    weights = golden["bleu_sentence"]["weights"]
    try:
        expected = {
            f"bleu-{n}": nltk_sentence_bleu(
                as_references, words, weights[str(n)], smoothing_function=method4_of_2016
            )
            for n in (1, 2, 3, 4)
        }
    except ZeroDivisionError:
        assert len(words) == 1
        assert score(Bleu(mode="released"), response, reference).note == "too short"
    else:
        found = score(Bleu(mode="released"), response, reference)
        assert dict(found.parts) == pytest.approx(expected, abs=1e-12)


def test_released_scores_of_very_short_responses():
    released = Bleu(mode="released")
    assert score(released, "", "I do").value == 0
    assert score(released, "yes", "I do").value == 0  # no reference is the word "yes"
    assert score(released, "I", "I do").value is None  # ln 1 = 0


def test_released_reads_an_empty_reference_as_three_dots():
    # Both words are dots; the one reference has three tokens: p = 1, BP = exp(1 - 3/2).
    found = score(Bleu(mode="released"), ". .", "")
    assert found.parts["bleu-1"] == pytest.approx(math.exp(-0.5))


def test_released_takes_the_words_of_all_references():
    released = Bleu(mode="released")
    together = score(released, "I am a fox .", "a dog . I ran")
    assert score(released, "I am a fox .", "a dog .", "I ran") == together


@pytest.mark.parametrize("option", ["smoothing=floor", "tokenize=char", "lowercase=true"])
def test_released_refuses_options_that_it_would_ignore(option):
    with pytest.raises(UsageError, match="mode=released fixes"):
        make_metric(f"bleu:mode=released,{option}")


def test_the_range_and_the_signature_say_which_bleu_it_is():
    assert Bleu().range == (0.0, 100.0)
    assert Bleu(mode="released").range == (0.0, 1.0)
    assert f"|sacrebleu:{sacrebleu.__version__}|" in str(Bleu().signature())
    assert "|smoothing:method4-2016|" in str(Bleu(mode="released").signature())


def test_released_has_no_corpus_score():
    assert Bleu(mode="released").pool() is None


@given(sentences.filter(str.strip))
def test_a_copy_of_the_reference_scores_100(text):
    assert score(Bleu(), text, "something else", text).value == pytest.approx(100)


@given(pairs.flatmap(lambda p: st.tuples(st.just(p), st.permutations(p[1]))))
def test_the_order_of_references_does_not_matter(case):
    (response, references), permuted = case
    assert score(Bleu(), response, *references) == score(Bleu(), response, *permuted)


def test_tokenized_looking_responses_cause_no_warning(caplog):
    pool = Bleu().pool()
    for _ in range(150):
        pool.add(score(Bleu(), "that is fine .", "that is fine ."))
    assert pool.result().value == pytest.approx(100)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("tokenizer", "response", "reference"),
    [
        ("zh", "我今天很高兴见到你。", "今天见到你我很高兴！"),
        ("char", "今日はとても楽しかったです。", "今日は本当に楽しかったですね。"),
        ("char", "วันนี้อากาศดีมาก", "วันนี้อากาศไม่ดี"),
        ("13a", "Сегодня очень хорошая погода.", "Сегодня у нас хорошая погода."),
        ("13a", "The café is open.", "The café opens at nine."),
    ],
)
def test_the_default_tokenizer_fits_the_script(tokenizer, response, reference):
    """A text without spaces is one word to 13a, and matches nothing but itself."""
    expected = sacrebleu.sentence_bleu(response, [reference], tokenize=tokenizer).score
    assert score(Bleu(), response, reference).value == expected > 0
    corpus = sacrebleu.corpus_bleu([response], [[reference]], tokenize=tokenizer).score
    assert pooled(Bleu(), [(response, (reference,))]).value == corpus
    assert "tokenize:auto" in str(Bleu().signature())
