"""Writes `expected.json`: `python -m dialeval.doctor`, after the conformance tests passed."""

from dialeval.doctor import EXPECTED, METRICS, METRICS_WITH_MODELS, example_scores
from dialeval.storage import write_json

if __name__ == "__main__":
    scores = {
        "metrics": example_scores(METRICS),
        "metrics with models": example_scores(METRICS_WITH_MODELS),
    }
    write_json(EXPECTED, scores)
    print(f"wrote {EXPECTED}")
