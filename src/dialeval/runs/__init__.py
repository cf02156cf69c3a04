"""A run is a directory: what `score` writes into it, and what every later verb reads from it."""
