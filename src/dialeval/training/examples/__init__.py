"""Training data: corpora, pairs, negatives, positives, and the exchanges to leave out."""
