"""A fake provider for the demo and the tests: four wires, whole and streamed, with tool calls."""

from rewind_proxy.cli.provider.endpoints import Answer
from rewind_proxy.cli.provider.server import HOSTS, Behaviour, Exchange, FakeProvider, Request

__all__ = ["HOSTS", "Answer", "Behaviour", "Exchange", "FakeProvider", "Request"]
