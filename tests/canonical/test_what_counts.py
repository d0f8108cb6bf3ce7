"""What no rule may take out of the key: references, linking ids, whose words they are, bytes (DESIGN §5)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from canonical.readings import CHAT, GEMINI, MESSAGES, RESPONSES, read, same
from rewind_proxy.canonical.model import JsonObject, JsonValue

U1 = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
U2 = "3f2504e0-4f89-41d3-9a0c-0305e82c3302"
EMBED = "generativelanguage.googleapis.com/v1beta/models/g:embedContent"


def chat(*messages: JsonObject, **more: JsonValue) -> JsonObject:
    """A chat request."""
    return {"messages": [*messages], **more}


def user(content: JsonValue, **more: JsonValue) -> JsonObject:
    """A user's message."""
    return {"role": "user", "content": content, **more}


def tool(result: str) -> JsonObject:
    """A conversation that ends with the result of a tool."""
    call: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return chat(
        user("q"),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    )


def contents(*parts: JsonObject, **more: JsonValue) -> JsonObject:
    """A Gemini request."""
    return {"contents": [{"role": "user", "parts": [*parts]}], **more}


REFERENCES: dict[str, tuple[str, Callable[[str], JsonObject]]] = {
    "image_url": (
        CHAT,
        lambda u: chat(user([{"type": "image_url", "image_url": {"url": f"https://cdn.example/{u}.png"}}])),
    ),
    "image_url of a time": (
        CHAT,
        lambda u: chat(
            user([{"type": "image_url", "image_url": f"https://cdn.example/202{u[-1]}-01-01T00:00:00Z"}])
        ),
    ),
    "file of a home": (
        CHAT,
        lambda u: chat(
            user([{"type": "image_url", "image_url": {"url": f"file:///home/u{u[-1]}/app/a.png"}}])
        ),
    ),
    "file_id in chat": (CHAT, lambda u: chat(user([{"type": "file", "file": {"file_id": u}}]))),
    "audio of an answer": (CHAT, lambda u: chat(user("q"), {"role": "assistant", "audio": {"id": u}})),
    "a part nobody knows": (CHAT, lambda u: chat(user([{"type": "video_url", "video_url": {"url": u}}]))),
    "unknown file_ids": (CHAT, lambda u: chat(user("q"), extra={"file_ids": [u]})),
    "item_reference": (RESPONSES, lambda u: {"input": [{"type": "item_reference", "id": u}]}),
    "previous_response_id": (RESPONSES, lambda u: {"input": "q", "previous_response_id": u}),
    "conversation": (RESPONSES, lambda u: {"input": "q", "conversation": u}),
    "conversation object": (RESPONSES, lambda u: {"input": "q", "conversation": {"id": u}}),
    "stored prompt": (RESPONSES, lambda u: {"input": "q", "prompt": {"id": u, "version": "1"}}),
    "vector_store_ids": (
        RESPONSES,
        lambda u: {"input": "q", "tools": [{"type": "file_search", "vector_store_ids": [u]}]},
    ),
    "container of a tool": (
        RESPONSES,
        lambda u: {"input": "q", "tools": [{"type": "code_interpreter", "container": u}]},
    ),
    "files of a container": (
        RESPONSES,
        lambda u: {
            "input": "q",
            "tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": [u]}}],
        },
    ),
    "server of a tool": (
        RESPONSES,
        lambda u: {"input": "q", "tools": [{"type": "mcp", "server_url": f"https://mcp.example/{u}"}]},
    ),
    "input_file": (RESPONSES, lambda u: {"input": [user([{"type": "input_file", "file_id": u}])]}),
    "file_url": (
        RESPONSES,
        lambda u: {"input": [user([{"type": "input_file", "file_url": f"https://a.example/{u}"}])]},
    ),
    "image in a tool's result": (
        RESPONSES,
        lambda u: {
            "input": [
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_image", "image_url": f"https://a.example/{u}"}],
                },
            ]
        },
    ),
    "anthropic container": (MESSAGES, lambda u: chat(user("q"), container=u)),
    "anthropic container object": (
        MESSAGES,
        lambda u: chat(user("q"), container={"id": "c", "skills": [{"type": "custom", "skill_id": u}]}),
    ),
    "anthropic image": (
        MESSAGES,
        lambda u: chat(user([{"type": "image", "source": {"type": "url", "url": f"https://a.example/{u}"}}])),
    ),
    "anthropic file": (
        MESSAGES,
        lambda u: chat(user([{"type": "document", "source": {"type": "file", "file_id": u}}])),
    ),
    "container_upload": (MESSAGES, lambda u: chat(user([{"type": "container_upload", "file_id": u}]))),
    "fileUri": (GEMINI, lambda u: contents({"fileData": {"fileUri": f"https://g.example/{u}"}})),
    "cachedContent": (GEMINI, lambda u: contents({"text": "q"}, cachedContent=f"cachedContents/{u}")),
    "cached_content": (GEMINI, lambda u: contents({"text": "q"}, cached_content=u)),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_a_reference_is_meaning(kind: str) -> None:
    """What a provider or the web keeps under an id or URL is neither scrubbed nor re-based."""
    url, body = REFERENCES[kind]
    assert not same(url, body(U1), body(U2))
    normalised = read(url, body(U1)).normalised
    assert normalised is not None
    assert not [slot for slot in normalised.slots if slot.rule != "RS102"]


