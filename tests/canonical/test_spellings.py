"""Spellings of one thing, and what only looks like one of another (DESIGN §5, steps 0, 1, 3, 4)."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from canonical.readings import CHAT, GEMINI, MESSAGES, RESPONSES, read, same
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.reasons import aspects, reasons

OPENROUTER = "openrouter.ai/api/v1/chat/completions"
MISTRAL = "api.mistral.ai/v1/chat/completions"
VERTEX = "aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict"


def rules(url: str, a: JsonObject, b: JsonObject) -> list[str]:
    """The rules that are named when the one request answers the other."""
    one, two = read(url, a), read(url, b)
    return [*reasons(aspects(one, 0), one.record, aspects(two, 0), two).rules()]


def chat(*messages: JsonObject, **more: JsonValue) -> JsonObject:
    """A request with messages, as Chat Completions and Anthropic have it."""
    return {"messages": [*messages], **more}


def user(content: JsonValue, **more: JsonValue) -> JsonObject:
    """A user's message."""
    return {"role": "user", "content": content, **more}


def said(content: JsonValue, **more: JsonValue) -> JsonObject:
    """A conversation in which the model has said something."""
    return chat(user("q"), {"role": "assistant", "content": content, **more}, user("go on"))


# Media -------------------------------------------------------------------------------------------------

BYTES = bytes(range(256)) + b"\xfb\xff"
PLAIN = base64.b64encode(BYTES).decode()
SPELT = {
    "without padding": PLAIN.rstrip("="),
    "in lines": "\r\n".join(PLAIN[at : at + 76] for at in range(0, len(PLAIN), 76)),
    "for URLs": base64.urlsafe_b64encode(BYTES).decode(),
    "for URLs, without padding": base64.urlsafe_b64encode(BYTES).decode().rstrip("="),
}
OTHER = base64.b64encode(BYTES[:-1] + b"\0").decode()


def image_url(data: str, kind: str = "image/png") -> JsonObject:
    return chat(user([{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}]))


def image(data: str, kind: str = "image/png") -> JsonObject:
    source: JsonObject = {"type": "base64", "media_type": kind, "data": data}
    return chat(user([{"type": "image", "source": source}]))


def inline(data: str, kind: str = "image/png") -> JsonObject:
    return {"contents": [{"parts": [{"inlineData": {"mimeType": kind, "data": data}}]}]}


def screen(data: str) -> JsonObject:
    output: JsonObject = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{data}"}
    return {"input": [{"type": "computer_call_output", "call_id": "c", "output": output}]}


def drawn(data: str) -> JsonObject:
    return {"input": [{"type": "image_generation_call", "id": "ig_1", "result": data}]}


def drawn_in_chat(data: str) -> JsonObject:
    return said("a", images=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}])


