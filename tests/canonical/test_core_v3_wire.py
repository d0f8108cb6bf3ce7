"""From a request on the wire to the interoperable hash, and its place in `canon` (DESIGN §12, §13)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import cast

import pytest

from rewind_proxy.canonical.core_v3 import core_request, core_request_hash, request_hash
from rewind_proxy.canonical.jcs import MAX_DEPTH, parse
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    JsonObject,
    JsonValue,
    Message,
    Operation,
    Role,
    Wire,
)
from rewind_proxy.cli.canon import canon, settings_reader
from rewind_proxy.errors import CoreHashError
from rewind_proxy.settings import Settings

SHA_OF_BRIEF = "sha256:" + hashlib.sha256(b"Be  brief.\n").hexdigest()
KNOWN = "faba1bab0b866b412ff8992582fc2a4bc0be5864895e9790dc4e4215fdb3301d"


def text(value: str) -> JsonObject:
    return {"type": "text", "text": value}


def said(role: Role, *parts: JsonObject) -> Message:
    return Message(role, parts)


def wired(
    *messages: Message, wire: Wire = "anthropic", operation: Operation = "generate", **params: JsonValue
) -> CanonicalRequest:
    named: JsonObject = {"model": "m"}
    return CanonicalRequest(wire, operation, messages, (), named | params)


def core(request: CanonicalRequest, host: str = "api.anthropic.com") -> JsonObject:
    found = core_request(request, host)
    assert found is not None
    return found


def sent(url: str, body: JsonValue) -> JsonObject:
    """What `canon` prints for a request."""
    document: JsonObject = {"method": "POST", "url": url, "headers": {}, "body": body}
    return canon(document, settings_reader(Settings(store=Path("/store"))), "a test")


class TestProvider:
    @pytest.mark.parametrize(
        ("host", "wire", "provider"),
        [
            ("api.openai.com", "responses", "openai"),
            ("eu.api.openai.com", "chat_completions", "openai"),
            ("chatgpt.com", "anthropic", "openai"),
            ("api.anthropic.com", "anthropic", "anthropic"),
            ("api.anthropic.com", "chat_completions", "anthropic"),
            ("api.anthropic.com:443", "chat_completions", "anthropic"),
            ("generativelanguage.googleapis.com", "gemini", "google"),
            ("generativelanguage.googleapis.com", "chat_completions", "google"),
            ("europe-west1-aiplatform.googleapis.com", "anthropic", "google"),
            ("cloudcode-pa.googleapis.com", "gemini", "google"),
        ],
    )
    def test_by_host(self, host: str, wire: Wire, provider: str) -> None:
        """The three providers go by their hosts, whatever dialect they are spoken to in."""
        assert core(wired(wire=wire), host)["provider"] == provider

    @pytest.mark.parametrize("host", ["openrouter.ai", "localhost:4000", "[::1]:80", "notopenai.com"])
    @pytest.mark.parametrize(
        ("wire", "provider"),
        [
            ("chat_completions", "openai"),
            ("responses", "openai"),
            ("anthropic", "anthropic"),
            ("gemini", "google"),
        ],
    )
    def test_by_wire(self, host: str, wire: Wire, provider: str) -> None:
        """Any other host goes by the wire it speaks, which names the client that is in use."""
        assert core(wired(wire=wire), host)["provider"] == provider

    @pytest.mark.parametrize("host", ["api.openai.com", "api.cohere.com"])
    def test_generic(self, host: str) -> None:
        """What no adapter understands has none."""
        assert core_request(wired(wire="generic"), host) is None
        assert core_request_hash(wired(wire="generic"), host) is None

    @pytest.mark.parametrize("operation", ["count_tokens", "embed"])
    def test_no_generation(self, operation: Operation) -> None:
        """Token counts and embeddings have none."""
        assert core_request(wired(operation=operation), "api.anthropic.com") is None


class TestMessages:
    def test_known_value(self) -> None:
        """One plain text is a string, so the known value comes out of a request on the wire."""
        request = wired(said("user", text("summarise this")), model="claude-sonnet-5")
        assert core(request) == {
            "kind": "model",
            "provider": "anthropic",
            "model_id": "claude-sonnet-5",
            "messages": [{"role": "user", "content": "summarise this"}],
        }
        assert core_request_hash(request, "api.anthropic.com") == KNOWN

    def test_parts(self) -> None:
        """Anything but one plain text is the canonical parts; no part is the empty text."""
        parts = [text("a"), text("b")]
        call: JsonObject = {"type": "tool_call", "id": "toolu_1", "name": "ls", "arguments": {}}
        cited = text("a") | {"citations": [1]}
        request = wired(said("user", *parts), said("assistant", call), said("user", cited), said("assistant"))
        assert [
            cast("JsonObject", each)["content"] for each in cast("list[JsonValue]", core(request)["messages"])
        ] == [
            parts,
            [call],
            [cited],
            "",
        ]

    def test_linked_ids(self) -> None:
        """A call and its result keep their link when their id changes."""

        def turn(call: str, result: str) -> str | None:
            return core_request_hash(
                wired(
                    said("assistant", {"type": "tool_call", "id": call, "name": "ls", "arguments": {}}),
                    said("tool", {"type": "tool_result", "id": result, "content": [text("a")]}),
                ),
                "api.anthropic.com",
            )

        assert turn("toolu_1", "toolu_1") == turn("toolu_2", "toolu_2")
        assert turn("toolu_1", "toolu_1") != turn("toolu_1", "toolu_2")

    def test_system_prompt(self) -> None:
        """The leading system message becomes the digest of its text as it is, and leaves the messages."""
        request = wired(said("system", text("Be  brief.\n")), said("user", text("hi")))
        assert core(request)["system_prompt_sha"] == SHA_OF_BRIEF
        assert core(request)["messages"] == [{"role": "user", "content": "hi"}]

    def test_system_blocks(self) -> None:
        """Several blocks are joined by line ends."""
        request = wired(said("system", text("Be  brief."), text("")))
        assert core(request)["system_prompt_sha"] == SHA_OF_BRIEF

    def test_system_of_more_than_text(self) -> None:
        """What is no text in it stays a system message, so that it still counts."""
        media: JsonObject = {"type": "media", "media_type": "image/png", "data": "AAAA"}
        request = wired(said("system", text("Be  brief.\n"), media), said("user", text("hi")))
        assert core(request)["system_prompt_sha"] == SHA_OF_BRIEF
        assert cast("list[JsonValue]", core(request)["messages"])[0] == {"role": "system", "content": [media]}

    @pytest.mark.parametrize("messages", [(), (said("system"),), (said("user", text("hi")),)])
    def test_no_system_prompt(self, messages: tuple[Message, ...]) -> None:
        """Without a system prompt there is no digest, not one of nothing."""
        assert "system_prompt_sha" not in core(wired(*messages))

    def test_later_system_messages(self) -> None:
        """Only the leading one is the system prompt."""
        request = wired(said("user", text("hi")), said("system", text("Be  brief.\n")))
        assert "system_prompt_sha" not in core(request)
        assert cast("list[JsonValue]", core(request)["messages"])[1] == {
            "role": "system",
            "content": "Be  brief.\n",
        }


class TestParameters:
    def test_all(self) -> None:
        """These parameters go in under their neutral names; no other does, and null is absent."""
        params: JsonObject = {
            "response_format": {"type": "json_object"},
            "temperature": 0.5,
            "top_p": 1,
            "top_k": 40,
            "seed": 7,
            "max_tokens": 100,
            "tool_choice": "auto",
        }
        others: JsonObject = {"model": "m", "stop": ["x"], "user": "u", "stream": True}
        request = CanonicalRequest("responses", "generate", params=params | others)
        assert core(request) == params | {
            "kind": "model",
            "provider": "anthropic",
            "model_id": "m",
            "messages": [],
        }
        assert "seed" not in core(wired(seed=None))

    def test_tools(self) -> None:
        """Canonical tools are the tool schemas, where there are any."""
        tool: JsonObject = {"name": "ls", "parameters": {"type": "object"}}
        request = CanonicalRequest("anthropic", "generate", (), (tool,), {"model": "m"})
        assert core(request)["tool_schemas"] == [tool]
        assert "tool_schemas" not in core(wired())

    def test_no_model(self) -> None:
        """A request that names no model has no `model_id`, and a hash."""
        request = CanonicalRequest("chat_completions", "generate")
        assert core(request) == {"kind": "model", "provider": "anthropic", "messages": []}
        assert core_request_hash(request, "api.anthropic.com") == request_hash(core(request))


class TestOddValues:
    @pytest.mark.parametrize(
        ("token", "same"), [("9007199254740993", 2.0**53), ("123456789012345678901", 123456789012345680000)]
    )
    def test_big_integers(self, token: str, same: float) -> None:
        """An integer that the reader put in a tag is the double that JavaScript reads."""
        for value in (parse(token), parse(f'[{{"x":{token}}}]')):
            plain: JsonValue = same if not isinstance(value, list) else [{"x": same}]
            assert core_request_hash(wired(seed=value), "h") == core_request_hash(wired(seed=plain), "h")

    @pytest.mark.parametrize(
        "token", ["1E400", "-1E400", "NaN", "Infinity", "1" * 5000, r'"\ud800"', r'{"\ud800":1}']
    )
    def test_without_a_hash(self, token: str) -> None:
        """What is no finite double and no Unicode gives no hash and no error."""
        assert core_request_hash(wired(seed=parse(token)), "h") is None
        assert core_request_hash(wired(model=parse(token)), "h") is None

    def test_lone_surrogate_in_the_system_prompt(self) -> None:
        """A system prompt that cannot be written as UTF-8 has no digest, so the request has no hash."""
        request = wired(said("system", text("a\ud800")))
        with pytest.raises(CoreHashError, match="system prompt"):
            core_request(request, "h")
        assert core_request_hash(request, "h") is None

    def test_deep(self) -> None:
        """All that the reader takes is hashed; what is deeper still gives no hash and no error."""
        value = parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)
        assert core_request_hash(wired(seed=value), "h") is not None
        for _ in range(100_000):
            value = [value]
        assert core_request_hash(wired(seed=value), "h") is None
        while isinstance(value, list) and value:  # or freeing it recurses as deeply
            value = value.pop()


class TestCanon:
    def test_known_value(self) -> None:
        """`canon` prints the hash that the library gives for the same request."""
        body: JsonObject = {
            "model": "claude-sonnet-5",
            "messages": [{"role": "user", "content": "summarise this"}],
            "stream": True,
        }
        assert sent("https://api.anthropic.com/v1/messages", body)["core_v3"] == KNOWN

    def test_one_conversation_on_two_wires(self) -> None:
        """One conversation at one provider has one hash, whichever of its APIs it goes through."""
        chat = sent(
            "https://api.openai.com/v1/chat/completions",
            {
                "model": "m",
                "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
            },
        )
        responses = sent(
            "https://api.openai.com/v1/responses", {"model": "m", "instructions": "s", "input": "u"}
        )
        assert isinstance(chat["core_v3"], str)
        assert chat["core_v3"] == responses["core_v3"]

    @pytest.mark.parametrize(
        ("url", "body"),
        [
            ("https://api.anthropic.com/v1/messages/count_tokens", {"model": "m", "messages": []}),
            ("https://api.openai.com/v1/embeddings", {"model": "m", "input": "x"}),
            ("https://api.openai.com/v1/images/generations", {"model": "m", "prompt": "x"}),
            ("https://api.anthropic.com/v1/messages", "no JSON"),
            ("https://api.anthropic.com/api/event_logging/batch", {}),
        ],
    )
    def test_no_generation(self, url: str, body: JsonValue) -> None:
        """What is no generation, or cannot be read as one, has null there."""
        assert sent(url, body)["core_v3"] is None

    def test_is_json(self) -> None:
        """The result is JSON with the hash as bare hex."""
        shown = json.loads(
            json.dumps(sent("https://api.openai.com/v1/responses", {"model": "m", "input": "u"}))
        )
        assert len(bytes.fromhex(shown["core_v3"])) == 32
