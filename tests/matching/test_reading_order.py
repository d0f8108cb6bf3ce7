"""A reader remembers what it read; what it makes of a request does not depend on it."""

from __future__ import annotations

import hashlib
import json
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from rewind_proxy.canonical.jcs import dumps
from rewind_proxy.canonical.model import JsonObject, JsonValue, MatchSettings
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

HOSTS = HostTable({})
SECRET = "Zk9" * 9
UUIDS = [str(UUID(int=number << 64 | 7)) for number in (3, 5)]
TEXTS = (
    "Read it.",
    "⟨cwd⟩ and \ue000 0\ue000 are written here",
    f"runs {UUIDS[0]} and {UUIDS[1]}, then {UUIDS[0]}",
    f"{UUIDS[1]} at 2026-03-04 10:11:12 in /home/ann/app/src/a.py",
    f"the key is {SECRET}",
    "half a character \ud83d, and 😀",
    "",
)
FOLDERS = ("/home/ann/app", "/builds/7/app")
WHERE: dict[str, tuple[str, str]] = {
    "chat": ("api.openai.com", "/v1/chat/completions"),
    "responses": ("api.openai.com", "/v1/responses"),
    "anthropic": ("api.anthropic.com", "/v1/messages"),
    "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/g:generateContent"),
}


def said(wire: str, role: str, text: str) -> JsonObject:
    """A message of a wire."""
    if wire == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    if wire == "responses":
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"role": role, "content": [{"type": "text", "text": text}]}


def called(wire: str, number: int, text: str) -> list[JsonValue]:
    """A tool call and its result."""
    arguments: JsonObject = {"path": f"/home/ann/app/{number}", "note": text}
    source, name = json.dumps(arguments), "read"
    call = f"call_{number}"
    if wire == "gemini":
        return [
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": arguments}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": text}}}]},
        ]
    if wire == "responses":
        return [
            {"type": "function_call", "call_id": call, "name": name, "arguments": source},
            {"type": "function_call_output", "call_id": call, "output": text},
        ]
    if wire == "chat":
        made: JsonObject = {"id": call, "type": "function", "function": {"name": name, "arguments": source}}
        return [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": call, "content": text},
        ]
    return [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": call, "name": name, "input": arguments}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]},
    ]


def body_of(wire: str, folder: str, turns: list[tuple[int, int]], model: str) -> JsonObject:
    """A body of some turns: (kind, text)."""
    items: list[JsonValue] = []
    for number, (kind, text) in enumerate(turns):
        if kind < 2:
            items.append(said(wire, "user" if kind else "assistant", TEXTS[text]))
        else:
            items += called(wire, number % 3, TEXTS[text])
    system = f"<cwd>{folder}</cwd>\nToday is 2026-03-04."
    tools: list[JsonValue] = [
        {"type": "function", "name": name, "parameters": {"type": "object"}, "description": "d" * 60}
        for name in ("read", "write")
    ]
    if wire == "gemini":
        return {"contents": items, "systemInstruction": {"parts": [{"text": system}]}}
    if wire == "responses":
        return {"model": model, "instructions": system, "input": items, "tools": tools}
    if wire == "chat":
        return {"model": model, "messages": [said(wire, "system", system), *items], "tools": tools}
    plain: list[JsonValue] = [
        {"name": name, "input_schema": {"type": "object"}} for name in ("read", "write")
    ]
    return {"model": model, "max_tokens": 9, "system": system, "messages": items, "tools": plain}


@st.composite
def requests(draw: st.DrawFn) -> list[RawRequest]:
    """Requests of a few sessions, each a beginning of its history, in any order."""
    histories = [
        draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, len(TEXTS) - 1)), min_size=2, max_size=9))
        for _ in range(2)
    ]
    made: list[RawRequest] = []
    for _ in range(draw(st.integers(2, 8))):
        wire = draw(st.sampled_from(tuple(WHERE)))
        history = draw(st.sampled_from(histories))
        body = body_of(
            wire, draw(st.sampled_from(FOLDERS)), history[: draw(st.integers(1, len(history)))],
            draw(st.sampled_from(("m1", "m2"))),
        )  # fmt: skip
        host, path = WHERE[wire]
        headers = [("content-type", "application/json")]
        if draw(st.booleans()):
            headers.append(("authorization", f"Bearer {SECRET}"))
        made.append(RawRequest("POST", host, 443, path, tuple(headers), json.dumps(body).encode()))
    return made


def reader(match: MatchSettings) -> RequestReader:
    """A reader that has read nothing."""
    return RequestReader(HOSTS, Redactor(), match, 2**20)


def read(by: RequestReader, request: RawRequest) -> Reading:
    """What a reader makes of a request."""
    host = HOSTS.find(request.host, 443)
    assert host is not None
    return by.read(request, host)


def facts(reading: Reading) -> tuple[object, ...]:
    """All that is known of a request."""
    normalised = reading.normalised
    assert normalised is not None
    assert reading.canonical is not None
    return (
        reading.exact,
        normalised.fingerprint,
        normalised.links,
        normalised.rules,
        normalised.slots,
        normalised.taken,
        normalised.ignored,
        dumps(normalised.view),
        dumps(reading.body),
        dumps(reading.canonical.to_json()),
        reading.record,
        reading.redactions,
        reading.preview,
    )


MATCH = st.sampled_from((MatchSettings(), MatchSettings(tail_n=2), MatchSettings(paths="off", ignore=())))


@settings(max_examples=60)
@given(requests(), MATCH)
def test_the_order_of_requests_does_not_matter(made: list[RawRequest], match: MatchSettings) -> None:
    """A reader that has read others before says of each request what one that has read nothing says."""
    experienced = reader(match)
    for request in [*made, *reversed(made)]:
        assert facts(read(experienced, request)) == facts(read(reader(match), request))


@settings(max_examples=60)
@given(requests(), MATCH)
def test_the_view_is_what_was_hashed(made: list[RawRequest], match: MatchSettings) -> None:
    """The chain of digests and the fingerprint follow from the view, whether it was put together or kept."""
    experienced = reader(match)
    for request in made:
        normalised = read(experienced, request).normalised
        assert normalised is not None
        view = normalised.view
        messages, params = view["messages"], view["params"]
        assert isinstance(messages, list)
        leading = bool(messages and isinstance(messages[0], dict) and messages[0]["role"] == "system")
        head: JsonObject = {
            "operation": view["operation"],
            "system": messages[0] if leading else None,
            "tools": view["tools"],
        }
        link = hashlib.sha256(b"rewind-norm/1\0" + dumps(head)).digest()
        links = [link.hex()]
        for message in messages[leading:]:
            link = hashlib.sha256(link + hashlib.sha256(dumps(message)).digest()).digest()
            links.append(link.hex())
        last = hashlib.sha256(dumps(params)).digest()
        assert normalised.links == tuple(links)
        assert normalised.fingerprint == hashlib.sha256(b"rewind-norm/1\0" + link + last).hexdigest()
        assert [slot.placeholder for slot in normalised.slots] == [
            f"{slot.placeholder}" for slot in normalised.slots if slot.placeholder in dumps(view).decode()
        ]