def test_a_tool_s_own_names_are_no_references() -> None:
    """In a tool's arguments a `url` or `id` may name a file of the project, and is scrubbed as any text."""

    def calling(home: str) -> JsonObject:
        arguments = json.dumps({"url": f"file:///home/{home}/a.txt", "id": U1 if home == "ann" else U2})
        call: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return chat(user("q"), {"role": "assistant", "tool_calls": [call]})

    assert same(CHAT, calling("ann"), calling("bob"))


def two_calls(ids: list[JsonValue], results: list[JsonValue]) -> JsonObject:
    """Two calls, and which of them each result answers."""
    calls: list[JsonValue] = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": f'{{"x":{place}}}'}}
        for place, each in enumerate(ids)
    ]
    answers: list[JsonObject] = [
        {"role": "tool", "tool_call_id": each, "content": f"R{place}"} for place, each in enumerate(results)
    ]
    return chat(user("q"), {"role": "assistant", "tool_calls": calls}, *answers)


@pytest.mark.parametrize("ids", [[1, 2], [0, 1], [1.5, 2], [True, False], [[], {}], ["a", 7], ["1", 1]])
def test_ids_of_any_type_link(ids: list[JsonValue]) -> None:
    """Which result answers which call counts also where ids are numbers; which numbers they are does not."""
    assert not same(CHAT, two_calls(ids, ids), two_calls(ids, ids[::-1]))
    assert same(CHAT, two_calls(ids, ids), two_calls([5, 6], [5, 6]))


def test_numbers_as_ids_link_in_each_wire() -> None:
    """The same holds of Anthropic's blocks, of Responses' items and of Gemini's parts."""

    def anthropic(first: int, second: int) -> JsonObject:
        calls: list[JsonValue] = [
            {"type": "tool_use", "id": each, "name": "f", "input": {"x": each}} for each in (1, 2)
        ]
        answers: list[JsonValue] = [
            {"type": "tool_result", "tool_use_id": each, "content": text}
            for each, text in ((first, "a"), (second, "b"))
        ]
        return chat(user("q"), {"role": "assistant", "content": calls}, user(answers))

    def responses(first: int, second: int) -> JsonObject:
        items: list[JsonValue] = [
            {"type": "function_call", "call_id": each, "name": "f", "arguments": str(each)} for each in (1, 2)
        ]
        for each, text in ((first, "a"), (second, "b")):
            items.append({"type": "function_call_output", "call_id": each, "output": text})
        return {"input": items}

    def gemini(first: int, second: int) -> JsonObject:
        calls: list[JsonValue] = [
            {"functionCall": {"id": each, "name": "f", "args": {"x": each}}} for each in (1, 2)
        ]
        answers: list[JsonValue] = [
            {"functionResponse": {"id": each, "name": "f", "response": {"output": text}}}
            for each, text in ((first, "a"), (second, "b"))
        ]
        return {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]}

    assert not same(MESSAGES, anthropic(1, 2), anthropic(2, 1))
    assert not same(RESPONSES, responses(1, 2), responses(2, 1))
    assert not same(GEMINI, gemini(1, 2), gemini(2, 1))


