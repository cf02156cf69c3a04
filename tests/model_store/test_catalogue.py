"""The catalogue: what dialeval knows by name."""

from __future__ import annotations

import re

import pytest
import typer

from dialeval.cli.app import app
from dialeval.errors import UsageError
from dialeval.metric import option_fields
from dialeval.model_store.catalogue import CATALOGUE, Hub, Package, Wheel, find_entry
from dialeval.model_store.locate import fingerprint, locate
from dialeval.model_store.presets import PRESETS, TRAINED, preset_model, preset_models
from dialeval.model_store.store import wheel_fingerprint
from dialeval.registry import METRICS, make_metric

WHEELS = [entry for entry in CATALOGUE.values() if isinstance(entry.source, Wheel)]


def test_the_default_preset_needs_no_hub() -> None:
    sources = [CATALOGUE[name].source for name in preset_models("default")]
    assert all(isinstance(source, Wheel | Package) for source in sources)


def test_every_preset_names_models_of_the_catalogue_and_each_once() -> None:
    for preset in PRESETS:
        names = preset_models(preset)
        assert set(names) <= set(CATALOGUE)
        assert len(names) == len(set(names))


def test_a_misspelt_preset_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'paper'"):
        preset_models("papers")


def test_default_models_stand_in_one_place() -> None:
    """A metric says what it uses a model for; which model that is, the preset says."""
    for name in METRICS.names():
        for field in option_fields(METRICS.get(name)):
            if use := field.metadata["use"]:
                served = {**PRESETS["paper"], **PRESETS["default"]}
                assert field.default == served.get(use, "")
            else:
                assert field.default not in CATALOGUE, f"{name}: {field.name}"


TRAINED_HERE = {
    "ruber": (2, "94c3b978"),
    "bert-ruber": (2, "34942e0c"),
    "pone": (3, "fa9e7e0e"),
    "mme-fluency": (2, "6c453e7d"),
    "mme-relevance": (2, "032ba9a2"),
    "mme-topic": (2, "ba54148e"),
    "mme-engagement": (3, "656472c1"),
    "mme-specificity": (3, "b969e29c"),
    "grade": (2, "15e44b40"),
    "deb": (2, "4ef68c1d"),
    "maude": (2, "a91c910c"),
    "predictive-engage": (2, "4b7f4141"),
}


@pytest.mark.parametrize("name", TRAINED_HERE)
def test_a_part_that_was_trained_again_makes_another_version_of_its_metric(
    embedded_models: None, name: str
) -> None:
    """Write down the new fingerprint with the next version, and both in the CHANGELOG."""
    metric = make_metric(name)
    (part,) = set(metric.models().values())
    assert (metric.version, fingerprint(locate(part))[:8]) == TRAINED_HERE[name]


COMMANDS = [command for preset in TRAINED.values() for command in preset.values()]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_preset_lacks_is_trained_by_a_command_that_exists(command: str) -> None:
    verb, words = typer.main.get_command(app), command.split()[1:]
    while words and not words[0].startswith("-"):
        verb = verb.commands[words.pop(0)]  # type: ignore[attr-defined]
    assert {word for word in words if word.startswith("-")} <= {
        flag for parameter in verb.params for flag in parameter.opts
    }


def test_a_use_that_a_preset_does_not_serve_is_said() -> None:
    assert preset_model("paper", "nli") == "roberta-large-mnli"
    with pytest.raises(UsageError, match="no model for 'telepathy'"):
        preset_model("default", "telepathy")


@pytest.mark.parametrize("entry", WHEELS, ids=lambda entry: entry.name)
def test_every_file_of_a_wheel_has_a_sha256_and_a_harmless_name(entry) -> None:
    for file in entry.source.files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert not file.name.startswith("/")
        assert ".." not in file.name.split("/")


def test_signatures_show_the_first_digits_of_the_weight_file() -> None:
    # models.md lists the sha256 of the GGUF and of MiniLM's safetensors.
    assert wheel_fingerprint(CATALOGUE["smollm2-135m"])[:8] == "b179c952"
    assert wheel_fingerprint(CATALOGUE["minilm-l6"])[:8] == "53aa5117"


def test_a_hub_model_is_found_by_its_short_name_and_by_its_repository() -> None:
    entry = find_entry("openai-community/gpt2")
    assert entry is CATALOGUE["gpt2"]
    assert isinstance(entry.source, Hub)
    assert find_entry("nobody/nothing") is None


@pytest.mark.parametrize(
    "name",
    ["gpt-4o", "gpt-3.5-turbo", "o3-mini", "claude-3-5-haiku-latest", "gemini-2.0-flash",
     "mistral-large-latest"],
)  # fmt: skip
def test_a_model_that_people_know_from_a_server_is_named_with_its_server(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(name)
    assert f"openai:URL#{name}" in str(caught.value)
    assert "Did you mean" not in str(caught.value)


def test_a_slip_in_the_name_of_a_model_of_ours_is_still_told() -> None:
    with pytest.raises(UsageError, match="Did you mean 'gpt2'"):
        locate("gpt-2")
