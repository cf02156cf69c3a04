"""Talking to a live chatbot: what to ask, asking it, keeping the answers, and what they show."""

from dialeval.probe.directory import Probe, open_probe
from dialeval.probe.probing import probe
from dialeval.probe.summary import ProbeSummary

__all__ = ["Probe", "ProbeSummary", "open_probe", "probe"]
