"""A client that names its session at the proxy, as one does whose `HTTPS_PROXY` holds a user name."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from proxy.calls import CHAT, OPENAI
from support.client import Client, Got
from support.proxies import Proxy


def credentials(name: str | bytes, password: str = "x") -> str:
    """`Proxy-Authorization` as clients make it from the user name in a proxy's URL."""
    user = name if isinstance(name, bytes) else name.encode()
    return "Basic " + base64.b64encode(user + f":{password}".encode()).decode()


def say_with_user(
    running: Proxy, prompt: str, name: str | bytes, headers: Mapping[str, str] | None = None
) -> Got:
    """Ask through a tunnel that was opened with a user name; without credentials when it is empty."""
    sent = {"Proxy-Authorization": credentials(name)} if name else {}
    with Client(running, OPENAI, tunnel_headers=sent) as client:
        return CHAT.send(client, prompt, headers=headers)
