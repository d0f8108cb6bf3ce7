"""Re-basing of whole answers and streams: every copy of a value, and nothing else (DESIGN §8)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.rebase_answers import WIRES_AND_FORMS, Said, body, copies, dig, events, stream
from rewind_proxy.canonical.model import Form, JsonObject, JsonValue, Wire
from rewind_proxy.matching.rebase import Rebased, Replacements, rebase
from rewind_proxy.wire import sse

U1, U2 = "6f1c2a3b-0000-4000-8000-00000000aaaa", "12345678-1111-4111-8111-11111111bbbb"
T1, T2 = "2026-11-30T09:00:01Z", "2027-01-02T10:11:12.5Z"
A, B, W = "/home/a/app", "/builds/7/app", "C:\\Users\\Ann B\\app"
TO_POSIX = Replacements({A: B, "/home/a": "/root"}, {U1: U2}, {T1: T2})
TO_WINDOWS = Replacements({A: W}, {}, {})


def told(root: str, home: str, which: str, when: str, separator: str = "/") -> Said:
    """An answer that names a root, a home, a UUID and a time."""
    path = separator.join([root, "src", "x.py"])
    return Said(
        f"I read {path} in {root}, not /home/a2 or {home}/b; see {which} at {when}. Größe 😀",
        {"path": path, "cmd": f"cd {root}\nls {home}", "ids": [which, {"at": when}], path: "as a key"},
    )


RECORDED = told(A, "/home/a", U1, T1)
LIVE = told(B, "/root", U2, T2)
LONGEST = max(len(RECORDED.text), len(json.dumps(RECORDED.arguments)))


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
def test_every_copy_names_the_live_values(wire: Wire, form: Form) -> None:
    """Text and arguments say what they would have said live, in every copy, and each value counts once."""
    rebased = rebase(body(wire, form, RECORDED, [9, 15, 40]), wire, form, TO_POSIX)
    texts, arguments = copies(wire, form, rebased.body)
    assert set(texts) == {LIVE.text}
    assert all(copy == LIVE.arguments for copy in arguments)
    assert rebased.count == 5 + 6


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
def test_every_other_byte_stays(wire: Wire, form: Form) -> None:
    """Uncut, a re-based answer is byte for byte the one that would have been sent live."""
    rebased = rebase(body(wire, form, RECORDED), wire, form, TO_POSIX)
    assert rebased.body == body(wire, form, LIVE)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@given(cuts=st.lists(st.integers(0, LONGEST), max_size=8))
def test_cut_anywhere(wire: Wire, form: Form, cuts: list[int]) -> None:
    """Wherever the deltas were cut, every copy says the same, and back again gives the recorded words."""
    recorded = body(wire, form, RECORDED, cuts)
    there = rebase(recorded, wire, form, TO_POSIX)
    texts, arguments = copies(wire, form, there.body)
    assert set(texts) == {LIVE.text}
    assert all(copy == LIVE.arguments for copy in arguments)
    back = Replacements({B: A, "/root": "/home/a"}, {U2: U1}, {T2: T1})
    assert copies(wire, form, rebase(there.body, wire, form, back).body) == copies(wire, form, recorded)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
def test_split_at_every_character(wire: Wire, form: Form) -> None:
    """A stream of one character a delta is re-based like a whole one, and has as many events as before."""
    recorded = body(wire, form, RECORDED, range(LONGEST))
    rebased = rebase(recorded, wire, form, TO_POSIX).body
    assert set(copies(wire, form, rebased)[0]) == {LIVE.text}
    assert shape(form, rebased) == shape(form, recorded)


def shape(form: Form, answer: bytes) -> JsonValue:
    """An answer with its strings emptied: the grammar of its events."""

    def emptied(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            # An argument's name is content too.
            return {name if "/" not in name else "": emptied(item) for name, item in value.items()}
        if isinstance(value, list):
            return [emptied(item) for item in value]
        return "" if isinstance(value, str) else value

    if form == "sse":
        return [
            [event.name, event.data == "[DONE]" or emptied(json.loads(event.data))]
            for event in sse.parse(answer).events
        ]
    return emptied(json.loads(answer))


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
def test_posix_to_windows(wire: Wire, form: Form) -> None:
    """On the other system the rest of a path has that system's separators, escaped as often as JSON needs."""
    recorded = body(wire, form, Said(f"in {A}/src/x.py", {"path": f"{A}/src/x.py"}), [5, 9, 17])
    texts, arguments = copies(wire, form, rebase(recorded, wire, form, TO_WINDOWS).body)
    assert set(texts) == {f"in {W}\\src\\x.py"}
    assert all(copy == {"path": f"{W}\\src\\x.py"} for copy in arguments)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
