"""What redaction does to requests: the table of cases, places, settings, secrets seen on the wire."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from typing import cast

import pytest

from case_tables import fake, fake_hex, read_cases, strings
from rewind_proxy.canonical.jcs import parse
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import (
    MARK,
    Redaction,
    Redactor,
    auth_values,
    is_auth_header,
    mask_url,
    rule_list,
    strip_query,
)
from rewind_proxy.canonical.redaction.engine import BUILT_IN_RULES
from rewind_proxy.errors import SettingsError, StoreVersionError

REDACTOR = Redactor()
KEY = fake("sk-proj-", 40)
HEADER_KEY = fake("corp_", 40)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3).decode()
# Real base64 can hold all of this by chance; the more of it, the likelier.
IMAGE = "iVBORw0KGgo/" + fake("AKIA", 16) + "/gAAAA" + fake("", 60) + "+" + fake("eyJ", 85) + "/" + PNG
SIGNED = fake("Er", 20) + "/" + fake("AKIA", 16) + "+" + fake("sk-", 48)


@pytest.mark.parametrize("case", read_cases("redact.jsonl"), ids=lambda case: case["id"])
def test_the_table_of_cases(case: JsonObject) -> None:
    """What must be gone is in no leaf, what must be kept is, and what was given is not mutated."""
    body = cast("JsonObject", case["request"])["body"]
    before = copy.deepcopy(body)
    leaves = strings(REDACTOR.value(body))
    assert body == before
    for secret in cast("list[str]", case["gone"]):
        assert not any(secret[at : at + 12] in leaf for leaf in leaves for at in range(len(secret) - 11))
    for kept in cast("list[str]", case["kept"]):
        assert any(kept in leaf for leaf in leaves)


# Places -------------------------------------------------------------------------------------------------

MEDIA: dict[str, JsonObject] = {
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
    "anthropic pdf": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": IMAGE},
    },
    "chat": {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}},
    "chat audio": {"type": "input_audio", "input_audio": {"data": IMAGE, "format": "wav"}},
    "chat file": {"type": "file", "file": {"file_data": IMAGE, "filename": "a.pdf"}},
    "responses": {"type": "input_image", "image_url": "data:image/png;base64," + IMAGE},
    "responses file": {"type": "input_file", "file_data": "data:application/pdf;base64," + IMAGE},
    "responses made image": {"type": "image_generation_call", "id": "ig_1", "result": IMAGE},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": IMAGE}},
    "gemini, snake case": {"inline_data": {"mime_type": "audio/wav", "data": IMAGE}},
    "gemini, url alphabet": {"inlineData": {"mimeType": "image/png", "data": SIGNED.replace("/", "_")}},
    "mcp": {"type": "image", "data": IMAGE, "mimeType": "image/png"},
    "thinking": {"type": "thinking", "thinking": "so", "signature": SIGNED},
    "redacted thinking": {"type": "redacted_thinking", "data": SIGNED},
    "thought": {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SIGNED},
    "reasoning": {"type": "reasoning", "id": "rs_1", "encrypted_content": SIGNED},
    "reasoning details": {"type": "reasoning.encrypted", "data": SIGNED},
    "tool use id": {"type": "tool_use", "id": SIGNED, "name": "f", "input": {}},
    "tool result id": {"type": "tool_result", "tool_use_id": SIGNED, "content": "ok"},
    "call id": {"type": "function_call_output", "call_id": SIGNED, "output": "ok"},
    "file id": {"type": "input_file", "file_id": SIGNED},
}


@pytest.mark.parametrize("part", MEDIA.values(), ids=MEDIA.keys())
def test_media_signatures_and_ids_are_left_alone(part: JsonObject) -> None:
    """Their bytes stay, though they hold what would be a key elsewhere; the text beside them is redacted."""
    redactor = Redactor((*BUILT_IN_RULES, "pattern:[A-Za-z0-9]{12}"))
    body: JsonObject = {"messages": [{"role": "user", "content": [part, {"type": "text", "text": KEY}]}]}
    sibling: JsonObject = {"type": "text", "text": MARK}
    assert redactor.value(body) == {"messages": [{"role": "user", "content": [part, sibling]}]}


TEXT_MEDIA: dict[str, tuple[str, JsonObject]] = {
    "anthropic": ("", {"source": {"type": "base64", "media_type": "text/plain", "data": "…"}}),
    "gemini": ("", {"inlineData": {"mimeType": "text/csv", "data": "…"}}),
    "json": ("", {"inlineData": {"mimeType": "application/json", "data": "…"}}),
    "data uri": ("data:text/plain;base64,", {"file_data": "…"}),
    "data uri with charset": ("data:text/plain;charset=utf-8;base64,", {"file_data": "…"}),
    "data uri without type": ("data:;base64,", {"image_url": {"url": "…"}}),
}


@pytest.mark.parametrize(("head", "part"), TEXT_MEDIA.values(), ids=TEXT_MEDIA.keys())
def test_text_in_base64_is_read(head: str, part: JsonObject) -> None:
    """Base64 of a text type is decoded, redacted and encoded again; without a credential it stays."""

    def filled(text: str) -> JsonValue:
        return parse(
            json.dumps(part).replace(json.dumps("…")[1:-1], head + base64.b64encode(text.encode()).decode())
        )

    assert REDACTOR.value(filled(f"é key={KEY}\n")) == filled(f"é key={MARK}\n")
    assert REDACTOR.value(filled("é nothing here")) == filled("é nothing here")


def as_written(data: bytes) -> dict[str, str]:
    """The ways in which clients write base64."""
    plain = base64.b64encode(data).decode()
    return {
        "url alphabet": base64.urlsafe_b64encode(data).decode().rstrip("="),
        "lines": base64.encodebytes(data).decode(),
        "crlf": plain[:20] + "\r\n" + plain[20:],
    }


@pytest.mark.parametrize("form", as_written(b""))
def test_text_in_base64_is_read_however_it_is_written(form: str) -> None:
    """The alphabet of URLs and line breaks hide nothing, and what holds no credential stays as it was."""
    for kind in ("text/plain", "image/svg+xml", "application/octet-stream", "application/x-env"):
        head: JsonObject = {"type": "base64", "media_type": kind}
        secret = as_written(f"\u00ff?>~ key={KEY}\n".encode())[form]
        expected = base64.b64encode(f"\u00ff?>~ key={MARK}\n".encode()).decode()
        assert REDACTOR.value({**head, "data": secret}) == {**head, "data": expected}
        innocent: JsonObject = {**head, "data": as_written("\u00ff?>~ nothing".encode())[form]}
        assert REDACTOR.value(innocent) is innocent


@pytest.mark.parametrize(
    "kind", ["image/png", "audio/wav", "video/mp4", "application/pdf", "application/zip"]
)
@pytest.mark.parametrize("form", as_written(b""))
def test_binary_media_stays_byte_for_byte(kind: str, form: str) -> None:
    """Also where a credential's characters stand among its bytes."""
    body: JsonObject = {"media_type": kind, "data": as_written(b"\x89P\0\xff" + KEY.encode())[form]}
    assert REDACTOR.value(body) is body


