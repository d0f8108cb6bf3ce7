"""Connections: which are decrypted, which are tunnelled, and which are never opened.

`server_connect` is the net below all other hooks: in replay no connection to a known host is ever opened,
whatever led there. What is no request by itself, and was open when replay mode was set, is closed.
"""

from __future__ import annotations

import logging
from typing import Protocol

from mitmproxy import connection, ctx, exceptions, http, tcp, tls
from mitmproxy.flow import Flow
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from rewind_proxy.canonical.model import Mode
from rewind_proxy.mitm import traffic
from rewind_proxy.mitm.upstreams import Upstreams, is_address
from rewind_proxy.wire import Host, HostTable

logger = logging.getLogger(__name__)


class Policy(Protocol):
    """What the connections need to know of the add-on they belong to."""

    hosts: HostTable
    upstreams: Upstreams

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        ...

    def answers_itself(self, server: connection.Server) -> bool:
        """Whether a connection leads to an answer of our own, and nowhere else."""
        ...

    def note_tunnel(self, name: str) -> None:
        """A host passes undecrypted."""
        ...

    def refuses_unknown(self, name: str) -> bool:
        """Whether an unknown host is to be kept out (and that it was)."""
        ...


class Connections:
    """The hooks of connections, below those of requests."""

    name = "rewind_connections"

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._session_of_client: dict[str, str] = {}

    def session_of(self, client: connection.Client) -> str:
        """The session that a client named by its user name at the proxy; else empty."""
        return self._session_of_client.get(client.id, "")

    def note_user(self, flow: http.HTTPFlow) -> None:
        """Take the credentials for the proxy out of a request; their user name is the client's session."""
        user = traffic.take_proxy_user(flow)
        if user:
            self._session_of_client[flow.client_conn.id] = user

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """Answer CONNECT to a known host ourselves, so that nothing is dialled for it, in eager mode too."""
        if flow.response is not None:
            return  # mitmproxy's `proxyauth` asks for a password first
        self.note_user(flow)
        host = self._policy.hosts.find(flow.request.host, flow.request.port)
        if host is None:
            if self._policy.refuses_unknown(flow.request.host):
                traffic.refuse_host(flow, flow.request.host)
            elif self._policy.mode == "replay" and is_address(flow.request.host):
                # The TLS inside may name a known host: an address is dialled only once that is clear.
                traffic.accept_tunnel(flow)
            return
        if host.auth_only and self._policy.mode != "replay":
            return
        traffic.accept_tunnel(flow)

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Decrypt known hosts without asking the provider for anything; tunnel all others untouched."""
        address = data.context.server.address
        if address is None:
            return  # a client that speaks TLS to the proxy itself
        sni = data.client_hello.sni
        host = self._find(sni, address)
        if host is None or (host.auth_only and self._policy.mode != "replay"):
            data.ignore_connection = True
            self._policy.note_tunnel(sni or address[0])
            return
        # TlsConfig comes after us and would open the provider's TLS first, to copy names of its certificate.
        raise exceptions.AddonHalt

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Say what to do when a client does not trust our CA."""
        name = data.conn.sni or ""
        if self._find(name, data.context.server.address) is not None:
            logger.warning(
                "rewind: the client refused the certificate for %s. Start it with `rewind run`, or set what "
                "`rewind env` prints (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, CODEX_CA_CERTIFICATE).",
                name or data.context.server.address,
            )

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """The net below all hooks: in replay no connection to a known host, or to what stands for one."""
        server = data.server
        if self._policy.mode != "replay" or self._policy.answers_itself(server):
            return
        if self._is_provider(server):
            server.error = "rewind: no live call in replay mode"
            logger.error("rewind: kept a connection to %s from being opened in replay mode", server.address)

    def tcp_start(self, flow: tcp.TCPFlow) -> None:
        """Close raw TCP to a known host in replay; to others it is a tunnel."""
        address = flow.server_conn.address
        if not self._is_provider(flow.server_conn):
            if address is not None:
                self._policy.note_tunnel(address[0])
        elif self._policy.mode == "replay":
            flow.kill()

    def tcp_message(self, flow: tcp.TCPFlow) -> None:
        """What was let through before replay mode was set goes no further."""
        if self._policy.mode == "replay" and self._is_provider(flow.server_conn):
            flow.messages[-1].content = b""
            self._shut(flow)

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        """The same for a WebSocket. Those that we serve see to it themselves."""
        if self._policy.mode != "replay" or self._policy.answers_itself(flow.server_conn):
            return
        if flow.websocket is not None and traffic.known_host(self._policy.hosts, flow) is not None:
            flow.websocket.messages[-1].drop()
            self._shut(flow)

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget the session name of a connection that is gone."""
        self._session_of_client.pop(client.id, None)

    def _shut(self, flow: Flow) -> None:
        address = flow.server_conn.address
        logger.warning("rewind: closed a connection to %s: replay mode was set", address and address[0])
        close_provider(flow)

    def _is_provider(self, server: connection.Server) -> bool:
        """Whether a connection leads to a known host, or to what stands for one."""
        address = server.address
        return self._find(server.sni, address) is not None or self._policy.upstreams.leads_to(address)

    def _find(self, name: str | None, address: tuple[str, int] | None) -> Host | None:
        port = address[1] if address else 443
        found = self._policy.hosts.find(name, port) if name else None
        return found or (self._policy.hosts.find(address[0], port) if address else None)


def close_provider(flow: Flow) -> None:
    """Close the provider's connection of a flow: mitmproxy handles that as if the provider had done so."""
    handler = ctx.master.addons.get("proxyserver").connections.get(flow.client_conn.id)
    transport = handler.transports.get(flow.server_conn) if handler else None
    if transport is not None and transport.writer is not None:
        transport.writer.close()
