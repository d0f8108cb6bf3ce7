"""Rewind: record any LLM client once and replay it for ever, offline."""

__version__ = "0.1.0"
