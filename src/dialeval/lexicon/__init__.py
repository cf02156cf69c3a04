"""The English lexicon that ships with dialeval: WordNet 3.0, Princeton University; beside it a
graph of concepts, `conceptnet`.

    >>> from dialeval.lexicon import load_wordnet
    >>> load_wordnet().synsets("water", "n")[1].name
    'body_of_water'

`LICENSE` is the text under which Princeton gives WordNet away; it has to go with every copy.
"""

from importlib.resources import files

from dialeval.lexicon.wordnet import Counts, NltkView, PartOfSpeech, Synset, WordNet, load_wordnet

LICENSE = files("dialeval.lexicon").joinpath("WORDNET-LICENSE.txt").read_text(encoding="ascii")

__all__ = ["LICENSE", "Counts", "NltkView", "PartOfSpeech", "Synset", "WordNet", "load_wordnet"]
