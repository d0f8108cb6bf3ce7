"""What names say and hide: members that are a credential, parameters and headers that hold one."""

from __future__ import annotations

import json

import pytest

from case_tables import fake
from rewind_proxy.canonical.documents import Documents
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.canonical.redact import (
    MARK,
    Redaction,
    Redactor,
    auth_values,
    is_auth_header,
    mask_url,
    strip_query,
)
from rewind_proxy.canonical.redaction.engine import BUILT_IN_RULES
from rewind_proxy.matching.answer_redaction import redact_answer

REDACTOR = Redactor()
KEY = fake("sk-ant-api03-", 60)
OTHER = fake("ghp_", 36)
OPAQUE = fake("", 40)
SECOND = f"{MARK} no. 2"

# Member names --------------------------------------------------------------------------------------------

PLACES: list[JsonObject] = [
    {KEY: 1},
    {"extra": {KEY: "x"}},
    {"tools": [{"function": {"parameters": {"properties": {KEY: {"type": "string"}}}}}]},
    {"messages": [{"role": "user", "content": [{"type": "x", KEY: None}]}]},
    {"arguments": json.dumps({"deep": [{KEY: 1.5}]})},
    {"arguments": json.dumps({"deep": json.dumps({KEY: []})})},
    {"input": {f"prefix {KEY}": 1}},
]


@pytest.mark.parametrize("body", PLACES, ids=json.dumps)
def test_a_name_that_holds_a_credential_goes(body: JsonObject) -> None:
    """Whatever its value is, in schemas, tool arguments and JSON in strings; read in pieces or as a whole."""
    found: list[Redaction] = []
    redacted = REDACTOR.value(body, found)
    assert KEY[12:] not in json.dumps(redacted)
    assert json.dumps(redacted) == json.dumps(body).replace(f"prefix {KEY}", KEY).replace(KEY, MARK)
    assert [redaction.rule for redaction in found] == ["RW102"]
    assert KEY not in found[0].path
    assert found[0].path.endswith(f'["{MARK}"]')
    document = Documents().read(json.dumps(body).encode())
    assert document.redacted(REDACTOR, []) == redacted


def test_several_such_names_are_told_apart_by_their_values() -> None:
    """Neither the keys nor their order say which is which, so that rotated ones give the same body."""
    first: JsonObject = {KEY: "a", OTHER: "b", "n": 1}
    second: JsonObject = {"n": 1, KEY + "x": "b", OTHER + "y": "a"}
    redacted = REDACTOR.value(first)
    assert redacted == REDACTOR.value(second)
    assert isinstance(redacted, dict)
    assert sorted(redacted) == [MARK, SECOND, "n"]
    assert REDACTOR.value(redacted) is redacted


def test_names_that_were_redacted_before_are_numbered_with_those_that_come_now() -> None:
    """A store written before a rule is re-redacted to what a live request becomes."""
    body: dict[str, JsonValue] = {OTHER: "b", KEY: "a"}
    before = Redactor([rule for rule in BUILT_IN_RULES if not rule.startswith("RW201")])
    assert REDACTOR.value(before.value(body)) == REDACTOR.value(body)


def test_a_name_seen_in_an_auth_header_goes() -> None:
    """Like any other text that holds it as a whole token."""
    redactor = REDACTOR.with_secrets([OPAQUE])
    assert redactor.value({"a": {OPAQUE: 1}}) == {"a": {MARK: 1}}
    assert redactor.text(json.dumps({OPAQUE: [1]})) == json.dumps({MARK: [1]})
    assert REDACTOR.value({"a": {OPAQUE: 1}}) == {"a": {OPAQUE: 1}}


def test_a_pattern_of_the_project_is_for_values() -> None:
    """It may well match what members are called."""
    assert Redactor(("pattern:[a-z]{7}",)).value({"content": "content"}) == {"content": MARK}


def test_a_rule_that_is_off_leaves_names_too() -> None:
    """As it leaves values."""
    off = Redactor([rule for rule in BUILT_IN_RULES if not rule.startswith("RW102")])
    assert off.value({KEY: 1}) == {KEY: 1}


