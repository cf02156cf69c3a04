"""Readers: files of many formats -> samples. One file per format; `load` is the way in."""

from dialeval.readers.check import CheckReport, QualityCheck, check
from dialeval.readers.convert import convert
from dialeval.readers.detect import formats
from dialeval.readers.load import Samples, load
from dialeval.readers.reader import Place, Problems, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source

__all__ = [
    "CheckReport",
    "Place",
    "Problems",
    "QualityCheck",
    "ReadOptions",
    "Reader",
    "Samples",
    "Source",
    "UnreadableError",
    "check",
    "convert",
    "formats",
    "load",
]