def test_windows_to_posix(wire: Wire, form: Form) -> None:
    """A value whose escapes were cut between deltas is found all the same."""
    said = Said(f"in {W}\\src\\x.py", {"path": f"{W}\\src\\x.py"})
    recorded = body(wire, form, said, range(40))
    texts, arguments = copies(wire, form, rebase(recorded, wire, form, Replacements({W: A}, {}, {})).body)
    assert set(texts) == {f"in {A}/src/x.py"}
    assert all(copy == {"path": f"{A}/src/x.py"} for copy in arguments)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=4))
def test_own_slots_change_no_byte(wire: Wire, form: Form, text: str, cuts: list[int]) -> None:
    """Re-basing a recording to its own slots changes no byte, with or without other values that differ."""
    recorded = body(wire, form, Said(f"{A}/{text}", {"p": A, text: U1}), cuts)
    own = Replacements({A: A}, {}, {})
    assert rebase(recorded, wire, form, own) == Rebased(recorded)
    beside = Replacements({A: A, "/home/zed": "/home/y"}, {U2: U1}, {T1: T2})
    assert rebase(recorded, wire, form, beside) == Rebased(recorded)


VALUES = st.text(
    st.characters(exclude_characters="\"'`/\\<>|*?", exclude_categories=["Cs", "Cc", "Z"]), min_size=1
)


@pytest.mark.parametrize(("wire", "form"), WIRES_AND_FORMS)
@given(
    names=st.tuples(VALUES, VALUES),
    around=st.text(max_size=20),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    ids=st.tuples(st.uuids(), st.uuids()),
)
def test_all_copies_agree(
    wire: Wire,
    form: Form,
    names: tuple[str, str],
    around: str,
    cuts: list[int],
    ids: tuple[uuid.UUID, uuid.UUID],
) -> None:
    """Re-basing to any other slots leaves every copy saying the same, and all JSON parses."""
    old, new = (f"/srv/{name}" for name in names)
    text = f"{around} {old} {ids[0]} {around}"
    recorded = body(wire, form, Said(text, {"p": text}), cuts)
    rebased = rebase(recorded, wire, form, Replacements({old: new}, {str(ids[0]): str(ids[1])}, {}))
    texts, arguments = copies(wire, form, rebased.body)
    (said,) = set(texts)
    assert all(copy == {"p": said} for copy in arguments)
    assert str(ids[1]) in said


def test_swapped_values() -> None:
    """Two values that trade places do so at once, not one after the other."""
    swap = Replacements({"/srv/a": "/srv/b", "/srv/b": "/srv/a"}, {U1: U2, U2: U1}, {})
    recorded = body("anthropic", "sse", Said(f"/srv/a {U1} /srv/b {U2}", {}), range(99))
    rebased = rebase(recorded, "anthropic", "sse", swap)
    assert copies("anthropic", "sse", rebased.body)[0] == [f"/srv/b {U2} /srv/a {U1}"]


def test_the_delta_of_the_first_character_holds_the_value() -> None:
    """A value spread over deltas stands whole in the first, the others keep what is not part of it."""
    recorded = body("anthropic", "sse", Said("see /home/a/app now", {}), [6, 10])
    rebased = rebase(recorded, "anthropic", "sse", TO_POSIX).body
    deltas = [event["delta"] for event in events(rebased) if event.get("index") == 0 and "delta" in event]
    assert [dig(delta, "text") for delta in deltas] == ["see /builds/7/app", "", " now"]


