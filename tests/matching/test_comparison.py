"""Whether one request is answered by the recording of another, why not, and what would change that."""

from __future__ import annotations

from typing import Any

import pytest

from case_tables import fake
from matching.recorded_projects import HOSTS, read, request
from rewind_proxy.canonical.model import JsonObject, MatchSettings
from rewind_proxy.canonical.redact import Redactor, rule_list
from rewind_proxy.matching.comparison import Comparison, compare
from rewind_proxy.matching.reading import RawRequest, RequestReader

UUIDS = ("0b7f3c1e-8a52-4e0c-9f57-2d2f1f6c9a10", "5c2d9f61-1b8e-4d7a-8f00-7a8f3e2b1c44")


def reader(**settings: Any) -> RequestReader:
    """A reader under match settings."""
    return RequestReader(HOSTS, Redactor(rule_list(True, (), ())), MatchSettings(**settings), 2**26)


def chat(*texts: str, **more: Any) -> RawRequest:
    """A chat request of some messages, user and assistant in turn."""
    messages: list[JsonObject] = [
        {"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(texts)
    ]
    return request({"model": "m1", "messages": [*messages], **more})


def compared(a: RawRequest, b: RawRequest, weakest: Any = "normalised", **settings: Any) -> Comparison:
    """Their comparison under match settings."""
    using = reader(**settings)
    return compare(read(using, a), read(using, b), using, weakest)


def test_equal_requests_match_exactly() -> None:
    """There is nothing to say about them."""
    assert compared(chat("hi"), chat("hi")) == Comparison("exact")


def test_a_normalised_match_names_the_rules_that_made_it() -> None:
    """Scrub rules whose values differ, and parameters of the ignore list; no others."""
    a = chat(f"at 2026-11-30T09:00:00Z in {UUIDS[0]}", temperature=0, seed=1)
    b = chat(f"at 2026-11-30T09:00:00Z in {UUIDS[1]}", temperature=0, seed=2, max_tokens=5)
    assert compared(a, b) == Comparison("normalised", rules=("RS101", "ignore:seed", "ignore:max_tokens"))


def test_a_match_across_wires_names_that_they_were_ignored() -> None:
    """Host and wire are entries of the ignore list like any other."""
    a = request({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    b = request(
        {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}, wire="anthropic"
    )
    found = compared(a, b)
    assert found.tier == "normalised"
    assert {"ignore:host", "ignore:wire", "ignore:max_tokens"} <= set(found.rules)


def test_a_match_on_the_tail_names_it() -> None:
    """When what was cut off differs."""
    assert compared(chat("a", "b", "c"), chat("x", "b", "c"), tail_n=2).rules == ("tail_n",)
    assert compared(chat("a", "b", "c"), chat("a", "b", "c", seed=1), tail_n=2).rules == ("ignore:seed",)


def test_no_match_says_where_all_the_places_are() -> None:
    """Messages first, with paths of the normalised form."""
    found = compared(chat("one", x_new=1), chat("two", x_new=2))
    assert [each.path for each in found.differences] == ["$.messages[0].parts[0].text", "$.params.x_new"]
    assert found.tier is None
    assert found.would_match_with == ()


@pytest.mark.parametrize(
    ("a", "b", "settings", "expected"),
    [
        (chat("hi", x_new=1), chat("hi", x_new=2), {}, ["ignore += x_new"]),
        (chat("hi", x_new=1), chat("hi"), {}, ["ignore += x_new"]),
        (chat("hi", x=1, y=2), chat("hi", x=2, y=3), {}, ["ignore += x, y"]),
        (chat("hi", temperature=0), chat("hi", temperature=1), {"ignore": ()}, ["ignore += temperature"]),
        (
            chat("hi"),
            request({"model": "m1", "messages": [{"role": "user", "content": "hi"}]}, wire="anthropic"),
            {"ignore": ()},
            ["ignore += host, wire"],
        ),
        (chat("a", "b", "c", "d"), chat("x", "b", "c", "d"), {}, ["tail_n = 3"]),
        (chat("a", "b", "c"), chat("before", "too", "a", "b", "c"), {}, ["tail_n = 3"]),
        (chat("a", "b", "c", "d"), chat("a", "x", "c", "d"), {"tail_n": 3}, ["tail_n = 2"]),
        (chat("a", "b", x_new=1), chat("x", "b", x_new=2), {}, ["ignore += x_new and tail_n = 1"]),
        (chat("a", "b"), chat("a", "c"), {}, []),
        (
            chat(f"see {UUIDS[0]}"),
            chat(f"see {UUIDS[1]}"),
            {"scrub_off": ("RS103", "RS101")},
            ["scrub_off -= RS101"],
        ),
        (
            chat(f"see {UUIDS[0]} at 2026-11-30T09:00:00Z"),
            chat(f"see {UUIDS[1]} at 2026-12-01T09:00:00Z"),
            {"scrub_off": ("RS103", "RS202", "RS101")},
            ["scrub_off -= RS103, RS101"],
        ),
        (chat("see /srv/a/x.py"), chat("see /opt/b/x.py"), {}, ["paths = all"]),
        (
            chat("cwd: /home/ann/app", "see /home/ann/app/x.py"),
            chat("cwd: /home/bob/app", "see /home/bob/app/x.py"),
            {"paths": "off"},
            ["paths = roots", "paths = all"],
        ),
    ],
)
def test_what_would_make_them_match(
    a: RawRequest, b: RawRequest, settings: dict[str, Any], expected: list[str]
) -> None:
    """Settings are named that were tried on both requests, as few as do it."""
    found = compared(a, b, **settings)
    assert found.tier is None
    assert list(found.would_match_with) == expected


def test_only_the_exact_tier_may_answer() -> None:
    """With `match = exact` that is what stands in the way; the places are those of the meaning."""
    found = compared(chat("hi", seed=1), chat("hi", seed=2), "exact")
    assert (found.tier, found.would_match_with) == (None, ("match = normalised",))
    assert [each.path for each in found.differences] == ["$.params.seed"]
    assert compared(chat("hi", x=1), chat("hi", x=2), "exact").would_match_with == (
        "match = normalised and ignore += x",
    )


def test_requests_that_mean_the_same_and_are_written_otherwise() -> None:
    """With `match = exact` the place in the body is named when the meaning has none."""
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    parts: JsonObject = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    found = compared(request(body), request(parts), "exact")
    assert [each.path for each in found.differences] == ["$.body.messages[0].content"]


@pytest.mark.parametrize(
    ("host", "path"),
    [("api.openai.com", "/v1/embeddings"), ("api.anthropic.com", "/v1/messages/count_tokens")],
)
def test_another_model_is_another_vector_or_count(host: str, path: str) -> None:
    """No setting makes up for the model there, so none is named."""
    a, b = (
        RawRequest("POST", host, 443, path, (), b'{"model": "%s", "messages": []}' % model)
        for model in (b"m1", b"m2")
    )
    found = compared(a, b)
    assert (found.tier, found.would_match_with) == (None, ())
    assert [each.path.rpartition(".")[2] for each in found.differences] == ["model"]


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        (b"not json", b"not jsom", "$.body"),
        (b"not json", b'{"model": "m", "messages": []}', "$.body"),
    ],
)
def test_opaque_requests_are_compared_as_a_whole(a: bytes, b: bytes, path: str) -> None:
    """Only digests are shown of them."""
    raws = [RawRequest("POST", "api.openai.com", 443, "/v1/chat/completions", (), body) for body in (a, b)]
    found = compared(*raws)
    assert [each.path for each in found.differences] == [path]
    assert "not json" not in str(found)


def test_what_is_never_recorded_never_matches() -> None:
    """A login is not answered by the recording of a login, equal as they are."""
    login = RawRequest("POST", "api.openai.com", 443, "/v1/realtime/client_secrets", (), b"{}")
    assert compared(login, login) == Comparison(None)


def test_nothing_in_a_comparison_holds_a_credential() -> None:
    """The texts are excerpts of redacted requests."""
    secrets = [fake("sk-proj-", 40, salt) for salt in ("a", "b")]
    found = compared(*(chat(f"key {secret} {number}") for number, secret in enumerate(secrets)))
    assert found.differences
    assert not any(secret in str(found) for secret in secrets)
