"""Laws of the fingerprints (DESIGN §5): what may change and what may not, over whole requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_tables import read_cases
from rewind_proxy.canonical.model import JsonObject, MatchSettings
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.matching.difference import differences
from rewind_proxy.matching.reading import RawRequest, Reading, RequestReader
from rewind_proxy.wire import HostTable

ADDON = Path(__file__).parents[2] / "addon"
HOSTS = HostTable({})
READER = RequestReader(HOSTS, Redactor(rule_list(True, (), ())), MatchSettings(), 2**26)


def reader(**settings: Any) -> RequestReader:
    """A reader under other match settings."""
    return RequestReader(HOSTS, Redactor(rule_list(True, (), ())), MatchSettings(**settings), 2**26)


def read(
    body: object,
    using: RequestReader = READER,
    host: str = "api.openai.com",
    path: str = "/v1/chat/completions",
) -> Reading:
    """The reading of one JSON body."""
    known = HOSTS.find(host, 443)
    assert known is not None
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return using.read(
        RawRequest("POST", host, 443, path, (("content-type", "application/json"),), data), known
    )


def chat(*messages: JsonObject, **more: Any) -> JsonObject:
    """A chat request."""
    return {"model": "m1", "messages": [*messages], **more}


def user(text: str) -> JsonObject:
    """A user's message."""
    return {"role": "user", "content": text}


@pytest.mark.parametrize("case", read_cases("match.jsonl"), ids=lambda case: str(case["id"]))
def test_case_table(case: dict[str, Any]) -> None:
    """The handed table of pairs: exact, normalised or different."""
    using = reader(**case.get("settings", {}))
    a, b = (case_reading(case[side], using) for side in "ab")
    exact, normalised = a.exact == b.exact, a.fingerprint == b.fingerprint
    assert {
        "exact": exact and normalised,
        "normalised": normalised and not exact,
        "different": not normalised,
    }[case["expect"]], (
        list(differences(a.normalised.view, b.normalised.view))[:3] if a.normalised and b.normalised else None
    )


def case_reading(request: dict[str, Any], using: RequestReader) -> Reading:
    """The reading of a request file."""
    _, _, rest = request["url"].partition("://")
    host, slash, path = rest.partition("/")
    body = request["body"] if isinstance(request["body"], str) else json.dumps(request["body"])
    known = HOSTS.find(host, 443)
    assert known is not None
    return using.read(
        RawRequest(
            request["method"], host, 443, slash + path, tuple(request["headers"].items()), body.encode()
        ),
        known,
    )


WORDS = st.lists(
    st.sampled_from("read write the file and tell me what it says about 12 apples now".split()),
    min_size=3,
    max_size=12,
)