CUSTOM = 'const r = await exec({cmd: "cat /home/a/app/x", cwd: `/home/a/app`}); // /home/a/app'
CUSTOM_LIVE = (
    CUSTOM.replace("/home/a/app/x", r"C:\\Users\\Ann B\\app\\x")
    .replace("`/home/a/app`", r"`C:\\Users\\Ann B\\app`")
    .replace("/home/a/app", W)
)


def responses_stream(*steps: JsonObject) -> bytes:
    return stream(list(steps), typed=True)


def test_code_of_a_custom_tool() -> None:
    """JavaScript keeps its literals: backslashes are doubled inside of them only, in every copy."""
    item: JsonObject = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": CUSTOM}
    place: JsonObject = {"output_index": 0, "item_id": "i"}
    recorded = responses_stream(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "input": ""}},
        *(
            {"type": "response.custom_tool_call_input.delta", **place, "delta": piece, "obfuscation": A}
            for piece in CUSTOM
        ),
        {"type": "response.custom_tool_call_input.done", **place, "input": CUSTOM},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"output": [item]}},
    )
    rebased = rebase(recorded, "responses", "sse", TO_WINDOWS)
    found = events(rebased.body)
    assert "".join(str(event["delta"]) for event in found if "delta" in event) == CUSTOM_LIVE
    assert found[-3]["input"] == CUSTOM_LIVE
    assert dig(found[-2], "item", "input") == CUSTOM_LIVE
    assert dig(found[-1], "response", "output", 0, "input") == CUSTOM_LIVE
    assert {event["obfuscation"] for event in found if "delta" in event} == {A}
    assert rebased.count == 3


def test_actions_and_operations_are_json() -> None:
    """A call whose arguments are an object (`local_shell_call`) is read string by string."""
    action: JsonObject = {
        "type": "exec",
        "command": ["cat", f"{A}/x"],
        "working_directory": A,
        "timeout_ms": 1,
    }
    recorded = json.dumps({"output": [{"type": "local_shell_call", "action": action}]}).encode()
    rebased = rebase(recorded, "responses", "whole", TO_WINDOWS).body
    assert dig(json.loads(rebased), "output", 0, "action", "command", 1) == f"{W}\\x"
    assert dig(json.loads(rebased), "output", 0, "action", "working_directory") == W


def reasoning(encrypted: str | None) -> bytes:
    item: JsonObject = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": f"Look in {A}"}],
        "encrypted_content": encrypted,
    }
    place: JsonObject = {"output_index": 0, "summary_index": 0}
    return responses_stream(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}},
        {
            "type": "response.reasoning_summary_part.added",
            **place,
            "part": {"type": "summary_text", "text": ""},
        },
        {"type": "response.reasoning_summary_text.delta", **place, "delta": "Look in /home"},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": "/a/app"},
        {"type": "response.reasoning_summary_text.done", **place, "text": f"Look in {A}"},
        {
            "type": "response.reasoning_summary_part.done",
            **place,
            "part": {"type": "summary_text", "text": f"Look in {A}"},
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"output": [item]}},
    )


def test_plain_reasoning_is_rebased() -> None:
    """A summary of reasoning that is neither signed nor encrypted is a text like any other."""
    rebased = rebase(reasoning(None), "responses", "sse", TO_POSIX)
    assert rebased.body.count(B.encode()) == 5
    assert b"/a/app" not in rebased.body
    assert rebased.count == 1


def thinking(**more: str) -> bytes:
    return json.dumps(
        {
            "content": [
                {"type": "thinking", "thinking": f"in {A}", **more},
                {"type": "redacted_thinking", "data": A},
            ]
        }
    ).encode()


def thinking_stream(last: JsonObject) -> bytes:
    begun: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
    return stream(
        [
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": f"in {A}"},
            },
            {"type": "content_block_delta", "index": 0, "delta": last},
        ],
        typed=True,
    )