def test_escapes_of_a_data_uri_do_not_hide_its_text() -> None:
    """`%3D` at the end of the base64 is what any URL may write."""
    data = base64.b64encode(f"key {KEY}".encode()).decode().replace("=", "%3D")
    redacted = REDACTOR.value({"file_data": "data:text/plain;base64," + data})
    assert redacted == {
        "file_data": "data:text/plain;base64," + base64.b64encode(f"key {MARK}".encode()).decode()
    }


def test_base64_of_text_that_is_not_utf8_keeps_its_bytes() -> None:
    """A latin-1 file loses its credential and nothing else."""
    data = base64.b64encode(b"caf\xe9 " + KEY.encode()).decode()
    redacted = REDACTOR.value({"media_type": "text/plain", "type": "base64", "data": data})
    assert isinstance(redacted, dict)
    assert base64.b64decode(str(redacted["data"])) == b"caf\xe9 " + MARK.encode()


def test_a_plain_text_source_is_text() -> None:
    """An Anthropic source of type `text` holds the text itself, not base64."""
    source: JsonObject = {"type": "text", "media_type": "text/plain", "data": KEY}
    assert REDACTOR.value(source) == {"type": "text", "media_type": "text/plain", "data": MARK}


def test_what_claims_to_be_media_but_is_no_base64_is_text() -> None:
    """A member called `data` is no hiding place."""
    assert REDACTOR.value({"data": KEY}) == {"data": MARK}
    assert REDACTOR.value({"media_type": "image/png", "data": f"see {KEY}!"}) == {
        "media_type": "image/png",
        "data": f"see {MARK}!",
    }


