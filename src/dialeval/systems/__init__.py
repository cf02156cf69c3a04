"""Chatbots under test: what each kind of address leads to, behind one small protocol."""

from dialeval.chat_http.asking import Asking, ReplyError
from dialeval.systems.address import open_system
from dialeval.systems.system import BatchedSystem, System

__all__ = ["Asking", "BatchedSystem", "ReplyError", "System", "open_system"]