def chat_reasoning(**more: JsonValue) -> bytes:
    return json.dumps({"choices": [{"message": {"reasoning": f"in {A}", "content": "", **more}}]}).encode()


def gemini_thought(**more: JsonValue) -> bytes:
    part: JsonObject = {"text": f"in {A}", "thought": True, **more}
    return json.dumps({"candidates": [{"content": {"parts": [part]}}]}).encode()


SIGNED: list[tuple[Wire, Form, bytes]] = [
    ("responses", "sse", reasoning("gAAAA" + A)),
    ("anthropic", "whole", thinking(signature="sig")),
    ("anthropic", "sse", thinking_stream({"type": "signature_delta", "signature": A})),
    ("chat_completions", "whole", chat_reasoning(reasoning_details=[{"type": "reasoning.text", "text": A}])),
    ("chat_completions", "whole", chat_reasoning(reasoning_opaque=A)),
    ("gemini", "whole", gemini_thought(thoughtSignature="c2ln")),
]


@pytest.mark.parametrize(("wire", "form", "answer"), SIGNED)
def test_signed_or_encrypted_reasoning_stays(wire: Wire, form: Form, answer: bytes) -> None:
    """Nothing in signed or encrypted reasoning is touched, before its signature comes least of all."""
    assert rebase(answer, wire, form, TO_POSIX) == Rebased(answer)


@pytest.mark.parametrize(
    ("wire", "form", "answer"),
    [
        ("anthropic", "whole", thinking()),
        ("anthropic", "sse", thinking_stream({"type": "thinking_delta", "thinking": "."})),
        ("chat_completions", "whole", chat_reasoning()),
        ("gemini", "whole", gemini_thought()),
    ],
)
def test_unsigned_thoughts_are_texts(wire: Wire, form: Form, answer: bytes) -> None:
    """A thought without a signature is re-based."""
    rebased = rebase(answer, wire, form, TO_POSIX)
    assert rebased.count == 1
    assert f"in {B}".encode() in rebased.body


def test_what_is_no_content_stays() -> None:
    """Ids, model, usage, log probabilities and fields of an unknown name are the provider's."""
    answer: JsonObject = {
        "id": U1,
        "model": A,
        "system_fingerprint": U1,
        "x_new": A,
        "choices": [
            {
                "index": 0,
                "message": {"role": A, "content": A, "tool_calls": [{"id": U1, "function": {"name": A}}]},
                "logprobs": {"content": [{"token": A}]},
            }
        ],
        "usage": {"note": A},
    }
    rebased = json.loads(rebase(json.dumps(answer).encode(), "chat_completions", "whole", TO_POSIX).body)
    assert dig(rebased, "choices", 0, "message", "content") == B
    rebased["choices"][0]["message"]["content"] = A
    assert rebased == answer


def test_citations_follow() -> None:
    """Offsets of annotations move with the text, in every copy and in the event of its own."""
    text = f"{A}: see (docs) and (more) in {A}"
    first, last = text.index("(docs)"), text.index("(more)")
    annotation: JsonObject = {"type": "url_citation", "start_index": first, "end_index": first + 6, "url": A}
    cited: JsonObject = {"type": "file_citation", "index": last, "file_id": U1}
    part: JsonObject = {"type": "output_text", "text": text, "annotations": [annotation, cited]}
    item: JsonObject = {"type": "message", "content": [part]}
    place: JsonObject = {"output_index": 0, "content_index": 0}
    recorded = responses_stream(
        {"type": "response.output_text.delta", **place, "delta": text[:5]},
        {"type": "response.output_text.annotation.added", **place, "annotation": annotation},
        {"type": "response.output_text.delta", **place, "delta": text[5:]},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.completed", "response": {"output": [item]}},
    )
    found = events(rebase(recorded, "responses", "sse", TO_POSIX).body)
    for copy in (
        dig(found[1], "annotation"),
        dig(found[3], "part", "annotations", 0),
        dig(found[4], "response", "output", 0, "content", 0, "annotations", 0),
    ):
        start, end = dig(copy, "start_index"), dig(copy, "end_index")
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert text.replace(A, B)[start:end] == "(docs)"
        assert dig(copy, "url") == A
    assert dig(found[3], "part", "annotations", 1, "index") == last + len(B) - len(A)


