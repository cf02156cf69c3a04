"""Talking to a live chatbot: what to ask, asking it, keeping the answers, and what they show."""

from dialeval.callable_package import make_callable
from dialeval.probe.directory import Probe, open_probe
from dialeval.probe.probing import ProbeSummary, probe

__all__ = ["Probe", "ProbeSummary", "open_probe", "probe"]

make_callable(__name__, "dialeval.verbs:probe")
