"""The client of `rewind demo`: a small agent, with the standard library only, that knows nothing of Rewind.

`agent NOTES QUESTION…` reads HTTPS_PROXY, SSL_CERT_FILE, OPENAI_API_KEY and DEPLOY_TOKEN, streams its answers
to standard output, runs the commands that the model asks for, and writes to NOTES what it saw of each call. A
question that starts with `--effort=LEVEL ` is asked with that reasoning effort. Like real agents it puts the
folder, the time and a session id into its prompt, and asks for a title first. Exit status 1 when a call was
refused.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HOST = "api.openai.com"
PATH = "/v1/chat/completions"
TOOL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command in the working directory.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}
_EFFORT = re.compile(r"--effort=(\w+) ")

Json = dict[str, Any]  # JSON as the standard library gives it


class RefusedError(Exception):
    """The provider, or who stands for it, answered with an error."""


class Agent:
    """One connection to the provider through the proxy, and notes of each call."""

    def __init__(self) -> None:
        proxy = urlsplit(os.environ["HTTPS_PROXY"])
        self.connection = http.client.HTTPSConnection(
            str(proxy.hostname), proxy.port, context=ssl.create_default_context(), timeout=60
        )
        self.connection.set_tunnel(HOST)
        self.calls: list[Json] = []
        self.tls: list[str] = []
        self.session = str(uuid.uuid4())

    def ask(self, question: str) -> None:
        """One conversation: a title, then turns until the model asks for no more commands."""
        chosen = _EFFORT.match(question)
        question = question[chosen.end() :] if chosen else question
        effort = chosen[1] if chosen else "medium"
        say("you", question)
        messages: list[Json] = [message("system", "Name this conversation."), message("user", question)]
        title = self.whole("title", {"model": "gpt-fake-mini", "messages": messages})
        say("title", title.partition(" (")[0])
        messages = [message("system", self.instructions()), message("user", question)]
        for turn in range(1, 9):
            body = {"model": "gpt-fake", "messages": messages, "tools": [TOOL], "reasoning_effort": effort}
            answer = self.streamed(f"turn {turn}", body | {"stream": True})
            messages.append(answer)
            for call in answer.get("tool_calls", ()):
                command = json.loads(call["function"]["arguments"])["command"]
                say("runs", command)
                done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S602  # as agents do
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout})
            if "tool_calls" not in answer:
                return

    def instructions(self) -> str:
        """What agents tell their model about the machine; the second run has another value for each."""
        return (
            "You are a careful assistant.\n"
            f"<cwd>{Path.cwd()}</cwd>\n"
            f"<current_datetime>{datetime.now(UTC).isoformat()}</current_datetime>\n"
            f"Session: {self.session}\n"
            f"To deploy, use the token {os.environ['DEPLOY_TOKEN']} and no other."
        )

    def whole(self, name: str, body: Json) -> str:
        """An answer that comes in one piece."""
        response, noted = self.send(name, body)
        text: str = json.loads(response.read())["choices"][0]["message"]["content"]
        noted["seconds"] = time.monotonic() - noted.pop("begun")
        return text

    def streamed(self, name: str, body: Json) -> Json:
        """An answer that comes as events, its text printed as it comes; as an assistant message."""
        response, noted = self.send(name, body)
        text = ""
        calls: list[Json] = []
        for delta in deltas(response):
            if delta.get("content"):
                if not text:
                    say("model", "")
                more(delta["content"])
                text += delta["content"]
            for part in delta.get("tool_calls") or ():
                if "id" in part:
                    calls.append(part)
                else:
                    calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        noted["seconds"] = time.monotonic() - noted.pop("begun")
        if not calls:
            return {"role": "assistant", "content": text}
        return {"role": "assistant", "content": text or None, "tool_calls": calls}

    def send(self, name: str, body: Json) -> tuple[http.client.HTTPResponse, Json]:
        """Send a request, and note the head of its answer. Raises `RefusedError`."""
        noted: Json = {"name": name, "begun": time.monotonic()}
        key = f"Bearer {os.environ['OPENAI_API_KEY']}"
        self.connection.request(
            "POST", PATH, json.dumps(body), {"Content-Type": "application/json", "Authorization": key}
        )
        if not self.tls:
            assert isinstance(self.connection.sock, ssl.SSLSocket)
            certificate: Json = self.connection.sock.getpeercert() or {}
            issuer = {key: value for ((key, value),) in certificate.get("issuer", ())}
            self.tls = [self.connection.sock.version() or "", issuer.get("commonName", "")]
        response = self.connection.getresponse()
        noted |= {key: response.headers.get(f"x-rewind-{key}", "") for key in ("tier", "note")}
        self.calls.append(noted)
        if response.status != 200:
            noted["seconds"] = time.monotonic() - noted.pop("begun")
            raise RefusedError(f"{response.status} {json.loads(response.read())['error']['message']}")
        return response, noted


def deltas(response: http.client.HTTPResponse) -> Iterator[Json]:
    """The deltas of a streamed chat completion."""
    for line in response:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[len(b"data: ") :])["choices"]:
                yield choice["delta"]
    response.read()  # reading by lines leaves a body with a length open at its end


def message(role: str, content: str) -> Json:
    """A message of text."""
    return {"role": role, "content": content}


def say(who: str, text: str) -> None:
    """Start a paragraph: who speaks in eight columns, then the text."""
    sys.stdout.write(f"\n{who:<8}")
    more(text)


def more(text: str) -> None:
    """Go on with the paragraph; shown at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> None:
    """Ask every question; a refused one does not keep the next from being asked."""
    agent = Agent()
    status = 0
    for question in sys.argv[2:]:
        try:
            agent.ask(question)
        except RefusedError as error:
            say("error", str(error).partition("\n")[0])
            status = 1
    notes = {"calls": agent.calls, "tls": agent.tls}
    Path(sys.argv[1]).write_text(json.dumps(notes), encoding="utf-8")
    sys.exit(status)


if __name__ == "__main__":
    main()
