"""The graph of concepts against its sources, and its distances against networkx."""

from __future__ import annotations

import gzip
import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.lexicon.conceptnet import NEAREST, ConceptNet, load_conceptnet

ROOT = Path(__file__).parents[2]
WORDS = load_conceptnet().words


@cache
def build_script():
    path = ROOT / "scripts" / "build_conceptnet.py"
    spec = importlib.util.spec_from_file_location("build_conceptnet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def peer():
    networkx = pytest.importorskip("networkx", reason="the oracle for distances")
    concepts = load_conceptnet()
    graph = networkx.Graph()
    graph.add_nodes_from(concepts.words)
    graph.add_edges_from((w, other) for w in concepts.words for other in concepts.neighbours(w))
    return networkx, graph


def graph_of(edges):
    """A graph over `a`, `b`, ... from pairs of letters."""
    letters = sorted({letter for edge in edges for letter in edge})
    rows = [
        sorted({letters.index(e[1 - e.index(x)]) for e in edges if x in e and e[0] != e[1]})
        for x in letters
    ]
    return ConceptNet(
        {
            "words": np.frombuffer("\n".join(letters).encode(), dtype=np.uint8),
            "degrees": np.array([len(row) for row in rows]),
            "neighbours": np.array([n for row in rows for n in row], dtype=np.uint16),
            "beyond": np.repeat(np.arange(len(letters))[:, None], NEAREST, axis=1),
        }
    )


def test_hops_are_counted_by_hand():
    concepts = graph_of(["ab", "bc", "cd", "de", "xy"])
    assert [concepts.hops("a", other) for other in "abcde"] == [0, 1, 2, 3, 4]
    assert concepts.hops("a", "x") is None
    assert concepts.hops("a", "e", limit=3) is None
    assert concepts.hops("a", "d", limit=3) == 3
    assert concepts.hops("q", "q") == 0, "a word that is not here is still itself"
    assert concepts.hops("a", "q") is None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from([None, 1, 2, 3, 4]))
def test_hops_are_those_of_networkx(one, other, limit):
    networkx, graph = peer()
    try:
        expected = networkx.shortest_path_length(graph, one, other)
    except networkx.NetworkXNoPath:
        expected = None
    if limit is not None and expected is not None and expected > limit:
        expected = None
    found = load_conceptnet().hops(one, other, limit)
    assert found == expected == load_conceptnet().hops(other, one, limit)


def test_hops_among_many_are_those_between_two():
    concepts = load_conceptnet()
    chosen = np.random.default_rng(0).permutation(len(WORDS))[:60]
    words = [*(WORDS[n] for n in chosen), "coffee", "tea", "dog"]
    found = concepts.hops_among(words, limit=3)
    for row, one in enumerate(words):
        for column, other in enumerate(words):
            hops = concepts.hops(one, other, limit=3)
            assert found[row, column] == (4 if hops is None else hops)


def test_edges_go_both_ways_and_never_to_the_word_itself():
    concepts = load_conceptnet()
    for word in WORDS[::50]:
        around = concepts.neighbours(word)
        assert around
        assert word not in around
        assert len(set(around)) == len(around)
        assert all(word in concepts.neighbours(other) for other in around[:20])


def test_the_nearest_are_the_first_and_two_hops_are_two_hops():
    concepts = load_conceptnet()
    assert concepts.nearest("dog") == tuple(concepts.neighbours("dog")[:NEAREST])
    beyond = concepts.nearest_beyond("dog")
    assert len(beyond) == NEAREST
    assert "dog" not in beyond
    assert {concepts.hops("dog", word) for word in beyond} <= {1, 2}
    assert concepts.nearest("zzzz") == concepts.nearest_beyond("zzzz") == ()


def test_assertions_of_the_source_are_edges(datasets):
    """Every assertion between two single words that WordNet has, out of a sample, is there."""
    from dialeval.lexicon import load_wordnet
    from dialeval.text import FUNCTION_WORDS

    path = datasets / "lexical" / "conceptnet" / "train.txt"
    if not path.is_file():
        pytest.skip("CN-100K is not here")
    wordnet, concepts, checked = load_wordnet(), load_conceptnet(), 0
    for line in path.read_text(encoding="utf-8").splitlines()[::20]:
        _, head, tail = line.split("\t")
        if not (head.isalpha() and tail.isalpha()) or {head, tail} & FUNCTION_WORDS:
            continue
        one, other = wordnet.morphy(head), wordnet.morphy(tail)
        if one and other and one != other and min(len(head), len(tail)) > 1:
            assert concepts.hops(one, other) == 1, line
            checked += 1
    assert checked > 500


def test_a_phrase_stands_for_the_words_that_mean_something():
    script = build_script()
    assert script.words_of("play on ice") == ("play", "ice")
    assert script.words_of("a person who is in the rocks") == ("person", "rock")
    assert script.words_of("go to store and buy bread and milk") == (), "it says too much"
    assert script.words_of("the of it") == ()


def test_the_full_dump_is_read_in_english_alone(tmp_path):
    lines = [
        "/a/1\t/r/IsA\t/c/en/ice_hockey/n\t/c/en/sport\t{}",
        "/a/2\t/r/IsA\t/c/fr/glace\t/c/en/ice\t{}",
        "/a/3\t/r/AtLocation\t/c/en/dog\t/c/en/kennel/n/wn/artifact\t{}",
    ]
    path = tmp_path / "assertions.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    script = build_script()
    assert list(script.read_dump(path)) == [("ice hockey", "sport"), ("dog", "kennel")]
    graph = script.edges_of(script.read_dump(path))
    assert graph["sport"] == {"ice", "hockey"}
    assert graph["dog"] == {"kennel"}


def test_it_is_small_and_goes_with_its_licence():
    folder = ROOT / "src" / "dialeval" / "lexicon"
    assert (folder / "conceptnet.npz").stat().st_size < 1_000_000
    notice = (folder / "CONCEPTNET-LICENSE.txt").read_text(encoding="ascii")
    for owed in ("CC BY-SA 4.0", "ConceptNet 5", "Xiang Li"):
        assert owed in notice