def test_citations_of_chat_completions_follow() -> None:
    """The `url_citation` of a Chat Completions message is moved too."""
    citation: JsonObject = {"start_index": 3, "end_index": len(A) + 9}
    message: JsonObject = {
        "content": f"in {A} (docs)",
        "annotations": [{"type": "url_citation", "url_citation": citation}],
    }
    recorded = json.dumps({"choices": [{"message": message}]}).encode()
    rebased = json.loads(rebase(recorded, "chat_completions", "whole", TO_POSIX).body)
    moved = dig(rebased, "choices", 0, "message", "annotations", 0, "url_citation")
    assert moved == {"start_index": 3, "end_index": len(B) + 9}


def test_grounding_counts_bytes() -> None:
    """Gemini's places count UTF-8 bytes, and a segment's own text is a copy."""
    text, live = f"für {A} — ja", f"für {B} — ja"
    segment: JsonObject = {"startIndex": 5, "endIndex": len(text.encode()), "text": text[4:]}
    candidate: JsonObject = {
        "content": {"parts": [{"text": text}]},
        "groundingMetadata": {"groundingSupports": [{"segment": segment}]},
        "citationMetadata": {"citationSources": [{"startIndex": 5, "endIndex": len(text.encode())}]},
    }
    recorded = json.dumps({"candidates": [candidate]}, ensure_ascii=False).encode()
    rebased = rebase(recorded, "gemini", "whole", TO_POSIX)
    got = dig(json.loads(rebased.body), "candidates", 0)
    moved = {"startIndex": 5, "endIndex": len(live.encode())}
    assert dig(got, "groundingMetadata", "groundingSupports", 0, "segment") == {**moved, "text": live[4:]}
    assert dig(got, "citationMetadata", "citationSources", 0) == moved
    assert rebased.count == 1


@pytest.mark.parametrize(
    ("message", "live"),
    [
        (
            {"tool_calls": [{"custom": {"input": f"f('{A}')"}}]},
            {"tool_calls": [{"custom": {"input": f"f('{B}')"}}]},
        ),
        ({"function_call": {"arguments": f'["{A}"]'}}, {"function_call": {"arguments": f'["{B}"]'}}),
        ({"function_call": {"arguments": {"p": [A]}}}, {"function_call": {"arguments": {"p": [B]}}}),
        (
            {"content": [{"type": "text", "text": A}, {"type": "image_url", "text": A}]},
            {"content": [{"type": "text", "text": B}, {"type": "image_url", "text": A}]},
        ),
        (
            {"content": A, "annotations": [{"url_citation": 3}, {"file": A}], "function_call": A},
            {"content": B, "annotations": [{"url_citation": 3}, {"file": A}], "function_call": A},
        ),
    ],
)
def test_other_shapes_of_chat_completions(message: JsonObject, live: JsonObject) -> None:
    """Custom tools, the older function call, arguments as an object and content in chunks are read too."""
    recorded = json.dumps({"choices": [{"message": message}]}).encode()
    rebased = json.loads(rebase(recorded, "chat_completions", "whole", TO_POSIX).body)
    assert dig(rebased, "choices", 0, "message") == live


@pytest.mark.parametrize(
    ("part", "live"),
    [
        ({"executableCode": {"code": f"open('{A}')"}}, {"executableCode": {"code": f"open('{B}')"}}),
        ({"codeExecutionResult": {"output": A}}, {"codeExecutionResult": {"output": B}}),
        ({"inlineData": {"data": A}}, {"inlineData": {"data": A}}),
        ({"functionCall": {"name": A}}, {"functionCall": {"name": A}}),
    ],
)
def test_other_parts_of_gemini(part: JsonObject, live: JsonObject) -> None:
    """Code that Gemini ran and what it printed are read too; media and names are not."""
    candidate: JsonObject = {
        "content": {"parts": [part]},
        "groundingMetadata": {"groundingSupports": [{"segment": 3}]},
    }
    recorded = json.dumps({"candidates": [candidate]}).encode()
    rebased = json.loads(rebase(recorded, "gemini", "whole", TO_POSIX).body)
    assert dig(rebased, "candidates", 0, "content", "parts", 0) == live


