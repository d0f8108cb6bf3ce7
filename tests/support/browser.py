"""A headless Chromium with one page, driven over its DevTools protocol: what a person at a browser does."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import urlopen

import wsproto
from wsproto import events

_DEVTOOLS = re.compile(r"DevTools listening on ws://(\S+?)/")
_POLL = 0.05
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions "
    "--disable-background-networking --disable-component-update --disable-sync --no-proxy-server "
    "--window-size=1400,900 --remote-debugging-port=0"
).split()


class Page:
    """The page of a browser."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self._connection = socket.create_connection((split.hostname or "", split.port or 0), timeout=30)
        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self._connection.sendall(self._ws.send(events.Request(host=split.netloc, target=split.path)))
        self._sent = 0
        self._arrived: list[dict[str, Any]] = []
        self._pieces: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._sent += 1
        if self._sent == 1:
            while not self._read(events.AcceptConnection):
                pass
        message = json.dumps({"id": self._sent, "method": method, "params": parameters})
        self._connection.sendall(self._ws.send(events.TextMessage(message)))
        while True:
            self._read()
            for answer in self._arrived:
                if answer.get("id") == self._sent:
                    self._arrived.clear()
                    assert "error" not in answer, answer["error"]
                    result: dict[str, Any] = answer["result"]
                    return result

    def _read(self, wanted: type[object] | None = None) -> bool:
        data = self._connection.recv(1 << 20)
        assert data, "the browser is gone"
        self._ws.receive_data(data)
        found = False
        for event in self._ws.events():
            found = found or (wanted is not None and isinstance(event, wanted))
            if isinstance(event, events.Ping):
                self._connection.sendall(self._ws.send(event.response()))
            elif isinstance(event, events.TextMessage):
                self._pieces.append(event.data)
                if event.message_finished:
                    self._arrived.append(json.loads("".join(self._pieces)))
                    self._pieces.clear()
        return found

    def open(self, url: str) -> None:
        """Go somewhere."""
        self._call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """What an expression of JavaScript gives."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = 15.0) -> Any:
        """What an expression gives once that is true; fails with what the page says."""
        deadline = time.monotonic() + seconds
        while not (found := self.evaluate(script)):
            assert time.monotonic() < deadline, f"never {script}:\n{self.text()}"
            time.sleep(_POLL)
        return found

    def text(self) -> str:
        """All that can be read."""
        return str(self.evaluate("document.body.innerText"))

    def click(self, selector: str, text: str = "") -> None:
        """Click on the first element of a selector, or on the first that says a text."""
        all_of = f"[...document.querySelectorAll({json.dumps(selector)})]"
        found = f"{all_of}.find(each => each.innerText.includes({json.dumps(text)}))"
        self.wait_for(f"!!{found}")
        self.evaluate(f"{found}.scrollIntoView({{block: 'center'}})")
        place = self.evaluate(
            f"(box => [box.x + box.width / 2, box.y + box.height / 2])({found}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )

    def write(self, text: str) -> None:
        """Type a text where the cursor is."""
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"Enter": 13, "Escape": 27}[key]
        sent = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": code,
            "text": "\r" if key == "Enter" else "",
        }
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, **sent)

    def screenshot(self, file: Path) -> None:
        """What it looks like, as a PNG."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium(program: str, folder: Path) -> Iterator[Page]:
    """A browser that keeps everything in a folder."""
    log = folder / "chromium.log"
    argv = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while not (found := _DEVTOOLS.search(log.read_text(errors="replace"))):
            assert process.poll() is None, f"the browser ended:\n{log.read_text(errors='replace')}"
            assert time.monotonic() < deadline, "the browser never started"
            time.sleep(_POLL)
        with urlopen(f"http://{found[1]}/json/list") as answer:
            target = next(each for each in json.loads(answer.read()) if each["type"] == "page")
        with Page(target["webSocketDebuggerUrl"]) as page:
            yield page
    finally:
        process.terminate()
        process.wait(20)
