"""One adapter per wire format, and the table of hosts and endpoints."""

from rewind_proxy.wire.adapter import Adapter
from rewind_proxy.wire.adapters import ADAPTERS
from rewind_proxy.wire.endpoints import Endpoint, classify
from rewind_proxy.wire.hosts import Host, HostTable

__all__ = ["ADAPTERS", "Adapter", "Endpoint", "Host", "HostTable", "classify"]
