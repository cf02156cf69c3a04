"""The papers' experiments, as functions that can be run on other data."""
