"""What the tests of augmentation share."""

import pytest

from dialeval.models.tagger import load_tagger


@pytest.fixture
def tagger(embedded_models):
    """The tagger of the default preset."""
    pytest.importorskip("spacy", reason="needs the extra 'augment'")
    return load_tagger("spacy-en-sm")