def test_an_offset_inside_of_a_value_stays_inside() -> None:
    """A citation that starts in the middle of a path still starts in it."""
    annotation: JsonObject = {"start_index": 6, "end_index": 99}
    part: JsonObject = {"text": f"in {A}", "annotations": [annotation]}
    recorded = json.dumps({"output": [{"type": "message", "content": [part]}]}).encode()
    rebased = json.loads(rebase(recorded, "responses", "whole", TO_POSIX).body)
    moved = dig(rebased, "output", 0, "content", 0, "annotations", 0)
    assert moved == {"start_index": 6, "end_index": 99 + len(B) - len(A)}


def test_the_instructions_said_back() -> None:
    """The request's instructions in a response are a copy: re-based, but not counted."""
    recorded = json.dumps({"instructions": f"You work in {A}.", "output": []}).encode()
    rebased = rebase(recorded, "responses", "whole", TO_POSIX)
    assert json.loads(rebased.body)["instructions"] == f"You work in {B}."
    assert rebased.count == 0


def test_code_assist_wraps_its_responses() -> None:
    """The envelope of Code Assist is looked through."""
    recorded = stream([{"response": {"candidates": [{"content": {"parts": [{"text": A}]}}]}}], typed=False)
    assert rebase(recorded, "gemini", "sse", TO_POSIX).body == recorded.replace(A.encode(), B.encode())


def test_arguments_in_pieces_of_gemini() -> None:
    """A path that Vertex cuts is put back over its pieces; the next call's pieces are not its own."""
    half = len(A) // 2
    begun: JsonObject = {"name": "f", "willContinue": True}
    calls: list[JsonObject] = [begun, partial(A[:half]), partial(A[half:]), {}, begun, partial(A[half:]), {}]
    parts: list[JsonValue] = [
        {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]} for call in calls
    ]
    rebased = rebase(stream(parts, typed=False), "gemini", "sse", TO_POSIX)
    said = [
        str(
            dig(
                event, "candidates", 0, "content", "parts", 0, "functionCall", "partialArgs", 0, "stringValue"
            )
        )
        for index, event in enumerate(events(rebased.body))
        if index in (1, 2, 5)
    ]
    assert ("".join(said[:2]), said[2], rebased.count) == (B, A[half:], 1)


def partial(piece: str) -> JsonObject:
    """A piece of the argument `path`, of Vertex."""
    return {"partialArgs": [{"jsonPath": "$.path", "stringValue": piece}], "willContinue": True}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_framing_stays(end: bytes) -> None:
    """Line ends, comments, spaces, a BOM, an event over two lines and one without a blank line stay."""
    lines = [
        b"\xef\xbb\xbf: ping",
        b"id: 7",
        b"event:content_block_delta",
        b'data:{"type" : "content_block_delta", "index":0,',
        b'data:   "delta": {"text": "see \\u002fhome/a", "type": "text_delta"} }',
        b"",
        b"data: [DONE]",
        b"",
        b'data: {"type": "content_block_delta", "index": 0, "delta": {"text": "/app \xc3\xa9 \\u00e9"}}',
    ]
    live = [line.replace(b"\\u002fhome/a", B.encode()).replace(b'"/app ', b'" ') for line in lines]
    rebased = rebase(end.join(lines), "anthropic", "sse", TO_POSIX)
    assert rebased.body == end.join(live)


