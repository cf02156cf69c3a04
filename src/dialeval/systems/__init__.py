"""Chatbots under test: what each kind of address leads to, behind one small protocol."""

from dialeval.systems.address import open_system
from dialeval.systems.system import Asking, BatchedSystem, ReplyError, System

__all__ = ["Asking", "BatchedSystem", "ReplyError", "System", "open_system"]