@pytest.mark.parametrize("member", ["input", "args", "response"])
def test_an_id_in_tool_arguments_is_data(member: str) -> None:
    """What a tool is called with has no ids of the wire: a key there goes, whatever its name."""
    call: JsonObject = {"name": "f", member: {"id": KEY, "signature": KEY}}
    assert REDACTOR.value(call) == {"name": "f", member: {"id": MARK, "signature": MARK}}
    assert REDACTOR.value({"arguments": json.dumps({"id": KEY})}) == {"arguments": json.dumps({"id": MARK})}


SECRET_MEMBERS = (
    "password DB_PASSWORD passphrase api_key apiKey x-api-key X-Goog-Api-Key authorization_token "
    "access_token client_secret clientSecret AWS_SECRET_ACCESS_KEY private_key cookie"
).split()


@pytest.mark.parametrize("name", SECRET_MEMBERS)
def test_the_string_of_a_member_that_says_secret_goes(name: str) -> None:
    """Whatever it looks like; other values under that name stay."""
    assert REDACTOR.value({name: "abc"}) == {name: MARK}
    kept: list[JsonValue] = [
        None,
        True,
        7,
        "",
        {"type": "string", "description": "The secret to use"},
        "$SECRET",
    ]
    for value in kept:
        assert REDACTOR.value({name: value}) == {name: value}


def test_authorization_members_keep_their_scheme() -> None:
    """As in a header in text."""
    assert REDACTOR.value({"Authorization": f"Bearer {HEADER_KEY}"}) == {"Authorization": f"Bearer {MARK}"}
    assert REDACTOR.value({"authorization": HEADER_KEY}) == {"authorization": MARK}


def test_cookies_in_a_member_go_whole() -> None:
    """Also where there are several."""
    assert REDACTOR.value({"headers": {"Cookie": "a=1; b=2"}}) == {"headers": {"Cookie": MARK}}


def test_looser_names_need_a_value_that_looks_like_a_credential() -> None:
    """`token` and `secret` name many things."""
    for kept in ("the", "my-app-credentials", "Bearer", "12345678"):
        assert REDACTOR.value({"token": kept, "secret": kept}) == {"token": kept, "secret": kept}
    value = fake("", 32)
    assert REDACTOR.value({"token": value, "secret": value}) == {"token": MARK, "secret": MARK}
    assert REDACTOR.value({"nextPageToken": value}) == {"nextPageToken": value}