@pytest.mark.parametrize(
    ("written", "live"),
    [
        ('"/srv/x é"', '"/srv/ö é"'),
        ('"/srv/x \\u00e9"', '"/srv/\\u00f6 \\u00e9"'),
        ('"\\/srv\\/x \\ud83d\\ude00 \\ud83d"', '"/srv/\\u00f6 \\ud83d\\ude00 \\ud83d"'),
    ],
)
def test_escapes_are_written_as_around(written: str, live: str) -> None:
    """What is put in is escaped as the string is, and the escapes around it stay as they were."""
    recorded = f'{{"choices": [{{"message": {{"content": {written}}}}}], "x": "é"}}'
    rebased = rebase(
        recorded.encode(), "chat_completions", "whole", Replacements({"/srv/x": "/srv/ö"}, {}, {})
    )
    assert rebased.body.decode() == recorded.replace(written, live)


def test_a_live_value_with_a_lone_surrogate_is_escaped() -> None:
    """What has no UTF-8 form can still be written in JSON."""
    recorded = '{"content": [{"type": "text", "text": "é /srv/x"}]}'
    rebased = rebase(recorded.encode(), "anthropic", "whole", Replacements({"/srv/x": "/srv/\ud83d"}, {}, {}))
    assert rebased.body.decode() == recorded.replace("/srv/x", "/srv/\\ud83d")


def test_chunks_are_found_again() -> None:
    """The end of each recorded chunk is known in the new body, so that the pace can be kept."""
    recorded = body("chat_completions", "sse", RECORDED, range(0, LONGEST, 7))
    chunks = [chunk + b"\n\n" for chunk in recorded.split(b"\n\n")[:-1]]
    rebased = rebase(recorded, "chat_completions", "sse", TO_POSIX)
    place = 0
    ends = [rebased.moved(place := place + len(chunk)) for chunk in chunks]
    assert ends[-1] == len(rebased.body)
    assert all(rebased.body[:end].endswith(b"\n\n") for end in ends)
    assert ends == sorted(set(ends))
    assert Rebased(b"abc").moved(2) == 2


ODD: tuple[JsonValue, ...] = (None, 3, True, A, [3], [{}], {"a": 1}, [[A]], [{"text": 3, "delta": [A]}])


def odd_bodies() -> Iterator[bytes]:
    yield from (
        b"",
        b"{} {}",
        b"\xff" + A.encode(),
        A.encode(),
        b"[" * 100_000,
        b'{"content": "' + A.encode(),
        b"data: {",
    )
    for name in ("choices", "output", "content", "candidates", "response", "item", "delta", "message"):
        for value in ODD:
            answer = json.dumps({"type": "response.output_item.done", "index": [], name: value})
            yield answer.encode()
            yield f"data: {answer}\n\n".encode()
    yield b'data: {"index": ' + b"9" * 5000 + b', "delta": {"text": "/home/a/app"}}\n\n'


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic", "gemini", "generic"])
@pytest.mark.parametrize("form", ["whole", "sse", "json-array"])
def test_odd_answers_are_never_an_error(wire: Wire, form: Form) -> None:
    """What is not of the expected shape is left as it is, never an exception."""
    for answer in odd_bodies():
        rebased = rebase(answer, wire, form, TO_POSIX)
        assert rebased.count > 0 or rebased.body == answer


def test_one_unreadable_event_leaves_all_as_recorded() -> None:
    """When a copy may be out of reach, none is changed: they never disagree."""
    recorded = body("responses", "sse", RECORDED) + b'data: {"type": "response.x", \n\n'
    assert rebase(recorded, "responses", "sse", TO_POSIX) == Rebased(recorded)


def test_opaque_endpoints_are_not_read() -> None:
    """What `generic` answers is bytes."""
    recorded = json.dumps({"content": A}).encode()
    assert rebase(recorded, "generic", "whole", TO_POSIX) == Rebased(recorded)


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic", "gemini"])
def test_a_megabyte_is_quick(wire: Wire) -> None:
    """A megabyte of deltas that names a root 3000 times costs no more than a moment, traced or not."""
    words = f"some words of prose and {A}/src/x.py " * 1500 + "more words " * 3000
    recorded = body(wire, "sse", Said(words, {"p": words}), range(0, len(words), 24))
    assert len(recorded) > 500_000
    started = time.thread_time()
    assert rebase(recorded, wire, "sse", TO_POSIX).count == 3000
    assert time.thread_time() - started < 4
