"""Variants of queries: the same thing asked in other words, to see how a chatbot varies."""

from dialeval.augment.augmenter import (
    AUGMENTERS,
    Augmenter,
    Tally,
    augment_file,
    augment_queries,
    make_augmenter,
    make_augmenters,
)
from dialeval.augment.queries import Queries, Query, QueryVariant, read_queries, write_queries
from dialeval.callable_package import make_callable

__all__ = [
    "AUGMENTERS",
    "Augmenter",
    "Queries",
    "Query",
    "QueryVariant",
    "Tally",
    "augment_file",
    "augment_queries",
    "make_augmenter",
    "make_augmenters",
    "read_queries",
    "write_queries",
]

make_callable(__name__, "dialeval.verbs:augment")
