"""Build the list of common words that ships in `dialeval.augment` from GloVe's vocabulary.

    dialeval models get glove-50d
    python scripts/build_common_words.py

GloVe's 400 000 words stand in the order of their frequency in Wikipedia and Gigaword. The list
holds the first 10 000 of them that are made of letters, most frequent first. GloVe is in the public
domain (PDDL 1.0).
"""

from pathlib import Path

import pyarrow.parquet as pq

from dialeval.model_store.locate import locate

COUNT = 10_000
DESTINATION = (
    Path(__file__).resolve().parent.parent / "src" / "dialeval" / "augment" / "common-words.txt"
)


def main() -> None:
    table = pq.read_table(locate("glove-50d").directory / "glove_6B_index.parquet")
    words = [word for word in table["index"].to_pylist() if word.isascii() and word.isalpha()]
    DESTINATION.write_text("\n".join(words[:COUNT]) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