def test_a_value_is_told_by_the_name_beside_it() -> None:
    """Environments of containers, recorded headers, JSON web keys: the name is another member or item."""
    pairs: list[tuple[JsonValue, JsonValue]] = [
        ({"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "DB_PASSWORD", "value": MARK}),
        ({"key": "apiKey", "value": "abc", "n": 1}, {"key": "apiKey", "value": MARK, "n": 1}),
        ({"Name": "token", "Value": fake("", 32)}, {"Name": "token", "Value": MARK}),
        ([["x-api-key", fake_hex("", 40)], ["a", "b"]], [["x-api-key", MARK], ["a", "b"]]),
        (["--password", "hunter22"], ["--password", MARK]),
        ({"kty": "oct", "k": "abcd"}, {"kty": "oct", "k": MARK}),
    ]
    for before, after in pairs:
        assert REDACTOR.value({"input": before}) == {"input": after}
        assert REDACTOR.value({"text": json.dumps([before])}) == {"text": json.dumps([after])}


def test_values_beside_other_names_stay() -> None:
    """Also in lists of names, which are no pairs."""
    kept: list[JsonValue] = [
        {"name": "PATH", "value": "/usr/bin"},
        {"name": "API_KEY", "value": "$API_KEY"},
        {"name": "password", "type": "password", "value": ""},
        {"name": "nextPageToken", "value": fake("", 32)},
        {"required": ["password", "username"], "enum": ["token", "api_key"]},
        ["--password", "--user"],
        ["the token of the day", fake("", 32)],
        {"d": "M 1 2", "k": "v"},
    ]
    for value in kept:
        assert REDACTOR.value({"input": value}) == {"input": value}


def test_a_value_beside_a_redacted_name_goes() -> None:
    """What the name said before is not known any more: stored and live must not differ by it."""
    hides = Redactor((*BUILT_IN_RULES, "pattern:API"))
    assert hides.value({"name": "API_KEY", "value": "abc"}) == {"name": f"{MARK}_KEY", "value": MARK}


def test_labels_of_forms_stay() -> None:
    """In the languages that forms are in; a password of words does not."""
    for kept in ("Password", "Passwort:", "Enter your password", "Mot de passe oublié ?", "密码"):
        assert REDACTOR.value({"password": kept}) == {"password": kept}
    assert REDACTOR.value({"passphrase": "correct horse battery"}) == {"passphrase": MARK}
    assert REDACTOR.value({"password": "password1"}) == {"password": MARK}


def test_a_tool_schema_stays() -> None:
    """A property called `password` is an object with a description, and its description is prose."""
    tool: JsonObject = {
        "name": "login",
        "input_schema": {
            "type": "object",
            "required": ["password"],
            "properties": {
                "password": {"type": "string", "description": "The user's password, e.g. a passphrase"},
                "api_key": {"type": "string", "default": None, "enum": ["a", "b"]},
            },
        },
    }
    assert REDACTOR.value(tool) is tool


# JSON in strings ----------------------------------------------------------------------------------------


def nested(value: Mapping[str, JsonValue], depth: int) -> str:
    """`value` as JSON in a string in a string …."""
    text = json.dumps(value)
    for _ in range(depth):
        text = json.dumps({"body": text})
    return text


@pytest.mark.parametrize("depth", range(6))
def test_json_in_strings_is_read_at_any_depth(depth: int) -> None:
    """Members count by name at each depth, and each depth still parses."""
    secret = fake_hex("", 32)
    before, after = ({"service": "svc", "api_key": value, "cmd": f"x {value}"} for value in (KEY, MARK))
    assert REDACTOR.text(nested(before, depth)) == nested(after, depth)
    assert REDACTOR.text("log: " + nested({"api_key": secret}, min(depth, 3))) == "log: " + nested(
        {"api_key": MARK}, min(depth, 3)
    )


def test_unicode_escapes_do_not_hide_a_key() -> None:
    """A JSON string is read before it is looked at."""
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    assert REDACTOR.text(f'{{"cmd": "{escaped}", "n": 1}}') == f'{{"cmd": "{MARK}", "n": 1}}'


def test_only_the_changed_strings_of_a_document_are_written_anew() -> None:
    """Numbers, white space, order and the spelling of other strings stay as they were."""
    document = '{ "n" : 1.0e2,\t"big":123456789012345678901, "a\\u0062" : "\\u0041\\/", "k": ["%s", null] }'
    assert REDACTOR.text(document % KEY) == document % MARK


def test_a_document_with_a_repeated_member_is_redacted_as_text() -> None:
    """What does not parse strictly is text with quotes in it."""
    assert (
        REDACTOR.text(f'{{"a":"{KEY}","a":1,"api_key":"{KEY}"}}')
        == f'{{"a":"{MARK}","a":1,"api_key":"{MARK}"}}'
    )


def test_a_secret_that_ends_with_an_escaped_quote_leaves_it() -> None:
    """The naive way swallows the backslash of a quote and the row no longer parses."""
    arguments = json.dumps({"cmd": f'export AWS_SECRET_ACCESS_KEY={fake("FAKE", 30)}"', "n": 1})
    redacted = REDACTOR.value({"arguments": arguments})
    assert redacted == {"arguments": json.dumps({"cmd": f'export AWS_SECRET_ACCESS_KEY={MARK}"', "n": 1})}


def test_a_deep_body_does_not_exhaust_the_stack() -> None:
    """As deep as a document may be, also within a string."""
    deep = '{"a":' * 390 + f'"{KEY}"' + "}" * 390
    assert REDACTOR.text(deep) == deep.replace(KEY, MARK)
    assert REDACTOR.value(parse(deep)) == parse(deep.replace(KEY, MARK))


def test_numbers_that_jcs_cannot_say_stay() -> None:
    """Their tags are no strings of the client's."""
    body = parse('{"token": 12345678901234567890, "api_key": 1E400, "n": NaN}')
    assert REDACTOR.value(body) is body


def test_lone_surrogates_are_no_obstacle() -> None:
    """Tool output cut within an emoji is redacted like any other."""
    assert REDACTOR.text(f"cut \ud83d {KEY}") == f"cut \ud83d {MARK}"
    assert REDACTOR.value({"a": f'{{"b":"\ud83d {KEY}"}}'}) == {"a": f'{{"b":"\ud83d {MARK}"}}'}


# What is reported ---------------------------------------------------------------------------------------


def test_redactions_name_rule_and_place() -> None:
    """Paths are JSON paths, also into JSON inside a string; odd names are quoted."""
    body: JsonObject = {
        "messages": [{"content": f"use {KEY}"}],
        "x-y": {"password": "abc"},
        "arguments": json.dumps({"k": [KEY]}),
    }
    found: list[Redaction] = []
    REDACTOR.value(body, found)
    assert sorted(found, key=lambda redaction: redaction.path) == [
        Redaction("RW101", "$.arguments.k[0]"),
        Redaction("RW101", "$.messages[0].content"),
        Redaction("RW310", '$["x-y"].password'),
    ]
    found.clear()
    REDACTOR.value(KEY, found, "$.params")
    assert found == [Redaction("RW101", "$.params")]


def test_nothing_to_redact_gives_the_same_object() -> None:
    """Callers may compare by identity."""
    body: JsonObject = {"messages": [{"content": "hello there, nothing to see"}]}
    assert REDACTOR.value(body) is body
    assert REDACTOR.value(None) is None


def test_what_is_unchanged_is_shared() -> None:
    """A body with one credential is not copied as a whole."""
    body: JsonObject = {"tools": [{"name": "a"}], "messages": [{"content": "hello"}, {"content": KEY}]}
    redacted = REDACTOR.value(body)
    assert isinstance(redacted, dict)
    assert redacted["tools"] is body["tools"]
    assert redacted["messages"] == [{"content": "hello"}, {"content": MARK}]


# The list of rules --------------------------------------------------------------------------------------


def test_the_list_is_the_built_in_rules_and_the_patterns_of_the_project() -> None:
    """In that order, without what is off, each pattern once."""
    assert rule_list(True, [], []) == BUILT_IN_RULES
    assert rule_list(False, ["b+", "a+", "b+"], []) == ("pattern:b+", "pattern:a+")
    assert rule_list(True, ["b+"], ["RW101"]) == (
        *(r for r in BUILT_IN_RULES if r != "RW101@1"),
        "pattern:b+",
    )
    assert Redactor(rule_list(True, ["b+"], [])).rules[-1] == "pattern:b+"


def test_a_rule_that_is_off_does_nothing() -> None:
    """Others that would have matched still do."""
    assert Redactor(rule_list(True, [], ["RW101"])).text(KEY) == KEY
    assert Redactor(rule_list(True, [], ["RW101"])).text(f"API_KEY={KEY}") == f"API_KEY={MARK}"
    assert Redactor(()).text(KEY) == KEY


def test_patterns_of_the_project_have_ids_by_their_order() -> None:
    """The list only grows, so an id stays with its pattern."""
    found: list[Redaction] = []
    redactor = Redactor(rule_list(False, ["ACME-[0-9]+", "x"], []))
    assert redactor.value({"a": "ACME-77, x"}, found) == {"a": f"{MARK}, {MARK}"}
    assert found == [Redaction("RW901", "$.a"), Redaction("RW902", "$.a")]


def test_a_pattern_matches_in_short_texts_too() -> None:
    """The shortcuts for the built-in rules do not bind a project's."""
    redactor = Redactor(("pattern:x",))
    assert redactor.value({"a": "x", "b": ["x", "y"]}) == {"a": MARK, "b": [MARK, "y"]}


@pytest.mark.parametrize("pattern", ["(", "a*", "", "^", "x{2,1}"])
def test_a_bad_pattern_is_refused_with_its_place_and_not_its_text(pattern: str) -> None:
    """A pattern may itself be the secret."""
    with pytest.raises(SettingsError, match=r"redact_patterns\[1\]") as caught:
        rule_list(True, ["ok", pattern + "(?#hunter2)"], [])
    assert "hunter2" not in str(caught.value)


def test_a_rule_of_a_newer_version_is_refused() -> None:
    """A store written under it cannot be kept free of what that rule takes out."""
    with pytest.raises(StoreVersionError, match="RW101@99"):
        Redactor(("RW101@99",))


def test_a_pattern_that_uncovers_its_next_match_ends() -> None:
    """Where each pass makes room for just one more match, the text goes whole."""
    assert Redactor((r"pattern:\b[a-z]",)).text("a" * 100_000) == MARK


def test_a_pattern_cannot_grow_the_marks() -> None:
    """What matches within a mark is no match; what reaches into one takes it whole."""
    assert Redactor(("pattern:REDACTED",)).text(f"a {MARK} REDACTED") == f"a {MARK} {MARK}"
    assert Redactor((r"pattern:D\] b",)).text(f"a {MARK} b") == f"a {MARK}"


# Secrets of the wire ------------------------------------------------------------------------------------


def test_values_of_auth_headers_are_taken_out_as_whole_tokens() -> None:
    """Also after an escape; not as part of a longer word."""
    redactor = REDACTOR.with_secrets([HEADER_KEY])
    for around in ("{}", "k={},", '"{}"', "%3D{}", "\\n{}\\n", "/{}/", "-{}."):
        assert redactor.text(around.format(HEADER_KEY)) == around.format(MARK)
    assert redactor.text(HEADER_KEY + "x") == HEADER_KEY + "x"
    assert REDACTOR.text(HEADER_KEY) == HEADER_KEY


def test_secrets_of_the_wire_are_found_in_json_and_reported() -> None:
    """At any depth and however escaped; by a name of their own."""
    secret = "abc/def+" + fake("", 20)
    found: list[Redaction] = []
    body: JsonObject = {"arguments": json.dumps({"k": secret}).replace("/", "\\/")}
    assert REDACTOR.with_secrets([secret]).value(body, found) == {"arguments": json.dumps({"k": MARK})}
    assert found == [Redaction("RW001", "$.arguments.k")]


def test_short_values_are_not_looked_for() -> None:
    """`x-api-key: test` must not take the word out of every prompt."""
    assert REDACTOR.with_secrets(["test", "x" * 15]) is REDACTOR


def test_a_connection_costs_one_redactor() -> None:
    """The same values give the same object, whatever their order, and the same rules."""
    first = REDACTOR.with_secrets([HEADER_KEY, KEY])
    assert REDACTOR.with_secrets([KEY, HEADER_KEY, "short"]) is first
    assert first.rules == REDACTOR.rules


def test_auth_values_come_with_and_without_their_scheme() -> None:
    """And the password of Basic, and each cookie."""
    basic = base64.b64encode(f"me:{HEADER_KEY}".encode()).decode()
    assert auth_values([("Authorization", f"Bearer {KEY}"), ("accept", "a" * 40)]) == {KEY, f"Bearer {KEY}"}
    assert auth_values([("Proxy-Authorization", f"Basic {basic}")]) == {basic, f"Basic {basic}", HEADER_KEY}
    assert auth_values([("X-API-KEY", f" {KEY} "), ("x-goog-api-key", "short")]) == {KEY}
    assert auth_values([("Cookie", f'a=1; s={KEY}; t="{HEADER_KEY}"')]) == {KEY, HEADER_KEY}
    assert auth_values([("Set-Cookie", f"s={KEY}; Expires=Wed, 21 Oct 2026 07:28:00 GMT")]) == {KEY}


@pytest.mark.parametrize(
    "name", ["Authorization", "X-Api-Key", "api-key", "X-GOOG-API-KEY", "cookie", "SET-COOKIE"]
)
def test_auth_headers_in_any_letter_case(name: str) -> None:
    """A look-up that minds the case never fires."""
    assert is_auth_header(name)
    assert is_auth_header(name.lower())
    assert is_auth_header(name.upper())


def test_identities_are_auth_headers_and_counters_are_not() -> None:
    """Who is asking is masked like a credential."""
    for name in ("chatgpt-account-id", "OpenAI-Organization", "openai-project", "anthropic-organization-id"):
        assert is_auth_header(name)
    for name in (
        "content-type",
        "x-ratelimit-remaining-tokens",
        "anthropic-version",
        "user-agent",
        "x-request-id",
    ):
        assert not is_auth_header(name)


# Queries and URLs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["key", "KEY", "access_token", "api-key", "sig", "X-Amz-Signature", "token"])
def test_credentials_of_a_query(name: str) -> None:
    """Left out for the exact fingerprint; kept by name, with the mark, in what is stored."""
    pairs = (("alt", "sse"), (name, KEY), ("q", f"a {KEY}"))
    assert strip_query(pairs) == (("alt", "sse"), ("q", f"a {KEY}"))
    assert REDACTOR.query(pairs) == (("alt", "sse"), (name, MARK), ("q", f"a {MARK}"))
    assert REDACTOR.query(REDACTOR.query(pairs)) == REDACTOR.query(pairs)


def test_a_url_is_masked_and_otherwise_as_written() -> None:
    """Names may be percent-encoded; user information goes too."""
    secret = fake("AIza", 35)
    for name in ("key", "%6Bey", "access_token"):
        url = "https://x.test/v1beta/models/m1:streamGenerateContent?alt=sse&{}={}&n=%20a#top"
        assert mask_url(url.format(name, secret)) == url.format(name, MARK)
    assert mask_url(f"https://me:{secret}@x.test/a") == f"https://{MARK}@x.test/a"
    assert mask_url(f"/cb#access_token={secret}&x=1") == f"/cb#access_token={MARK}&x=1"
    assert mask_url("https://x.test/@a?key=&b=1") == "https://x.test/@a?key=&b=1"
