"""Writes `expected.json` anew: `python -m dialeval.doctor`, after the conformance tests passed."""

from dialeval.doctor import EXPECTED, example_scores
from dialeval.storage import write_json

if __name__ == "__main__":
    write_json(EXPECTED, example_scores())
    print(f"wrote {EXPECTED}")