def heard(data: str) -> JsonObject:
    return chat(user([{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]))


PICTURES = {
    "image_url": (CHAT, image_url),
    "source": (MESSAGES, image),
    "inlineData": (GEMINI, inline),
    "screenshot": (RESPONSES, screen),
    "image_generation_call": (RESPONSES, drawn),
    "images": (OPENROUTER, drawn_in_chat),
    "input_audio": (CHAT, heard),
}


@pytest.mark.parametrize("spelling", SPELT)
@pytest.mark.parametrize("kind", PICTURES)
def test_media_are_their_bytes(kind: str, spelling: str) -> None:
    """Base64 of either alphabet, with or without line ends and padding, is its bytes; others are others."""
    url, body = PICTURES[kind]
    assert same(url, body(PLAIN), body(SPELT[spelling]))
    assert not same(url, body(PLAIN), body(OTHER))


def test_media_across_wires() -> None:
    """One picture is the same on each wire, also where a wire has it in place of a URL, or escapes it."""
    reference = read(CHAT, image_url(PLAIN)).fingerprint
    escaped = quote(PLAIN, safe="")
    as_url: JsonObject = {"type": "image", "source": {"type": "url", "url": f"data:image/png;base64,{PLAIN}"}}
    for url, body in (
        (CHAT, image_url(escaped)),
        (CHAT, image_url(PLAIN, "image/png;name=a.png")),
        (MESSAGES, image(PLAIN, "IMAGE/PNG")),
        (MESSAGES, chat(user([as_url]))),
        (GEMINI, inline(SPELT["for URLs"])),
    ):
        assert read(url, body).fingerprint == reference, body


@pytest.mark.parametrize(
    ("a", "b"), [("image/jpg", "image/jpeg"), ("audio/mp3", "audio/mpeg"), ("audio/x-wav", "audio/wav")]
)
def test_two_names_of_a_media_type(a: str, b: str) -> None:
    """Two names of one type are one, another type is another."""
    assert same(GEMINI, inline(PLAIN, a), inline(PLAIN, b))
    assert not same(GEMINI, inline(PLAIN, a), inline(PLAIN, "image/webp"))


def test_no_text_poses_as_a_picture() -> None:
    """Data that spell the digest of a picture, in whatever way it is hashed, are not the picture."""
    shown = read(MESSAGES, image(PLAIN)).normalised
    assert shown is not None
    messages = shown.view["messages"]
    assert isinstance(messages, list)
    digest = str(json.loads(json.dumps(messages))[0]["parts"][0]["data"]["sha256"])
    for data in (f"sha256:{digest}", digest, json.dumps({"sha256": digest})):
        assert not same(MESSAGES, image(PLAIN), image(data))
    posing: JsonObject = {
        "contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": {"sha256": digest}}}]}]
    }
    assert not same(GEMINI, inline(PLAIN), posing)


def document(**source: JsonValue) -> JsonObject:
    return chat(user([{"type": "document", "source": {**source}}]))


def test_text_in_base64_is_that_text() -> None:
    """`text/plain` in base64 is the text, scrubbed as texts are; what is no UTF-8 counts by its bytes."""
    text = "made in /home/ann/app at 2026-11-30T09:00:01Z"
    moved = text.replace("ann", "bob").replace("09:00", "10:00")
    coded, elsewhere = (base64.b64encode(each.encode()).decode() for each in (text, moved))
    plain = document(type="text", media_type="text/plain", data=text)
    assert same(MESSAGES, plain, document(type="base64", media_type="text/plain", data=coded))
    assert same(MESSAGES, plain, document(type="base64", media_type="text/plain", data=elsewhere))
    assert same(GEMINI, inline(coded, "application/json"), inline(elsewhere, "application/json"))
    assert not same(GEMINI, inline(coded, "application/pdf"), inline(elsewhere, "application/pdf"))
    assert not same(MESSAGES, plain, document(type="text", media_type="text/plain", data=text + "!"))
    assert same(GEMINI, inline(PLAIN, "text/plain"), inline(SPELT["for URLs"], "text/plain"))
    assert not same(GEMINI, inline(PLAIN, "text/plain"), inline(OTHER, "text/plain"))


# What is volatile --------------------------------------------------------------------------------------

CACHE: JsonObject = {"type": "ephemeral"}
BILLING = "x-anthropic-billing-header: cc_version=2.1.{}; cch={};"


def found(**more: JsonValue) -> JsonObject:
    """A result of a search that was put into the prompt."""
    block: JsonObject = {"type": "text", "text": "x", **more}
    return {"type": "search_result", "source": "u", "title": "t", "content": [block]}


def calling(**more: JsonValue) -> JsonObject:
    """A call of Chat Completions that was answered."""
    call: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}
    return chat(
        user("q"),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    )


def result(*content: JsonValue) -> JsonObject:
    """A result of Anthropic's."""
    return chat(user([{"type": "tool_result", "tool_use_id": "a", "content": [*content]}]))


