"""Networks of our own with random weights, in a directory."""

import json

import torch
from models import tiny_language_models as tiny

from dialeval.networks import reply_network
from dialeval.networks.reply_network import NetworkConfig, make_network


def tiny_network(name, **sizes):
    torch.manual_seed(7)
    known = {"vocabulary": tiny.VOCABULARY, "units": 16, "layers": 1, "history_tokens": 20}
    config = NetworkConfig(start=3, turn=5, heads=2, **{**known, **sizes})
    model = make_network(name, config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def save_network(directory, name, turns=0):
    """Returns the path, as an address."""
    directory.mkdir(parents=True)
    reply_network.save(name, tiny_network(name), directory)
    tiny.tokenizer(closes=True).save_pretrained(directory)
    if turns:
        (directory / "dialogue.json").write_text(json.dumps({"turns": turns}))
    return str(directory)
