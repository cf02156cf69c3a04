"""The embedded models load without libraries that take longer to import than the models to answer,
and freed memory goes back to the system.
"""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from dialeval.model_store.presets import preset_models
from dialeval.models import loading

SLOW = {"transformers", "peft", "accelerate", "spacy", "scipy"}


TAGGER = "spacy-en-sm"
NAMES = sorted(set(preset_models("default")) - {TAGGER})


def test_embedded_models_load_without_transformers(embedded_models):
    code = (
        "import sys\n"
        "from dialeval.models.source import Models\n"
        f"loaded = [Models('cpu').load(name) for name in {NAMES!r}]\n"
        f"print(len(loaded), *sorted({SLOW!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(NAMES))]


def test_the_embedded_classifier_is_that_of_transformers_and_peft(embedded_models):
    pytest.importorskip("peft", reason="needs the extra 'train'")
    from transformers import AutoModelForSequenceClassification

    from dialeval.model_store.locate import locate
    from dialeval.models import classifier
    from dialeval.models.loading import load_tokenizer, merged_by_peft, silence
    from dialeval.question import Inference

    found = locate("minilm-l6-nli")
    assert found.base is not None
    with silence():
        bare = AutoModelForSequenceClassification.from_pretrained(
            found.base.directory, num_labels=3, **classifier.label_names()
        )
        theirs = merged_by_peft(bare, found.directory)
    tokenizer = load_tokenizer(found.base.directory)
    pairs = [("I have a dog.", "I have no pets."), ("It rains.", "Take an umbrella, it is wet.")]
    questions = [Inference("minilm-l6-nli", *pair) for pair in pairs]
    ours = classifier.load(found.base.directory, device="cpu", adapter=found.directory)
    answers = dict(ours.answer(questions))
    expected = dict(classifier.Classifier(theirs, tokenizer).answer(questions))
    for number in range(len(pairs)):
        assert answers[number] == pytest.approx(expected[number], abs=1e-5)


FREED = """
from pathlib import Path
from dialeval.models import loading

def resident_kilobytes():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

blocks = [(bytearray(100_000), bytearray(600)) for _ in range(400)]
kept = [small for _, small in blocks]
del blocks
before = resident_kilobytes()
loading.give_back()
print(before - resident_kilobytes())
"""


def test_what_lies_between_small_things_that_live_on_is_given_back():
    """In a process of its own: in the holes of a used heap the small things would lie elsewhere."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only glibc keeps what was freed, and can be told to give it back")
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20_000


def test_another_c_library_is_no_obstacle(monkeypatch):
    loading._malloc_trim.cache_clear()
    monkeypatch.setattr(loading.ctypes, "CDLL", lambda name: object())
    loading.give_back()
    loading._malloc_trim.cache_clear()