@given(WORDS, st.data())
def test_a_changed_word_is_another_meaning(words: list[str], data: st.DataObject) -> None:
    """Changing any word that no rule covers changes the normalised fingerprint."""
    index = data.draw(st.integers(0, len(words) - 1))
    changed = [*words[:index], words[index] + "x", *words[index + 1 :]]
    assert read(chat(user(" ".join(words)))).fingerprint != read(chat(user(" ".join(changed)))).fingerprint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from(["", "a", "b c", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqrs"), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_unknown_fields_are_in_the_key(a: Any, b: Any) -> None:
    """Two values of an unknown field are two requests, whatever they are."""
    same = read(chat(user("Hi"), x_new=a)).fingerprint == read(chat(user("Hi"), x_new=b)).fingerprint
    assert same == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


@given(st.permutations(["model", "messages", "temperature", "x_new"]))
def test_member_order_is_noise(order: list[str]) -> None:
    """The order of members changes neither fingerprint."""
    body = chat(user("Hi"), temperature=0.5, x_new={"b": 1, "a": 2})
    shuffled = read({name: body[name] for name in order})
    assert (shuffled.exact, shuffled.fingerprint) == (read(body).exact, read(body).fingerprint)


def conversation(call: str, home: str, day: str) -> JsonObject:
    """A turn after a tool call, in some home on some day with some id."""
    return chat(
        {"role": "system", "content": f"<cwd>{home}/proj</cwd> <current_date>{day}</current_date>"},
        user(f"read {home}/proj/a.py"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call,
                    "type": "function",
                    "function": {"name": "cat", "arguments": json.dumps({"p": f"{home}/proj/a.py"})},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call, "content": f"{day}T09:00:01Z ok in 12 ms"},
    )


@given(
    st.from_regex(r"call_[A-Za-z0-9]{8}", fullmatch=True),
    st.sampled_from(["/home/ann", "/Users/bob", "/root", "/builds/7"]),
    st.dates().map(str),
)
def test_ids_places_and_days_are_noise(call: str, home: str, day: str) -> None:
    """Renaming ids, moving the project and changing the clock does not change the normalised fingerprint."""
    here = read(conversation("call_1", "/home/u", "2026-11-30"))
    there = read(conversation(call, home, day))
    assert there.fingerprint == here.fingerprint


def test_a_later_question_about_a_folder_moves_no_root() -> None:
    """Only the first words that tell the working directory count: a question about another is meaning."""

    def asked(folder: str) -> Reading:
        system: JsonObject = {"role": "system", "content": "<cwd>/home/u/proj</cwd>"}
        return read(chat(system, user(f"why is the working directory: {folder}?")))

    assert asked("/etc").fingerprint != asked("/usr").fingerprint


def test_a_later_turn_shares_the_chain() -> None:
    """The next request of a session starts with the links of the one before."""
    first = read(chat({"role": "system", "content": "s"}, user("a")))
    second = read(
        chat({"role": "system", "content": "s"}, user("a"), {"role": "assistant", "content": "b"}, user("c"))
    )
    assert second.links[: len(first.links)] == first.links
    assert len(second.links) == len(first.links) + 2


def test_tail_keeps_a_result_with_its_call() -> None:
    """`tail_n` never splits a tool call from its result, and keeps system and tools."""
    body = conversation("call_1", "/home/u", "2026-11-30")
    tail = read(body, reader(tail_n=1)).normalised
    assert tail is not None
    messages = tail.view["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages if isinstance(message, dict)] == [
        "system",
        "assistant",
        "tool",
    ]


def test_media_count_by_their_bytes() -> None:
    """The same picture in another spelling of base64 is the same, another picture is not."""

    def picture(data: str) -> Reading:
        part: JsonObject = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return read(chat({"role": "user", "content": [part]}))

    assert picture("aGVsbG8=").fingerprint != picture("aGVsbG9v").fingerprint
    assert picture("aGVsbG8=").fingerprint == picture("aGVsbG8=").fingerprint


def test_own_host_and_wire_in_a_body_count() -> None:
    """The ignore list's `host` and `wire` are the request's own, not members of a body."""
    assert read(chat(user("Hi"), host="a")).fingerprint != read(chat(user("Hi"), host="b")).fingerprint
    using = reader(ignore=("model",))
    groq = read(chat(user("Hi")), using, "api.groq.com", "/openai/v1/chat/completions")
    assert read(chat(user("Hi")), using).fingerprint != groq.fingerprint


def test_generic_requests_count_host_and_path() -> None:
    """What no adapter understands is matched on host and path too, whatever the ignore list says."""
    a = read({"prompt": "x"}, path="/v1/images/generations")
    assert a.fingerprint != read({"prompt": "x"}, path="/v1/images/edits").fingerprint
    assert a.fingerprint != read({"prompt": "x"}, host="api.x.ai", path="/v1/images/generations").fingerprint


def test_multipart_is_its_parts_not_its_boundary() -> None:
    """Two uploads of the same parts are one, whatever the boundary."""

    def upload(boundary: str, content: str) -> Reading:
        head = 'content-disposition: form-data; name="file"'
        body = f"--{boundary}\r\n{head}\r\n\r\n{content}\r\n--{boundary}--\r\n"
        known = HOSTS.find("api.openai.com", 443)
        assert known is not None
        headers = (("content-type", f"multipart/form-data; boundary={boundary}"),)
        request = RawRequest(
            "POST", "api.openai.com", 443, "/v1/audio/transcriptions", headers, body.encode()
        )
        return READER.read(request, known)

    assert upload("b1", "x").exact == upload("b2", "x").exact
    assert upload("b1", "x").exact != upload("b1", "y").exact


def test_credentials_in_the_query_are_not_in_the_key() -> None:
    """Another API key in the URL is the same request; another parameter is not."""
    path = "/v1beta/models/m1:generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}

    def exact(query: str) -> str:
        return read(body, host="generativelanguage.googleapis.com", path=f"{path}?{query}").exact

    assert exact("key=a&alt=sse") == exact("alt=sse&key=b") == exact("alt=sse")
    assert exact("alt=json") != exact("alt=sse")
    assert exact("alt=sse&a=1") != exact("a=1&alt=sse")


@pytest.mark.parametrize(
    "name", ["key", "Key", "%6Bey", "k%45y", "$key", "%24key", "access_token", "ACCESS%5Ftoken"]
)
def test_a_key_in_the_query_in_any_spelling(name: str) -> None:
    """A credential in the URL is in neither fingerprint, however its name is cased or escaped (CASES 36)."""
    path = "/v1beta/models/m1:generateContent?alt=sse"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    token = "ya29." + "k7Qw" * 8
    plain, keyed = (
        read(body, host="generativelanguage.googleapis.com", path=path + more)
        for more in ("", f"&{name}={token}")
    )
    assert (plain.exact, plain.fingerprint) == (keyed.exact, keyed.fingerprint)
    other = read(body, host="generativelanguage.googleapis.com", path=f"{path}&{name}word={token}")
    assert other.exact != plain.exact


def test_order_of_the_query() -> None:
    """The order of parameters counts in the exact tier alone; their values count in both."""
    path = "/v1beta/models/m1:generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    host = "generativelanguage.googleapis.com"
    one, two, three = (
        read(body, host=host, path=f"{path}?{query}") for query in ("b=2&a=1", "a=1&b=2", "a=2&b=1")
    )
    assert one.exact != two.exact
    assert one.fingerprint == two.fingerprint != three.fingerprint


SCRIPT = """
import json, sys
sys.path[:0] = [{addon!r}, {tests!r}, {tests!r} + "/canonical"]
from test_fingerprint import conversation, read, chat, user
bodies = [conversation("call_%d" % n, "/home/u%d" % n, "2026-11-30") for n in range(25)]
tools = [{{"type": "function", "function": {{"name": c}}}} for c in "bca"]
bodies += [chat(user("é %d" % n), tools=tools) for n in range(25)]
print(json.dumps([[read(b).exact, read(b).fingerprint] for b in bodies]))
"""


def test_fingerprints_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Hash seed, locale, time zone and folder change no fingerprint (CASES 10)."""
    script = SCRIPT.format(addon=str(ADDON), tests=str(ADDON.parent / "tests"))
    outputs = set()
    for seed, zone, locale in (
        ("0", "UTC", "C"),
        ("1", "Asia/Tokyo", "C.UTF-8"),
        ("77", "America/Lima", "POSIX"),
    ):
        variables = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LANG": locale, "LC_ALL": locale}
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
