"""What recipes learn from: corpora, pairs, negatives, positives, and what must be left out."""