VOLATILE: dict[str, tuple[str, JsonObject, JsonObject, str]] = {
    "session": (OPENROUTER, chat(session_id="a"), chat(session_id="b"), "openrouter.session_id"),
    "trace": (OPENROUTER, chat(trace={"trace_id": "a"}), chat(), "openrouter.trace"),
    "session of Anthropic's wire": (
        "openrouter.ai/api/v1/messages",
        chat(session_id="a"),
        chat(session_id="b"),
        "openrouter.session_id",
    ),
    "version": (VERTEX, chat(anthropic_version="vertex-2023-10-16"), chat(), "anthropic_version"),
    "retention": (
        RESPONSES,
        {"input": "q", "prompt_cache_retention": "24h"},
        {"input": "q"},
        "prompt_cache_retention",
    ),
    "cache options": (
        CHAT,
        chat(prompt_cache_options={"mode": "explicit"}),
        chat(),
        "prompt_cache_options",
    ),
    "breakpoint": (
        RESPONSES,
        {
            "input": [
                user([{"type": "input_text", "text": "q", "prompt_cache_breakpoint": {"mode": "explicit"}}])
            ]
        },
        {"input": "q"},
        "prompt_cache_breakpoint",
    ),
    "safety identifier": (
        CHAT,
        chat(safety_identifier="a"),
        chat(safety_identifier="b"),
        "safety_identifier",
    ),
    "Copilot's cache": (
        CHAT,
        chat(user("q", copilot_cache_control=CACHE)),
        chat(user("q")),
        "copilot_cache_control",
    ),
    "index of a call": (CHAT, calling(index=0), calling(), "call_index"),
    "search result": (
        MESSAGES,
        chat(user([found(cache_control=CACHE)])),
        chat(user([found()])),
        "cache_control",
    ),
    "document of blocks": (
        MESSAGES,
        document(type="content", content=[{"type": "text", "text": "x", "cache_control": CACHE}]),
        document(type="content", content=[{"type": "text", "text": "x"}]),
        "cache_control",
    ),
    "search result in a result": (
        MESSAGES,
        result(found(cache_control=CACHE)),
        result(found()),
        "cache_control",
    ),
    "billing line": (
        CHAT,
        chat({"role": "system", "content": BILLING.format(1, "a") + "\ns"}, user("q")),
        chat({"role": "system", "content": BILLING.format(2, "b") + "\ns"}, user("q")),
        "system-line",
    ),
    "billing line of instructions": (
        RESPONSES,
        {"instructions": BILLING.format(1, "a") + "\ns", "input": "q"},
        {"instructions": "s", "input": "q"},
        "system-line",
    ),
    "billing line of Gemini": (
        GEMINI,
        {"systemInstruction": {"parts": [{"text": BILLING.format(1, "a")}, {"text": "s"}]}},
        {"systemInstruction": {"parts": [{"text": "s"}]}},
        "system-line",
    ),
    "blank lines after it": (
        MESSAGES,
        chat(system=BILLING.format(1, "a") + "\n\n  s"),
        chat(system=BILLING.format(1, "a") + "\n  s"),
        "system-line",
    ),
}


@pytest.mark.parametrize("kind", VOLATILE)
def test_bookkeeping_is_dropped_by_name(kind: str) -> None:
    """What only keeps books, caches and sessions changes the exact fingerprint alone, and a hit names it."""
    url, a, b, name = VOLATILE[kind]
    assert same(url, a, b)
    assert read(url, a).exact != read(url, b).exact
    assert f"volatile:{name}" in rules(url, a, b)


def test_the_seed_of_mistral() -> None:
    """Mistral's `random_seed` is `seed`, which the ignore list holds; both in one body are both kept."""
    assert same(MISTRAL, chat(random_seed=1), chat(seed=2))
    assert not same(MISTRAL, chat(seed=1, random_seed=1), chat(seed=1, random_seed=2))


def test_reasoning_without_content() -> None:
    """An empty list of reasoning is none; one that says something is not."""

    def body(**more: JsonValue) -> JsonObject:
        return {"input": [{"type": "reasoning", "summary": [], "encrypted_content": "e", **more}]}

    assert same(RESPONSES, body(content=[]), body())
    assert not same(RESPONSES, body(content=[{"type": "reasoning_text", "text": "x"}]), body())


def space(*names: str, **more: JsonValue) -> JsonObject:
    """Tools in a name space, as Codex offers those of an MCP server."""
    tools: list[JsonValue] = [{"type": "function", "name": name, **more} for name in names]
    return {"input": "q", "tools": [{"type": "namespace", "name": "mcp", "tools": tools}]}