def test_the_names_of_an_answer_stay_and_its_values_go() -> None:
    """An answer is edited in its strings, where they stand."""
    answer = {"choices": [{"message": {"content": f"use {KEY}"}, KEY: f"and {OTHER}"}]}
    body = redact_answer(json.dumps(answer).encode(), "chat_completions", "whole", REDACTOR).body
    assert json.loads(body) == {"choices": [{"message": {"content": f"use {MARK}"}, KEY: f"and {MARK}"}]}


# Parameters ----------------------------------------------------------------------------------------------

PARAMETERS = (
    "api_token secret_key access_key private_token client-secret apiToken pwd jwt passphrase user_token "
    "x-functions-key hapikey appkey authkey id_token session_token Authorization subscription-key code sas"
).split()


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_judged_as_members_are(name: str) -> None:
    """In what is stored, in the exact fingerprint, in a masked URL and in a URL within a text."""
    pairs = (("alt", "sse"), (name, OPAQUE))
    assert REDACTOR.query(pairs) == (("alt", "sse"), (name, MARK))
    assert strip_query(pairs) == strip_query(REDACTOR.query(pairs)) == (("alt", "sse"),)
    assert mask_url(f"/v1/x?alt=sse&{name}={OPAQUE}") == f"/v1/x?alt=sse&{name}={MARK}"
    if name != "sas":
        assert OPAQUE not in REDACTOR.text(f"GET https://x.test/a?b=1&{name}={OPAQUE}&c=2")


@pytest.mark.parametrize(
    "pair",
    [
        ("pageToken", OPAQUE),
        ("next_page_token", OPAQUE),
        ("$skiptoken", OPAQUE),
        ("max_token", "5"),
        ("code", "en"),
        ("session", "one"),
        ("user_token", "short"),
        ("keyword", OPAQUE),
        ("author", OPAQUE),
    ],
)
def test_parameters_that_mean_something_stay(pair: tuple[str, str]) -> None:
    """What turns pages or names a thing tells one request from another."""
    assert strip_query([pair]) == (pair,)
    assert REDACTOR.query([pair]) == (pair,)


def test_the_name_of_a_parameter_may_be_the_key() -> None:
    """`?sk-…` has no value at all."""
    assert REDACTOR.query([(KEY, "")]) == ((MARK, ""),)


# Headers -------------------------------------------------------------------------------------------------

AUTH = (
    "apikey helicone-auth x-functions-key x-rapidapi-key x-litellm-key token x-auth authentication key "
    "secret x-goog-iap-jwt-assertion cf-access-client-id cf-access-client-secret cf-access-token x-secret "
    "x-key auth x-amz-security-token ocp-apim-subscription-key x-portkey-api-key x-portkey-virtual-key "
    "x-user-key x-csrftoken x-hapikey private-token proxy-authorization x-litellm-api-key x-client-password"
).split()
NO_AUTH = (
    "idempotency-key x-idempotency-key sec-websocket-key sec-websocket-accept x-ratelimit-limit-tokens "
    "x-ratelimit-reset-token anthropic-ratelimit-tokens-remaining anthropic-ratelimit-input-tokens-limit "
    "anthropic-version anthropic-beta anthropic-dangerous-direct-browser-access www-authenticate "
    "access-control-allow-credentials x-cache-key surrogate-key x-amzn-bedrock-input-token-count keep-alive "
    "x-stainless-lang x-request-id user-agent x-author :authority session_id x-api-key-version"
).split()


@pytest.mark.parametrize("name", AUTH)
def test_headers_that_say_key_token_or_secret(name: str) -> None:
    """In any letter case; and their values are looked for wherever they stand."""
    assert is_auth_header(name)
    assert is_auth_header(name.upper())
    assert OPAQUE in auth_values([(name, f"Bearer {OPAQUE}")])


@pytest.mark.parametrize("name", NO_AUTH)
def test_headers_that_only_sound_so(name: str) -> None:
    """Counters, cache keys and what a protocol calls a key are shown as they are."""
    assert not is_auth_header(name)
    assert auth_values([(name, OPAQUE)]) == frozenset()