def test_whose_words_they_are() -> None:
    """A name on one of two messages in a row is not a name on both, nor on the other."""
    text: list[JsonValue] = [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    told = [
        chat(user(text, name="ann")),
        chat(user("x"), user("y", name="ann")),
        chat(user("x", name="ann"), user("y")),
        chat(user("x", name="ann"), user("y", name="ann")),
        chat(user("x"), user("y"), user("", name="ann")),
        chat(user(text)),
    ]
    assert len({read(CHAT, each).fingerprint for each in told}) == len(told)
    assert same(CHAT, chat(user("x", name="ann")), chat(user([text[0]], name="ann")))


BYTES: dict[str, tuple[str, Callable[[str], JsonObject], str, str]] = {
    "a path": ("api.openai.com/v1/x", lambda text: {"input": text}, "cwd: /home/ann/p", "cwd: /home/bob/p"),
    "an id": ("api.openai.com/v1/x", lambda text: {"job": text}, U1, U2),
    "blanks": ("api.openai.com/v1/x", lambda text: {"input": text}, "a  b", "a b"),
    "media": ("api.openai.com/v1/x", lambda text: {"a": {"type": "media", "data": text}}, "aGk=", "aGk"),
    "null": ("api.openai.com/v1/x", lambda text: {text: None}, "a", "b"),
    "an embedded path": (
        "api.openai.com/v1/embeddings",
        lambda text: {"input": text},
        "/home/ann/x",
        "/home/bob/x",
    ),
    "embedded letters": ("api.openai.com/v1/embeddings", lambda text: {"input": text}, "e\u0301", "\u00e9"),
    "embedded blanks": ("api.openai.com/v1/embeddings", lambda text: {"input": [text]}, "a ", "a"),
    "an embedding's model": ("api.openai.com/v1/embeddings", lambda m: {"input": "a", "model": m}, U1, U2),
    "gemini blanks": (EMBED, lambda text: {"content": {"parts": [{"text": text}]}}, "a  b", "a b"),
    "gemini times": (
        EMBED,
        lambda text: {"content": {"parts": [{"text": text}]}},
        "2024-01-06T10:00:00Z",
        "2023-01-06T10:00:00Z",
    ),
    "gemini batches": (
        EMBED.replace("embedContent", "batchEmbedContents"),
        lambda text: {"requests": [{"content": {"parts": [{"text": text}]}}]},
        U1,
        U2,
    ),
    "gemini titles": (EMBED, lambda text: {"content": {"parts": [{"text": "a"}]}, "title": text}, U1, U2),
}


@pytest.mark.parametrize("kind", BYTES)
def test_byte_for_byte(kind: str) -> None:
    """Through generic, and in what is embedded, no text is scrubbed, folded or composed."""
    url, body, a, b = BYTES[kind]
    assert not same(url, body(a), body(b))
    normalised = read(url, body(a)).normalised
    assert normalised is not None
    assert normalised.slots == ()


@pytest.mark.parametrize("url", ["/v1/threads/{}/runs", "/v1/moderations?id={}", "/v1/files/home/u{}/x"])
def test_generic_addresses_are_kept_as_they_are(url: str) -> None:
    """Ids and folders in the path or query of a generic request count."""
    a, b = (read(f"api.openai.com{url.format(each)}", {"x": 1}) for each in (U1, U2))
    assert a.fingerprint != b.fingerprint


def test_no_wire_poses_as_generic() -> None:
    """A body whose parameters are called as generic's are is another request."""
    posed = read("api.openai.com/v1/x", {"a": 1})
    assert posed.canonical is not None
    assert read(CHAT, posed.canonical.params).fingerprint != posed.fingerprint


def test_a_rotated_key_in_a_generic_body_still_matches() -> None:
    """Redaction is the one thing that is done to a generic request."""

    def keyed(letter: str) -> JsonObject:
        return {"input": "hi", "api_key": "sk-proj-" + (letter + "7Qd") * 10}

    assert same("api.openai.com/v1/x", keyed("k"), keyed("y"))


def test_counts_are_normalised_as_what_they_count() -> None:
    """A count of tokens is scrubbed like the turn that it is for."""
    url = f"{MESSAGES}/count_tokens"
    assert same(url, chat(user(f"see {U1}"), model="m"), chat(user(f"see {U2}"), model="m"))


TIMES_APART = [
    ("A {} B {}", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
    ("A {} B {}", "2024-01-01 00:00:00", "2024-01-02 00:00:00"),
    ("A {} B {}", "20240101T000000Z", "20240201T000000Z"),
    ("A {} B {}", "Mon, 01 Jan 2024 00:00:00 GMT", "Wed, 01 Jan 2025 00:00:00 GMT"),
    ("A {} B {}", "Mon Jan  1 10:00:00 2024", "Tue Feb  6 10:00:00 2024"),
    ("A {} B {}", "Jan  1 10:00:00", "Feb  6 10:00:00"),
    ("A {} B {}", "10/Oct/2000:13:55:36 -0700", "11/Oct/2000:13:55:36 -0700"),
    ("A {} B {}", "1/2/2024 10:00 AM", "2/1/2024 10:00 AM"),
    ("A {} B {}", "January 6, 2024 at 10:00", "January 7, 2024 at 10:00"),
    ("A {} B {}", "2024-01-01T00:00:00Z", "Wed, 01 Jan 2025 00:00:00 GMT"),
    ("A; date: {} B; date: {}", "1700000000", "1800000000"),
    ("A; date: {} B; date: {}", "1700000000123", "1800000000123"),
    ("A; date: {} B; date: {}", "1.2.2024", "2.1.2024"),
    ("A; date: {} B; date: {}", "6 January 2024", "2024-01-07"),
]


@pytest.mark.parametrize(("text", "a", "b"), TIMES_APART)
def test_which_day_is_before_which(text: str, a: str, b: str) -> None:
    """Two days in a tool's result, swapped or made one, are another result; another day for both is not."""
    assert not same(CHAT, tool(text.format(a, b)), tool(text.format(b, a)))
    assert not same(CHAT, tool(text.format(a, b)), tool(text.format(a, a)))
    assert same(CHAT, tool(text.format(a, a)), tool(text.format(b, b)))


def test_days_of_a_result_by_their_order_alone() -> None:
    """Which days they are does not count, nor which second of a day."""
    log = "{} start\n{} step\n{} next day"
    a = log.format("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z", "2024-01-02T00:00:01Z")
    b = log.format("2026-11-30T09:59:58Z", "2026-11-30T10:00:00Z", "2026-12-03T07:00:00Z")
    assert same(CHAT, tool(a), tool(b))
    three = log.format("2026-11-30T09:59:58Z", "2026-12-01T10:00:00Z", "2026-12-03T07:00:00Z")
    assert not same(CHAT, tool(a), tool(three))
