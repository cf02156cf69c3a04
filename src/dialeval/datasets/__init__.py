"""Public data sets by name: what they are, where they come from, where they lie here.

    from dialeval.datasets import DATASETS, find_dataset
    find_dataset("fed")                      # the folder rated/fed, or None if it is not here
    find_dataset("holistic/coherence")       # the file of that part

Nothing is fetched until `dialeval data get NAME` is asked for; no data set is part of dialeval.
"""

from dialeval.datasets.entries import DATASETS, Dataset, File, Part
from dialeval.datasets.locate import find_dataset, resolve

__all__ = ["DATASETS", "Dataset", "File", "Part", "find_dataset", "resolve"]
