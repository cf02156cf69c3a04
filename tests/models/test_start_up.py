"""The embedded models load without libraries that take longer to import than the models to answer,
and freed memory goes back to the system.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models import tiny_language_models
from safetensors.torch import load_file, save_file

from dialeval.model_store.presets import preset_models
from dialeval.models import loading
from dialeval.models.source import Models
from dialeval.question import Likelihood

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


WITHOUT_META_KERNELS = f"""
import sys
from dialeval.cli.imports import put_off_meta_kernels
put_off_meta_kernels()
from dialeval.models.source import Models
print(len([Models('cpu').load(name) for name in {NAMES!r}]), "torch._decomp" in sys.modules)
"""


def test_embedded_models_load_before_torch_has_its_meta_kernels(embedded_models):
    command = [sys.executable, "-c", WITHOUT_META_KERNELS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(NAMES)), "False"]


@pytest.mark.parametrize(
    "need",
    [
        "import transformers",
        "torch.compile(torch.sin, backend='eager')(torch.zeros(2))",
        "torch._meta_registrations.meta_index_Tensor",
    ],
)
def test_meta_kernels_come_with_what_needs_them(need):
    code = f"""
import sys
from dialeval.cli.imports import put_off_meta_kernels
put_off_meta_kernels()
import torch
def shape():
    one, other = torch.empty(3, 4, device="meta"), torch.empty(5, 4, device="meta")
    try:
        return tuple(torch.cdist(one, other).shape)
    except NotImplementedError:
        return None
print(shape())
{need}
print(shape())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["None", "(3, 5)"]


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


def resident(file):
    """Kilobytes of a mapped file that are in memory."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):
            inside = line.endswith(str(file))
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


@pytest.fixture
def mapped_layer(tmp_path):
    """A linear layer of 4 MB whose weights are mapped from a file, and all read."""
    if not Path("/proc/self/smaps").exists():
        pytest.skip("only Linux says which files are mapped")
    file = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(1000, 1000), "bias": torch.ones(1000)}, file)
    layer = torch.nn.Linear(1000, 1000)
    layer.load_state_dict(load_file(file), assign=True)
    assert layer.weight.sum() == 1e6
    return layer, file


def test_mapped_weights_are_given_back_and_come_again(mapped_layer):
    layer, file = mapped_layer
    assert resident(file) > 3000
    loading.give_back_weights(layer)
    assert resident(file) == 0
    assert layer.weight.sum() == 1e6


def test_mapped_weights_that_were_changed_are_not_given_back(mapped_layer):
    """The file does not have what was learned."""
    layer, _ = mapped_layer
    with torch.no_grad():
        layer.weight[0, 0] = 5.0
    loading.give_back_weights(layer)
    assert layer.weight[0, 0] == 5.0


def test_weights_in_plain_memory_stay(tmp_path):
    layer = torch.nn.Linear(1000, 1000)
    torch.nn.init.ones_(layer.weight)
    loading.give_back_weights(layer)
    assert layer.weight.sum() == 1e6


def test_a_language_model_holds_no_weights_between_chunks(tmp_path):
    if not Path("/proc/self/smaps").exists():
        pytest.skip("only Linux says which files are mapped")
    directory = tiny_language_models.save(
        tmp_path / "llama", tiny_language_models.llama(), tiny_language_models.tokenizer()
    )
    model = Models("cpu").load(str(directory))
    for words, is_given_back in ((1, False), (loading.GIVE_BACK_AFTER, True)):
        texts = [f"{number} the cat" for number in range(words)]
        asked = [Likelihood(str(directory), text) for text in texts]
        assert len(list(model.answer(asked))) == words
        assert (resident(directory / "model.safetensors") == 0) == is_given_back
