"""Talking to a live chatbot: what to ask, asking it, keeping the answers, and what they show."""

from dialeval.probe.directory import Probe, open_probe
from dialeval.probe.probing import ProbeSummary, probe

__all__ = ["Probe", "ProbeSummary", "open_probe", "probe"]