def test_tools_of_a_name_space_have_no_order() -> None:
    """They are tools as the others are; a hit says that they were sorted, and a missing one counts."""
    assert same(RESPONSES, space("a", "b"), space("b", "a"))
    assert rules(RESPONSES, space("a", "b"), space("b", "a")) == ["tools"]
    assert same(RESPONSES, space("a", cache_control=CACHE), space("a"))
    assert not same(RESPONSES, space("a", "b"), space("a"))
    other: JsonObject = {
        "input": "q",
        "tools": [{"type": "x", "name": "m", "tools": [{"name": "a"}, {"name": "b"}]}],
    }
    turned: JsonObject = {
        "input": "q",
        "tools": [{"type": "x", "name": "m", "tools": [{"name": "b"}, {"name": "a"}]}],
    }
    assert not same(RESPONSES, other, turned)


# What counts -------------------------------------------------------------------------------------------

SCHEMA: JsonObject = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
COUNTS: dict[str, tuple[str, JsonObject, JsonObject]] = {
    "session elsewhere": (CHAT, chat(session_id="a"), chat(session_id="b")),
    "service tier": (CHAT, chat(service_tier="flex"), chat(service_tier="default")),
    "store": (RESPONSES, {"input": "q", "store": True}, {"input": "q", "store": False}),
    "include": (RESPONSES, {"input": "q", "include": ["a"]}, {"input": "q", "include": ["b"]}),
    "beta in the body": (VERTEX, chat(anthropic_beta=["a"]), chat(anthropic_beta=["b"])),
    "a seed by another name": (CHAT, chat(rng_seed=1), chat(rng_seed=2)),
    "a tool's own cache_control": (
        MESSAGES,
        chat(tools=[{"name": "f", "input_schema": SCHEMA}]),
        chat(tools=[{"name": "f", "input_schema": {"type": "object", "properties": {}}}]),
    ),
    "an argument called cache_control": (
        MESSAGES,
        said([{"type": "tool_use", "id": "a", "name": "f", "input": {"cache_control": "x"}}]),
        said([{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
    ),
    "a billing line of a user": (
        CHAT,
        chat(user(BILLING.format(1, "a") + "\ns")),
        chat(user(BILLING.format(2, "b") + "\ns")),
    ),
    "a billing line further down": (
        CHAT,
        chat({"role": "system", "content": "s\n" + BILLING.format(1, "a")}),
        chat({"role": "system", "content": "s\n" + BILLING.format(2, "b")}),
    ),
    "blank lines at the start": (MESSAGES, chat(system="\n\ns"), chat(system="s")),
    "indentation after a billing line": (
        MESSAGES,
        chat(system=BILLING.format(1, "a") + "\n  s"),
        chat(system=BILLING.format(1, "a") + "\ns"),
    ),
    "a text that says refusal": (
        CHAT,
        said([{"type": "text", "text": "no", "refusal": True}]),
        said([{"type": "refusal", "refusal": "no"}]),
    ),
    "a text that says refusal, in Responses": (
        RESPONSES,
        {
            "input": [
                {"role": "assistant", "content": [{"type": "output_text", "text": "no", "refusal": True}]}
            ]
        },
        {"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]},
    ),
    "a refusal or its words": (CHAT, said(None, refusal="no"), said("no")),
    "a role nobody knows": (
        CHAT,
        chat({"role": "critic", "content": "x"}),
        chat(user([{"role": "critic", "content": "x"}])),
    ),
    "an item nobody knows": (
        RESPONSES,
        {"input": [{"type": "quantum", "x": 1}]},
        {"input": [user([{"type": "quantum", "x": 1}])]},
    ),
    "a content nobody knows": (
        GEMINI,
        {"contents": [{"role": "critic", "parts": [{"text": "x"}]}]},
        {"contents": [{"role": "user", "parts": [{"role": "critic", "parts": [{"text": "x"}]}]}]},
    ),
    "a member of a message": (
        CHAT,
        chat(user("x", name="ann")),
        chat(user([{"type": "text", "text": "x"}, {"name": "ann"}])),
    ),
    "a call nobody knows": (
        CHAT,
        said(None, tool_calls=[{"id": "c", "type": "quantum"}]),
        said([{"id": "c", "type": "quantum"}]),
    ),
    "an empty part": (CHAT, chat(user([{"type": "text", "text": "x"}, {}])), chat(user("x"))),
    "a word of ours": (
        CHAT,
        calling(id="c", x=1, **{"wire.x": 2}),
        calling(id="c", x=1, **{"wire.wire.x": 2}),
    ),
    "pictures that the model drew": (OPENROUTER, drawn_in_chat(PLAIN), said("a")),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_what_only_looks_alike_counts(kind: str) -> None:
    """Nothing is dropped where its name may mean something, and nothing poses as another thing."""
    url, a, b = COUNTS[kind]
    assert not same(url, a, b)


# Blanks ------------------------------------------------------------------------------------------------

CODE = {
    "inner blanks": ("print('a  b')", "print('a b')"),
    "a trailing blank": ("-a \n+b", "-a\n+b"),
    "line ends": ("a\r\nb", "a\nb"),
    "a tab": ("a\tb", "a b"),
}


def arguments(url: str, code: str) -> JsonObject:
    """A call with code among its arguments, in each wire."""
    if url == CHAT:
        function: JsonObject = {"name": "f", "arguments": json.dumps({"edits": [{"code": code}]})}
        return said(None, tool_calls=[{"id": "c", "type": "function", "function": function}])
    if url == MESSAGES:
        return said([{"type": "tool_use", "id": "a", "name": "f", "input": {"parameters": {"code": code}}}])
    if url == GEMINI:
        return {
            "contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"c": code}}}]}]
        }
    return {
        "input": [
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": code},
            {"type": "shell_call", "call_id": "d", "action": {"commands": ["ls"]}},
        ]
    }


@pytest.mark.parametrize("url", [CHAT, MESSAGES, GEMINI, RESPONSES])
@pytest.mark.parametrize("kind", CODE)
def test_arguments_count_as_written(kind: str, url: str) -> None:
    """Each blank and line end of a tool's argument counts: it is code, a command, or a file."""
    a, b = CODE[kind]
    assert not same(url, arguments(url, a), arguments(url, b))


def test_arguments_are_scrubbed_and_composed_all_the_same() -> None:
    """A folder or an id in an argument is noise as anywhere, and letters are composed."""
    for a, b in (("/home/ann/app  x", "/home/bob/app  x"), ("caf\u00e9  x", "cafe\u0301  x")):
        assert same(CHAT, arguments(CHAT, a), arguments(CHAT, b))


def test_json_in_arguments_is_json_but_not_the_files_in_it() -> None:
    """Arguments are compared as JSON; a string in them that holds JSON is a file, and counts as written."""

    def call(text: str) -> JsonObject:
        function: JsonObject = {"name": "f", "arguments": text}
        return said(None, tool_calls=[{"id": "c", "type": "function", "function": function}])

    assert same(CHAT, call('{"a": 1, "b": [1.0]}'), call('{"b":[1],"a":1}'))
    assert not same(CHAT, call(json.dumps({"file": '{"a": 1}'})), call(json.dumps({"file": '{"a":  1}'})))


FOLDED: dict[str, tuple[str, JsonObject, JsonObject]] = {
    "user": (CHAT, chat(user("a  b")), chat(user("a b"))),
    "system": (MESSAGES, chat(system="a  b"), chat(system="a b")),
    "assistant": (MESSAGES, said("a  b"), said("a b")),
    "result": (MESSAGES, result({"type": "text", "text": "a  b"}), result({"type": "text", "text": "a b"})),
    "description": (
        MESSAGES,
        chat(tools=[{"name": "f", "description": "a  b"}]),
        chat(tools=[{"name": "f", "description": "a b"}]),
    ),
    "description in a schema": (
        MESSAGES,
        chat(tools=[{"name": "f", "input_schema": {"properties": {"x": {"description": "a  b"}}}}]),
        chat(tools=[{"name": "f", "input_schema": {"properties": {"x": {"description": "a b"}}}}]),
    ),
}


@pytest.mark.parametrize("kind", FOLDED)
def test_texts_are_folded(kind: str) -> None:
    """Blanks within a line of what people, models and tools say are folded, and a hit says so."""
    url, a, b = FOLDED[kind]
    assert same(url, a, b)
    assert rules(url, a, b) == ["RS001"]
