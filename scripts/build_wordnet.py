"""Build the lexicon that ships in `dialeval.lexicon` from the WordNet 3.0 database files.

    apt-get install wordnet-base
    python scripts/build_wordnet.py /usr/share/wordnet

Reads `data.*`, `index.*` and `*.exc` of the four parts of speech (formats: wndb(5WN)) and writes
`wordnet-3.0.npz` and `WORDNET-LICENSE.txt`. The arrays are described in `dialeval.lexicon.wordnet`.

Debian rebuilds the database from the lexicographer files. The result has Princeton's synsets,
in Princeton's order, but one more space in a gloss and one moved pointer shift the byte offsets of
adjectives and verbs. Synsets are therefore numbered by their place in the data file, and both
databases give the same bytes.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dialeval" / "lexicon"

FILE_SUFFIXES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

# wnstats(7WN) of WordNet 3.0: unique strings, synsets, word-sense pairs.
OFFICIAL_COUNTS = {
    "n": (117798, 82115, 146312),
    "v": (11529, 13767, 25047),
    "a": (21479, 18156, 30002),
    "r": (4481, 3621, 5580),
}


@dataclass(frozen=True)
class SynsetLine:
    """What we keep of one line of a data file."""

    offset: int
    is_satellite: bool
    lemmas: tuple[str, ...]


def database_lines(path: Path) -> Iterator[str]:
    """The lines of a database file after its licence header, whose lines start with two spaces."""
    with path.open(encoding="ascii") as file:
        yield from (line for line in file if not line.startswith("  "))


def read_synsets(path: Path) -> list[SynsetLine]:
    """`offset file_number type word_count(hex) word lex_id ... | gloss`, in file order."""
    synsets = []
    for line in database_lines(path):
        fields = line.split(" ")
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        # Adjectives may carry a syntactic marker: "galore(ip)".
        lemmas = tuple(re.sub(r"\(.*\)$", "", word) for word in words)
        synsets.append(SynsetLine(int(fields[0]), fields[2] == "s", lemmas))
    return synsets


def read_senses(path: Path) -> dict[str, list[int]]:
    """`lemma pos sense_count ... offset ...`: the offsets of each lemma in sense order."""
    senses = {}
    for line in database_lines(path):
        fields = line.split()
        senses[fields[0]] = [int(offset) for offset in fields[-int(fields[2]) :]]
    return senses


def read_exceptions(path: Path) -> str:
    """`form base ...` per line; of repeated forms the last counts, as in NLTK."""
    lines = {line.split()[0]: " ".join(line.split()) for line in database_lines(path)}
    return "\n".join(lines[form] for form in sorted(lines))


def read_license(path: Path) -> str:
    """The licence header, whose lines are numbered: `  14 WordNet 3.0 Copyright 2006 by ...`."""
    with path.open(encoding="ascii") as file:
        header = [line.strip() for line in file if line.startswith("  ")]
    return "\n".join(re.sub(r"^\d+ ?", "", line) for line in header) + "\n"


def text_array(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8)


def part_arrays(
    synsets: list[SynsetLine], senses: dict[str, list[int]], spelling_number: dict[str, int]
) -> dict[str, np.ndarray]:
    """The arrays of one part of speech."""
    sense_number = {
        (lemma, offset): rank
        for lemma, offsets in senses.items()
        for rank, offset in enumerate(offsets, start=1)
    }
    members, ranks = [], []
    for synset in synsets:
        seen = set()
        for lemma in synset.lemmas:
            word = lemma.lower()
            members.append(spelling_number[lemma])
            ranks.append(0 if word in seen else sense_number[word, synset.offset])
            seen.add(word)
    return {
        "sizes": np.array([len(synset.lemmas) for synset in synsets], dtype=np.uint8),
        "members": np.array(members, dtype="<u4"),
        "ranks": np.array(ranks, dtype=np.uint8),
        "satellites": np.array([synset.is_satellite for synset in synsets], dtype=np.bool_),
    }


def build(directory: Path) -> tuple[dict[str, np.ndarray], str]:
    """All arrays of the lexicon, and the licence text; stops if this is not WordNet 3.0."""
    license_text = read_license(directory / "data.noun")
    if "WordNet 3.0 Copyright" not in license_text:
        sys.exit(f"{directory}/data.noun does not call itself WordNet 3.0 in its header")

    synsets, senses = {}, {}
    for pos, suffix in FILE_SUFFIXES.items():
        synsets[pos] = read_synsets(directory / f"data.{suffix}")
        senses[pos] = read_senses(directory / f"index.{suffix}")
        counts = (len(senses[pos]), len(synsets[pos]), sum(map(len, senses[pos].values())))
        if counts != OFFICIAL_COUNTS[pos]:
            sys.exit(
                f"{directory} is not WordNet 3.0: {suffix} has (strings, synsets, senses) = "
                f"{counts}, not {OFFICIAL_COUNTS[pos]}"
            )
        print(f"{suffix:4}  {counts[0]:6} strings  {counts[1]:5} synsets  {counts[2]:6} senses")

    distinct = {lemma for part in synsets.values() for synset in part for lemma in synset.lemmas}
    spellings = sorted(distinct, key=lambda lemma: (lemma.lower(), lemma))
    words = [spelling.lower() for spelling in spellings]
    repeats = [number for number in range(1, len(words)) if words[number] == words[number - 1]]
    spelling_number = {spelling: number for number, spelling in enumerate(spellings)}

    arrays = {
        "spellings": text_array("\n".join(spellings)),
        "repeats": np.array(repeats, dtype="<u4"),
    }
    for pos, suffix in FILE_SUFFIXES.items():
        part = part_arrays(synsets[pos], senses[pos], spelling_number)
        part["exceptions"] = text_array(read_exceptions(directory / f"{suffix}.exc"))
        arrays.update({f"{pos}_{name}": array for name, array in part.items()})
    return arrays, license_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where data.noun, index.noun, ... are")
    parser.add_argument("--output", type=Path, default=PACKAGE, help="default: %(default)s")
    arguments = parser.parse_args()

    arrays, license_text = build(arguments.directory)
    lexicon = arguments.output / "wordnet-3.0.npz"
    notice = arguments.output / "WORDNET-LICENSE.txt"
    # NumPy dates the members of the archive 1980-01-01, so equal arrays give equal bytes.
    np.savez_compressed(lexicon, **arrays)
    notice.write_text(license_text, encoding="ascii")
    print(f"wrote {lexicon} ({lexicon.stat().st_size} bytes) and {notice}")


if __name__ == "__main__":
    main()
