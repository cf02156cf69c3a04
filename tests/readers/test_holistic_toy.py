"""The toy set of diversity that HolisticEval released: five answers a group, a line each."""

import pytest

import dialeval
from dialeval.metrics.diversity import ngram_entropy


def test_five_lines_are_a_group_and_a_blank_line_is_an_empty_answer(tmp_path, golden):
    (case,) = [c for c in golden["ngram_entropy"]["cases"] if c["name"] == "toy_txt_first5"]
    path = tmp_path / "diversity_toy.txt"
    lines = [*case["group"], "Sure .", "", "Sure .", "No .", "No ."]
    path.write_text("\n".join(lines), encoding="utf-8")
    loaded = dialeval.load(path)
    first, second = loaded
    assert set(loaded.formats.values()) == {"holistic-toy"}
    assert (first.id, second.id) == ("diversity_toy-1", "diversity_toy-2")
    assert [variant.response for variant in second.variants] == lines[5:]
    for n, expected in case["expected"].items():
        found = ngram_entropy([variant.response for variant in first.variants], int(n))
        assert found == pytest.approx(expected)


def test_any_name_is_read_with_the_format_and_a_short_last_group_is_said(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("a\n" * 7)
    loaded = dialeval.load(path, format="holistic-toy")
    assert [len(sample.variants) for sample in loaded] == [5, 2]
    (warning,) = loaded.counts.kept
    assert "2 of 5 answers" in warning.problem


def test_the_released_file_has_918_groups(datasets):
    samples = list(dialeval.load(datasets / "rated" / "holistic" / "diversity_toy.txt"))
    assert len(samples) == 918
    assert {len(sample.variants) for sample in samples} == {5}
